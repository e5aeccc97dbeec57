"""The blocks that a pool keeps: which of them a request gets, by KuiperLLama's rules, and how they go back.

For one thread at a time, except `IdleBlocks.returned`; `PoolAllocator` sees to that.  Each change is the last step of a
call, as ``handover`` explains, so that an interrupt never leaves a block in two places or in none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .failures import attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from syncedmem.model.interface import Event, Pointer

    from .base import DeviceAllocator

__all__ = ["IdleBlocks", "PooledBlock"]


class _Never:
    """What has to be done before a block that was given back is lent again."""

    done = False


_GONE: list[Any] = [_Never()]


class PooledBlock:
    """A block of a pool's upstream.

    Parameters
    ----------
    size : int
        In bytes, as the upstream is asked.
    serial : int
        In order of allocation.

    Attributes
    ----------
    whole : array or None
        As the upstream handed it out; None before, and when it was given back.
    kept : bool
        Whether it is sorted in among the idle blocks.
    lent : int
        The size it was last lent as.
    make : callable
        Makes an array of that size over it.
    streams : list
        Where the one who has it queued work.
    events : list of Event
        What must be done before somebody else may have it.
    """

    __slots__ = ("events", "kept", "lent", "make", "serial", "size", "streams", "whole")

    make: Callable[[], Pointer]

    def __init__(self, size: int, serial: int) -> None:
        self.whole: Pointer = None
        self.kept: bool = False
        self.size: int = size
        self.serial: int = serial
        self.lent: int = 0
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


_Entry = tuple[int, int, PooledBlock]


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
    returned : deque of PooledBlock
        Blocks on their way here.  Adding one takes no lock, so that a finaliser can do it at any time.
    small_bytes : int
        How many bytes there are in small blocks, without those on their way.
    """

    __slots__ = ("_big", "_small", "_waste_limit", "returned", "small_bytes", "small_limit")

    def __init__(self, small_limit: int, waste_limit: int) -> None:
        self.small_limit: int = small_limit
        self._waste_limit = waste_limit
        self._small: list[_Entry] = []  # by serial; with it and the size
        self._big: list[_Entry] = []  # by size, and of one size by serial
        self.small_bytes: int = 0
        self.returned: deque[PooledBlock] = deque()

    def sort_in(self) -> None:
        """Sort in what is on its way here."""
        while self.returned:
            block = self.returned[0]
            if not block.kept:  # else an interrupt came before the next line was done
                self._add(block)
            del self.returned[0]

    def _add(self, block: PooledBlock) -> None:
        small = block.size <= self.small_limit
        entry = (block.serial, block.size, block) if small else (block.size, block.serial, block)
        entries = self._small if small else self._big
        small_bytes = self.small_bytes + block.size * small
        position = bisect_left(entries, entry[:2])
        entries[position:position] = (entry,)
        self.small_bytes, block.kept = small_bytes, True

    def __getitem__(self, size: int) -> PooledBlock | None:
        """Take the block for a request, which is kept no more; None if there is none.

        A small request gets the first small block that is large enough, a big one the smallest big block, if that
        is not too large.  Blocks with work in flight are passed over.

        It is written as a subscript, ``idle[size]``, because an interrupt can come after a call, and not after that.
        """
        if size > self.small_limit:
            position = self._best_fit(size)
            if position < 0:
                return None
            block = self._big[position][2]
            del self._big[position]
            block.kept = False
            return block
        for entry in self._small:
            if entry[1] >= size and (not entry[2].events or entry[2].over):
                block, small_bytes = entry[2], self.small_bytes - entry[1]
                position = self._small.index(entry)
                del self._small[position]
                self.small_bytes, block.kept = small_bytes, False
                return block
        return None

    def _best_fit(self, size: int) -> int:
        """Which big block a request gets; -1 for none."""
        for position in range(bisect_left(self._big, (size,)), len(self._big)):
            if self._big[position][0] - size >= self._waste_limit:
                break
            if self._big[position][2].over:
                return position
        return -1

    def small(self) -> list[PooledBlock]:
        """The small blocks."""
        return [block for _, _, block in self._small]

    def largest_first(self) -> list[PooledBlock]:
        """All blocks."""
        small = sorted(self.small(), key=lambda block: -block.size)
        return [block for _, _, block in reversed(self._big)] + small

    def give_back(
        self, upstream: DeviceAllocator, blocks: Iterable[PooledBlock], keep: int = 0, *, wait: bool = True
    ) -> tuple[int, Exception | None]:
        """Give idle blocks back to the upstream, until at most `keep` bytes are idle.

        Returns
        -------
        int
            How many bytes went.
        Exception or None
            Why a block did not go, if one did not; it stays idle.
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
            self._drop()
        except BaseException:
            self._drop()
            raise
        return freed, failure

    def _drop(self) -> None:
        """Forget the blocks that were given back."""
        small = [entry for entry in self._small if entry[2].whole is not None]
        big = [entry for entry in self._big if entry[2].whole is not None]
        small_bytes = sum(size for _, size, _ in small)
        self._small, self._big, self.small_bytes = small, big, small_bytes

    def empty(self, upstream: DeviceAllocator) -> None:
        """Give everything back, as far as that can be done."""
        self.sort_in()
        self.give_back(upstream, self.largest_first())

    @property
    def total_bytes(self) -> int:
        """How many bytes there are in all blocks, without those on their way."""
        return self.small_bytes + sum(size for size, _, _ in self._big)

    def everything(self) -> list[PooledBlock]:
        """All blocks, with those on their way."""
        return self.largest_first() + [block for block in tuple(self.returned) if not block.kept]


def _released(upstream: DeviceAllocator, block: PooledBlock) -> Exception | None:
    """Give a block back; why the upstream does not take it, if it does not."""
    releasing = map(upstream.release, (block.whole,))
    try:
        (_,) = releasing
    except Exception as error:  # noqa: BLE001 -- the caller decides
        return error
    except BaseException:
        attempt(upstream.release, block.whole)  # somebody else's upstream may have done it; now it is done
        block.whole, block.events = None, _GONE
        raise
    block.whole, block.events = None, _GONE
    return None
