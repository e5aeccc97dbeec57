"""`SyncedMemory`: what a user of one sees: sizes, views, and what it is."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from subjects import SIZE, filled

import syncedmem.runtime.memory.synced_memory as memory_module
from syncedmem.model import (
    AllocationError,
    DeclarationError,
    InvalidArgumentError,
    InvalidSizeError,
    Mode,
    SyncedHead,
    caffe,
    using_mode,
)
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory

# --- sizes


@pytest.mark.parametrize("size", [-1, -(2**70), 2**63, 2**70])
def test_impossible_sizes_are_refused(size: int) -> None:
    """The error shows the size and is a ValueError."""
    with pytest.raises(InvalidSizeError, match=str(size)) as caught:
        SyncedMemory(size, device=None)

    assert isinstance(caught.value, ValueError)
    assert caught.value.size == size


@pytest.mark.parametrize("size", [1.5, "16", None, b"4", [4], True, np.float64(4)])
def test_sizes_of_another_type_are_refused(size: Any) -> None:
    """The error shows the value and is a TypeError."""
    with pytest.raises(InvalidArgumentError, match="size must be an integer number of bytes") as caught:
        SyncedMemory(size, device=None)

    assert isinstance(caught.value, TypeError)
    assert caught.value.value is size


def test_numpy_integers_are_sizes() -> None:
    assert SyncedMemory(np.int64(12), device=None).size == 12  # type: ignore[arg-type] # an integer to Python, not to mypy


def test_a_size_beyond_memory_fails_when_it_is_needed_and_not_before() -> None:
    """Making such a memory allocates nothing; using it raises an AllocationError, and leaves it unchanged."""
    huge = SyncedMemory(1 << 60, device=None)

    with pytest.raises(AllocationError, match=str(1 << 60)) as caught:
        huge.cpu_data()

    assert isinstance(caught.value, MemoryError)
    assert huge.head is SyncedHead.UNINITIALIZED
    huge.close()


def test_a_memory_of_zero_bytes_has_heads_and_views_and_allocates_nothing(device: SimulatedDeviceAllocator) -> None:
    memory = SyncedMemory(0, device=device)

    assert (0, SyncedHead.HEAD_AT_CPU) == (memory.mutable_cpu_data().nbytes, memory.head)
    assert (0, SyncedHead.SYNCED) == (memory.gpu_data().get().nbytes, memory.head)
    assert (0, SyncedHead.HEAD_AT_GPU) == (memory.mutable_gpu_data().get().nbytes, memory.head)
    assert (0, SyncedHead.SYNCED) == (memory.cpu_data().nbytes, memory.head)
    memory.mutable_cpu_data()
    memory.async_gpu_push(stream=device.stream())
    assert memory.head is SyncedHead.SYNCED
    assert (0, 0) == (device.live_blocks, device.pinned_host().live_blocks)
    memory.close()


# --- bytes


def test_new_memory_is_zero(device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an allocator leaves in it; this device refuses to read what nobody has written."""
    pinned = device.pinned_host()
    allocate = pinned.allocate

    def dirty(byte_size: int) -> Any:
        ptr: Any = allocate(byte_size)
        ptr[:] = 255
        return ptr

    monkeypatch.setattr(pinned, "allocate", dirty)

    assert [0] * SIZE == SyncedMemory(SIZE, device=device).cpu_data().tolist()
    assert [0] * SIZE == SyncedMemory(SIZE, device=device).gpu_data().get().tolist()


@pytest.mark.parametrize("mode", Mode)
def test_host_memory_is_page_locked_in_gpu_mode_alone(device: SimulatedDeviceAllocator, mode: Mode) -> None:
    memory = SyncedMemory(SIZE, device=device)
    with using_mode(mode):
        memory.cpu_data()

    assert (mode is Mode.GPU) == device.pinned_host().live_blocks


# --- views


def test_read_views_are_read_only_for_good(memory: SyncedMemory) -> None:
    """Neither a view of cpu_data() nor the array under it can be made writeable."""
    view = memory.cpu_data()

    assert not view.flags.writeable
    for array in (view, view.base, view[:4]):
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)


def test_a_view_outlives_its_memory() -> None:
    """A late reader finds old bytes, not somebody else's."""
    memory = filled(SyncedMemory(SIZE, device=None))
    view = memory.cpu_data()
    memory.close()
    SyncedMemory(SIZE, device=None).mutable_cpu_data()[:] = 99

    assert view.tolist() == [7] * SIZE


# --- what it is


def test_the_size_is_known_as_arrays_know_it(memory: SyncedMemory) -> None:
    assert (SIZE, SIZE) == (memory.size, memory.nbytes)
    assert {SIZE} == {it.nbytes for it in (memory.cpu_data(), memory.mutable_cpu_data(), memory.gpu_data())}


def test_repr_shows_head_sides_and_device(memory: SyncedMemory) -> None:
    filled(memory).set_gpu_data(memory.device.empty(SIZE))  # type: ignore[union-attr] # it has a device

    assert repr(memory) == "<SyncedMemory 48 bytes, HEAD_AT_GPU, host owned pinned, simulated:0 external>"
    assert repr(SyncedMemory(0, device=None)) == "<SyncedMemory 0 bytes, UNINITIALIZED, host none, no device>"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_is_refused(memory: SyncedMemory, duplicate: Any) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(memory)


def test_calls_of_two_threads_are_serialised() -> None:
    """Two threads that copy in both directions a hundred times lose no byte and leak no block."""
    device = SimulatedDeviceAllocator()
    memory = filled(SyncedMemory(SIZE, device=device))
    errors: list[Exception] = []

    def work(call: Any) -> None:
        try:
            for _ in range(100):
                call()
        except Exception as error:  # noqa: BLE001 -- handed to the test's own thread
            errors.append(error)

    calls = (memory.mutable_gpu_data, memory.mutable_cpu_data, memory.cpu_data, memory.gpu_data)
    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (errors, memory.cpu_data().tolist()) == ([], [7] * SIZE)
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

    def fail(*_: object) -> None:
        raise AssertionError("the slow path was taken")

    monkeypatch.setattr(memory_module.SyncedMemory, "_access", fail)

    assert memory.cpu_data().tolist() == [7] * SIZE
    assert memory.mutable_cpu_data().tolist() == [7] * SIZE
    with pytest.raises(AssertionError, match="slow path"):
        memory.gpu_data()
