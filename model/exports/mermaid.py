"""The state diagram as Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..diagrams.drawing import Detail, drawing
from ..diagrams.labels import PLAIN, Labels
from ..head import DEFAULT_EDITION

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..diagrams.drawing import Drawing, Node
    from ..head import Call
    from ..machine import AnyEdition

__all__ = ["mermaid", "mermaid_of"]


_ROOM = '%%{init: {"state": {"nodeSpacing": 150, "rankSpacing": 180}}}%%'
"""More room than is usual, so that no label lies on another.  For the same reason the end is told in the note only."""


def mermaid(
    edition: AnyEdition = DEFAULT_EDITION,
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.HEADS,
    labels: Labels = PLAIN,
) -> str:
    """Draw the machine as a Mermaid ``stateDiagram-v2``, which GitHub renders inside Markdown.

    Parameters
    ----------
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.
    calls : collection of Call
        Draw only these calls; if empty, all calls.
    detail : Detail
    labels : Labels
        Texts instead of names.

    Returns
    -------
    str
        The diagram without a code fence, with a newline at the end.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    return mermaid_of(drawing(edition, calls=calls, detail=detail, labels=labels))


def mermaid_of(drawn: Drawing) -> str:
    """Any drawing in Mermaid; see `mermaid`."""
    names = {node.name: _identifier(node) for node in drawn.nodes}
    first = names[drawn.nodes[0].name]
    lines = [_ROOM, "stateDiagram-v2"]
    lines += [f'    state "{name}" as {alias}' for name, alias in names.items() if name != alias]
    lines.append(f"    [*] --> {first}")
    lines += [f"    {names[it.source]} --> {names[it.dest]} : {'<br/>'.join(it.labels)}" for it in drawn.edges]
    if drawn.notes:
        lines += [f"    note right of {first}", *(f"        {note.text}" for note in drawn.notes), "    end note"]
    return "\n".join(lines) + "\n"


_LETTERS = {"-": "n"}


def _identifier(node: Node) -> str:
    """A name that Mermaid accepts: ``C:o-`` becomes ``C_on``, with ``n`` for null; a head is itself."""
    head, mark, sides = node.name.partition(":")
    return f"{head}_{''.join(_LETTERS.get(letter, letter) for letter in sides)}" if mark else node.head.name
