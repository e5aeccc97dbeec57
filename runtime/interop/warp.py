"""NVIDIA Warp: its allocators are objects with ``allocate(size)`` and ``deallocate(address, size)``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .exporter import Exporter
from .foreign import allocator_over
from .packages import missing
from .source import Source, check_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator

__all__ = ["ExportedAllocator", "as_resource", "from_resource"]

try:
    wp: Any = importlib.import_module("warp")
except ImportError as _error:
    raise missing("Warp", "warp", _error) from _error

_READABLE = (wp.MemoryKind.HOST, wp.MemoryKind.PINNED, wp.MemoryKind.CUDA_MANAGED)


def from_resource(theirs: Any, *, device: int | None = 0) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from an allocator of Warp.

    Parameters
    ----------
    theirs : warp.Allocator
        If its ``memory_kind`` is one that the host can read, the memory becomes host memory, whatever `device` is.
    device : int or None
        The CUDA device of the memory, or None for host memory.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is no allocator.
    NoDeviceError
        If there is no such device here.
    """
    check_calls("theirs", theirs, ("allocate", "deallocate"), "an allocator of Warp")

    def take(size: int) -> tuple[int, Callable[[], object]]:
        address = theirs.allocate(size)
        return address, lambda: theirs.deallocate(address, size)

    readable = getattr(theirs, "memory_kind", None) in _READABLE
    # Warp has no error of its own for a full device.
    source = Source(f"Warp's {type(theirs).__name__}", take, lambda error: isinstance(error, RuntimeError))
    return allocator_over(source, None if readable else device)


def as_resource(allocator: object) -> ExportedAllocator:
    """An allocator of Warp whose memory comes from a `DeviceAllocator`, for ``warp.set_device_allocator``.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of host or CUDA memory.  Warp sets allocators for CUDA devices only.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    return ExportedAllocator(Exporter(allocator))


class ExportedAllocator:
    """Memory of a `DeviceAllocator`, for Warp; made by `as_resource`.

    Attributes
    ----------
    memory_kind : warp.MemoryKind
    """

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self.memory_kind: Any = wp.MemoryKind.CUDA_DEVICE if exporter.on_device else wp.MemoryKind.HOST

    def allocate(self, size_in_bytes: int) -> int:
        """The address of new memory.

        Raises
        ------
        AllocationError
            If there is no room.
        """
        return self._exporter.allocate(size_in_bytes)

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Wait for the device and give memory back; errors are printed, because Warp calls this from finalisers."""
        self._exporter.give_back(ptr, size_in_bytes, self._exporter.wait_for_device)
