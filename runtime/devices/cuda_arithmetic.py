"""`CUDAArithmetic`: kernels that are as fast as the memory, on CuPy's current stream.

cuBLAS is not used, for three reasons: it sums ``float32`` in ``float32``; its older interface counts at most 2**31
elements; and it has no ``axpy`` for halves that rounds only once.  CuPy's own kernels are not used either: a thread of
theirs loads one element at a time, which for halves is a fifth of the speed of the memory; and they take subnormal
numbers for zero.

A thread loads packs of 16 bytes, several before it uses the first.  A sum has two stages: each block of threads adds up
in ``double`` what its threads have read, and the host adds up the sums of the blocks.  A ``bfloat16`` is the upper half
of a ``float``.  CuPy is an argument; only ``cuda`` imports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from syncedmem.model import InvalidPointerError

from ..allocators.arithmetic import Arithmetic
from .kernels import ElementType, Kernels

__all__ = ["CUDAArithmetic"]

_PACK = 16
"""In bytes: the longest load of a thread."""

_BLOCKS = 8
"""A sum has at most so many blocks of threads for each multiprocessor."""


class _Shape(NamedTuple):
    """How a kernel divides its work: the threads of a block, and the packs of an array that each has under way."""

    threads: int
    loads: int

    def blocks(self, byte_size: int) -> int:
        """How many blocks load an array of so many bytes if each thread has loaded so many packs."""
        return -(-byte_size // (_PACK * self.threads * self.loads))


# No other shape that was tried on an H200 is more than a few percent faster.
_EACH_SHAPE, _TOTAL_SHAPE = _Shape(128, 2), _Shape(256, 4)

_PREAMBLE = """
// CuPy compiles all kernels with -ftz=true, which makes the compiler's own operations on floats take subnormal numbers
// for zero.  Instructions that are written out keep them.  A stand-in for the GPU has no such option, and no such
// instructions.
#ifdef __CUDA_ARCH__
__device__ inline float times(float a, float b) {
  float c; asm("mul.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c;
}
__device__ inline float plus(float a, float b) {
  float c; asm("add.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c;
}
__device__ inline double widened(float a) { double b; asm("cvt.f64.f32 %0, %1;" : "=d"(b) : "f"(a)); return b; }
__device__ inline float narrowed(double a) { float b; asm("cvt.rn.f32.f64 %0, %1;" : "=f"(b) : "d"(a)); return b; }
__device__ inline float of_half(unsigned short a) { float b; asm("cvt.f32.f16 %0, %1;" : "=f"(b) : "h"(a)); return b; }
__device__ inline unsigned short to_half(float a) {
  unsigned short b; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(a)); return b;
}
#else
inline float times(float a, float b) { return a * b; }
inline float plus(float a, float b) { return a + b; }
inline double widened(float a) { return a; }
inline float narrowed(double a) { return a; }
inline float of_half(unsigned short a) { return __half2float(a); }
inline unsigned short to_half(float a) { return __float2half_rn(a); }
#endif
__device__ inline float of_bfloat(unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }
__device__ inline unsigned short to_bfloat(float value) {
  unsigned int bits = __float_as_uint(value);
  return value != value ? (bits >> 16) | 64 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

struct Precise {
  float value;
  __device__ explicit Precise(float number) : value(number) {}
  __device__ explicit operator double() const { return widened(value); }
};
__device__ inline Precise operator*(float a, Precise x) { return Precise(times(a, x.value)); }
__device__ inline Precise operator+(Precise x, Precise y) { return Precise(plus(x.value, y.value)); }
__device__ inline float rounded(double alpha, float) { return narrowed(alpha); }
__device__ inline double rounded(double alpha, double) { return alpha; }

// The compiler loads and stores a pack with one instruction.
const int WIDTH = PACK / sizeof(Stored);
struct alignas(PACK) Pack { Stored at[WIDTH]; };

// Two arrays as packs, with the loose elements before and after them.  If they begin at different places of a pack, all
// elements are loose.  Both may be the same array.
typedef unsigned long long Index;
struct Rows {
  Index lead, packs, loose;
  __device__ Rows(const Stored *x, const Stored *y, Index count) {
    bool apart = ((Index)x - (Index)y) % PACK;
    lead = (PACK - (Index)y % PACK) % PACK / sizeof(Stored);
    if (apart || lead > count) lead = count;
    packs = (count - lead) / WIDTH;
    loose = count - packs * WIDTH;
  }
  __device__ Index place(Index number) const { return number < lead ? number : number + packs * WIDTH; }
};

// The packs of both arrays that a thread has under way.
struct Loaded {
  Pack x[LOADS], y[LOADS];
  __device__ Loaded(const Pack *xs, const Pack *ys, Index first, Index packs) {
#pragma unroll
    for (int load = 0; load < LOADS; load++)
      if (first + load * THREADS < packs) {
        x[load] = xs[first + load * THREADS];
        if (ARRAYS == 2) y[load] = ys[first + load * THREADS];
      }
  }
};
"""

_EACH = """
extern "C" __global__ void KERNEL(double factor, const Stored *xs, Stored *ys, Index count) {
  const Computed alpha = rounded(factor, Computed());
  const Rows rows(xs, ys, count);
  const Pack *from = (const Pack *)(xs + rows.lead);
  Pack *to = (Pack *)(ys + rows.lead);
  const Index first = (Index)blockIdx.x * THREADS * LOADS + threadIdx.x;
  Loaded loaded(from, to, first, rows.packs);
#pragma unroll
  for (int load = 0; load < LOADS; load++)
    if (first + load * THREADS < rows.packs) {
      Pack &x = loaded.x[load], &y = loaded.y[load];
#pragma unroll
      for (int i = 0; i < WIDTH; i++) y.at[i] = VALUE(x.at[i], y.at[i]);
      to[first + load * THREADS] = y;
    }
  for (Index number = (Index)blockIdx.x * THREADS + threadIdx.x; number < rows.loose; number += gridDim.x * THREADS) {
    const Index i = rows.place(number);
    ys[i] = VALUE(xs[i], ys[i]);
  }
}
"""

_TOTAL = """
extern "C" __global__ void KERNEL(const Stored *xs, const Stored *ys, Index count, double *totals) {
  const Rows rows(xs, ys, count);
  const Pack *one = (const Pack *)(xs + rows.lead), *two = (const Pack *)(ys + rows.lead);
  const Index step = (Index)gridDim.x * THREADS;
  double total = 0;
  for (Index first = (Index)blockIdx.x * THREADS * LOADS + threadIdx.x; first < rows.packs; first += step * LOADS) {
    const Loaded loaded(one, two, first, rows.packs);
#pragma unroll
    for (int load = 0; load < LOADS; load++)
      if (first + load * THREADS < rows.packs)
#pragma unroll
        for (int i = 0; i < WIDTH; i++) total += VALUE(loaded.x[load].at[i], loaded.y[load].at[i]);
  }
  for (Index number = (Index)blockIdx.x * THREADS + threadIdx.x; number < rows.loose; number += step) {
    const Index i = rows.place(number);
    total += VALUE(xs[i], ys[i]);
  }
  __shared__ double sums[THREADS];
  sums[threadIdx.x] = total;
  for (int half = THREADS / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (!threadIdx.x) totals[blockIdx.x] = sums[0];
}
"""

_TYPES = {
    # The product and the sum of halves are no subnormal floats that matter: a half is at least 2**-24.
    "float16": ElementType("unsigned short", "float", "Precise(of_half({}))", "to_half(({}).value)"),
    "bfloat16": ElementType("unsigned short", "float", "Precise(of_bfloat({}))", "to_bfloat(({}).value)"),
    "float32": ElementType("float", "float", "Precise({})", "({}).value"),
    "float64": ElementType("double", "double", "{}", "{}"),
}


class CUDAArithmetic(Arithmetic):
    """Arithmetic on ``cupy.ndarray``.

    Parameters
    ----------
    where : str
        The device, as errors show it.
    ordinal : int
    multiprocessors : int
        How many the device has.
    cupy : module
    """

    def __init__(self, where: str, ordinal: int, multiprocessors: int, cupy: Any) -> None:
        self.where = where
        self._ordinal = ordinal
        self._most_blocks = multiprocessors * _BLOCKS
        self._cupy = cupy
        self._kernels = Kernels(_TYPES, "double", self._elementwise, self._reduction)

    def _check(self, array: Any, argument: str, *, write: bool) -> None:  # noqa: ARG002 -- no array of it is read-only
        if not isinstance(array, self._cupy.ndarray) or array.data.device_id != self._ordinal:
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
        if self._cupy.cuda.runtime.getDevice() != self._ordinal:
            with self._cupy.cuda.Device(self._ordinal):
                self._each(name, alpha, *arrays)
            return
        x, y = arrays[0], arrays[-1]
        blocks = _EACH_SHAPE.blocks(y.nbytes)  # so many are always allowed: the limit is beyond 8 TiB
        # The kernel is compiled and the stream found first: an error after the kernel was queued would be too late.
        kernel, stream = self._kernels.get(name, y.dtype), self._cupy.cuda.get_current_stream()
        try:
            kernel((blocks,), (_EACH_SHAPE.threads,), (alpha, x, y, y.size))
        finally:  # an interrupt can come when the kernel is queued
            stream.synchronize()

    def _total(self, name: str, *arrays: Any) -> float:
        x, y = arrays[0], arrays[-1]
        if name == "dot" and self._same(x, y):
            name = "sumsq"  # which loads and widens each element once
        blocks = min(_TOTAL_SHAPE.blocks(x.nbytes), self._most_blocks)
        with self._cupy.cuda.Device(self._ordinal):
            kernel, totals = self._kernels.get(name, x.dtype), self._cupy.empty(blocks, np.float64)
            kernel((blocks,), (_TOTAL_SHAPE.threads,), (x, y, x.size, totals))
            with np.errstate(all="ignore"):
                return float(totals.get().sum())

    def _elementwise(self, name: str, dtype: str, arrays: tuple[str, ...], value: str) -> Any:
        return self._kernel(name, dtype, arrays, _TYPES[dtype].store.format(value), _EACH, _EACH_SHAPE)

    def _reduction(self, name: str, dtype: str, arrays: tuple[str, ...], term: str) -> Any:
        return self._kernel(name, dtype, arrays, term, _TOTAL, _TOTAL_SHAPE)

    def _kernel(self, name: str, dtype: str, arrays: tuple[str, ...], value: str, body: str, shape: _Shape) -> Any:  # noqa: PLR0913
        kind, title = _TYPES[dtype], f"syncedmem_{name}_{dtype}"
        given = {
            "THREADS": shape.threads,
            "PACK": _PACK,
            "LOADS": shape.loads,
            "ARRAYS": len(arrays),
            "VALUE(x, y)": f"({value})",
        }
        defined = "".join(f"#define {value} {text}\n" for value, text in given.items())
        types = f"typedef {kind.storage} Stored;\ntypedef {kind.compute} Computed;\n"
        # The function on the current device, which costs less to call than what finds it for any device.
        return self._cupy.RawKernel(defined + types + _PREAMBLE + body.replace("KERNEL", title), title).kernel
