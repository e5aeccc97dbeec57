"""Forks for one job: their answers, how they end, and that nothing that a job does with its process hides that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.spec.engine.descendants import adopt_orphans, end_children
from syncedmem.spec.engine.fork import in_fork
from syncedmem.spec.engine.supervisor import Death, Limits
from syncedmem.spec.engine.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


LONG = Limits(seconds=60)


def done(job: Callable[[], Any], folder: Path, limits: Limits = LONG) -> dict[str, Any] | Death:
    return in_fork(job, folder / "answer", limits, lambda: 0)


def abort() -> None:
    os.write(2, b"first\nlast words")
    os.abort()


def close_everything() -> dict[str, int]:
    os.closerange(0, 60)
    return {"fine": 1}


def leave_a_child() -> dict[str, int]:
    if not os.fork():
        time.sleep(2)
        os._exit(0)
    return {"fine": 1}


def come_back_twice() -> dict[str, int]:
    os.fork()
    return {"fine": 1}


def leave_the_answer_to_a_child() -> dict[str, int]:
    """Only the fork itself may answer."""
    if child := os.fork():
        os.waitpid(child, 0)
        os._exit(3)
    return {"fine": 1}


def broken() -> None:
    raise KeyError("ours")


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("job", "answer"),
    [
        (lambda: {"fine": 1}, {"fine": 1}),
        (abort, Death("crash", "SIGABRT", last_line="last words")),
        (lambda: os._exit(3), Death("exit", "3")),
        (lambda: sys.exit(4), Death("exit", "4")),
        (lambda: sys.exit("text"), Death("exit", "1")),
        (lambda: os._exit(0), Death("exit", "0")),
        (close_everything, {"fine": 1}),
        (leave_a_child, {"fine": 1}),
        (come_back_twice, {"fine": 1}),
        (leave_the_answer_to_a_child, Death("exit", "3")),
        (lambda: {"default": signal.getsignal(signal.SIGINT) is signal.SIG_DFL}, {"default": True}),
    ],
    ids=range(11),
)
def test_how_a_fork_ends(job: Callable[[], Any], answer: object, tmp_path: Path) -> None:
    assert answer == done(job, tmp_path)


def test_the_last_words_of_a_fork_are_its_own_under_faulthandler_too(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from syncedmem.spec.engine.fork import in_fork
from syncedmem.spec.engine.supervisor import Limits
def job():
    os.write(2, b"last words")
    os.abort()
print(in_fork(job, Path(sys.argv[1]), Limits()).last_line)
"""
    command = [sys.executable, "-X", "faulthandler", "-c", program, str(tmp_path / "answer")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "last words\n" == run.stdout


def test_of_what_a_fork_prints_only_the_end_is_kept(tmp_path: Path) -> None:
    """A target may print more than there is room for."""

    def shout() -> None:
        for _ in range(40):
            os.write(1, b"x" * (1 << 16))
        abort()

    assert Death("crash", "SIGABRT", last_line="last words") == done(shout, tmp_path)
    with Tail() as output:
        output.begin()
        for _ in range(40):
            os.write(output.end, b"x" * (1 << 16))
        os.write(output.end, b"end")
        assert len(output.text()) <= 1 << 20
        assert output.text().endswith("xend")


def test_what_has_left_its_session_is_ended_too(tmp_path: Path) -> None:
    """Also what has lost its parent; it belongs to the process that adopts orphans."""

    def leave_many() -> dict[str, int]:
        adopt_orphans()
        for _ in range(3):
            if not os.fork():
                os.setsid()
                os.fork()
                time.sleep(600)
        if not (middle := os.fork()):
            os.setsid()
            if not os.fork():
                time.sleep(600)
            os._exit(0)
        os.waitpid(middle, 0)
        end_children()
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        return {"fine": 1}

    assert {"fine": 1} == done(leave_many, tmp_path)


def test_a_fork_has_a_time_for_all_of_its_job(tmp_path: Path) -> None:
    """Also if it makes progress."""
    limits, steps = Limits(seconds=60, whole=0.1), iter(range(1 << 30))

    assert Death("late", "0.1") == in_fork(lambda: time.sleep(600), tmp_path / "answer", limits, lambda: next(steps))


def test_an_exception_is_no_crash(tmp_path: Path) -> None:
    """It is a failure of ours; only the end of the process is one of the target."""
    found = done(broken, tmp_path)

    assert isinstance(found, dict)
    assert found["failed"].startswith("KeyError: 'ours' (test_fork.py:")
    death = done(interrupted, tmp_path)
    assert isinstance(death, Death)
    assert ("exit", "1") == (death.kind, death.detail)


@pytest.mark.parametrize("ends", [True, False])
def test_an_answer_that_could_not_be_written_is_said_and_a_crash_in_the_middle_of_one_is_a_crash(
    ends: bool, tmp_path: Path
) -> None:
    """A target that has damaged the heap of malloc may end the process anywhere."""

    def half() -> None:
        (tmp_path / "answer").write_text("{", encoding="utf-8")
        if ends:
            os._exit(0)
        abort()

    unwritten = {"failed": f"its answer could not be written to {tmp_path / 'answer'}"}
    assert (unwritten if ends else Death("crash", "SIGABRT", last_line="last words")) == done(half, tmp_path)


@pytest.mark.deep
def test_who_stands_still_is_ended_and_who_moves_is_not(tmp_path: Path) -> None:
    marks = iter(range(1 << 30))

    def nap() -> dict[str, int]:
        time.sleep(1)
        return {"fine": 1}

    assert Death("hang", "0.2") == done(nap, tmp_path, Limits(seconds=60, first=0.2))
    assert {"fine": 1} == in_fork(nap, tmp_path / "answer", Limits(seconds=0.5), lambda: next(marks))


def test_a_first_step_counts_even_if_it_was_taken_before_anybody_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the fork may run first; then a call that hung had the patience for a whole import."""
    step = tmp_path / "step"

    def fork(real: Callable[[], int] = os.fork) -> int:
        process = real()
        while process and not step.exists():
            time.sleep(0.001)
        return process

    def stop() -> None:
        step.touch()
        time.sleep(600)

    monkeypatch.setattr("os.fork", fork)

    assert Death("hang", "0.1") == in_fork(stop, tmp_path / "answer", Limits(seconds=0.1, first=5), step.exists)


def test_a_fork_has_no_more_memory_than_its_limit(tmp_path: Path) -> None:
    def fills() -> dict[str, int]:
        time.sleep(0.2)  # until it is limited
        return {"size": len(bytearray(1 << 30))}

    found = in_fork(fills, tmp_path / "answer", Limits(seconds=60, memory=1 << 29))

    assert isinstance(found, dict)
    assert found["failed"].startswith("MemoryError")


def test_an_interrupt_ends_the_fork_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def fork(real: Callable[[], int] = os.fork) -> int:
        begun.append(real())
        return begun[-1]

    def interrupt() -> None:
        if begun:
            raise KeyboardInterrupt

    monkeypatch.setattr("os.fork", fork)
    with pytest.raises(KeyboardInterrupt):
        in_fork(lambda: time.sleep(600), tmp_path / "answer", Limits(), interrupt)
    with pytest.raises(ChildProcessError):
        os.waitpid(begun[0], os.WNOHANG)
