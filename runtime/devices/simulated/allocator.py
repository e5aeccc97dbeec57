"""`SimulatedDeviceAllocator`: the allocator of a simulated device."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import AllocationError, InvalidArgumentError
from syncedmem.model.interface import OPERATIONS, DeviceType, MemcpyKind

from ...allocators.base import SOURCES, TARGETS, DeviceAllocator, check_event, check_kind, check_operation
from ...allocators.failures import adopting
from ...allocators.late_writes import POISON
from ...allocators.pointers import (
    FILLED,
    HostArray,
    LiveBlocks,
    address_of,
    as_flag,
    as_integer,
    check_adoptable_size,
    check_byte_size,
    check_copy,
    check_host,
    no_room,
)
from ..host import CPUDeviceAllocator
from .arithmetic import SimulatedArithmetic
from .array import BYTES, SimulatedArray
from .block import Block, Quarantine, SimulatedDeviceError, exclusive
from .simulation import DeviceSpace, SimulatedEvent, SimulatedStream, checked_ordinal, current_device, using_device

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from syncedmem.model.interface import Event

    from ...allocators.pointers import End

__all__ = ["SimulatedArray", "SimulatedDeviceAllocator", "SimulatedPinnedAllocator"]


class SimulatedDeviceAllocator(DeviceAllocator):
    """Memory of a simulated device.

    It is stricter than `DeviceAllocator` requires: reading memory after its release raises an error.

    Parameters
    ----------
    ordinal : int
        The number of the simulated device, from 0 to 3.
    capacity : int or None
        How many bytes may be allocated at once; None for no limit.  Page-locked host memory, which `pinned_host`
        gives, is not counted.
    seed : int or None
        With a seed, a scheduler decides when queued copies happen, in the same way each time.  Without a seed they
        happen only when somebody waits for them.

    Raises
    ------
    NoDeviceError
        If there is no such device.
    InvalidSizeError, InvalidArgumentError
        If `capacity` is not a size, or `ordinal` or `seed` is no integer.
    """

    device_type = DeviceType.SIMULATED
    lends_new_blocks = True
    description = "a second memory space inside this process"

    def __init__(self, ordinal: int = 0, *, capacity: int | None = None, seed: int | None = None) -> None:
        self.ordinal: int = checked_ordinal(ordinal)
        limit = None if capacity is None else check_byte_size(capacity, "capacity")
        self._live = LiveBlocks(self.name)
        self._space = DeviceSpace(self.ordinal, limit, seed)
        self._pinned = SimulatedPinnedAllocator(self.name)
        self._fuse = _Fuse()

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    @property
    def defers(self) -> bool:
        """Whether queued copies happen only when somebody waits for them."""
        return self._space.defers

    def fail_at(self, k: int, operation: str | None = None) -> None:
        """Make the k-th call from now fail; the next call is the first.

        Parameters
        ----------
        k : int
            Zero cancels it.
        operation : str or None
            Count only calls of ``allocate``, ``release``, ``memcpy`` or ``memset_zero``; None counts all of them.

        Raises
        ------
        InvalidArgumentError
            If `k` is negative or no integer, or there is no such operation.
        """
        self._fuse.arm(k, operation)

    def allocate(self, byte_size: int) -> SimulatedArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        with self._space.entered():
            block = self._new_block("allocate", size)
            ptr = SimulatedArray(self._space, block, block.content)
        self._live.blocks[id(ptr)] = ptr, block
        return ptr

    def _new_block(self, operation: str, size: int) -> Block:
        if self._fuse.blows(operation):
            raise AllocationError(self.name, size, "this call was told to fail")
        try:
            return self._space.new_block(size)
        except (MemoryError, ValueError) as error:  # ValueError: the size is too large for NumPy
            raise no_room(self.name, size, error) from error

    def release(self, ptr: SimulatedArray | None) -> None:
        if ptr is not None:
            _free(self._live, ptr, self._space.entered(), self._space.quarantine, self._fuse)

    def _is_live(self, ptr: SimulatedArray) -> bool:
        return ptr in self._live

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Any,
        dest: Any,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: SimulatedStream | None = None,
        need_sync: bool = False,
    ) -> None:
        if type(kind) is not MemcpyKind:
            kind = check_kind(kind)
        source = self._end(src, SOURCES[kind])
        target = self._end(dest, TARGETS[kind])
        size = check_copy(byte_size, source, target)
        self._perform("memcpy", size, partial(_copy, source, target, size), stream, need_sync)

    def memset_zero(
        self, ptr: SimulatedArray, byte_size: int, stream: SimulatedStream | None = None, need_sync: bool = False
    ) -> None:
        target = self._end(ptr, FILLED)
        size = check_copy(byte_size, target)
        self._perform("memset_zero", size, lambda: target.raw(size).fill(0), stream, need_sync)

    def _perform(
        self, name: str, size: int, operation: Callable[[], None], stream: SimulatedStream | None, need_sync: bool
    ) -> None:
        if need_sync is not False:
            need_sync = as_flag(need_sync, "need_sync")
        if stream is not None:
            self.check_stream(stream)
        with self._space.entered():
            if self._fuse.left:
                self._fuse.check(name)
            if size:
                self._space.now(stream, operation)
            if need_sync:
                self._space.synchronize()

    def _end(self, ptr: Any, end: End) -> Any:
        """One end of a copy, after a check; None stays None."""
        if ptr is None or not end.on_device:
            return check_host(self, ptr, end)
        if not isinstance(ptr, SimulatedArray) or not ptr.belongs_to(self._space):
            raise end.misplaced(self, ptr)
        if reason := ptr.unusable(end.written):
            raise end.refused(self, ptr, reason)
        return ptr

    def empty(self, byte_size: int) -> SimulatedArray:
        size = check_byte_size(byte_size)
        with self._space.entered():
            block = self._new_block("empty", size)
        return SimulatedArray(self._space, block, block.content)

    def stream(self) -> SimulatedStream:
        return self._space.new_stream()

    def current_stream(self) -> SimulatedStream:
        """The stream whose ``with`` block this thread is in, or the device's default one."""
        return self._space.current_stream

    def on(self, stream: Any) -> SimulatedStream:
        """As ``with stream:``, after a check that it is a stream of this device."""
        self._space.check_stream(stream)
        return cast("SimulatedStream", stream)

    def check_stream(self, stream: object) -> None:
        self._space.check_stream(stream)

    def adopt(self, buffer: object, byte_size: int) -> SimulatedArray:
        with adopting(buffer, self):
            return self._adopted(buffer, byte_size)

    def _adopted(self, buffer: object, byte_size: int) -> SimulatedArray:
        if not isinstance(buffer, SimulatedArray):
            raise ValueError(f"it is not memory of {self.name}")  # noqa: TRY004 -- a ValueError is what adopt() promises
        if not buffer.belongs_to(self._space):
            raise ValueError(f"it is memory of another device ({buffer.ordinal}), and {self.name} is needed")
        if buffer.read_only:
            raise ValueError("it is a read-only view, and the host is copied into it")
        if not buffer.flags.c_contiguous:
            raise ValueError("it is transposed; adopt a copy() of it")
        size = check_adoptable_size(buffer.nbytes, byte_size)
        try:
            buffer.items()
        except SimulatedDeviceError as error:  # the memory was freed
            raise ValueError(str(error)) from None
        return buffer.reshape(-1).view(BYTES)[:size]

    def _is_mine(self, ptr: object) -> bool:
        return isinstance(ptr, SimulatedArray) and ptr.belongs_to(self._space)

    def overlaps(self, first: Any, second: Any) -> bool:
        return self._are_mine(first, second) and first.shares(second)

    def record(self, stream: SimulatedStream) -> Event:
        self._space.check_stream(stream)
        return stream.record()

    def order_after(self, event: Event) -> None:
        check_event(event, SimulatedEvent, self.name)
        self._space.current_stream.wait_event(cast("Any", event))

    def synchronize(self) -> None:
        """Perform all work that is queued on all streams of this device."""
        self._space.synchronize()

    def settled(self) -> bool:
        """Whether no work is queued on any stream; it makes none happen."""
        return not self._space.busy

    def peek(self, ptr: SimulatedArray) -> HostArray:
        """As the base class; unlike `SimulatedArray.get`, it makes no queued work happen.

        Raises
        ------
        InvalidArgumentError, SimulatedDeviceError
            If it is no memory of this device, or was freed.
        """
        self._check_mine("ptr", ptr)
        return ptr.items().ravel("K").view(BYTES).copy()  # no item lies between the others, so only one copy is made

    def _references_to(self, ptr: SimulatedArray) -> int:
        return sys.getrefcount(cast("Any", ptr)._block)  # noqa: SLF001 -- of this device

    def _anchored(
        self, ptr: SimulatedArray, *, written: bool, dtype: Any = None, shape: tuple[int, ...] | None = None
    ) -> tuple[SimulatedArray, object]:
        return ptr.anchored(written=written, dtype=dtype, shape=shape)

    def poison(self, ptr: SimulatedArray) -> None:
        """As the base class.

        Raises
        ------
        InvalidArgumentError, InvalidPointerError, SimulatedDeviceError
            If it is no row of bytes of this device, is read-only, or was freed.
        """
        self._check_mine("ptr", ptr)
        self._end(ptr, FILLED).raw(ptr.nbytes).fill(POISON)

    def check(self) -> None:
        """Check for stray writes: into red zones, and into memory that was freed lately.

        Raises
        ------
        SimulatedDeviceError
            If there was a stray write.
        """
        self._space.check()
        self._pinned.check()

    def pinned_host(self) -> SimulatedPinnedAllocator:
        return self._pinned

    def is_pageable(self, ptr: Any) -> bool:
        """Whether the memory is in no block of `pinned_host`, which imitates page-locked memory.

        Raises
        ------
        InvalidArgumentError
            If it is no array of the host.
        """
        if not isinstance(ptr, np.ndarray):
            raise InvalidArgumentError("ptr", ptr, "memory of the host")
        pinned: Any = self._pinned
        return not pinned._holds(ptr)  # noqa: SLF001 -- of this device

    def read_only(self, ptr: SimulatedArray) -> SimulatedArray:
        self._check_mine("ptr", ptr)
        return ptr.as_read_only()

    def viewer(self, ptr: SimulatedArray) -> Callable[[], SimulatedArray]:
        self._check_mine("ptr", ptr)
        return ptr.viewer()

    def arithmetic(self) -> SimulatedArithmetic:
        return SimulatedArithmetic(self.name, self._space)

    def using(self) -> AbstractContextManager[None]:
        return using_device(self.ordinal)

    def current_ordinal(self) -> int:
        return current_device()


