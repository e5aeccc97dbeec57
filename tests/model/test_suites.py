"""The suites: the tour takes every transition, and the HSI suite kills every mutant of the minimal machine."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest
from machines import MACHINES

from syncedmem.model import (
    EDITIONS,
    Input,
    Machine,
    Move,
    Space,
    State,
    caffe,
    hsi_suite,
    minimal_machine,
    space,
    tour,
)
from syncedmem.model.states import explore, stepper
from syncedmem.model.suites import (
    InputSequence,
    MinimalMachine,
    access_sequences,
    complete_suite,
    minimise,
    output,
    rows_of,
)

Transition = tuple[int, Input]
WRONG = ("something else",)


class Mealy(NamedTuple):
    """A machine with numbered states; it starts in state 0."""

    after: tuple[dict[Input, int], ...]
    outputs: tuple[dict[Input, tuple[object, ...]], ...]

    def run(self, state: int, sequence: InputSequence) -> list[tuple[object, ...]]:
        """Return the outputs that a sequence of inputs shows."""
        seen: list[tuple[object, ...]] = []
        for entry in sequence:
            seen.append(self.outputs[state][entry])
            state = self.after[state][entry]
        return seen


def whole(name: str) -> Space:
    """Return the space of an edition, or of three calls of Caffe, where two steps are needed to tell states apart."""
    few = (caffe.SET_CPU_DATA, caffe.SET_GPU_DATA, caffe.ASYNC_GPU_PUSH)
    if name in EDITIONS:
        return space(EDITIONS[name])
    return explore(stepper(caffe.CAFFE), tuple(Input(call) for call in few))


@cache
def correct(name: str = "caffe") -> Mealy:
    """Return the minimal machine with its outputs."""
    found = whole(name)
    machine = minimise(rows_of(found))
    states = {number: state for state, number in reversed(machine.block.items())}
    outputs = [
        {entry: output(found.machine, found.steps[states[k]][entry]) for entry in row}
        for k, row in enumerate(machine.after)
    ]
    return Mealy(machine.after, tuple(outputs))


def rests(machine: Mealy, suite: tuple[InputSequence, ...]) -> dict[Transition, list[InputSequence]]:
    """For each transition, return the rest of every sequence that takes it, after it was taken first.

    Until then, a machine in which only this transition is wrong has behaved like the correct one.
    """
    found: dict[Transition, list[InputSequence]] = {
        (k, entry): [] for k, row in enumerate(machine.after) for entry in row
    }
    for sequence in suite:
        state, taken = 0, set[Transition]()
        for place, entry in enumerate(sequence):
            if (state, entry) not in taken:
                taken.add((state, entry))
                found[state, entry].append(sequence[place + 1 :])
            state = machine.after[state][entry]
    return found


def transfer_survives(machine: Mealy, at: Transition, wrong: int, sequences: list[InputSequence]) -> bool:
    """Return whether some sequences fail to notice that a transition leads to a wrong state."""
    state, entry = at
    right = machine.after[state][entry]
    row = {**machine.after[state], entry: wrong}
    mutant = machine._replace(after=(*machine.after[:state], row, *machine.after[state + 1 :]))
    return all(machine.run(right, sequence) == mutant.run(wrong, sequence) for sequence in sequences)


def output_survives(machine: Mealy, at: Transition, sequences: tuple[InputSequence, ...]) -> bool:
    """Return whether some sequences fail to notice that a transition shows a wrong output."""
    state, entry = at
    row = {**machine.outputs[state], entry: WRONG}
    mutant = machine._replace(outputs=(*machine.outputs[:state], row, *machine.outputs[state + 1 :]))
    return all(machine.run(0, sequence) == mutant.run(0, sequence) for sequence in sequences)


def transfer_faults(machine: Mealy) -> list[tuple[Transition, int]]:
    """Return every transition with every wrong next state."""
    return [
        ((k, entry), wrong)
        for k, row in enumerate(machine.after)
        for entry, right in row.items()
        for wrong in range(len(machine.after))
        if wrong != right
    ]


def surviving_transfers(machine: Mealy, suite: tuple[InputSequence, ...]) -> list[tuple[Transition, int]]:
    """Return the mutants with a wrong next state that a suite does not notice."""
    sequences = rests(machine, suite)
    return [
        (at, wrong) for at, wrong in transfer_faults(machine) if transfer_survives(machine, at, wrong, sequences[at])
    ]


def surviving_outputs(machine: Mealy, suite: tuple[InputSequence, ...]) -> list[Transition]:
    """Return the mutants with a wrong output that a suite does not notice."""
    return [at for at in rests(machine, ()) if output_survives(machine, at, suite)]


@pytest.mark.parametrize(
    ("name", "states", "transitions", "transfers"),
    [("caffe", 27, 243, 6318), ("early", 10, 70, 630), ("cpu_only", 3, 24, 48), ("few", 6, 18, 90)],
)
def test_the_complete_suite_kills_every_mutant(name: str, states: int, transitions: int, transfers: int) -> None:
    """The suite notices every single wrong output and every single wrong next state of the minimal machine."""
    machine, suite = correct(name), complete_suite(minimise(rows_of(whole(name))))
    counts = (len(machine.after), len(rests(machine, ())), len(transfer_faults(machine)))
    assert (states, transitions, transfers) == counts
    assert [] == surviving_outputs(machine, suite)
    assert [] == surviving_transfers(machine, suite)


def test_the_complete_suite_of_one_state_has_every_input() -> None:
    """Nothing tells its state from others, but an implementation with one state more may answer otherwise there."""
    a, b = (Input(call) for call in (caffe.CPU_DATA, caffe.GPU_DATA))
    machine = minimise({0: {a: ("seen", 0), b: ("seen", 0)}})
    assert {(a,), (b,)} == set(complete_suite(machine))
    assert {(a, a), (a, b), (b, a), (b, b)} == set(complete_suite(machine, 1))


@pytest.mark.parametrize("edition", EDITIONS)
def test_no_word_of_the_complete_suite_begins_another(edition: str) -> None:
    """A sequence that is the beginning of another one adds nothing. All inputs are inputs of the edition."""
    key = {entry: number for number, entry in enumerate(stepper(EDITIONS[edition]).inputs(null=False))}
    sequences = sorted(tuple(key[entry] for entry in sequence) for sequence in hsi_suite(EDITIONS[edition]))
    assert not [pair for pair in pairwise(sequences) if pair[0] == pair[1][: len(pair[0])]]


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES], ids=str)
def test_the_tour_takes_every_transition(machine: Machine) -> None:
    """Each sequence starts from a new memory and has inputs of the machine only. None can be left out."""
    taken = [set(walked(machine, sequence)) for sequence in tour(machine)]
    every = {(state, entry) for state, row in space(machine).steps.items() for entry in row}
    assert every == set[object]().union(*taken)
    for k in range(len(taken)):
        assert every > set[object]().union(*taken[:k], *taken[k + 1 :])


def walked(machine: Machine, sequence: InputSequence) -> list[tuple[object, Input]]:
    """Return the transitions of the whole space that a sequence takes."""
    found, state = list[tuple[object, Input]](), space(machine).start
    for entry in sequence:
        found.append((state, entry))
        state = space(machine).steps[state][entry].after
    return found


@pytest.mark.parametrize("name", [*EDITIONS, "few"])
def test_the_minimal_machine_is_the_space_with_equal_states_merged(name: str) -> None:
    """States of one class show the same outputs and lead to the same classes. Every class has an access sequence."""
    machine, minimal, found = correct(name), minimise(rows_of(whole(name))), whole(name)
    for state, row in found.steps.items():
        number = minimal.block[state]
        assert machine.outputs[number] == {entry: output(found.machine, found.steps[state][entry]) for entry in row}
        assert minimal.after[number] == {entry: minimal.block[step.after] for entry, step in row.items()}
    assert minimal.block[found.start] == 0
    assert [*range(len(minimal.access))] == [ends(minimal, sequence) for sequence in minimal.access]


def ends(minimal: MinimalMachine[State], sequence: InputSequence) -> int:
    """Return the class that a sequence leads to."""
    number = 0
    for entry in sequence:
        number = minimal.after[number][entry]
    return number


@pytest.mark.parametrize("name", [*EDITIONS, "few"])
def test_every_two_classes_are_told_apart(name: str) -> None:
    """The last step of the separating sequence tells them apart and no earlier step does, so no step is wasted."""
    machine, minimal = correct(name), minimise(rows_of(whole(name)))
    numbers = range(len(minimal.access))
    assert {(a, b) for a in numbers for b in numbers if a != b} == set(minimal.separating)
    for (a, b), sequence in minimal.separating.items():
        alike = [x == y for x, y in zip(machine.run(a, sequence), machine.run(b, sequence), strict=True)]
        assert [True] * (len(sequence) - 1) + [False] == alike


def test_telling_apart_may_take_two_steps() -> None:
    """With few inputs, some classes need two steps. With all inputs of Caffe, one step is always enough."""
    assert {1, 2} == {len(sequence) for sequence in minimise(rows_of(whole("few"))).separating.values()}
    assert {1} == {len(sequence) for sequence in minimal_machine(caffe.CAFFE).separating.values()}


def test_a_separating_sequence_is_as_short_as_can_be() -> None:
    """The shortest one is found although a longer one comes first: x and y differ by b (two steps) or a (three)."""
    a, b, c = (Input(call) for call in (caffe.CPU_DATA, caffe.GPU_DATA, caffe.MUTABLE_CPU_DATA))
    names = ("x", "q1", "q2", "y", "r1", "r2")
    state = {name: State(name) for name in names}
    ways = {"x": "q1 r1", "q1": "r1 x", "q2": "r2 x", "y": "q2 r2", "r1": "x x", "r2": "x x"}
    moves: list[Move[State]] = []
    for name, following in zip(names, (*names[1:], names[0]), strict=True):
        for entry, target in zip((a, b, c), (*ways[name].split(), following), strict=True):
            actions = (caffe.ZERO_GPU.name,) if (name, entry) == ("r1", b) else ()
            moves.append(Move(state[name], entry, actions, state[target], "", None))
    assert (b, b) == minimise(rows_of(Space(caffe.CAFFE, state["x"], tuple(moves)))).separating[0, 3]


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES], ids=str)
def test_the_suites_of_a_machine_are_those_of_its_space(machine: Machine) -> None:
    """The stored suites equal newly computed ones, whose sequences to classes are sequences to states."""
    assert minimise(rows_of(space(machine))) == minimal_machine(machine)
    assert complete_suite(minimise(rows_of(space(machine)))) == hsi_suite(machine)
    assert set(minimal_machine(machine).access) <= set(access_sequences(machine).values())
    assert len(access_sequences(machine)) == len(space(machine).steps)
