"""What every drawing of the machine shows: nodes, edges, the calls on the edges, and calls that do not move the head.

A drawing has one edge per pair of nodes.  The calls on it are its *lines*.  A refusal or the destructor, which do not
move the head, is a *note*.  There are three levels of *detail*: heads, where the rows of one call that differ only in
their guards are one line; guards, where each of these rows is a step of that line; and configurations, where the facts
are in the nodes.  Whatever the detail is, no call is drawn without its guards if it may do something else, or nothing.
"""

from __future__ import annotations

import enum
import re
from itertools import chain, product, zip_longest
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..caffe import DEFAULT
from ..moves import Input
from ..opening import machine_of
from ..spelling import Spelled
from ..states import matrix, stepper

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..declaration import Action, Machine, Row
    from ..opening import AnyCall, AnyMachine

__all__ = [
    "BRACKETS",
    "Detail",
    "Direction",
    "Drawing",
    "Edge",
    "Kind",
    "Line",
    "Node",
    "Note",
    "arrows",
    "asked_of_caller",
    "drawing",
    "drawing_of",
    "guards_of",
    "is_conditional",
    "kind_of",
    "notes",
    "phrase_of",
    "steps_of",
]


_GUARD = "guard: what is done if it holds, !guard: if it does not"
_GUARD_ALONE = "[guard]: only if it holds, [!guard]: only if it does not"
"""Where no row with guards does anything."""
BRACKETS = "(step) depends on a guard"
"""What guards and brackets mean, for legends."""


class Detail(Spelled, enum.StrEnum):
    """What a drawing or a table distinguishes."""

    HEADS = "heads"
    GUARDS = "guards"
    CONFIGURATIONS = "configurations"


class Direction(Spelled, enum.StrEnum):
    """Where a drawing begins, and where it leads: from above to below, or from left to right."""

    DOWN = "down"
    RIGHT = "right"


class Acting(Protocol):
    """Anything with actions, by their names: a row, or a move."""

    @property
    def actions(self) -> tuple[str, ...]: ...


Arrows = dict[tuple[str, str], dict[str, list["Row"]]]


class Kind(Spelled, enum.Enum):
    """What a line copies; the kind of an arrow is the first kind in this order that one of its lines has."""

    DEVICE = "device"
    HOST = "host"
    NONE = "none"
    ADOPT = "adopt"

    def said(self, machine: Machine) -> str:
        """The words of a legend; empty if a machine that copies nothing needs none.

        The host is the first side of a machine, and a device is each of the others.
        """
        if self is Kind.NONE:
            return "no copy" if machine.copies else ""
        if self is Kind.ADOPT:
            return "adopts a pointer"
        sides = machine.sides[:1] if self is Kind.HOST else machine.sides[1:]
        return f"copies to {' or '.join(map(str.upper, sides))}"


def _kind(machine: Machine, action: str) -> Kind:
    word = machine.actions[action]
    if word.does == "copy":
        return Kind.HOST if word.side == machine.sides[0] else Kind.DEVICE
    return Kind.ADOPT if word.does == "adopt" else Kind.NONE


_SHORT = {"allocate": "alloc"}


def phrase_of(action: Action) -> str:
    """A few words for an action.  Only a copy names its side; other actions are on the side that their call names."""
    if action.does == "copy":
        return f"{'async ' if action.queued else ''}copy to {action.side.upper()}"
    return _SHORT.get(action.does, action.does) or action.name


class Note(NamedTuple):
    """A call that does not move the head.

    Attributes
    ----------
    call : str
    text : str
        The call, the heads, and the result.
    heads : tuple of str
    final : bool
        True for the end of the memory, False for a refusal.
    identifiers : tuple of str
        The transitions that it stands for.
    """

    call: str
    text: str
    heads: tuple[str, ...]
    final: bool
    identifiers: tuple[str, ...]


def arrows(machine: Machine) -> Arrows:
    """The edges between heads, in the order of the heads, each with its rows by call."""
    lines_of: Arrows = {}
    for row in machine.rows:
        if not row.refusal and not machine.calls[row.call].ends:
            for head in row.source:
                lines_of.setdefault((head, row.dest or head), {}).setdefault(row.call, []).append(row)
    order = list(machine.heads)
    return dict(sorted(lines_of.items(), key=lambda item: [order.index(head) for head in item[0]]))


def steps_of(machine: Machine, rows: Iterable[Acting]) -> str:
    """The actions of the rows of one line, in order; an action that only some of the rows have is in brackets."""
    variants = [[phrase_of(machine.actions[action]) for action in row.actions] for row in rows]
    steps = dict.fromkeys(word for variant in sorted(variants, key=len, reverse=True) for word in variant)
    return " + ".join(word if all(word in variant for variant in variants) else f"({word})" for word in steps)


def kind_of(machine: Machine, rows: Iterable[Acting]) -> Kind:
    """The kind of a line, which depends on what its actions copy or adopt."""
    kinds = {_kind(machine, action) for row in rows for action in row.actions} - {Kind.NONE}
    return next((kind for kind in Kind if kind in kinds), Kind.NONE)


