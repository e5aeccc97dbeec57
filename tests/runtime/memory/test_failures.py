"""Failures: what a memory raises, and how it stays, when an allocator or a device fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, failing

from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    DeviceError,
    caffe,
)
from syncedmem.runtime import Buffer, CPUDeviceAllocator, SimulatedDeviceAllocator, SimulatedDeviceError, SyncedMemory
from syncedmem.runtime.allocators.pointers import no_room

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_view_that_cannot_be_made_frees_nothing(device: SimulatedDeviceAllocator) -> None:
    """An adoption frees the owned side last, when nothing can fail any more."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_gpu_data().set(np.full(SIZE, 7, np.uint8))
    buffer = device.empty(SIZE)

    for name in ("viewer", "read_only"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device, name, failing(RuntimeError, "no view"))
            with pytest.raises(DeviceError, match="making a view failed on simulated:0: RuntimeError: no view"):
                memory.set_gpu_data(buffer)

    assert (memory.own_gpu_data, device.live_blocks, memory.cpu_data().tolist()) == (True, 1, [7] * SIZE)
    memory.set_gpu_data(buffer)
    assert device.live_blocks == 0


def test_after_a_declared_free_nothing_follows_that_could_fail() -> None:
    """The memory relies on this, because what is freed cannot be undone."""
    followers = {
        row.actions[i + 1 :]
        for row in caffe.EVERYTHING.rows
        if row.call != caffe.RELEASE.name
        for i, action in enumerate(row.actions)
        if action in {caffe.FREE_CPU.name, caffe.FREE_GPU.name}
    }

    assert followers == {(caffe.ADOPT_CPU.name,), (caffe.ADOPT_GPU.name,)}


def test_a_device_that_cannot_say_which_is_current_is_reported(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = SyncedMemory(SIZE, device=device, check_device=True)

    monkeypatch.setattr(device, "current_ordinal", failing(RuntimeError, "no context"))

    with pytest.raises(DeviceError, match="asking for the current device failed on simulated:0: RuntimeError: no"):
        memory.cpu_data()


def test_a_buffer_that_raises_while_it_is_looked_at_is_refused() -> None:
    """Whatever the buffer raises, the caller gets one error that has the buffer."""

    class Odd(CPUDeviceAllocator):
        def adopt(self, buffer: object, byte_size: int) -> Any:
            raise OSError(5, f"{type(buffer).__name__} of {byte_size} bytes")

    memory = SyncedMemory(SIZE, host=Odd(), device=None)
    buffer = bytearray(SIZE)

    with pytest.raises(BufferMismatchError, match=r"OSError: .* bytearray of 48 bytes") as caught:
        memory.set_cpu_data(buffer)

    assert caught.value.buffer is buffer


class Mute(Exception):
    """An error whose message raises."""

    def __str__(self) -> str:
        raise KeyError("no")


class MuteValue(Mute, ValueError):
    """A ValueError whose message raises, with which allocators refuse a buffer."""


class MuteMemory(Mute, MemoryError):
    """A MemoryError whose message raises, of a device that has no room."""


def raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    """A function that raises, whatever its arguments."""

    def fail(*_: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [Mute, MuteValue])
def test_a_buffer_is_refused_although_the_reason_cannot_be_shown(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory and a `Buffer` both name the reason by its type."""
    host, mine = CPUDeviceAllocator(), bytearray(SIZE)
    memory = SyncedMemory(SIZE, host=host, device=None)
    monkeypatch.setattr(host, "adopt", raising(error))
    for adopting in (lambda: memory.set_cpu_data(mine), lambda: Buffer(SIZE, host, mine, use_external=True)):
        with pytest.raises(BufferMismatchError, match=rf": {error.__name__}$"):
            adopting()


def test_a_lack_of_room_that_cannot_be_shown_is_an_allocation_error(monkeypatch: pytest.MonkeyPatch) -> None:
    host = CPUDeviceAllocator()
    memory = SyncedMemory(SIZE, host=host, device=None)
    monkeypatch.setattr(host, "allocate", raising(MuteMemory))
    for allocating in (memory.cpu_data, lambda: Buffer(SIZE, host)):
        with pytest.raises(AllocationError, match=r"cannot allocate 48 bytes on cpu:0: MuteMemory$"):
            allocating()

    assert "cannot allocate 4 bytes on here: MuteMemory" == str(no_room("here", 4, MuteMemory()))


@pytest.mark.parametrize(
    ("accessor", "ready"),
    [
        ("cpu_data", "_read_cpu"),
        ("mutable_cpu_data", "_write_cpu"),
        ("gpu_data", "_read_gpu"),
        ("mutable_gpu_data", "_write_gpu"),
    ],
)
def test_a_view_that_cannot_be_made_with_nothing_else_to_do_is_a_device_error(
    memory: SyncedMemory, accessor: str, ready: str
) -> None:
    """On the hot path: our own errors and interrupts pass unchanged, the head stays, and the next call works."""
    call = getattr(memory, accessor)
    call()
    head, maker = memory.head, getattr(memory, ready)
    cause = OSError(5, "no view")
    setattr(memory, ready, raising(cause))
    with pytest.raises(DeviceError, match=r"making a view failed on simulated:0: OSError: .*no view") as caught:
        call()
    assert caught.value.__cause__ is cause
    for passing in (SimulatedDeviceError("late"), KeyboardInterrupt()):
        setattr(memory, ready, raising(passing))
        with pytest.raises(type(passing)) as passed:
            call()
        assert passed.value is passing
    setattr(memory, ready, maker)

    assert (head, SIZE) == (memory.head, call().nbytes)
