"""The fuzzer's worker process: it may crash or hang, and the fuzzer reports what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from mutants.allocator import Pool

from syncedmem.spec.engine.supervisor import Death
from syncedmem.spec.fuzz import OPERATIONS, HeapStep, TargetError, fuzz
from syncedmem.spec.fuzz.jobs import Isolated
from syncedmem.spec.fuzz.journal import Journal
from syncedmem.spec.fuzz.outcome import finding_of

if TYPE_CHECKING:
    from pathlib import Path

POOL = "mutants.allocator:Pool"


def spoilt(folder: Path, at: int, wild: bytes) -> Journal:
    """The journal after its target has written into it."""
    with (folder / "journal").open("r+b") as file:
        file.seek(at)
        file.write(wild)
    return Journal(folder / "journal", capacity=8)


def test_what_the_target_has_overwritten_is_not_believed(tmp_path: Path) -> None:
    """Neither a round nor a count of steps: a run said that there were -1,084,822,110,360,528,323 operations."""
    journal = Journal(tmp_path / "journal", capacity=8)
    journal.begin()
    journal.enter(3, 7)
    journal.note(1, 5, 64)
    again = Journal(tmp_path / "journal", capacity=8)
    assert ((3, 7, 0), (HeapStep("allocate", (5, 64, 0, 0)),)) == (again.entered(), again.steps())
    for wild in (b"\xf0" * 8, b"\0\0\0\x10" + b"\0" * 4):
        assert () == spoilt(tmp_path, 1024, wild).steps()
    for wild in (b"\xf0" * 8, b"\x01" + b"\0" * 7):
        assert (-1, 0, 0) == spoilt(tmp_path, 56, wild).entered()


@pytest.mark.parametrize(("wrong", "where"), [(False, "before the first step"), (True, "in a step that is not known")])
def test_a_death_without_known_steps_says_whether_there_were_any(wrong: bool, where: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", capacity=8)
    if wrong:
        spoilt(tmp_path, 1024, b"\xf0" * 8)
    crash = finding_of(Death("crash", "SIGSEGV", last_line="bye"), journal)

    assert crash is not None
    assert ("A22-no-crash", ()) == (crash.requirement, crash.program)
    assert f"the process ended with SIGSEGV {where} (bye)" == crash.message
    assert finding_of(Death("late", "5"), journal) is None


def test_a_step_of_each_operation_is_read_as_it_was_recorded(tmp_path: Path) -> None:
    """A count may be as large as a size; once it was taken for the number of a block, which may not."""
    journal = Journal(tmp_path / "journal", capacity=64)
    journal.begin()
    most = {"size": (1 << 64) - 1, "count": (1 << 64) - 2, "stream": 3, "how": 4}
    for operation, names in OPERATIONS.items():
        journal.record(operation, *(most.get(name, at + 5) for at, name in enumerate(names)))

    assert [
        (operation, tuple(most.get(name, at + 5) for at, name in enumerate(names)))
        for operation, names in OPERATIONS.items()
    ] == list(Journal(tmp_path / "journal", capacity=64).steps())


@pytest.mark.deep
def test_a_worker_that_is_gone_is_replaced() -> None:
    with Isolated(POOL, 1.0) as place:
        place.worker.process.kill()
        place.worker.process.wait()

        assert place.perform({"job": "describe", "promises": {}}).described


@pytest.mark.deep
def test_a_target_that_dies_when_it_is_opened_is_said(tmp_path: Path) -> None:
    file = tmp_path / "dies.py"
    file.write_text("import os\nos.abort()\n", encoding="utf-8")

    with pytest.raises(TargetError, match="cannot be opened: the process ended with SIGABRT before the first step"):
        fuzz(f"{file}:x")


def test_a_finding_that_does_not_come_again_is_kept_as_it_was() -> None:
    class Moody(Pool):
        """Only its hundredth address is wrong."""

        wrong: ClassVar[int] = 0

        def place(self, room: int, alignment: int) -> int:
            Moody.wrong += 1
            return super().place(room, alignment) + (Moody.wrong == 100)

    report = fuzz(Moody, promises={"alignment": "64"}, steps=2_000)

    assert ["A03-aligned"] == [it.requirement for it in report.findings]
    assert (False, False) == (report.findings[0].shrunk, report.findings[0].repeats)
    assert "fuzz(" in report.replay(report.findings[0]).python()
