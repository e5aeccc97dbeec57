"""The explored state space: its size, its views, and how the editions relate to each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from loops import some

from syncedmem.model import (
    EDITIONS,
    Call,
    Configuration,
    Declaration,
    Fact,
    Input,
    Mode,
    Refusal,
    Side,
    State,
    SyncedHead,
    configurations,
    inputs,
    matrix,
    space,
)
from syncedmem.model.compiled import dispatch
from syncedmem.model.dispatch import state_of
from syncedmem.model.exploration import Step, explore, firing
from syncedmem.model.suites import access_sequences

GPU_CALLS = (Call.GPU_DATA, Call.MUTABLE_GPU_DATA, Call.SET_GPU_DATA)


@pytest.mark.parametrize(
    ("edition", "expected"),
    [("caffe", (62, 558, 17, 153, 45)), ("early", (20, 140, 10, 60, 10)), ("cpu_only", (6, 48, 3, 24, 15))],
)
def test_the_space_has_the_size_that_is_known(edition: str, expected: tuple[int, ...]) -> None:
    """States and transitions are counted with the mode; configurations, cells and refusals without it."""
    entries = [entry for row in matrix(edition).values() for entry in row.values()]
    counted = (len(space(edition).steps), space(edition).transitions, len(configurations(edition)), len(entries))
    assert expected == (*counted, sum(entry.refusal is not None for entry in entries))


def test_caffe_has_31_states_but_for_the_mode() -> None:
    """There are 31 states with the pinned flag, each in both modes. If the mode is always GPU, there are 24."""
    packed = Counter(state.packed for state in space().steps)
    assert {2} == set(packed.values())
    assert len(packed) == 31
    assert len(explore(dispatch(), inputs(mode=False)).steps) == 24


def test_the_refusals_of_caffe() -> None:
    """Both calls refuse NULL data in all 17 configurations. A push is refused in all except the 6 of HEAD_AT_CPU."""
    found = Counter((str(entry), it.refusal) for row in matrix().values() for entry, it in row.items() if it.refusal)
    expected = {("set_cpu_data(NULL)", Refusal.NULL_DATA): 17, ("set_gpu_data(NULL)", Refusal.NULL_DATA): 17}
    assert {**expected, ("async_gpu_push", Refusal.NOT_HEAD_AT_CPU): 11} == found


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_state_is_reached_by_its_access_sequence(edition: str) -> None:
    """Run through the compiled table, an access sequence ends in its state, and no shorter sequence does."""
    table, found = dispatch(edition), space(edition)
    assert set(found.steps) == set(access_sequences(edition))
    for state, sequence in access_sequences(edition).items():
        packed, mode = state_of(SyncedHead.UNINITIALIZED), Mode.GPU
        for entry in sequence:
            cell = table.cell(entry.call, packed) if entry.call else None
            packed, mode = cell.next[mode.value] if cell else packed, entry.mode or mode
        assert state == State(packed, mode)
    lengths = {state: len(sequence) for state, sequence in access_sequences(edition).items()}
    # No step adds more than one to the length, so no shorter sequence leads to the same state.
    assert max(lengths[step.after] - lengths[state] for state, row in found.steps.items() for step in row.values()) == 1


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("edition", EDITIONS)
def test_states_of_a_configuration_do_the_same(edition: str, mode: Mode) -> None:
    """The pinned flag and the mode decide no action and no configuration, so one entry is enough for all."""
    flags = EDITIONS[edition].flags & ~Fact.CPU_MALLOC_USE_CUDA
    for state, row in some(space(edition).steps.items()):
        for entry, step in some(it for it in row.items() if it[0].call):
            cell = matrix(edition, mode)[state.configuration][entry]
            assert (step.actions, step.refusal, step.after.configuration) == (cell.actions, cell.refusal, cell.after)
            assert step.after.facts & flags == cell.facts & flags


def test_the_mode_shows_in_the_pinned_flag_of_the_matrix() -> None:
    """Host memory that is allocated in CPU mode is not pinned."""
    start, call = configurations()[0], Input(Call.CPU_DATA)
    facts = {mode: matrix("caffe", mode)[start][call].facts for mode in Mode}
    assert {Mode.CPU: Fact.OWN_CPU_DATA, Mode.GPU: Fact.OWN_CPU_DATA | Fact.CPU_MALLOC_USE_CUDA} == facts


def test_the_state_reached_first_speaks_for_its_configuration() -> None:
    """One step leads to adopted memory. That state lacks the flag that owned memory may have set earlier."""
    adopted = Configuration(SyncedHead.HEAD_AT_CPU, Side.EXTERNAL, Side.NULL)
    assert Fact(0) == matrix()[adopted][Input(Call.CPU_DATA)].facts


def test_a_change_of_mode_changes_nothing_else() -> None:
    """There is no action and no refusal, the packed state is the same, and the new mode is in force."""
    for state, row in some(space().steps.items()):
        for mode in Mode:
            assert Step((), State(state.packed, mode), None) == row[Input(None, mode=mode)]


def test_without_a_mode_a_change_of_mode_changes_nothing() -> None:
    """An input with no call and no mode leaves the state as it is."""
    nothing = Input(None)
    found = explore(dispatch(), (nothing,), Mode.CPU)
    assert {found.start: {nothing: Step((), found.start, None)}} == found.steps
    assert found.start.mode is Mode.CPU


def test_an_input_that_the_edition_does_not_have_is_a_key_error() -> None:
    """The error names the input, and the configuration that has no row for it."""
    with pytest.raises(KeyError, match=r"set_gpu_data\(NULL\) has no row in U:--"):
        explore(dispatch("early"), (Input(Call.SET_GPU_DATA, data=False),))


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (Configuration(SyncedHead.SYNCED, Side.OWNED, Side.EXTERNAL), "S:oe"),
        (Configuration(SyncedHead.UNINITIALIZED, Side.NULL, Side.NULL), "U:--"),
        (Configuration(SyncedHead.HEAD_AT_GPU, Side.EXTERNAL, Side.OWNED), "G:eo"),
        (Input(Call.CPU_DATA), "cpu_data"),
        (Input(Call.SET_CPU_DATA, data=False), "set_cpu_data(NULL)"),
        (Input(None, mode=Mode.CPU), "set_mode(CPU)"),
        (Input(None), "set_mode(None)"),
    ],
)
def test_how_things_are_written(thing: object, text: str) -> None:
    """They are written as in Caffe's observed matrix."""
    assert text == str(thing)


