"""The state diagram as Mermaid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..caffe import DEFAULT
from ..diagrams.drawing import BRACKETS, Detail, Direction, drawing

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..diagrams.drawing import Drawing
    from ..opening import AnyCall, AnyMachine

__all__ = ["mermaid", "mermaid_of"]


_LINE, _LETTER = 24, 8
"""The size of a line of a label, and of a letter, in pixels."""


def _room(drawn: Drawing) -> str:
    """Room by the size of the labels and the number of arrows, so that none lies on another.

    For the same reason the end is told in the note only.
    """
    labels = [edge.labels for edge in drawn.edges if edge.source != edge.dest] or [("",)]
    high = _LINE * max(map(len, labels))
    wide = _LETTER * max(len(text) for texts in labels for text in texts)
    rank = max(50, min(200, high * len(labels) // len(drawn.nodes)))
    node = max(50, min(150, wide // 2))
    return f'%%{{init: {{"state": {{"nodeSpacing": {node}, "rankSpacing": {rank}}}}}}}%%'


def mermaid(
    edition: AnyMachine = DEFAULT,
    *,
    calls: Collection[AnyCall] = (),
    detail: Detail = Detail.HEADS,
    direction: Direction = Direction.DOWN,
) -> str:
    """Draw the machine as a Mermaid ``stateDiagram-v2``, which GitHub renders inside Markdown.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str or Call
        Draw only these calls; if empty, all calls.
    detail : Detail
    direction : Direction

    Returns
    -------
    str
        The diagram without a code fence, with a newline at the end.
    """
    return mermaid_of(drawing(edition, calls=calls, detail=detail), direction)


def mermaid_of(drawn: Drawing, direction: Direction = Direction.DOWN) -> str:
    """Any drawing in Mermaid; see `mermaid`."""
    names = {node.name: _identifier(node.name, k) for k, node in enumerate(drawn.nodes)}
    first = names[drawn.nodes[0].name]
    lines = [_room(drawn), "stateDiagram-v2"]
    if direction is Direction.RIGHT:
        lines.append("    direction LR")
    lines += [f'    state "{_escaped(name)}" as {alias}' for name, alias in names.items() if name != alias]
    lines.append(f"    [*] --> {first}")
    lines += [
        f"    {names[edge.source]} --> {names[edge.dest]} : {'<br/>'.join(map(_label, edge.labels))}"
        for edge in drawn.edges
    ]
    # Guards stand in square brackets here, as in UML, and need no words.
    texts = [
        *(note.text for note in drawn.notes),
        *(abbreviation for abbreviation in drawn.abbreviations if abbreviation == BRACKETS),
    ]
    if texts:
        lines += [f"    note right of {first}", *(f"        {_escaped(text)}" for text in texts), "    end note"]
    return "\n".join(lines) + "\n"


_LETTERS = {"-": "n"}
_WORDS = frozenset(
    {
        "accdescr",
        "acctitle",
        "as",
        "choice",
        "class",
        "classdef",
        "click",
        "concurrent",
        "default",
        "direction",
        "end",
        "fork",
        "hide",
        "href",
        "join",
        "note",
        "root",
        "scale",
        "start",
        "state",
        "style",
        "title",
    }
)
"""Words of Mermaid's language, in which it does not look at the case of letters."""
_NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
"""A name that is written as it is.  Any other has an alias: it may mean something to Mermaid, or to JavaScript."""


def _identifier(name: str, number: int) -> str:
    """A name that Mermaid accepts: ``C:o-`` becomes ``C_on``, with ``n`` for null; of any other letters, a number."""
    head, mark, sides = name.partition(":")
    if not _NAME.fullmatch(head) or head.lower() in _WORDS:
        return f"state{number}"
    alias = f"{head}_{''.join(_LETTERS.get(letter, letter) for letter in sides)}" if mark else head
    return alias if re.fullmatch(r"\w+", alias, re.ASCII) else f"state{number}"


def _escaped(text: str) -> str:
    """A text whose letters mean nothing to Mermaid, which has numbers between # and ; for them."""
    meaning = r'[#;"<>&%{}\\`*$~^]|-->|__|(?<!\w)_|_(?!\w)|(?i:(?<=direction)|(?<=end)) +'
    return re.sub(meaning, lambda found: "".join(f"#{ord(character)};" for character in found[0]), text)


def _label(text: str) -> str:
    """The text of an arrow, which a colon would end."""
    return _escaped(text).replace(":", "#58;")
