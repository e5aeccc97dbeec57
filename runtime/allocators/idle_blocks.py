"""The idle blocks of a pool: which block a request gets, by KuiperLLama's rules, and how blocks come back.

Only one thread at a time may use them, and `PoolAllocator` sees to that; `IdleBlocks.returned` is the exception.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from syncedmem.model.interface import Event, Pointer

    from .base import DeviceAllocator

__all__ = ["SMALL_LIMIT", "IdleBlocks", "PooledBlock"]


class _Never:
    """An event that never happens: a block that was given back to the upstream is never lent again."""

    done = False


_GONE: list[Any] = [_Never()]


class PooledBlock:
    """A block of a pool's upstream.

    Parameters
    ----------
    size : int
        In bytes, as the upstream was asked for it.
    serial : int
        Its number in the order of allocation.

    Attributes
    ----------
    whole : array or None
        The array that the upstream returned.  None before that, and after the block was given back.
    requested : int
        The size in bytes of the request for which the pool lent it last.
    make : callable
        Makes an array of that size over the block.
    streams : list
        The streams on which its owner queued work on the block.
    events : list of Event
        These must be done before the block is lent again.
    """

    __slots__ = ("events", "make", "requested", "serial", "size", "streams", "whole")

    make: Callable[[], Pointer]

    def __init__(self, size: int, serial: int) -> None:
        self.whole: Pointer = None
        self.size: int = size
        self.serial: int = serial
        self.requested: int = 0
        self.streams: list[Any] = []
        self.events: list[Event] = []

    @property
    def over(self) -> bool:
        """Whether all work on the block is over, done or failed; never waits."""
        try:
            self.events = [event for event in self.events if not event.done]
        except Exception:  # noqa: BLE001 -- if an event cannot be asked, the work may still run
            return False
        return not self.events

    def wait(self) -> bool:
        """Wait for all work on the block, if it can be waited for; returns whether the work is over."""
        for event in self.events:
            with suppress(Exception):  # failed work is over too, and its owner hears of the failure
                event.synchronize()
        return self.over


_Entry = tuple[int, int, PooledBlock]


SMALL_LIMIT = 1 << 20
"""In bytes, the size of the largest small block."""

_WASTE_LIMIT = 1 << 20
"""In bytes; a request does not get a big block that is longer than the request by this much or more."""


class IdleBlocks:
    """The idle blocks: small blocks in order of allocation, big blocks in order of size.

    Attributes
    ----------
    returned : deque of PooledBlock
        Blocks that were released and are not sorted in yet.  Adding one takes no lock, so a finaliser can do it at any
        time.
    small_bytes : int
        How many bytes the small blocks have, without those in `returned`.
    """

    __slots__ = ("_big", "_small", "returned", "small_bytes")

    def __init__(self) -> None:
        self._small: list[_Entry] = []  # (serial, size, block), in order of serial
        self._big: list[_Entry] = []  # (size, serial, block), in order of size, then of serial
        self.small_bytes: int = 0
        self.returned: deque[PooledBlock] = deque()

    def sort_in(self) -> None:
        """Sort in the blocks of `returned`."""
        while self.returned:
            self._add(self.returned.popleft())

    def _add(self, block: PooledBlock) -> None:
        small = block.size <= SMALL_LIMIT
        entry = (block.serial, block.size, block) if small else (block.size, block.serial, block)
        entries = self._small if small else self._big
        entries.insert(bisect_left(entries, entry[:2]), entry)
        self.small_bytes += block.size * small

    def take(self, size: int) -> PooledBlock | None:
        """Take the block for a request of `size` bytes out of the idle blocks; None if there is none.

        A small request gets the first small block that is large enough.  A big request gets the smallest big block that
        is large enough, unless it is too large.  Blocks with work in flight are skipped.
        """
        if size > SMALL_LIMIT:
            position = self._best_fit(size)
            return None if position < 0 else self._big.pop(position)[2]
        for position, (_, length, block) in enumerate(self._small):
            if length >= size and (not block.events or block.over):
                del self._small[position]
                self.small_bytes -= length
                return block
        return None

    def _best_fit(self, size: int) -> int:
        """The position of the big block for a request of `size` bytes; -1 if there is none."""
        for position in range(bisect_left(self._big, (size,)), len(self._big)):
            if self._big[position][0] - size >= _WASTE_LIMIT:
                break
            if self._big[position][2].over:
                return position
        return -1

    def small(self) -> list[PooledBlock]:
        """The small blocks, in order of allocation."""
        return [block for _, _, block in self._small]

    def largest_first(self) -> list[PooledBlock]:
        """All idle blocks: the big ones, then the small ones, each from the largest to the smallest."""
        small = sorted(self.small(), key=lambda block: -block.size)
        return [block for _, _, block in reversed(self._big)] + small

    def give_back(
        self, upstream: DeviceAllocator, blocks: Iterable[PooledBlock], keep: int = 0, *, wait: bool = True
    ) -> tuple[int, Exception | None]:
        """Give blocks back to the upstream, until at most `keep` bytes are idle.

        Parameters
        ----------
        upstream : DeviceAllocator
        blocks : iterable of PooledBlock
            Idle blocks, in the order in which they go.
        keep : int
            In bytes.
        wait : bool
            Whether to wait for work on a block; otherwise a block with work in flight stays idle.

        Returns
        -------
        int
            How many bytes were given back.
        Exception or None
            The reason of the first block that could not be given back, if there is one; that block stays idle.
        """
        idle, freed = self.total_bytes, 0
        failure: Exception | None = None
        try:
            for block in blocks:
                if idle - freed <= keep:
                    break
                if not block.over and not (wait and block.wait()):
                    if wait:
                        failure = failure or RuntimeError("work on a block cannot be waited for")
                    continue
                problem = _released(upstream, block)
                failure = failure or problem
                if problem is None:
                    freed += block.size
        finally:
            self._drop()
        return freed, failure

    def _drop(self) -> None:
        """Forget the blocks that were given back."""
        small = [entry for entry in self._small if entry[2].whole is not None]
        big = [entry for entry in self._big if entry[2].whole is not None]
        small_bytes = sum(size for _, size, _ in small)
        self._small, self._big, self.small_bytes = small, big, small_bytes

    @property
    def total_bytes(self) -> int:
        """How many bytes all idle blocks have, without those in `returned`."""
        return self.small_bytes + sum(size for size, _, _ in self._big)

    def everything(self) -> list[PooledBlock]:
        """All idle blocks, with those in `returned`."""
        return self.largest_first() + list(self.returned)


def _released(upstream: DeviceAllocator, block: PooledBlock) -> Exception | None:
    """Give a block back to the upstream; returns the upstream's error, or None."""
    whole, block.whole = block.whole, None  # after an interrupt it is better lost than released twice
    try:
        upstream.release(whole)
    except Exception as error:  # noqa: BLE001 -- the caller decides
        block.whole = whole
        return error
    block.events = _GONE
    return None
