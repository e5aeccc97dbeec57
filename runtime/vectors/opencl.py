"""`MappedVectors`: vector operations on an OpenCL device whose compiler fails, by the host.

Such a device still has memory: its buffers are mapped (``clEnqueueMapBuffer``), and the host computes with what it
sees there.  PyOpenCL is handed in: only ``opencl`` imports it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import InvalidPointerError

from .host import host_vectors
from .operations import Vectors

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MappedVectors", "OpenCLVectors"]


class OpenCLVectors(Vectors):
    """What the two ways to compute have in common: which arrays they take, and copies, which need no compiler.

    Parameters
    ----------
    where : str
        The device, as errors show it.
    queue : pyopencl.CommandQueue
        What work is queued on; it knows device and context.
    cl : module
        ``pyopencl``.
    overlap : callable
        Whether two arrays share bytes.
    """

    def __init__(self, where: str, queue: Any, cl: Any, overlap: Callable[[Any, Any], bool]) -> None:
        self.where = where
        self._queue = queue
        self._cl = cl
        self._overlapping = overlap

    def _check(self, array: Any, argument: str, *, write: bool) -> None:  # noqa: ARG002 -- none of these is read-only
        if not isinstance(array, self._cl.array.Array) or array.context != self._queue.context:
            raise InvalidPointerError(self.where, array, f"{argument} is not memory of this device")
        if array.ndim != 1 or not array.flags.c_contiguous or array.offset % array.dtype.itemsize:
            raise InvalidPointerError(self.where, array, f"{argument} is not a contiguous, aligned row of numbers")

    def _overlap(self, x: Any, y: Any) -> bool:
        return self._overlapping(x, y)

    def _same(self, x: Any, y: Any) -> bool:
        return bool(x.base_data == y.base_data and x.offset == y.offset)

    def _copy(self, x: Any, y: Any) -> None:
        offsets = {"src_offset": x.offset, "dst_offset": y.offset, "byte_count": x.nbytes}
        self._cl.enqueue_copy(self._queue, y.base_data, x.base_data, **offsets).wait()


class MappedVectors(OpenCLVectors):
    """Vector operations on ``pyopencl.array.Array`` by the host, for a device whose compiler fails."""

    def _axpy(self, alpha: float, x: Any, y: Any) -> None:
        with ExitStack() as mappings:
            source, target = self._mapped(mappings, x, y, write=True)
            host_vectors().axpy(alpha, source, target)

    def _scal(self, alpha: float, x: Any) -> None:
        with ExitStack() as mappings:
            host_vectors().scal(alpha, *self._mapped(mappings, x, write=True))

    def _asum(self, x: Any) -> float:
        with ExitStack() as mappings:
            return host_vectors().asum(*self._mapped(mappings, x))

    def _dot(self, x: Any, y: Any) -> float:
        with ExitStack() as mappings:
            return host_vectors().dot(*self._mapped(mappings, x, y))

    def _mapped(self, mappings: ExitStack, *vectors: Any, write: bool = False) -> list[Any]:
        """The elements of vectors as the host sees them, until the mappings end; the last vector may be written."""
        cl, last = self._cl, vectors[-1]
        found: list[Any] = []
        for vector in vectors:
            if vector is not last and self._same(vector, last):
                continue  # one region is not mapped twice if it is written
            flags = cl.map_flags.READ | (cl.map_flags.WRITE if write and vector is last else 0)
            area, _ = cl.enqueue_map_buffer(
                self._queue, vector.base_data, flags, vector.offset, (vector.nbytes,), np.uint8
            )
            mappings.callback(self._unmap, area.base)
            found.append(area.view(vector.dtype))
        return found * 2 if len(found) < len(vectors) else found

    def _unmap(self, mapping: Any) -> None:
        mapping.release(self._queue).wait()
