"""`CUDAArithmetic`: CuPy's element-wise kernels and reductions, on the current stream.

cuBLAS is not used, for three reasons: it sums ``float32`` in ``float32``; its older interface counts at most 2**31
elements; and it has no ``axpy`` for halves that rounds only once.  CuPy reduces each row of a table with one block of
threads.  So a vector is reduced as a table of many rows, and then their sums are reduced.  Halves are computed in
``float``.  A ``bfloat16`` is passed as ``uint16``; it is the upper half of a ``float``.  Subnormal numbers count as
they are, which they do not in CuPy's own kernels.  CuPy is an argument; only ``cuda`` imports it.
"""

from __future__ import annotations

from typing import Any

from syncedmem.model import InvalidPointerError

from ..allocators.arithmetic import Arithmetic
from .kernels import ElementType, Kernels

__all__ = ["CUDAArithmetic"]

_ROWS = 1024
"""The rows of the table as which a vector is reduced: several blocks for each multiprocessor of the largest GPU."""

_PREAMBLE = """
// CuPy compiles all kernels with -ftz=true, which makes the compiler's own operations on floats take subnormal numbers
// for zero.  Instructions that are written out keep them.  A stand-in for the GPU has no such option, and no such
// instructions.  What loads an element has no x and no y in its name: CuPy's reductions with CUB put other names in the
// place of these letters.
#ifdef __CUDA_ARCH__
__device__ inline float times(float a, float b) {
  float c; asm("mul.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c;
}
__device__ inline float plus(float a, float b) {
  float c; asm("add.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c;
}
__device__ inline double widened(float a) { double b; asm("cvt.f64.f32 %0, %1;" : "=d"(b) : "f"(a)); return b; }
#else
inline float times(float a, float b) { return a * b; }
inline float plus(float a, float b) { return a + b; }
inline double widened(float a) { return a; }
#endif

struct Precise {
  float value;
  __device__ explicit Precise(float number) : value(number) {}
  __device__ explicit operator double() const { return widened(value); }
};
__device__ inline Precise operator*(float a, Precise x) { return Precise(times(a, x.value)); }
__device__ inline Precise operator+(Precise x, Precise y) { return Precise(plus(x.value, y.value)); }

__device__ inline float wide(unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }
__device__ inline unsigned short narrow(float value) {
  unsigned int bits = __float_as_uint(value);
  return value != value ? (bits >> 16) | 64 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
"""

_TYPES = {
    # The product and the sum of halves are no subnormal floats that matter: a half is at least 2**-24.
    "float16": ElementType("float16", "float32", "(float){}", "float16({})"),
    "bfloat16": ElementType("uint16", "float32", "Precise(wide({}))", "narrow(({}).value)"),
    "float32": ElementType("float32", "float32", "Precise({})", "({}).value"),
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

    def _check(self, array: Any, argument: str, *, write: bool) -> None:  # noqa: ARG002 -- no array of it is read-only
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
            # The kernel is compiled and the stream found first: an error after the kernel was queued would be too late.
            kernel, stream = self._kernels.get(name, dtype), self._cupy.cuda.get_current_stream()
            kernel(factor, *(array.view(_TYPES[dtype].storage) for array in arrays))
            stream.synchronize()

    def _total(self, name: str, *arrays: Any) -> float:
        """A sum in two stages: first the rows of a table, then their sums and the elements that fill no row."""
        dtype, full = arrays[0].dtype.name, arrays[0].size // _ROWS * _ROWS
        with self._cupy.cuda.Device(self._ordinal):
            kernel, stored = self._kernels.get(name, dtype), [array.view(_TYPES[dtype].storage) for array in arrays]
            total = kernel(*(array[full:] for array in stored))
            if full:
                total += kernel(*(array[:full].reshape(_ROWS, -1) for array in stored), axis=1).sum()
            return float(total.get())

    def _elementwise(self, name: str, dtype: str, arrays: tuple[str, ...], value: str) -> Any:
        # A kernel writes only to its outputs.  An output that is passed in can also be read.
        kind = _TYPES[dtype]
        *read, written = (f"{kind.storage} {array}" for array in arrays)
        takes, step = ", ".join([f"{kind.compute} alpha", *read]), f"{arrays[-1]} = {kind.store.format(value)}"
        return self._cupy.ElementwiseKernel(takes, written, step, _title(name, dtype), preamble=_PREAMBLE)

    def _reduction(self, name: str, dtype: str, arrays: tuple[str, ...], term: str) -> Any:
        takes = ", ".join(f"{_TYPES[dtype].storage} {array}" for array in arrays)
        how = {"reduce_type": "double", "preamble": _PREAMBLE}
        title = _title(name, dtype)
        return self._cupy.ReductionKernel(takes, "float64 total", term, "a + b", "total = a", "0.0", title, **how)


def _title(name: str, dtype: str) -> str:
    return f"syncedmem_{name}_{dtype}"
