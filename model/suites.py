"""Test suites with a guarantee, derived from the machine: tours, complete HSI suites, and cycles for counters.

They consist of sequences of inputs.  The tour covers every transition of the 62-state space in few long sequences; long
sequences find hidden counters.  The tour of pairs takes every transition after every other one that can come before it.
The HSI suite (harmonised state identifiers) is complete: an implementation with at most as many states as the minimal
machine, observed fully and reset reliably, passes it only if it behaves as the machine does.  It consists of short
sequences, so neither replaces the other.  Repeated cycles find faults of every n-th time.

Theory: Mealy machines, Moore's partition refinement, and the HSI method of Petrenko et al. (1993).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from .moves import Input, State
from .states import space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .declaration import Machine
    from .moves import Move
    from .states import Space

__all__ = [
    "InputSequence",
    "MinimalMachine",
    "Rows",
    "access_sequences",
    "access_to",
    "complete_suite",
    "complete_words",
    "counter_sequences",
    "cycles",
    "hsi_suite",
    "minimal_machine",
    "minimise",
    "output",
    "pair_tour",
    "rows_of",
    "tour",
]

InputSequence = tuple[Input, ...]
Output = tuple[object, ...]
StateT = TypeVar("StateT", bound=Hashable)
_NOTHING = (None,)
"""What is seen where a state has no row for an input."""


Rows = Mapping[StateT, Mapping[Input, tuple[object, StateT]]]
"""For each state and each input what is seen of it, and where it leads; in breadth-first order from the start."""


@cache
def access_sequences(machine: Machine) -> dict[State, InputSequence]:
    """A shortest sequence from a new memory to every state."""
    return access_to(rows_of(space(machine)))


def access_to(rows: Rows[StateT]) -> dict[StateT, InputSequence]:
    """A shortest sequence from the first state to every state."""
    sequences: dict[StateT, InputSequence] = {next(iter(rows)): ()}
    for state, row in rows.items():  # breadth-first, so the sequence of a state is known before the state is
        for entry, (_, after) in row.items():
            sequences.setdefault(after, (*sequences[state], entry))
    return sequences


def rows_of(states: Space) -> Rows[State]:
    """A space, as far as it can be observed."""
    return {
        state: {entry: (output(states.machine, move), move.after) for entry, move in row.items()}
        for state, row in states.steps.items()
    }


@cache
def tour(machine: Machine) -> tuple[InputSequence, ...]:
    """Sequences, each for a new memory, that together take every transition of the space at least once.

    Greedy: the tour goes from its state to the nearest transition that is missing.  If it can reach none, it starts
    with a new memory (ownership, once given up, never returns).
    """
    states = space(machine)
    missing = {(move.before, move.input) for move in states.moves}
    sequences: list[InputSequence] = []
    while missing:
        sequence: list[Input] = []
        state = states.start
        while path := _nearest(states, state, lambda move: (move.before, move.input) in missing):
            missing.difference_update((move.before, move.input) for move in path)
            state = path[-1].after
            sequence += (move.input for move in path)
        sequences.append(tuple(sequence))
    return tuple(sequences)


def _nearest(states: Space, start: State, wanted: Callable[[Move[State]], bool]) -> tuple[Move[State], ...]:
    """The fewest moves from a state whose last one is wanted; none if no such move can be reached."""
    seen = {start}
    waiting: deque[tuple[State, tuple[Move[State], ...]]] = deque([(start, ())])
    while waiting:
        state, path = waiting.popleft()
        for move in states.steps[state].values():
            if wanted(move):
                return (*path, move)
            if move.after not in seen:
                seen.add(move.after)
                waiting.append((move.after, (*path, move)))
    return ()


@cache
def pair_tour(machine: Machine) -> tuple[InputSequence, ...]:
    """Sequences that together take every transition right after every transition that can come before it.

    Greedy, like the tour: it goes from the last transition to the nearest missing pair.
    """
    states = space(machine)
    missing = {(move.before, move.input): set(states.steps[move.after]) for move in states.moves}
    sequences: list[InputSequence] = []
    while any(missing.values()):
        sequence: list[Input] = []
        last: Move[State] | None = None
        while path := _nearest_pair(states, last, missing):
            for move in path:
                if last is not None:
                    missing[last.before, last.input].discard(move.input)
                last = move
            sequence += (move.input for move in path)
        sequences.append(tuple(sequence))
    return tuple(sequences)


def _nearest_pair(
    states: Space, last: Move[State] | None, missing: dict[tuple[State, Input], set[Input]]
) -> tuple[Move[State], ...]:
    """The fewest moves that, with the one before them, end a missing pair, or begin one."""
    if last is not None and (following := missing[last.before, last.input]):
        return (states.steps[last.after][min(following, key=str)],)
    start = states.start if last is None else last.after
    return _nearest(states, start, lambda move: bool(missing[move.before, move.input]))


def cycles(machine: Machine) -> tuple[InputSequence, ...]:
    """Sequences that can be repeated; each copies, pushes or adopts."""
    return tuple(tuple(Input(machine.calls[call]) for call in cycle) for cycle in machine.cycles)


def counter_sequences(machine: Machine, times: Iterable[int] = range(2, 9)) -> tuple[InputSequence, ...]:
    """The cycles repeated, for faults at the n-th copy, push, adoption or read."""
    return tuple(cycle * n for cycle in cycles(machine) for n in times)


class MinimalMachine(NamedTuple, Generic[StateT]):
    """The machine after states that behave alike are merged.

    Attributes
    ----------
    block : dict
        The class number of every state.
    access : tuple of InputSequence
        A shortest sequence to each class.
    after : tuple of dict
        ``after[k][input]`` is the class to which an input leads.
    separating : dict
        For every pair of classes, a shortest sequence for which their outputs differ.
    """

    block: dict[StateT, int]
    access: tuple[InputSequence, ...]
    after: tuple[dict[Input, int], ...]
    separating: dict[tuple[int, int], InputSequence]


@cache
def minimal_machine(machine: Machine) -> MinimalMachine[State]:
    """The space of a machine, minimised: 27 classes for Caffe's."""
    return minimise(rows_of(space(machine)))


