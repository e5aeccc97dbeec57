"""`KernelVectors`: vector operations as OpenCL kernels, for a device whose compiler works (`compiler_of`).

One source serves all types: how an element is loaded and stored is a macro, so that halves need no extension
(``vload_half`` is part of OpenCL) and ``bfloat16``, the upper half of a ``float``, needs none either.  Sums are in
``double`` where the device has it, and in ``float`` where not.  PyOpenCL is handed in: only ``opencl`` imports it.
"""

from __future__ import annotations

import os
import threading
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .opencl import OpenCLVectors
from .operations import Vectors

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COMPILER_VARIABLE", "Compiler", "KernelVectors", "compiler_of", "try_compiler"]

COMPILER_VARIABLE = "SYNCEDMEM_OPENCL_COMPILER"
"""The environment variable that makes every compiler fail if it is ``fails``: a switch for tests."""

_ANSWER = 42
"""What the kernel writes by which a compiler is tried."""

_WORKERS = 64
"""Work items of a group; a power of two, because they add up in halves."""

_GROUPS = 64

_PLAIN = "#define LOAD(p, i) ((C)(p)[i])\n#define STORE(p, i, v) ((p)[i] = (v))\n"
_MACROS = {
    "float32": "typedef float T; typedef float C;\n" + _PLAIN,
    "float64": "typedef double T; typedef double C;\n" + _PLAIN,
    "float16": """typedef half T; typedef float C;
#define LOAD(p, i) vload_half(i, p)
#define STORE(p, i, v) vstore_half_rte(v, i, p)
""",
    # Round to the nearest, and of two to the even one; a NaN stays one.
    "bfloat16": """typedef ushort T; typedef float C;
ushort narrowed(float v) {
  uint bits = as_uint(v);
  return isnan(v) ? (bits >> 16) | 64 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
#define LOAD(p, i) as_float((uint)(p)[i] << 16)
#define STORE(p, i, v) ((p)[i] = narrowed(v))
""",
}

_KERNELS = """
kernel void axpy(ulong n, C alpha, global const T *x, ulong from, global T *y, ulong to) {
  x += from; y += to;
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0))
    STORE(y, i, LOAD(y, i) + alpha * LOAD(x, i));
}

kernel void scal(ulong n, C alpha, global T *x, ulong from) {
  x += from;
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0))
    STORE(x, i, alpha * LOAD(x, i));
}

void add_up(A mine, local A *sums, global A *partial) {
  size_t me = get_local_id(0);
  sums[me] = mine;
  for (size_t half_size = get_local_size(0) / 2; half_size; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < half_size) sums[me] += sums[me + half_size];
  }
  if (!me) partial[get_group_id(0)] = sums[0];
}

kernel void asum(ulong n, global const T *x, ulong from, local A *sums, global A *partial) {
  A mine = 0;
  x += from;
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) mine += fabs((A)LOAD(x, i));
  add_up(mine, sums, partial);
}

kernel void dot_product(ulong n, global const T *x, ulong from, global const T *y, ulong to,
                        local A *sums, global A *partial) {
  A mine = 0;
  x += from; y += to;
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) mine += (A)LOAD(x, i) * (A)LOAD(y, i);
  add_up(mine, sums, partial);
}
"""


class Compiler(NamedTuple):
    """Whether the compiler of an OpenCL device works.

    Attributes
    ----------
    works : bool
    reason : str
        If not, the first line of what it said.
    """

    works: bool
    reason: str


def compiler_of(device: Any, cl: Any) -> Compiler:
    """Whether the compiler of a device works: it is tried, once in a process.

    Parameters
    ----------
    device : pyopencl.Device
    cl : module
        ``pyopencl``.
    """
    return try_compiler(device, cl, broken=os.environ.get(COMPILER_VARIABLE) == "fails")


