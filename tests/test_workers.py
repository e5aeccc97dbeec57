"""`Crew`: every piece is done once, whoever comes to help, and nobody is left at work or waited for in vain."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.runtime.vectors.host import HostVectors
from syncedmem.runtime.vectors.workers import Crew, crew

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_every_piece_is_done_once() -> None:
    done: list[int] = []
    Crew().share(range(1000), [done.extend] * 4)

    assert sorted(done) == list(range(1000))


def test_helpers_work_at_the_same_time() -> None:
    """Two pieces that wait for each other are both done."""
    meeting = threading.Barrier(2, timeout=30)

    def work(pieces: Iterator[int]) -> None:
        for _ in pieces:
            meeting.wait()

    Crew().share(range(2), [work, work])
    assert not meeting.broken


def test_nobody_who_has_not_begun_is_waited_for() -> None:
    """With all threads busy elsewhere the caller does everything, and who comes later finds nothing."""
    busy, gate, late = threading.Semaphore(0), threading.Event(), list[int]()
    one = Crew()

    def hold(pieces: Iterator[int]) -> None:
        for _ in pieces:
            busy.release()
            gate.wait(30)

    holder = threading.Thread(target=one.share, args=(range(8), [hold] * 8))
    holder.start()
    for _ in range(8):
        assert busy.acquire(timeout=30)
    done: list[int] = []

    def come_late(pieces: Iterator[int]) -> None:
        late.extend(pieces)

    unused = weakref.ref(come_late)
    one.share(range(10), [done.extend, come_late])
    del come_late
    assert (done, late, unused()) == (list(range(10)), [], None)

    gate.set()
    holder.join(30)
    one.share(range(8), [done.extend] * 8)
    assert late == []


@pytest.mark.parametrize("culprit", [0, 1])
def test_an_error_is_raised_when_nobody_works_any_more(culprit: int) -> None:
    """Whether the caller or a helper failed; pieces not begun stay undone."""
    meeting, at_work, done = threading.Barrier(2, timeout=30), set[int](), list[int]()

    def work(number: int, pieces: Iterator[int]) -> None:
        at_work.add(number)
        for piece in pieces:
            if piece < 2:
                meeting.wait()
                if number == culprit:
                    at_work.discard(number)
                    raise KeyboardInterrupt
            done.append(piece)
        at_work.discard(number)

    with pytest.raises(KeyboardInterrupt):
        Crew().share(range(10**7), [lambda pieces: work(0, pieces), lambda pieces: work(1, pieces)])
    assert not at_work
    assert len(done) < 10**7


def test_where_no_thread_can_be_started_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    Crew().share(range(10), [done.extend] * 3)

    assert done == list(range(10))


@pytest.mark.parametrize(("processors", "size"), [(1, 1), (2, 2), (64, 8), (None, 1)])
def test_the_crew_is_as_large_as_the_processors_we_may_use(
    monkeypatch: pytest.MonkeyPatch, processors: int | None, size: int
) -> None:
    monkeypatch.setattr(os, "process_cpu_count", lambda: processors, raising=False)

    assert Crew().size == size


def test_the_processors_we_may_use_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "process_cpu_count", raising=False)

    def three(_: int) -> set[int]:
        return {3, 5, 7}

    monkeypatch.setattr(os, "sched_getaffinity", three)

    assert Crew().size == 3


def test_one_processor_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(crew()), "size", 1)
    monkeypatch.setattr(type(crew()), "share", None)
    x = np.ones((1 << 21) + 5, np.float32)

    assert HostVectors().sumsq(x) == x.size
    assert HostVectors(blas=False).asum(x) == x.size


def test_small_vectors_never_hire() -> None:
    program = (
        "import threading, numpy as np; from syncedmem.runtime.vectors.host import HostVectors as V\n"
        "V().axpy(0.5, x := np.ones(10_000), x); V().asum(x); print(threading.active_count())"
    )
    assert said_by(program) == "1\n"


FORKS = """
import os, threading, warnings, numpy as np
warnings.simplefilter("ignore")  # Python warns of forks beside threads, which is what is tried here
from syncedmem.runtime.vectors.host import HostVectors
from syncedmem.runtime.vectors.workers import crew
x, vectors = np.ones(1 << 22, np.float32), HostVectors()
assert vectors.sumsq(x) == x.size
def work():
    while not over: vectors.sumsq(x)
over = False
thread = threading.Thread(target=work, daemon=True); thread.start()
for _ in range(10):
    if not (child := os.fork()):
        os._exit(0 if crew()._pool is None and vectors.sumsq(x) == vectors.asum(x) == x.size else 1)
    assert os.waitpid(child, 0)[1] == 0
over = True; thread.join()
print("well")
"""

EXITS = """
import atexit, numpy as np
from syncedmem.runtime.vectors.host import HostVectors
x, vectors = np.ones(1 << 22, np.float32), HostVectors()
atexit.register(lambda: print(vectors.sumsq(x) == x.size, flush=True))
vectors.sumsq(x)
"""


def said_by(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_a_forked_child_has_a_crew_of_its_own() -> None:
    """Also of a parent one of whose threads is at work."""
    assert said_by(FORKS) == "well\n"


def test_vectors_work_while_the_interpreter_exits() -> None:
    """When no thread can be started any more."""
    assert said_by(EXITS) == "True\n"


def test_several_threads_share_the_crew() -> None:
    x = np.ones(1 << 22, np.float32)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(HostVectors().sumsq(x))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert results == [x.size] * 6


def test_forgetting_lets_go_of_the_threads() -> None:
    """What a forked child does first."""
    one, done = Crew(), list[int]()
    one.share(range(3), [done.extend] * 2)
    one.forget()
    one.share(range(3), [done.extend] * 2)

    assert sorted(done) == [0, 0, 1, 1, 2, 2]
