"""The positions of all parts of the diamond: heads, arrows, and the labels of the arrows.

Only the places of the four heads are set by hand: nothing fresh above, the host left, the device right, both below.
Arrows run along the axes with rounded corners, and rules route them: *down* along the outer lane of a side head, *up*
along its inner lane, *across* in two lines, and a loop where its head has room.  Each route determines the place of its
label.  A label is a box of known size, because its font is monospace.  Every stretch of an arrow is parallel to an
axis, so the tests can treat everything as rectangles and check that nothing overlaps.
"""

from __future__ import annotations

import enum
import re
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ..spelling import Spelled
from .drawing import Detail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..declaration import Machine

__all__ = [
    "HALF_HEIGHT",
    "HALF_WIDTH",
    "MARGIN",
    "SIZES",
    "Anchor",
    "Corner",
    "Frame",
    "Point",
    "block_at",
    "corners_of",
    "frame_of",
    "indent_of",
    "width_of",
]

HALF_WIDTH, HALF_HEIGHT = 64, 18
"""Half of the size of a head."""

MARGIN = 18
"""The space around a drawing."""

SIZES: Mapping[str, int] = MappingProxyType({"call": 12, "brief": 11, "step": 11, "note": 11, "name": 13})
"""The sizes of the font, by what is written."""

_OUTER, _INNER = 50, 34
_EM = 0.6

_SPARE = 4
"""The number of letters before a call for which there is room without moving the heads."""

Point = tuple[int, int]


class Anchor(NamedTuple):
    """A point, and which part of a label's box lies on it: 0 for the left or top, 1 for the right or bottom."""

    x: int
    y: int
    across: float
    down: float


class Corner(Spelled, enum.Enum):
    """The corners of the diamond: where a head is, by the sides that are fresh in it."""

    TOP = ()
    LEFT = (0,)
    RIGHT = (1,)
    BOTTOM = (0, 1)


def corners_of(machine: Machine) -> dict[str, Corner]:
    """The corners of heads; a head is missing if it has none, or if another has taken it."""
    fresh = {
        frozenset(machine.sides[side] for side in corner.value if side < len(machine.sides)): corner
        for corner in Corner
    }
    corners: dict[str, Corner] = {}
    for head in machine.heads.values():
        corner = fresh.get(frozenset(head.fresh))
        if corner is not None and corner not in corners.values():
            corners[head.name] = corner
    return corners


class Frame(NamedTuple):
    """The positions of the heads, and how far below a side head the arrows that lead up to it turn."""

    places: Mapping[Corner, Point]
    turn: int

    @property
    def middle(self) -> Point:
        """The point about which the drawing is symmetric, left and right."""
        return self.places[Corner.BOTTOM][0], self.places[Corner.LEFT][1]

    def route(self, source: Corner, dest: Corner) -> tuple[list[Point], Anchor]:
        """The points of an arrow from head to head, and the position of its label."""
        (x, y), (to_x, to_y) = self.places[source], self.places[dest]
        middle_x, _ = self.middle
        if source is dest:
            return self._loop(x, y)
        if y == to_y:
            return self._across(x, to_x, y)
        side = 1 if max(x, to_x) > middle_x else -1
        return (self._down if to_y > y else self._up)(x, y, to_x, to_y, side)

    def _loop(self, x: int, y: int) -> tuple[list[Point], Anchor]:
        """Below the lowest head; above the side heads, where the label stays near the margin of its side."""
        down = 1 if y > self.middle[1] else -1
        edge, turn = y + down * HALF_HEIGHT, y + down * (HALF_HEIGHT + 20)
        points = [(x - 15, edge), (x - 15, turn), (x + 15, turn), (x + 15, edge)]
        if x == self.middle[0]:
            return points, Anchor(x, turn + down * 6, 0.5, 0)
        side = 1 if x > self.middle[0] else -1
        return points[::-side], Anchor(x + side * (_OUTER - 12), turn + down * 6, max(side, 0), 1)

    def _across(self, x: int, to_x: int, y: int) -> tuple[list[Point], Anchor]:
        """Rightwards in the upper lane with the label above, leftwards in the lower one with the label below."""
        side = 1 if to_x > x else -1
        level = y - side * 9
        points = [(x + side * HALF_WIDTH, level), (to_x - side * HALF_WIDTH, level)]
        return points, Anchor(self.middle[0], level - side * 8, 0.5, max(side, 0))

    def _down(self, x: int, y: int, to_x: int, to_y: int, side: int) -> tuple[list[Point], Anchor]:
        """Along the outer lane of the side head; the label lies in the corner."""
        if x == self.middle[0]:
            lane = to_x + side * _OUTER
            points = [(x + side * HALF_WIDTH, y), (lane, y), (lane, to_y - HALF_HEIGHT)]
            return points, Anchor(lane - side * 12, y + 10, max(side, 0), 0)
        lane = x + side * _OUTER
        points = [(lane, y + HALF_HEIGHT), (lane, to_y), (to_x + side * HALF_WIDTH, to_y)]
        return points, Anchor(lane - side * 12, to_y - 26, max(side, 0), 1)

    def _up(self, x: int, y: int, to_x: int, to_y: int, side: int) -> tuple[list[Point], Anchor]:
        """Along the inner lane of the side head, turning half way; the label lies on the turn."""
        start, lane, level = x + side * 20, to_x - side * _INNER, to_y + self.turn
        points = [(start, y - HALF_HEIGHT), (start, level), (lane, level), (lane, to_y + HALF_HEIGHT)]
        return points, Anchor(lane - side * 10, level - 8, max(side, 0), 1)


def _frame(x: int, span: int, heights: tuple[int, int, int], turn: int) -> Frame:
    top, middle, bottom = heights
    places = {
        Corner.TOP: (x + span, top),
        Corner.LEFT: (x, middle),
        Corner.RIGHT: (x + 2 * span, middle),
        Corner.BOTTOM: (x + span, bottom),
    }
    return Frame(MappingProxyType(places), turn)


def frame_of(detail: Detail, room: int = 0) -> Frame:
    """The frame with room for the labels of heads or of guards, and for this many letters before each call."""
    if detail is Detail.GUARDS:
        return _frame(90, 300, (58, 300, 612), 182)
    return _frame(90, 210 + 8 * max(0, room - _SPARE), (58, 284, 516), 138)


def width_of(text: str, look: str) -> int:
    """The width of a text; joiners, which have no ink, have none."""
    return ceil(len(re.sub("[\u200c\u200d]", "", text)) * SIZES[look] * _EM)


def indent_of(*, bullet: bool, mark: bool = False) -> int:
    """The indent of a text behind a bullet and a mark."""
    return 14 * bullet + 13 * mark


def block_at(anchor: Anchor, width: int, height: int) -> Point:
    """The upper left corner of a label."""
    return ceil(anchor.x - anchor.across * width), ceil(anchor.y - anchor.down * height)
