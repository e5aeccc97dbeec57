"""The strokes of every SVG that we paint: paths, boxes and texts, with colours that any renderer understands.

A colour is a presentation attribute, so a renderer needs neither a style sheet nor variables.  Each element also
names its colours in its classes.  The dark layer needs only these classes.  The style of a page, into which a drawing
is inlined, takes precedence over the attributes.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from .layout import SIZES, width_of
from .palette import Theme, dark_layer, palette_of

if TYPE_CHECKING:
    from .layout import Point
    from .palette import Palette

__all__ = ["SvgWriter", "framed"]

# First a font that Fontconfig can substitute, because some renderers read no further; then fonts of other systems.
_FONTS = "'DejaVu Sans Mono', ui-monospace, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace"
_SCALE = 1.25
"""Pixels per unit: the smallest text is then nearly 14 pixels high."""


class SvgWriter(NamedTuple):
    """A palette to paint with."""

    palette: Palette

    def path(  # noqa: PLR0913 -- what a path has in SVG
        self, d: str, stroke: str, *, fill: str = "none", width: float = 1.5, look: str = "", more: str = ""
    ) -> str:
        """A path in colours of the palette, by name."""
        outline = f'stroke-width="{width:g}" stroke-linejoin="round"{more}'
        return f'<path {self._colours(fill, stroke, look)} {outline} d="{d}"/>'

    def box(self, corner: Point, size: Point, fill: str, stroke: str, look: str, *, border: float = 1.5) -> str:  # noqa: PLR0913
        """A rectangle with a border and rounded corners, or with neither."""
        (x, y), (width, height) = corner, size
        rounded = "" if stroke == "none" else f' stroke-width="{border:g}" rx="8"'
        place = f'x="{x}" y="{y}" width="{width}" height="{height}"{rounded}'
        return f"<rect {self._colours(fill, stroke, look)} {place}/>"

    def text(self, at: Point, text: str, look: str, *, fill: str = "", bold: bool = False) -> str:
        """A text of one of the ``SIZES``; in every font it is as wide as `width_of` says."""
        weight = ' font-weight="bold"' if bold else ""
        size = f'font-size="{SIZES[look]}"{weight} textLength="{width_of(text, look)}"'
        colours = self._colours(fill or ("soft" if look == "step" else "ink"), "", look)
        return f'<text {colours} x="{at[0]}" y="{at[1]}" {size}>{escape(text)}</text>'

    def _colours(self, fill: str, stroke: str, look: str) -> str:
        asked = {use: name for use, name in (("fill", fill), ("stroke", stroke)) if name}
        shown = {use: "none" if name == "none" else getattr(self.palette, name) for use, name in asked.items()}
        names = [f"smd-{look}"] if look else []
        names += [f"smd-{use}-{name}" for use, name in asked.items() if name != "none"]
        return " ".join([f'class="{" ".join(names)}"', *(f'{use}="{colour}"' for use, colour in shown.items())])


def framed(body: str, size: tuple[int, int], title: str, about: str, theme: Theme) -> str:
    """A whole drawing: its paper, its name and its size in pixels.

    Parameters
    ----------
    body : str
        Elements, painted with the palette of the theme.
    size : tuple of int
        Width and height, in units of the drawing.
    title, about : str
        Texts for readers who do not see the drawing.
    theme : Theme
        ``AUTO`` adds the dark layer.
    """
    width, height = size
    layer = f"<style>{dark_layer()}</style>\n" if theme is Theme.AUTO else ""
    paper = SvgWriter(palette_of(theme)).box((0, 0), size, "paper", "none", "paper")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="smd" width="{_SCALE * width:g}" height="{_SCALE * height:g}"'
        f' viewBox="0 0 {width} {height}" role="img" font-family="{_FONTS}">\n<title>{escape(title)}</title>\n'
        f"<desc>{escape(about)}</desc>\n{layer}{paper}\n{body}\n</svg>\n"
    )