def test_inputs_are_calls_and_on_request_null_data_and_modes() -> None:
    """Release is not an input, because no call can follow it."""
    calls = [call for call in Call if call is not Call.RELEASE]
    assert [Input(call) for call in calls] == list(inputs(mode=False))
    more = [Input(call, data=False) for call in (Call.SET_CPU_DATA, Call.SET_GPU_DATA)]
    assert [*inputs(mode=False), *more, *(Input(None, mode=mode) for mode in Mode)] == list(inputs(null=True))


def test_every_sequence_of_the_early_edition_is_one_of_caffe() -> None:
    """Run side by side from a new memory, both editions have equal actions, refusals, heads and shared facts."""
    early, caffe = space("early"), space("caffe")
    shared = EDITIONS["early"].facts
    seen = {(early.start, caffe.start)}
    waiting = list(seen)
    while waiting:
        ours, theirs = waiting.pop()
        assert (ours.head, ours.facts, ours.mode) == (theirs.head, theirs.facts & shared, theirs.mode)
        for entry, step in early.steps[ours].items():
            other = caffe.steps[theirs][entry]
            assert (step.actions, step.refusal) == (other.actions, other.refusal)
            if (step.after, other.after) not in seen:
                seen.add((step.after, other.after))
                waiting.append((step.after, other.after))
    assert {ours for ours, _ in seen} == set(early.steps)


def test_the_early_edition_adopts_no_device_memory_and_pushes_nothing() -> None:
    """The two calls were added later, and external device memory came with them."""
    calls = set(dispatch("caffe").columns) - set(dispatch("early").columns)
    assert {Call.SET_GPU_DATA, Call.ASYNC_GPU_PUSH} == calls
    assert {Side.NULL, Side.OWNED} == {configuration.gpu for configuration in configurations("early")}


def test_without_a_gpu_everything_about_it_is_refused_and_the_rest_is_as_in_caffe() -> None:
    """Device calls are refused with and without data. Host calls have the same actions and configurations."""
    caffe = matrix("caffe")
    for configuration, row in matrix("cpu_only").items():
        for entry, found in row.items():
            if entry.call in GPU_CALLS:
                assert ((), configuration, Refusal.NO_GPU) == (found.actions, found.after, found.refusal)
            else:
                other = caffe[configuration][entry]
                assert (other.actions, other.after, other.refusal) == (found.actions, found.after, found.refusal)
    assert {Call.ASYNC_GPU_PUSH} == set(dispatch("caffe").columns) - set(dispatch("cpu_only").columns)


def test_a_head_that_null_alone_leads_to_counts() -> None:
    """Here NULL makes a memory SYNCED that has no device side yet, which the early edition cannot do."""
    early = Declaration.of("early")
    host, both = SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED
    refused = next(row for row in early.rows if row.call is Call.SET_CPU_DATA and row.refusal is Refusal.NULL_DATA)
    others = tuple(head for head in refused.source if head is not host)
    rows = (
        *(row for row in early.rows if row is not refused),
        replace(refused, source=others),
        replace(refused, source=(host,), dest=both, refusal=None),
    )
    mine = Declaration(replace(early.edition, name="mine", cycles=()), rows)

    def ends(machine: Declaration | str) -> set[str]:
        return {row.identifier(both) for row in firing(machine) if row.call.ends and both in row.source}

    assert {"release@SYNCED[own_cpu_data,!own_gpu_data]"} < ends(mine) - ends("early")
