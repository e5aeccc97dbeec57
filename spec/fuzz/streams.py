"""Simulated streams, for allocators that order memory by streams, on any machine.

A `Stream` has work that has not happened yet.  An allocator may query it, wait for it, or record an event, under
any of the usual names.  Without such a wait, work happens only when the fuzzer lets it happen.
"""

from __future__ import annotations

__all__ = ["Event", "Stream"]


class Event:
    """A point in a stream, which is done when the work before it has happened."""

    def __init__(self, stream: Stream, point: int) -> None:
        self._stream = stream
        self._point = point

    @property
    def done(self) -> bool:
        """Whether everything before the point has happened; never blocks."""
        return self._stream.finished >= self._point

    @property
    def is_done(self) -> bool:
        """As `done`: the name in cuda.core."""
        return self.done

    def query(self) -> bool:
        """As `done`: the name in CUDA."""
        return self.done

    def synchronize(self) -> None:
        """Let everything before the point happen."""
        self._stream.finished = max(self._stream.finished, self._point)

    def sync(self) -> None:
        """As `synchronize`: the name in cuda.core."""
        self.synchronize()

    def wait(self) -> None:
        """As `synchronize`: the name in OpenCL."""
        self.synchronize()


class Stream:
    """A queue of work, which is only counted: `finished` of `queued` pieces have happened."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.queued: int = 0
        self.finished: int = 0

    @property
    def ptr(self) -> int:
        """The number, for allocators that identify streams by an address."""
        return self.number

    @property
    def handle(self) -> int:
        """As `ptr`: the name in cuda.core."""
        return self.number

    @property
    def done(self) -> bool:
        """Whether all work has happened."""
        return self.finished >= self.queued

    def query(self) -> bool:
        """As `done`: the name in CUDA."""
        return self.done

    def record(self, event: object = None) -> Event:
        """An event after everything that has been queued."""
        del event
        return Event(self, self.queued)

    record_event = record

    def synchronize(self) -> None:
        """Let everything happen."""
        self.finished = self.queued

    sync = synchronize

    def __int__(self) -> int:
        return self.number

    def __repr__(self) -> str:
        return f"<stream {self.number}>"
