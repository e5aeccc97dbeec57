"""Whether a drawing is shaped like Caffe's, so that our pictures of Caffe's machine have a place for all of it.

Heads are drawn as a diamond if they are Caffe's, there is a way for each arrow, and no text is longer than Caffe's.
All others are drawn in layers.
The grid of configurations is only for the configurations of Caffe's editions; others are refused, and the formats that
lay out by themselves are named.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import TYPE_CHECKING

from ..errors import InvalidExportError
from ..head import EDITIONS, SyncedHead
from ..machine import Declaration
from .drawing import Detail, drawing

if TYPE_CHECKING:
    from ..machine import AnyEdition
    from .drawing import Drawing

__all__ = ["check_shape", "is_diamond"]

_OTHERS = "mermaid, plantuml and the tables can show it"

Edges = dict[tuple[str, str], tuple[tuple[str, tuple[str, ...]], ...]]


def is_diamond(drawn: Drawing) -> bool:
    """Whether the diamond has a place for every head, a way for every arrow, and room for every text.

    No way leads back to its top, and none from its top to its bottom.
    """
    heads = {node.name: node.head for node in drawn.nodes}
    top, bottom = SyncedHead.UNINITIALIZED, SyncedHead.SYNCED
    if not all(head in list(SyncedHead) for head in heads.values()):
        return False
    return all(map(operator.le, _lengths(drawn), _longest())) and all(
        edge.source == edge.dest
        or (heads[edge.dest] is not top and (heads[edge.source], heads[edge.dest]) != (top, bottom))
        for edge in drawn.edges
    )


def _lengths(drawn: Drawing) -> tuple[int, int, int]:
    """The lengths of the longest name of a head, the longest call and the longest effect."""
    lines = [line for edge in drawn.edges for line in edge.lines]
    return (
        max(len(node.name) for node in drawn.nodes),
        max((len(line.call) for line in lines), default=0),
        max((len(step) for line in lines for step in line.steps), default=0),
    )


@cache
def _longest() -> tuple[int, ...]:
    """What the diamond has room for: the lengths of Caffe's own texts."""
    plain = [_lengths(drawing(edition, detail=Detail.GUARDS)) for edition in EDITIONS]
    return tuple(map(max, zip(*plain, strict=True)))


def check_shape(edition: AnyEdition, drawn: Drawing, detail: Detail) -> None:
    """Refuse configurations of a declaration that our grid has no place for; an edition of ours has its place.

    Raises
    ------
    InvalidExportError
        The error names the formats that can show them.
    """
    if not isinstance(edition, Declaration) or detail is not Detail.CONFIGURATIONS:
        return
    if not any(_shown(drawn) == _shown(drawing(name, detail=detail), drawn) for name in EDITIONS):
        raise InvalidExportError(
            f"the picture of {edition} has no place for its configurations, which are not those of an edition of "
            f"Caffe; {_OTHERS}"
        )


def _shown(drawn: Drawing, like: Drawing | None = None) -> Edges:
    """The calls on each arrow, with their effects; optionally only calls that another drawing has too."""
    calls = {line.call for edge in (like or drawn).edges for line in edge.lines}
    found = {
        (edge.source, edge.dest): tuple((line.call, line.steps) for line in edge.lines if line.call in calls)
        for edge in drawn.edges
    }
    return {ends: lines for ends, lines in found.items() if lines}
