"""Interrupts: what holds when a call does not come to its end."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from benches import SIZE, filled

from syncedmem.model import SyncedHead
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.simulated_block import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def test_an_interrupt_is_passed_on_and_undone(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C in the middle of a copy leaks nothing."""
    filled(memory)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(device, "memcpy", interrupt)

    with pytest.raises(KeyboardInterrupt):
        memory.gpu_data()

    assert (device.live_blocks, memory.head) == (0, SyncedHead.HEAD_AT_CPU)


def interrupted_at(k: int, call: Callable[[], object]) -> str:
    """Interrupt a call at the k-th place in the runtime where CPython looks for signals; the place, if there is one.

    Those are where a function starts, where one returns, and where one written in C has returned; not where a
    generator yields.
    """
    seen, where = 0, ""

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal seen, where
        yields = event == "return" and frame.f_code.co_flags & inspect.CO_GENERATOR
        if event in ("call", "return", "c_return") and not yields and "runtime" in frame.f_code.co_filename:
            seen += 1
            if seen == k:
                where = f"{event} {frame.f_code.co_filename.rpartition('/')[2]} {frame.f_code.co_name}"
                raise KeyboardInterrupt

    before = sys.getprofile()
    gc.disable()  # the finaliser of something else must not be interrupted in place of the call
    sys.setprofile(profile)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(before)
        gc.enable()
    return where


def acquired_elsewhere(lock: Any) -> bool:
    """Whether another thread can have a lock."""
    found: list[bool] = []

    def acquire() -> None:
        found.append(lock.acquire(timeout=1))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=acquire)
    thread.start()
    thread.join()
    return found[0]


# The gap that Python leaves: a block is allocated, and the interrupt comes before anybody else has it.
ON_THE_WAY_OUT = ("return pointers.py add", "return simulated.py allocate")

WAYS: dict[str, tuple[Callable[[SyncedMemory], object], ...]] = {
    "first host access": (SyncedMemory.cpu_data,),
    "first device access": (SyncedMemory.mutable_gpu_data,),
    "first copy up": (filled, SyncedMemory.gpu_data),
    "copy up": (filled, SyncedMemory.gpu_data, filled, SyncedMemory.gpu_data),
    "first copy down": (SyncedMemory.mutable_gpu_data, SyncedMemory.cpu_data),
    "host write": (filled, SyncedMemory.gpu_data, SyncedMemory.mutable_cpu_data),
    "device write": (filled, SyncedMemory.gpu_data, SyncedMemory.mutable_gpu_data),
    "host adoption": (filled, lambda memory: memory.set_cpu_data(bytearray(SIZE))),
    "device adoption": (SyncedMemory.gpu_data, lambda memory: memory.set_gpu_data(memory.device.empty(SIZE))),  # type: ignore[union-attr] # it has a device
    "push": (filled, lambda memory: memory.async_gpu_push(stream=memory.device.stream())),  # type: ignore[union-attr] # it has a device
    "close": (filled, SyncedMemory.gpu_data, SyncedMemory.close),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_anywhere_leaves_a_memory_that_notices_writes_and_can_be_closed(way: str) -> None:
    """At every call of the runtime in turn: no accessor is ready that has something to do, and all is freed."""
    *before, last = WAYS[way]
    k, where = 0, "at all"
    while where:
        k += 1
        device, host = SimulatedDeviceAllocator(), CPUDeviceAllocator()
        memory = SyncedMemory(SIZE, device=device, host=host)
        for call in before:
            call(memory)
        where = interrupted_at(k, lambda memory=memory: last(memory))  # type: ignore[misc]
        if not memory.closed:
            memory.mutable_cpu_data()[:] = 9
            assert memory.gpu_data().get().tolist() == [9] * SIZE, where
            memory.mutable_gpu_data().set(np.full(SIZE, 5, np.uint8))
            assert memory.cpu_data().tolist() == [5] * SIZE, where
        memory.close()
        device.check()
        assert acquired_elsewhere(exclusive), where
        left = host.live_blocks + device.pinned_host().live_blocks + device.live_blocks
        assert left == (where in ON_THE_WAY_OUT), where
    assert k > len(before)


def test_a_host_adoption_that_is_interrupted_after_its_free_has_taken_effect(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is freed cannot be unfreed, so the interrupt waits until the rest is done."""
    filled(memory)
    buffer, release = bytearray(SIZE), device.pinned_host().release

    def release_and_interrupt(ptr: Any) -> None:
        release(ptr)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(device.pinned_host(), "release", release_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            memory.set_cpu_data(buffer)

    assert (memory.own_cpu_data, device.pinned_host().live_blocks) == (False, 0)
    memory.mutable_cpu_data()[:] = 3
    assert buffer == bytes([3]) * SIZE
