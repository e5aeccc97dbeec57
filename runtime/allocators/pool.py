"""`PoolAllocator`: keeps what is released for the next one who asks.

The rules of who gets what are KuiperLLama's (kuiper/source/base/alloc_cu.cpp), over any allocator and without the
errata of that file: see docs/allocators.md.  They are in ``idle_blocks``; here it is about when a block may be
handed out at all, and when it goes back.

A block is *lent* while somebody has it, and *idle* from its release on.  An idle block may still be in use by work
that its last owner queued on a stream.  The pool knows of that work, because copies and fills go through it, and of
other work by `PoolAllocator.hold`.  Who gets a block says nothing of the stream it will be used on, or whether the
host will, so ordering one stream after another would not be enough: such a block waits until the work is over.
"""

from __future__ import annotations

import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from syncedmem.model import (
    AllocationError,
    ClosedAllocatorError,
    InvalidPointerError,
    ReentrantCallError,
    ReleaseError,
)
from syncedmem.model.interface import MemcpyKind, is_host

from .adaptor import Adaptor
from .base import check_kind
from .failures import attempt
from .handover import SecondChance, lock_steps
from .idle_blocks import IdleBlocks, PooledBlock
from .pointers import LiveBlocks, check_byte_size

if TYPE_CHECKING:
    from types import TracebackType

    from syncedmem.model.interface import Event, Pointer

    from .base import DeviceAllocator

__all__ = ["PoolAllocator"]

_MIB, _GIB = 1 << 20, 1 << 30


