"""The state space of Caffe's machine: its size, its views, and what the editions have."""

from __future__ import annotations

import pytest
from loops import some

from syncedmem.model import EDITIONS, Configuration, Input, caffe, configurations, matrix, space
from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences


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
        for entry, step in some(cell for cell in row.items() if cell[0].call):
            cell = matrix(machine)[found.configuration(state)][entry]
            after = found.configuration(step.after)
            assert (step.actions, step.refusal, after) == (cell.actions, cell.refusal, cell.after)


def test_the_state_reached_first_speaks_for_its_configuration() -> None:
    """One step leads to adopted memory. That state lacks the flag that owned memory may have set earlier."""
    adopted = Configuration("C:e-", "HEAD_AT_CPU", frozenset(("has_cpu_pointer",)))
    assert frozenset(("has_cpu_pointer",)) == space(caffe.CAFFE, settings=False).configurations[adopted].facts


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
    assert {"-", "o"} == {str(configuration)[-1] for configuration in configurations(caffe.EARLY)}
