"""The state diagram as Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..diagrams.drawing import Detail, Line, drawing
from ..head import DEFAULT_EDITION, Call

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..diagrams.drawing import Drawing
    from ..machine import AnyEdition

__all__ = ["mermaid", "mermaid_of"]


def mermaid(
    edition: AnyEdition = DEFAULT_EDITION, *, calls: Collection[Call] = (), detail: Detail = Detail.HEADS
) -> str:
    """Draw the machine as a Mermaid ``stateDiagram-v2``, which GitHub renders inside Markdown.

    Parameters
    ----------
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.
    calls : collection of Call
        Draw only these calls; if empty, all calls.
    detail : Detail

    Returns
    -------
    str
        The diagram without a code fence, with a newline at the end.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    return mermaid_of(drawing(edition, calls=calls, detail=detail))


def mermaid_of(drawn: Drawing) -> str:
    """Any drawing in Mermaid; see `mermaid`."""
    names = {node.name: _identifier(node.name) for node in drawn.nodes}
    first = names[drawn.nodes[0].name]
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{name}" as {alias}' for name, alias in names.items() if name != alias]
    lines.append(f"    [*] --> {first}")
    for edge in drawn.edges:
        # In Mermaid a colon or a semicolon ends a label, so the effect is in brackets.
        label = "<br/>".join(map(_label, edge.lines))
        lines.append(f"    {names[edge.source]} --> {names[edge.dest]} : {label}")
    ends = [node.name for node in drawn.nodes if node.head in drawn.ends]
    lines += [f"    {names[name]} --> [*] : {Call.RELEASE.value}" for name in ends]
    if drawn.notes:
        lines += [f"    note right of {first}", *(f"        {note.text}" for note in drawn.notes), "    end note"]
    return "\n".join(lines) + "\n"


_LETTERS = {"-": "n"}


def _identifier(name: str) -> str:
    """A name that Mermaid accepts: ``C:o-`` becomes ``C_on``, with ``n`` for null."""
    head, mark, sides = name.partition(":")
    return f"{head}_{''.join(_LETTERS.get(letter, letter) for letter in sides)}" if mark else head


def _label(line: Line) -> str:
    steps = [f"[{step.replace(':', ' →')}]" for step in line.steps]
    return "<br/>".join([line.call, *steps])
