"""The state diagram as SVG: a diamond, UNINITIALIZED on top, the host left, the device right, SYNCED below.

Theory of operation
-------------------
Only the places of the four heads are laid by hand.  Arrows run along the axes with rounded corners and are
routed by rule: *down* along the outer lane of a side head, *up* along its inner lane, *across* in two lines,
and a loop where its head has room.  Each route says where its label goes, and the label is a box of known
size, because the font is monospace and ``textLength`` holds any substitute to the same width.  As every
stretch of an arrow is parallel to an axis, the tests can check all of it for overlap as rectangles.

The drawing has no ``id`` and no marker, and its class names have a prefix, so that any number of drawings
can be inlined into one page.
"""

from __future__ import annotations

from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .drawing import Kind, arrows, effect, kind_of, notes
from .editions import head_machine
from .head import Call, SyncedHead, Transition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["diamond_svg"]

_PLACES: Mapping[SyncedHead, tuple[int, int]] = MappingProxyType(
    {
        SyncedHead.UNINITIALIZED: (300, 58),
        SyncedHead.HEAD_AT_CPU: (90, 284),
        SyncedHead.HEAD_AT_GPU: (510, 284),
        SyncedHead.SYNCED: (300, 516),
    }
)
_MIDDLE_X, _MIDDLE_Y = 300, 284
_HALF_WIDTH, _HALF_HEIGHT = 64, 18
_OUTER, _INNER = 50, 34
_MARGIN = 18
_INDENT = (27, 14)  # of text behind a bullet, with a mark between them and without
_EM = 0.6
_SIZES: Mapping[str, int] = MappingProxyType({"call": 12, "step": 11, "note": 11, "name": 13})

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
"""

_Point = tuple[int, int]


class _Anchor(NamedTuple):
    """A point, and which part of a label's box lies on it: 0 for the left or top, 1 for the right or bottom."""

    x: int
    y: int
    across: float
    down: float


class _Line(NamedTuple):
    """One call on an arrow, what it does, and whether all of it was covered (None: nobody asked)."""

    call: str
    step: str
    kind: Kind
    covered: bool | None


