"""The state space of Caffe's machine: its size, its views, and what the editions have."""

from __future__ import annotations

from collections import Counter

import pytest
from loops import some

from syncedmem.model import EDITIONS, Configuration, Input, caffe, configurations, matrix, space
from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences

GPU_CALLS = (caffe.GPU_DATA, caffe.MUTABLE_GPU_DATA, caffe.SET_GPU_DATA)


@pytest.mark.parametrize(
    ("edition", "expected"),
    [("caffe", (62, 558, 17, 153, 45)), ("early", (20, 140, 10, 60, 10)), ("cpu_only", (6, 48, 3, 24, 15))],
)
def test_the_space_has_the_size_that_is_known(edition: str, expected: tuple[int, ...]) -> None:
    """States and transitions are counted with the mode; configurations, cells and refusals without it."""
    machine = EDITIONS[edition]
    entries = [entry for row in matrix(machine).values() for entry in row.values()]
    counted = (len(space(machine).steps), space(machine).transitions, len(configurations(machine)), len(entries))
    assert expected == (*counted, sum(entry.refusal != "" for entry in entries))


def test_caffe_has_31_states_but_for_the_mode() -> None:
    """There are 31 states with the pinned flag, each in both modes. If the mode is always GPU, there are 24."""
    found = Counter((state.head, state.facts) for state in space(caffe.CAFFE).steps)
    assert {2} == set(found.values())
    assert len(found) == 31
    assert len(space(caffe.CAFFE, settings=False).steps) == 24


def test_the_refusals_of_caffe() -> None:
    """Both calls refuse NULL data in all 17 configurations. A push is refused in all except the 6 of HEAD_AT_CPU."""
    cells = [cell for row in matrix(caffe.CAFFE).values() for cell in row.items()]
    assert Counter((str(entry), found.refusal) for entry, found in cells if found.refusal) == {
        ("set_cpu_data(NULL)", "null_data"): 17,
        ("set_gpu_data(NULL)", "null_data"): 17,
        ("async_gpu_push", "not_head_at_cpu"): 11,
    }


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_state_is_reached_by_its_access_sequence(edition: str) -> None:
    """An access sequence ends in its state, and no shorter sequence does."""
    found, sequences = space(EDITIONS[edition]), access_sequences(EDITIONS[edition])
    assert set(found.steps) == set(sequences)
    for wanted, sequence in some(sequences.items()):
        state = found.start
        for entry in sequence:
            state = found.steps[state][entry].after
        assert wanted == state
    lengths = {state: len(sequence) for state, sequence in sequences.items()}
    # No step adds more than one to the length, so no shorter sequence leads to the same state.
    assert max(lengths[step.after] - lengths[state] for state, row in found.steps.items() for step in row.values()) == 1


@pytest.mark.parametrize("edition", EDITIONS)
def test_states_of_a_configuration_do_the_same(edition: str) -> None:
    """The pinned flag and the mode decide no action and no configuration, so one entry is enough for all."""
    machine, found = EDITIONS[edition], space(EDITIONS[edition])
    for state, row in some(found.steps.items()):
        for entry, step in some(it for it in row.items() if it[0].call):
            cell = matrix(machine)[found.configuration(state)][entry]
            after = found.configuration(step.after)
            assert (step.actions, step.refusal, after) == (cell.actions, cell.refusal, cell.after)


def test_the_state_reached_first_speaks_for_its_configuration() -> None:
    """One step leads to adopted memory. That state lacks the flag that owned memory may have set earlier."""
    adopted = Configuration("C:e-", "HEAD_AT_CPU", frozenset(("has_cpu_pointer",)))
    assert frozenset(("has_cpu_pointer",)) == matrix(caffe.CAFFE)[adopted][Input(caffe.CPU_DATA)].facts


def test_a_change_of_mode_changes_nothing_else() -> None:
    """There is no action and no refusal, head and facts are the same, and the new mode is in force."""
    for state, row in some(space(caffe.CAFFE).steps.items()):
        for mode in some(caffe.MODE.values):
            step = row[Input(setting="mode", value=mode)]
            assert ((), "", state._replace(settings=(mode,))) == (step.actions, step.refusal, step.after)


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (Input(caffe.CPU_DATA), "cpu_data"),
        (Input(caffe.SET_CPU_DATA, data=False), "set_cpu_data(NULL)"),
        (Input(setting="mode", value="CPU"), "set_mode(CPU)"),
    ],
)
def test_how_inputs_are_written(thing: Input, text: str) -> None:
    assert text == str(thing)


def test_inputs_are_calls_and_unless_told_otherwise_null_data_and_modes() -> None:
    """Release comes last, and only if it is asked for, because no call can follow it."""
    calls = [Input(call) for call in caffe.CAFFE.calls.values() if call is not caffe.RELEASE]
    more = [Input(call, data=False) for call in (caffe.SET_CPU_DATA, caffe.SET_GPU_DATA)]
    modes = [Input(setting="mode", value=mode) for mode in caffe.MODE.values]
    table = stepper(caffe.CAFFE)
    assert calls == [*table.inputs(null=False, settings=False)]
    assert [*calls, *more, *modes, Input(caffe.RELEASE)] == [*table.inputs(end=True)]


def test_the_early_edition_adopts_no_device_memory_and_pushes_nothing() -> None:
    """The two calls were added later, and external device memory came with them."""
    assert {"set_gpu_data", "async_gpu_push"} == caffe.CAFFE.calls.keys() - caffe.EARLY.calls.keys()
    assert {"-", "o"} == {str(it)[-1] for it in configurations(caffe.EARLY)}


def test_without_a_gpu_everything_about_it_is_refused_and_the_rest_is_as_in_caffe() -> None:
    """Device calls are refused with and without data. Host calls have the same actions and heads."""
    whole = {str(configuration): row for configuration, row in matrix(caffe.CAFFE).items()}
    for configuration, row in some(matrix(caffe.CPU_ONLY).items()):
        for entry, found in some(row.items()):
            if entry.call in GPU_CALLS:
                assert ((), configuration, "no_gpu") == (found.actions, found.after, found.refusal)
            else:
                other = whole[str(configuration)][entry]
                after = str(other.after), str(found.after)
                assert (other.actions, after[0], other.refusal) == (found.actions, after[1], found.refusal)
