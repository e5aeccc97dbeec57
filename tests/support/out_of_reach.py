"""Wrong allocators that the fuzzer does not find by default, for docs/fuzzing-proof.md: it says what they show.

Each is run like a real allocator.  One that is found some day belongs to the seeded bugs.
"""

from __future__ import annotations

import ctypes
import time

from mutants.allocator import Pool

__all__ = ["OUT_OF_REACH"]


class TiresAtFiftyMillion(Pool):
    """The 50,000,000th allocation of a process is one byte short: no process of a run gets so old."""

    taken = 0

    def room(self, size: int) -> int:
        """The bytes of a block."""
        TiresAtFiftyMillion.taken += 1
        return super().room(size if TiresAtFiftyMillion.taken < 50_000_000 else max(size - 1, 1))


class OneExactSize(Pool):
    """Blocks of exactly 1,234,567 bytes are cut in half: only sizes near powers of two are all tried."""

    def room(self, size: int) -> int:
        """The bytes of a block."""
        return super().room(size // 2 if size == 1_234_567 else size)


class ThreeSizesInARow(Pool):
    """After requests of 333, 777 and 555 bytes, one after another, blocks are cut in half."""

    last: tuple[int, ...] = ()
    broken = False

    def room(self, size: int) -> int:
        """The bytes of a block."""
        self.last = (*self.last[-2:], size)
        self.broken |= self.last == (333, 777, 555)
        return super().room(size // 2 if self.broken and size else size)


class WrongAfterTwoMinutes(Pool):
    """Blocks are cut in half when the process is two minutes old: a default run ends before."""

    born = time.monotonic()

    def room(self, size: int) -> int:
        """The bytes of a block."""
        return super().room(size // 2 if time.monotonic() - self.born > 120 else size)


class ReadsFreedMemory(Pool):
    """Each free reads the block that was freed before it, which no contents show: `--sanitizer address`, for C."""

    freed = 0

    def put_back(self, start: int, end: int) -> None:
        """Make a hole."""
        if self.freed:
            ctypes.string_at(self.freed, 1)
        self.freed = start
        super().put_back(start, end)


OUT_OF_REACH = {
    it.__name__: it
    for it in (TiresAtFiftyMillion, OneExactSize, ThreeSizesInARow, WrongAfterTwoMinutes, ReadsFreedMemory)
}
"""All of them, by name."""
