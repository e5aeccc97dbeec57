"""Copies in flight: what waits for a push, and what happens when one fails."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from subjects import SIZE, filled

from syncedmem.model import (
    DeviceError,
    IllegalCallError,
    InvalidArgumentError,
    ReleaseError,
    SyncedHead,
    SyncedMemoryError,
)
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory


@pytest.mark.parametrize("head", [SyncedHead.UNINITIALIZED, SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED])
def test_pushing_needs_the_head_at_the_cpu(memory: SyncedMemory, head: SyncedHead) -> None:
    """The error names the head, is a RuntimeError, and nothing has changed."""
    if head is not SyncedHead.UNINITIALIZED:
        memory.gpu_data()
    if head is SyncedHead.SYNCED:
        memory.cpu_data()

    with pytest.raises(IllegalCallError, match=f"not allowed in head {head.name}") as caught:
        memory.async_gpu_push(stream=memory.device.stream())  # type: ignore[union-attr] # it has a device

    assert isinstance(caught.value, RuntimeError)
    assert caught.value.head is memory.head is head


@pytest.mark.parametrize("stream", [None, 0, "0", object(), SimulatedDeviceAllocator(1).stream()])
def test_what_is_no_stream_of_the_device_is_refused(memory: SyncedMemory, stream: Any) -> None:
    filled(memory)

    with pytest.raises(InvalidArgumentError, match="stream must be a stream of simulated:0"):
        memory.async_gpu_push(stream=stream)

    assert memory.head is SyncedHead.HEAD_AT_CPU


def test_reading_the_host_does_not_wait(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    filled(memory)
    stream = device.stream()
    memory.async_gpu_push(stream=stream)

    assert memory.cpu_data().tolist() == [7] * SIZE
    assert not stream.done


def test_reading_the_device_is_ordered_after_the_push_without_waiting(
    memory: SyncedMemory, device: SimulatedDeviceAllocator
) -> None:
    filled(memory)
    stream = device.stream()
    memory.async_gpu_push(stream=stream)
    views = (memory.gpu_data(), memory.mutable_gpu_data())

    assert not stream.done
    assert [view.get().tolist() for view in views] == [[7] * SIZE] * 2


def test_reading_the_host_does_not_wait_with_the_device_check_on(device: SimulatedDeviceAllocator) -> None:
    """That is, on the slow path."""
    memory = filled(SyncedMemory(SIZE, device=device, check_device=True))
    stream = device.stream()
    memory.async_gpu_push(stream=stream)

    assert memory.cpu_data().tolist() == [7] * SIZE
    assert not stream.done


def test_an_order_that_cannot_be_given_is_reported(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(memory)
    memory.async_gpu_push(stream=device.stream())

    def fail(_: object) -> None:
        raise RuntimeError("no barrier")

    monkeypatch.setattr(device, "order_after", fail)

    with pytest.raises(DeviceError, match="ordering after the push failed on simulated:0: RuntimeError: no barrier"):
        memory.gpu_data()

    assert memory.head is SyncedHead.SYNCED


def test_a_finished_push_is_forgotten(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    """After the stream was synchronised, gpu_data() has nothing left to do."""
    filled(memory)
    stream = device.stream()
    memory.async_gpu_push(stream=stream)
    stream.synchronize()
    memory.gpu_data()

    assert memory.gpu_data().get().tolist() == [7] * SIZE


def test_a_push_that_cannot_be_recorded_is_waited_for(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could wait for it later, so its memory must not be given back while it runs."""
    filled(memory)
    stream = device.stream()

    def fail(_: object) -> None:
        raise RuntimeError("no event")

    monkeypatch.setattr(device, "record", fail)

    with pytest.raises(DeviceError, match="no event"):
        memory.async_gpu_push(stream=stream)

    assert (stream.done, device.live_blocks, memory.head) == (True, 0, SyncedHead.HEAD_AT_CPU)


