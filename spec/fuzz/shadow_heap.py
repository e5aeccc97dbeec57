"""The ledger: which addresses are in use, and what is written there.

It knows nothing of the allocator but the addresses it gave.  Starts are kept sorted, so that the two neighbours
of a new block are one bisection away, and they are the only ones it can overlap first.
"""

from __future__ import annotations

import random
import threading
from bisect import bisect_left, bisect_right
from typing import Any

from .finding import Wrong

__all__ = ["Block", "Intervals", "Pattern", "SharedIntervals"]


class Block:
    """A block that is in use, as the ledger remembers it.

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
        Wrong
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


def _conflict(block: Block, other: Block) -> Wrong:
    if block.address == other.address:
        return Wrong("A01-distinct-pointers", f"{block} is where {other} still is")
    return Wrong("A02-no-overlap", f"{block} overlaps {other}")


TILE = 1 << 16
"""How many bytes a pattern has before it repeats."""


class Pattern:
    """Bytes that are different for every key: a window into one run of random bytes, repeated."""

    def __init__(self, seed: int = 0) -> None:
        self.bytes = random.Random(seed).randbytes(2 * TILE)  # noqa: S311 -- a pattern, no secret

    def of(self, key: int, size: int) -> bytes:
        """What a block with that key and size holds."""
        tile = self.bytes[key : key + TILE]
        return tile[:size] if size <= TILE else (tile * (size // TILE + 1))[:size]


def first_difference(expected: bytes, found: bytes) -> int:
    """Where two rows of bytes differ first."""
    return next((at for at, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), len(found))
