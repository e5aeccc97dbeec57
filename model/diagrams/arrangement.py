"""A drawing that has been laid out: where its states, its arrows and their labels are, whoever paints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .drawing import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from .drawing import Drawing, Line
    from .layout import Anchor, Point
    from .trace import Trace

__all__ = ["GUARDED", "NUMBERED", "Arrangement", "Arrow", "Box", "Group", "taken"]

GUARDED = "(step) depends on a guard"
NUMBERED = "3: the third call of the list, 3…: and later ones"
"""What a legend says of effects, and of a trace."""


class Box(NamedTuple):
    """A state.

    Attributes
    ----------
    name : str
    centre, half : Point
        Where it is, and half of its width and height.
    stays : tuple of Line
        Calls that leave it as it is and are written into it, rather than beside a loop.
    """

    name: str
    centre: Point
    half: Point
    stays: tuple[Line, ...] = ()


class Group(NamedTuple):
    """A frame around states that some arrows leave together."""

    title: str
    states: tuple[str, ...]
    corner: Point
    size: Point


class Arrow(NamedTuple):
    """Calls that lead from a state, or from each of a group, to another.

    Attributes
    ----------
    sources : tuple of str
    dest : str
    lines : tuple of Line
    points : list of Point
        The way, along the axes.
    anchor : Anchor
        Where the label goes.
    """

    sources: tuple[str, ...]
    dest: str
    lines: tuple[Line, ...]
    points: list[Point]
    anchor: Anchor

    def taken(self, trace: Trace | None) -> tuple[Line, ...]:
        """The lines that a trace, if there is one, takes at least once."""
        return tuple(line for line in self.lines if taken(line, self.sources, trace))

    def kind(self, trace: Trace | None) -> Kind:
        """The first kind, in the order of `Kind`, of the lines that a trace takes, or else of all."""
        kinds = {line.kind for line in self.taken(trace) or self.lines}
        return next(kind for kind in Kind if kind in kinds)


class Arrangement(NamedTuple):
    """All of a drawing, laid out.

    Attributes
    ----------
    drawn : Drawing
    boxes : tuple of Box
        The first is where a memory starts: an arrow leads into it from above.
    groups : tuple of Group
    arrows : tuple of Arrow
    size : Point
        Width and height; the legend goes below.
    abbreviations : tuple of str
        What the legend has to say besides the kinds.
    """

    drawn: Drawing
    boxes: tuple[Box, ...]
    groups: tuple[Group, ...]
    arrows: tuple[Arrow, ...]
    size: Point
    abbreviations: tuple[str, ...]

    @property
    def kinds(self) -> list[Kind]:
        """Those that there are, in their order."""
        lines = [line for arrow in self.arrows for line in arrow.lines]
        lines += [line for box in self.boxes for line in box.stays]
        return [kind for kind in Kind if kind in {line.kind for line in lines}]


def taken(line: Line, sources: Collection[str], trace: Trace | None) -> list[int]:
    """The steps of a trace, if there is one, that took a line from one of some states."""
    found = [] if trace is None else [trace.numbers_of(line.identifiers, source) for source in sources]
    return sorted({number for numbers in found for number in numbers})
