"""Our allocators over memory of libraries that use addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..allocators.pointers import HostArray, check_byte_size
from ..devices.host import CPUDeviceAllocator

if TYPE_CHECKING:
    from ..allocators.base import DeviceAllocator
    from .source import Source

__all__ = ["ForeignHostAllocator", "allocator_over"]


class ForeignHostAllocator(CPUDeviceAllocator):
    """Host memory that comes from another library; that library decides about its alignment."""

    def __init__(self, source: Source) -> None:
        self._source = source
        super().__init__()

    @property
    def name(self) -> str:
        return self._source.name

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None  # libraries differ in what they do for zero bytes
        ptr: HostArray = np.asarray(cast("Any", self._source.grant(size)))
        self._live.blocks[id(ptr)] = ptr, None
        return ptr


def allocator_over(source: Source, device: int | None) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from a source of another library.

    Parameters
    ----------
    source : Source
    device : int or None
        The CUDA device of the memory; None for memory that the host can read.
    """
    if device is None:
        return ForeignHostAllocator(source)
    from .foreign_cuda import ForeignCUDAAllocator  # noqa: PLC0415 -- CuPy is needed for device memory only

    return ForeignCUDAAllocator(source, device)