def minimise(rows: Rows[StateT]) -> MinimalMachine[StateT]:
    """Merge the states that no sequence distinguishes."""
    separating = _separating_sequences(rows)
    block: dict[StateT, int] = {}
    representatives: list[StateT] = []
    for state in rows:
        alike = (k for k, other in enumerate(representatives) if frozenset((state, other)) not in separating)
        block[state] = next(alike, len(representatives))
        if block[state] == len(representatives):
            representatives.append(state)
    sequences = access_to(rows)
    pairs = {
        (a, b): separating[frozenset((first, second))]
        for a, first in enumerate(representatives)
        for b, second in enumerate(representatives)
        if a != b
    }
    after = tuple(
        {e: block[state] for e, (_, state) in rows[representative].items()} for representative in representatives
    )
    return MinimalMachine(block, tuple(sequences[state] for state in representatives), after, pairs)


def _separating_sequences(rows: Rows[StateT]) -> dict[frozenset[StateT], InputSequence]:
    """A shortest sequence for every pair of states that some sequence distinguishes, by increasing length."""
    states = list(rows)
    pairs = [(a, b) for k, a in enumerate(states) for b in states[:k]]
    sequences: dict[frozenset[StateT], InputSequence] = {}
    grown = True
    while grown:
        known, grown = dict(sequences), False
        for a, b in pairs:
            if frozenset((a, b)) not in sequences and (sequence := _tell_apart(rows, a, b, known)):
                sequences[frozenset((a, b))] = sequence
                grown = True
    return sequences


def _tell_apart(
    rows: Rows[StateT], a: StateT, b: StateT, known: dict[frozenset[StateT], InputSequence]
) -> InputSequence:
    first, second = rows[a], rows[b]
    for entry in {**first, **second}:
        if first.get(entry, _NOTHING)[0] != second.get(entry, _NOTHING)[0]:
            return (entry,)
    for entry, (_, after) in first.items():
        rest = known.get(frozenset((after, second[entry][1])))
        if rest is not None:
            return (entry, *rest)
    return ()


def output(machine: Machine, move: Move[State]) -> Output:
    """What can be observed of a move: its actions in order, with the kind of memory, or the refusal.

    The next head too, if the machine has no actions, because then nothing else can be seen.
    """
    seen: list[object] = [move.refusal] if move.refusal else []
    for name in move.actions:
        action = machine.actions[name]
        facts = {"allocate": move.after.facts, "free": move.before.facts}.get(action.does, frozenset[str]())
        kind = [fact for fact in machine.facts.values() if fact.means == "pinned" and fact.side == action.side]
        seen.append((name, *(fact.name in facts for fact in kind)))
    return tuple(seen) if machine.actions else (*seen, move.after.head)


@cache
def hsi_suite(machine: Machine, extra: int = 0) -> tuple[InputSequence, ...]:
    """The complete suite of a machine, for implementations with up to `extra` states more than the minimal machine."""
    return complete_suite(minimal_machine(machine), extra)


def complete_suite(machine: MinimalMachine[StateT], extra: int = 0) -> tuple[InputSequence, ...]:
    """A suite that only correct implementations of a machine pass, if they have at most `extra` states more than it."""
    sequences: dict[InputSequence, None] = {}
    for k, access in enumerate(machine.access):
        sequences.update(dict.fromkeys(complete_words(machine, extra, [(access, k)])))
    prefixes = {sequence[:length] for sequence in sequences for length in range(len(sequence))}
    return tuple(sequence for sequence in sequences if sequence not in prefixes)


def complete_words(
    machine: MinimalMachine[StateT], extra: int = 0, start: Iterable[tuple[InputSequence, int]] = ()
) -> Iterator[InputSequence]:
    """The sequences of the complete suite one by one, those for fewer states more first; some are there twice.

    Parameters
    ----------
    machine : MinimalMachine
    extra : int
    start : iterable of (InputSequence, int)
        Sequences to some classes, and these; if empty, those to all.
    """
    identifiers = [
        dict.fromkeys(machine.separating[pair] for pair in machine.separating if pair[0] == k) or {(): None}
        for k in range(len(machine.access))
    ]
    reached = [*start] or [(access, k) for k, access in enumerate(machine.access)]
    for _ in range(extra + 2):
        yield from ((*sequence, *ident) for sequence, end in reached for ident in identifiers[end])
        reached = [
            ((*sequence, entry), after) for sequence, end in reached for entry, after in machine.after[end].items()
        ]
