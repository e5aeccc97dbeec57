"""Finds the line of a caller, for errors and reports that say where something was done."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path

from syncedmem.model.lines import Line

__all__ = ["line_of_caller"]

_ENDS = {"__exit__": "the end of the with block", "finalise": "the end of the object"}
"""What a program uses without naming it."""

_INSIDE = f"{Path(__file__).parents[1]}/"


@cache
def _libraries() -> tuple[str, ...]:
    """Where the files of installed packages and of Python itself are; it takes too long for an import."""
    return (*map(sysconfig.get_path, ("purelib", "platlib", "stdlib", "platstdlib")), "<")


def line_of_caller() -> Line:
    """The line outside of this package that is calling, and what it calls."""
    frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- the only way that costs little
    call = ""
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        call = frame.f_code.co_name
        frame = frame.f_back
    code, back = frame.f_code, frame.f_back
    outer = None
    if back is not None and code.co_name != "<module>" and not back.f_code.co_filename.startswith(_libraries()):
        outer = Line(code.co_name, back.f_code.co_filename, back.f_lineno)
    return Line(_ENDS.get(call, call), code.co_filename, frame.f_lineno, outer)
