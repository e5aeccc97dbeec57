"""Arrows and the words beside them as SVG: bullets, ticks and crosses, numbers of a trace."""

from __future__ import annotations

from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .arrangement import taken
from .drawing import Kind
from .layout import block_at, indent_of, width_of
from .palette import COLOURS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .arrangement import Arrow, Box
    from .drawing import Drawing, Line
    from .layout import Anchor, Point
    from .svg import SvgWriter
    from .trace import Trace

__all__ = ["BULLETS", "FINAL", "REFUSED", "Inscriber", "Item", "tip_at"]

# Bullets and tips show the kind without colour: they are filled or hollow, and point to the side that is copied to.
BULLETS: Mapping[Kind, str] = MappingProxyType(
    {Kind.DEVICE: "M0-4L8 0L0 4Z", Kind.HOST: "M8-4L0 0L8 4Z", Kind.NONE: "M1 0H7", Kind.ADOPT: "M4-4L8 0L4 4L0 0Z"}
)
FINAL = "M4-5A5 5 0 1 1 3.9-5ZM4-2A2 2 0 1 1 3.9-2Z"
REFUSED = "M4-5A5 5 0 1 1 3.9-5ZM1 3L7-3"


class Item(NamedTuple):
    """A line of text with its bullet, if any, and the colour of the bullet."""

    texts: list[tuple[str, str]]
    bullet: str
    colour: str
    covered: bool | None = None
    seen: str = ""

    @property
    def indent(self) -> int:
        """How far to the right of the bullet the text begins."""
        return indent_of(bullet=bool(self.bullet), mark=self.covered is not None)

    @property
    def width(self) -> int:
        """The width of bullet and text, with the tick or the cross between them."""
        return self.indent + max(width_of(text, look) for look, text in self.texts)

    @property
    def height(self) -> int:
        """The height of all texts, and of the space before the next item."""
        return 4 + 13 * len(self.texts)


