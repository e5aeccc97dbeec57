"""`SyncedMemory`: what a user of one sees, how it is closed, and allocators that call it back."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from subjects import SIZE, failing, filled
from threads import run_in_threads

import syncedmem.runtime.memory.synced_memory as memory_module
from syncedmem.model import (
    ClosedMemoryError,
    DeclarationError,
    InvalidSizeError,
    ReentrantCallError,
    SyncedMemoryError,
)
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.memory.tables import TABLES, Cell, MemoryTable

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_size_of_numpy_is_one_and_is_known_as_arrays_know_it() -> None:
    memory: Any = SyncedMemory(np.int64(12), device=None)  # type: ignore[arg-type] # an integer to Python, not to mypy
    assert (12, 12, int) == (memory.size, memory.nbytes, type(memory.size))


def test_calls_of_two_threads_are_serialised() -> None:
    """Threads that copy in both directions a hundred times lose no byte and leak no block; of many, one closes."""
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
    run_in_threads(*[memory.close] * 8)
    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)


def test_binding_tables_are_complete_or_refused() -> None:
    """An action without a function is found when the table is built."""
    from syncedmem.runtime.memory.sides import ACTIONS, _complete  # pyright: ignore[reportPrivateUsage] -- the check itself

    with pytest.raises(DeclarationError, match=r"no implementation for: free_gpu$"):
        _complete({action: perform for action, perform in ACTIONS.items() if action != "free_gpu"})


def test_the_hot_path_makes_no_lookup(device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with nothing to do does not even reach the table, unless its memory is checked."""
    memory = filled(SyncedMemory(SIZE, device=device, checked=False))

    monkeypatch.setattr(memory_module.SyncedMemory, "_access", failing(AssertionError, "the slow path was taken"))

    assert memory.cpu_data().tolist() == [7] * SIZE
    assert memory.mutable_cpu_data().tolist() == [7] * SIZE
    with pytest.raises(AssertionError, match="slow path"):
        memory.gpu_data()


# --- closing


def test_a_closed_memory_is_not_entered(memory: SyncedMemory) -> None:
    """It is refused at the start of the with block, not at the first call inside."""
    with memory as entered:
        assert entered is memory
    with pytest.raises(ClosedMemoryError, match="with: this memory of 48 bytes is closed"), memory:
        pytest.fail("inside")


def test_the_finaliser_frees_at_once_without_the_collector(device: SimulatedDeviceAllocator) -> None:
    """There is no reference cycle, so dropping the last reference is enough."""
    gc.disable()
    try:
        memory = filled(SyncedMemory(SIZE, device=device))
        memory.gpu_data()
        del memory

        assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)
    finally:
        gc.enable()


def test_a_memory_that_was_never_made_is_finalised_quietly() -> None:
    """Neither a refused size nor a bare __new__ leaves anything to warn about."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidSizeError):
            SyncedMemory(-1)
        SyncedMemory.__new__(SyncedMemory)
        gc.collect()


@pytest.mark.deep
def test_nothing_is_leaked_at_interpreter_exit() -> None:
    """Memories in globals and in cycles are released before the interpreter exits, without a message."""
    program = """
import atexit
from syncedmem import SimulatedDeviceAllocator, SyncedMemory
device = SimulatedDeviceAllocator()
release = device.release
device.release = lambda ptr: (print("freed", len(ptr), flush=True), release(ptr))
kept = SyncedMemory(11, device=device)
kept.gpu_data()
cycle = [SyncedMemory(22, device=device)]
cycle[0].gpu_data()
cycle.append(cycle)
del cycle
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)

    assert (sorted(done.stdout.split("\n")), done.stderr) == (["", "freed 11", "freed 22"], "")


# --- tables


def accessor_cells(table: MemoryTable) -> list[Cell]:
    """What the accessors do in the states in which a memory can be."""
    columns: Any = table.accessors  # None where no calls lead
    return [cell for column in columns for cell in column if cell is not None]


def test_only_copies_take_the_shorter_way() -> None:
    """A memory without a device has none."""
    short = [{cell.actions for cell in accessor_cells(table) if cell.is_short} for table in TABLES.values()]
    assert [{(), ("copy_to_cpu",), ("copy_to_gpu",)}, {()}] == short


@pytest.mark.parametrize("has_device", [False, True])
def test_the_mode_changes_only_what_is_allocated(has_device: bool) -> None:
    """The shorter way does not ask for it."""
    cells = [cell for cell in accessor_cells(TABLES[has_device]) if cell.is_short]

    assert cells
    assert all(len({*cell.next}) == 1 for cell in cells)


# --- allocators that call back


@pytest.mark.parametrize("name", ["allocate", "memcpy", "viewer", "release", "adopt", "check_stream"])
def test_an_allocator_that_calls_back_is_refused(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A call inside a call would find a state between before and after; the outer call fails as a whole."""
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
        "check_stream": lambda: memory.async_gpu_push(stream=cast("Any", None)),
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
    """A memory in its finaliser returns no views any more; its blocks are freed after the allocator's call."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_gpu_data()
    known, release, found = weakref.ref(memory), device.release, list[object]()

    def call_back(ptr: Any) -> None:
        found.append(known())
        release(ptr)

    monkeypatch.setattr(device, "release", call_back)
    del memory

    assert (found, device.live_blocks) == ([None], 0)
