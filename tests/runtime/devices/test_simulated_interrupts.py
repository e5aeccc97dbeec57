"""Interrupts inside the simulated device: its blocks, its quarantine and its streams."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from interruption import INTERRUPTS, acquired_elsewhere, interrupt_everywhere
from subjects import SIZE, filled

from syncedmem.model import DeviceError, InvalidPointerError
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.devices.simulated.block import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

    Require = Callable[..., None]

LARGE = 72
"""Two blocks of this size do not fit into the quarantine."""
QUARANTINE = 100


@pytest.fixture(autouse=True)
def _small_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.runtime.devices.simulated.block._QUARANTINE_BYTES", QUARANTINE)


class Room:
    """A device with a small capacity, one block in use and one in quarantine."""

    def __init__(self) -> None:
        self.device = SimulatedDeviceAllocator(capacity=2 * LARGE)
        self.device.release(self.device.allocate(LARGE))
        self.ptr: Any = self.device.allocate(LARGE)
        self.done: list[int] = []

    def check(self) -> None:
        assert acquired_elsewhere(exclusive)
        self.device.check()


@pytest.mark.parametrize("error", INTERRUPTS)
def test_a_release_can_be_repeated_after_an_interrupt(error: type[BaseException], require_unbroken: Require) -> None:
    """It holds also if the interrupt came while the quarantine was making room."""

    def check(room: Room, _raised: BaseException | None) -> None:
        room.check()
        with suppress(InvalidPointerError):  # if the interrupted release had already happened
            room.device.release(room.ptr)
        assert room.device.live_blocks == 0
        room.ptr = None
        room.device.release(room.device.allocate(2 * LARGE))  # all memory is free
        room.check()

    report = interrupt_everywhere(Room, lambda room: room.device.release(room.ptr), check, error)

    require_unbroken(report, at_least=20)


@pytest.mark.parametrize("error", INTERRUPTS)
def test_what_an_interrupted_allocation_took_is_free(error: type[BaseException], require_unbroken: Require) -> None:
    kept: list[Any] = []

    def check(room: Room, _raised: BaseException | None) -> None:
        kept.clear()
        assert room.device.live_blocks <= 2
        room.check()
        for ptr in [ptr for ptr, _ in room.device._live.entries()]:  # pyright: ignore[reportPrivateUsage] -- the interrupt may have lost the result
            room.device.release(ptr)
        room.device.release(room.device.allocate(2 * LARGE))

    report = interrupt_everywhere(Room, lambda room: kept.append(room.device.allocate(SIZE)), check, error)

    require_unbroken(report, at_least=20)


def queue_and_wait(room: Room) -> None:
    stream = room.device.stream()
    for number in range(3):
        stream.put(partial(room.done.append, number))
    event = stream.record()
    room.device._space.default_stream.wait_event(event)  # pyright: ignore[reportPrivateUsage] -- as order_after does
    room.device.synchronize()
    assert event.done


@pytest.mark.parametrize("error", INTERRUPTS)
def test_queued_work_happens_in_order_whatever_interrupts(
    error: type[BaseException], require_unbroken: Require
) -> None:
    """Work that was interrupted may happen twice, with the same effect on bytes; no work is left out or overtaken."""

    def check(room: Room, _raised: BaseException | None) -> None:
        room.check()
        room.device.synchronize()
        order = sorted(set(room.done))
        assert room.done == sorted(room.done)
        assert order == list(range(len(order)))
        room.done.clear()
        queue_and_wait(room)
        assert room.done == [0, 1, 2]

    require_unbroken(interrupt_everywhere(Room, queue_and_wait, check, error), at_least=20)


def at_the_end_of_the_stack(call: Callable[[], object]) -> None:
    """Try a call where no stack frame is left, then one frame further up, and so on until it succeeds."""
    try:
        at_the_end_of_the_stack(call)
    except (RecursionError, DeviceError):
        call()


def test_a_push_is_waited_for_at_the_end_of_the_stack() -> None:
    """The wait ends with RecursionError and does not hang; with more stack, the memory can be closed."""
    device = SimulatedDeviceAllocator()
    memory = filled(SyncedMemory(SIZE, device=device))
    memory.async_gpu_push(stream=device.stream())

    at_the_end_of_the_stack(memory.close)

    assert (memory.closed, device.live_blocks, device.pinned_host().live_blocks) == (True, 0, 0)
    assert acquired_elsewhere(exclusive)


def test_an_operation_that_ran_out_of_memory_happens_when_somebody_waits_again() -> None:
    device = SimulatedDeviceAllocator()
    stream, answers, done = device.stream(), [MemoryError()], list[int]()

    def operation() -> None:
        if answers:
            raise answers.pop()
        done.append(1)

    stream.put(operation)
    event = stream.record()
    with pytest.raises(MemoryError):
        event.synchronize()
    pending = (event.done, list(done))
    event.synchronize()

    assert ((False, []), [1], True) == (pending, done, stream.done)
