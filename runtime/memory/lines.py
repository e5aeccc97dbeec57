"""The line of a caller, for errors and reports that say where something was done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["Line", "line_of"]

_INSIDE = f"{Path(__file__).parents[1]}/"


class Line(NamedTuple):
    """A call, and the line outside of this package that made it."""

    call: str
    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.call}() at {self.file}:{self.number}"


def line_of(call: str) -> Line:
    """The line that is calling."""
    frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- the only way that costs little
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return Line(call, frame.f_code.co_filename, frame.f_lineno)
