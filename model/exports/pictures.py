"""The state diagram in pixels and for print: CairoSVG paints the same picture as the SVG."""

from __future__ import annotations

import re
import struct
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..caffe import DEFAULT
from ..diagrams.diagram import diagram_svg
from ..diagrams.drawing import drawing
from ..diagrams.layered import least_size
from ..errors import InvalidExportError, MissingPackageError
from ..files import SIGN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..opening import AnyMachine

__all__ = ["pdf_picture", "png_picture"]

_PNG_HEADER = 33
"""Bytes of a PNG before the chunk with the sign: the signature, and the chunk with the size."""

_PIXELS = 2
"""Pixels of a PNG in each direction for each pixel of the SVG, which has 96 per inch."""

_MOST = 32_767
"""The most pixels in each direction that cairo can paint."""


def png_picture(edition: AnyMachine = DEFAULT, **options: Any) -> bytes:  # noqa: ANN401 -- passed on as they are
    """The picture in pixels; parameters and errors are those of `diagram_svg`.

    Raises
    ------
    InvalidExportError
        If the C library cairo is missing, or a trace is so long, or a machine so large, that cairo cannot paint so many
        pixels.
    MissingPackageError
        If CairoSVG is not installed.
    """
    shown = {name: options[name] for name in ("calls", "detail") if name in options}
    _check_room(least_size(drawing(edition, **shown)), "at least ", options)  # before a large machine is laid out
    text = diagram_svg(edition, **options)
    _check_room(max(map(float, re.findall(r' (?:width|height)="([\d.]+)"', text)[:2])), "", options)
    return _painted("png", text)


def _check_room(size: float, least: str, options: Mapping[str, object]) -> None:
    pixels = int(_PIXELS * size)
    if pixels > _MOST:
        raise InvalidExportError(
            f"a PNG has at most {_MOST:,} pixels in each direction, and this one would have {least}{pixels:,}: "
            f"{'the trace is too long' if options.get('trace') else 'the machine is too large'}; "
            "svg and pdf have room for it"
        )


def pdf_picture(edition: AnyMachine = DEFAULT, **options: Any) -> bytes:  # noqa: ANN401 -- passed on as they are
    """The picture for print, with the date at which it was made; parameters and errors are those of `diagram_svg`.

    Raises
    ------
    InvalidExportError
        If the C library cairo is missing.
    MissingPackageError
        If CairoSVG is not installed.
    """
    return _painted("pdf", diagram_svg(edition, **options))


def _painted(kind: str, text: str) -> bytes:
    try:
        painter: Any = import_module("cairosvg")
    except OSError as error:
        raise InvalidExportError(
            f"the format {kind} needs the C library cairo, which CairoSVG does not find"
        ) from error
    except Exception as error:
        raise MissingPackageError(f"the format {kind}", "cairosvg", "exports", error) from error
    if kind == "png":
        return _signed_png(painter.svg2png(bytestring=text.encode(), scale=_PIXELS))
    return _pdf(painter, text)


def _signed_png(picture: bytes) -> bytes:
    """The picture with the sign in a comment, a chunk after its header."""
    chunk = b"tEXtComment\0" + SIGN.encode()
    signed = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return picture[:_PNG_HEADER] + signed + picture[_PNG_HEADER:]


def _pdf(painter: Any, text: str) -> bytes:  # noqa: ANN401 -- a module without types
    """The picture with the sign among its properties, as its creator."""

    class Signed(painter.surface.PDFSurface):  # type: ignore[misc]
        def finish(self) -> None:
            self.cairo.set_metadata(painter.surface.cairo.PDF_METADATA_CREATOR, SIGN)
            super().finish()  # pyright: ignore[reportUnknownMemberType]

    picture: bytes = Signed.convert(bytestring=text.encode())
    return picture
