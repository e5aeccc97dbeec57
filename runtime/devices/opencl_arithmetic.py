"""Arithmetic on an OpenCL device whose compiler fails, and the parts that it shares with arithmetic by kernels.

Such a device still has memory.  Its buffers are mapped (``clEnqueueMapBuffer``), and the host computes with the mapped
bytes.  PyOpenCL is an argument; only ``opencl`` imports it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import InvalidPointerError

from ..allocators.arithmetic import Arithmetic
from .host_arithmetic import host_arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MappedArithmetic", "OpenCLArithmetic", "overlap"]


class OpenCLArithmetic(Arithmetic):
    """What both ways to compute have in common: the checks of arrays, and copies, which need no compiler.

    Parameters
    ----------
    where : str
        The device, as errors show it.
    current : callable
        It returns the current queue of the thread, on which the work goes; it also has the device and the context.
    cl : module
        ``pyopencl``.
    """

    def __init__(self, where: str, current: Callable[[], Any], cl: Any) -> None:
        self.where = where
        self._current = current
        self._cl = cl

    @property
    def _queue(self) -> Any:
        return self._current()

    def _check(self, array: Any, argument: str, *, write: bool) -> None:  # noqa: ARG002 -- no array of it is read-only
        if not isinstance(array, self._cl.array.Array) or array.context != self._queue.context:
            raise InvalidPointerError(self.where, array, f"{argument} is not memory of this device")
        if array.ndim != 1 or not array.flags.c_contiguous or array.offset % array.dtype.itemsize:
            raise InvalidPointerError(self.where, array, f"{argument} is not a contiguous, aligned row of numbers")

    def _overlap(self, x: Any, y: Any) -> bool:
        return overlap(x, y, self._cl)

    def _same(self, x: Any, y: Any) -> bool:
        return _place_of(x, self._cl) == _place_of(y, self._cl)

    def _copy(self, x: Any, y: Any) -> None:
        offsets = {"src_offset": x.offset, "dst_offset": y.offset, "byte_count": x.nbytes}
        self._cl.enqueue_copy(self._queue, y.base_data, x.base_data, **offsets).wait()


class MappedArithmetic(OpenCLArithmetic):
    """Arithmetic on ``pyopencl.array.Array`` that the host computes, over mapped buffers."""

    on_host = True

    def _each(self, name: str, alpha: float, *arrays: Any) -> None:
        self._on_host(partial(getattr(host_arithmetic(), name), alpha), arrays, write=True)

    def _total(self, name: str, *arrays: Any) -> float:
        return float(self._on_host(getattr(host_arithmetic(), name), arrays, write=False))

    def _on_host(self, compute: Callable[..., Any], arrays: tuple[Any, ...], *, write: bool) -> Any:
        """Map the arrays, and compute with their elements on the host; the last array may be written."""
        cl, mapped = self._cl, dict[int, Any]()
        try:
            for number, array in enumerate(arrays):
                if not number or not self._same(array, arrays[0]):  # the array that is written is not mapped twice
                    written = write and self._same(array, arrays[-1])
                    flags = cl.map_flags.READ | (cl.map_flags.WRITE if written else 0)
                    region = array.base_data, flags, array.offset, (array.nbytes,), np.uint8
                    mapped[number] = cl.enqueue_map_buffer(self._queue, *region)[0]
            return compute(*(mapped.get(number, mapped[0]).view(array.dtype) for number, array in enumerate(arrays)))
        finally:
            for area in mapped.values():
                area.base.release(self._queue).wait()


def overlap(first: Any, second: Any, cl: Any) -> bool:
    """Whether two arrays share bytes."""
    if first.base_data is None or second.base_data is None:
        return False
    (one, start), (other, begin) = _place_of(first, cl), _place_of(second, cl)
    return bool(one == other and start < begin + second.nbytes and begin < start + first.nbytes)


def _place_of(array: Any, cl: Any) -> tuple[Any, int]:
    """The buffer that was allocated, of which an array shows a part, and the offset of the array in it, in bytes."""
    buffer, offset = array.base_data, array.offset
    if parent := buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT):  # OpenCL has no sub-buffers of sub-buffers
        return parent, offset + buffer.get_info(cl.mem_info.OFFSET)
    return buffer, offset