def test_a_wait_that_fails_is_reported_and_changes_nothing(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the finaliser, which warns."""

    class Stuck:
        done = False

        def __init__(self, stream: object) -> None:
            self.stream = stream

        def synchronize(self) -> None:
            raise RuntimeError("the device fell off the bus")

    memory = filled(SyncedMemory(SIZE, device=device))
    monkeypatch.setattr(device, "record", Stuck)
    memory.async_gpu_push(stream=device.stream())

    with pytest.raises(DeviceError, match="waiting for the push failed on simulated:0"):
        memory.mutable_cpu_data()

    assert memory.head is SyncedHead.SYNCED
    with pytest.warns(ResourceWarning, match="leaked: waiting for the push failed"):
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


def test_what_was_lost_on_the_way_up_is_never_shown(lost: SyncedMemory) -> None:
    """Whoever asks for the device side gets the error again and again, until it is made fresh in another way."""
    for call in (lost.gpu_data, lost.gpu_data, lost.mutable_gpu_data):
        with pytest.raises(DeviceError, match="waiting for the push failed on simulated:0: RuntimeError: an illegal"):
            call()

    assert (lost.head, lost.cpu_data().tolist()) == (SyncedHead.SYNCED, [7] * SIZE)
    lost.mutable_cpu_data()[:] = 8
    assert lost.gpu_data().get().tolist() == [8] * SIZE


@pytest.mark.parametrize("name", ["mutable_cpu_data", "set_cpu_data", "set_gpu_data", "close"])
def test_a_lost_push_is_told_once_to_calls_that_do_not_need_it(lost: SyncedMemory, name: str) -> None:
    """They wait only for its end; the second time there is nothing to wait for."""
    device: Any = lost.device
    arguments: dict[str, tuple[Any, ...]] = {
        "set_cpu_data": (bytearray(SIZE),),
        "set_gpu_data": (device.empty(SIZE),),
    }

    def call() -> None:
        getattr(lost, name)(*arguments.get(name, ()))

    with pytest.raises(DeviceError, match="waiting for the push"):
        call()

    assert lost.head is SyncedHead.SYNCED
    call()
    lost.close()
    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)


def test_a_lost_push_is_not_copied_back(lost: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push that fails after its target was handed out for writing: the host keeps what it has."""
    with monkeypatch.context() as patch:
        patch.setattr(Lost, "done", False)
        patch.setattr(lost.device, "order_after", id)  # takes the event, and does nothing
        lost.mutable_gpu_data()

    for call in (lost.cpu_data, lost.mutable_cpu_data, lost.cpu_data):
        with pytest.raises(DeviceError, match="an illegal address"):
            call()
    assert lost.head is SyncedHead.HEAD_AT_GPU
    lost.close()


def test_the_finaliser_frees_what_a_lost_push_used(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is over, so nothing uses the memory any more."""
    memory = filled(SyncedMemory(SIZE, device=device))
    monkeypatch.setattr(device, "record", Lost)
    memory.async_gpu_push(stream=device.stream())
    del memory

    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)


def test_an_event_that_cannot_be_asked_is_reported(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an event raises is one error of the family."""
    memory = SyncedMemory(SIZE, device=device)

    class Mute(Lost):
        @property
        def done(self) -> bool:  # type: ignore[override] # raising is the point
            raise RuntimeError("the device fell off the bus")

    filled(memory)
    with monkeypatch.context() as patch:
        patch.setattr(device, "record", Mute)
        memory.async_gpu_push(stream=device.stream())

    with pytest.raises(DeviceError, match="ordering after the push failed on simulated:0: RuntimeError: the device"):
        memory.gpu_data()
    for _ in range(2):  # it may still be on its way, so it is waited for again
        with pytest.raises(DeviceError, match="waiting for the push"):
            memory.mutable_cpu_data()
    with pytest.warns(ResourceWarning, match="leaked"):
        del memory
        gc.collect()


def test_a_push_that_is_undone_is_waited_for(device: SimulatedDeviceAllocator) -> None:
    """Its views cannot be made: the copy is queued, so its memory is freed when that is over and not before."""

    class Blind(SimulatedDeviceAllocator):
        blind = True

        def viewer(self, ptr: Any) -> Any:
            if self.blind:
                raise RuntimeError("no view")
            return super().viewer(ptr)

    del device
    blind = Blind()
    memory, stream = filled(SyncedMemory(SIZE, device=blind)), blind.stream()

    with pytest.raises(DeviceError, match="no view"):
        memory.async_gpu_push(stream=stream)

    assert (stream.done, blind.live_blocks, memory.head) == (True, 0, SyncedHead.HEAD_AT_CPU)
    blind.blind = False
    memory.async_gpu_push(stream=stream)
    memory.close()
    blind.check()


def test_a_push_that_can_neither_be_undone_nor_waited_for_stays_in_flight(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory is left to it, with a warning, and whoever would overwrite its source waits first."""
    filled(memory)
    stream = device.stream()
    memcpy = device.memcpy

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("dead")

    def copy_then_die(*arguments: Any, **options: Any) -> None:
        memcpy(*arguments, **options)
        monkeypatch.setattr(device, "memcpy", fail)

    monkeypatch.setattr(device, "memcpy", copy_then_die)
    monkeypatch.setattr(device, "record", fail)
    with (
        pytest.warns(ResourceWarning, match=f"{SIZE} bytes leaked on simulated:0: waiting for the push failed"),
        pytest.raises(DeviceError, match="copy_to_gpu_async failed on simulated:0: RuntimeError: dead"),
    ):
        memory.async_gpu_push(stream=stream)

    assert (stream.done, device.live_blocks, memory.head) == (False, 1, SyncedHead.HEAD_AT_CPU)
    with pytest.raises(DeviceError, match="waiting for the push failed on simulated:0: RuntimeError: dead"):
        memory.set_cpu_data(bytearray(SIZE))
    monkeypatch.undo()
    memory.set_cpu_data(bytearray(SIZE))
    assert stream.done


def test_a_lost_push_is_not_forgotten_by_a_call_that_fails(lost: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are still lost after a close() that could not free the host side."""
    device: Any = lost.device

    def fail(_: object) -> None:
        raise RuntimeError("dead")

    with monkeypatch.context() as patch:
        patch.setattr(device.pinned_host(), "release", fail)
        for error, call in ((DeviceError, lost.close), (ReleaseError, lost.close), (DeviceError, lost.gpu_data)):
            with pytest.raises(error):
                call()

    assert lost.head is SyncedHead.SYNCED
    lost.close()


def stuck_push(memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Push so that the copy is queued and can be neither recorded nor waited for then; the stream."""
    device: Any = filled(memory).device
    stream, memcpy = device.stream(), device.memcpy

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("dead")

    def copy_then_die(*arguments: Any, **options: Any) -> None:
        memcpy(*arguments, **options)
        patch.setattr(device, "memcpy", fail)

    with monkeypatch.context() as patch:
        patch.setattr(device, "memcpy", copy_then_die)
        patch.setattr(device, "record", fail)
        with pytest.warns(ResourceWarning, match="leaked"), pytest.raises(DeviceError, match="dead"):
            memory.async_gpu_push(stream=stream)
    assert not stream.done
    return stream


def test_a_push_that_is_stuck_keeps_its_source_from_being_written(
    memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by an accessor that has nothing else to do; and a reader of the device side copies anew behind it."""
    stream = stuck_push(memory, monkeypatch)
    memory.mutable_cpu_data()[:] = 8

    assert stream.done
    assert memory.gpu_data().get().tolist() == [8] * SIZE


def test_a_reader_of_the_device_waits_for_a_push_that_no_device_can_wait_for(
    memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no event of it to order anything after, so the host waits."""
    stream = stuck_push(memory, monkeypatch)

    assert memory.gpu_data().get().tolist() == [7] * SIZE
    assert stream.done


@pytest.mark.parametrize("stuck", [False, True])
def test_a_finaliser_frees_what_a_push_into_lost_memory_used(device: SimulatedDeviceAllocator, stuck: bool) -> None:
    """Whatever kind of error the device has for it."""
    block, memory = device.allocate(SIZE), SyncedMemory(SIZE, device=device)
    memory.set_gpu_data(block)
    filled(memory)
    memory.async_gpu_push(stream=device.stream())
    device.release(block)
    if stuck:
        with pytest.raises(SyncedMemoryError, match="after it was freed"):
            memory.close()
    del memory

    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)