def notes(machine: Machine, calls: Collection[str] = ()) -> tuple[Note, ...]:
    """The refusals of a machine in the order of their declaration, then its end; optionally of some calls."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in machine.rows:
        call = machine.calls[row.call]
        if (row.refusal or call.ends) and (not calls or row.call in calls):
            asked = str(Input(call, data=not _is_null(machine, row)))
            if row.refusal and (guards := guards_of(machine, row)):
                asked += f" [{', '.join(guards)}]"
            groups.setdefault((asked, row.refusal), []).append(row)
    return tuple(_note(machine, call, refusal, rows) for (call, refusal), rows in groups.items())


def _note(machine: Machine, call: str, refusal: str, rows: list[Row]) -> Note:
    heads = tuple(head for head in machine.heads if any(head in row.source for row in rows))
    done = steps_of(machine, rows)
    result = f"refused, {refusal}" if refusal else f"{done}, then the end" if done else "the end"
    identifiers = tuple(row.identifier(head) for row in rows for head in row.source)
    return Note(call, f"{call} in {_where(heads, machine.heads)}: {result}", heads, not refusal, identifiers)


def _where(heads: tuple[str, ...], every: Iterable[str]) -> str:
    others = [head for head in every if head not in heads]
    if len(heads) < len(others):
        return ", ".join(heads)
    return f"every head but {', '.join(others)}" if others else "every head"


class Line(NamedTuple):
    """One call on an edge.

    Attributes
    ----------
    call : str
    steps : tuple of str
        Its effect: empty, one text, or one text per row, with the row's guards before a colon; where nothing is done,
        the guards alone, in brackets.
    kind : Kind
    identifiers : tuple of str
        The transitions that it stands for.
    guards : tuple of str
        The guards of each step, if they are drawn.
    """

    call: str
    steps: tuple[str, ...]
    kind: Kind
    identifiers: tuple[str, ...]
    guards: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The guards and the actions of each row."""
        pairs = zip_longest(self.guards, self.steps, fillvalue="")
        return tuple(
            (guard, "" if step == f"[{guard}]" else step.removeprefix(f"{guard}: ") if guard else step)
            for guard, step in pairs
        )

    @property
    def only_guarded(self) -> bool:
        """Whether it has guards, and none of its rows does anything."""
        return bool(self.guards) and not any(done for _, done in self.parts)


class Node(NamedTuple):
    """A head, or one of its configurations."""

    name: str
    head: str


def _uml(calls: str, guards: str, actions: str) -> str:
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
        calls: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for line in self.lines:
            calls.setdefault(line.parts or (("", ""),), []).append(line.call)
        return tuple(_uml(", ".join(names), *part) for parts, names in calls.items() for part in parts)


class Drawing(NamedTuple):
    """A state diagram before layout.

    Attributes
    ----------
    machine : Machine
        The words of what is drawn.
    title : str
    nodes : tuple of Node
        In the first node a memory starts.
    edges : tuple of Edge
    notes : tuple of Note
    """

    machine: Machine
    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    notes: tuple[Note, ...]

    def says(self, kind: Kind) -> bool:
        """Whether a bullet and the legend tell this kind."""
        return bool(kind.said(self.machine))

    @property
    def ends(self) -> dict[str, tuple[str, ...]]:
        """The calls that end a memory, of each head from which there is one."""
        notes = [note for note in self.notes if note.final]
        ends = {node.head: tuple(note.call for note in notes if node.head in note.heads) for node in self.nodes}
        return {head: calls for head, calls in ends.items() if calls}

    @property
    def abbreviations(self) -> tuple[str, ...]:
        """What a reader has to be told about guards and brackets, if there are any."""
        lines = [line for edge in self.edges for line in edge.lines]
        texts = [*(step for line in lines for step in line.steps), *(note.text for note in self.notes)]
        guarded = [line for line in lines if line.guards]
        alone = all(line.only_guarded for line in guarded)
        guards = (_GUARD_ALONE if alone else _GUARD,) if guarded else ()
        brackets = (BRACKETS,) if any(re.search(r"(?<!\S)\(", text) for text in texts) else ()
        return (*guards, *brackets)


def drawing(
    edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.HEADS
) -> Drawing:
    """The diagram of a machine.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str or Call
        Draw only these calls; if empty, all calls.
    detail : Detail
    """
    return drawing_of(machine_of(edition), [*map(str, calls)], detail)


def drawing_of(machine: Machine, names: Collection[str] = (), detail: Detail = Detail.HEADS) -> Drawing:
    """The diagram of a machine that need not be sound, as `drawing`."""
    if detail is Detail.CONFIGURATIONS:
        nodes = tuple(Node(str(configuration), configuration.head) for configuration in matrix(machine))
        edges = _configuration_edges(machine, names)
    else:
        nodes = tuple(Node(head, head) for head in machine.heads)
        edges = _head_edges(machine, names, guarded=detail is Detail.GUARDS)
    return Drawing(machine, machine.title, nodes, edges, notes(machine, names))


