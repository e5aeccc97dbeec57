"""The fuzzer's worker process: it may crash or hang, and the fuzzer reports what happened."""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from allocator_conventions import Rmm
from mutants.allocator import ALLOCATOR_BUGS, Pool

from syncedmem.model import FileAccessError
from syncedmem.spec.engine.supervisor import Death
from syncedmem.spec.fuzz import OPERATIONS, HeapStep, Report, TargetError, fuzz
from syncedmem.spec.fuzz.campaign import Stage, campaign
from syncedmem.spec.fuzz.jobs import Isolated, perform
from syncedmem.spec.fuzz.journal import Journal
from syncedmem.spec.fuzz.outcome import Outcome, finding_of
from syncedmem.spec.fuzz.recognition import TargetSource

if TYPE_CHECKING:
    from pathlib import Path

POOL = "mutants.allocator:Pool"


@pytest.mark.deep
def test_a_worker_answers_and_survives(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "import os, time\n"
        "class Base:\n    def deallocate(self, pointer): pass\n"
        "class Dies(Base):\n    def allocate(self, size): os.write(2, b'last words'); os.abort()\n"
        "class Leaves(Base):\n    def allocate(self, size): os._exit(3)\n"
        "class Hangs(Base):\n    def allocate(self, size): time.sleep(60)\n",
        encoding="utf-8",
    )
    deaths: list[Death | None] = []
    for name, hang in (("Dies", 30), ("Leaves", 30), ("Hangs", 1)):
        with Isolated(f"{file}:{name}", hang) as place:
            deaths += [place.perform({"job": "program", "program": [["allocate", 0, 8]], "promises": {}}).death]
            assert (HeapStep("allocate", (0, 8, 0, 0)),) == place.journal.steps()

    assert [
        Death("crash", "SIGABRT", last_line="last words"),
        Death("exit", "3"),
        Death("hang", "1"),
    ] == deaths


def test_a_round_that_the_target_has_overwritten_is_not_believed(tmp_path: Path) -> None:
    """A run said that there were -1,084,822,110,360,528,323 operations."""
    journal = Journal(tmp_path / "journal", capacity=8)
    journal.begin()
    journal.enter(3, 7)
    assert (3, 7, 0) == Journal(tmp_path / "journal", capacity=8).entered()
    for wild in (b"\xf0" * 8, b"\x01" + b"\0" * 7):
        with (tmp_path / "journal").open("r+b") as file:
            file.seek(56)
            file.write(wild)
        assert (-1, 0, 0) == Journal(tmp_path / "journal", capacity=8).entered()


def test_a_journal_has_its_room_from_the_start(tmp_path: Path) -> None:
    """A full disk ended the process that wrote there, as if its target had crashed."""
    with Journal(tmp_path / "journal", 1 << 14, threads=2):
        assert Journal.size(1 << 14, 2) <= 512 * (tmp_path / "journal").stat().st_blocks


def test_a_journal_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("syncedmem.spec.fuzz.journal._allocate", full)
    with pytest.raises(FileAccessError):
        Journal(tmp_path / "journal", 1 << 14)


@pytest.mark.parametrize(("spoilt", "where"), [(False, "before the first step"), (True, "in a step that is not known")])
def test_a_death_without_known_steps_says_whether_there_were_any(spoilt: bool, where: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", capacity=8)
    if spoilt:
        with (tmp_path / "journal").open("r+b") as file:
            file.seek(1024)
            file.write(b"\xf0" * 8)
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


def test_a_count_of_steps_that_the_target_has_overwritten_leaves_none(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", capacity=8)
    journal.begin()
    journal.note(1, 5, 64)
    assert (HeapStep("allocate", (5, 64, 0, 0)),) == Journal(tmp_path / "journal", capacity=8).steps()
    for wild in (b"\xf0" * 8, b"\0\0\0\x10" + b"\0" * 4):
        with (tmp_path / "journal").open("r+b") as file:
            file.seek(1024)
            file.write(wild)
        assert () == Journal(tmp_path / "journal", capacity=8).steps()


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

    assert ["A03-aligned"] == [finding.requirement for finding in report.findings]
    assert (False, False) == (report.findings[0].shrunk, report.findings[0].repeats)
    assert "fuzz(" in report.replay(report.findings[0]).python()


@pytest.mark.parametrize("error", [KeyError, SystemExit])
def test_what_ends_a_thread_ends_the_job(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """It once ended only that thread, and the run passed."""

    def fail(*_: object) -> None:
        raise error(7)

    monkeypatch.setattr("syncedmem.spec.fuzz.campaign.Round.take", fail)
    source = TargetSource(Pool)
    with pytest.raises(error):
        campaign(source, source.open().capabilities, Journal(), Stage(1_000, threads=2), seed=0, seconds=60)


@pytest.mark.deep
def test_without_room_for_a_second_look_a_finding_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole report was lost."""
    begin, begun = Isolated.__init__, list[Isolated]()

    def begin_once(self: Isolated, *arguments: Any, **options: Any) -> None:
        begun.append(self)
        if len(begun) > 1:
            raise FileAccessError("here", "No space left on device")
        begin(self, *arguments, **options)

    monkeypatch.setattr(Isolated, "__init__", begin_once)
    report = fuzz("mutants.allocator.placement:PutBackTwice", steps=2_000, first=True)

    assert ["A01-distinct-pointers"] == [finding.requirement for finding in report.findings]
    assert ["here: No space left on device"] == report.errors


@pytest.mark.deep
@pytest.mark.parametrize("error", [TargetError("it is gone"), FileAccessError("here", "No space left on device")])
def test_what_fails_in_the_middle_leaves_a_report(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    perform = Isolated.perform

    def fail_late(self: Isolated, job: dict[str, Any]) -> Outcome:
        if job.get("kind") == "late":
            raise error
        return perform(self, job)

    monkeypatch.setattr(Isolated, "perform", fail_late)
    report = fuzz(POOL, steps=1_000)

    assert report.operations
    assert [str(error)] == report.errors
    assert not report.passed


def test_an_interrupt_while_a_finding_is_exchanged_does_not_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    kept = list[Report]()
    monkeypatch.setattr("syncedmem.spec.fuzz.kit.reason_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fuzz(ALLOCATOR_BUGS["PutBackTwice"].make, steps=2_000, on_change=kept.append)

    assert ["A01-distinct-pointers"] == [finding.requirement for finding in kept[-1].findings]


class Wakes(Rmm):
    """Its first call takes longer than all that the look at its pace may take."""

    awake = False

    def allocate(self, nbytes: int, stream: object = None) -> int:
        if not self.awake:
            time.sleep(0.6)
            self.awake = True
        return super().allocate(nbytes, stream)


def test_the_first_call_is_no_measure_of_the_others() -> None:
    """It was the only one that was measured, and a plan of millions of operations became one of some hundreds."""
    outcome = perform(TargetSource(Wakes), {"job": "look", "promises": {}}, Journal())

    assert outcome.described is not None
    assert 0 < outcome.described["pace"] < 0.1
