"""The threads that large vectors are worked on with: one `Crew` for the process.

One processor alone does not fill the memory's channels, and NumPy lets go of the interpreter while it computes.
So a long job is cut into pieces, and whoever is free takes the next one.  The caller works too, and waits for
nobody who has not begun: where no helper comes, it does all of it.  That is what makes the rest simple:

- A forked child has none of its parent's threads.  It forgets the crew, and hires one of its own.
- While the interpreter exits no thread can be started.  The caller is then alone.
- Jobs of several threads wait for each other nowhere: helpers who come late find nothing left to do.

Of a job that is over the crew keeps nothing, so no array lives longer for having been worked on.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Work = Callable[[Iterator[int]], None]

__all__ = ["Crew", "crew"]

_MOST = 8
"""More threads than this do not make memory faster; they only share it."""


class Crew:
    """Threads for hire, started when the first large job comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def size(self) -> int:
        """How many may work on one job, the caller included: the processors this process may use, at most 8."""
        # os.process_cpu_count, from Python 3.13, also listens to PYTHON_CPU_COUNT.
        counted: Any = getattr(os, "process_cpu_count", lambda: len(os.sched_getaffinity(0)))
        return min(int(counted() or 1), _MOST)

    def share(self, pieces: Iterable[int], works: list[Work]) -> None:
        """Do a job, and return when all of it is done.

        Parameters
        ----------
        pieces : iterable of int
            Each is handed to exactly one of the workers.
        works : list of callables
            One for each who may take part; each is given an iterator over the pieces that it gets.  They are made
            beforehand, so that what a worker needs is there before the first piece is done.

        Raises
        ------
        Exception
            What a piece raised.  Pieces not begun are not done then, and nobody works on it any more.
        """
        job = _Job(pieces, works[1:])
        self._call(job, len(works) - 1)
        job.finish(works[0])

    def forget(self) -> None:
        """Let go of the threads; the next job hires new ones.  For a forked child, which has none of them."""
        self._lock = threading.Lock()
        self._pool = None

    def _call(self, job: _Job, helpers: int) -> None:
        try:
            with self._lock:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(_MOST - 1, thread_name_prefix="syncedmem")
                for _ in range(helpers):
                    self._pool.submit(job.join)
        except RuntimeError:  # no more threads: the interpreter exits, or the system has none left
            return


class _Job:
    """Pieces to be done, and who is at it."""

    def __init__(self, pieces: Iterable[int], works: list[Work]) -> None:
        self._pieces = iter(pieces)
        self._works = works
        self._changed = threading.Condition()
        self._working = 0
        self._failures: list[BaseException] = []

    def _next(self) -> int | None:
        with self._changed:
            return None if self._failures else next(self._pieces, None)

    def join(self) -> None:
        """Help, unless the job is over."""
        with self._changed:
            if not self._works:
                return
            work = self._works.pop()
            self._working += 1
        try:
            self._do(work)
        finally:
            del work  # before the caller is told, so that it finds its arrays unused
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def finish(self, work: Work) -> None:
        """Do what is left, and wait for those who help."""
        self._do(work)
        with self._changed:
            self._works.clear()
            self._changed.wait_for(lambda: not self._working)
        if self._failures:
            raise self._failures[0]

    def _do(self, work: Work) -> None:
        try:
            work(iter(self._next, None))
        except BaseException as error:  # noqa: BLE001 -- raised by finish(), when nobody works any more
            self._failures.append(error)


_CREW = Crew()
os.register_at_fork(after_in_child=_CREW.forget)


def crew() -> Crew:
    """The one crew of the process."""
    return _CREW