def _head_edges(machine: Machine, calls: Collection[str], *, guarded: bool) -> tuple[Edge, ...]:
    edges: list[Edge] = []
    for (source, dest), rows_of in arrows(machine).items():
        lines = [
            Line(
                call,
                _steps(machine, rows, guards := _guards(machine, source, rows, guarded=guarded)),
                kind_of(machine, rows),
                tuple(row.identifier(source) for row in rows),
                guards,
            )
            for call, rows in rows_of.items()
            if not calls or call in calls
        ]
        if lines:
            edges.append(Edge(source, dest, tuple(lines)))
    return tuple(edges)


def _guards(machine: Machine, head: str, rows: list[Row], *, guarded: bool) -> tuple[str, ...]:
    """The guards of each row; empty if the first has none, because there is only one then."""
    if not guarded and not is_conditional(machine, head, rows):
        return ()
    elsewhere = any((row.dest or head) != (rows[0].dest or head) for row in _others(machine, head, rows))
    guards = [guards_of(machine, row, data=elsewhere) for row in rows]
    return tuple(map(", ".join, guards)) if guards[0] else ()


def _others(machine: Machine, head: str, rows: list[Row]) -> list[Row]:
    """What else a call does in a head, if these rows are not enabled; the lack of an argument is another input."""
    call = rows[0].call
    return [
        row
        for row in machine.rows
        if row.call == call and head in row.source and row not in rows and not (row.refusal and _is_null(machine, row))
    ]


def is_conditional(machine: Machine, head: str, rows: list[Row]) -> bool:
    """Whether a call in a head may do something else than these rows, or nothing: then they are drawn with guards.

    Without guards it would look as if there were a choice, or as if the call were always accepted.
    """
    if _others(machine, head, rows):
        return True
    if machine.calls[rows[0].call].does:
        return False  # a call that means something has a row in each state, or its machine is unsound
    return not _covers([row.guards for row in rows])


_MOST_ASKED = 12
"""How many facts the rows of a call in a head may ask for; each doubles the cases that are looked at."""


def _covers(guards: list[dict[str, bool]]) -> bool:
    """Whether one of these holds, whatever is true."""
    asked = [*dict.fromkeys(chain.from_iterable(guards))]
    if len(asked) > _MOST_ASKED:
        return False
    cases = (dict(zip(asked, values, strict=True)) for values in product((True, False), repeat=len(asked)))
    return all(any(guard.items() <= case.items() for guard in guards) for case in cases)


def _is_null(machine: Machine, row: Row) -> bool:
    """Whether a row is about a call without the buffer that it adopts, which is drawn as ``(NULL)``."""
    call = machine.calls[row.call]
    return call.does == "adopt" and call.takes in row.unless


def _steps(machine: Machine, rows: list[Row], guards: tuple[str, ...]) -> tuple[str, ...]:
    if not guards:
        done = steps_of(machine, rows)
        return (done,) if done else ()
    none = "nothing" if machine.copies else ""  # of a machine that copies nothing, no other line says so either
    each = [steps_of(machine, [row]) or none for row in rows]
    return tuple(f"{guard}: {text}" if text else f"[{guard}]" for guard, text in zip(guards, each, strict=True))


def guards_of(machine: Machine, row: Row, *, data: bool = False) -> tuple[str, ...]:
    """The conditions of a row; one that must not hold has an exclamation mark.

    That a call was given the buffer that it adopts is none, but with `data`; without it the call is called otherwise.
    """
    return tuple(fact if wanted else f"!{fact}" for fact, wanted in _asked(machine, row, data=data).items())


def _asked(machine: Machine, row: Row, *, data: bool = False) -> dict[str, bool]:
    call = machine.calls[row.call]
    argument = call.takes if call.does == "adopt" and not data else ""
    return {fact: wanted for fact, wanted in row.guards.items() if fact != argument}


def asked_of_caller(machine: Machine, row: Row) -> tuple[str, ...]:
    """The guards of a row that the caller decides with each call, because nothing in the machine does."""
    decided = {*stepper(machine).free, machine.calls[row.call].takes}
    every = zip(_asked(machine, row), guards_of(machine, row), strict=True)
    return tuple(guard for fact, guard in every if fact in decided)


def _configuration_edges(machine: Machine, calls: Collection[str]) -> tuple[Edge, ...]:
    lines_of = dict[tuple[str, str], list[Line]]()
    for moves in matrix(machine).values():
        for move in moves.values():
            call, row = move.input.call, move.row
            if move.refusal or call is None or row is None or (calls and str(call) not in calls):
                continue
            guards = tuple(filter(None, [", ".join(asked_of_caller(machine, row))]))
            named = str(move.input) if call.does == "adopt" else call.name
            line = Line(named, _steps(machine, [row], guards), kind_of(machine, [move]), (move.identifier,), guards)
            lines = lines_of.setdefault((str(move.before), str(move.after)), [])
            if line not in lines:  # what a row does not ask for makes no difference
                lines.append(line)
    return tuple(Edge(source, dest, tuple(lines)) for (source, dest), lines in lines_of.items())
