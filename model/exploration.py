"""Exploration of the state space: configurations, cells, states and transitions.

There are three views of the same reachable space.  A *configuration* is what matters for the next call: the head,
and for each side no pointer, an owned one or an external one.  A *state* adds the pinned flag
and the mode, so that it determines everything that can be observed later.  An *input* is a
call, with or without data, or a change of mode.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .compiled import dispatch, head_machine
from .errors import DeclarationError
from .head import CAFFE_NAMES, DEFAULT_EDITION, Action, Call, Fact, Refusal, SyncedHead, Transition, Vocabulary
from .mode import Mode
from .spelling import Spelled

if TYPE_CHECKING:
    from .dispatch import Dispatch
    from .machine import AnyEdition

__all__ = [
    "Configuration",
    "Entry",
    "Input",
    "Side",
    "Space",
    "State",
    "Step",
    "configurations",
    "explore",
    "firing",
    "inputs",
    "matrix",
    "space",
]


class Side(Spelled, enum.Enum):
    """One side of a configuration: no pointer, an owned one, or an external one."""

    NULL = "-"
    OWNED = "o"
    EXTERNAL = "e"


class Configuration(NamedTuple):
    """A head and its two sides, written ``C:oe`` as in Caffe's observed matrix."""

    head: SyncedHead
    cpu: Side
    gpu: Side

    @property
    def facts(self) -> Fact:
        """The pointers and ownership flags; the pinned flag is not part of a configuration."""
        cpu = Fact.CPU_POINTER | (Fact.OWN_CPU_DATA if self.cpu is Side.OWNED else Fact(0))
        gpu = Fact.GPU_POINTER | (Fact.OWN_GPU_DATA if self.gpu is Side.OWNED else Fact(0))
        return (Fact(0) if self.cpu is Side.NULL else cpu) | (Fact(0) if self.gpu is Side.NULL else gpu)

    def __str__(self) -> str:
        return f"{self.head.letter}:{self.cpu.value}{self.gpu.value}"


class State(NamedTuple):
    """A packed state of the dispatch table together with the mode, and the names that unpack it."""

    packed: int
    mode: Mode
    names: Vocabulary = CAFFE_NAMES

    def __repr__(self) -> str:
        names = "" if self.names is CAFFE_NAMES else f", names={self.names!r}"
        return f"State(packed={self.packed}, mode={self.mode!r}{names})"

    @property
    def head(self) -> SyncedHead:
        """The head."""
        return self.names.head_of(self.packed)

    @property
    def facts(self) -> Fact:
        """The pointers and flags."""
        return self.names.facts_of(self.packed)

    @property
    def configuration(self) -> Configuration:
        """The state without mode and pinned flag.

        Raises
        ------
        DeclarationError
            If the machine has names of its own: then nothing says which facts are the pointers of a side.
        """
        if self.names is not CAFFE_NAMES:
            raise DeclarationError("a machine with names of its own has no configurations of Caffe's two sides")
        facts = self.facts
        return Configuration(
            self.head,
            _side(facts, Fact.CPU_POINTER, Fact.OWN_CPU_DATA),
            _side(facts, Fact.GPU_POINTER, Fact.OWN_GPU_DATA),
        )


def _side(facts: Fact, pointer: Fact, own: Fact) -> Side:
    return Side.NULL if not facts & pointer else Side.OWNED if facts & own else Side.EXTERNAL


@dataclass(frozen=True, slots=True)
class Input:
    """A call on a memory, or a change of mode.

    Attributes
    ----------
    call : Call or None
        None for a change of mode.
    data : bool
        False for ``set_*_data(NULL)``.
    mode : Mode or None
        The new mode.
    """

    call: Call | None
    data: bool = True
    mode: Mode | None = None

    @property
    def ends(self) -> bool:
        """Whether there is no memory after it."""
        return self.call is not None and self.call.ends

    def __str__(self) -> str:
        if self.call is None:
            return f"set_mode({self.mode.name if self.mode else None})"
        return self.call.value if self.data else f"{self.call.value}(NULL)"


class Step(NamedTuple):
    """The effect of an input in a state."""

    actions: tuple[Action, ...]
    after: State
    refusal: Refusal | None


