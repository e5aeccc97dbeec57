"""Ours from theirs, on a GPU: `ForeignCUDAAllocator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..devices.cuda import CUDADeviceAllocator, cupy

if TYPE_CHECKING:
    from .source import Source

__all__ = ["ForeignCUDAAllocator"]


class ForeignCUDAAllocator(CUDADeviceAllocator):
    """Memory of one GPU that comes from somebody else; arrays are ``cupy.ndarray``.

    Memory goes back when the last array over it does.  Work that still uses it then must have been waited for.

    Parameters
    ----------
    source : Source
    ordinal : int
        The CUDA device whose memory it is.
    """

    def __init__(self, source: Source, ordinal: int) -> None:
        self._source = source
        super().__init__(ordinal)

    def _new(self, size: int) -> Any:
        with self.using():
            grant = self._source.grant(size)
            memory = cupy.cuda.UnownedMemory(grant.address, size, grant, self.ordinal)
            return cupy.ndarray((size,), cupy.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))
