"""Copies in flight: what waits for a push, and what happens when one fails."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest
from subjects import SIZE, failing, filled

from syncedmem.model import (
    ClosedMemoryError,
    DeviceError,
    IllegalCallError,
    NoDeviceError,
    ReleaseError,
    SyncedHead,
    SyncedMemoryError,
)
from syncedmem.runtime import Adaptor, SimulatedDeviceAllocator, SyncedMemory


def test_a_push_that_is_refused_names_the_head(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    with pytest.raises(IllegalCallError) as caught:
        memory.async_gpu_push(stream=device.stream())

    assert isinstance(caught.value, RuntimeError)
    assert ("async_gpu_push", SyncedHead.UNINITIALIZED) == (caught.value.call, caught.value.head)


@pytest.mark.parametrize("stream", [None, object()])
def test_a_memory_without_a_device_cannot_be_pushed(stream: Any) -> None:
    """Neither is the push refused for the head, nor is the stream looked at: there is no device it could be one of."""
    memory = filled(SyncedMemory(SIZE, device=None))
    with pytest.raises(NoDeviceError):
        memory.async_gpu_push(stream=stream)

    assert (SyncedHead.HEAD_AT_CPU, [7] * SIZE) == (memory.head, memory.cpu_data().tolist())


@pytest.mark.parametrize("check_device", [False, True])
def test_reading_waits_for_no_push(device: SimulatedDeviceAllocator, check_device: bool) -> None:
    """Reading the device is ordered after it. With the device check on, the calls take the slow path."""
    memory = filled(SyncedMemory(SIZE, device=device, check_device=check_device))
    stream = device.stream()
    memory.async_gpu_push(stream=stream)
    near, views = memory.cpu_data(), (memory.gpu_data(), memory.mutable_gpu_data())

    assert not stream.done
    assert [7] * SIZE == near.tolist() == views[0].get().tolist() == views[1].get().tolist()


@pytest.mark.parametrize("check_device", [False, True])
def test_wait_waits_for_a_push(device: SimulatedDeviceAllocator, check_device: bool) -> None:
    """It waits for nothing else, changes no head, and returns at once if nothing is pushed."""
    memory = filled(SyncedMemory(SIZE, device=device, check_device=check_device))
    stream, other = device.stream(), device.stream()
    other.put(lambda: None)
    memory.wait()
    memory.async_gpu_push(stream=stream)
    assert not stream.done
    for _ in range(2):
        memory.wait()

    assert (True, False, SyncedHead.SYNCED) == (stream.done, other.done, memory.head)


def test_a_memory_that_is_dropped_waits_again_for_a_push_if_a_signal_handler_raised(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its blocks would be lost.  Python prints what the handler raised, as from any finaliser."""
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    memory, stream, raised = filled(SyncedMemory(SIZE, device=device)), device.stream(), list[int]()

    def interrupted() -> None:
        if not raised:
            raised.append(1)
            raise TimeoutError

    stream.put(interrupted)
    memory.async_gpu_push(stream=stream)
    del memory

    assert ([TimeoutError], 0) == ([item.exc_type for item in shown], device.live_blocks)


def test_a_push_that_a_signal_handler_met_when_it_was_queued_is_waited_for(device: SimulatedDeviceAllocator) -> None:
    """It was taken for one that was refused: it happened later, and was told as a late write of the user."""

    class Late(Adaptor):
        def memcpy(self, *arguments: Any, **named: Any) -> None:
            super().memcpy(*arguments, **named)
            raise TimeoutError

    memory, stream = filled(SyncedMemory(SIZE, device=Late(device), checked=True)), device.stream()
    with pytest.raises(SyncedMemoryError) as caught:
        memory.async_gpu_push(stream=stream)
    memory.mutable_cpu_data()[:] = 9

    assert isinstance(caught.value.__cause__, TimeoutError)
    assert stream.done
    assert [9] * SIZE == memory.cpu_data().tolist()


