"""The fuzzer's worker process: it may crash or hang, and the fuzzer reports what happened."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import tempfile
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from mutants.allocator import ALLOCATOR_BUGS, Pool

from syncedmem.model import FileAccessError
from syncedmem.spec.fuzz import (
    TargetError,
    fuzz,
    worker,
)
from syncedmem.spec.fuzz.isolation import Inline, Isolated

if TYPE_CHECKING:
    from pathlib import Path

POOL = "mutants.allocator:Pool"


def asked(tmp_path: Path, **job: Any) -> dict[str, Any]:
    """Return the answer of a worker to a job."""
    whole: dict[str, Any] = {"promises": {}, "journal": str(tmp_path / "journal"), "hang": 30, **job}
    replies = io.StringIO()
    worker.serve(io.StringIO(json.dumps(whole) + "\n"), replies)
    answer: dict[str, Any] = json.loads(replies.getvalue())
    return answer


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
    program = {"job": "program", "program": [["allocate", 0, 8]]}

    assert asked(tmp_path, job="describe", target=POOL)["fresh"]
    assert "names no target" in asked(tmp_path, job="describe", target="x")["error"]
    assert {"crash": "SIGABRT", "said": "last words"} == asked(tmp_path, target=f"{file}:Dies", **program)
    assert {"crash": "exit status 3", "said": ""} == asked(tmp_path, target=f"{file}:Leaves", **program)
    assert {"hang": 0.3} == asked(tmp_path, target=f"{file}:Hangs", hang=0.3, **program)


def test_a_target_that_cannot_be_used_is_an_answer(tmp_path: Path) -> None:
    job: dict[str, Any] = {"job": "describe", "promises": {}, "target": POOL, "journal": str(tmp_path / "journal")}
    wrong = worker.answer_to({**job, "target": "nothing:x"})

    assert "allocate and deallocate" == worker.answer_to(job)["kind"]
    assert {"error": "cannot import nothing: ModuleNotFoundError: No module named 'nothing'"} == wrong


def test_a_worker_answers_each_line_of_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ignores interrupts; the process that started it handles them."""
    handled: list[Any] = []

    def handle(number: int, handler: Any) -> None:
        handled.append((number, handler))

    def answer(job: Any) -> Any:
        return {"answer": job["job"]}

    monkeypatch.setattr("signal.signal", handle)
    monkeypatch.setattr("sys.stdin", io.StringIO('{"job": 1}\n{"job": 2}\n'))
    monkeypatch.setattr(worker, "_in_child", answer)
    worker.main()

    assert [(signal.SIGINT, signal.SIG_IGN)] == handled
    assert [{"answer": 1}, {"answer": 2}] == [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.deep
def test_a_worker_that_is_gone_is_replaced() -> None:
    with Isolated(POOL, 1.0) as place:
        place.worker.process.kill()
        place.worker.process.wait()

        assert place.perform({"job": "describe", "promises": {}})["fresh"]


@pytest.mark.deep
def test_a_target_that_dies_when_it_is_opened_is_said(tmp_path: Path) -> None:
    file = tmp_path / "dies.py"
    file.write_text("import os\nos.abort()\n", encoding="utf-8")

    with pytest.raises(TargetError, match="cannot be opened: the process ended with SIGABRT before the first step"):
        fuzz(f"{file}:x")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "requirement"),
    [("EndsTheProcess", "A22"), pytest.param("WaitsForItself", "A23", marks=pytest.mark.deep)],
)
def test_crashes_and_hangs_are_findings_with_their_steps(name: str, requirement: str) -> None:
    """The campaign continues after them."""
    report = fuzz(ALLOCATOR_BUGS[name].target, steps=8_000, hang=2 if requirement == "A23" else 30)
    finding = next(it for it in report.findings if it.requirement.startswith(requirement))

    assert finding.program
    assert finding.shrunk
    assert report.operations > finding.operations


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


def test_places_say_whether_they_protect() -> None:
    with Inline(Pool) as place:
        assert not place.protects
        assert () == place.steps()
        assert (0, 0, 0) == place.entered()


def test_a_full_disk_is_said_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("syncedmem.spec.fuzz.isolation._allocate", full)
    with pytest.raises(FileAccessError, match=f"{tempfile.gettempdir()}.*: No space left on device"):
        fuzz(POOL, steps=100)


def test_seeded_bugs_that_end_or_stop_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, waits = ALLOCATOR_BUGS["EndsTheProcess"].make(), ALLOCATOR_BUGS["WaitsForItself"].make()
    aborted: list[bool] = []
    monkeypatch.setattr("os.abort", lambda: aborted.append(True))
    with pytest.raises(MemoryError):
        ends.allocate(ends.limit + 1)
    with pytest.raises(MemoryError):
        ends.allocate(1 << 50)
    assert [True] == aborted
    assert not hasattr(waits.lock, "_is_owned")
    waits.lock = threading.RLock()
    assert waits.realloc(waits.allocate(8), 16)
