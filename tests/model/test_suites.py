"""The suites: the tour takes every transition, and the HSI suite kills every mutant of the minimal machine."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest

from syncedmem.model import EDITIONS, Action, Call, Input, Mode, State, hsi_suite, inputs, minimal_machine, space, tour
from syncedmem.model.editions import dispatch
from syncedmem.model.exploration import Space, Step, explore
from syncedmem.model.suites import MinimalMachine, Word, access_words, complete_suite, minimise, output

Transition = tuple[int, Input]
WRONG = ("something else",)


class Mealy(NamedTuple):
    """A machine with numbered states, number 0 the first."""

    after: tuple[dict[Input, int], ...]
    outputs: tuple[dict[Input, tuple[object, ...]], ...]

    def run(self, state: int, word: Word) -> list[tuple[object, ...]]:
        """What is seen of a word."""
        seen: list[tuple[object, ...]] = []
        for entry in word:
            seen.append(self.outputs[state][entry])
            state = self.after[state][entry]
        return seen


def whole(name: str) -> Space:
    """The space of an edition, or what three calls of Caffe reach, where telling apart takes two steps."""
    few = (Call.SET_CPU_DATA, Call.SET_GPU_DATA, Call.ASYNC_GPU_PUSH)
    return space(name) if name in EDITIONS else explore(dispatch(), tuple(Input(call) for call in few))


@cache
def correct(name: str = "caffe") -> Mealy:
    """The minimal machine with its outputs."""
    found = whole(name)
    machine = minimise(found)
    states = {number: state for state, number in reversed(machine.block.items())}
    outputs = [{entry: output(found, states[k], entry) for entry in row} for k, row in enumerate(machine.after)]
    return Mealy(machine.after, tuple(outputs))


def rests(machine: Mealy, suite: tuple[Word, ...]) -> dict[Transition, list[Word]]:
    """For every transition, the words that take it, each from behind its first taking on.

    Up to there a machine that is wrong in this transition alone has done what the correct one does.
    """
    found: dict[Transition, list[Word]] = {(k, entry): [] for k, row in enumerate(machine.after) for entry in row}
    for word in suite:
        state, taken = 0, set[Transition]()
        for place, entry in enumerate(word):
            if (state, entry) not in taken:
                taken.add((state, entry))
                found[state, entry].append(word[place + 1 :])
            state = machine.after[state][entry]
    return found


def transfer_survives(machine: Mealy, at: Transition, wrong: int, words: list[Word]) -> bool:
    """Whether some words cannot tell that a transition leads to a wrong state."""
    state, entry = at
    right = machine.after[state][entry]
    row = {**machine.after[state], entry: wrong}
    mutant = machine._replace(after=(*machine.after[:state], row, *machine.after[state + 1 :]))
    return all(machine.run(right, word) == mutant.run(wrong, word) for word in words)


def output_survives(machine: Mealy, at: Transition, words: tuple[Word, ...]) -> bool:
    """Whether some words cannot tell that a transition shows a wrong output."""
    state, entry = at
    row = {**machine.outputs[state], entry: WRONG}
    mutant = machine._replace(outputs=(*machine.outputs[:state], row, *machine.outputs[state + 1 :]))
    return all(machine.run(0, word) == mutant.run(0, word) for word in words)


def transfer_faults(machine: Mealy) -> list[tuple[Transition, int]]:
    """Every transition with every state it should not lead to."""
    return [
        ((k, entry), wrong)
        for k, row in enumerate(machine.after)
        for entry, right in row.items()
        for wrong in range(len(machine.after))
        if wrong != right
    ]


def surviving_transfers(machine: Mealy, suite: tuple[Word, ...]) -> list[tuple[Transition, int]]:
    """The transfer faults that a suite does not notice."""
    words = rests(machine, suite)
    return [(at, wrong) for at, wrong in transfer_faults(machine) if transfer_survives(machine, at, wrong, words[at])]


def surviving_outputs(machine: Mealy, suite: tuple[Word, ...]) -> list[Transition]:
    """The output faults that a suite does not notice."""
    return [at for at in rests(machine, ()) if output_survives(machine, at, suite)]


@pytest.mark.parametrize(
    ("name", "states", "transitions", "transfers"),
    [("caffe", 27, 243, 6318), ("early", 10, 70, 630), ("cpu_only", 3, 24, 48), ("few", 6, 18, 90)],
)
def test_the_complete_suite_kills_every_mutant(name: str, states: int, transitions: int, transfers: int) -> None:
    """Every single output fault and every single transfer fault of the minimal machine is noticed."""
    machine, suite = correct(name), complete_suite(minimise(whole(name)))
    counts = (len(machine.after), len(rests(machine, ())), len(transfer_faults(machine)))
    assert (states, transitions, transfers) == counts
    assert [] == surviving_outputs(machine, suite)
    assert [] == surviving_transfers(machine, suite)


def test_without_the_words_through_a_transition_its_mutants_survive() -> None:
    """Dropping every word that takes one transition lets its output fault and its transfer faults live."""
    machine = correct()
    at = (len(machine.after) - 1, inputs()[0])
    suite = tuple(word for word in hsi_suite() if at not in list(path(machine, word)))
    assert [at] == surviving_outputs(machine, suite)
    expected = [fault for fault in transfer_faults(machine) if fault[0] == at]
    assert expected == [fault for fault in surviving_transfers(machine, suite) if fault[0] == at]


def test_without_the_identifiers_transfer_faults_survive() -> None:
    """Words that only take every transition see every wrong output, but not every wrong state."""
    machine = correct()
    suite = tuple((*access, entry) for access in minimal_machine().access for entry in inputs())
    assert [] == surviving_outputs(machine, suite)
    assert surviving_transfers(machine, suite)


def path(machine: Mealy, word: Word) -> list[Transition]:
    """The transitions that a word takes."""
    state, found = 0, list[Transition]()
    for entry in word:
        found.append((state, entry))
        state = machine.after[state][entry]
    return found


@pytest.mark.parametrize("edition", EDITIONS)
def test_no_word_of_the_complete_suite_begins_another(edition: str) -> None:
    """A word that is the beginning of another would say nothing more, and all inputs are those of the edition."""
    key = {entry: number for number, entry in enumerate(inputs(edition))}
    words = sorted(tuple(key[entry] for entry in word) for word in hsi_suite(edition))
    assert not [pair for pair in pairwise(words) if pair[0] == pair[1][: len(pair[0])]]


@pytest.mark.parametrize(("edition", "transitions"), [("caffe", 558), ("early", 140), ("cpu_only", 48)])
def test_the_tour_takes_every_transition(edition: str, transitions: int) -> None:
    """Each from a fresh memory, with inputs of the edition alone; no word could be left out."""
    taken = [set(walked(edition, word)) for word in tour(edition)]
    assert transitions == len(set[object]().union(*taken))
    for k in range(len(taken)):
        assert transitions > len(set[object]().union(*taken[:k], *taken[k + 1 :]))


def walked(edition: str, word: Word) -> list[tuple[object, Input]]:
    """The transitions of the whole space that a word takes."""
    found, state = list[tuple[object, Input]](), space(edition).start
    for entry in word:
        found.append((state, entry))
        state = space(edition).steps[state][entry].after
    return found


@pytest.mark.parametrize("name", [*EDITIONS, "few"])
def test_the_minimal_machine_is_the_space_with_equal_states_merged(name: str) -> None:
    """States of one class show the same and lead to the same classes, and every class has its access word."""
    machine, minimal, found = correct(name), minimise(whole(name)), whole(name)
    for state, row in found.steps.items():
        number = minimal.block[state]
        assert machine.outputs[number] == {entry: output(found, state, entry) for entry in row}
        assert minimal.after[number] == {entry: minimal.block[step.after] for entry, step in row.items()}
    assert minimal.block[found.start] == 0
    assert [*range(len(minimal.access))] == [ends(minimal, word) for word in minimal.access]


def ends(minimal: MinimalMachine, word: Word) -> int:
    """The class that a word leads to."""
    number = 0
    for entry in word:
        number = minimal.after[number][entry]
    return number


@pytest.mark.parametrize("name", [*EDITIONS, "few"])
def test_every_two_classes_are_told_apart(name: str) -> None:
    """By the last step of their separating word and no earlier one, so none of it is wasted."""
    machine, minimal = correct(name), minimise(whole(name))
    numbers = range(len(minimal.access))
    assert {(a, b) for a in numbers for b in numbers if a != b} == set(minimal.separating)
    for (a, b), word in minimal.separating.items():
        alike = [x == y for x, y in zip(machine.run(a, word), machine.run(b, word), strict=True)]
        assert [True] * (len(word) - 1) + [False] == alike


def test_telling_apart_may_take_two_steps() -> None:
    """With few inputs some classes show the same at first; with all of Caffe's, one step always tells."""
    assert {1, 2} == {len(word) for word in minimise(whole("few")).separating.values()}
    assert {1} == {len(word) for word in minimal_machine().separating.values()}


def test_a_separating_word_is_as_short_as_can_be() -> None:
    """Also where a longer one comes first: x and y differ after two steps by b, and after three by a."""
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
    """What is kept for an edition is what would be computed again, its words to classes being words to states."""
    assert minimise(space(edition)) == minimal_machine(edition)
    assert complete_suite(minimise(space(edition))) == hsi_suite(edition)
    assert set(minimal_machine(edition).access) <= set(access_words(edition).values())
