"""The idle blocks of a pool: which block a request gets, by KuiperLLama's rules, and how blocks come back.

Only one thread at a time may use them, and `PoolAllocator` sees to that; `IdleBlocks.returned` is the exception.
"""

from __future__ import annotations

import sys
import warnings
from bisect import bisect_left
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from syncedmem.model.errors import said

from .failures import is_refused, where_of
from .late_writes import fill_with_poison, first_difference, poison_of, read_bytes, references_to, tell_at_exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from syncedmem.model.interface import Event, Pointer

    from .base import DeviceAllocator
    from .late_writes import LateWrites

__all__ = ["SMALL_LIMIT", "IdleBlocks", "PooledBlock"]


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
        The array that the upstream returned; None before that.
    requested : int
        The size in bytes of the request for which the pool lent it last.
    make : callable
        Makes an array of that size over the block.
    streams : list
        The streams on which its owner queued work on the block.
    events : dict of Event
        By their id: these must be done before the block is lent again.
    late : LateWrites or None
        What its last owner has left to tell of writes that come after its release.
    references : int
        How many references there are to what its bytes belong to while no array of an owner is left.
    """

    __slots__ = ("events", "late", "make", "references", "requested", "serial", "size", "streams", "whole")

    make: Callable[[], Pointer]

    def __init__(self, size: int, serial: int) -> None:
        self.whole: Pointer = None
        self.size: int = size
        self.serial: int = serial
        self.requested: int = 0
        self.streams: list[Any] = []
        self.events: dict[int, Event] = {}
        self.late: LateWrites | None = None
        self.references: int = 0

    @property
    def over(self) -> bool:
        """Whether all work on the block is over, done or failed; never waits."""
        self._drop_events()
        return not self.events

    def keep_until(self, event: Event) -> None:
        """Do not lend the block before an event."""
        self._drop_events()
        self.events[id(event)] = event

    def _drop_events(self) -> None:
        """Drop the events that are over, one by one, because another thread may add some meanwhile."""
        for key, event in list(self.events.items()):
            try:
                done = event.done
            except Exception:  # noqa: BLE001 -- if an event cannot be asked, the work may still run
                done = False
            if done:
                self.events.pop(key, None)

    def wait(self) -> bool:
        """Wait for all work on the block, if it can be waited for; returns whether the work is over."""
        for event in list(self.events.values()):
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

    Parameters
    ----------
    upstream : DeviceAllocator
        To which blocks are given back.

    Attributes
    ----------
    returned : deque of PooledBlock
        Blocks that were released and are not sorted in yet.  Adding one takes no lock, so a finaliser can do it at any
        time.
    small_bytes : int
        How many bytes the small blocks have, without those in `returned`.
    found : deque of (LateWrites, int)
        The late writes that nobody was told of yet, and the first byte of each.
    """

    __slots__ = ("__weakref__", "_big", "_small", "_upstream", "found", "returned", "small_bytes")

    def __init__(self, upstream: DeviceAllocator) -> None:
        self._upstream = upstream
        self._small: list[_Entry] = []  # (serial, size, block), in order of serial
        self._big: list[_Entry] = []  # (size, serial, block), in order of size, then of serial
        self.small_bytes: int = 0
        self.returned: deque[PooledBlock] = deque()
        self.found: deque[tuple[LateWrites, int]] = deque()

    # No call comes between the two changes of a list, here and below: an interrupt finds a block in one place, never in
    # two and never in none.

    def sort_in(self) -> None:
        """Sort in the blocks of `returned`."""
        returned = self.returned
        while returned:
            entries, entry = self._place(returned[0])
            position = bisect_left(entries, entry[:2])
            entries[position:position] = (entry,)
            del returned[0]
            self.small_bytes += entry[2].size * (entries is self._small)

    def _place(self, block: PooledBlock) -> tuple[list[_Entry], _Entry]:
        """The list in which a block is, or will be, and its entry there."""
        if block.size <= SMALL_LIMIT:
            return self._small, (block.serial, block.size, block)
        return self._big, (block.size, block.serial, block)

    def take(self, size: int) -> PooledBlock | None:
        """Take the block for a request of `size` bytes out of the idle blocks; None if there is none.

        A small request gets the first small block that is large enough.  A big request gets the smallest big block that
        is large enough, unless it is too large.  Blocks with work in flight are skipped, and those over which the array
        of a checked owner is still in use.
        """
        if size > SMALL_LIMIT:
            position = self._best_fit(size)
            if position < 0:
                return None
            block = self._big[position][2]
            del self._big[position]
            return block
        for position, (_, length, block) in enumerate(self._small):
            if length >= size and (not block.events or block.over) and (block.late is None or self._is_left(block)):
                del self._small[position]
                self.small_bytes -= length
                return block
        return None

    def _best_fit(self, size: int) -> int:
        """The position of the big block for a request of `size` bytes; -1 if there is none."""
        for position in range(bisect_left(self._big, (size,)), len(self._big)):
            if self._big[position][0] - size >= _WASTE_LIMIT:
                break
            block = self._big[position][2]
            if block.over and (block.late is None or self._is_left(block)):
                return position
        return -1

    # --- late writes, in checked mode

    def watch(self, block: PooledBlock, late: LateWrites) -> None:
        """Poison a block that has become idle, unless work in flight may use it; then late writes into it are told."""
        if block.events or not fill_with_poison(self._upstream, block.whole[: late.byte_size]):
            return
        del block.make  # it has an array over the block too
        block.requested = 0
        tell_at_exit(self)
        block.late = late

    def _is_left(self, block: PooledBlock) -> bool:
        """Whether no array over a block is in use any more; a write that came meanwhile is found."""
        self._look(block)
        return references_to(self._upstream, block.whole) <= block.references

    def _look(self, block: PooledBlock) -> None:
        """Find a late write, once: then the block is poisoned again."""
        late: Any = block.late
        part = block.whole[: late.byte_size]
        bytes_now = read_bytes(self._upstream, part)
        position = None if bytes_now is None else first_difference(poison_of(late.byte_size), bytes_now)
        if position is not None:
            self.found += ((late, position),)
            fill_with_poison(self._upstream, part)

    def warn(self, why: str) -> None:
        """Warn of late writes when no call is left that could raise."""
        for block in self.everything():
            if block.late is not None:
                self._look(block)
        while self.found:
            late, position = self.found.popleft()
            warnings.warn(str(late.error(why, position)), RuntimeWarning, stacklevel=2)

    # --- giving back

    def small(self) -> list[PooledBlock]:
        """The small blocks, in order of allocation."""
        return [block for _, _, block in self._small]

    def largest_first(self) -> list[PooledBlock]:
        """All idle blocks: the big ones, then the small ones, each from the largest to the smallest."""
        small = sorted(self.small(), key=lambda block: -block.size)
        return [block for _, _, block in reversed(self._big)] + small

    # Errors are in a list, which the caller empties.  A variable with an error would make a cycle with its traceback,
    # which has the frames from here on, and the blocks would wait for the garbage collector.

    def give_back(
        self,
        blocks: Iterable[PooledBlock],
        keep: int = 0,
        *,
        wait: bool = True,
        failures: list[Exception] | None = None,
    ) -> int:
        """Give blocks back to the upstream, until at most `keep` bytes are idle.

        Parameters
        ----------
        blocks : iterable of PooledBlock
            Idle blocks, in the order in which they go.
        keep : int
            In bytes.
        wait : bool
            Whether to wait for work on a block; otherwise a block with work in flight stays idle.
        failures : list of Exception or None
            Gets the error of each block that was not given back, which stays idle, or was gone already.

        Returns
        -------
        int
            How many bytes were given back.
        """
        idle, freed = self.total_bytes, 0
        for block in blocks:
            if idle - freed <= keep:
                break
            if not block.over and not (wait and block.wait()):
                if wait and failures is not None:
                    failures.append(RuntimeError("work on a block cannot be waited for"))
            elif self._released(block, failures):
                freed += block.size
        return freed

    def _released(self, block: PooledBlock, failures: list[Exception] | None) -> bool:
        """Give a block back to the upstream, unless that raises an error; returns whether it went.

        It is out of the idle blocks first: an interrupt finds it gone rather than released and still here.
        """
        if block.late is not None:
            self._look(block)
        entries, entry = self._place(block)
        position, small_bytes = bisect_left(entries, entry[:2]), block.size * (entries is self._small)
        del entries[position]
        self.small_bytes -= small_bytes
        try:
            self._upstream.release(block.whole)
        except BaseException as error:
            entries[position:position] = (entry,)  # first, because asking may fail
            self.small_bytes += small_bytes
            gone = not is_refused(self._upstream, block.whole, error)
            if gone:
                del entries[position]
                self.small_bytes -= small_bytes
            if not isinstance(error, Exception) or (gone and failures is None):
                raise
            if failures is not None:
                failures.append(error)
            return gone
        return True

    # The pool gives everything back when it is gone.  If an interrupt kept it from doing so, this does it.
    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "returned") and not is_over():
            self.sort_in()
            failures: list[Exception] = []
            self.give_back(self.largest_first(), failures=failures)
            if failures:
                text = f"{self.total_bytes} bytes leaked on {where_of(self._upstream)}: {said(failures[0])}"
                failures.clear()
                warnings.warn(text, ResourceWarning, stacklevel=2)

    @property
    def total_bytes(self) -> int:
        """How many bytes all idle blocks have, without those in `returned`."""
        return self.small_bytes + sum(size for size, _, _ in self._big)

    def everything(self) -> list[PooledBlock]:
        """All idle blocks, with those in `returned`."""
        return self.largest_first() + list(self.returned)
