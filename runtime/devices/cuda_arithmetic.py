"""`CUDAArithmetic`: CuPy's element-wise kernels and reductions, on the current stream.

These are taken and not cuBLAS, whose sums of ``float32`` are no wider than that, whose counts end at 2**31 in its older
interface, and which has no ``axpy`` for halves that rounds once.  CuPy reduces each row of a table with one block of
threads, so a vector is reduced as a table of many rows, and then their sums.  Halves are computed in ``float``;
``bfloat16`` travels as ``uint16`` and is the upper half of one.  CuPy is handed in: only ``cuda`` imports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from syncedmem.model import InvalidPointerError

from ..allocators.arithmetic import Arithmetic

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


class _Type(NamedTuple):
    """How kernels see a type: as what it is stored, in what it is computed, and how to get there and back."""

    storage: str
    compute: str
    load: str = "{}"
    store: str = "{}"


_TYPES = {
    "float16": _Type("float16", "float32", "(float){}", "float16({})"),
    "bfloat16": _Type("uint16", "float32", "wide({})", "narrow({})"),
    "float32": _Type("float32", "float32"),
    "float64": _Type("float64", "float64"),
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
        self._kernels: dict[tuple[str, str], Any] = {}

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
        with np.errstate(all="ignore"):
            factor = np.dtype(_TYPES[dtype].compute).type(alpha)
        with self._cupy.cuda.Device(self._ordinal):
            # First, because what fails once the kernel is queued finds it done.
            kernel, stream = self._kernel(name, dtype), self._cupy.cuda.get_current_stream()
            kernel(factor, *(array.view(_TYPES[dtype].storage) for array in arrays))
            stream.synchronize()

    def _total(self, name: str, *arrays: Any) -> float:
        """A sum in two stages: of the rows of a table, and of their sums and what is left over."""
        dtype, full = arrays[0].dtype.name, arrays[0].size // _ROWS * _ROWS
        with self._cupy.cuda.Device(self._ordinal):
            kernel, stored = self._kernel(name, dtype), [array.view(_TYPES[dtype].storage) for array in arrays]
            total = kernel(*(array[full:] for array in stored))
            if full:
                total += kernel(*(array[:full].reshape(_ROWS, -1) for array in stored), axis=1).sum()
            return float(total.get())

    def _kernel(self, name: str, dtype: str) -> Any:
        """A kernel for a type, made when it is first needed.  Two threads may make it twice, which is no harm."""
        if (name, dtype) not in self._kernels:
            make = self._elementwise if name in ("axpy", "scal") else self._reduction
            kind = _TYPES[dtype]
            title = f"syncedmem_{name}_{dtype}"
            self._kernels[name, dtype] = make(name, kind, kind.load.format("x"), kind.load.format("y"), title)
        return self._kernels[name, dtype]

    def _elementwise(self, name: str, kind: _Type, x: str, y: str, title: str) -> Any:
        # What a kernel writes is one of its outputs, and an output that is handed in can also be read.
        takes, gives, value = f"{kind.compute} alpha", f"{kind.storage} x", f"alpha * {x}"
        if name == "axpy":
            takes, gives, value = f"{takes}, {kind.storage} x", f"{kind.storage} y", f"{y} + {value}"
        step = f"{gives[-1]} = {kind.store.format(value)}"
        return self._cupy.ElementwiseKernel(takes, gives, step, title, preamble=_NARROW)

    def _reduction(self, name: str, kind: _Type, x: str, y: str, title: str) -> Any:
        takes, term = f"{kind.storage} x", f"fabs((double)({x}))"
        if name == "dot":
            takes, term = f"{takes}, {kind.storage} y", f"(double)({x}) * (double)({y})"
        return self._cupy.ReductionKernel(
            takes, "float64 total", term, "a + b", "total = a", "0.0", title, reduce_type="double", preamble=_NARROW
        )
