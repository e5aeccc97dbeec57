"""`SyncedMemory`: what a user of one sees: sizes, views, and what it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, failing, filled
from threads import run_in_threads

import syncedmem.runtime.memory.synced_memory as memory_module
from syncedmem.model import DeclarationError
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_size_of_numpy_is_one_and_is_known_as_arrays_know_it() -> None:
    memory: Any = SyncedMemory(np.int64(12), device=None)  # type: ignore[arg-type] # an integer to Python, not to mypy
    assert (12, 12, int) == (memory.size, memory.nbytes, type(memory.size))


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

    with pytest.raises(DeclarationError, match=r"no implementation for: free_gpu$"):
        _complete({it: perform for it, perform in BINDINGS.items() if it != "free_gpu"})


def test_the_hot_path_makes_no_lookup(memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with nothing to do does not even reach the table."""
    filled(memory)

    monkeypatch.setattr(memory_module.SyncedMemory, "_access", failing(AssertionError, "the slow path was taken"))

    assert memory.cpu_data().tolist() == [7] * SIZE
    assert memory.mutable_cpu_data().tolist() == [7] * SIZE
    with pytest.raises(AssertionError, match="slow path"):
        memory.gpu_data()
