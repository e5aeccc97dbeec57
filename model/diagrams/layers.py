"""The positions of all parts of a drawing whose machine is not shaped like Caffe's: its states in a column.

An arrow down runs in a lane on the right of the column, an arrow up in a lane on its left.  Calls that leave a state
as it is stand in its box.  A lane with its labels is as wide as the widest label, and labels stand only between the
rows of boxes, where no arrow runs across.  So no label can lie on an arrow, on a box or on another label, however many
there are.  Arrows cross arrows only where a lane passes the row of another arrow's end.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from .arrangement import GUARDED, Arrangement, Arrow, Box
from .drawing import Detail, without_kind
from .layout import HALF_HEIGHT, HALF_WIDTH, INDENT, MARGIN, Anchor, width_of

if TYPE_CHECKING:
    from .drawing import Drawing, Edge, Line
    from .layout import Point

__all__ = ["layered"]

_PORT = 16
"""The distance of two arrows that end at the same side of a box."""

_AIR = 24
"""The space beside a box, beside a lane, and around a label."""

_BESIDE = 12
"""The distance of a label from its lane."""

_TOP = 40
"""The space for the arrow into the first box."""


class _Way(NamedTuple):
    """An arrow between two rows, and the number of its lane; lanes are counted from the column."""

    edge: Edge
    start: int
    end: int
    lane: int

    @property
    def side(self) -> int:
        """1 for the right side, -1 for the left."""
        return 1 if self.end > self.start else -1

    @property
    def gap(self) -> int:
        """The space between two rows, counted by the row above, that has the label: the one beside the start."""
        return self.start if self.side == 1 else self.start - 1

    def at(self, row: int) -> tuple[int, int]:
        """What orders the ends of arrows at a row: from and to above first, so that the fewest arrows cross."""
        above = row == max(self.start, self.end)
        return (0, self.lane) if above else (1, -self.lane)

    def size(self, room: int) -> Point:
        """The size of its label."""
        widths = [width_of(text, "call") for line in self.edge.lines for text in (line.call + "m" * room, *line.steps)]
        return INDENT[0] + max(widths), sum(4 + 13 * (1 + len(line.steps)) for line in self.edge.lines)


def layered(drawn: Drawing, detail: Detail, room: int = 0) -> Arrangement:
    """Lay out any drawing of heads, with room for this many letters before each call."""
    rows = {node.name: row for row, node in enumerate(drawn.nodes)}
    ways = [way for side in (1, -1) for way in _lanes(drawn, rows, side)]
    stays = {edge.source: _stays(edge) for edge in drawn.edges if edge.source == edge.dest}
    half, gaps = _half(drawn, stays, room), [0] * len(rows)
    for way in ways:
        gaps[way.gap] = max(gaps[way.gap], way.size(room)[1])
    heights = [
        max(
            2 * HALF_HEIGHT,
            _PORT * (1 + max(_ends(ways, row, 1), _ends(ways, row, -1))),
            26 + 15 * len(stays.get(name, ())),
        )
        for name, row in rows.items()
    ]
    tops = [*accumulate((high + gap + 2 * _AIR for high, gap in zip(heights, gaps, strict=True)), initial=_TOP)]
    lanes = {side: _places([way for way in ways if way.side == side], room) for side in (1, -1)}
    middle = MARGIN + half + lanes[-1][-1]
    boxes = tuple(
        Box(name, (middle, tops[row] + heights[row] // 2), (half, heights[row] // 2), stays.get(name, ()))
        for name, row in rows.items()
    )
    arrows: list[Arrow] = []
    for way in ways:
        level = [
            tops[row] + heights[row] * (1 + _port(ways, way, row)) // (1 + _ends(ways, row, way.side))
            for row in (way.start, way.end)
        ]
        edge_x = middle + way.side * half
        lane = edge_x + way.side * lanes[way.side][way.lane]
        points = [(edge_x, level[0]), (lane, level[0]), (lane, level[1]), (edge_x, level[1])]
        bottom = tops[way.gap] + heights[way.gap]
        anchor = Anchor(lane + _BESIDE * way.side, (bottom + tops[way.gap + 1]) // 2, 0 if way.side == 1 else 1, 0.5)
        arrows.append(Arrow((way.edge.source,), way.edge.dest, way.edge.lines, points, anchor))
    size = middle + half + lanes[1][-1] + MARGIN, tops[-1] - gaps[-1] - _AIR
    said = GUARDED if detail is Detail.HEADS else f"guard: step, !guard must not hold, {GUARDED}"
    return Arrangement(drawn, boxes, (), tuple(arrows), size, (said,))


def _lanes(drawn: Drawing, rows: dict[str, int], side: int) -> list[_Way]:
    """The arrows of one side, the shortest nearest to the column; arrows that do not pass each other share a lane."""
    found: list[_Way] = []
    ends = [(edge, rows[edge.source], rows[edge.dest]) for edge in drawn.edges]
    for edge, start, end in sorted(ends, key=lambda it: (abs(it[2] - it[1]), it[1])):
        if (end - start) * side > 0:
            low, high = sorted((start, end))
            taken = {way.lane for way in found if min(way[1:3]) < high and low < max(way[1:3])}
            found.append(_Way(edge, start, end, next(lane for lane in range(len(found) + 1) if lane not in taken)))
    return found


def _places(ways: list[_Way], room: int) -> list[int]:
    """The distance of each lane from the boxes, and at last the distance of the end of the last one."""
    widths = [0] * (1 + max((way.lane for way in ways), default=-1))
    for way in ways:
        widths[way.lane] = max(widths[way.lane], way.size(room)[0])
    return [*accumulate((_BESIDE + width + _AIR for width in widths), initial=_AIR)]


def _stays(edge: Edge) -> tuple[Line, ...]:
    """The calls that leave a state as it is, each with its effect on one line."""
    found: list[Line] = []
    for line in map(without_kind, edge.lines):
        said = [f"{line.call}: {step}" for step in line.steps] or [line.call]
        found += [line._replace(call=text, steps=()) for text in said]
    return tuple(found)


def _half(drawn: Drawing, stays: dict[str, tuple[Line, ...]], room: int) -> int:
    """Half of the width of every box."""
    texts = [width_of(line.call + "m" * room, "brief") for lines in stays.values() for line in lines]
    names = [width_of(node.name, "name") + 16 for node in drawn.nodes]
    return max(HALF_WIDTH, *((width + 1) // 2 for width in names), *((INDENT[0] + text) // 2 + 8 for text in texts))


def _ends(ways: list[_Way], row: int, side: int) -> int:
    """The number of arrows that end or start at one side of a row."""
    return sum(row in (way.start, way.end) for way in ways if way.side == side)


def _port(ways: list[_Way], way: _Way, row: int) -> int:
    """The position of an arrow among those at the same side of a row, counted from above."""
    there = [it for it in ways if it.side == way.side and row in (it.start, it.end)]
    return sorted(there, key=lambda it: it.at(row)).index(way)
