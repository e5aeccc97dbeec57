"""The positions of all parts of the drawing of configurations: a grid, host memory across and device memory down.

Columns and rows are the possibilities of a side: without memory, owned, or external.  In this grid every call stays
in its place or moves along one axis.  The host across and the device down behave alike, so the drawing is its own
mirror image in the diagonal.  A place with both pointers has three states in a frame: the host is fresh, the device
is fresh, or both are.  A call that does the same in all three is one arrow that leaves the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .arrangement import Arrangement, Arrow, Box, Group
from .drawing import without_kind
from .layout import INDENT, Anchor, Corner, corners_of, width_of

if TYPE_CHECKING:
    from ..declaration import Machine
    from .drawing import Drawing, Edge, Line
    from .layout import Point

__all__ = ["grid"]

_HIGH = 35
"""Half of the height of a state: its name and three calls."""

_LANE = 9
"""The distance of two arrows, there and back, from the axis of a state that they join to another."""

_SIDES = {"-": "no", "o": "owned", "e": "external"}
"""The letters of a side in the name of a configuration, in their order across and down."""

_Place = tuple[int, int]


class _Measures(NamedTuple):
    """Distances that follow from the widest label, each across and down.

    Attributes
    ----------
    half : Point
        Half of the size of a state.
    second : Point
        From the first state of a frame to the one beside it, and to the one below.
    before, after : Point
        Space of a frame around its states.
    between : Point
        Space between columns, and between rows.
    start : Point
        Space before the first column and the first row.
    """

    half: Point
    second: Point
    before: Point
    after: Point
    between: Point
    start: Point

    @property
    def origin(self) -> Point:
        """The centre of UNINITIALIZED."""
        return self.start[0] + self.half[0], self.start[1] + self.half[1]


def _measures(drawn: Drawing, room: int) -> _Measures:
    lines = [without_kind(drawn.machine, line) for edge in drawn.edges for line in edge.lines]
    letters = max(map(len, drawn.machine.calls)) + room
    letters = max([letters] + [len(step) for line in lines for step in line.steps])
    wide = INDENT[1] + width_of("m" * letters, "brief")
    half = wide // 2 + 6
    second = 2 * max(half + wide // 2 + 8, wide + 20)
    return _Measures((half, _HIGH), (second, 118), (wide + 27, 72), (half + 16, 60), (wide + 30, 96), (wide + 16, 74))


class _Spot(NamedTuple):
    """A place of the grid: the position of its first state, and whether it has a frame."""

    first: Point
    framed: bool
    of: _Measures

    @property
    def second(self) -> Point:
        """The column of the state beside the first, and the row of the state below it."""
        return self.first[0] + self.of.second[0], self.first[1] + self.of.second[1]

    @property
    def corner(self) -> Point:
        """The upper left corner of the frame, or of the only state."""
        before = self.of.before if self.framed else self.of.half
        return self.first[0] - before[0], self.first[1] - before[1]

    @property
    def end(self) -> Point:
        """The lower right corner."""
        (x, y), after = (self.second, self.of.after) if self.framed else (self.first, self.of.half)
        return x + after[0], y + after[1]

    def at(self, corner: Corner) -> Point:
        """The centre of a state: both fresh is first, the device beside it, the host below; an only state is first."""
        (x, y), (to_x, to_y) = self.first, self.second
        if not self.framed or corner is Corner.BOTTOM:
            return x, y
        return (to_x, y) if corner is Corner.RIGHT else (x, to_y)


def grid(drawn: Drawing, room: int = 0) -> Arrangement:
    """Lay out the configurations of a drawing, with room for this many letters before each call."""
    corners = corners_of(drawn.machine)
    heads = {node.name: corners[node.head] for node in drawn.nodes}
    places = {name: _place(name) for name in heads}
    measures = _measures(drawn, room)
    spots = _spots(list(places.values()), measures)
    stays = {
        edge.source: tuple(without_kind(drawn.machine, line) for line in edge.lines)
        for edge in drawn.edges
        if edge.source == edge.dest
    }
    boxes = tuple(
        Box(name, spots[place].at(heads[name]), measures.half, stays.get(name, ())) for name, place in places.items()
    )
    arrows: list[Arrow] = []
    for sources, dest, lines in _merged(drawn, places):
        start, end = spots[places[sources[0]]], spots[places[dest]]
        if start is end:
            points, anchor = _inside(start.at(heads[sources[0]]), end.at(heads[dest]), measures.half)
        else:
            points, anchor = _between(spots, (places[sources[0]], places[dest]), end.at(heads[dest]))
        arrows.append(Arrow(sources, dest, lines, points, anchor))
    groups = tuple(
        Group(
            _title(place),
            tuple(name for name, its in places.items() if its == place),
            spot.corner,
            (spot.end[0] - spot.corner[0], spot.end[1] - spot.corner[1]),
        )
        for place, spot in spots.items()
        if spot.framed
    )
    right, bottom = (max(spot.end[axis] for spot in spots.values()) for axis in (0, 1))
    return Arrangement(drawn, boxes, groups, tuple(arrows), (right + 34, bottom + 50), _abbreviations(drawn, groups))


def _place(name: str) -> _Place:
    """Column and row of a configuration: the last two letters of its name are its sides."""
    order = list(_SIDES)
    return order.index(name[-2]), order.index(name[-1])


def _title(place: _Place) -> str:
    said = list(_SIDES.values())
    return f"{said[place[0]]} host memory, {said[place[1]]} device memory"


def _abbreviations(drawn: Drawing, groups: tuple[Group, ...]) -> tuple[str, ...]:
    heads = ", ".join(f"{name[0]} {head}" for name, head in {node.name[0]: node.head for node in drawn.nodes}.items())
    sides = ", ".join(f"{side} {said}" for side, said in _SIDES.items())
    found = (f"X:hd is a head ({heads})", f"and then the memory of host and device ({sides})")
    framed = ("an arrow from a frame leaves each state in it",) if groups else ()
    return (", ".join(found), ", ".join(["a call in a state leaves it as it is", *framed]))


def _spots(places: list[_Place], measures: _Measures) -> dict[_Place, _Spot]:
    """Each column and row is as wide as its widest place, and the first states of its places are in line."""
    starts: list[list[int]] = []
    for axis in (0, 1):
        edge, firsts = measures.start[axis], list[int]()
        for index in range(1 + max(place[axis] for place in places)):
            framed = any(place[axis] == index and places.count(place) > 1 for place in places)
            firsts.append(edge + (measures.before if framed else measures.half)[axis])
            edge = firsts[-1] + (measures.second[axis] + measures.after[axis] if framed else measures.half[axis])
            edge += measures.between[axis]
        starts.append(firsts)
    found = dict.fromkeys(places)
    return {
        place: _Spot((starts[0][place[0]], starts[1][place[1]]), places.count(place) > 1, measures) for place in found
    }


def _merged(drawn: Drawing, places: dict[str, _Place]) -> list[tuple[tuple[str, ...], str, tuple[Line, ...]]]:
    """The edges between different states; edges that leave one frame for the same state become one."""
    found: dict[tuple[object, str], list[Edge]] = {}
    for edge in drawn.edges:
        inside = places[edge.source] == places[edge.dest]
        if edge.source != edge.dest:
            found.setdefault((edge.source if inside else places[edge.source], edge.dest), []).append(edge)
    return [
        (tuple(edge.source for edge in edges), dest, _one(drawn.machine, edges)) for (_, dest), edges in found.items()
    ]


def _one(machine: Machine, edges: list[Edge]) -> tuple[Line, ...]:
    """The lines of several edges that have the same texts, merged into the lines of one edge."""
    alike = zip(*(edge.lines for edge in edges), strict=True)
    return tuple(
        without_kind(
            machine,
            lines[0]._replace(identifiers=tuple(dict.fromkeys(it for line in lines for it in line.identifiers))),
        )
        for lines in alike
    )


def _inside(start: Point, end: Point, half: Point) -> tuple[list[Point], Anchor]:
    """An arrow between two states of a frame: straight, or around the empty corner."""
    (x, y), (to_x, to_y), (wide, high) = start, end, half
    if y == to_y:
        side = 1 if to_x > x else -1
        level = y - side * _LANE
        points = [(x + side * wide, level), (to_x - side * wide, level)]
        return points, Anchor((x + to_x) // 2, level - side * 6, 0.5, max(side, 0))
    if x == to_x:
        side = 1 if to_y > y else -1
        lane = x - side * _LANE
        points = [(lane, y + side * high), (lane, to_y - side * high)]
        return points, Anchor(lane - side * 8, (y + to_y) // 2, max(side, 0), 0.5)
    if x < to_x:
        points = [(x + wide, y + _LANE), (to_x + _LANE, y + _LANE), (to_x + _LANE, to_y + high)]
        return points, Anchor(to_x + _LANE, y + _LANE + 5, 1, 0)
    points = [(x - _LANE, y + high), (x - _LANE, to_y - _LANE), (to_x + wide, to_y - _LANE)]
    return points, Anchor(x - _LANE - 8, to_y - _LANE - 5, 1, 1)


def _between(spots: dict[_Place, _Spot], places: tuple[_Place, _Place], end: Point) -> tuple[list[Point], Anchor]:
    """An arrow to a state in another column or in another row: the same ways, mirrored in the diagonal."""
    (column, row), (to_column, to_row) = places
    spot, to_spot = (spots[place] for place in places)
    if row == to_row:
        passed = spots[column + 1, row] if to_column - column > 1 else None
        return _over(spot, end) if passed and not row + column else _across(spot, to_spot, passed, end)
    passed = spots[column, row + 1] if to_row - row > 1 else None
    return _beside(spot, end) if passed and not row + column else _down(spot, to_spot, passed, end)


def _over(spot: _Spot, end: Point) -> tuple[list[Point], Anchor]:
    (x, y), (to_x, to_y), (_, high) = spot.first, end, spot.of.half
    lane = y - high - 24
    return [(x + 30, y - high), (x + 30, lane), (to_x, lane), (to_x, to_y - high)], Anchor(x + 44, lane - 4, 0, 1)


def _beside(spot: _Spot, end: Point) -> tuple[list[Point], Anchor]:
    (x, y), (to_x, to_y), (wide, _) = spot.first, end, spot.of.half
    lane = x - wide - 14
    return [(x - wide, y + 10), (lane, y + 10), (lane, to_y), (to_x - wide, to_y)], Anchor(lane - 5, y + 24, 1, 0)


def _across(spot: _Spot, to_spot: _Spot, passed: _Spot | None, end: Point) -> tuple[list[Point], Anchor]:
    (x, y), (to_x, to_y), (wide, high) = spot.first, end, spot.of.half
    tip = to_x - wide
    if passed:
        lane, turn, level = passed.end[1] + 14, to_spot.corner[0] - 16, to_y + 16
        points = [(x + 10, y + high), (x + 10, lane), (turn, lane), (turn, level), (tip, level)]
        return points, Anchor(x + 20, lane - 4, 0, 1)
    if spot.framed:
        return [(spot.end[0], to_y), (tip, to_y)], Anchor(spot.end[0] + 22, to_y - 5, 0, 1)
    if to_y != y:
        return [(x + 40, y + high), (x + 40, to_y), (tip, to_y)], Anchor(x + wide + 8, to_y - 5, 0, 1)
    if to_spot.framed:
        return [(x + wide, y), (tip, y)], Anchor(x + wide + 8, y - 5, 0, 1)
    if spot.first == spot.of.origin:
        return [(x + wide, y), (tip, y)], Anchor(x + wide + 8, y + 6, 0, 0)
    level = y - 16
    return [(x + wide, level), (tip, level)], Anchor(tip - 10, level - 5, 1, 1)


def _down(spot: _Spot, to_spot: _Spot, passed: _Spot | None, end: Point) -> tuple[list[Point], Anchor]:
    (x, y), (to_x, to_y), (wide, high) = spot.first, end, spot.of.half
    tip = to_y - high
    if passed:
        lane, turn, level = passed.end[0] + 14, to_spot.corner[1] - 16, to_x + 16
        points = [(x + wide, y + 4), (lane, y + 4), (lane, turn), (level, turn), (level, tip)]
        return points, Anchor(lane - 12, y + 2, 1, 1)
    if spot.framed:
        return [(to_x, spot.end[1]), (to_x, tip)], Anchor(to_x - 8, spot.end[1] + 22, 1, 0)
    if to_x != x:
        return [(x + wide, y + 22), (to_x, y + 22), (to_x, tip)], Anchor(to_x - 8, y + 40, 1, 0)
    if to_spot.framed:
        return [(x, y + high), (x, tip)], Anchor(x + 8, y + high + 8, 0, 0)
    lane = x - 16
    return [(lane, y + high), (lane, tip)], Anchor(lane + 8, tip - 10, 0, 1)
