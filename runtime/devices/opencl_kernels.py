"""`KernelArithmetic`: PyOpenCL's element-wise kernels and reductions, for a device whose compiler works.

How an element is loaded and stored is text, so that one operation serves all types: halves need no extension
(``vload_half`` is part of OpenCL), and ``bfloat16``, the upper half of a ``float``, needs none either.  Sums are in
``double`` where the device has it, and in ``float`` where not.  PyOpenCL is handed in: only ``opencl`` imports it.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..allocators.arithmetic import Arithmetic
from .opencl_arithmetic import OpenCLArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KernelArithmetic"]


class _Type(NamedTuple):
    """How kernels see a type: as what it is stored, in what it is computed, and how to get there and back."""

    storage: str
    compute: str
    load: str = "{}[i]"
    store: str = "{}[i] = {}"


_TYPES = {
    "float16": _Type(
        "ushort", "float", "vload_half(i, (global const half *){})", "vstore_half_rte({1}, i, (global half *){0})"
    ),
    "bfloat16": _Type("ushort", "float", "as_float((uint){}[i] << 16)", "{}[i] = narrow({})"),
    "float32": _Type("float", "float"),
    "float64": _Type("double", "double"),
}

_NARROW = """
// Round to the nearest, and of two to the even one; a NaN stays one.
ushort narrow(float value) {
  uint bits = as_uint(value);
  return isnan(value) ? (bits >> 16) | 64 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
"""


class KernelArithmetic(OpenCLArithmetic):
    """Arithmetic on ``pyopencl.array.Array`` as kernels of the device.

    Parameters
    ----------
    where, queue, cl, overlap
        As for `OpenCLArithmetic`.
    fp64 : bool or None
        Whether to compute in ``double``; None if the device can.  Without it there is no arithmetic on ``float64``,
        and sums are no wider than ``float``.
    """

    def __init__(
        self, where: str, queue: Any, cl: Any, overlap: Callable[[Any, Any], bool], *, fp64: bool | None = None
    ) -> None:
        super().__init__(where, queue, cl, overlap)
        able = bool(queue.device.double_fp_config) if fp64 is None else fp64
        self.types = tuple(name for name in Arithmetic.types if able or name != "float64")
        self._wide = "double" if able else "float"
        self._kernels: dict[tuple[str, str], Any] = {}
        # A kernel keeps its arguments until it is queued, so two threads must not set them at once.
        self._lock = threading.Lock()

    def _each(self, name: str, alpha: float, *arrays: Any) -> None:
        with np.errstate(all="ignore"):
            factor = np.dtype(_TYPES[arrays[0].dtype.name].compute).type(alpha)
        with self._lock:
            event = self._kernel(name, arrays[0].dtype.name)(*map(_stored, arrays), factor, queue=self._queue)
            event.wait()

    def _total(self, name: str, *arrays: Any) -> float:
        with self._lock:
            return float(self._kernel(name, arrays[0].dtype.name)(*map(_stored, arrays), queue=self._queue).get())

    def _kernel(self, name: str, dtype: str) -> Any:
        """A kernel for a type, made when it is first needed."""
        if (name, dtype) not in self._kernels:
            make = self._elementwise if name in ("axpy", "scal") else self._reduction
            kind = _TYPES[dtype]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self._cl.CompilerWarning)  # a remark is no failure
                self._kernels[name, dtype] = make(name, kind, kind.load.format("x"), kind.load.format("y"))
        return self._kernels[name, dtype]

    def _elementwise(self, name: str, kind: _Type, x: str, y: str) -> Any:
        pointers = ("x", "y") if name == "axpy" else ("x",)
        takes = [*(f"__global {kind.storage} *{pointer}" for pointer in pointers), f"{kind.compute} alpha"]
        value = f"{y} + alpha * {x}" if name == "axpy" else f"alpha * {x}"
        make = self._cl.elementwise.ElementwiseKernel
        return make(
            self._queue.context, ", ".join(takes), kind.store.format(pointers[-1], value), name, preamble=_NARROW
        )

    def _reduction(self, name: str, kind: _Type, x: str, y: str) -> Any:
        wide = self._wide
        pointers = ("x", "y") if name == "dot" else ("x",)
        takes = ", ".join(f"__global const {kind.storage} *{pointer}" for pointer in pointers)
        term = f"({wide}){x} * ({wide}){y}" if name == "dot" else f"fabs(({wide}){x})"
        make = self._cl.reduction.ReductionKernel
        return make(self._queue.context, np.dtype(wide), "0", "a + b", term, takes, name, preamble=_NARROW)


def _stored(array: Any) -> Any:
    """An array as kernels see it: PyOpenCL's kernels take no halves, so theirs are two bytes."""
    return array.view(np.uint16) if array.dtype.itemsize < np.float32().itemsize else array
