"""Blocks in the wrong place."""

from __future__ import annotations

import time
from typing import Any

from ..registry import seeded_bug
from .pool import ALIGNMENT, Pool


@seeded_bug("A01-distinct-pointers", "glibc before 2.26: a double entry in the thread cache")
class PutBackTwice(Pool):
    """A freed block is in the list of holes twice."""

    def put_back(self, start: int, end: int) -> None:
        self.holes.insert(0, (start, end))
        self.holes.insert(0, (start, end))


@seeded_bug("A02-no-overlap", "an end that counts as inside: (size - 1) rounded up")
class OneByteShort(Pool):
    """Blocks of one byte more than a multiple of 64 occupy 64 bytes too few."""

    def room(self, size: int) -> int:
        return max(ALIGNMENT, -(-(size - 1) // ALIGNMENT) * ALIGNMENT)


@seeded_bug("A02-no-overlap", "an overwritten header: the wrong size at a merge")
class MergesOverGaps(Pool):
    """A hole swallows the block between it and the next hole, if that block is small."""

    def put_back(self, start: int, end: int) -> None:
        super().put_back(start, end)
        for index in range(len(self.holes) - 1):
            if self.holes[index + 1][0] - self.holes[index][1] == ALIGNMENT:
                self.holes[index : index + 2] = [(self.holes[index][0], self.holes[index + 1][1])]
                return


@seeded_bug("A03-aligned", "rmm#2397, rmm#2402: an adaptor that drops the alignment", alignment="64")
class DropsAlignment(Pool):
    """The requested alignment is not passed on."""

    def allocate(self, size: int, alignment: int = ALIGNMENT, stream: Any = None) -> int:
        del alignment
        return super().allocate(size, stream=stream)


@seeded_bug("A03-aligned", "KuiperLLama: 16 below 1024 bytes, 32 above", alignment="64")
class AlignsBySize(Pool):
    """Blocks of up to 32 bytes start at multiples of 32."""

    def room(self, size: int) -> int:
        half = ALIGNMENT // 2
        return half if size <= half else super().room(size)

    def place(self, room: int, alignment: int) -> int:
        return super().place(room, min(alignment, room) if room < ALIGNMENT else alignment)


@seeded_bug("A01-distinct-pointers", "a table that starts again when it is full, in use or not")
class WrapsAround(Pool):
    """With 32 blocks in use, the oldest is allocated again."""

    def place(self, room: int, alignment: int) -> int:
        return super().place(room, alignment) if len(self.sizes) < 32 else next(iter(self.sizes))


@seeded_bug("A19-stream-order", "KuiperLLama: a released buffer is reusable at once", stream_ordered="yes")
class IgnoresStreams(Pool):
    """A block with pending work is given to the next caller."""

    def deallocate(self, pointer: int, size: int, stream: Any = None) -> None:
        del stream
        super().deallocate(pointer, size)


@seeded_bug("A19-stream-order", "an event that is recorded on the stream of the caller", stream_ordered="yes")
class AsksTheWrongStream(Pool):
    """Whether a block is free is decided by the stream that requests it."""

    def settle(self, stream: Any) -> None:
        if stream is None or stream.done:
            for _, start, end in self.pending:
                self.put_back(start, end)
            self.pending = []


class _NoLock:
    """A lock that locks nothing."""

    def __enter__(self) -> None:
        """Do not wait."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


@seeded_bug("A20-threads", "KuiperLLama: no locks", threads=4, thread_safe="yes")
class NoLocks(Pool):
    """Two threads can take the same hole."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = _NoLock()

    def place(self, room: int, alignment: int) -> int:
        time.sleep(0)  # lets another thread run, which in C can happen at any instruction
        before = list(self.holes)
        address = super().place(room, alignment)
        after, self.holes = self.holes, before
        time.sleep(0)
        self.holes = after
        return address
