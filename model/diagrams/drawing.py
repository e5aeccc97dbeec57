"""What every drawing of the machine shows: nodes, edges, the calls on the edges, and calls that do not move the head.

A drawing has one edge per pair of nodes.  The calls on it are its *lines*.  A refusal or the destructor, which do not
move the head, is a *note*.  There are three levels of *detail*: heads, where the rows of one call that differ only in
their guards are one line; guards, where each of these rows is a step of that line; and configurations, which need no
guards because the pointers are in the nodes.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..compiled import head_machine
from ..exploration import Input, matrix
from ..head import DEFAULT_EDITION, Action, Call, Guard, SyncedHead, Transition
from ..spelling import Spelled
from ..vocabulary import Host, Verb, phrase_of, place_of, verb_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..machine import AnyEdition

__all__ = [
    "Detail",
    "Drawing",
    "Edge",
    "Kind",
    "Line",
    "Node",
    "Note",
    "arrows",
    "drawing",
    "effect",
    "guards_of",
    "kind_of",
    "notes",
    "without_kind",
]


class Detail(Spelled, enum.StrEnum):
    """What a drawing or a table distinguishes."""

    HEADS = "heads"
    GUARDS = "guards"
    CONFIGURATIONS = "configurations"


class Acting(Protocol):
    """Anything with actions: a row, or an entry of the matrix."""

    @property
    def actions(self) -> tuple[Action, ...]: ...


Arrows = dict[tuple[SyncedHead, SyncedHead], dict[Call, list[Transition]]]


class Kind(Spelled, enum.Enum):
    """What a line copies; the kind of an arrow is the first kind in this order that one of its lines has."""

    GPU = "copies to GPU"
    CPU = "copies to CPU"
    NONE = "no copy"
    ADOPT = "adopts a pointer"


def _kind(action: Action) -> Kind:
    if verb_of(action) is Verb.COPY:
        return Kind.GPU if place_of(action) is Host.GPU else Kind.CPU
    return Kind.ADOPT if verb_of(action) is Verb.ADOPT else Kind.NONE


class Note(NamedTuple):
    """A call that does not move the head.

    Attributes
    ----------
    text : str
        The call, the heads, and the result.
    heads : tuple of SyncedHead
    final : bool
        True for the destructor, False for a refusal.
    identifiers : tuple of str
        The transitions that it stands for.
    """

    text: str
    heads: tuple[SyncedHead, ...]
    final: bool
    identifiers: tuple[str, ...]


def arrows(edition: AnyEdition) -> Arrows:
    """The edges between heads, in the order of the heads, each with its rows by call.

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


def effect(rows: Iterable[Acting]) -> str:
    """The actions of the rows of one line, in order; an action that only some of the rows have is in brackets."""
    variants = [[phrase_of(action) for action in row.actions] for row in rows]
    steps = dict.fromkeys(word for variant in sorted(variants, key=len, reverse=True) for word in variant)
    return " + ".join(word if all(word in variant for variant in variants) else f"({word})" for word in steps)


def kind_of(rows: Iterable[Acting]) -> Kind:
    """The kind of a line, which depends on what its actions copy or adopt."""
    kinds = {_kind(action) for row in rows for action in row.actions} - {Kind.NONE}
    return next((kind for kind in Kind if kind in kinds), Kind.NONE)


def notes(edition: AnyEdition, calls: Collection[Call] = ()) -> tuple[Note, ...]:
    """The refusals of an edition in the order of their declaration, then its destructor; optionally of some calls."""
    declaration = head_machine(edition).declaration
    groups: dict[tuple[str, str | None], list[Transition]] = {}
    for row in declaration.rows:
        if row.dest is None and (not calls or row.call in calls):
            call = str(Input(row.call, data=Guard.HAS_DATA not in row.unless))
            groups.setdefault((call, row.refusal.value if row.refusal else None), []).append(row)
    return tuple(_note(call, refusal, rows, declaration.edition.heads) for (call, refusal), rows in groups.items())


def _note(call: str, refusal: str | None, rows: list[Transition], every: tuple[SyncedHead, ...]) -> Note:
    heads = tuple(head for head in every if any(head in row.source for row in rows))
    done = effect(rows)
    result = f"refused, {refusal}" if refusal is not None else f"{done}, then the end" if done else "the end"
    identifiers = tuple(row.identifier(head) for row in rows for head in row.source)
    return Note(f"{call} in {_where(heads, every)}: {result}", heads, refusal is None, identifiers)


def _where(heads: tuple[SyncedHead, ...], every: tuple[SyncedHead, ...]) -> str:
    others = ", ".join(head.name for head in every if head not in heads)
    return f"every head but {others}" if others else "every head"


