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
from ..exploration import Input, firing, matrix
from ..head import CAFFE_NAMES, DEFAULT_EDITION, Action, Call, Guard, SyncedHead, Transition
from ..spelling import Spelled
from ..vocabulary import Host, Verb, has_verb, phrase_of, place_of, sides_of
from .labels import PLAIN, Labels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

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
    "meanings_of",
    "notes",
    "title_of",
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

    GPU = "gpu"
    CPU = "cpu"
    NONE = "none"
    ADOPT = "adopt"


def _kind(action: Action) -> Kind:
    place = place_of(action)
    if has_verb(action, Verb.COPY) and place is not None:
        return Kind.GPU if place is Host.GPU else Kind.CPU
    return Kind.ADOPT if has_verb(action, Verb.ADOPT) else Kind.NONE


class Note(NamedTuple):
    """A call that does not move the head.

    Attributes
    ----------
    call : str
    text : str
        The call, the heads, and the result.
    heads : tuple of SyncedHead
    final : bool
        True for the destructor, False for a refusal.
    identifiers : tuple of str
        The transitions that it stands for.
    """

    call: str
    text: str
    heads: tuple[SyncedHead, ...]
    final: bool
    identifiers: tuple[str, ...]


def arrows(edition: AnyEdition) -> Arrows:
    """The edges between heads, in the order of the heads, each with the rows that can apply, by call.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    found: Arrows = {}
    for row in firing(edition):
        for head in row.source:
            if row.dest is not None:
                found.setdefault((head, row.dest), {}).setdefault(row.call, []).append(row)
    order = list(head_machine(edition).names.heads)
    return dict(sorted(found.items(), key=lambda item: [order.index(head) for head in item[0]]))


def effect(rows: Iterable[Acting], labels: Labels = PLAIN) -> str:
    """The actions of the rows of one line, in order; an action that only some of the rows have is in brackets."""
    variants = [[labels.of_action(action) for action in row.actions] for row in rows]
    steps = dict.fromkeys(word for variant in sorted(variants, key=len, reverse=True) for word in variant)
    return " + ".join(word if all(word in variant for variant in variants) else f"({word})" for word in steps)


def kind_of(rows: Iterable[Acting]) -> Kind:
    """The kind of a line, which depends on what its actions copy or adopt."""
    kinds = {_kind(action) for row in rows for action in row.actions} - {Kind.NONE}
    return next((kind for kind in Kind if kind in kinds), Kind.NONE)


def notes(edition: AnyEdition, calls: Collection[Call] = (), labels: Labels = PLAIN) -> tuple[Note, ...]:
    """The refusals of an edition in the order of their declaration, then its destructor; optionally of some calls."""
    rows, every = firing(edition), head_machine(edition).edition.heads
    groups: dict[tuple[str, str | None], list[Transition]] = {}
    for row in rows:
        if row.dest is None and (not calls or row.call in calls):
            call = labels.of_input(Input(row.call, data=Guard.HAS_DATA not in row.unless))
            groups.setdefault((call, row.refusal.value if row.refusal else None), []).append(row)
    found: list[Note] = []
    for (call, refusal), group in groups.items():
        others = [row for row in rows if row.call is group[0].call and row not in group]
        found.append(_note(call, refusal, group, others, every, labels))
    return tuple(found)


def _note(  # noqa: PLR0913, PLR0917 -- what a note says
    call: str,
    refusal: str | None,
    rows: list[Transition],
    others: list[Transition],
    every: tuple[SyncedHead, ...],
    labels: Labels,
) -> Note:
    heads = tuple(head for head in every if any(head in row.source for row in rows))
    done = ", then ".join(filter(None, (effect(rows, labels), "the end")))
    result = done if refusal is None else f"refused, {labels.of(refusal)}"
    where = ", ".join(filter(None, (f"{call} in {_where(heads, every, labels)}", _condition(rows, others, labels))))
    identifiers = tuple(row.identifier(head) for row in rows for head in row.source)
    return Note(call, f"{where}: {result}", heads, refusal is None, identifiers)


def _condition(rows: list[Transition], others: list[Transition], labels: Labels) -> str:
    """When these rows apply; empty if no others of their call do.  The guard about data is part of its name."""
    asked = [guards_of(row, labels) for row in rows]
    common = tuple(guard for guard in asked[0] if all(guard in guards for guards in asked))
    if common:
        return _when(common)
    heads = {head for row in rows for head in row.source}
    partial = all(asked) and any(not heads.isdisjoint(row.source) for row in others)
    return ", or ".join(map(_when, dict.fromkeys(asked))) if partial else ""


def _when(guards: tuple[str, ...]) -> str:
    return "if " + " and ".join(f"not {guard[1:]}" if guard.startswith("!") else guard for guard in guards)


def _where(heads: tuple[SyncedHead, ...], every: tuple[SyncedHead, ...], labels: Labels) -> str:
    others = tuple(head for head in every if head not in heads)
    if not others:
        return "every head"
    named = ", ".join(labels.of(head.name) for head in (others if len(others) < len(heads) else heads))
    return f"every head but {named}" if len(others) < len(heads) else named


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
    meanings : mapping of Kind to str
        What a legend says of each kind.
    """

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    notes: tuple[Note, ...]
    meanings: Mapping[Kind, str]

    @property
    def ends(self) -> set[SyncedHead]:
        """The heads from which the destructor leads to the end."""
        return {head for note in self.notes if note.final for head in note.heads}

    @property
    def ending(self) -> str:
        """The calls that lead to the end."""
        return ", ".join(dict.fromkeys(note.call for note in self.notes if note.final))


