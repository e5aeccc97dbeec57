"""The colours of every drawing: one palette for the light, one for the dark, by the same names.

Okabe and Ito's palette, which the colour-blind tell apart; the warning is its reddish purple, darkened until text in
it is legible.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .drawing import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COLOURS", "DARK", "LIGHT", "Palette", "Theme", "dark_layer", "palette_of"]


class Theme(enum.StrEnum):
    """Which palette a drawing has: as the reader's system wishes, where it can be asked, or one of the two."""

    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"


class Palette(NamedTuple):
    """Colours as hexadecimal digits, by what they are for."""

    ink: str
    soft: str
    faint: str
    paper: str
    head: str
    gpu: str
    cpu: str
    adopt: str
    miss: str


LIGHT = Palette("#1f2328", "#59636e", "#c9ced4", "#ffffff", "#f3f5f7", "#0072b2", "#d55e00", "#009e73", "#a3306d")
DARK = Palette("#e6edf3", "#a0aab5", "#3b444e", "#12161c", "#222a34", "#56b4e9", "#e69f00", "#2fc79b", "#e79cc4")

COLOURS: Mapping[Kind, str] = MappingProxyType(
    {Kind.GPU: "gpu", Kind.CPU: "cpu", Kind.NONE: "soft", Kind.ADOPT: "adopt"}
)
"""The name of the colour of each kind of line."""


def palette_of(theme: Theme) -> Palette:
    """The palette that is written down: the light one, unless the dark one alone is wanted."""
    return DARK if theme is Theme.DARK else LIGHT


def dark_layer() -> str:
    """Style for SVG whose elements name their colours in classes: dark where the reader's system is."""
    rules = (
        f".smd .smd-{use}-{name}{{{use}:{colour}}}"
        for name, colour in DARK._asdict().items()
        for use in ("fill", "stroke")
    )
    return "@media (prefers-color-scheme:dark){\n" + "\n".join(rules) + "\n}\n"
