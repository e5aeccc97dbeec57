"""Host memory: `CPUDeviceAllocator`.

Blocks start at a multiple of 64 bytes, a cache line and the widest vector register.  Large blocks come
straight from the operating system, which hands out zero pages and fills them in only when they are touched,
and takes them back the same way: zeroing a whole large block gives its pages back instead of writing to
them.  So a first ``cpu_data()`` of a gigabyte costs microseconds and no memory until somebody writes.
"""

from __future__ import annotations

import mmap
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError

from .allocator import (
    DeviceAllocator,
    DeviceType,
    HostArray,
    LiveBlocks,
    MemcpyKind,
    adopt_host,
    check_byte_size,
    check_copy,
    no_room,
)

if TYPE_CHECKING:
    from .allocator import Event, Pointer

__all__ = ["ALIGNMENT", "CPUDeviceAllocator", "cpu_allocator"]

ALIGNMENT = 64
_LARGE = 1 << 20
# Elsewhere than on Linux MADV_DONTNEED is a hint that may leave the old bytes in place.
_CAN_DISCARD = sys.platform == "linux"


class CPUDeviceAllocator(DeviceAllocator):
    """Host memory, 64-byte aligned, zeroed lazily by the operating system."""

    device_type = DeviceType.CPU

    def __init__(self) -> None:
        self._live = LiveBlocks(self.name)
        self._mapped: dict[int, mmap.mmap] = {}

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        try:
            return self._map(size) if size >= _LARGE and _CAN_DISCARD else cast("HostArray", self._live.add(_aligned(size)))
        except (MemoryError, OSError, OverflowError, ValueError) as error:
            raise no_room(self.name, size, error) from error

    def _map(self, size: int) -> HostArray:
        mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        ptr = np.frombuffer(mapping, np.uint8)
        self._mapped[id(ptr)] = mapping
        self._live.add(ptr)
        return ptr

    def release(self, ptr: HostArray | None) -> None:
        if ptr is not None:
            self._live.remove(ptr)
            self._mapped.pop(id(ptr), None)

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Pointer,
        dest: Pointer,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,  # noqa: ARG002 -- host copies are finished on return whatever the stream
        need_sync: bool = False,  # noqa: ARG002
    ) -> None:
        if kind != MemcpyKind.CPU2CPU:
            raise InvalidArgumentError("kind", kind, "MemcpyKind.CPU2CPU on the host's own allocator")
        if size := check_copy(byte_size, src, dest):
            np.copyto(dest[:size], src[:size])

    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:  # noqa: ARG002 -- as memcpy
        size = check_copy(byte_size, ptr)
        mapping = self._mapped.get(id(ptr)) if ptr in self._live else None
        if mapping is not None and size == len(mapping):
            mapping.madvise(mmap.MADV_DONTNEED)
        elif size:
            ptr[:size] = 0

    def empty(self, byte_size: int) -> HostArray:
        return _aligned(check_byte_size(byte_size))

    def stream(self) -> None:
        """None: host work is never queued."""
        return

    def check_stream(self, stream: object) -> None:
        if stream is not None:
            raise InvalidArgumentError("stream", stream, "None on the host")

    def adopt(self, buffer: object, byte_size: int) -> HostArray:
        return adopt_host(cast("Any", buffer), byte_size)

    def overlaps(self, first: HostArray, second: HostArray) -> bool:
        return np.may_share_memory(first, second)

    def record(self, stream: Any) -> Event:
        self.check_stream(stream)
        return _Finished()

    def order_after(self, event: Event) -> None:
        event.synchronize()


class _Finished:
    """The event of a stream that never holds anything."""

    done = True

    def synchronize(self) -> None:
        pass


def _aligned(size: int) -> HostArray:
    block = np.empty(size + ALIGNMENT - 1, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[start : start + size]


@cache
def cpu_allocator() -> CPUDeviceAllocator:
    """The one host allocator that everything shares unless told otherwise."""
    return CPUDeviceAllocator()
