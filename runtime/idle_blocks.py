"""The blocks that a pool keeps, and which of them a request gets: KuiperLLama's rules, and nothing else.

For one thread at a time; `PoolAllocator` sees to that.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from .allocator import Event
    from .pointers import Pointer

__all__ = ["IdleBlocks", "PooledBlock"]


class PooledBlock:
    """A block of a pool's upstream.

    Parameters
    ----------
    whole : array
        As the upstream handed it out, and gets it back.
    size : int
        In bytes, as the upstream was asked.
    serial : int
        In order of allocation.

    Attributes
    ----------
    lent : int
        The size it was last lent as.
    make : callable
        Makes an array of that size over it.
    streams : list
        Where the one who has it queued work.
    events : list of Event
        What must be done before somebody else may have it.
    """

    __slots__ = ("events", "lent", "make", "serial", "size", "streams", "whole")

    make: Callable[[], Pointer]

    def __init__(self, whole: Pointer, size: int, serial: int) -> None:
        self.whole = whole
        self.size = size
        self.serial = serial
        self.lent = 0
        self.streams: list[Any] = []
        self.events: list[Event] = []

    @property
    def over(self) -> bool:
        """Whether all work on it is over, done or failed; never blocks."""
        try:
            self.events = [event for event in self.events if not event.done]
        except Exception:  # noqa: BLE001 -- what cannot be asked is not known to be over
            return False
        return not self.events

    def wait(self) -> bool:
        """Block until it is, if it can be waited for; whether it is."""
        for event in self.events:
            with suppress(Exception):  # work that failed is over too, and its owner's to hear of
                event.synchronize()
        return self.over


class IdleBlocks:
    """Small blocks in order of allocation, big ones in order of size.

    Parameters
    ----------
    small_limit : int
        In bytes, the largest block that is small.
    waste_limit : int
        In bytes; a big block that is longer than a request by this much or more is not for it.

    Attributes
    ----------
    small_bytes : int
        How many bytes there are in small blocks.
    """

    __slots__ = ("_big", "_small", "_small_limit", "_waste_limit", "small_bytes")

    def __init__(self, small_limit: int, waste_limit: int) -> None:
        self._small_limit = small_limit
        self._waste_limit = waste_limit
        self._small: list[tuple[int, int, PooledBlock]] = []  # by serial; with it and the size
        self._big: list[tuple[int, int, PooledBlock]] = []  # by size, and of one size by serial
        self.small_bytes = 0

    def add(self, block: PooledBlock) -> None:
        """Keep a block."""
        if block.size > self._small_limit:
            insort(self._big, (block.size, block.serial, block))
            return
        insort(self._small, (block.serial, block.size, block))
        self.small_bytes += block.size

    def take(self, size: int) -> PooledBlock | None:
        """The block for a request, which is kept no more; None if there is none.

        A small request gets the first small block that is large enough, a big one the smallest big block, if that
        is not too large.  Blocks with work in flight are passed over.
        """
        if size > self._small_limit:
            return self._best_fit(size)
        for entry in self._small:
            if entry[1] >= size and (not entry[2].events or entry[2].over):
                self._small.remove(entry)
                self.small_bytes -= entry[1]
                return entry[2]
        return None

    def _best_fit(self, size: int) -> PooledBlock | None:
        for position in range(bisect_left(self._big, (size,)), len(self._big)):
            held, _, block = self._big[position]
            if held - size >= self._waste_limit:
                break
            if block.over:
                del self._big[position]
                return block
        return None

    def small(self) -> list[PooledBlock]:
        """The small blocks."""
        return [block for _, _, block in self._small]

    def largest_first(self) -> list[PooledBlock]:
        """All blocks."""
        return [block for _, _, block in reversed(self._big)] + sorted(self.small(), key=lambda block: -block.size)

    def drop(self, gone: Container[PooledBlock]) -> None:
        """Forget some blocks."""
        self._small = [entry for entry in self._small if entry[2] not in gone]
        self._big = [entry for entry in self._big if entry[2] not in gone]
        self.small_bytes = sum(size for _, size, _ in self._small)

    @property
    def total_bytes(self) -> int:
        """How many bytes there are in all blocks."""
        return self.small_bytes + sum(size for size, _, _ in self._big)

    def __len__(self) -> int:
        return len(self._small) + len(self._big)
