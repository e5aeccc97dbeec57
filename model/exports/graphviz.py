"""The state diagram in DOT, which Graphviz lays out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caffe import DEFAULT
from ..diagrams.drawing import BRACKETS, Detail, Direction, drawing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..diagrams.drawing import Drawing
    from ..opening import AnyCall, AnyMachine

__all__ = ["dot", "dot_of"]


def dot(
    edition: AnyMachine = DEFAULT,
    *,
    calls: Collection[AnyCall] = (),
    detail: Detail = Detail.HEADS,
    direction: Direction = Direction.DOWN,
) -> str:
    """Draw the machine in DOT; parameters and errors are those of `mermaid`.

    Returns
    -------
    str
        A ``digraph`` with a newline at the end.
    """
    return dot_of(drawing(edition, calls=calls, detail=detail), direction)


def dot_of(drawn: Drawing, direction: Direction = Direction.DOWN) -> str:
    """Any drawing in DOT; see `dot`."""
    texts = [
        drawn.title,
        *(note.text for note in drawn.notes),
        *(abbreviation for abbreviation in drawn.abbreviations if abbreviation == BRACKETS),
    ]
    lines = ["digraph machine {", f"  label={_label(texts)};", "  node [shape=box, style=rounded];"]
    if direction is Direction.RIGHT:
        lines.append("  rankdir=LR;")
    # No state has an empty name, so this one is only where the first arrow starts.
    lines += ['  "" [shape=point];', f'  "" -> {_quoted(drawn.nodes[0].name)};']
    lines += [f"  {_quoted(node.name)};" for node in drawn.nodes]
    lines += [
        f"  {_quoted(edge.source)} -> {_quoted(edge.dest)} [label={_label(edge.labels)}];" for edge in drawn.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    """A text as DOT writes it; a backslash or an ampersand would have a meaning."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{escaped}"'


def _label(texts: Iterable[str]) -> str:
    """Lines that start at the left."""
    return '"{}"'.format("".join(f"{_quoted(text)[1:-1]}\\l" for text in texts))