class SimulatedPinnedAllocator(CPUDeviceAllocator):
    """Page-locked host memory, as the simulated device imitates it.

    It is host memory between red zones, and is poisoned when it is new.  It knows its own blocks: it refuses to free
    pageable memory, and the allocator of pageable memory refuses to free its blocks.  Freed bytes keep their values for
    views that still show them.  A write into freed bytes is found nevertheless.
    """

    lends_new_blocks = True

    def __init__(self, device: str) -> None:
        self._device = device
        super().__init__()
        self._quarantine = Quarantine()

    @property
    def name(self) -> str:
        return f"pinned host memory of {self._device}"

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        try:
            block = Block(None, size, poisoned=False)
        except (MemoryError, ValueError) as error:  # ValueError: the size is too large for NumPy
            raise no_room(self.name, size, error) from error
        ptr = block.content[:]
        self._live.blocks[id(ptr)] = ptr, block
        return ptr

    def release(self, ptr: HostArray | None) -> None:
        if ptr is not None:
            _free(self._live, ptr, exclusive, self._quarantine)

    def _holds(self, ptr: HostArray) -> bool:
        """Whether the memory of an array lies in one of the live blocks."""
        start = address_of(ptr)
        blocks: list[Block] = self._live.all_behind()
        return any(block.address <= start and start + ptr.nbytes <= block.address + block.size for block in blocks)

    def check(self) -> None:
        """Check for stray writes: into red zones, and into memory that was freed lately."""
        for block in self._live.all_behind():
            block.check()
        self._quarantine.check()


