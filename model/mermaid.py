"""The state diagram as Mermaid, and what every drawing of the machine says.

A drawing has one arrow per pair of heads.  The calls on it are its *lines*, and the rows of one call that
differ by guards only are one line.  What leaves the head alone (refusals, and the destructor) is a *note*.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .editions import head_machine
from .exploration import Input
from .head import Action, Call, Guard, SyncedHead, Transition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Kind", "Note", "arrows", "effect", "kind_of", "mermaid", "notes"]

Arrows = dict[tuple[SyncedHead, SyncedHead], dict[Call, list[Transition]]]

# Without the side: in every row but the destructor's it is the side that the call is named after.
_WORDS: Mapping[Action, str] = MappingProxyType(
    {
        Action.ALLOCATE_CPU: "alloc",
        Action.ZERO_CPU: "zero",
        Action.COPY_TO_CPU: "copy to CPU",
        Action.ADOPT_CPU: "adopt",
        Action.FREE_CPU: "free",
        Action.ALLOCATE_GPU: "alloc",
        Action.ZERO_GPU: "zero",
        Action.COPY_TO_GPU: "copy to GPU",
        Action.COPY_TO_GPU_ASYNC: "async copy to GPU",
        Action.ADOPT_GPU: "adopt",
        Action.FREE_GPU: "free",
    }
)


class Kind(enum.Enum):
    """What a line copies; of an arrow with several lines the first kind here speaks for all."""

    GPU = "copies to GPU"
    CPU = "copies to CPU"
    NONE = "no copy"
    ADOPT = "adopts a pointer"


_KINDS: Mapping[Action, Kind] = MappingProxyType(
    {
        Action.COPY_TO_GPU: Kind.GPU,
        Action.COPY_TO_GPU_ASYNC: Kind.GPU,
        Action.COPY_TO_CPU: Kind.CPU,
        Action.ADOPT_CPU: Kind.ADOPT,
        Action.ADOPT_GPU: Kind.ADOPT,
    }
)


class Note(NamedTuple):
    """Something that moves no head.

    Attributes
    ----------
    text : str
        The call, where, and what comes of it.
    heads : tuple of SyncedHead
    final : bool
        True for the destructor, False for a refusal.
    identifiers : tuple of str
        The transitions it stands for.
    """

    text: str
    heads: tuple[SyncedHead, ...]
    final: bool
    identifiers: tuple[str, ...]


def arrows(edition: str) -> Arrows:
    """Every pair of heads that some call leads along, in the order of the heads, with its lines.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    found: Arrows = {}
    for row in head_machine(edition).declaration.rows:
        for head in row.source:
            if row.dest is not None:
                found.setdefault((head, row.dest), {}).setdefault(row.call, []).append(row)
    order = list(SyncedHead)
    return dict(sorted(found.items(), key=lambda item: [order.index(head) for head in item[0]]))


def effect(rows: Iterable[Transition]) -> str:
    """What the rows of one line do, in order; a step that only some of them take is in brackets."""
    variants = [[_WORDS[action] for action in row.actions] for row in rows]
    steps = dict.fromkeys(word for variant in sorted(variants, key=len, reverse=True) for word in variant)
    return " + ".join(word if all(word in variant for variant in variants) else f"({word})" for word in steps)


def kind_of(rows: Iterable[Transition]) -> Kind:
    """The kind of a line: what its actions copy or adopt."""
    kinds = {_KINDS[action] for row in rows for action in row.actions if action in _KINDS}
    return next((kind for kind in Kind if kind in kinds), Kind.NONE)


def notes(edition: str) -> tuple[Note, ...]:
    """The refusals of an edition in the order they are declared, then its destructor."""
    declaration = head_machine(edition).declaration
    groups: dict[tuple[str, str | None], list[Transition]] = {}
    for row in declaration.rows:
        if row.dest is None:
            call = str(Input(row.call, data=Guard.HAS_DATA not in row.unless))
            groups.setdefault((call, row.refusal.value if row.refusal else None), []).append(row)
    return tuple(_note(call, refusal, rows, declaration.edition.heads) for (call, refusal), rows in groups.items())


def _note(call: str, refusal: str | None, rows: list[Transition], every: tuple[SyncedHead, ...]) -> Note:
    heads = tuple(head for head in every if any(head in row.source for row in rows))
    result = f"{effect(rows)}, then the end" if refusal is None else f"refused, {refusal}"
    identifiers = tuple(row.identifier(head) for row in rows for head in row.source)
    return Note(f"{call} in {_where(heads, every)}: {result}", heads, refusal is None, identifiers)


def _where(heads: tuple[SyncedHead, ...], every: tuple[SyncedHead, ...]) -> str:
    others = ", ".join(head.name for head in every if head not in heads)
    return f"every head but {others}" if others else "every head"


def mermaid(edition: str = "caffe") -> str:
    """Draw the machine as a Mermaid ``stateDiagram-v2``, which GitHub renders inside Markdown.

    Parameters
    ----------
    edition : str
        A name from ``EDITIONS``.

    Returns
    -------
    str
        The diagram without a code fence, ending in a newline.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    said = notes(edition)
    first = SyncedHead.UNINITIALIZED.name
    lines = ["stateDiagram-v2", f"    [*] --> {first}"]
    for (source, dest), calls in arrows(edition).items():
        # A label ends at a colon or a semicolon, so brackets set the effect off.
        label = "<br/>".join(_label(call, rows) for call, rows in calls.items())
        lines.append(f"    {source.name} --> {dest.name} : {label}")
    lines += [f"    {head.name} --> [*] : {Call.RELEASE.value}" for note in said if note.final for head in note.heads]
    lines.append(f"    note right of {first}")
    lines += [f"        {note.text}" for note in said]
    return "\n".join([*lines, "    end note"]) + "\n"


def _label(call: Call, rows: list[Transition]) -> str:
    done = effect(rows)
    return f"{call.value}<br/>[{done}]" if done else call.value
