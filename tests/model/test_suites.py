"""The suites: the tour takes every transition, and the HSI suite kills every mutant of the minimal machine."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest

from syncedmem.model import EDITIONS, Action, Call, Input, Mode, State, hsi_suite, inputs, minimal_machine, space, tour
from syncedmem.model.compiled import dispatch
from syncedmem.model.exploration import Space, Step, explore
from syncedmem.model.head import Refusal
from syncedmem.model.suites import (
    InputSequence,
    MinimalMachine,
    access_sequences,
    complete_suite,
    counter_sequences,
    cycles,
    minimise,
    output,
    pair_tour,
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
    few = (Call.SET_CPU_DATA, Call.SET_GPU_DATA, Call.ASYNC_GPU_PUSH)
    return space(name) if name in EDITIONS else explore(dispatch(), tuple(Input(call) for call in few))


@cache
def correct(name: str = "caffe") -> Mealy:
    """Return the minimal machine with its outputs."""
    found = whole(name)
    machine = minimise(found)
    states = {number: state for state, number in reversed(machine.block.items())}
    outputs = [{entry: output(found, states[k], entry) for entry in row} for k, row in enumerate(machine.after)]
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
    machine, suite = correct(name), complete_suite(minimise(whole(name)))
    counts = (len(machine.after), len(rests(machine, ())), len(transfer_faults(machine)))
    assert (states, transitions, transfers) == counts
    assert [] == surviving_outputs(machine, suite)
    assert [] == surviving_transfers(machine, suite)


def test_without_the_words_through_a_transition_its_mutants_survive() -> None:
    """If all sequences that take a transition are removed, its mutants survive."""
    machine = correct()
    at = (len(machine.after) - 1, inputs()[0])
    suite = tuple(sequence for sequence in hsi_suite() if at not in list(path(machine, sequence)))
    assert [at] == surviving_outputs(machine, suite)
    expected = [fault for fault in transfer_faults(machine) if fault[0] == at]
    assert expected == [fault for fault in surviving_transfers(machine, suite) if fault[0] == at]


def test_without_the_identifiers_transfer_mutants_survive() -> None:
    """Sequences that only take every transition notice every wrong output, but not every wrong state."""
    machine = correct()
    suite = tuple((*access, entry) for access in minimal_machine().access for entry in inputs())
    assert [] == surviving_outputs(machine, suite)
    assert surviving_transfers(machine, suite)


def path(machine: Mealy, sequence: InputSequence) -> list[Transition]:
    """Return the transitions that a sequence takes."""
    state, found = 0, list[Transition]()
    for entry in sequence:
        found.append((state, entry))
        state = machine.after[state][entry]
    return found


@pytest.mark.parametrize("edition", EDITIONS)
def test_no_word_of_the_complete_suite_begins_another(edition: str) -> None:
    """A sequence that is the beginning of another one adds nothing. All inputs are inputs of the edition."""
    key = {entry: number for number, entry in enumerate(inputs(edition))}
    sequences = sorted(tuple(key[entry] for entry in sequence) for sequence in hsi_suite(edition))
    assert not [pair for pair in pairwise(sequences) if pair[0] == pair[1][: len(pair[0])]]


@pytest.mark.parametrize(("edition", "transitions"), [("caffe", 558), ("early", 140), ("cpu_only", 48)])
def test_the_tour_takes_every_transition(edition: str, transitions: int) -> None:
    """Each sequence starts from a new memory and has inputs of the edition only. None can be left out."""
    taken = [set(walked(edition, sequence)) for sequence in tour(edition)]
    assert transitions == len(set[object]().union(*taken))
    for k in range(len(taken)):
        assert transitions > len(set[object]().union(*taken[:k], *taken[k + 1 :]))


def walked(edition: str, sequence: InputSequence) -> list[tuple[object, Input]]:
    """Return the transitions of the whole space that a sequence takes."""
    found, state = list[tuple[object, Input]](), space(edition).start
    for entry in sequence:
        found.append((state, entry))
        state = space(edition).steps[state][entry].after
    return found


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_tour_of_pairs_takes_every_pair(edition: str) -> None:
    found = space(edition)
    taken = [(state, entry, step.after) for state, row in found.steps.items() for entry, step in row.items()]
    pairs = {(state, entry, other) for state, entry, after in taken for other in found.steps[after]}
    assert len(pairs) > len(taken)
    for sequence in pair_tour(edition):
        state, last = found.start, None
        for entry in sequence:
            if last is not None:
                pairs.discard((*last, entry))
            last, state = (state, entry), found.steps[state][entry].after

    assert not pairs


def test_one_state_more_takes_longer_words() -> None:
    assert len(hsi_suite("caffe", 1)) == 6708
    assert 1 + max(map(len, hsi_suite())) == max(map(len, hsi_suite("caffe", 1)))


@pytest.mark.parametrize("edition", EDITIONS)
def test_cycles_are_repeated(edition: str) -> None:
    """Each cycle can be taken twice in a row without a refusal."""
    found = space(edition)
    assert cycles(edition)
    for cycle in cycles(edition):
        state = found.start
        for entry in cycle * 2:
            assert found.steps[state][entry].refusal is None
            state = found.steps[state][entry].after
    assert counter_sequences(edition, (3,)) == tuple(cycle * 3 for cycle in cycles(edition))
    assert counter_sequences(edition) == tuple(cycle * n for cycle in cycles(edition) for n in (2, 3, 4, 5, 6, 7, 8))


def test_what_is_observed_of_a_step_is_its_calls_of_the_allocators_or_its_refusal() -> None:
    """Host memory is allocated and freed as page-locked memory, or as plain memory."""
    found, read, adopt = space(), Input(Call.CPU_DATA), Input(Call.SET_CPU_DATA)
    plain = found.steps[found.start][Input(None, mode=Mode.CPU)].after
    for state, pinned in ((found.start, True), (plain, False)):
        allocated = found.steps[state][read].after
        assert output(found, state, read) == ((Action.ALLOCATE_CPU, pinned), Action.ZERO_CPU)
        assert output(found, allocated, adopt) == ((Action.FREE_CPU, pinned), Action.ADOPT_CPU)
    assert output(found, found.start, Input(Call.ASYNC_GPU_PUSH)) == (Refusal.NOT_HEAD_AT_CPU,)
    assert output(found, found.start, adopt) == (Action.ADOPT_CPU,)


@pytest.mark.parametrize("name", [*EDITIONS, "few"])
def test_the_minimal_machine_is_the_space_with_equal_states_merged(name: str) -> None:
    """States of one class show the same outputs and lead to the same classes. Every class has an access sequence."""
    machine, minimal, found = correct(name), minimise(whole(name)), whole(name)
    for state, row in found.steps.items():
        number = minimal.block[state]
        assert machine.outputs[number] == {entry: output(found, state, entry) for entry in row}
        assert minimal.after[number] == {entry: minimal.block[step.after] for entry, step in row.items()}
    assert minimal.block[found.start] == 0
    assert [*range(len(minimal.access))] == [ends(minimal, sequence) for sequence in minimal.access]


def ends(minimal: MinimalMachine, sequence: InputSequence) -> int:
    """Return the class that a sequence leads to."""
    number = 0
    for entry in sequence:
        number = minimal.after[number][entry]
    return number


@pytest.mark.parametrize("name", [*EDITIONS, "few"])
def test_every_two_classes_are_told_apart(name: str) -> None:
    """The last step of the separating sequence tells them apart and no earlier step does, so no step is wasted."""
    machine, minimal = correct(name), minimise(whole(name))
    numbers = range(len(minimal.access))
    assert {(a, b) for a in numbers for b in numbers if a != b} == set(minimal.separating)
    for (a, b), sequence in minimal.separating.items():
        alike = [x == y for x, y in zip(machine.run(a, sequence), machine.run(b, sequence), strict=True)]
        assert [True] * (len(sequence) - 1) + [False] == alike


def test_telling_apart_may_take_two_steps() -> None:
    """With few inputs, some classes need two steps. With all inputs of Caffe, one step is always enough."""
    assert {1, 2} == {len(sequence) for sequence in minimise(whole("few")).separating.values()}
    assert {1} == {len(sequence) for sequence in minimal_machine().separating.values()}


def test_a_separating_sequence_is_as_short_as_can_be() -> None:
    """The shortest one is found although a longer one comes first: x and y differ by b (two steps) or a (three)."""
    a, b, c = (Input(call) for call in (Call.CPU_DATA, Call.GPU_DATA, Call.MUTABLE_CPU_DATA))
    names = ("x", "q1", "q2", "y", "r1", "r2")
    state = {name: State(number, Mode.GPU) for number, name in enumerate(names)}
    ways = {"x": "q1 r1", "q1": "r1 x", "q2": "r2 x", "y": "q2 r2", "r1": "x x", "r2": "x x"}
    steps: dict[State, dict[Input, Step]] = {}
    for name, following in zip(names, (*names[1:], names[0]), strict=True):
        targets = zip((a, b, c), (*ways[name].split(), following), strict=True)
        steps[state[name]] = {entry: Step((), state[target], None) for entry, target in targets}
    steps[state["r1"]][b] = Step((Action.ZERO_GPU,), state["x"], None)
    assert (b, b) == minimise(Space(state["x"], steps)).separating[0, 3]


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_suites_of_an_edition_are_those_of_its_space(edition: str) -> None:
    """The stored suites equal newly computed ones, whose sequences to classes are sequences to states."""
    assert minimise(space(edition)) == minimal_machine(edition)
    assert complete_suite(minimise(space(edition))) == hsi_suite(edition)
    assert set(minimal_machine(edition).access) <= set(access_sequences(edition).values())
