"""Views that are kept: when the host view that moved the head loses its right to write."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, devices, failing

from syncedmem.model import SyncedMemoryError
from syncedmem.runtime import Blob, SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable

ENDS: dict[str, Callable[[Any], object]] = {
    "gpu_data": lambda memory: memory.gpu_data(),
    "mutable_gpu_data": lambda memory: memory.mutable_gpu_data(),
    "async_gpu_push": lambda memory: memory.async_gpu_push(stream=memory.device.stream()),
    "set_cpu_data": lambda memory: memory.set_cpu_data(bytearray(SIZE)),
    "set_gpu_data": lambda memory: memory.set_gpu_data(memory.device.empty(SIZE)),
    "close": lambda memory: memory.close(),
}
"""The calls after which what is written on the host would be lost."""


@pytest.fixture(params=devices(), ids=lambda place: str(place.device_type.name))
def anywhere(request: pytest.FixtureRequest) -> SyncedMemory:
    """A memory on each device of this machine, which leaves its stale side as it is."""
    return SyncedMemory(SIZE, device=request.param, checked=False)


@pytest.mark.parametrize("name", ENDS)
def test_a_view_that_moved_the_head_becomes_read_only(anywhere: SyncedMemory, name: str) -> None:
    """The mistake raises at its own line, and nothing is written."""
    kept = anywhere.mutable_cpu_data()
    kept[:] = 7
    ENDS[name](anywhere)

    with pytest.raises(ValueError, match="read-only"):
        kept[:] = 8
    assert kept.tolist() == [7] * SIZE


def test_calls_that_move_nothing_end_no_right(anywhere: SyncedMemory) -> None:
    kept = anywhere.mutable_cpu_data()
    anywhere.cpu_data()
    anywhere.mutable_cpu_data()
    kept[:] = 8

    assert anywhere.gpu_data().get().tolist() == [8] * SIZE


def test_a_new_view_has_the_right_again(anywhere: SyncedMemory) -> None:
    kept = anywhere.mutable_cpu_data()
    anywhere.gpu_data()
    new = anywhere.mutable_cpu_data()
    new[:] = 9

    assert (False, True) == (kept.flags.writeable, new.flags.writeable)
    assert anywhere.gpu_data().get().tolist() == [9] * SIZE


@pytest.mark.parametrize("operation", ["allocate", "memcpy"])
def test_a_call_that_fails_ends_no_right(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    kept = memory.mutable_cpu_data()
    with monkeypatch.context() as patch:
        patch.setattr(device, operation, failing(RuntimeError, "dead"))
        with pytest.raises(SyncedMemoryError):
            memory.gpu_data()
    kept[:] = 8

    assert memory.gpu_data().get().tolist() == [8] * SIZE


def test_adopted_memory_stays_writeable_for_its_owner(memory: SyncedMemory) -> None:
    """Only the view loses its right, and not the array that was handed in."""
    mine = np.ones(SIZE, np.uint8)
    memory.set_cpu_data(mine)
    memory.gpu_data()
    kept = memory.mutable_cpu_data()
    memory.gpu_data()

    assert (False, True) == (kept.flags.writeable, mine.flags.writeable)


@pytest.mark.parametrize("part", ["data", "diff"])
def test_the_views_of_blobs_lose_their_right_too(device: SimulatedDeviceAllocator, part: str) -> None:
    blob = Blob((2, 3), device=device)
    kept = getattr(blob, f"mutable_cpu_{part}")()
    kept[:] = 1
    getattr(blob, f"gpu_{part}")()

    with pytest.raises(ValueError, match="read-only"):
        kept -= 0.5
    assert getattr(blob, f"cpu_{part}")().tolist() == [[1.0] * 3] * 2


def test_a_view_is_not_kept_alive(memory: SyncedMemory) -> None:
    """A memory that remembers it would otherwise keep what an adopted array is a part of."""
    watch = weakref.ref(memory.mutable_cpu_data())

    assert watch() is None
    memory.gpu_data()