@cache
def inputs(
    edition: AnyEdition = DEFAULT_EDITION, *, null: bool = False, mode: bool = True, end: bool = False
) -> tuple[Input, ...]:
    """The inputs of an edition: its calls; optionally also calls with NULL, changes of mode and, last, release."""
    calls = [call for call in dispatch(edition).columns if not call.ends]
    found = [Input(call) for call in calls]
    if null:
        found += [Input(call, data=False) for call in calls if call.takes_data]
    if mode and head_machine(edition).names.has_modes:
        found += [Input(None, mode=value) for value in Mode]
    if end:
        found += [Input(call) for call in dispatch(edition).columns if call.ends]
    return tuple(found)


class Space(NamedTuple):
    """A reachable space: every state, and the effect of every input in it.

    Attributes
    ----------
    start : State
    steps : dict
        ``steps[state][input]`` is a `Step`; states are in breadth-first order.
    """

    start: State
    steps: dict[State, dict[Input, Step]]

    @property
    def transitions(self) -> int:
        """The number of (state, input) pairs."""
        return sum(len(row) for row in self.steps.values())


def explore(table: Dispatch, alphabet: tuple[Input, ...], mode: Mode = Mode.GPU) -> Space:
    """Search breadth-first for everything that these inputs can reach from a new memory."""
    start = State(table.start, mode, table.names)
    steps: dict[State, dict[Input, Step]] = {}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if state in steps:
            continue
        steps[state] = {entry: _step(table, state, entry) for entry in alphabet}
        waiting.extend(step.after for step in steps[state].values())
    return Space(start, steps)


def _step(table: Dispatch, state: State, entry: Input) -> Step:
    if entry.call is None:
        return Step((), state._replace(mode=entry.mode or state.mode), None)
    cell = table.cell(entry.call, state.packed, data=entry.data)
    if cell is None:
        raise KeyError(f"{entry} has no row in {state.configuration}")
    return Step(cell.actions, state._replace(packed=cell.next[state.mode.value]), cell.refusal)


@cache
def space(edition: AnyEdition = DEFAULT_EDITION) -> Space:
    """The space of an edition with changes of mode as inputs: 62 states and 558 transitions for ``caffe``."""
    return explore(dispatch(edition), inputs(edition))


@cache
def configurations(edition: AnyEdition = DEFAULT_EDITION) -> tuple[Configuration, ...]:
    """The reachable configurations of an edition, in breadth-first order: 17 for ``caffe``."""
    return tuple(dict.fromkeys(state.configuration for state in space(edition).steps))


@cache
def firing(edition: AnyEdition = DEFAULT_EDITION) -> tuple[Transition, ...]:
    """The rows of an edition, in their order, each with only the heads in which it can apply.

    A machine has a row for each set of facts, also for those that never occur.  A row that applies in no state that
    can be reached is left out.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    machine, asked = head_machine(edition), inputs(edition, null=True, end=True)
    states = explore(dispatch(edition), inputs(edition, null=True)).steps
    applies = {
        machine.row(entry.call, state.head, state.facts, entry.data).identifier(state.head)
        for state in states
        for entry in asked
        if entry.call is not None
    }
    found = (
        replace(row, source=tuple(head for head in row.source if row.identifier(head) in applies))
        for row in machine.declaration.rows
    )
    return tuple(row for row in found if row.source)


class Entry(NamedTuple):
    """One entry of the matrix."""

    actions: tuple[Action, ...]
    after: Configuration
    facts: Fact
    refusal: Refusal | None


@cache
def matrix(edition: AnyEdition = DEFAULT_EDITION, mode: Mode = Mode.GPU) -> dict[Configuration, dict[Input, Entry]]:
    """Every configuration and every call, NULL data included: 17 x 9 entries for ``caffe``.

    `mode` is the mode of all calls.  It affects only the pinned flag in ``Entry.facts``.  The states of a
    configuration differ only in that flag; the state that is reached first represents them all.
    """
    found: dict[Configuration, dict[Input, Entry]] = {}
    alphabet, flags = inputs(edition, null=True, mode=False), head_machine(edition).edition.flags
    for state, row in explore(dispatch(edition), alphabet, mode).steps.items():
        if state.configuration not in found:
            found[state.configuration] = {
                entry: Entry(step.actions, step.after.configuration, step.after.facts & flags, step.refusal)
                for entry, step in row.items()
            }
    return found