def _free(
    known: LiveBlocks,
    ptr: Any,
    alone: AbstractContextManager[object],
    quarantine: Quarantine,
    fuse: _Fuse | None = None,
) -> None:
    """Free a block.  If anything is raised, the block is live, and has its bytes."""
    undo, blocks, key = None, known.blocks, id(ptr)
    try:
        with alone:
            block: Block = known.behind(ptr)
            if fuse is not None:
                fuse.check("release")
            quarantine.take(block)
            undo = block.spoil()
            checksum = block.sum()
    except BaseException:
        if undo is not None:
            undo()
        raise
    try:  # no call from here on, so that no interrupt comes before the end
        del blocks[key]
        block.live, block.checksum = False, checksum
    except KeyError:
        raise known.unknown(ptr) from None


def _copy(source: HostArray | SimulatedArray, target: HostArray | SimulatedArray, size: int) -> None:
    """Copy the bytes that the two ends have now: their memory may have been freed since the copy was queued."""
    to = target.raw(size) if isinstance(target, SimulatedArray) else target[:size]
    to[:] = source.raw(size) if isinstance(source, SimulatedArray) else source[:size]


class _Fuse:
    """Counts calls, and tells when the call comes that must fail.

    Attributes
    ----------
    left : int
        How many calls there are until then; 0 if none is to fail.
    """

    def __init__(self) -> None:
        self.left: int = 0
        self._operation: str | None = None

    def arm(self, k: int, operation: str | None) -> None:
        if operation is not None:
            check_operation(operation, ", or None")
        expected = "the number of a call, from 1, or 0 for none"
        left = as_integer(k, "k", expected)
        if left < 0:
            raise InvalidArgumentError("k", k, expected)
        self.left, self._operation = left, operation

    def blows(self, operation: str) -> bool:
        if not self.left or operation not in OPERATIONS or self._operation not in (None, operation):
            return False
        self.left -= 1
        return self.left == 0

    def check(self, operation: str) -> None:
        if self.blows(operation):
            raise SimulatedDeviceError(f"{operation}: this call was told to fail")
