"""The state diagram as SVG: a diamond, UNINITIALIZED on top, the host left, the device right, SYNCED below.

Where things are is a matter of ``layout``, what is said of ``drawing``; here it is painted.  The font is monospace,
and ``textLength`` holds any substitute to the same width, so labels keep to the boxes that were laid out for them.

The drawing has no ``id`` and no marker, and its class names have a prefix, so that any number of drawings
can be inlined into one page.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .drawing import Detail, Kind, drawing
from .errors import InvalidExportError
from .head import SyncedHead
from .layout import HALF_HEIGHT, HALF_WIDTH, INDENT, SIZES, Anchor, Point, block_at, frame_of, width_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .drawing import Drawing, Edge, Line
    from .exports.trace import Trace
    from .head import Call
    from .layout import Frame

__all__ = ["diamond_svg"]

_MARGIN = 18

# Bullets and tips say the kind without colour: filled or hollow, and pointing to the side that is copied to.
_BULLETS: Mapping[Kind, str] = MappingProxyType(
    {Kind.GPU: "M0-4L8 0L0 4Z", Kind.CPU: "M8-4L0 0L8 4Z", Kind.NONE: "M1 0H7", Kind.ADOPT: "M4-4L8 0L4 4L0 0Z"}
)
_FINAL = "M4-5A5 5 0 1 1 3.9-5ZM4-2A2 2 0 1 1 3.9-2Z"
_REFUSED = "M4-5A5 5 0 1 1 3.9-5ZM1 3L7-3"

# Okabe and Ito's palette; the warning is its reddish purple, darkened until text in it is legible.
_STYLE = """\
.smd{--smd-ink:#1f2328;--smd-soft:#59636e;--smd-paper:#fff;--smd-head:#f3f5f7;--smd-gpu:#0072b2;--smd-cpu:#d55e00;
--smd-adopt:#009e73;--smd-miss:#a3306d;width:100%;height:auto;background:var(--smd-paper)}
@media (prefers-color-scheme:dark){.smd{--smd-ink:#e6edf3;--smd-soft:#a0aab5;--smd-paper:#12161c;--smd-head:#222a34;
--smd-gpu:#56b4e9;--smd-cpu:#e69f00;--smd-adopt:#2fc79b;--smd-miss:#e79cc4}}
.smd text{font-family:ui-monospace,"SF Mono",Menlo,"DejaVu Sans Mono","Liberation Mono",monospace;fill:var(--smd-ink)}
.smd path{fill:none;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round}
.smd .smd-step{fill:var(--smd-soft)}.smd-name{font-weight:600;text-anchor:middle}
.smd-box{fill:var(--smd-head);stroke:var(--smd-ink);stroke-width:1.5}
.smd-dot{fill:var(--smd-ink)}.smd .smd-rule{stroke-width:1;opacity:.35}
.smd-gpu{color:var(--smd-gpu)}.smd-cpu{color:var(--smd-cpu)}.smd-adopt{color:var(--smd-adopt)}
.smd-none{color:var(--smd-soft)}.smd-ink{color:var(--smd-ink)}.smd .smd-miss{color:var(--smd-miss)}
.smd .smd-gpu path,.smd .smd-cpu path{stroke-width:2}.smd .smd-gpu .smd-tip{fill:currentColor}
.smd .smd-cpu .smd-tip,.smd .smd-adopt .smd-tip{fill:var(--smd-paper)}
.smd .smd-miss text{fill:var(--smd-miss);font-weight:700}.smd .smd-miss .smd-way{stroke-dasharray:5 4}
.smd .smd-miss .smd-frame{stroke-width:1;stroke-dasharray:4 3}
.smd .smd-faint{opacity:.3}.smd .smd-taken path.smd-way{stroke-width:4}.smd .smd-taken text.smd-call{font-weight:700}
"""


class _Looks(NamedTuple):
    """What is to be seen besides the machine: coverage, or a trace, or neither."""

    covered: Collection[str] | None
    trace: Trace | None

    def covers(self, identifiers: Collection[str]) -> bool | None:
        """Whether all of some transitions were covered; None where nobody asked."""
        return None if self.covered is None else all(identifier in self.covered for identifier in identifiers)

    def taken(self, line: Line) -> list[int]:
        """The steps of the trace that took a line."""
        return [] if self.trace is None else self.trace.numbers_of(line.identifiers)


class _Item(NamedTuple):
    """A line with what is to be seen of it."""

    texts: list[tuple[str, str]]
    kind: Kind
    covered: bool | None
    look: str

    @property
    def width(self) -> int:
        return INDENT[self.covered is None] + max(width_of(text, look) for look, text in self.texts)

    @property
    def height(self) -> int:
        return 4 + 13 * len(self.texts)


def diamond_svg(
    edition: str = "caffe",
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.HEADS,
    covered: Collection[str] | None = None,
    trace: Trace | None = None,
) -> str:
    """Draw the machine as SVG that can be inlined into a page.

    Parameters
    ----------
    edition : str
        A name from ``EDITIONS``.
    calls : collection of Call
        Draw these only; without any, all of them.
    detail : Detail
        ``HEADS`` or ``GUARDS``.
    covered : collection of str, optional
        Identifiers of transitions, as `Transition.identifier` gives them for the edition's rows.  With it
        every line has a tick, or a cross if one of its transitions is missing; others are ignored.
    trace : Trace, optional
        With it the calls that it makes are numbered, everything else is faint, and its steps stand below,
        with the bytes they copy, in place of the refusals.

    Returns
    -------
    str
        An ``svg`` element, the same bytes for the same arguments, ending in a newline.

    Raises
    ------
    InvalidExportError
        If the detail has no diamond.
    DeclarationError
        If there is no such edition.
    """
    if detail is Detail.CONFIGURATIONS:
        raise InvalidExportError(f"the diamond has heads and guards, and no {detail}: lay its DOT out with Graphviz")
    drawn, frame, looks = drawing(edition, calls=calls, detail=detail), frame_of(detail), _Looks(covered, trace)
    places = {node.name: frame.places[node.head] for node in drawn.nodes}
    body = [_entry(places[drawn.nodes[0].name]), *(_head(name, place) for name, place in places.items())]
    body += [_edge(edge, frame, looks) for edge in drawn.edges]
    below = trace.lines() if trace else tuple(note.text for note in drawn.notes)
    widest = max((width_of(text, "note") for text in below), default=0) + INDENT[0] + 2 * _MARGIN
    width = max(widest, *(x + HALF_WIDTH + _MARGIN + 8 for x, _ in places.values()))
    legend, height = _legend(drawn, frame, looks, width)
    about = f"The heads {', '.join(places)}, and the calls that lead from one to another."
    text = "\n".join([*body, *legend])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="smd" viewBox="0 0 {width} {height}" role="img"'
        f' style="max-width:{width * 5 // 4}px">\n<title>{drawn.title}</title>\n'
        f"<desc>{about}</desc>\n<style>\n{_STYLE}</style>\n{text}\n</svg>\n"
    )


def _edge(edge: Edge, frame: Frame, looks: _Looks) -> str:
    points, anchor = frame.route(SyncedHead[edge.source], SyncedHead[edge.dest])
    items = [_item_of(line, looks) for line in edge.lines]
    taken = any(looks.taken(line) for line in edge.lines)
    look = "" if looks.trace is None else " smd-taken" if taken else " smd-faint"
    missed = " smd-miss" if any(item.covered is False for item in items) else ""
    way = _arrow(points, edge.kind, f"smd-{edge.kind.name.lower()}{missed}{look}")
    return f'<g data-source="{edge.source}" data-dest="{edge.dest}">{way}\n{_label(anchor, items)}</g>'


def _item_of(line: Line, looks: _Looks) -> _Item:
    numbers = looks.taken(line)
    look = "" if looks.trace is None else " smd-taken" if numbers else " smd-faint"
    call = f"{','.join(map(str, numbers))}: {line.call}" if numbers else line.call
    texts = [("call", call), *(("step", step) for step in line.steps)]
    return _Item(texts, line.kind, looks.covers(line.identifiers), line.kind.name.lower() + look)


def _arrow(points: list[Point], kind: Kind, look: str) -> str:
    *_, (x, y), (tip_x, tip_y) = points
    ahead = ((tip_x > x) - (tip_x < x), (tip_y > y) - (tip_y < y))
    # A hollow tip must not be crossed by its own arrow, so the way ends at its base.
    short = 0 if kind is Kind.NONE else 8
    way = [*points[:-1], (tip_x - short * ahead[0], tip_y - short * ahead[1])]
    return (
        f'<g class="{look}"><path class="smd-way" d="{_path(way)}"/>'
        f'<path class="smd-tip" d="{_tip(tip_x, tip_y, ahead, kind)}"/></g>'
    )


def _path(points: list[Point], radius: int = 10) -> str:
    """A polyline along the axes with rounded corners."""
    steps = [f"M{points[0][0]} {points[0][1]}"]
    for (before_x, before_y), (x, y), (after_x, after_y) in zip(points, points[1:], points[2:], strict=False):
        into = (x - radius * ((x > before_x) - (x < before_x)), y - radius * ((y > before_y) - (y < before_y)))
        out = (x + radius * ((after_x > x) - (after_x < x)), y + radius * ((after_y > y) - (after_y < y)))
        steps.append(f"L{into[0]} {into[1]}Q{x} {y} {out[0]} {out[1]}")
    return "".join(steps) + f"L{points[-1][0]} {points[-1][1]}"


def _tip(x: int, y: int, ahead: Point, kind: Kind) -> str:
    right, down = ahead
    back_x, back_y = x - 9 * right, y - 9 * down
    barbs = (back_x + 5 * down, back_y + 5 * right), (back_x - 5 * down, back_y - 5 * right)
    closing = "" if kind is Kind.NONE else "Z"
    return f"M{barbs[0][0]} {barbs[0][1]}L{x} {y}L{barbs[1][0]} {barbs[1][1]}{closing}"


def _label(anchor: Anchor, items: list[_Item]) -> str:
    """The lines of an arrow as a block, each call with what it does below it."""
    x, y = block_at(anchor, max(item.width for item in items), sum(item.height for item in items))
    drawn: list[str] = []
    for item in items:
        drawn.append(_item((x, y), _BULLETS[item.kind], item))
        y += item.height
    return "\n".join(drawn)


def _item(at: Point, bullet: str, item: _Item) -> str:
    """Lines of text behind a bullet and, if somebody asked for coverage, a tick, or a cross and a frame."""
    x, y = at
    drawn = f'<path class="smd-tip" transform="translate({x} {y + 8})" d="{bullet}"/>'
    if item.covered is not None:
        drawn += _text(x + 14, y + 12, "✓" if item.covered else "✗", "call")
    start = x + INDENT[item.covered is None]
    drawn += "".join(_text(start, y + 12 + 13 * k, text, of) for k, (of, text) in enumerate(item.texts))
    if item.covered is not False:
        return f'<g class="smd-{item.look}">{drawn}</g>'
    right, bottom = start + 3 + max(width_of(text, of) for of, text in item.texts), y + item.height
    frame = f"M{start - 3} {y + 1}H{right}V{bottom}H{start - 3}Z"
    return f'<g class="smd-{item.look} smd-miss"><path class="smd-way smd-frame" d="{frame}"/>{drawn}</g>'


def _text(x: int, y: int, text: str, look: str) -> str:
    size = f'font-size="{SIZES[look]}" textLength="{width_of(text, look)}"'
    return f'<text class="smd-{look}" x="{x}" y="{y}" {size}>{text}</text>'


def _head(name: str, place: Point) -> str:
    x, y = place
    return (
        f'<rect class="smd-box" x="{x - HALF_WIDTH}" y="{y - HALF_HEIGHT}" width="{2 * HALF_WIDTH}"'
        f' height="{2 * HALF_HEIGHT}" rx="8"/>{_text(x, y + 5, name, "name")}'
    )


def _entry(place: Point) -> str:
    x, y = place
    tip = _tip(x, y - HALF_HEIGHT, (0, 1), Kind.NONE)
    return (
        f'<circle class="smd-dot" cx="{x}" cy="14" r="5"/>'
        f'<g class="smd-ink"><path class="smd-way" d="M{x} 14V{y - HALF_HEIGHT}"/><path d="{tip}"/></g>'
    )


def _legend(drawn: Drawing, frame: Frame, looks: _Looks, width: int) -> tuple[list[str], int]:
    """What the bullets mean, and below it the notes or the trace; also the height of the whole drawing."""
    lowest = max(frame.places[node.head][1] for node in drawn.nodes)
    y = lowest + (92 if lowest > frame.middle[1] else 34)
    found = [f'<path class="smd-ink smd-rule" d="M{_MARGIN} {y}H{width - _MARGIN}"/>']
    x, y, kinds = _MARGIN, y + 12, {line.kind for edge in drawn.edges for line in edge.lines}
    for kind in Kind:
        if kind in kinds:
            found.append(_item((x, y), _BULLETS[kind], _Item([("call", kind.value)], kind, None, kind.name.lower())))
            x += 38 + width_of(kind.value, "call")
    guarded = "(step) depends on a guard" if frame is frame_of(Detail.HEADS) else "guard: step, !guard must not hold"
    marks = "" if looks.covered is None else ", ✓ covered, ✗ not covered"
    found.append(_text(_MARGIN, y + 34, f"{guarded}{marks}", "step"))
    y += 24
    notes = [(note.text, _FINAL if note.final else _REFUSED, looks.covers(note.identifiers)) for note in drawn.notes]
    notes.sort(key=lambda note: note[1] is not _FINAL)
    if looks.trace is not None:
        notes = [(text, _BULLETS[Kind.NONE], None) for text in looks.trace.lines()]
    for text, bullet, covered in notes:
        y += 20
        found.append(_item((_MARGIN, y), bullet, _Item([("note", text)], Kind.NONE, covered, "ink")))
    return found, y + 30
