"""The shadow heap: the live blocks, their addresses, and their total size.

It knows only the blocks that the allocator returned.  Start addresses are sorted, so one bisection finds the two
neighbours of a new block.  If the new block overlaps any block, it overlaps one of these.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from typing import Any

from ..engine.violation import Violation

__all__ = ["Block", "Intervals", "ShadowHeap"]


class Block:
    """A live block, as the shadow heap records it."""

    __slots__ = ("address", "alignment", "extent", "handle", "key", "number", "size", "stream")

    def __init__(self, number: int, handle: Any, address: int, size: int, key: int, stream: int) -> None:  # noqa: PLR0913 -- a record; by keyword it takes twice as long
        self.number: int = number
        self.handle: Any = handle
        self.address: int = address
        self.size: int = size
        self.extent: int = size  # the bytes that are written: these, or all that are usable
        self.key: int = key  # of its contents
        self.stream: int = stream
        self.alignment: int = 0  # that was asked for, beyond what every block has

    def __str__(self) -> str:
        place = f" at {self.address:#x}" if self.address else ""
        name = f"block {self.number}" if self.number >= 0 else "a block"  # those inside of a step have no number
        return f"{name} of {self.size} bytes{place}"


class Intervals:
    """The address ranges in use; no two of them share a byte.

    Several threads may use them.  Whoever only looks takes the lock too: after a change a position in the list is that
    of another block.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: dict[int, Block] = {}
        self._lock = threading.Lock()

    def add(self, block: Block) -> None:
        """Note a block of at least one byte."""
        start, starts, blocks = block.address, self._starts, self._blocks
        with self._lock:
            index = bisect_right(starts, start)
            if index:
                before = blocks[starts[index - 1]]
                if before.address + before.extent > start:
                    raise _conflict(block, before)
            if index < len(starts) and starts[index] < start + block.extent:
                raise _conflict(block, blocks[starts[index]])
            starts.insert(index, start)
            blocks[start] = block

    def remove(self, block: Block) -> None:
        """Forget a block."""
        start = block.address
        with self._lock:
            del self._starts[bisect_left(self._starts, start)]
            del self._blocks[start]

    def overlapped(self, block: Block) -> bool:
        """Whether a live block has bytes of this range."""
        with self._lock:
            last = self._before(bisect_left(self._starts, block.address + block.extent))
            return bool(block.address) and last is not None and last.address + last.extent > block.address

    def at(self, address: int) -> Block | None:
        """The block with a byte at an address, if there is one."""
        with self._lock:
            block = self._before(bisect_right(self._starts, address))
            return block if block is not None and block.address + block.extent > address else None

    def _before(self, index: int) -> Block | None:
        return self._blocks[self._starts[index - 1]] if index else None


def _conflict(block: Block, other: Block) -> Violation:
    if block.address == other.address:
        return Violation("A01-distinct-pointers", f"{block} is where {other} still is")
    return Violation("A02-no-overlap", f"{block} overlaps {other}")


class ShadowHeap:
    """The live blocks of one driver."""

    def __init__(self, intervals: Intervals | None = None) -> None:
        self.blocks: dict[int, Block] = {}
        self.bytes: int = 0
        self.peak_bytes: int = 0
        self.peak_count: int = 0
        self.placed: int = 0  # blocks with a known address that overlapped no other
        self.alone: bool = intervals is None
        self._intervals = Intervals() if intervals is None else intervals

    def add(self, block: Block) -> None:
        """Note a block of at least one byte."""
        if block.address:
            self._intervals.add(block)
            self.placed += 1
        self.blocks[block.number] = block
        self.bytes = total = self.bytes + block.size
        if total > self.peak_bytes:  # noqa: PLR1730 -- max() would take longer than all the rest here
            self.peak_bytes = total
        if len(self.blocks) > self.peak_count:  # noqa: PLR1730 -- as above
            self.peak_count = len(self.blocks)

    def add_nothing(self, block: Block) -> None:
        """Record a block of zero bytes."""
        self.blocks[block.number] = block

    def pass_by(self, size: int) -> None:
        """Note that a block of this size was allocated and freed at once, which may be a peak."""
        self.peak_bytes = max(self.peak_bytes, self.bytes + size)
        self.peak_count = max(self.peak_count, len(self.blocks) + 1)

    def remove(self, block: Block) -> None:
        """Forget a block."""
        del self.blocks[block.number]
        if size := block.size:
            self.bytes -= size
            if block.address:
                self._intervals.remove(block)

    def extend(self, block: Block, extent: int) -> None:
        """Note that more bytes belong to a block."""
        self.remove(block)
        block.extent = extent
        self.add(block)

    def at(self, address: int) -> Block | None:
        """The block with a byte at this address, of any driver."""
        return self._intervals.at(address) if address else None

    def in_use(self, block: Block) -> bool:
        """Whether the memory of a freed block belongs to a live block again."""
        return block.number in self.blocks or self._intervals.overlapped(block)
