"""The state diagram in Graphviz's DOT.

Graphviz only draws.  The plan sets the positions of states, arrows and labels, and the layout engine is nop2.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ..caffe import DEFAULT
from ..diagrams.arrangement import taken
from ..diagrams.drawing import Detail, Kind, drawing
from ..diagrams.layout import MARGIN, block_at, width_of
from ..diagrams.palette import COLOURS, Theme, palette_of
from ..diagrams.plan import plan_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..diagrams.arrangement import Arrangement, Arrow, Box, Group
    from ..diagrams.drawing import Drawing, Line
    from ..diagrams.layout import Point
    from ..diagrams.palette import Palette
    from ..diagrams.trace import Trace
    from ..opening import AnyCall, AnyMachine

__all__ = ["dot", "dot_of"]

# Arrowheads show the same as the colours; in the legend, similar letters do.
_TIPS: Mapping[Kind, str] = MappingProxyType(
    {Kind.DEVICE: "normal", Kind.HOST: "onormal", Kind.NONE: "vee", Kind.ADOPT: "odiamond"}
)
_MARKS: Mapping[Kind, str] = MappingProxyType({Kind.DEVICE: "▶", Kind.HOST: "◁", Kind.NONE: "–", Kind.ADOPT: "◇"})
_POINTS = {"call": 12, "brief": 10}
"""The font sizes of calls, by their look."""

_FONT = 'fontname="DejaVu Sans Mono"'


def dot(
    edition: AnyMachine = DEFAULT,
    *,
    calls: Collection[AnyCall] = (),
    detail: Detail = Detail.HEADS,
    trace: Trace | None = None,
    theme: Theme = Theme.AUTO,
) -> str:
    """Draw the machine in DOT.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str or Call
        Draw only these calls; if empty, all calls.
    detail : Detail
    trace : Trace, optional
        Number the edges that it takes, and make the others faint.
    theme : Theme
        ``AUTO`` is light.

    Returns
    -------
    str
        A ``digraph`` with a newline at the end.  The same arguments give the same bytes.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    drawn = drawing(edition, calls=calls, detail=detail)
    return dot_of(drawn, detail, trace=trace, theme=theme)


def dot_of(drawn: Drawing, detail: Detail, *, trace: Trace | None = None, theme: Theme = Theme.AUTO) -> str:
    """Any drawing with this detail in DOT; see `dot`."""
    plan = plan_of(drawn, detail, trace.room if trace else 0)
    pen = _Pen(palette_of(theme), detail, trace)
    return "\n".join(["digraph SyncedMemory {", *pen.all(plan), "}"]) + "\n"