def test_there_is_nothing_to_wait_for_without_a_device_or_after_close() -> None:
    memory = SyncedMemory(SIZE, device=None)
    memory.wait()
    memory.close()
    with pytest.raises(ClosedMemoryError) as refused:
        memory.wait()
    assert ("wait", SIZE) == (refused.value.call, refused.value.size)


def test_an_order_that_cannot_be_given_is_reported(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(memory)
    memory.async_gpu_push(stream=device.stream())

    monkeypatch.setattr(device, "order_after", failing(RuntimeError, "no barrier"))

    with pytest.raises(DeviceError, match="ordering after the push failed on simulated:0: RuntimeError: no barrier"):
        memory.gpu_data()

    assert memory.head is SyncedHead.SYNCED


class Stuck:
    """An event of a copy that is not over, and cannot be waited for."""

    done: Any = False

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        raise RuntimeError("the device fell off the bus")


class Unknown(Stuck):
    """An event that cannot be asked either."""

    done = property(Stuck.synchronize)


@pytest.mark.parametrize("event", [Stuck, Unknown])
def test_a_wait_that_fails_is_reported_and_changes_nothing(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch, event: type[Stuck]
) -> None:
    """It is so each time, because the copy may still be in flight.  It holds for the finaliser too, which warns."""
    memory = filled(SyncedMemory(SIZE, device=device))
    monkeypatch.setattr(device, "record", event)
    memory.async_gpu_push(stream=device.stream())

    for _ in range(2):
        with pytest.raises(DeviceError, match="waiting for the push failed on simulated:0"):
            memory.mutable_cpu_data()

    assert memory.head is SyncedHead.SYNCED
    with pytest.warns(ResourceWarning, match="leaked.*waiting for the push failed"):
        del memory
        gc.collect()


class Lost:
    """An event of a copy that is over and did not happen."""

    done = True

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        raise RuntimeError("an illegal address")


@pytest.fixture
def lost(memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch) -> SyncedMemory:
    """A memory whose push will turn out to have failed."""
    filled(memory)
    with monkeypatch.context() as patch:
        patch.setattr(device, "record", Lost)
        memory.async_gpu_push(stream=device.stream())
    return memory


@pytest.mark.parametrize("name", ["gpu_data", "mutable_gpu_data", "wait"])
def test_what_was_lost_on_the_way_up_is_never_shown(lost: SyncedMemory, name: str) -> None:
    """Each call that needs the bytes raises the error, until the device side is made fresh in another way."""
    for call in (name, name, "gpu_data", "mutable_gpu_data"):
        with pytest.raises(DeviceError) as told:
            getattr(lost, call)()
        assert isinstance(told.value.__cause__, RuntimeError)

    assert (lost.head, lost.cpu_data().tolist()) == (SyncedHead.SYNCED, [7] * SIZE)
    lost.mutable_cpu_data()[:] = 8
    assert lost.gpu_data().get().tolist() == [8] * SIZE


@pytest.mark.parametrize("name", ["mutable_cpu_data", "set_cpu_data", "set_gpu_data", "close"])
def test_a_lost_push_is_told_once_to_calls_that_do_not_need_it(lost: SyncedMemory, name: str) -> None:
    """These calls wait only for the end of the push; the second time there is nothing to wait for."""
    device: Any = lost.device
    arguments = {"set_cpu_data": (bytearray(SIZE),), "set_gpu_data": (device.empty(SIZE),)}.get(name, ())
    with pytest.raises(DeviceError):
        getattr(lost, name)(*arguments)

    assert lost.head is SyncedHead.SYNCED
    getattr(lost, name)(*arguments)
    lost.close()
    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)


