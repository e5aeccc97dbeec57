"""`KernelArithmetic`: PyOpenCL's element-wise kernels and reductions, for a device whose compiler works.

Halves need no extension: ``vload_half`` is part of OpenCL, and a ``bfloat16`` is the upper half of a ``float``.  Sums
are computed in ``double`` if the device has it, and otherwise in ``float``.  PyOpenCL is an argument; only ``opencl``
imports it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..allocators.arithmetic import Arithmetic
from ..allocators.forking import fork_safe_lock
from .kernels import ElementType, Kernels
from .opencl_arithmetic import OpenCLArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KernelArithmetic"]


_TYPES = {
    "float16": ElementType(
        "ushort", "float", "vload_half(i, (global const half *){})", "vstore_half_rte({1}, i, (global half *){0})"
    ),
    "bfloat16": ElementType("ushort", "float", "as_float((uint){}[i] << 16)", "{}[i] = narrow({})"),
    "float32": ElementType("float", "float", "{}[i]", "{}[i] = {}"),
    "float64": ElementType("double", "double", "{}[i]", "{}[i] = {}"),
}

_NARROW = """
// Round to the nearest value, and a tie to the even one; a NaN stays a NaN.
ushort narrow(float value) {
  uint bits = as_uint(value);
  return isnan(value) ? (bits >> 16) | 64 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
"""


class KernelArithmetic(OpenCLArithmetic):
    """Arithmetic on ``pyopencl.array.Array`` as kernels of the device.

    Parameters
    ----------
    where, current, cl
        As for `OpenCLArithmetic`.

    On a device without ``double`` there is no arithmetic on ``float64``, and sums are computed in ``float``.
    """

    def __init__(self, where: str, current: Callable[[], Any], cl: Any) -> None:
        super().__init__(where, current, cl)
        able = bool(self._queue.device.double_fp_config)
        self.types: tuple[str, ...] = tuple(name for name in Arithmetic.types if able or name != "float64")
        self._wide = "double" if able else "float"
        self._kernels = Kernels(_TYPES, self._wide, self._elementwise, self._reduction)
        # A kernel stores its arguments until it is queued, so two threads must not set them at the same time.
        self._lock = fork_safe_lock()

    def _each(self, name: str, alpha: float, *arrays: Any) -> None:
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"):
            factor = np.dtype(_TYPES[dtype.name].compute).type(alpha)
        # What a kernel writes through one buffer is undefined in another one over the same bytes.
        rows = [arrays[-1] if self._same(array, arrays[-1]) else array for array in arrays]
        with self._lock:
            kernel, queue = self._kernel(name, dtype), self._queue
            try:
                kernel(*map(_stored, rows), factor, queue=queue).wait()
            except BaseException:  # an interrupt can come when the kernel is queued, and nothing says its event
                queue.finish()
                raise

    def _total(self, name: str, *arrays: Any) -> float:
        with self._lock:
            return float(self._kernel(name, arrays[0].dtype)(*map(_stored, arrays), queue=self._queue).get())

    def _kernel(self, name: str, dtype: np.dtype[Any]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._cl.CompilerWarning)  # a warning of the compiler is no failure
            return self._kernels.get(name, dtype)

    def _elementwise(self, name: str, dtype: str, arrays: tuple[str, ...], value: str) -> Any:
        kind = _TYPES[dtype]
        takes = ", ".join([*(f"__global {kind.storage} *{array}" for array in arrays), f"{kind.compute} alpha"])
        make = self._cl.elementwise.ElementwiseKernel
        return make(self._queue.context, takes, kind.store.format(arrays[-1], value), name, preamble=_NARROW)

    def _reduction(self, name: str, dtype: str, arrays: tuple[str, ...], term: str) -> Any:
        takes = ", ".join(f"__global const {_TYPES[dtype].storage} *{array}" for array in arrays)
        make = self._cl.reduction.ReductionKernel
        return make(self._queue.context, np.dtype(self._wide), "0", "a + b", term, takes, name, preamble=_NARROW)


def _stored(array: Any) -> Any:
    """An array as kernels take it: PyOpenCL's kernels take no halves, so these are passed as two-byte integers."""
    return array.view(np.uint16) if array.dtype.itemsize < np.float32().itemsize else array
