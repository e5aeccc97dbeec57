"""Whether there is a place in our pictures for every arrow of somebody's machine.

The pictures are laid out for machines that are shaped like Caffe's.  Another machine has arrows for which no way is
known, and these would run through boxes and labels.  So it is refused, and the formats that lay out by themselves
are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caffe import EDITIONS
from ..errors import InvalidExportError
from .drawing import Detail, drawing
from .layout import Corner, corners_of

if TYPE_CHECKING:
    from .drawing import Drawing, Edge

__all__ = ["check_shape", "without_way"]

_OTHERS = "mermaid, plantuml and the tables can show it"

Edges = dict[tuple[str, str], tuple[tuple[str, tuple[str, ...]], ...]]


def check_shape(drawn: Drawing, detail: Detail) -> None:
    """Refuse a drawing that our pictures have no place for; an edition of ours has its place.

    Raises
    ------
    InvalidExportError
        The error names the first arrow without a way, or the head without a place.
    """
    machine = drawn.machine
    if machine in EDITIONS.values():
        return
    corners = corners_of(machine)
    if missing := [head for head in machine.heads if head not in corners]:
        raise InvalidExportError(
            f"the picture of {machine} has no place for {missing[0]}: it has one head each with nothing, the first "
            f"side, the second and both fresh; {_OTHERS}"
        )
    if detail is not Detail.CONFIGURATIONS:
        for edge in without_way(drawn):
            raise InvalidExportError(
                f"the picture of {machine} has no way for the arrow from {edge.source} to {edge.dest}; {_OTHERS}"
            )
    elif not any(_shown(drawn) == _shown(drawing(it, detail=detail), drawn) for it in EDITIONS.values()):
        raise InvalidExportError(
            f"the picture of {machine} has no place for its configurations, which are not those of an edition of "
            f"Caffe; {_OTHERS}"
        )


def without_way(drawn: Drawing) -> tuple[Edge, ...]:
    """The arrows that the diamond has no way for, or no place for a head of theirs.

    None leads back to its top, and none from its top to its bottom.
    """
    corners = corners_of(drawn.machine)
    ends = ((edge, corners.get(edge.source), corners.get(edge.dest)) for edge in drawn.edges)
    nowhere = None, Corner.TOP
    return tuple(
        edge
        for edge, source, dest in ends
        if source is None or dest in nowhere or (source, dest) == (Corner.TOP, Corner.BOTTOM)
    )


def _shown(drawn: Drawing, like: Drawing | None = None) -> Edges:
    """The calls on each arrow, with their effects; optionally only calls that another drawing has too."""
    calls = {line.call for edge in (like or drawn).edges for line in edge.lines}
    found = {
        (edge.source, edge.dest): tuple((line.call, line.steps) for line in edge.lines if line.call in calls)
        for edge in drawn.edges
    }
    return {ends: lines for ends, lines in found.items() if lines}
