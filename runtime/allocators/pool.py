"""`PoolAllocator`: keeps released blocks for later requests.

Which request gets which block follows KuiperLLama (kuiper/source/base/alloc_cu.cpp), over any allocator and without the
errors of that file (docs/allocators.md).  Those rules are in ``idle_blocks``.  This module decides when a block may be
lent at all, and when it goes back to the upstream.

A block is *lent* from its allocation to its release, and *idle* after that.  Work that its last owner queued on a
stream may still use an idle block.  The pool knows of copies and fills, because they go through it, and of other work
through `PoolAllocator.hold`.  It does not know on which stream the next owner will use the block, or whether the host
will use it.  So it would not be enough to order one stream after another: the block waits until the work is over.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from syncedmem.model import (
    ClosedAllocatorError,
    InvalidArgumentError,
    InvalidPointerError,
    ReentrantCallError,
    ReleaseError,
)
from syncedmem.model.interface import MemcpyKind

from .adaptor import Adaptor
from .base import check_kind
from .failures import attempt, block_from
from .forking import fork_safe_lock, if_free
from .idle_blocks import SMALL_LIMIT, IdleBlocks, PooledBlock
from .late_writes import LateWrites, references_to
from .pointers import LiveBlocks, check_byte_size
from .views import device_viewer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from syncedmem.model.interface import Event, Pointer

    from .base import DeviceAllocator

__all__ = ["PoolAllocator"]

_IDLE_LIMIT = 1 << 30
"""In bytes; when small blocks with more than this in total are idle, the pool gives all of them back."""


class PoolAllocator(Adaptor):
    """Keeps the released blocks of another allocator for later requests.

    A *small* request, of at most a MiB, gets the first idle small block that is large enough, in order of allocation.
    A *big* request gets the smallest idle big block that wastes less than a MiB.  If there is no such block, the pool
    asks the upstream for exactly the requested size.  If the upstream is full, the pool gives all idle blocks back and
    asks once more.

    `allocate` returns an array of exactly the requested size, a new array each time, and `release` takes only that same
    array.  An array that was released is refused, even if its memory has been lent again.  If you keep an array after
    its release, you may see what the next owner writes.  This is the one promise of `DeviceAllocator` that a pool
    cannot keep.

    Several threads may call all methods at the same time.  `release` never waits for another call, so finalisers can
    call it at any time.

    Parameters
    ----------
    upstream : DeviceAllocator

    Raises
    ------
    InvalidArgumentError
        If `upstream` is no allocator.
    """

    keeps_memory = True

    def __init__(self, upstream: DeviceAllocator) -> None:
        super().__init__(upstream)
        self._idle = IdleBlocks(upstream)
        self._lock = fork_safe_lock()
        self._busy = False
        self._closed = False
        self._serial = 0
        # This attribute is set last: the finaliser looks for it, to see whether `__init__` was completed.
        self._live = LiveBlocks(self.name)

    # --- lending

    def allocate(self, byte_size: int) -> Pointer | None:
        """As `DeviceAllocator.allocate`; the contents are whatever the last owner left.

        Raises
        ------
        AllocationError
            If the upstream has no room, even after the pool gave all idle blocks back.
        ClosedAllocatorError
            If the pool is closed.
        StaleWriteError
            If somebody wrote into an idle block after its checked owner had released it.  It is told once.
        """
        # A bool or a string goes to `check_byte_size`, which refuses it; so does a size below 1.
        size = byte_size if type(byte_size) is int and byte_size > 0 else check_byte_size(byte_size)
        if size == 0:
            return None
        if self._closed:
            raise ClosedAllocatorError("allocate", self.name)
        idle, block = self._idle, None
        try:
            with self._lock:
                if self._busy:  # a finaliser or the upstream calls from inside another call, which uses the lists
                    block = self._new(size)
                else:
                    self._busy = True
                    try:
                        if idle.returned:
                            idle.sort_in()
                        block = idle.take(size) or self._made(size)
                        block.late = None
                    finally:
                        self._busy = False
            if idle.found:
                self._tell("allocate")
            if block.requested != size:
                self._fit(block, size)
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

    def _fit(self, block: PooledBlock, size: int) -> None:
        """Have a block make arrays of a size."""
        if not block.references:  # it is new, so nobody has an array over it
            block.references = references_to(self._upstream, block.whole)
        part = block.whole if size == block.size else block.whole[:size]
        block.make, block.requested = device_viewer(self._upstream, part, checked=False), size

    def _made(self, size: int) -> PooledBlock:
        """A new block; if the upstream is full, the idle blocks are given back first."""
        try:
            return self._new(size)
        except MemoryError:
            if not self._idle.give_back(self._idle.largest_first()):
                raise
        return self._new(size)

    def _new(self, size: int) -> PooledBlock:
        self._serial += 1
        block = PooledBlock(size, self._serial)
        block.whole = block_from(self._upstream, size)
        return block

    # --- taking back

    def release(self, ptr: Pointer | None) -> None:
        """Keep a block for a later request; None is ignored.

        If small blocks with more than a GiB in total are idle then, they are given back to the upstream.  A block
        that the upstream does not take stays idle, and the pool tries again later.

        Raises
        ------
        InvalidPointerError
            If `ptr` is not a live block of this pool.
        DeviceError
            If no event can be recorded after the work that was queued on the block.  The block is still lent.
        """
        if ptr is None:
            return
        block: PooledBlock = self._live.behind(ptr)
        if block.streams:
            for stream in block.streams:
                block.keep_until(self._upstream.record(stream))
            block.streams = []
        idle, returned = self._idle, self._idle.returned
        if returned and (self._closed or idle.small_bytes + (len(returned) + 1) * SMALL_LIMIT > _IDLE_LIMIT):
            self._settle()  # otherwise the next allocation does it, because there cannot be too many bytes
        too_many = block.size <= SMALL_LIMIT and idle.small_bytes + block.size > _IDLE_LIMIT
        if (self._closed or too_many) and self._passed_on(ptr, block):
            return
        if block.late is None or not self._take_back_watched(ptr, block):
            self._take_back(ptr, block)

    def _take_back(self, ptr: Pointer, block: PooledBlock) -> None:
        lent, key, returned = self._live.blocks, id(ptr), self._idle.returned
        try:
            # No call between these two lines, so only one of two threads succeeds, and no interrupt loses the block.
            del lent[key]
            returned += (block,)
        except KeyError:
            raise self._live.unknown(ptr) from None

    def _take_back_watched(self, ptr: Pointer, block: PooledBlock) -> bool:
        """Take a block back, and poison it; returns whether it could.

        It is this pool's before a byte of it changes, so that no owner is left with what an interrupt has let through.
        Until it is poisoned nobody gets it.  If another call is inside the pool, late writes into this block are not
        told.
        """
        late: Any = block.late
        block.late = None  # until all of it is poisoned
        return if_free(self._lock, self._alone, self._take_back_and_watch, ptr, block, late)

    def _take_back_and_watch(self, ptr: Pointer, block: PooledBlock, late: LateWrites) -> None:
        self._take_back(ptr, block)
        try:  # noqa: SIM105 -- an interrupt in `suppress` would seem to be a failure of the release
            self._idle.watch(block, late)
        except Exception:  # noqa: BLE001, S110 -- the release has not failed; a check may be left out
            pass

    def _alone(self, work: Callable[..., object], *arguments: Any) -> bool:
        """Do something inside the pool, unless this thread is inside another call; returns whether it was done.

        The caller has the lock, by `if_free`.  Nobody waits for it: a finaliser may run in a thread that has a lock for
        which the call inside waits.
        """
        if self._busy:
            return False
        self._busy = True
        try:
            work(*arguments)
        finally:
            self._busy = False
        return True

    def _passed_on(self, ptr: Pointer, block: PooledBlock) -> bool:
        """Give a lent block, and the idle ones, to the upstream: at the limit, or if the pool is closed.

        Returns
        -------
        bool
            Whether the block went to the upstream; if not, the pool keeps it.
        """
        if not self._settle(block.size) or not (block.wait() if self._closed else block.over):
            return False
        try:
            self._live.release(ptr, self._upstream, block.whole)
        except Exception:
            if ptr not in self._live:
                raise
            return False  # the release itself has not failed, and the block can go later
        return True

    def _settle(self, coming: int = 0) -> bool:
        """Sort in returned blocks, and give small blocks back if the limit would be passed; returns whether it could.

        `coming` is the number of bytes that are about to become idle.  If another call is inside the pool, that call
        does this at its end.
        """
        idle = self._idle
        while idle.returned or coming:
            if not if_free(self._lock, self._alone, self._sort_in, coming):
                return False
            coming = 0
        return True

    def _sort_in(self, coming: int) -> None:
        """Sort in returned blocks, and give back what is too much."""
        idle = self._idle
        idle.sort_in()
        if self._closed:
            idle.give_back(idle.largest_first())
        elif idle.small_bytes + coming > _IDLE_LIMIT:
            idle.give_back(idle.small(), wait=False)

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
        if stream is not None:
            self._note(stream, (ptr,))
        self._upstream.memset_zero(ptr, byte_size, stream, need_sync)

    def _note(self, stream: Any, ends: tuple[Pointer, ...]) -> None:
        """Remember that work on a stream uses these blocks; called before the work is queued."""
        for block in [block for end in ends for block in self._blocks_under(end)]:
            self._upstream.check_stream(stream)
            if not any(stream is known for known in block.streams):
                block.streams.append(stream)

    def _blocks_under(self, ptr: Pointer) -> list[PooledBlock]:
        """The lent blocks in which an array lies: it is the array that was lent, or a part of it."""
        if ptr is None:
            return []
        if ptr in self._live:
            return [self._live.behind(ptr)]
        try:
            return [block for lent, block in self._live.entries() if self._upstream.overlaps(lent, ptr)]
        except (AttributeError, TypeError):  # it is not memory of this device
            return []

    def hold(self, ptr: Pointer, event: Event) -> None:
        """Do not lend a block to anybody else before an event: for work that does not go through this allocator.

        Parameters
        ----------
        ptr : array
            A live block, or part of one.
        event : Event
            What ``record(stream)`` returned after the work was queued, on any device.

        Raises
        ------
        InvalidArgumentError
            If `event` is no event.
        InvalidPointerError
            If `ptr` is in no live block of this pool.
        """
        _check_event(event)
        blocks = self._blocks_under(ptr)
        if not blocks:
            raise InvalidPointerError(self.name, ptr, "it is not in a live block of this pool")
        for block in blocks:
            block.keep_until(event)

    def watch_idle(self, ptr: Pointer, late: LateWrites) -> None:
        """As `DeviceAllocator.watch_idle`.  An array that is no block of this pool is ignored.

        Raises
        ------
        InvalidArgumentError
            If `late` does not say what to tell.
        """
        if not isinstance(late, LateWrites):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("late", late, "LateWrites")
        if ptr in self._live:
            self._live.behind(ptr).late = late

    def _tell(self, call: str) -> None:
        """Raise the error for a late write that was found, if there is one; the next call tells of the next one."""
        findings = self._idle.found
        if findings:
            late, position = findings.popleft()
            raise late.error(call, position)

    def _is_live(self, ptr: Pointer) -> bool | None:
        return ptr in self._live

    # --- the pool as a whole

    def _emptied(self, call: str, keep: int, *, closing: bool = False) -> int:
        """Give idle memory back until at most `keep` bytes are idle; returns how many bytes were given back."""
        failures: list[Exception] = []
        with self._lock:
            if self._busy:
                raise ReentrantCallError(call)
            self._busy = True
            try:
                self._closed = self._closed or closing
                self._idle.sort_in()
                freed = self._idle.give_back(self._idle.largest_first(), keep, failures=failures)
            finally:
                self._busy = False
        self._settle()
        if failures:
            del failures[1:]
            raise ReleaseError(call, self.name, failures[0]) from failures.pop()
        return freed

    def trim(self, keep_bytes: int = 0) -> int:
        """Give idle memory back to the upstream, the largest blocks first; waits for work on those blocks.

        Parameters
        ----------
        keep_bytes : int
            In bytes; stop when no more than this is idle.

        Returns
        -------
        int
            How many bytes were given back.

        Raises
        ------
        InvalidSizeError, InvalidArgumentError
            If `keep_bytes` is not a size.
        ReentrantCallError
            If it is called from inside another call of the pool, by the same thread.
        ReleaseError
            If the upstream does not take a block, or work on it cannot be waited for.  That block stays idle, unless
            the upstream says that it is gone already; the others are given back.
        StaleWriteError
            If somebody wrote into a block after its checked owner had released it; all is given back then.
        """
        freed = self._emptied("trim", check_byte_size(keep_bytes, "keep_bytes"))
        self._tell("trim")
        return freed

    def close(self) -> None:
        """Give all idle memory back to the upstream, and lend nothing more.  Closing twice is harmless.

        A block that is still lent stays with its owner, and goes to the upstream when it is released.

        Raises
        ------
        ReentrantCallError
            As for `trim`; the pool is then not closed.
        ReleaseError, StaleWriteError
            As for `trim`.  The pool is closed; call again to give back what is left.
        """
        self._emptied("close", 0, closing=True)
        self._tell("close")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # At the exit of the interpreter the globals of modules may be gone; so the function that tells is a default.
    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_over() or "_live" not in vars(self):
            return
        attempt(partial(self._emptied, "close", 0, closing=True))  # the idle blocks tell of what cannot be released
        self._idle.warn("at the end of the pool")
        if len(self._live):
            self._left: _Left = _Left(self._live, self.name)

    @property
    def live_blocks(self) -> int:
        """How many blocks are lent."""
        return len(self._live)

    @property
    def idle_blocks(self) -> int:
        """How many blocks are idle."""
        with self._lock:
            return len(self._idle.everything())

    @property
    def idle_bytes(self) -> int:
        """How many bytes are idle."""
        with self._lock:
            return sum(block.size for block in self._idle.everything())


def _check_event(event: Any) -> None:
    """Refuse an object that is no event of any device: the block would wait for it for ever, or not at all.

    A method ``done``, as futures have, is no answer: as an object it is always true.
    """
    try:
        known = callable(event.synchronize) and not callable(event.done)
    except AttributeError:
        known = False
    except Exception:  # noqa: BLE001 -- an event that cannot be asked now is asked again later
        known = True
    if not known or isinstance(event, type):
        raise InvalidArgumentError("event", event, "an event, as record() returns")


class _Left:
    """Warns about lent blocks when the pool is gone.  They stay allocated: a leak rather than a dangling pointer.

    Python finalises the objects of a cycle in any order: after the pool, a buffer in the same cycle may still release
    its block.  So the pool makes this object in its own finaliser: Python drops it when all of these have run.
    """

    __slots__ = ("_live", "_name")

    def __init__(self, live: LiveBlocks, name: str) -> None:
        self._live = live
        self._name = name

    def __del__(self) -> None:
        if left := len(self._live):
            text = f"memory leaked: {left} blocks of a pool on {self._name} were never released"
            warnings.warn(text, ResourceWarning, stacklevel=2)
