"""Jobs in processes of their own, side by side: they use every processor, and one that crashes ends only itself."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    Progress = Callable[[str, int], None]
    Watch = Callable[[str], AbstractContextManager[Progress | None]]

__all__ = ["Death", "processors", "side_by_side"]

AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)

# A process begins afresh: OpenCL and CUDA do not survive a fork.
_CONTEXT = get_context("spawn")
_PAUSE = 0.05


class Job(Protocol[AnswerT_co]):
    """What is done for each name, in another process: so it, and what it returns, can be pickled."""

    def __call__(self, name: str, /, *, progress: Progress) -> AnswerT_co: ...


@dataclass(frozen=True)
class Death:
    """A process ended without an answer.

    Attributes
    ----------
    how : str
        ``"was ended by SIGSEGV"``, ``"ended with status 1"``.
    stage : str
        What it did last.
    cases : int
        How much of that was done.
    """

    how: str
    stage: str
    cases: int


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(
    job: Job[AnswerT], names: Iterable[str], *, processes: int, watch: Watch
) -> Iterator[tuple[str, AnswerT | Death]]:
    """Do a job for each name, each in a process of its own; no more run when the caller stops listening.

    Parameters
    ----------
    job : callable
        Given a name, and who is to be told of its progress.
    names : iterable of str
        In the order in which they start.
    processes : int
        How many run at a time.
    watch : callable
        Given a name, a context for the time its job runs, which gives who is told of its progress, or None.

    Yields
    ------
    (str, object)
        A name and the answer, or the `Death` of its process, in the order in which they end.
    """
    waiting = list(names)
    running: dict[object, _Running[AnswerT]] = {}
    with ExitStack() as everything:
        while waiting or running:
            while waiting and len(running) < processes:
                started = _Running[AnswerT](waiting.pop(0))
                everything.enter_context(started.stack)
                started.begin(job, watch)
                running[started.connection] = started
            for ready in connection.wait([it.connection for it in running.values()]):
                if running[ready].listen():
                    ended = running.pop(ready)
                    ended.stack.close()
                    yield ended.name, ended.answer


class _Running(Generic[AnswerT]):
    """A process, and what it said so far."""

    answer: AnswerT | Death

    def __init__(self, name: str) -> None:
        self.name = name
        self.stack = ExitStack()
        self.connection, self._there = _CONTEXT.Pipe(duplex=False)
        self._last: tuple[str, int] = ("its start", 0)
        self.stack.callback(self.connection.close)

    def begin(self, job: Job[AnswerT], watch: Watch) -> None:
        """Start the process; it ends with the stack."""
        with self._there:
            process = _CONTEXT.Process(target=serve, args=(self._there, job, self.name), daemon=True)
            self._progress = self.stack.enter_context(watch(self.name))
            process.start()
        self.stack.callback(process.join)
        self.stack.callback(process.terminate)
        self._process: BaseProcess = process

    def listen(self) -> bool:
        """Take what it says next; whether that was its last."""
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):  # the latter if it ended in the middle of what it said
            self._process.join()
            self.answer = Death(_how(self._process.exitcode), *self._last)
            return True
        if kind == "answer":
            self.answer = cast("AnswerT", content)
            return True
        self._last = content
        if self._progress is not None:
            self._progress(*self._last)
        return False


def serve(there: Connection, job: Callable[..., Any], name: str) -> None:
    """Do a job in this process, and send its progress and its answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us is interrupted too, and ends us
    stage, told = "", 0.0

    def tell(now: str, cases: int) -> None:
        nonlocal stage, told
        if now != stage or time.monotonic() - told > _PAUSE:
            stage, told = now, time.monotonic()
            there.send(("progress", (now, cases)))

    there.send(("answer", job(name, progress=tell)))


def _how(status: int | None) -> str:
    return f"was ended by {signal.Signals(-status).name}" if status and status < 0 else f"ended with status {status}"
