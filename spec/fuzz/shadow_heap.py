"""The shadow heap: the blocks that are in use, where they are, and how many bytes they have together.

It knows nothing of the allocator but what it handed out.  Starts are kept sorted, so that the two neighbours of a new
block are one bisection away, and they are the only ones it can overlap first.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from typing import Any

from ..engine.finding import Violation

__all__ = ["Block", "Intervals", "ShadowHeap", "SharedIntervals"]


class Block:
    """A block that is in use, as the shadow heap remembers it.

    Attributes
    ----------
    number : int
        Its name in the program.
    handle : object
        What the target returned.
    address : int
        Where it starts, or 0 where nobody says.
    size : int
        In bytes, as asked for.
    key : int
        What its bytes are computed from.
    stream : int
        The stream it was allocated on.
    """

    __slots__ = ("address", "handle", "key", "number", "size", "stream")

    def __init__(self, number: int, handle: Any, address: int, size: int, key: int, stream: int) -> None:  # noqa: PLR0913 -- a record; by keyword it takes twice as long
        self.number = number
        self.handle = handle
        self.address = address
        self.size = size
        self.key = key
        self.stream = stream

    def __str__(self) -> str:
        place = f" at {self.address:#x}" if self.address else ""
        return f"block {self.number} of {self.size} bytes{place}"


class Intervals:
    """The address ranges in use; no two of them share a byte."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: dict[int, Block] = {}

    def add(self, block: Block) -> None:
        """Note a block of at least one byte.

        Raises
        ------
        Violation
            If another block is there already; nothing is noted.
        """
        start, starts, blocks = block.address, self._starts, self._blocks
        index = bisect_right(starts, start)
        if index:
            before = blocks[starts[index - 1]]
            if before.address + before.size > start:
                raise _conflict(block, before)
        if index < len(starts) and starts[index] < start + block.size:
            raise _conflict(block, blocks[starts[index]])
        starts.insert(index, start)
        blocks[start] = block

    def remove(self, block: Block) -> None:
        """Forget a block."""
        start = block.address
        del self._starts[bisect_left(self._starts, start)]
        del self._blocks[start]

    def overlapped(self, block: Block) -> bool:
        """Whether a range is in use, or a part of it."""
        index = bisect_left(self._starts, block.address + block.size)
        if not index or not block.address:
            return False
        last = self._blocks[self._starts[index - 1]]
        return last.address + last.size > block.address

    def at(self, address: int) -> Block | None:
        """The block with a byte at an address, if there is one."""
        index = bisect_right(self._starts, address)
        if not index:
            return None
        block = self._blocks[self._starts[index - 1]]
        return block if block.address + block.size > address else None


class SharedIntervals(Intervals):
    """Intervals of several threads."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def add(self, block: Block) -> None:
        """Note a block, alone."""
        with self._lock:
            super().add(block)

    def remove(self, block: Block) -> None:
        """Forget a block, alone."""
        with self._lock:
            super().remove(block)


def _conflict(block: Block, other: Block) -> Violation:
    if block.address == other.address:
        return Violation("A01-distinct-pointers", f"{block} is where {other} still is")
    return Violation("A02-no-overlap", f"{block} overlaps {other}")


class ShadowHeap:
    """What one driver has in use.

    Parameters
    ----------
    intervals : Intervals or None
        Shared ones, where several drivers have one target.

    Attributes
    ----------
    blocks : dict of int to Block
        By number, the oldest first; also those of no bytes.
    bytes : int
        Of all blocks.
    peak_bytes, peak_count : int
        The most that there were at once.
    placed : int
        How many blocks were at an address that is known, and at no other block's.
    alone : bool
        Whether nobody else has memory of the target.
    """

    def __init__(self, intervals: Intervals | None = None) -> None:
        self.blocks: dict[int, Block] = {}
        self.bytes: int = 0
        self.peak_bytes = self.peak_count = self.placed = 0
        self.alone = intervals is None
        self._intervals = Intervals() if intervals is None else intervals

    def add(self, block: Block) -> None:
        """Note a block of at least one byte.

        Raises
        ------
        Violation
            If it is where another one is.
        """
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
        """Note a block of no bytes."""
        self.blocks[block.number] = block

    def remove(self, block: Block) -> None:
        """Forget a block."""
        del self.blocks[block.number]
        if size := block.size:
            self.bytes -= size
            if block.address:
                self._intervals.remove(block)

    def vacate(self, block: Block) -> None:
        """Leave the address of a block to others; the block stays."""
        if block.address:
            self._intervals.remove(block)

    def occupy(self, block: Block) -> None:
        """Take the address of a block that was vacated again."""
        if block.address:
            self._intervals.add(block)

    def drop(self, block: Block) -> None:
        """Forget a block that was vacated."""
        del self.blocks[block.number]
        self.bytes -= block.size

    def at(self, address: int) -> Block | None:
        """The block with a byte at an address, whoever has it."""
        return self._intervals.at(address) if address else None

    def in_use(self, block: Block) -> bool:
        """Whether the memory of a block that was given back belongs to somebody again."""
        return block.number in self.blocks or self._intervals.overlapped(block)