class Inscriber(NamedTuple):
    """A writer, and what is shown besides the machine: coverage, a trace, or neither.

    Attributes
    ----------
    writer : SvgWriter
    drawn : Drawing
    covered : collection of str or None
        Transitions.
    trace : Trace or None
    at : str
        The name of the state to mark; empty for none.
    """

    writer: SvgWriter
    drawn: Drawing
    covered: Collection[str] | None
    trace: Trace | None
    at: str = ""

    def covers(self, identifiers: Collection[str]) -> bool | None:
        """Whether all of these transitions were covered; None if coverage was not requested."""
        return None if self.covered is None else all(identifier in self.covered for identifier in identifiers)

    def arrow(self, arrow: Arrow) -> str:
        """An arrow with its label."""
        items = [self._item_of(line, arrow.sources, "call") for line in arrow.lines]
        seen, kind = self._seen(arrow.taken(self.trace)), arrow.kind(self.trace)
        way = self._way(arrow, kind, seen, missed=any(item.covered is False for item in items))
        label = self._label(arrow.anchor, items)
        source, dest = "&#10;".join(map(escape, arrow.sources)), escape(arrow.dest)
        return f'<g data-source="{source}" data-dest="{dest}">{way}\n{label}</g>'

    def box(self, box: Box) -> str:
        """A state: its name, and below it the calls that leave it as it is."""
        (x, y), (wide, high) = box.centre, box.half
        drawn = self.writer.box(
            (x - wide, y - high), (2 * wide, 2 * high), "head", "ink", "box", border=5 if box.name == self.at else 1.5
        )
        level = y + 5 if not box.stays else y - high + 17
        drawn += self.writer.text((x - width_of(box.name, "name") // 2, level), box.name, "name", bold=True)
        for k, line in enumerate(box.stays):
            drawn += "\n" + self.item((x - wide + 5, level + 2 + 15 * k), self._item_of(line, (box.name,), "brief"))
        return drawn

    def item(self, at: Point, item: Item) -> str:
        """Lines of text behind a bullet.  If coverage was requested: with a tick, or with a cross and a frame."""
        (x, y), missed = at, item.covered is False
        start, colour, ink = x + item.indent, item.colour, ""
        if missed:
            colour, ink = "miss", "miss"
        place, fill = f' transform="translate({x} {y + 8})"', colour if item.bullet == BULLETS[Kind.DEVICE] else "none"
        drawn = self.writer.path(item.bullet, colour, fill=fill, look="tip", more=place) if item.bullet else ""
        if item.covered is not None:
            drawn += self.writer.text((start - 13, y + 12), "✗" if missed else "✓", "call", fill=ink, bold=missed)
        for k, (of, text) in enumerate(item.texts):
            bold = missed or (item.seen == "taken" and of != "step")
            drawn += self.writer.text((start, y + 12 + 13 * k), text, of, fill=ink, bold=bold)
        if missed:
            right, bottom = start + 3 + max(width_of(text, of) for of, text in item.texts), y + item.height
            frame = f"M{start - 3} {y + 1}H{right}V{bottom}H{start - 3}Z"
            drawn = self.writer.path(frame, "miss", width=1, look="frame", more=' stroke-dasharray="4 3"') + drawn
        return _group(drawn, "miss" if missed else "", item.seen)

    def _item_of(self, line: Line, sources: tuple[str, ...], look: str) -> Item:
        numbers = taken(line, sources, self.trace)
        texts = [(look, self.trace.numbered(line.call, numbers) if self.trace else line.call)]
        texts += [("step", step) for step in line.steps]
        covered = self.covers(line.identifiers)
        return Item(texts, self.bullet(line.kind), COLOURS[line.kind], covered, self._seen(numbers))

    def bullet(self, kind: Kind) -> str:
        """The bullet of a kind; empty if the machine needs none."""
        return BULLETS[kind] if self.drawn.says(kind) else ""

    def _seen(self, taken: Sequence[object]) -> str:
        """The look of something: ``taken`` if the trace took it, ``faint`` if not; empty without a trace."""
        return "" if self.trace is None else "taken" if taken else "faint"

    def _label(self, anchor: Anchor, items: list[Item]) -> str:
        """The lines of an arrow as a block, each call with its effect below."""
        x, y = block_at(anchor, max(item.width for item in items), sum(item.height for item in items))
        drawn: list[str] = []
        for item in items:
            drawn.append(self.item((x, y), item))
            y += item.height
        return "\n".join(drawn)

    def _way(self, arrow: Arrow, kind: Kind, seen: str, *, missed: bool) -> str:
        *_, (x, y), (tip_x, tip_y) = points = arrow.points
        ahead = ((tip_x > x) - (tip_x < x), (tip_y > y) - (tip_y < y))
        # An arrow must not cross its own hollow tip, so it ends at the base of the tip.
        short = 0 if kind is Kind.NONE else 8
        way = [*points[:-1], (tip_x - short * ahead[0], tip_y - short * ahead[1])]
        colour, width = "miss" if missed else COLOURS[kind], 2 if kind in (Kind.DEVICE, Kind.HOST) else 1.5
        dashes = ' stroke-dasharray="5 4"' if missed else ""
        wide = 4 if seen == "taken" else width
        drawn = self.writer.path(_path(way), colour, width=wide, look="way", more=dashes)
        # Filled towards the device, hollow towards the host and for an adoption.
        fill = {Kind.DEVICE: colour, Kind.NONE: "none"}.get(kind, "paper")
        drawn += self.writer.path(tip_at((tip_x, tip_y), ahead, kind), colour, fill=fill, width=width, look="tip")
        for some in arrow.joining:
            drawn += self.writer.path(_path(some), colour, width=wide, look="way", more=dashes)
        return _group(drawn, kind.name.lower(), "miss" if missed else "", seen)


def _group(body: str, *looks: str) -> str:
    names = " ".join(f"smd-{look}" for look in looks if look)
    classes = f' class="{names}"' if names else ""
    faint = ' opacity="0.3"' if "faint" in looks else ""
    return f"<g{classes}{faint}>{body}</g>"


def _path(points: list[Point]) -> str:
    """A polyline along the axes with rounded corners."""
    steps = [f"M{points[0][0]} {points[0][1]}"]
    for (before_x, before_y), (x, y), (after_x, after_y) in zip(points, points[1:], points[2:], strict=False):
        shortest = min(abs(x - before_x) + abs(y - before_y), abs(after_x - x) + abs(after_y - y))
        radius = min(10, shortest // 2)
        into = (x - radius * ((x > before_x) - (x < before_x)), y - radius * ((y > before_y) - (y < before_y)))
        out = (x + radius * ((after_x > x) - (after_x < x)), y + radius * ((after_y > y) - (after_y < y)))
        steps.append(f"L{into[0]} {into[1]}Q{x} {y} {out[0]} {out[1]}")
    return "".join(steps) + f"L{points[-1][0]} {points[-1][1]}"


def tip_at(point: Point, ahead: Point, kind: Kind) -> str:
    """The tip of an arrow that ends at this point in this direction; for an adoption it is a diamond."""
    (x, y), (right, down) = point, ahead
    back = 5 if kind is Kind.ADOPT else 9
    wide_x, wide_y = x - back * right, y - back * down
    barbs = (wide_x + 5 * down, wide_y + 5 * right), (wide_x - 5 * down, wide_y - 5 * right)
    closing = {Kind.NONE: "", Kind.ADOPT: f"L{x - 10 * right} {y - 10 * down}Z"}.get(kind, "Z")
    return f"M{barbs[0][0]} {barbs[0][1]}L{x} {y}L{barbs[1][0]} {barbs[1][1]}{closing}"
