"""Host memory: `CPUDeviceAllocator`.

Blocks start at a multiple of 64 bytes: that is a cache line, and the widest vector register.  Blocks of 1 MiB and more
come directly from the operating system.  It fills in their pages with zeros only when they are touched.  To zero a
whole large block, its pages are given back instead of written.  So a first ``cpu_data()`` of a gigabyte takes
microseconds, and no memory until somebody writes.
"""

from __future__ import annotations

import mmap
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import InvalidArgumentError
from syncedmem.model.interface import DeviceType, MemcpyKind

from ..allocators.arithmetic import OF_DEVICES
from ..allocators.base import SOURCES, TARGETS, DeviceAllocator, check_kind
from ..allocators.failures import adopting
from ..allocators.late_writes import anchored, root_of
from ..allocators.pointers import (
    End,
    HostArray,
    LiveBlocks,
    as_flag,
    check_byte_size,
    check_copy,
    check_host,
    no_room,
)
from .host_arithmetic import host_arithmetic
from .host_buffers import adopt_host

if TYPE_CHECKING:
    from syncedmem.model.interface import Event, Pointer

    from ..allocators.arithmetic import Arithmetic

__all__ = ["ALIGNMENT", "CPUDeviceAllocator", "cpu_allocator"]

ALIGNMENT = 64
_FILLED = End("ptr", on_device=False, written=True)
_LARGE = 1 << 20
# On systems other than Linux, MADV_DONTNEED is a hint that may leave the old bytes in place.
_CAN_DISCARD = sys.platform == "linux"


class CPUDeviceAllocator(DeviceAllocator):
    """Host memory, 64-byte aligned, zeroed lazily by the operating system."""

    device_type = DeviceType.CPU
    lends_new_blocks = True

    def __init__(self) -> None:
        self._live = LiveBlocks(self.name)

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        mapping: mmap.mmap | None = None
        if size < _LARGE or not _CAN_DISCARD:
            ptr = self.empty(size)
        else:
            mapping = self._mapped(size)
            ptr = np.frombuffer(mapping, np.uint8)
        self._live.blocks[id(ptr)] = ptr, mapping
        return ptr

    def _mapped(self, size: int) -> mmap.mmap:
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise no_room(self.name, size, error) from error

    def release(self, ptr: HostArray | None) -> None:
        if ptr is not None:
            del self._live[ptr]

    def _is_live(self, ptr: HostArray) -> bool | None:
        return ptr in self._live

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Pointer,
        dest: Pointer,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,
    ) -> None:
        self.check_stream(stream)
        as_flag(need_sync, "need_sync")  # there is nothing to wait for
        kind = check_kind(kind)
        if kind is not MemcpyKind.CPU2CPU:
            raise InvalidArgumentError("kind", kind, "MemcpyKind.CPU2CPU on the host's own allocator")
        source, target = check_host(self, src, SOURCES[kind]), check_host(self, dest, TARGETS[kind])
        size = check_copy(byte_size, source, target)
        if source is not None and target is not None:
            np.copyto(target[:size], source[:size])

    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        self.check_stream(stream)
        as_flag(need_sync, "need_sync")  # there is nothing to wait for
        target = check_host(self, ptr, _FILLED)
        size = check_copy(byte_size, target)
        if target is not None and not self._discard(target, size):
            target[:size] = 0

    def _discard(self, ptr: HostArray, size: int) -> bool:
        """If `ptr` is a whole large block, give its pages back, so that they are zeros; returns whether it did."""
        mapping = self._live.behind(ptr) if ptr in self._live else None
        if not isinstance(mapping, mmap.mmap) or size != len(mapping):
            return False
        try:
            mapping.madvise(mmap.MADV_DONTNEED)
        except OSError:  # pages that somebody has locked cannot be given back
            return False
        return True

    def _references_to(self, ptr: HostArray) -> int:
        return sys.getrefcount(root_of(ptr))

    def _anchored(
        self, ptr: HostArray, *, written: bool, dtype: Any = None, shape: tuple[int, ...] | None = None
    ) -> tuple[Any, object]:
        array = anchored(ptr, written=written, dtype=dtype, shape=shape)
        return array, array

    def settled(self) -> bool:
        """True, because the host queues no work."""
        return True

    def empty(self, byte_size: int) -> HostArray:
        size = check_byte_size(byte_size)
        try:
            block = np.empty(size + ALIGNMENT - 1, np.uint8)
        except (MemoryError, ValueError) as error:  # ValueError: the size is too large for NumPy
            raise no_room(self.name, size, error) from error
        start = -block.ctypes.data % ALIGNMENT
        return block[start : start + size]

    def stream(self) -> Any:
        """None, because the host queues no work."""
        return None

    def check_stream(self, stream: object) -> None:
        if stream is not None:
            raise InvalidArgumentError("stream", stream, "None on the host")

    def adopt(self, buffer: object, byte_size: int) -> HostArray:
        with adopting(buffer, self):
            return adopt_host(buffer, byte_size)

    def _is_mine(self, ptr: object) -> bool:
        return isinstance(ptr, np.ndarray)

    def overlaps(self, first: HostArray, second: HostArray) -> bool:
        return self._are_mine(first, second) and np.may_share_memory(first, second)

    def record(self, stream: Any) -> Event:
        self.check_stream(stream)
        return _Finished()

    def pinned_host(self) -> CPUDeviceAllocator:
        return self

    def order_after(self, event: Event) -> None:
        # Of whatever device: there is nothing here that could wait for it, except the host itself.
        wait = getattr(event, "synchronize", None)
        if not callable(wait):
            raise InvalidArgumentError("event", event, "an event, as record() returns")
        wait()

    def arithmetic(self) -> Arithmetic:
        return host_arithmetic()


class _Finished:
    """The event of the host, where nothing is ever queued: always done."""

    done = True

    def synchronize(self) -> None:
        pass


_SHARED = CPUDeviceAllocator()


def cpu_allocator() -> CPUDeviceAllocator:
    """The shared host allocator, which every memory uses unless it is given another one."""
    return _SHARED


OF_DEVICES[DeviceType.CPU] = host_arithmetic
