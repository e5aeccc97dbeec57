"""`CUDAArithmetic`: CuPy's element-wise kernels and reductions, on the current stream.

These are taken and not cuBLAS, whose sums of ``float32`` are no wider than that, whose counts end at 2**31 in its older
interface, and which has no ``axpy`` for halves that rounds once.  CuPy reduces each row of a table with one block of
threads, so a vector is reduced as a table of many rows, and then their sums.  Halves are computed in ``float``;
``bfloat16`` travels as ``uint16`` and is the upper half of one.  CuPy is handed in: only ``cuda`` imports it.
"""

from __future__ import annotations

from typing import Any

from syncedmem.model import InvalidPointerError

from ..allocators.arithmetic import Arithmetic
from .kernels import ElementType, Kernels

__all__ = ["CUDAArithmetic"]

_ROWS = 1024
"""Rows that a vector is reduced as: several blocks for each multiprocessor of the largest GPU there is."""

_NARROW = """
__device__ inline float wide(unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }
__device__ inline unsigned short narrow(float value) {
  unsigned int bits = __float_as_uint(value);
  return value != value ? (bits >> 16) | 64 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
"""


_TYPES = {
    "float16": ElementType("float16", "float32", "(float){}", "float16({})"),
    "bfloat16": ElementType("uint16", "float32", "wide({})", "narrow({})"),
    "float32": ElementType("float32", "float32", "{}", "{}"),
    "float64": ElementType("float64", "float64", "{}", "{}"),
}


class CUDAArithmetic(Arithmetic):
    """Arithmetic on ``cupy.ndarray``.

    Parameters
    ----------
    where : str
        The device, as errors show it.
    ordinal : int
    cupy : module
    """

    def __init__(self, where: str, ordinal: int, cupy: Any) -> None:
        self.where = where
        self._ordinal = ordinal
        self._cupy = cupy
        self._kernels = Kernels(_TYPES, "double", self._elementwise, self._reduction)

    def _check(self, array: Any, argument: str, *, write: bool) -> None:  # noqa: ARG002 -- none of these is read-only
        if not isinstance(array, self._cupy.ndarray) or array.device.id != self._ordinal:
            raise InvalidPointerError(self.where, array, f"{argument} is not memory of this device")
        if array.ndim != 1 or not array.flags.c_contiguous or array.data.ptr % array.dtype.itemsize:
            raise InvalidPointerError(self.where, array, f"{argument} is not a contiguous, aligned row of numbers")

    def _overlap(self, x: Any, y: Any) -> bool:
        return bool(abs(x.data.ptr - y.data.ptr) < x.nbytes)

    def _same(self, x: Any, y: Any) -> bool:
        return bool(x.data.ptr == y.data.ptr)

    def _copy(self, x: Any, y: Any) -> None:
        with self._cupy.cuda.Device(self._ordinal):
            stream = self._cupy.cuda.get_current_stream()
            y.data.copy_from_device_async(x.data, x.nbytes, stream)
            stream.synchronize()

    def _each(self, name: str, alpha: float, *arrays: Any) -> None:
        dtype = arrays[0].dtype.name
        factor = self._kernels.factor(alpha, dtype)
        with self._cupy.cuda.Device(self._ordinal):
            # First, because what fails once the kernel is queued finds it done.
            kernel, stream = self._kernels.get(name, dtype), self._cupy.cuda.get_current_stream()
            kernel(factor, *(array.view(_TYPES[dtype].storage) for array in arrays))
            stream.synchronize()

    def _total(self, name: str, *arrays: Any) -> float:
        """A sum in two stages: of the rows of a table, and of their sums and what is left over."""
        dtype, full = arrays[0].dtype.name, arrays[0].size // _ROWS * _ROWS
        with self._cupy.cuda.Device(self._ordinal):
            kernel, stored = self._kernels.get(name, dtype), [array.view(_TYPES[dtype].storage) for array in arrays]
            total = kernel(*(array[full:] for array in stored))
            if full:
                total += kernel(*(array[:full].reshape(_ROWS, -1) for array in stored), axis=1).sum()
            return float(total.get())

    def _elementwise(self, name: str, dtype: str, arrays: tuple[str, ...], value: str) -> Any:
        # What a kernel writes is one of its outputs, and an output that is handed in can also be read.
        kind = _TYPES[dtype]
        *read, written = (f"{kind.storage} {array}" for array in arrays)
        takes, step = ", ".join([f"{kind.compute} alpha", *read]), f"{arrays[-1]} = {kind.store.format(value)}"
        return self._cupy.ElementwiseKernel(takes, written, step, _title(name, dtype), preamble=_NARROW)

    def _reduction(self, name: str, dtype: str, arrays: tuple[str, ...], term: str) -> Any:
        takes = ", ".join(f"{_TYPES[dtype].storage} {array}" for array in arrays)
        how = {"reduce_type": "double", "preamble": _NARROW}
        title = _title(name, dtype)
        return self._cupy.ReductionKernel(takes, "float64 total", term, "a + b", "total = a", "0.0", title, **how)


def _title(name: str, dtype: str) -> str:
    return f"syncedmem_{name}_{dtype}"
