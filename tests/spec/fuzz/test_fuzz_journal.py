"""The fuzzer's journal, the JSON form of its steps, and how programs are shortened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mutants.allocator import Pool

from syncedmem.spec.fuzz import (
    Source,
    Step,
    TargetError,
)
from syncedmem.spec.fuzz.campaign import campaign
from syncedmem.spec.fuzz.journal import Journal, code
from syncedmem.spec.fuzz.shortening import shortened

if TYPE_CHECKING:
    from pathlib import Path


def test_a_journal_keeps_the_first_steps_of_a_long_program(tmp_path: Path) -> None:
    journal, reader = Journal(tmp_path / "journal", capacity=3), Journal(tmp_path / "journal", capacity=3)
    for number in range(5):
        journal.note(code("check"), number)
    journal_marks = {reader.mark()}

    assert journal.full
    assert [Step("check", (it,)) for it in range(3)] == list(reader.steps())
    journal.begin()
    journal_marks.add(reader.mark())
    assert () == reader.steps()
    journal.note(code("free"), 7, 1)
    journal_marks.add(reader.mark())
    assert (Step("free", (7, 1)),) == reader.steps()
    assert 3 == len(journal_marks)
    journal.close()
    reader.close()


def test_a_full_journal_begins_anew() -> None:
    source = Source(Pool())
    outcome = campaign(source, source.open().capabilities, Journal(capacity=300), seed=0, steps=2_000, seconds=60)

    assert outcome.wrong is None
    assert outcome.rounds > 5


def test_where_memory_cannot_be_kept_from_forks_they_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """``MADV_DONTFORK`` is Linux's."""
    monkeypatch.delattr("mmap.MADV_DONTFORK", raising=False)
    journal = Journal()
    journal.stay()
    journal.note(code("check"), 7)
    steps = journal.steps()
    journal.close()

    assert (Step("check", (7,)),) == steps


def test_programs_are_made_short() -> None:
    program = tuple(Step("allocate", (number, 1000, 0, 0)) for number in range(40))

    def question(steps: tuple[Step, ...]) -> bool:
        return any(step.numbers[0] in (17, 0) and step.numbers[1] >= 3 for step in steps)

    assert (Step("allocate", (0, 3, 0, 0)),) == shortened(program[10:], question)
    assert program == shortened(program, lambda _: False)
    # Shortening must not turn a request for too much into a request for zero bytes, which every target may serve.
    too_much = (Step("request_too_much", (1 << 50,)), Step("compare", ()))
    assert too_much[:1] == shortened(too_much, lambda steps: too_much[0].operation in {it.operation for it in steps})
    assert program == shortened(program, question, 0)


@pytest.mark.parametrize(
    "data", [3, [], ["fly"], ["allocate", -1], ["allocate", "0"], ["compare", 1], ["free", 1, 2, 3]]
)
def test_what_is_no_step_is_refused(data: Any) -> None:
    with pytest.raises(TargetError, match="not a step"):
        Step.from_json(data)


def test_steps_are_data_and_back() -> None:
    step = Step("allocate", (0, 16, 0, 0))

    assert (["allocate", 0, 16], "allocate(0, 16)", step) == (step.as_json(), str(step), Step.from_json(step.as_json()))


def test_a_round_that_the_target_has_overwritten_is_not_believed(tmp_path: Path) -> None:
    """A run said that there were -1,084,822,110,360,528,323 operations."""
    journal = Journal(tmp_path / "journal", capacity=8)
    journal.begin()
    journal.enter(3, 7)
    assert (3, 7, 0) == Journal(tmp_path / "journal", capacity=8).entered()
    for wild in (b"\xf0" * 8, b"\x01" + b"\0" * 7):
        with (tmp_path / "journal").open("r+b") as file:
            file.seek(24)
            file.write(wild)
        assert (-1, 0, 0) == Journal(tmp_path / "journal", capacity=8).entered()
