"""`StatisticsAllocator`: how much is allocated now, how much was at most, and how much in total."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syncedmem.model import NoScopeError

from .adaptor import Adaptor
from .failures import new_block
from .pointers import LiveBlocks

if TYPE_CHECKING:
    from collections.abc import Generator

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["Statistics", "StatisticsAllocator"]


@dataclass(slots=True)
class Statistics:
    """What was allocated since a scope was entered; requests for zero bytes do not count.

    Attributes
    ----------
    current_bytes, current_count : int
        The bytes and the blocks that are allocated now.  They are negative if more was released in the scope than
        allocated in it.
    peak_bytes, peak_count : int
        The most that was allocated at once.
    total_bytes, total_count : int
        Everything that was allocated, whether released or not.
    """

    current_bytes: int = 0
    current_count: int = 0
    peak_bytes: int = 0
    peak_count: int = 0
    total_bytes: int = 0
    total_count: int = 0


class StatisticsAllocator(Adaptor):
    """Counts blocks and bytes, in nested scopes; RMM's ``StatisticsResourceAdaptor``.

    A scope starts at zero and counts what all threads do.  When you leave a scope, its counts are added to those of the
    scope around it.
    """

    def __init__(self, upstream: DeviceAllocator) -> None:
        super().__init__(upstream)
        self._scopes: list[Statistics] = []  # the outer scopes; the innermost one is `_counted`
        self._counted = Statistics()
        self._live = LiveBlocks(self.name)

    def allocate(self, byte_size: int) -> Pointer | None:
        ptr, key, size = new_block(self._upstream, byte_size)
        if ptr is None:
            return None
        # There is no call from here on, so CPython neither switches threads between these lines nor delivers a signal.
        # A lock would take longer than all of them, and max() longer than a comparison.
        self._live.blocks[key] = ptr, size
        counted = self._counted
        counted.total_count += 1
        counted.total_bytes += size
        count = counted.current_count = counted.current_count + 1
        held = counted.current_bytes = counted.current_bytes + size
        if count > counted.peak_count:  # noqa: PLR1730 -- as said above
            counted.peak_count = count
        if held > counted.peak_bytes:  # noqa: PLR1730 -- as said above
            counted.peak_bytes = held
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        if ptr is None:
            return
        size = self._live.release(ptr, self._upstream, gone=self._count_out)
        counted = self._counted  # as `_count_out`, but without a call
        counted.current_count -= 1
        counted.current_bytes -= size

    def _count_out(self, size: int) -> None:
        counted = self._counted
        counted.current_count -= 1
        counted.current_bytes -= size

    def _is_live(self, ptr: Pointer) -> bool | None:
        return ptr in self._live

    @property
    def statistics(self) -> Statistics:
        """What the innermost scope has counted so far; a copy."""
        return replace(self._counted)

    def push_counters(self) -> Statistics:
        """Enter a scope; returns a copy of what the scope around it has counted."""
        self._scopes.append(self._counted)
        self._counted = Statistics()
        return replace(self._scopes[-1])

    def pop_counters(self) -> Statistics:
        """Leave the innermost scope; returns what it counted.

        Raises
        ------
        NoScopeError
            If no scope was entered.
        """
        if not self._scopes:
            raise NoScopeError("pop_counters")
        inner, self._counted = self._counted, self._scopes.pop()
        _enclose(self._counted, inner)
        return inner

    @contextmanager
    def scope(self) -> Generator[Statistics]:
        """A scope as a ``with`` block.  The bound object counts inside the block, and keeps its counts after it."""
        self.push_counters()
        try:
            yield self._counted
        finally:
            self.pop_counters()


def _enclose(outer: Statistics, inner: Statistics) -> None:
    """Add the counts of an inner scope to those of the scope around it; without calls, for the reason given above."""
    peak_bytes = outer.current_bytes + inner.peak_bytes
    if peak_bytes > outer.peak_bytes:  # noqa: PLR1730 -- as said above
        outer.peak_bytes = peak_bytes
    peak_count = outer.current_count + inner.peak_count
    if peak_count > outer.peak_count:  # noqa: PLR1730 -- as said above
        outer.peak_count = peak_count
    outer.current_bytes += inner.current_bytes
    outer.current_count += inner.current_count
    outer.total_bytes += inner.total_bytes
    outer.total_count += inner.total_count