class PoolAllocator(Adaptor):
    """Memory of another allocator, kept when it is released.

    A *small* request gets the first idle small block that is large enough, in order of allocation; a *big* one the
    smallest idle big block that wastes less than `waste_limit`.  If there is none the upstream is asked, for exactly
    as much; if it is full, everything idle is given back, and it is asked once more.

    What `allocate` returns is an array of the size that was asked for, a new one each time, and `release` takes that
    very array: one that was released stays unknown, also when its memory has been lent again.  A late reader may
    see what the next owner writes, which is the one promise of `DeviceAllocator` that a pool cannot keep.

    All methods may be called from several threads; `release` waits for none of them, so that finalisers can call it
    at any time.

    Parameters
    ----------
    upstream : DeviceAllocator
    small_limit : int
        In bytes, the largest request that is small.
    waste_limit : int
        In bytes; a big block that is longer than a request by this much or more is not lent for it.
    idle_limit : int
        In bytes; when more than this is idle in small blocks, all of them are given back.

    Raises
    ------
    InvalidArgumentError, InvalidSizeError
        If `upstream` is no allocator, or a limit no size.
    """

    keeps_memory = True

    def __init__(
        self,
        upstream: DeviceAllocator,
        *,
        small_limit: int = _MIB,
        waste_limit: int = _MIB,
        idle_limit: int = _GIB,
    ) -> None:
        super().__init__(upstream)
        self._idle_limit = check_byte_size(idle_limit, "idle_limit")
        self._idle = IdleBlocks(
            check_byte_size(small_limit, "small_limit"), check_byte_size(waste_limit, "waste_limit")
        )
        self._second_chance = SecondChance(partial(self._idle.empty, upstream))
        self._lock = threading.RLock()
        self._busy = False
        self._closed = False
        self._serial = 0
        # Last, because the finaliser looks for it.
        self._live = LiveBlocks(self.name)

    # --- lending

    def allocate(self, byte_size: int) -> Pointer | None:
        """As `DeviceAllocator.allocate`; contents are whatever the last owner left.

        Raises
        ------
        AllocationError
            If the upstream has no room, also after everything idle was given back.
        ClosedAllocatorError
        """
        # What is no size finds no block, and the upstream refuses it.
        size = byte_size if type(byte_size) is int and byte_size > 0 else check_byte_size(byte_size)
        if size == 0:
            return None
        if self._closed:
            raise ClosedAllocatorError("allocate", self.name)
        idle, block = self._idle, None
        try:
            with self._lock:
                if self._busy:  # a finaliser, or the upstream, inside another call: what is idle is in its hands
                    (block,) = map(self._new, (size,))
                else:
                    self._busy = True
                    try:
                        if idle.returned:
                            idle.sort_in()
                        block = idle[size]
                        if block is None:
                            (block,) = map(self._made, (size,))
                    finally:
                        self._busy = False
            if block.lent != size:
                part = block.whole if size == block.size else block.whole[:size]
                block.make, block.lent = self._upstream.viewer(part), size
            ptr = block.make()
            if idle.returned:
                self._settle()
            self._live.blocks[id(ptr)] = ptr, block
        except BaseException:
            if block is not None:
                idle.returned.append(block)
            self._settle()
            raise
        return ptr

    def _made(self, size: int) -> PooledBlock:
        """A new block; when the upstream is full, for what is idle."""
        try:
            (block,) = map(self._new, (size,))
        except MemoryError:
            if not self._idle.give_back(self._upstream, self._idle.largest_first())[0]:
                raise
            (block,) = map(self._new, (size,))
        return block

    def _new(self, size: int) -> PooledBlock:
        self._serial += 1
        block = PooledBlock(size, self._serial)
        (whole,) = map(self._upstream.allocate, (size,))
        if whole is None:
            raise AllocationError(self.name, size, "the upstream returned None")
        block.whole = whole
        return block

    # --- taking back

    def release(self, ptr: Pointer | None) -> None:
        """Keep a block for the next one who asks; None is ignored.

        If more than the idle limit is idle now, small blocks are given back to the upstream.  One that the upstream
        does not take stays idle, and is offered to it again another time.

        Raises
        ------
        InvalidPointerError
            If `ptr` is not a live block of this pool.
        DeviceError
            If work that was queued on the block cannot be recorded; it is still lent.
        """
        if ptr is None:
            return
        block: PooledBlock = self._live.behind(ptr)
        if block.streams:
            block.events, block.streams = block.events + [self._upstream.record(it) for it in block.streams], []
        idle, returned = self._idle, self._idle.returned
        if returned:
            self._settle()
        if self._closed or (block.size <= idle.small_limit and idle.small_bytes + block.size > self._idle_limit):
            (gone,) = map(self._passed_on, (ptr,), (block,))
            if gone:
                return
        blocks, key, entry = self._live.blocks, id(ptr), (block,)
        del self._live[ptr]
        try:
            returned += entry
        except BaseException:
            blocks[key] = ptr, block
            raise

    def _passed_on(self, ptr: Pointer, block: PooledBlock) -> bool:
        """Give a lent block, and what is idle, to the upstream: at the limit, or if the pool is closed.

        Returns
        -------
        bool
            Whether the block went; else it stays for whoever comes next.
        """
        if not self._settle(block.size) or not (block.wait() if self._closed else block.over):
            return False
        blocks, key = self._live.blocks, id(ptr)
        releasing = map(self._upstream.release, (block.whole,))
        del self._live[ptr]
        try:
            (_,) = releasing
        except Exception:  # noqa: BLE001 -- to be released is no failure, and it can go later
            blocks[key] = ptr, block
            return False
        except BaseException:
            blocks[key] = ptr, block
            raise
        return True

    def _settle(self, coming: int = 0) -> bool:
        """Sort in what was returned, and keep to the limit with so many bytes more; whether that could be done.

        Whoever is inside does it on the way out.  Nobody waits here for that: a finaliser may come while its thread
        has a lock that the one inside waits for.
        """
        idle = self._idle
        while idle.returned or coming:
            entering, leaving = lock_steps(self._lock, wait=False)
            (entered,) = entering
            if not entered:
                return False
            try:
                if self._busy:  # inside another call of this thread
                    return False
                self._busy = True
                try:
                    idle.sort_in()
                    if self._closed:
                        idle.give_back(self._upstream, idle.largest_first())
                    elif idle.small_bytes + coming > self._idle_limit:
                        idle.give_back(self._upstream, idle.small(), wait=False)
                finally:
                    self._busy = False
            finally:
                (_,) = leaving
            coming = 0
        return True

    # --- work in flight

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Pointer,
        dest: Pointer,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,
    ) -> None:
        if stream is not None:
            direction = check_kind(kind)
            ends = (src,) * direction.from_device + (dest,) * direction.to_device
            self._note(stream, ends)
        self._upstream.memcpy(src, dest, byte_size, kind, stream, need_sync)

    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        if stream is not None and not is_host(self):  # where nothing is queued
            self._note(stream, (ptr,))
        self._upstream.memset_zero(ptr, byte_size, stream, need_sync)

    def _note(self, stream: Any, ends: tuple[Pointer, ...]) -> None:
        """Remember that work on a stream uses some of our blocks.  Before it is queued: an interrupt may follow."""
        for block in [block for end in ends for block in self._blocks_under(end)]:
            self._upstream.check_stream(stream)
            if not any(stream is known for known in block.streams):
                block.streams.append(stream)

    def _blocks_under(self, ptr: Pointer) -> list[PooledBlock]:
        """The lent blocks that an array lies in: the very array that was lent, or a part of it."""
        if ptr is None:
            return []
        if ptr in self._live:
            return [self._live.behind(ptr)]
        try:
            return [block for lent, block in self._live.entries() if self._upstream.overlaps(lent, ptr)]
        except (AttributeError, TypeError):  # no memory of this device
            return []

    def hold(self, ptr: Pointer, event: Event) -> None:
        """Lend a block to nobody else before an event: for work that does not go through this allocator.

        Parameters
        ----------
        ptr : array
            A live block, or part of one.
        event : Event
            As ``record(stream)`` returns it after the work was queued, on whatever device.

        Raises
        ------
        InvalidPointerError
            If `ptr` is in no live block of this pool.
        """
        blocks = self._blocks_under(ptr)
        if not blocks:
            raise InvalidPointerError(self.name, ptr, "it is not in a live block of this pool")
        for block in blocks:
            block.events.append(event)

    # --- the pool as a whole

    def _emptied(self, call: str, keep: int, *, closing: bool = False) -> int:
        """Give idle memory back until at most `keep` bytes are idle; how many bytes went."""
        with self._lock:
            if self._busy:
                raise ReentrantCallError(call)
            self._busy = True
            try:
                self._closed = self._closed or closing
                self._idle.sort_in()
                freed, failure = self._idle.give_back(self._upstream, self._idle.largest_first(), keep)
            finally:
                self._busy = False
        self._settle()
        if failure is not None:
            raise ReleaseError(call, self.name, failure) from failure
        return freed

    def trim(self, keep_bytes: int = 0) -> int:
        """Give idle memory back to the upstream, the largest blocks first; waits for work on it.

        Parameters
        ----------
        keep_bytes : int
            Stop when no more than this is idle.

        Returns
        -------
        int
            How many bytes were given back.

        Raises
        ------
        InvalidSizeError, InvalidArgumentError
            If `keep_bytes` is no size.
        ReleaseError
            If the upstream does not take a block, or work on it cannot be waited for.  It stays idle; the others are
            given back.
        """
        return self._emptied("trim", check_byte_size(keep_bytes, "keep_bytes"))

    def close(self) -> None:
        """Give everything idle back to the upstream, and lend nothing more.  Twice is harmless.

        What is still lent stays its owner's, and goes to the upstream when it is released.

        Raises
        ------
        ReleaseError
            As for `trim`.  The pool is closed; calling again tries what is left.
        """
        self._emptied("close", 0, closing=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if "_live" not in vars(self):
            return
        # What is still lent is not given back: a leak rather than memory that somebody else writes to.
        left = f"{len(self._live)} blocks of a pool on {self.name} were never released" if len(self._live) else ""
        if problem := (attempt(self.close) and attempt(self.close)) or left:  # again, in case it was interrupted
            warnings.warn(f"memory leaked: {problem}", ResourceWarning, stacklevel=2)

    @property
    def live_blocks(self) -> int:
        """How many blocks are lent."""
        return len(self._live)

    @property
    def idle_blocks(self) -> int:
        """How many blocks are kept for the next one who asks."""
        with self._lock:
            return len(self._idle.everything())

    @property
    def idle_bytes(self) -> int:
        """How many bytes these are."""
        with self._lock:
            return sum(block.size for block in self._idle.everything())
