"""The plan of a drawing: its heads as a diamond, or its configurations as a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arrangement import GUARDED, NUMBERED, Arrangement, Arrow, Box
from .drawing import Detail
from .grid import grid
from .layout import HALF_HEIGHT, HALF_WIDTH, MARGIN, corners_of, frame_of

if TYPE_CHECKING:
    from .drawing import Drawing

__all__ = ["plan_of"]


def plan_of(drawn: Drawing, detail: Detail, room: int = 0) -> Arrangement:
    """Lay a drawing out; with room for the numbers of a trace, its legend explains them.

    Parameters
    ----------
    drawn : Drawing
        With this detail.
    detail : Detail
    room : int
        The number of letters before each call.
    """
    laid = grid(drawn, room) if detail is Detail.CONFIGURATIONS else _diamond(drawn, detail, room)
    return laid._replace(abbreviations=(*laid.abbreviations, NUMBERED)) if room else laid


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
    guarded = GUARDED if detail is Detail.HEADS else f"guard: step, !guard must not hold, {GUARDED}"
    return Arrangement(drawn, boxes, (), tuple(arrows), (width, height), (guarded,))
