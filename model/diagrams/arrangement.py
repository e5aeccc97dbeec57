"""A drawing after layout: the positions of its states, its arrows and their labels, for any painter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .drawing import Direction, Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from .drawing import Drawing, Line
    from .layout import Anchor, Point
    from .trace import Trace

__all__ = ["NUMBERED", "Arrangement", "Arrow", "Box", "taken"]

NUMBERED = "3: the third call of the list, 3…: and later ones"
"""A text of the legend: about a trace."""


class Box(NamedTuple):
    """A state.

    Attributes
    ----------
    name : str
    centre, half : Point
        The position of its centre; half of its width and half of its height.
    stays : tuple of Line
        Calls that leave the state as it is.  They are written into its box, not beside a loop.
    """

    name: str
    centre: Point
    half: Point
    stays: tuple[Line, ...] = ()


class Arrow(NamedTuple):
    """Calls that lead from a state, or from every state, to another.

    Attributes
    ----------
    sources : tuple of str
    dest : str
    lines : tuple of Line
    points : list of Point
        The corners of the arrow; each stretch is parallel to an axis.
    anchor : Anchor
        The position of the label.
    joining : tuple of list of Point
        The corners of arrows from other sources that end on this one.
    """

    sources: tuple[str, ...]
    dest: str
    lines: tuple[Line, ...]
    points: list[Point]
    anchor: Anchor
    joining: tuple[list[Point], ...] = ()

    def taken(self, trace: Trace | None) -> tuple[Line, ...]:
        """The lines that the trace takes at least once; without a trace, none."""
        return tuple(line for line in self.lines if taken(line, self.sources, trace))

    def kind(self, trace: Trace | None) -> Kind:
        """The kind of the lines that the trace takes, or else of all lines: the first in the order of `Kind`."""
        kinds = {line.kind for line in self.taken(trace) or self.lines}
        return next(kind for kind in Kind if kind in kinds)


class Arrangement(NamedTuple):
    """A whole drawing after layout.

    Attributes
    ----------
    drawn : Drawing
    boxes : tuple of Box
        The machine starts in the first box: an arrow leads into it from outside.
    arrows : tuple of Arrow
    size : Point
        Width and height, without the legend below.
    abbreviations : tuple of str
        Texts of the legend besides the kinds.
    direction : Direction
    """

    drawn: Drawing
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    size: Point
    abbreviations: tuple[str, ...]
    direction: Direction = Direction.DOWN

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that the legend tells, in the order of `Kind`."""
        lines = [line for arrow in self.arrows for line in arrow.lines]
        lines += [line for box in self.boxes for line in box.stays]
        kinds = {line.kind for line in lines}
        return [kind for kind in Kind if kind in kinds and self.drawn.says(kind)]


def taken(line: Line, sources: Collection[str], trace: Trace | None) -> list[int]:
    """The numbers of the steps of the trace that took this line from one of these states; without a trace, none."""
    steps = [] if trace is None else [trace.numbers_of(line.identifiers, source) for source in sources]
    return sorted({number for numbers in steps for number in numbers})
