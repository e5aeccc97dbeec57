"""Whether there is a place in our pictures for every arrow of somebody's machine.

The pictures are laid out for machines that are shaped like Caffe's.  Another machine has arrows for which no way is
known, and these would run through boxes and labels.  So it is refused, and the formats that lay out by themselves
are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidExportError
from ..head import EDITIONS, SyncedHead
from ..machine import Declaration
from .drawing import Detail, drawing

if TYPE_CHECKING:
    from ..machine import AnyEdition
    from .drawing import Drawing

__all__ = ["check_shape"]

_OTHERS = "mermaid, plantuml and the tables can show it"

Edges = dict[tuple[str, str], tuple[tuple[str, tuple[str, ...]], ...]]


def check_shape(edition: AnyEdition, drawn: Drawing, detail: Detail) -> None:
    """Refuse a drawing of a declaration that our pictures have no place for; an edition of ours has its place.

    Raises
    ------
    InvalidExportError
        The error names the first arrow without a way.
    """
    if not isinstance(edition, Declaration):
        return
    if detail is not Detail.CONFIGURATIONS:
        for edge in drawn.edges:
            if not _has_way(SyncedHead[edge.source], SyncedHead[edge.dest]):
                raise InvalidExportError(
                    f"the picture of {edition} has no way for the arrow from {edge.source} to {edge.dest}; {_OTHERS}"
                )
    elif not any(_shown(drawn) == _shown(drawing(name, detail=detail), drawn) for name in EDITIONS):
        raise InvalidExportError(
            f"the picture of {edition} has no place for its configurations, which are not those of an edition of "
            f"Caffe; {_OTHERS}"
        )


def _has_way(source: SyncedHead, dest: SyncedHead) -> bool:
    """Whether the diamond has a way: none leads back to its top, and none from its top to its bottom."""
    top, bottom = SyncedHead.UNINITIALIZED, SyncedHead.SYNCED
    return source is dest or (dest is not top and (source, dest) != (top, bottom))


def _shown(drawn: Drawing, like: Drawing | None = None) -> Edges:
    """The calls on each arrow, with their effects; optionally only calls that another drawing has too."""
    calls = {line.call for edge in (like or drawn).edges for line in edge.lines}
    found = {
        (edge.source, edge.dest): tuple((line.call, line.steps) for line in edge.lines if line.call in calls)
        for edge in drawn.edges
    }
    return {ends: lines for ends, lines in found.items() if lines}
