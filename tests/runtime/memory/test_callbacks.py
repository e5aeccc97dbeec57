"""Allocators that call back the memory that is calling them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import pytest
from subjects import SIZE, filled

from syncedmem.model import ReentrantCallError, SyncedMemoryError
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("name", ["allocate", "memcpy", "viewer", "release", "adopt", "check_stream"])
def test_an_allocator_that_calls_back_is_refused(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A call inside a call would find a state that is neither before nor after; the outer one fails as a whole."""
    memory = SyncedMemory(SIZE, device=device)
    if name in ("release", "adopt"):
        memory.mutable_gpu_data()
    else:
        filled(memory)
    head, blocks = memory.head, device.live_blocks

    def call_back(*_: object) -> None:
        for call in (memory.close, memory.cpu_data, memory.mutable_cpu_data, memory.gpu_data):
            with pytest.raises(ReentrantCallError, match=f"{call.__name__}: this memory is in the middle of another"):
                call()
        memory.mutable_gpu_data()

    monkeypatch.setattr(device, name, call_back)
    calls: dict[str, Callable[[], object]] = {
        "allocate": memory.gpu_data,
        "memcpy": memory.gpu_data,
        "viewer": memory.gpu_data,
        "release": memory.close,
        "adopt": lambda: memory.set_gpu_data(device.empty(SIZE)),
        "check_stream": lambda: memory.async_gpu_push(stream=None),
    }

    with pytest.raises(SyncedMemoryError, match="in the middle of another call"):
        calls[name]()

    assert (memory.head, device.live_blocks) == (head, blocks)
    monkeypatch.undo()
    memory.close()
    assert device.live_blocks == 0


def test_an_allocator_that_calls_back_from_the_finaliser_finds_no_memory(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory that is going gives nothing out any more: its blocks are freed when it has gone."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_gpu_data()
    known, release, found = weakref.ref(memory), device.release, list[object]()

    def call_back(ptr: Any) -> None:
        found.append(known())
        release(ptr)

    monkeypatch.setattr(device, "release", call_back)
    del memory

    assert (found, device.live_blocks) == ([None], 0)