def test_a_lost_push_is_not_copied_back(lost: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a push fails after its target was returned for writing, the host keeps its bytes."""
    with monkeypatch.context() as patch:
        patch.setattr(Lost, "done", False)
        patch.setattr(lost.device, "order_after", id)  # takes the event, and does nothing
        lost.mutable_gpu_data()

    for call in (lost.cpu_data, lost.mutable_cpu_data, lost.cpu_data):
        with pytest.raises(DeviceError, match="an illegal address"):
            call()
    assert lost.head is SyncedHead.HEAD_AT_GPU
    lost.close()


def test_a_push_that_cannot_be_recorded_is_waited_for_on_its_own_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could wait for it later.  The host waits for one stream, as with CUDA's streams that do not block."""

    class Separate(SimulatedDeviceAllocator):
        def memcpy(self, *arguments: Any, **options: Any) -> None:
            if arguments[2]:
                super().memcpy(*arguments, **options)
            elif options.get("need_sync") and len(arguments) > 4 and arguments[4] is not None:
                arguments[4].synchronize()

    separate = Separate()
    memory, stream = filled(SyncedMemory(SIZE, device=separate)), separate.stream()
    monkeypatch.setattr(separate, "record", failing(RuntimeError, "no event"))
    with pytest.raises(DeviceError, match="no event"):
        memory.async_gpu_push(stream=stream)

    assert (stream.done, separate.live_blocks, memory.head) == (True, 0, SyncedHead.HEAD_AT_CPU)


def test_a_lost_push_is_not_forgotten_by_a_call_that_fails(lost: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are still lost after a close() that could not free the host side."""
    device: Any = lost.device

    with monkeypatch.context() as patch:
        patch.setattr(device.pinned_host(), "release", failing(RuntimeError, "dead"))
        for error, call in ((DeviceError, lost.close), (ReleaseError, lost.close), (DeviceError, lost.gpu_data)):
            with pytest.raises(error):
                call()

    assert lost.head is SyncedHead.SYNCED
    lost.close()


raising = failing(RuntimeError, "dead")


def stuck_push(memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Push so that the copy is queued, but can be neither recorded nor waited for; returns the stream."""
    device: Any = filled(memory).device
    stream, memcpy = device.stream(), device.memcpy

    def copy_then_die(*arguments: Any, **options: Any) -> None:
        memcpy(*arguments, **options)
        patch.setattr(device, "memcpy", raising)

    with monkeypatch.context() as patch:
        patch.setattr(device, "memcpy", copy_then_die)
        patch.setattr(device, "record", raising)
        with (
            pytest.warns(ResourceWarning, match=f"{SIZE} bytes leaked on simulated:0: waiting for the push failed"),
            pytest.raises(DeviceError, match="copy_to_gpu_async failed on simulated:0: RuntimeError: dead"),
        ):
            memory.async_gpu_push(stream=stream)
    assert (stream.done, device.live_blocks, memory.head) == (False, 1, SyncedHead.HEAD_AT_CPU)
    return stream


def test_a_push_that_is_stuck_keeps_its_source_from_being_written(
    memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds also for an accessor that has nothing else to do; a reader of the device side then copies again."""
    stream = stuck_push(memory, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(memory.device, "memcpy", raising)
        with pytest.raises(DeviceError):
            memory.set_cpu_data(bytearray(SIZE))
    memory.mutable_cpu_data()[:] = 8

    assert stream.done
    assert memory.gpu_data().get().tolist() == [8] * SIZE


def test_a_reader_of_the_device_waits_for_a_push_that_no_device_can_wait_for(
    memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no event after which other work could be ordered, so the host waits."""
    stream = stuck_push(memory, monkeypatch)

    assert memory.gpu_data().get().tolist() == [7] * SIZE
    assert stream.done


@pytest.mark.parametrize("stuck", [False, True])
def test_a_finaliser_frees_what_a_push_into_lost_memory_used(device: SimulatedDeviceAllocator, stuck: bool) -> None:
    """It holds for every kind of error that the device may raise."""
    block: Any = device.allocate(SIZE)
    memory = SyncedMemory(SIZE, device=device)
    memory.set_gpu_data(block)
    filled(memory)
    memory.async_gpu_push(stream=device.stream())
    device.release(block)
    if stuck:
        with pytest.raises(SyncedMemoryError, match="after it was freed"):
            memory.close()
    del memory

    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)
