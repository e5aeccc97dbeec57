"""`CUDAVectors`: vector operations as CuPy's kernels, on the current stream.

``ElementwiseKernel`` and ``ReductionKernel`` are taken and not cuBLAS, whose sums of ``float32`` are no wider than
that, whose counts end at 2**31 in its older interface, and which has no ``axpy`` for halves that rounds once.  All
of it is bound by memory, not by arithmetic.  Halves are computed in ``float``; ``bfloat16`` travels as ``uint16`` and
is the upper half of one.  CuPy is handed in: only ``cuda`` imports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from syncedmem.model import InvalidPointerError

from .operations import Vectors

__all__ = ["CUDAVectors"]

_BFLOAT16 = """
__device__ inline float wide(unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }
__device__ inline unsigned short narrow(float value) {
  unsigned int bits = __float_as_uint(value);
  return value != value ? (bits >> 16) | 64 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
"""


class _Type(NamedTuple):
    """How a type is computed with: what kernels see of it, what they compute in, and how to get there and back."""

    storage: str
    compute: str
    load: str
    store: str
    preamble: str = ""


_TYPES = {
    "float16": _Type("float16", "float32", "(float){}", "float16({})"),
    "bfloat16": _Type("uint16", "float32", "wide({})", "narrow({})", _BFLOAT16),
    "float32": _Type("float32", "float32", "{}", "{}"),
    "float64": _Type("float64", "float64", "{}", "{}"),
}


class CUDAVectors(Vectors):
    """Vector operations on ``cupy.ndarray``.

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

    def _axpy(self, alpha: float, x: Any, y: Any) -> None:
        self._elementwise("axpy", alpha, x, y)

    def _scal(self, alpha: float, x: Any) -> None:
        self._elementwise("scal", alpha, x)

    def _elementwise(self, name: str, alpha: float, *vectors: Any) -> None:
        kind = _TYPES[vectors[0].dtype.name]
        with np.errstate(all="ignore"):
            factor = np.dtype(kind.compute).type(alpha)
        with self._cupy.cuda.Device(self._ordinal):
            stored = [vector.view(kind.storage) for vector in vectors]
            self._kernel(name, vectors[0].dtype.name)(factor, *stored)
            self._cupy.cuda.get_current_stream().synchronize()

    def _asum(self, x: Any) -> float:
        return self._total("asum", x)

    def _dot(self, x: Any, y: Any) -> float:
        return self._total("dot", x, y)

    def _total(self, name: str, *vectors: Any) -> float:
        kind = _TYPES[vectors[0].dtype.name]
        with self._cupy.cuda.Device(self._ordinal):
            stored = [vector.view(kind.storage) for vector in vectors]
            return float(self._kernel(name, vectors[0].dtype.name)(*stored).get())

    def _copy(self, x: Any, y: Any) -> None:
        with self._cupy.cuda.Device(self._ordinal):
            stream = self._cupy.cuda.get_current_stream()
            y.data.copy_from_device_async(x.data, x.nbytes, stream)
            stream.synchronize()

    def _kernel(self, name: str, dtype: str) -> Any:
        """A kernel for a type, made when it is first needed.  Two threads may make it twice, which is no harm."""
        if (name, dtype) not in self._kernels:
            self._kernels[name, dtype] = self._made(name, dtype)
        return self._kernels[name, dtype]

    def _made(self, name: str, dtype: str) -> Any:
        kind = _TYPES[dtype]
        x, y = kind.load.format("x"), kind.load.format("y")
        title = f"syncedmem_{name}_{dtype}"
        # What a kernel writes is one of its outputs, and an output that is handed in can also be read.
        if name == "axpy":
            types = f"{kind.compute} alpha, {kind.storage} x", f"{kind.storage} y"
            step = f"y = {kind.store.format(f'{y} + alpha * {x}')}"
            return self._cupy.ElementwiseKernel(*types, step, title, preamble=kind.preamble)
        if name == "scal":
            types = f"{kind.compute} alpha", f"{kind.storage} x"
            step = f"x = {kind.store.format(f'alpha * {x}')}"
            return self._cupy.ElementwiseKernel(*types, step, title, preamble=kind.preamble)
        takes, term = f"{kind.storage} x", f"fabs((double)({x}))"
        if name == "dot":
            takes, term = f"{takes}, {kind.storage} y", f"(double)({x}) * (double)({y})"
        return self._cupy.ReductionKernel(
            takes,
            "float64 total",
            term,
            "a + b",
            "total = a",
            "0.0",
            title,
            reduce_type="double",
            preamble=kind.preamble,
        )
