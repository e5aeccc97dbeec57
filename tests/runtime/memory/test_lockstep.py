"""The runtime and the interpreted `transitions` machine, side by side over generated walks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import some

from syncedmem.model import (
    Action,
    BoundHead,
    Call,
    Input,
    Mode,
    SyncedMemoryError,
    head_machine,
    hsi_suite,
    inputs,
    tour,
    using_mode,
)
from syncedmem.model.head import Fact
from syncedmem.model.suites import access_sequences
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.memory.bindings import BINDINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZE = 16


class Journal:
    """Has every action, and records the order of the calls."""

    def __init__(self) -> None:
        self.done: list[Action] = []

    def __getattr__(self, name: str) -> Callable[[object], None]:
        action = Action(name)
        return lambda _: self.done.append(action)


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Action]]:
    """The actions for which the runtime's bindings are called, in order."""
    done: list[Action] = []

    def noting(action: Action, perform: Callable[[Any], None]) -> Callable[[Any], None]:
        def noted(change: Any) -> None:
            perform(change)
            done.append(action)

        return noted

    table = {action: noting(action, perform) for action, perform in BINDINGS.items()}
    monkeypatch.setattr("syncedmem.runtime.memory.synced_memory.BINDINGS", table)
    return iter([done])


def outcome(call: Callable[[], object]) -> str:
    """The name of the error of a call, or an empty text."""
    try:
        call()
    except SyncedMemoryError as error:
        return type(error).__name__
    return ""


def drive(memory: SyncedMemory, entry: Input) -> Callable[[], object]:
    """Make the call of an input, with an argument of the right kind."""
    device: Any = memory.device
    method = getattr(memory, entry.call.value if entry.call else "")
    if entry.call is Call.SET_CPU_DATA:
        return lambda: method(bytearray(SIZE) if entry.data else None)
    if entry.call is Call.SET_GPU_DATA:
        return lambda: method(device.empty(SIZE) if entry.data and device else None)
    if entry.call is Call.ASYNC_GPU_PUSH:
        return lambda: method(stream=device.stream())
    called: Callable[[], object] = method
    return called


def compare(sequence: tuple[Input, ...], done: list[Action], edition: str = "caffe") -> BoundHead:
    """Walk through both, and compare after every step: outcome, ordered actions, head and flags."""
    done.clear()
    journal = Journal()
    machine = head_machine(edition).bind(journal)
    memory = SyncedMemory(SIZE, device=SimulatedDeviceAllocator() if edition == "caffe" else None)
    mode = Mode.GPU
    for entry in sequence:
        mode = entry.mode or mode
        if entry.call is None:
            continue
        call = entry.call
        argument = object() if entry.data else None
        with using_mode(mode):
            expected = outcome(lambda call=call, argument=argument: machine.trigger(call, argument))  # type: ignore[misc]
            found = outcome(drive(memory, entry))

        assert (found, done, memory.head) == (expected, journal.done, machine.head)
        flags = (memory.own_cpu_data, memory.own_gpu_data, memory.cpu_malloc_use_cuda)
        assert flags == tuple(
            bool(machine.facts & flag) for flag in (Fact.OWN_CPU_DATA, Fact.OWN_GPU_DATA, Fact.CPU_MALLOC_USE_CUDA)
        )
    memory.close()
    machine.trigger(Call.RELEASE)
    assert journal.done == done
    return machine


def test_the_tour_and_the_complete_suite_agree_step_by_step(performed: Iterator[list[Action]]) -> None:
    """Every transition, and after every transition enough to tell all states apart."""
    done = next(performed)
    for sequence in some(tour() + hsi_suite()):
        compare(sequence, done)


def test_the_edition_without_a_gpu_agrees(performed: Iterator[list[Action]]) -> None:
    done = next(performed)
    for sequence in some(tour("cpu_only") + hsi_suite("cpu_only")):
        compare(sequence, done, "cpu_only")


def test_generated_walks_agree(performed: Iterator[list[Action]]) -> None:
    """Walks of up to twenty calls, NULL data included, from every state."""
    done = next(performed)
    starts = st.sampled_from(list(access_sequences().values()))
    steps = st.lists(st.sampled_from(inputs(null=True)), max_size=20)

    @settings(max_examples=150)
    @given(starts, steps)
    def walk(start: tuple[Input, ...], more: list[Input]) -> None:
        compare((*start, *more), done)

    walk()


def test_a_wrong_order_of_actions_is_noticed(
    performed: Iterator[list[Action]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison can fail: it finds a runtime that allocates twice."""
    done = next(performed)
    table = dict(vars(import_module("syncedmem.runtime.memory.synced_memory"))["BINDINGS"])
    zero = table[Action.ZERO_GPU]

    def wrong(change: Any) -> None:
        zero(change)
        done.append(Action.ALLOCATE_GPU)

    table[Action.ZERO_GPU] = wrong
    monkeypatch.setattr("syncedmem.runtime.memory.synced_memory.BINDINGS", table)

    with pytest.raises(AssertionError):
        compare((Input(Call.GPU_DATA),), done)
