"""The runtime and the interpreted `transitions` machine, side by side over the tour and the complete suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from loops import some

from syncedmem.model import Mode, SyncedMemoryError, caffe, using_mode
from syncedmem.model.states import stepper
from syncedmem.model.stepper import Input
from syncedmem.model.suites import hsi_suite, tour
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.memory.bindings import BINDINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model.declaration import Machine

SIZE = 16


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The actions for which the runtime's bindings are called, in order."""
    done: list[str] = []

    def noting(action: str, perform: Callable[[Any], None]) -> Callable[[Any], None]:
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
    method = getattr(memory, entry.call.name if entry.call else "")
    if entry.call == caffe.SET_CPU_DATA:
        return lambda: method(bytearray(SIZE) if entry.data else None)
    if entry.call == caffe.SET_GPU_DATA:
        return lambda: method(device.empty(SIZE) if entry.data and device else None)
    if entry.call == caffe.ASYNC_GPU_PUSH:
        return lambda: method(stream=device.stream())
    called: Callable[[], object] = method
    return called


def compare(sequence: tuple[Input, ...], done: list[str], machine: Machine = caffe.CAFFE) -> None:
    """Walk through both, and compare after every step: outcome, ordered actions, head and flags."""
    live = stepper(machine)
    state = live.start
    memory = SyncedMemory(SIZE, device=SimulatedDeviceAllocator() if machine == caffe.CAFFE else None)
    for entry in sequence:
        step = live.trigger(state, entry)
        assert step
        state = step.after
        if entry.call is None:
            continue
        done.clear()
        with using_mode(Mode[state.settings[0]]):
            found = outcome(drive(memory, entry))

        expected = machine.refusals[step.refusal].error if step.refusal else ""
        assert (found, done, memory.head.name) == (expected, [*step.actions], state.head)
        flags = {name: getattr(memory, name) for name in (flag.name for flag in caffe.CAFFE.flags)}
        assert flags == {name: name in state.facts for name in flags}
    done.clear()
    memory.close()
    released = live.trigger(state, Input(caffe.RELEASE))
    assert released
    assert done == [*released.actions]


@pytest.mark.parametrize("machine", [caffe.CAFFE, caffe.CPU_ONLY], ids=str)
def test_the_tour_and_the_complete_suite_agree_step_by_step(performed: Iterator[list[str]], machine: Machine) -> None:
    """Every transition, and after every transition enough to tell all states apart."""
    done, sequences = next(performed), tour(machine) + hsi_suite(machine)
    for sequence in some(sequences):
        compare(sequence, done, machine)
