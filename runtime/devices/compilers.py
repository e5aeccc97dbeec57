"""Whether the compiler of an OpenCL device works: it is tried.  PyOpenCL is an argument; only ``opencl`` imports it."""

from __future__ import annotations

import re
import warnings
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Compiler", "compiler_of"]

_ANSWER = 42
"""The number that the kernel of the trial writes."""


class Compiler(NamedTuple):
    """Whether the compiler of a device works.

    Attributes
    ----------
    works : bool
    reason : str
        If it does not work, the first line of its message; otherwise empty.
    """

    works: bool
    reason: str


@cache
def compiler_of(device: Any, cl: Any) -> Compiler:
    """Whether the compiler of a device works: a kernel of one line is built and run, once in a process.

    Parameters
    ----------
    device : pyopencl.Device
    cl : module
        ``pyopencl``.
    """
    if find_spec("mako") is None:
        return Compiler(works=False, reason="PyOpenCL makes reductions with the package mako, which is not installed")
    # PyOpenCL's own kernels include it, and a driver may not find it: PoCL does not below a folder with a blank.
    source = f"#include <pyopencl-complex.h>\nkernel void answer(global int *to) {{ *to = {_ANSWER}; }}"
    context = cl.Context([device])
    queue, seen = cl.CommandQueue(context), np.zeros(1, np.int32)
    program = cl.Program(context, source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a warning of the compiler is no failure
            program.build()
        there = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, seen.nbytes)
        program.answer(queue, (1,), None, there)
        cl.enqueue_copy(queue, seen, there)
    except (cl.Error, OSError) as error:  # OSError where it can make no folder for what it has compiled
        # PyOpenCL's frames hold the error, and the error holds the frames: so the callers here would be kept alive too.
        error.__traceback__ = error.__context__ = None
        return Compiler(works=False, reason=_first_line(program, device, cl) or str(error).partition("\n")[0])
    if seen[0] != _ANSWER:
        return Compiler(works=False, reason=f"a kernel that had to write {_ANSWER} wrote {seen[0]}")
    return Compiler(works=True, reason="")


def _first_line(program: Any, device: Any, cl: Any) -> str:
    """The first line of a compiler's message, without the file name and the word with which every error begins."""
    try:
        log = program.get_build_info(device, cl.program_build_info.LOG)
    except cl.Error:
        return ""
    line = next((line.strip() for line in log.splitlines() if line.strip()), "")
    return re.sub(r"^((fatal )?error: |\S+:\d+:\d+: )+", "", line)
