"""Child processes: their answers, how they end, and that none of them is left running."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, nullcontext
from multiprocessing import active_children
from typing import TYPE_CHECKING, Any, cast

import pytest
from jobs import counted, various

from syncedmem.spec.engine.supervisor import (
    Child,
    Command,
    Death,
    Limits,
    side_by_side,
)

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from syncedmem.spec.engine.supervisor import Progress


class Watcher:
    """Records the reported progress and the number of running jobs."""

    def __init__(self) -> None:
        self.told: dict[str, list[tuple[str, int]]] = {}
        self.running = self.most = 0

    @contextmanager
    def __call__(self, name: str) -> Generator[Progress]:
        self.running += 1
        self.most = max(self.most, self.running)
        told = self.told[name] = list[tuple[str, int]]()

        def tell(stage: str, cases: int) -> None:
            told.append((stage, cases))

        try:
            yield tell
        finally:
            self.running -= 1


def unwatched(_: str) -> AbstractContextManager[None]:
    return nullcontext()


@pytest.mark.deep
def test_every_job_answers_from_another_process() -> None:
    """There are as many processes as were asked for, and each does one job after the other."""
    watcher = Watcher()
    answers = dict(side_by_side(counted, ("a", "b", "c"), processes=2, watch=watcher))
    pairs = [cast("tuple[str, int]", answers[name]) for name in ("a", "b", "c")]

    assert ["a", "b", "c"] == [name for name, _ in pairs]
    assert 1 <= len({process for _, process in pairs} - {os.getpid()}) <= 2
    assert (2, 0) == (watcher.most, watcher.running)


def test_progress_is_told_now_and_then() -> None:
    """Each stage is reported, but not each case: that would keep the watcher too busy."""
    watcher = Watcher()
    dict(side_by_side(counted, ("a",), processes=1, watch=watcher))

    assert {("first", 0), ("second", 0)} <= set(watcher.told["a"])
    assert len(watcher.told["a"]) < 500


@pytest.mark.deep
@pytest.mark.skipif(os.name != "posix", reason="there are no signals elsewhere")
def test_a_process_that_dies_ends_only_itself(capfd: pytest.CaptureFixture[str]) -> None:
    """A crash, an exit or an exception in one process does not end the others."""
    answers = dict(side_by_side(various, ("crash", "leave", "fine"), processes=2, watch=unwatched))
    wrong = dict(side_by_side(cast("Any", str), ("a",), processes=1, watch=unwatched))

    assert Death("crash", "SIGSEGV", "begun", 7) == answers["crash"]
    assert Death("exit", "3", "begun", 7) == answers["leave"]
    assert "fine" == answers["fine"]
    assert Death("exit", "1", "its start", 0) == wrong["a"]
    assert "TypeError" in capfd.readouterr().err


def test_none_is_left_when_nobody_listens_any_more() -> None:
    """An interrupt closes the answers in the same way."""
    watcher = Watcher()
    answers = side_by_side(various, ("fine", "sleep", "sleep again"), processes=2, watch=watcher)
    assert ("fine", "fine") == next(answers)
    assert active_children()
    cast("Generator[object]", answers).close()

    assert not active_children()
    assert 0 == watcher.running


def test_a_child_leaves_interrupts_to_its_parent() -> None:
    """The terminal interrupts both, and the parent ends its children."""
    assert "interrupt" == Child(various, "interrupt").wait()


def test_who_stands_still_is_ended() -> None:
    """A separate limit holds until the first progress; the answer says how the process was ended."""
    slow = Child(various, "sleep", limits=Limits(seconds=0.2, first=60)).wait()
    late = Child(various, "sleep before", limits=Limits(seconds=60, first=0.2)).wait()

    assert Death("hang", "0.2", "begun", 7) == slow
    assert Death("hang", "0.2", "its start", 0) == late
    assert isinstance(late, Death)
    assert "was ended after 0.2 seconds without progress" == late.how
    assert not active_children()


@pytest.mark.deep
def test_what_moves_is_not_ended() -> None:
    """The caller may pass a function that reports other signs of progress."""
    marks = iter(range(1 << 30))
    answer = Child(various, "nap", limits=Limits(seconds=0.5, first=60), moved=lambda: next(marks)).wait()

    assert "nap" == answer


def test_memory_can_be_limited() -> None:
    assert Death("exit", "1", "begun", 7) == Child(various, "grow", limits=Limits(memory=8 << 30)).wait()


ECHO = "import sys\nfor line in sys.stdin: print(line.strip() * 2, flush=True)"


@pytest.mark.parametrize("environment", [None, {"PYTHONFAULTHANDLER": "1", "LEFT": "alone"}])
def test_a_program_of_python_ends_with_its_own_words(
    environment: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with a traceback of faulthandler, whatever the environment says."""
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    monkeypatch.setenv("LEFT", "alone")
    with Command(["/bin/sh", "-c", "read line; echo ${PYTHONFAULTHANDLER-unset} $LEFT"], environment) as command:
        assert "unset alone" == command.ask("")
    with Command(["/bin/sh", "-c", "read line; echo ${LEFT-nothing}"], {}) as command:
        assert "nothing" == command.ask("")


@pytest.mark.deep
def test_a_program_answers_lines() -> None:
    with Command([sys.executable, "-c", ECHO], limits=Limits(seconds=60, memory=8 << 30)) as command:
        assert ["abab", "cc"] == [command.ask("ab"), command.ask("c")]
        command.process.kill()
        command.process.wait()
        assert Death("crash", "SIGKILL") == command.ask("again")


def test_what_is_reserved_and_not_used_is_no_memory() -> None:
    """CUDA reserves more addresses than there is memory."""
    reserves = "import mmap; it = mmap.mmap(-1, 1 << 42, flags=mmap.MAP_PRIVATE, prot=0)\n"
    with Command([sys.executable, "-c", reserves + ECHO], limits=Limits(seconds=60, memory=8 << 30)) as command:
        assert "abab" == command.ask("ab")


@pytest.mark.deep
def test_a_program_that_does_not_end_is_ended() -> None:
    program = "import sys, time; print(sys.stdin.readline().strip(), flush=True); time.sleep(600)"
    with Command([sys.executable, "-c", program], limits=Limits(seconds=0.2, first=60)) as command:
        assert "x" == command.ask("x")

    assert command.process.returncode == -signal.SIGKILL


@pytest.mark.deep
@pytest.mark.parametrize("program", ["import time; time.sleep(600)", "import os, time; os.close(1); time.sleep(600)"])
def test_a_program_that_does_not_read_or_closes_its_output_hangs(program: str) -> None:
    with Command(
        [sys.executable, "-c", program], limits=Limits(seconds=1, first=60 if "close" in program else 1)
    ) as item:
        found = item.ask("x" * (1 << 20) if "close" not in program else "x")

    assert isinstance(found, Death)
    assert "hang" == found.kind