class Line(NamedTuple):
    """One call on an edge.

    Attributes
    ----------
    call : str
    steps : tuple of str
        Its effect: empty, one text, or one text per row, with the row's guards before a colon.
    kind : Kind
    identifiers : tuple of str
        The transitions that it stands for.
    """

    call: str
    steps: tuple[str, ...]
    kind: Kind
    identifiers: tuple[str, ...]


def without_kind(line: Line) -> Line:
    """A line without the steps that its kind already shows."""
    said = {phrase_of(action) for action in Action if _kind(action) is not Kind.NONE}
    rest = (" + ".join(word for word in step.split(" + ") if word not in said) for step in line.steps)
    return line._replace(steps=tuple(step for step in rest if step))


class Node(NamedTuple):
    """A head, or one of its configurations."""

    name: str
    head: SyncedHead


def _uml(calls: str, step: str) -> str:
    guards, _, actions = step.rpartition(": ")
    asked = f" [{guards}]" if guards else ""
    return f"{calls}{asked} / {actions}" if actions else f"{calls}{asked}"


class Edge(NamedTuple):
    """All calls that lead from one node to another."""

    source: str
    dest: str
    lines: tuple[Line, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Its lines as UML writes transitions, ``calls [guards] / actions``; calls that do the same are one line."""
        calls: dict[tuple[str, ...], list[str]] = {}
        for line in self.lines:
            calls.setdefault(line.steps, []).append(line.call)
        return tuple(_uml(", ".join(names), step) for steps, names in calls.items() for step in steps or ("",))

    @property
    def kind(self) -> Kind:
        """The kind of the edge: the first in the order of `Kind` that one of its lines has."""
        kinds = {line.kind for line in self.lines}
        return next(kind for kind in Kind if kind in kinds)


class Drawing(NamedTuple):
    """A state diagram before layout.

    Attributes
    ----------
    title : str
    nodes : tuple of Node
        In the first node a memory starts.
    edges : tuple of Edge
    notes : tuple of Note
    """

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    notes: tuple[Note, ...]

    @property
    def ends(self) -> set[SyncedHead]:
        """The heads from which the destructor leads to the end."""
        return {head for note in self.notes if note.final for head in note.heads}


def drawing(
    edition: AnyEdition = DEFAULT_EDITION, *, calls: Collection[Call] = (), detail: Detail = Detail.HEADS
) -> Drawing:
    """The diagram of an edition.

    Parameters
    ----------
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.
    calls : collection of Call
        Draw only these calls; if empty, all calls.
    detail : Detail

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    heads = head_machine(edition).edition.heads
    if detail is Detail.CONFIGURATIONS:
        nodes = tuple(Node(str(configuration), configuration.head) for configuration in matrix(edition))
        edges = _configuration_edges(edition, calls)
    else:
        nodes = tuple(Node(head.name, head) for head in heads)
        edges = _head_edges(edition, calls, guarded=detail is Detail.GUARDS)
    return Drawing(f"Head machine of SyncedMemory, edition {edition}", nodes, edges, notes(edition, calls))


def _head_edges(edition: AnyEdition, calls: Collection[Call], *, guarded: bool) -> tuple[Edge, ...]:
    found: list[Edge] = []
    for (source, dest), rows_of in arrows(edition).items():
        lines = [
            Line(
                call.value, _steps(rows, guarded=guarded), kind_of(rows), tuple(row.identifier(source) for row in rows)
            )
            for call, rows in rows_of.items()
            if not calls or call in calls
        ]
        if lines:
            found.append(Edge(source.name, dest.name, tuple(lines)))
    return tuple(found)


def _steps(rows: list[Transition], *, guarded: bool) -> tuple[str, ...]:
    if not guarded or not guards_of(rows[0]):
        done = effect(rows)
        return (done,) if done else ()
    return tuple(f"{', '.join(guards_of(row))}: {effect([row])}" for row in rows)


def guards_of(row: Transition, *, data: bool = False) -> tuple[str, ...]:
    """The guards of a row; a guard that must not hold has an exclamation mark.  `data` adds the guard about data."""
    asked = [(guard, "") for guard in row.conditions] + [(guard, "!") for guard in row.unless]
    return tuple(f"{mark}{guard.value}" for guard, mark in asked if data or guard is not Guard.HAS_DATA)


def _configuration_edges(edition: AnyEdition, calls: Collection[Call]) -> tuple[Edge, ...]:
    machine, found = head_machine(edition), dict[tuple[str, str], list[Line]]()
    for before, entries in matrix(edition).items():
        for asked, entry in entries.items():
            if asked.call is None or entry.refusal is not None or (calls and asked.call not in calls):
                continue
            row = machine.row(asked.call, before.head, before.facts, data=asked.data)
            done = effect([entry])
            line = Line(str(asked), (done,) if done else (), kind_of([entry]), (row.identifier(before.head),))
            found.setdefault((str(before), str(entry.after)), []).append(line)
    return tuple(Edge(source, dest, tuple(lines)) for (source, dest), lines in found.items())
