"""Finds the line of a caller, for errors and reports that say where something was done."""

from __future__ import annotations

import sys
from pathlib import Path

from syncedmem.model.lines import Line

__all__ = ["line_of_caller"]

_ENDS = {"__exit__": "the end of the with block", "finalise": "the end of the object"}
"""What a program uses without naming it."""

_INSIDE = f"{Path(__file__).parents[1]}/"


def line_of_caller() -> Line:
    """The line outside of this package that is calling, and what it calls."""
    frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- the only way that costs little
    call = ""
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        call = frame.f_code.co_name
        frame = frame.f_back
    return Line(_ENDS.get(call, call), frame.f_code.co_filename, frame.f_lineno)
