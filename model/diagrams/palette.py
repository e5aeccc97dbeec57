"""The colours of every drawing: a light palette and a dark palette with the same names.

The palette is that of Okabe and Ito, whose colours colour-blind people can distinguish.  The warning is its reddish
purple, darkened so that text in it is legible.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ..spelling import Spelled
from .drawing import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COLOURS", "DARK", "LIGHT", "Palette", "Theme", "dark_layer", "palette_of"]


class Theme(Spelled, enum.StrEnum):
    """Which palette a drawing has: light, dark, or that of the page or the system where it is shown."""

    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"


class Palette(NamedTuple):
    """Colours as hexadecimal digits, by their use.

    `head` fills the box of every head (`inscription`).  `device` and `host` are the arrows that copy there.
    """

    ink: str
    soft: str
    faint: str
    paper: str
    head: str
    device: str
    host: str
    adopt: str
    miss: str


LIGHT = Palette("#1f2328", "#59636e", "#c9ced4", "#ffffff", "#f3f5f7", "#0072b2", "#d55e00", "#009e73", "#a3306d")
DARK = Palette("#e6edf3", "#a0aab5", "#3b444e", "#12161c", "#222a34", "#56b4e9", "#e69f00", "#2fc79b", "#e79cc4")

COLOURS: Mapping[Kind, str] = MappingProxyType(
    {Kind.DEVICE: "device", Kind.HOST: "host", Kind.NONE: "soft", Kind.ADOPT: "adopt"}
)
"""The name of the colour of each kind of line."""


def palette_of(theme: Theme) -> Palette:
    """The palette of the presentation attributes: dark for ``DARK``, else light."""
    return DARK if theme is Theme.DARK else LIGHT


_SCHEMES = {
    ".smd:root": "light dark",
    # Themes such as Furo and Material for MkDocs say in an attribute what the reader chose, and not in the page's
    # color-scheme.
    '[data-theme="light"] .smd,[data-md-color-scheme="default"] .smd': "light",
    '[data-theme="dark"] .smd,[data-md-color-scheme="slate"] .smd': "dark",
    '[data-theme="auto"] .smd': "light dark",
}
"""Where a drawing has which ``color-scheme``."""


def dark_layer() -> str:
    """CSS for SVG whose elements name their colours in classes: light or dark, as the place where it is shown.

    A file of its own follows the reader's system.  In a page a drawing has the ``color-scheme`` of the page, or what an
    attribute of the theme says, so it changes with the page's own switch.  Programs that do not know ``light-dark()``
    leave all rules out, and show the attributes.
    """
    rules = (
        f".smd .smd-{use}-{name}{{{use}:light-dark({light},{dark})}}"
        for (name, light), dark in zip(LIGHT._asdict().items(), DARK, strict=True)
        for use in ("fill", "stroke")
    )
    schemes = [f"{where}{{color-scheme:{scheme}}}" for where, scheme in _SCHEMES.items()]
    return "@supports (color:light-dark(#000,#fff)){\n" + "\n".join((*schemes, *rules)) + "\n}\n"
