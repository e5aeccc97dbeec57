"""`SyncedMemory`: closing it, its finaliser, and what is freed by whom."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings

import pytest
from subjects import SIZE, filled
from threads import run_in_threads

from syncedmem.model import ClosedMemoryError, InvalidSizeError, ReleaseError
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory


def test_a_closed_memory_is_not_entered(memory: SyncedMemory) -> None:
    """It is refused at the start of the with block, not at the first call inside."""
    with memory as entered:
        assert entered is memory
    with pytest.raises(ClosedMemoryError, match="with: this memory of 48 bytes is closed"), memory:
        pytest.fail("inside")


def test_a_close_that_frees_half_is_finished_by_the_next(
    memory: SyncedMemory, device: SimulatedDeviceAllocator
) -> None:
    """The host side is freed, so the memory is closed; it owns the device side until that is freed."""
    filled(memory).gpu_data()
    device.fail_at(1, "release")

    with pytest.raises(ReleaseError):
        memory.close()

    assert (memory.closed, device.live_blocks, device.pinned_host().live_blocks) == (True, 1, 0)
    memory.close()
    assert device.live_blocks == 0


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


def test_a_finaliser_that_fails_warns(device: SimulatedDeviceAllocator) -> None:
    """It leaks memory and warns; it does not raise."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_gpu_data()
    device.fail_at(1, "release")

    with pytest.warns(ResourceWarning, match=f"{SIZE} bytes of a SyncedMemory leaked"):
        del memory
        gc.collect()


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


def test_only_one_of_many_threads_frees() -> None:
    """If many threads call close() at once, the memory is freed once."""
    device = SimulatedDeviceAllocator()
    memory = filled(SyncedMemory(SIZE, device=device))
    memory.gpu_data()
    run_in_threads(*[memory.close] * 8)

    assert (memory.closed, device.live_blocks) == (True, 0)
