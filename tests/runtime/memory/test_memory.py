"""`SyncedMemory`: what a user of one sees: sizes, views, and what it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, failing, filled
from threads import run_in_threads

import syncedmem.runtime.memory.synced_memory as memory_module
from syncedmem.model import (
    DeclarationError,
    InvalidArgumentError,
    InvalidSizeError,
    caffe,
)
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable

# --- sizes


@pytest.mark.parametrize("size", [-1, -(2**70), 2**63, 2**70, 1.5, "16", None, b"4", [4], True, np.float64(4)])
def test_what_is_no_size_is_refused(size: Any) -> None:
    """The error has the value, and is the built-in error that a caller would catch."""
    number = type(size) is int
    error: Any = InvalidSizeError if number else InvalidArgumentError
    with pytest.raises(error, match=str(size) if number else "size must be an integer number of bytes") as caught:
        SyncedMemory(size, device=None)

    found: Any = caught.value
    assert (number, not number) == (isinstance(found, ValueError), isinstance(found, TypeError))
    assert size is (found.size if number else found.value)


def test_a_size_of_numpy_is_one_and_is_known_as_arrays_know_it() -> None:
    memory: Any = SyncedMemory(np.int64(12), device=None)  # type: ignore[arg-type] # an integer to Python, not to mypy
    assert (12, 12, int) == (memory.size, memory.nbytes, type(memory.size))


# --- views


def test_a_view_outlives_its_memory() -> None:
    """A late reader finds old bytes, not somebody else's."""
    memory = filled(SyncedMemory(SIZE, device=None))
    view = memory.cpu_data()
    memory.close()
    SyncedMemory(SIZE, device=None).mutable_cpu_data()[:] = 99

    assert view.tolist() == [7] * SIZE


# --- what it is


def test_repr_shows_head_sides_and_device(memory: SyncedMemory) -> None:
    filled(memory).set_gpu_data(memory.device.empty(SIZE))  # type: ignore[union-attr] # it has a device

    assert repr(memory) == "<SyncedMemory 48 bytes, HEAD_AT_GPU, host owned pinned, simulated:0 external>"
    assert repr(SyncedMemory(0, device=None)) == "<SyncedMemory 0 bytes, UNINITIALIZED, host none, no device>"


def test_calls_of_two_threads_are_serialised() -> None:
    """Two threads that copy in both directions a hundred times lose no byte and leak no block."""
    device = SimulatedDeviceAllocator()
    memory = filled(SyncedMemory(SIZE, device=device))
    calls: list[Callable[[], object]] = [
        memory.mutable_gpu_data,
        memory.mutable_cpu_data,
        memory.cpu_data,
        memory.gpu_data,
    ]

    def repeat(call: Callable[[], object]) -> None:
        for _ in range(100):
            call()

    run_in_threads(*(partial(repeat, call) for call in calls))

    assert memory.cpu_data().tolist() == [7] * SIZE
    memory.close()
    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)


def test_binding_tables_are_complete_or_refused() -> None:
    """An action without a function is found when the table is built."""
    from syncedmem.runtime.memory.bindings import BINDINGS, _complete  # pyright: ignore[reportPrivateUsage] -- the check itself

    left_out = (caffe.COPY_TO_GPU.name, caffe.FREE_GPU.name)
    incomplete: dict[str, Any] = {it: perform for it, perform in BINDINGS.items() if it not in left_out}

    assert set(BINDINGS) == set(caffe.EVERYTHING.actions)
    with pytest.raises(DeclarationError, match=r"no implementation for: copy_to_gpu, free_gpu$"):
        _complete(incomplete)


def test_the_hot_path_makes_no_lookup(memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with nothing to do does not even reach the table."""
    filled(memory)

    monkeypatch.setattr(memory_module.SyncedMemory, "_access", failing(AssertionError, "the slow path was taken"))

    assert memory.cpu_data().tolist() == [7] * SIZE
    assert memory.mutable_cpu_data().tolist() == [7] * SIZE
    with pytest.raises(AssertionError, match="slow path"):
        memory.gpu_data()
