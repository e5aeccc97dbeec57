"""The state diagram as a picture, in pixels and for print, made by other programs.

CairoSVG makes the same picture as the SVG.  If it is missing, Graphviz draws the DOT, with the same positions but
its own tips and letters.  Both are run as programs, so nothing is imported.  The same picture has the same bytes:
the date in a PDF is always 1970-01-01.  The files have a title, which names the edition; a PDF of Graphviz's has none.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from ctypes.util import find_library
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ..caffe import DEFAULT
from ..diagrams.diagram import diagram_svg
from ..diagrams.drawing import drawing
from ..errors import InvalidExportError
from .graphviz import DENSITY, dot, laid_out

if TYPE_CHECKING:
    from ..opening import AnyMachine

__all__ = ["pdf_picture", "png_picture"]

_PIXELS = 2
"""Pixels of a PNG in each direction for each pixel of the SVG, which has 96 per inch."""

_MOST = 32_767
"""The most pixels in each direction that cairo can paint."""

_HEAD = 33
"""The number of bytes of a PNG up to the end of its first chunk, which has the size."""

# The date cannot be replaced in the bytes: newer versions of cairo compress it.
_CAIRO = {
    "png": "cairosvg.svg2png(file_obj=sys.stdin.buffer, write_to=sys.stdout.buffer, scale=float(sys.argv[1]))",
    "pdf": """
import cairocffi
class Dated(cairocffi.PDFSurface):
    def __init__(self, *where):
        super().__init__(*where)
        self.set_metadata(cairocffi.PDF_METADATA_CREATE_DATE, "1970-01-01T00:00:00Z")
        self.set_metadata(cairocffi.PDF_METADATA_TITLE, sys.argv[2])
cairosvg.surface.PDFSurface.surface_class = Dated
cairosvg.svg2pdf(file_obj=sys.stdin.buffer, write_to=sys.stdout.buffer, scale=float(sys.argv[1]))
""",
}


def png_picture(edition: AnyMachine = DEFAULT, **options: Any) -> bytes:  # noqa: ANN401 -- passed on as they are
    """The picture in pixels; parameters and errors are those of `diagram_svg`.

    The file has a title, and its pixels per inch, so that a document shows it as large as the PDF.

    Raises
    ------
    InvalidExportError
        If a trace is so long that the picture would have more pixels than cairo can paint.
    MissingProgramError
        If there is neither CairoSVG nor Graphviz.
    """
    if not _has_cairo():
        return _described(laid_out(dot(edition, **options), "png"), DENSITY, drawing(edition).title)
    text = diagram_svg(edition, **options)
    pixels = int(_PIXELS * max(map(float, re.findall(r' (?:width|height)="([\d.]+)"', text)[:2])))
    if pixels > _MOST:
        raise InvalidExportError(
            f"a PNG has at most {_MOST:,} pixels in each direction, and this one would have {pixels:,}: "
            "the trace is too long; svg and pdf have room for it"
        )
    title = drawing(edition).title
    return _described(_painted(text, "png", _PIXELS, title), 96 * _PIXELS, title)


def pdf_picture(edition: AnyMachine = DEFAULT, **options: Any) -> bytes:  # noqa: ANN401 -- passed on as they are
    """The picture for print; parameters and errors are those of `diagram_svg`.

    Raises
    ------
    MissingProgramError
        If there is neither CairoSVG nor Graphviz.
    """
    if not _has_cairo():
        return _undated(laid_out(dot(edition, **options), "pdf"))
    return _painted(diagram_svg(edition, **options), "pdf", 1, drawing(edition).title)


def _has_cairo() -> bool:
    return bool(find_spec("cairosvg") and find_library("cairo"))


def _painted(text: str, kind: str, scale: int, title: str) -> bytes:
    command = [sys.executable, "-c", f"import sys, cairosvg\n{_CAIRO[kind]}", str(scale), title]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout  # noqa: S603 -- our own


def _undated(pdf: bytes) -> bytes:
    """A PDF of Graphviz's with another date of the same length, because the file contains offsets of its objects."""
    return re.sub(rb"\(D:\d{14}[^)]*\)", lambda date: b"(D:19700101000000Z)".ljust(len(date[0])), pdf)


def _described(png: bytes, density: int, title: str) -> bytes:
    """A PNG with its pixels per inch and its title, in two more chunks."""
    metre = round(density / 0.0254)
    more = _chunk(b"pHYs" + struct.pack(">IIB", metre, metre, 1)) + _chunk(b"tEXtTitle\0" + title.encode("latin-1"))
    return png[:_HEAD] + more + png[_HEAD:]


def _chunk(content: bytes) -> bytes:
    """A chunk of a PNG: its kind and its data, between their length and their checksum."""
    return struct.pack(">I", len(content) - 4) + content + struct.pack(">I", crc32(content))
