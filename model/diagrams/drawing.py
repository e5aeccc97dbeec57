"""What every drawing of the machine says: nodes, edges, the calls on them, and what moves nothing.

A drawing has one edge per pair of nodes.  The calls on it are its *lines*.  What leaves the head alone (refusals,
and the destructor) is a *note*.  How much is drawn is a matter of *detail*: heads, where the rows of one call that
differ by guards only are one line; guards, where each of them is a step of that line; or configurations, where there
is nothing to guard because the pointers are in the nodes.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..editions import head_machine
from ..exploration import Input, matrix
from ..head import Action, Call, Guard, SyncedHead, Transition
from ..vocabulary import Host, Verb, phrase_of, place_of, verb_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

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


class Detail(enum.StrEnum):
    """How much a drawing or a table tells apart."""

    HEADS = "heads"
    GUARDS = "guards"
    CONFIGURATIONS = "configurations"


class Acting(Protocol):
    """Anything with actions: a row, or an entry of the matrix."""

    @property
    def actions(self) -> tuple[Action, ...]: ...


Arrows = dict[tuple[SyncedHead, SyncedHead], dict[Call, list[Transition]]]


class Kind(enum.Enum):
    """What a line copies; of an arrow with several lines the first kind here speaks for all."""

    GPU = "copies to GPU"
    CPU = "copies to CPU"
    NONE = "no copy"
    ADOPT = "adopts a pointer"


def _kind(action: Action) -> Kind:
    if verb_of(action) is Verb.COPY:
        return Kind.GPU if place_of(action) is Host.GPU else Kind.CPU
    return Kind.ADOPT if verb_of(action) is Verb.ADOPT else Kind.NONE


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


def effect(rows: Iterable[Acting]) -> str:
    """What the rows of one line do, in order; a step that only some of them take is in brackets."""
    variants = [[phrase_of(action) for action in row.actions] for row in rows]
    steps = dict.fromkeys(word for variant in sorted(variants, key=len, reverse=True) for word in variant)
    return " + ".join(word if all(word in variant for variant in variants) else f"({word})" for word in steps)


def kind_of(rows: Iterable[Acting]) -> Kind:
    """The kind of a line: what its actions copy or adopt."""
    kinds = {_kind(action) for row in rows for action in row.actions} - {Kind.NONE}
    return next((kind for kind in Kind if kind in kinds), Kind.NONE)


def notes(edition: str, calls: Collection[Call] = ()) -> tuple[Note, ...]:
    """The refusals of an edition in the order they are declared, then its destructor; on request of some calls only."""
    declaration = head_machine(edition).declaration
    groups: dict[tuple[str, str | None], list[Transition]] = {}
    for row in declaration.rows:
        if row.dest is None and (not calls or row.call in calls):
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


class Line(NamedTuple):
    """One call on an edge.

    Attributes
    ----------
    call : str
    steps : tuple of str
        What it does: nothing, one text, or one per row with its guards before a colon.
    kind : Kind
    identifiers : tuple of str
        The transitions it stands for.
    """

    call: str
    steps: tuple[str, ...]
    kind: Kind
    identifiers: tuple[str, ...]


def without_kind(line: Line) -> Line:
    """A line without the steps that its kind says already."""
    said = {phrase_of(action) for action in Action if _kind(action) is not Kind.NONE}
    rest = (" + ".join(word for word in step.split(" + ") if word not in said) for step in line.steps)
    return line._replace(steps=tuple(step for step in rest if step))


class Node(NamedTuple):
    """A head, or one of its configurations."""

    name: str
    head: SyncedHead


class Edge(NamedTuple):
    """All calls that lead from one node to another."""

    source: str
    dest: str
    lines: tuple[Line, ...]

    @property
    def kind(self) -> Kind:
        """The kind that speaks for all lines: the first of them in the order of `Kind`."""
        kinds = {line.kind for line in self.lines}
        return next(kind for kind in Kind if kind in kinds)


class Drawing(NamedTuple):
    """A state diagram, before anybody has laid it out.

    Attributes
    ----------
    title : str
    nodes : tuple of Node
        The first is where a memory starts.
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


def drawing(edition: str = "caffe", *, calls: Collection[Call] = (), detail: Detail = Detail.HEADS) -> Drawing:
    """The diagram of an edition.

    Parameters
    ----------
    edition : str
        A name from ``EDITIONS``.
    calls : collection of Call
        Draw these only; without any, all of them.
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


def _head_edges(edition: str, calls: Collection[Call], *, guarded: bool) -> tuple[Edge, ...]:
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
    """The guards of a row, those that must not hold with an exclamation mark; on request the one about data too."""
    asked = [(guard, "") for guard in row.conditions] + [(guard, "!") for guard in row.unless]
    return tuple(f"{mark}{guard.value}" for guard, mark in asked if data or guard is not Guard.HAS_DATA)


def _configuration_edges(edition: str, calls: Collection[Call]) -> tuple[Edge, ...]:
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