class _Pen(NamedTuple):
    """The palette, the detail, and the trace if there is one."""

    palette: Palette
    detail: Detail
    trace: Trace | None

    @property
    def look(self) -> str:
        """The look of calls."""
        return "brief" if self.detail is Detail.CONFIGURATIONS else "call"

    def all(self, plan: Arrangement) -> Iterable[str]:
        """All statements, from the bottom of the picture to its top."""
        ink, paper = self.palette.ink, self.palette.paper
        look = f'style="rounded,filled", fillcolor="{self.palette.head}", color="{ink}", fontcolor="{ink}"'
        yield f'  graph [layout=nop2, bgcolor="{paper}", pad=0.2];'
        yield f"  node [shape=box, {look}, {_FONT}];"
        yield f"  edge [{_FONT}];"
        for number, group in enumerate(plan.groups):
            yield from self.group(group, number)
        yield from self.start(plan.boxes[0])
        for box in plan.boxes:
            yield self.box(box)
        frames = {group.states: f"group{number}" for number, group in enumerate(plan.groups)}
        for number, arrow in enumerate(plan.arrows):
            yield from self.arrow(arrow, number, frames.get(arrow.sources, arrow.sources[0]))
        yield self.legend(plan)

    def group(self, group: Group, number: int) -> Iterable[str]:
        """A frame.  It is a node without a name, because Graphviz would lay out a cluster."""
        (x, y), (width, height) = group.corner, group.size
        place, size = _at((x + width // 2, y + height // 2)), _inches(group.size)
        look = f'style=rounded, color="{self.palette.faint}", label=""'
        yield f'  group{number} [pos="{place}", {size}, {look}];'
        title = self._table([self._row(group.title, self.palette.soft, 10)], width_of(group.title, "step"))
        at = _at((x + 10 + width_of(group.title, "step") // 2, y + height - 12))
        yield f'  title{number} [shape=plain, style="", pos="{at}", label={title}];'

    def start(self, box: Box) -> Iterable[str]:
        """The dot before the state in which a memory starts."""
        x, top = box.centre[0], box.centre[1] - box.half[1]
        ink = self.palette.ink
        yield f'  start [shape=circle, label="", width=0.14, fixedsize=true, fillcolor="{ink}", pos="{_at((x, 14))}"];'
        way = f'pos="{_spline([(x, 19), (x, top)])}", arrowhead=vee, color="{ink}"'
        yield f"  start -> {_quoted(box.name)} [{way}];"

    def box(self, box: Box) -> str:
        """A state, and in it the calls that leave the state as it is."""
        place = f'pos="{_at(box.centre)}", {_inches((2 * box.half[0], 2 * box.half[1]))}'
        if not box.stays:
            return f'  {_quoted(box.name)} [{place}, fontname="DejaVu Sans Mono Bold", fontsize=12];'
        width = 2 * box.half[0] - 10
        name = f'<tr><td width="{width}"><font point-size="12"><b>{escape(box.name)}</b></font></td></tr>'
        rows = [f'<tr><td align="left">{self._marked(line, (box.name,), 10)}</td></tr>' for line in box.stays]
        return f"  {_quoted(box.name)} [{place}, label={self._table([name, *rows], width)}];"

    def arrow(self, arrow: Arrow, number: int, tail: str) -> Iterable[str]:
        """An edge without a label, and its label as a separate node."""
        rows = [row for line in arrow.lines for row in self._rows(line, arrow.sources)]
        calls = [self._called(line, arrow.sources) for line in arrow.lines]
        steps = [step for line in arrow.lines for step in line.steps]
        width = 20 + max([width_of(call, self.look) for call in calls] + [width_of(step, "step") for step in steps])
        height = 14 * len(rows)
        left, top = block_at(arrow.anchor, width, height)
        followed, kind = arrow.taken(self.trace), arrow.kind(self.trace)
        faint = self.trace is not None and not followed
        colour = self.palette.faint if faint else getattr(self.palette, COLOURS[kind])
        thick = "3" if followed else "1.5" if kind in (Kind.DEVICE, Kind.HOST) else "1"
        way = f'color="{colour}", arrowhead={_TIPS[kind]}, penwidth={thick}, pos="{_spline(arrow.points)}"'
        yield f"  {_quoted(tail)} -> {_quoted(arrow.dest)} [{way}];"
        place = _at((left + width // 2, top + height // 2))
        yield f'  label{number} [shape=plain, style="", pos="{place}", label={self._table(rows, width)}];'

    def legend(self, plan: Arrangement) -> str:
        """The meaning of the marks and abbreviations, and the notes or the trace, below the drawing."""
        rows = [self._row(plan.drawn.title, self.palette.ink, 11)]
        for kind in plan.kinds:
            mark = f'<font color="{getattr(self.palette, COLOURS[kind])}">{_MARKS[kind]}</font>'
            said = escape(kind.said(plan.drawn.machine))
            rows.append(f'<tr><td align="left"><font point-size="11">{mark} {said}</font></td></tr>')
        rows += [self._row(text, self.palette.soft, 10) for text in plan.abbreviations]
        below = [note.text for note in plan.drawn.notes] if self.trace is None else self.trace.lines(self.detail)
        rows += [self._row(text, self.palette.ink, 10) for text in below]
        texts = [plan.drawn.title, *plan.abbreviations, *below]
        width, height = max(width_of(text, "call") for text in texts), 15 * len(rows)
        place = _at((MARGIN + width // 2, plan.size[1] + height // 2))
        return f'  legend [shape=plain, style="", pos="{place}", label={self._table(rows, width)}];'

    def _called(self, line: Line, sources: tuple[str, ...]) -> str:
        return self.trace.numbered(line.call, taken(line, sources, self.trace)) if self.trace else line.call

    def _marked(self, line: Line, sources: tuple[str, ...], size: int) -> str:
        """A call after the mark of its kind."""
        faint = self.trace is not None and not taken(line, sources, self.trace)
        ink = self.palette.faint if faint else self.palette.ink
        colour = ink if faint else getattr(self.palette, COLOURS[line.kind])
        call = f'<font color="{ink}">{escape(self._called(line, sources))}</font>'
        return f'<font point-size="{size}"><font color="{colour}">{_MARKS[line.kind]}</font> {call}</font>'

    def _rows(self, line: Line, sources: tuple[str, ...]) -> list[str]:
        """The rows of a call and of its steps."""
        faint = self.trace is not None and not taken(line, sources, self.trace)
        soft = self.palette.faint if faint else self.palette.soft
        call = f'<tr><td align="left">{self._marked(line, sources, _POINTS[self.look])}</td></tr>'
        return [call, *(self._row(f"  {step}", soft, _POINTS["brief"]) for step in line.steps)]

    @staticmethod
    def _row(text: str, colour: str, size: int) -> str:
        said = escape(text).replace("  ", "&nbsp;&nbsp;")
        return f'<tr><td align="left"><font color="{colour}" point-size="{size}">{said}</font></td></tr>'

    @staticmethod
    def _table(rows: list[str], width: int) -> str:
        return f'<<table border="0" cellspacing="0" cellpadding="0" width="{width}">{"".join(rows)}</table>>'


def _at(point: Point) -> str:
    """A point in Graphviz's coordinates, whose heights grow upwards."""
    return f"{point[0]},{-point[1]}"


def _inches(size: Point) -> str:
    return f"width={size[0] / 72:.3f}, height={size[1] / 72:.3f}, fixedsize=true"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _spline(points: list[Point]) -> str:
    """A polyline as Bézier curves, up to the base of the arrowhead."""
    *_, (x, y), (tip_x, tip_y) = points
    base = (tip_x - 9 * ((tip_x > x) - (tip_x < x)), tip_y - 9 * ((tip_y > y) - (tip_y < y)))
    way = [*points[:-1], base]
    curves = [_at(way[0])]
    for start, end in pairwise(way):
        # Control points on the ends make a straight stretch.
        curves += [_at(start), _at(end), _at(end)]
    return f"e,{_at((tip_x, tip_y))} {' '.join(curves)}"