def drawing(
    edition: AnyEdition = DEFAULT_EDITION,
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.HEADS,
    labels: Labels = PLAIN,
) -> Drawing:
    """The diagram of an edition.

    Parameters
    ----------
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.
    calls : collection of Call
        Draw only these calls; if empty, all calls.
    detail : Detail
    labels : Labels
        Texts instead of names; configurations are codes and have none.

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
        nodes = tuple(Node(labels.of(head.name), head) for head in heads)
        edges = _head_edges(edition, calls, labels, guarded=detail is Detail.GUARDS)
    return Drawing(title_of(edition), nodes, edges, notes(edition, calls, labels), meanings_of(edition, labels))


def meanings_of(edition: AnyEdition, labels: Labels = PLAIN) -> Mapping[Kind, str]:
    """What a legend says of each kind.  An action of somebody's own may copy, though its name does not say so."""
    names = head_machine(edition).names
    known = all(any(has_verb(action, verb) for verb in Verb) for action in names.actions)
    sides = sides_of(names)
    return {
        Kind.GPU: f"copies to {labels.of(sides[Host.GPU])}",
        Kind.CPU: f"copies to {labels.of(sides[Host.CPU])}",
        Kind.NONE: "no copy" if known else "anything else",
        Kind.ADOPT: "adopts a pointer",
    }


def title_of(edition: AnyEdition) -> str:
    """The title of drawings and tables; a machine with names of its own is none of SyncedMemory."""
    found = head_machine(edition).edition
    if found.names is CAFFE_NAMES:
        return f"Head machine of SyncedMemory, edition {edition}"
    return f"{found.about} ({edition})"


def _head_edges(edition: AnyEdition, calls: Collection[Call], labels: Labels, *, guarded: bool) -> tuple[Edge, ...]:
    found: list[Edge] = []
    for (source, dest), rows_of in arrows(edition).items():
        lines = [
            Line(
                labels.of(call.value),
                _steps(rows, labels, guarded=guarded),
                kind_of(rows),
                tuple(row.identifier(source) for row in rows),
            )
            for call, rows in rows_of.items()
            if not calls or call in calls
        ]
        if lines:
            found.append(Edge(labels.of(source.name), labels.of(dest.name), tuple(lines)))
    return tuple(found)


def _steps(rows: list[Transition], labels: Labels, *, guarded: bool) -> tuple[str, ...]:
    if not guarded or not guards_of(rows[0]):
        done = effect(rows, labels)
        return (done,) if done else ()
    return tuple(f"{', '.join(guards_of(row, labels))}: {effect([row], labels) or 'nothing'}" for row in rows)


def guards_of(row: Transition, labels: Labels = PLAIN, *, data: bool = False) -> tuple[str, ...]:
    """The guards of a row; a guard that must not hold has an exclamation mark.  `data` adds the guard about data."""
    asked = [(guard, "") for guard in row.conditions] + [(guard, "!") for guard in row.unless]
    return tuple(f"{mark}{labels.of(guard.value)}" for guard, mark in asked if data or guard is not Guard.HAS_DATA)


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
