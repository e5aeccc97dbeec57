"""The plan of a drawing: Caffe's shape as a diamond, and anything else in layers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..caffe import EDITIONS
from .arrangement import NUMBERED, Arrangement, Arrow, Box
from .drawing import Detail, Direction, drawing
from .layered import layered
from .layout import HALF_HEIGHT, HALF_WIDTH, MARGIN, corners_of, frame_of

if TYPE_CHECKING:
    from .drawing import Drawing

__all__ = ["plan_of"]


def plan_of(drawn: Drawing, detail: Detail, room: int = 0, direction: Direction = Direction.DOWN) -> Arrangement:
    """Lay a drawing out; with room for the numbers of a trace, its legend explains them.

    Parameters
    ----------
    drawn : Drawing
        With this detail.
    detail : Detail
    room : int
        The number of letters before each call.
    direction : Direction
    """
    if direction is Direction.DOWN and detail is not Detail.CONFIGURATIONS and _is_diamond(drawn, detail):
        laid = _diamond(drawn, detail, room)
    else:
        laid = layered(drawn, room, direction)
    texts = [*laid.abbreviations, *([", ".join(drawn.abbreviations)] if drawn.abbreviations else [])]
    return laid._replace(abbreviations=(*texts, *((NUMBERED,) if room else ())))


def _is_diamond(drawn: Drawing, detail: Detail) -> bool:
    """Whether the diamond has a corner for each head, a way for each arrow, and room for its calls."""
    corners, room = corners_of(drawn.machine), _room_of_diamond()
    if detail is Detail.HEADS and any(line.guards for edge in drawn.edges for line in edge.lines):
        return False
    return all(node.head in corners for node in drawn.nodes) and all(
        len(edge.lines) <= room.get((edge.source, edge.dest), 0) for edge in drawn.edges
    )


@cache
def _room_of_diamond() -> dict[tuple[str, str], int]:
    """How many calls the arrows between Caffe's heads have at most."""
    edges = [edge for edition in EDITIONS.values() for edge in drawing(edition).edges]
    most: dict[tuple[str, str], int] = {}
    for edge in edges:
        most[edge.source, edge.dest] = max(most.get((edge.source, edge.dest), 0), len(edge.lines))
    return most


def _diamond(drawn: Drawing, detail: Detail, room: int) -> Arrangement:
    """The four heads as a diamond, that of a new memory on top."""
    frame, corners = frame_of(detail, room), corners_of(drawn.machine)
    boxes = tuple(Box(node.name, frame.places[corners[node.head]], (HALF_WIDTH, HALF_HEIGHT)) for node in drawn.nodes)
    arrows: list[Arrow] = []
    for edge in drawn.edges:
        points, anchor = frame.route(corners[edge.source], corners[edge.dest])
        arrows.append(Arrow((edge.source,), edge.dest, edge.lines, points, anchor))
    lowest = max(y for _, (_, y), _, _ in boxes)
    height = lowest + (92 if lowest > frame.middle[1] else 34)
    width = max(x + HALF_WIDTH + MARGIN + 8 for _, (x, _), _, _ in boxes)
    return Arrangement(drawn, boxes, tuple(arrows), (width, height), ())
