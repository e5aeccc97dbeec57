"""Simulated streams, for allocators that order memory by streams, on any machine.

A `Stream` has work that has not happened yet.  An allocator may query it, wait for it, or record an event, under
any of the usual names.  Without such a wait, work happens only when the fuzzer lets it happen.
"""

from __future__ import annotations

__all__ = ["Stream", "StreamEvent"]


class _Point:
    """A point in a stream, under the names of CUDA, OpenCL and cuda.core."""

    stream: Stream
    queued: int
    after: dict[Stream, int]

    @property
    def done(self) -> bool:
        """Whether everything before the point has happened; never blocks."""
        return self.stream.finished >= self.queued

    is_done = done

    def query(self) -> bool:
        """As `done`."""
        return self.done

    def synchronize(self) -> None:
        """Let everything before the point happen, also what other streams do before it."""
        for stream, queued in {**self.after, self.stream: self.queued}.items():
            stream.finished = max(stream.finished, queued)

    def wait(self) -> None:
        """As `synchronize`."""
        self.synchronize()

    sync = wait


class StreamEvent(_Point):
    """A point in a stream."""

    def __init__(self, stream: Stream, queued: int, after: dict[Stream, int]) -> None:
        self.stream: Stream = stream
        self.queued: int = queued
        self.after: dict[Stream, int] = after


class Stream(_Point):
    """A queue of work, which is only counted: `finished` of `queued` pieces have happened; `number` is from 1.

    Its work comes after that of other streams for whose events it waits: `after` has so many of their pieces.
    """

    def __init__(self, number: int) -> None:
        self.stream: Stream = self
        self.number: int = number
        self.ptr: int = number
        self.handle: int = number
        self.queued: int = 0
        self.finished: int = 0
        self.after: dict[Stream, int] = {}

    def record(self, event: object = None) -> StreamEvent:
        """An event after everything that has been queued."""
        del event
        return StreamEvent(self, self.queued, dict(self.after))

    record_event = record

    def wait_event(self, event: StreamEvent) -> None:
        """Let later work of this stream come after an event of another stream; nobody waits now."""
        for stream, queued in {**event.after, event.stream: event.queued}.items():
            self.after[stream] = max(self.after.get(stream, 0), queued)

    def is_after(self, stream: Stream, queued: int) -> bool:
        """Whether later work of this stream comes after so many pieces of work of another one."""
        return stream is self or self.after.get(stream, 0) >= queued

    def __int__(self) -> int:
        return self.number

    def __repr__(self) -> str:
        return f"<stream {self.number}>"
