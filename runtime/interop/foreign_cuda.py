"""Our allocator over memory of a GPU from libraries that use addresses: `ForeignCUDAAllocator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..devices.cuda import CUDADeviceAllocator, cupy

if TYPE_CHECKING:
    from .source import Source

__all__ = ["ForeignCUDAAllocator"]


class ForeignCUDAAllocator(CUDADeviceAllocator):
    """Memory of one GPU that comes from another library; arrays are ``cupy.ndarray``.

    The memory goes back to the library when the last array over it is gone.  Before that, wait for all work that uses
    it.

    Parameters
    ----------
    source : Source
    ordinal : int
        The CUDA device of the memory.
    """

    def __init__(self, source: Source, ordinal: int) -> None:
        self._source = source
        super().__init__(ordinal)

    def _new(self, size: int) -> Any:
        with self.using():
            grant = self._source.grant(size)
            memory = cupy.cuda.UnownedMemory(grant.address, size, grant, self.ordinal)
            return cupy.ndarray((size,), cupy.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))