@cache
def try_compiler(device: Any, cl: Any, *, broken: bool) -> Compiler:
    """Build a kernel of one line, and run it; a broken one is refused by every compiler."""
    source = f"kernel void answer(global int *to) {{ *to = {_ANSWER}; }}\n" + "#error made to fail" * broken
    context = cl.Context([device])
    queue, seen = cl.CommandQueue(context), np.zeros(1, np.int32)
    program = cl.Program(context, source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a remark is no failure
            program.build()
        there = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, seen.nbytes)
        program.answer(queue, (1,), None, there)
        cl.enqueue_copy(queue, seen, there)
    except cl.Error as error:
        return Compiler(works=False, reason=_first_line(program, device, cl) or str(error).partition("\n")[0])
    if seen[0] != _ANSWER:
        return Compiler(works=False, reason=f"a kernel that had to write {_ANSWER} wrote {seen[0]}")
    return Compiler(works=True, reason="")


def _first_line(program: Any, device: Any, cl: Any) -> str:
    """The first line of what a compiler said, without the word that every error begins with."""
    try:
        log = program.get_build_info(device, cl.program_build_info.LOG)
    except cl.Error:
        return ""
    return next((line.strip() for line in log.splitlines() if line.strip()), "").removeprefix("error: ")


class KernelVectors(OpenCLVectors):
    """Vector operations on ``pyopencl.array.Array`` as kernels of the device.

    Parameters
    ----------
    where, queue, cl, overlap
        As for `OpenCLVectors`.
    fp64 : bool or None
        Whether to compute in ``double``; None if the device can.  Without it there is no arithmetic on ``float64``,
        and sums are no wider than ``float``.
    """

    def __init__(
        self, where: str, queue: Any, cl: Any, overlap: Callable[[Any, Any], bool], *, fp64: bool | None = None
    ) -> None:
        super().__init__(where, queue, cl, overlap)
        able = bool(queue.device.double_fp_config) if fp64 is None else fp64
        self.types = tuple(name for name in Vectors.types if able or name != "float64")
        self._sum = np.dtype(np.float64 if able else np.float32)
        self._programs: dict[str, dict[str, Any]] = {}
        # A kernel keeps its arguments until it is queued, so two threads must not set them at once.
        self._lock = threading.Lock()

    def _axpy(self, alpha: float, x: Any, y: Any) -> None:
        with self._lock:
            self._run("axpy", y, _typed(alpha, y.dtype), *_place(x), *_place(y)).wait()

    def _scal(self, alpha: float, x: Any) -> None:
        with self._lock:
            self._run("scal", x, _typed(alpha, x.dtype), *_place(x)).wait()

    def _asum(self, x: Any) -> float:
        return self._total("asum", x)

    def _dot(self, x: Any, y: Any) -> float:
        return self._total("dot_product", x, y)

    def _total(self, name: str, *vectors: Any) -> float:
        """The sum of what the groups of a kernel have summed."""
        cl, size = self._cl, self._sum.itemsize
        sums = np.empty(_GROUPS, self._sum)
        partial = cl.Buffer(self._queue.context, cl.mem_flags.WRITE_ONLY, sums.nbytes)
        places = [part for vector in vectors for part in _place(vector)]
        with self._lock:
            self._run(name, vectors[0], *places, cl.LocalMemory(_WORKERS * size), partial)
        cl.enqueue_copy(self._queue, sums, partial)
        with np.errstate(all="ignore"):
            return float(np.add.reduce(sums, dtype=np.float64))

    def _run(self, name: str, x: Any, *arguments: Any) -> Any:
        kernel = self._kernels(x.dtype.name)[name]
        return kernel(self._queue, (_GROUPS * _WORKERS,), (_WORKERS,), np.uint64(len(x)), *arguments)

    def _kernels(self, dtype: str) -> dict[str, Any]:
        """The kernels for a type, compiled when they are first needed."""
        if dtype not in self._programs:
            accumulator = "double" if self._sum == np.float64 else "float"
            source = f"typedef {accumulator} A;\n{_MACROS[dtype]}{_KERNELS}"
            program = self._cl.Program(self._queue.context, source).build()
            self._programs[dtype] = {kernel.function_name: kernel for kernel in program.all_kernels()}
        return self._programs[dtype]


def _place(array: Any) -> tuple[Any, Any]:
    """A vector as kernels take it: a buffer, and where in it the first element is."""
    return array.base_data, np.uint64(array.offset // array.dtype.itemsize)


def _typed(alpha: float, dtype: np.dtype[Any]) -> Any:
    with np.errstate(all="ignore"):
        return np.float64(alpha) if dtype == np.float64 else np.float32(alpha)