def diamond_svg(edition: str = "caffe", *, covered: Collection[str] | None = None) -> str:
    """Draw the machine as SVG that can be inlined into a page.

    Parameters
    ----------
    edition : str
        A name from ``EDITIONS``.
    covered : collection of str, optional
        Identifiers of transitions, as `Transition.identifier` gives them for the edition's rows.  With it
        every line has a tick, or a cross if one of its transitions is missing; others are ignored.

    Returns
    -------
    str
        An ``svg`` element, the same bytes for the same arguments, ending in a newline.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    heads = head_machine(edition).edition.heads
    drawn = [_entry(), *(_head(head) for head in heads)]
    kinds: set[Kind] = set()
    for (source, dest), calls in arrows(edition).items():
        lines = [_line(call, rows, source, covered) for call, rows in calls.items()]
        kinds.update(line.kind for line in lines)
        arrow = _arrow(*_route(source, dest), lines)
        drawn.append(f'<g data-source="{source.name}" data-dest="{dest.name}">{arrow}</g>')
    widest = max(_width(note.text, "note") for note in notes(edition)) + _INDENT[0] + 2 * _MARGIN
    width = max(widest, *(_PLACES[head][0] + _HALF_WIDTH + _MARGIN + 8 for head in heads))
    legend, height = _legend(edition, kinds, covered, width)
    body = "\n".join([*drawn, *legend])
    about = f"The heads {', '.join(head.name for head in heads)}, and the calls that lead from one to another."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="smd" viewBox="0 0 {width} {height}" role="img"'
        f' style="max-width:{width * 5 // 4}px">\n<title>Head machine of SyncedMemory, edition {edition}</title>\n'
        f"<desc>{about}</desc>\n<style>\n{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _line(call: Call, rows: list[Transition], source: SyncedHead, covered: Collection[str] | None) -> _Line:
    identifiers = [row.identifier(source) for row in rows]
    return _Line(call.value, effect(rows), kind_of(rows), _all_in(identifiers, covered))


def _all_in(identifiers: Collection[str], covered: Collection[str] | None) -> bool | None:
    return None if covered is None else all(identifier in covered for identifier in identifiers)


def _route(source: SyncedHead, dest: SyncedHead) -> tuple[list[_Point], _Anchor]:
    """The way of an arrow from head to head, and where its label goes."""
    (x, y), (to_x, to_y) = _PLACES[source], _PLACES[dest]
    if source is dest:
        return _loop(x, y)
    if y == to_y:
        return _across(x, to_x, y)
    side = 1 if max(x, to_x) > _MIDDLE_X else -1
    return (_down if to_y > y else _up)(x, y, to_x, to_y, side)


def _loop(x: int, y: int) -> tuple[list[_Point], _Anchor]:
    """Below the lowest head, and above the side heads, where the label keeps to the margin of its side."""
    down = 1 if y > _MIDDLE_Y else -1
    edge, turn = y + down * _HALF_HEIGHT, y + down * (_HALF_HEIGHT + 20)
    points = [(x - 15, edge), (x - 15, turn), (x + 15, turn), (x + 15, edge)]
    if x == _MIDDLE_X:
        return points, _Anchor(x, turn + down * 6, 0.5, 0)
    side = 1 if x > _MIDDLE_X else -1
    return points[::-side], _Anchor(x + side * (_OUTER - 12), turn + down * 6, max(side, 0), 1)


def _across(x: int, to_x: int, y: int) -> tuple[list[_Point], _Anchor]:
    """Rightwards in the upper lane with the label above, leftwards in the lower one with the label below."""
    side = 1 if to_x > x else -1
    level = y - side * 9
    points = [(x + side * _HALF_WIDTH, level), (to_x - side * _HALF_WIDTH, level)]
    return points, _Anchor(_MIDDLE_X, level - side * 8, 0.5, max(side, 0))


def _down(x: int, y: int, to_x: int, to_y: int, side: int) -> tuple[list[_Point], _Anchor]:
    """Along the outer lane of the side head; the label lies in the corner."""
    if x == _MIDDLE_X:
        lane = to_x + side * _OUTER
        points = [(x + side * _HALF_WIDTH, y), (lane, y), (lane, to_y - _HALF_HEIGHT)]
        return points, _Anchor(lane - side * 12, y + 10, max(side, 0), 0)
    lane = x + side * _OUTER
    points = [(lane, y + _HALF_HEIGHT), (lane, to_y), (to_x + side * _HALF_WIDTH, to_y)]
    return points, _Anchor(lane - side * 12, to_y - 26, max(side, 0), 1)


def _up(x: int, y: int, to_x: int, to_y: int, side: int) -> tuple[list[_Point], _Anchor]:
    """Along the inner lane of the side head, turning half way; the label lies on the turn."""
    start, lane, level = x + side * 20, to_x - side * _INNER, to_y + 138
    points = [(start, y - _HALF_HEIGHT), (start, level), (lane, level), (lane, to_y + _HALF_HEIGHT)]
    return points, _Anchor(lane - side * 10, level - 8, max(side, 0), 1)


def _arrow(points: list[_Point], anchor: _Anchor, lines: list[_Line]) -> str:
    kinds = {line.kind for line in lines}
    kind = next(kind for kind in Kind if kind in kinds)
    missed = " smd-miss" if any(line.covered is False for line in lines) else ""
    *_, (x, y), (tip_x, tip_y) = points
    ahead = ((tip_x > x) - (tip_x < x), (tip_y > y) - (tip_y < y))
    # A hollow tip must not be crossed by its own arrow, so the way ends at its base.
    short = 0 if kind is Kind.NONE else 8
    way = [*points[:-1], (tip_x - short * ahead[0], tip_y - short * ahead[1])]
    return (
        f'<g class="smd-{kind.name.lower()}{missed}"><path class="smd-way" d="{_path(way)}"/>'
        f'<path class="smd-tip" d="{_tip(tip_x, tip_y, ahead, kind)}"/></g>\n{_label(anchor, lines)}'
    )


def _path(points: list[_Point], radius: int = 10) -> str:
    """A polyline along the axes with rounded corners."""
    steps = [f"M{points[0][0]} {points[0][1]}"]
    for (before_x, before_y), (x, y), (after_x, after_y) in zip(points, points[1:], points[2:], strict=False):
        into = (x - radius * ((x > before_x) - (x < before_x)), y - radius * ((y > before_y) - (y < before_y)))
        out = (x + radius * ((after_x > x) - (after_x < x)), y + radius * ((after_y > y) - (after_y < y)))
        steps.append(f"L{into[0]} {into[1]}Q{x} {y} {out[0]} {out[1]}")
    return "".join(steps) + f"L{points[-1][0]} {points[-1][1]}"


def _tip(x: int, y: int, ahead: _Point, kind: Kind) -> str:
    right, down = ahead
    back_x, back_y = x - 9 * right, y - 9 * down
    barbs = (back_x + 5 * down, back_y + 5 * right), (back_x - 5 * down, back_y - 5 * right)
    closing = "" if kind is Kind.NONE else "Z"
    return f"M{barbs[0][0]} {barbs[0][1]}L{x} {y}L{barbs[1][0]} {barbs[1][1]}{closing}"


def _width(text: str, look: str) -> int:
    return ceil(len(text) * _SIZES[look] * _EM)


def _label(anchor: _Anchor, lines: list[_Line]) -> str:
    """The lines of an arrow as a block, each call with what it does below it."""
    texts = [[("call", line.call), *([("step", line.step)] if line.step else [])] for line in lines]
    width = _INDENT[lines[0].covered is None] + max(_width(text, look) for item in texts for look, text in item)
    height = sum(_height(item) for item in texts)
    x, y = ceil(anchor.x - anchor.across * width), ceil(anchor.y - anchor.down * height)
    drawn: list[str] = []
    for line, item in zip(lines, texts, strict=True):
        drawn.append(_item((x, y), line.kind.name.lower(), _BULLETS[line.kind], item, line.covered))
        y += _height(item)
    return "\n".join(drawn)


def _height(item: list[tuple[str, str]]) -> int:
    return 4 + 13 * len(item)


def _item(at: _Point, look: str, bullet: str, item: list[tuple[str, str]], covered: bool | None) -> str:
    """Lines of text behind a bullet and, if somebody asked for coverage, a tick, or a cross and a frame."""
    x, y = at
    drawn = f'<path class="smd-tip" transform="translate({x} {y + 8})" d="{bullet}"/>'
    if covered is not None:
        drawn += _text(x + 14, y + 12, "✓" if covered else "✗", "call")
    start = x + _INDENT[covered is None]
    drawn += "".join(_text(start, y + 12 + 13 * k, text, of) for k, (of, text) in enumerate(item))
    if covered is not False:
        return f'<g class="smd-{look}">{drawn}</g>'
    right, bottom = start + 3 + max(_width(text, of) for of, text in item), y + _height(item)
    frame = f"M{start - 3} {y + 1}H{right}V{bottom}H{start - 3}Z"
    return f'<g class="smd-{look} smd-miss"><path class="smd-way smd-frame" d="{frame}"/>{drawn}</g>'


def _text(x: int, y: int, text: str, look: str) -> str:
    size = f'font-size="{_SIZES[look]}" textLength="{_width(text, look)}"'
    return f'<text class="smd-{look}" x="{x}" y="{y}" {size}>{text}</text>'


def _head(head: SyncedHead) -> str:
    x, y = _PLACES[head]
    return (
        f'<rect class="smd-box" x="{x - _HALF_WIDTH}" y="{y - _HALF_HEIGHT}" width="{2 * _HALF_WIDTH}"'
        f' height="{2 * _HALF_HEIGHT}" rx="8"/>{_text(x, y + 5, head.name, "name")}'
    )


def _entry() -> str:
    x, y = _PLACES[SyncedHead.UNINITIALIZED]
    tip = _tip(x, y - _HALF_HEIGHT, (0, 1), Kind.NONE)
    return (
        f'<circle class="smd-dot" cx="{x}" cy="14" r="5"/>'
        f'<g class="smd-ink"><path class="smd-way" d="M{x} 14V{y - _HALF_HEIGHT}"/><path d="{tip}"/></g>'
    )


def _legend(edition: str, kinds: set[Kind], covered: Collection[str] | None, width: int) -> tuple[list[str], int]:
    """What the bullets mean, and below it the notes; also the height of the whole drawing."""
    lowest = max(_PLACES[head][1] for head in head_machine(edition).edition.heads)
    y = lowest + (92 if lowest > _MIDDLE_Y else 34)
    drawn = [f'<path class="smd-ink smd-rule" d="M{_MARGIN} {y}H{width - _MARGIN}"/>']
    x, y = _MARGIN, y + 12
    for kind in Kind:
        if kind in kinds:
            drawn.append(_item((x, y), kind.name.lower(), _BULLETS[kind], [("call", kind.value)], None))
            x += 38 + _width(kind.value, "call")
    marks = "" if covered is None else ", ✓ covered, ✗ not covered"
    drawn.append(_text(_MARGIN, y + 34, f"(step) depends on a guard{marks}", "step"))
    y += 24
    for note in sorted(notes(edition), key=lambda note: not note.final):
        y += 20
        bullet = _FINAL if note.final else _REFUSED
        drawn.append(_item((_MARGIN, y), "ink", bullet, [("note", note.text)], _all_in(note.identifiers, covered)))
    return drawn, y + 30
