"""The state diagram as a picture: what programs make of the drawing, in pixels and for print.

CairoSVG makes the very picture that the SVG is.  Where it is missing Graphviz draws the same places from the DOT, with
its own tips and letters.  Both are programs that are run, so nothing is imported.
"""

from __future__ import annotations

import subprocess
import sys
from ctypes.util import find_library
from importlib.util import find_spec
from typing import Any

from ..diamond import diamond_svg
from .graphviz import dot, laid_out

__all__ = ["pdf_picture", "png_picture"]

_PIXELS = {"png": 2, "pdf": 1}
"""In each direction, for each pixel of the SVG."""


def png_picture(edition: str = "caffe", **options: Any) -> bytes:  # noqa: ANN401 -- passed on as they are
    """The picture in pixels; parameters and errors are those of `diamond_svg`.

    Raises
    ------
    MissingProgramError
        If there is neither CairoSVG nor Graphviz.
    """
    return _made("png", edition, options)


def pdf_picture(edition: str = "caffe", **options: Any) -> bytes:  # noqa: ANN401 -- passed on as they are
    """The picture for print; parameters and errors are those of `png_picture`."""
    return _made("pdf", edition, options)


def _made(kind: str, edition: str, options: dict[str, Any]) -> bytes:
    if not (find_spec("cairosvg") and find_library("cairo")):
        return laid_out(dot(edition, **options), kind)
    command = [sys.executable, "-m", "cairosvg", "-", "--format", kind, "--scale", str(_PIXELS[kind])]
    text = diamond_svg(edition, **options).encode()
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout  # noqa: S603 -- our own words
