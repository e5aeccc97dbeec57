"""`SyncedMemory`: what a user of one sees."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from benches import SIZE, devices, filled

import syncedmem.runtime.performer as performer_module
from syncedmem.model import (
    Action,
    AllocationError,
    BufferMismatchError,
    ClosedMemoryError,
    InvalidArgumentError,
    InvalidSizeError,
    Mode,
    NoDeviceError,
    ReleaseError,
    SyncedHead,
    WrongDeviceError,
    using_mode,
)
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory, using_device
from syncedmem.runtime.allocator import MemcpyKind

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("allocator", devices(), ids=lambda allocator: str(allocator.device_type.name))
def test_bytes_make_the_round_trip_on_every_device(allocator: Any) -> None:
    """What is written on one side is read on the other."""
    with SyncedMemory(SIZE, device=allocator) as memory:
        memory.mutable_cpu_data()[:] = np.arange(SIZE, dtype=np.uint8)
        up = memory.gpu_data().get()
        memory.mutable_gpu_data().set(up[::-1].copy())
        down = memory.cpu_data()

        assert list(range(SIZE)) == up.tolist()
        assert list(reversed(range(SIZE))) == down.tolist()


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
    """Making it is lazy; touching it is one AllocationError that is a MemoryError, and leaves it as it was."""
    huge = SyncedMemory(1 << 60, device=None)

    with pytest.raises(AllocationError, match=str(1 << 60)) as caught:
        huge.cpu_data()

    assert isinstance(caught.value, MemoryError)
    assert huge.head is SyncedHead.UNINITIALIZED
    huge.close()


def test_zero_bytes_walk_the_heads_without_asking_anybody(device: SimulatedDeviceAllocator) -> None:
    """A memory of zero bytes moves its head and flags like any other, on no memory at all."""
    memory = SyncedMemory(0, device=device)
    shapes = (memory.cpu_data().shape, memory.gpu_data().shape, memory.mutable_gpu_data().shape)

    assert shapes == ((0,), (0,), (0,))
    assert (memory.head, memory.own_cpu_data, memory.own_gpu_data) == (SyncedHead.HEAD_AT_GPU, True, True)
    assert device.live_blocks == 0
    memory.set_cpu_data(bytearray())
    memory.async_gpu_push(stream=device.stream())
    memory.set_gpu_data(device.empty(0))
    memory.close()


# --- views


def test_read_views_are_read_only_for_good(memory: SyncedMemory) -> None:
    """A view of cpu_data() cannot be made writeable, and neither can what lies under it."""
    view = memory.cpu_data()

    assert not view.flags.writeable
    for array in (view, view.base, view[:4]):
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)


def test_every_view_is_an_object_of_its_own(memory: SyncedMemory) -> None:
    """A caller who reshapes one in place changes nobody else's."""
    filled(memory)
    mine = memory.cpu_data()
    setattr(mine, "shape", (6, 8))  # noqa: B010 -- what a careless caller does, and type checkers refuse

    assert memory.cpu_data().shape == (SIZE,)
    assert memory.mutable_cpu_data() is not memory.mutable_cpu_data()
    assert memory.gpu_data() is not memory.gpu_data()


def test_host_memory_is_aligned_to_a_cache_line() -> None:
    memory = SyncedMemory(SIZE, device=None)

    assert memory.cpu_data().__array_interface__["data"][0] % 64 == 0


def test_a_view_outlives_its_memory() -> None:
    """A late reader finds old bytes, not somebody else's."""
    memory = filled(SyncedMemory(SIZE, device=None))
    view = memory.cpu_data()
    memory.close()
    SyncedMemory(SIZE, device=None).mutable_cpu_data()[:] = 99

    assert view.tolist() == [7] * SIZE


# --- adoption


@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (None, "a buffer is needed"),
        (bytes(SIZE), "read-only"),
        (bytearray(SIZE - 1), f"it has {SIZE - 1} bytes, and {SIZE} are needed"),
        (np.zeros(2 * SIZE, np.uint8)[::2], "not contiguous"),
        (object(), "not host memory"),
        (np.array([None] * SIZE), "Python objects"),
    ],
    ids=["none", "read-only", "too small", "strided", "no buffer", "objects"],
)
def test_unsuitable_host_buffers_are_refused(memory: SyncedMemory, buffer: Any, reason: str) -> None:
    """The error says why, is a ValueError, and nothing has changed."""
    filled(memory)

    with pytest.raises(BufferMismatchError, match=reason) as caught:
        memory.set_cpu_data(buffer)

    assert isinstance(caught.value, ValueError)
    assert caught.value.buffer is buffer
    assert (memory.head, memory.own_cpu_data) == (SyncedHead.HEAD_AT_CPU, True)
    assert memory.cpu_data().tolist() == [7] * SIZE


def test_ones_own_buffer_is_refused_and_survives(memory: SyncedMemory) -> None:
    """Caffe frees it and keeps the pointer."""
    filled(memory)

    with pytest.raises(BufferMismatchError, match="own buffer"):
        memory.set_cpu_data(memory.mutable_cpu_data())

    assert memory.cpu_data().tolist() == [7] * SIZE


def test_the_same_external_buffer_may_be_adopted_again(memory: SyncedMemory) -> None:
    """It is not ours, so nothing would be freed."""
    buffer = bytearray(SIZE)
    memory.set_cpu_data(buffer)
    buffer[:] = bytes([5]) * SIZE
    memory.set_cpu_data(buffer)

    assert memory.gpu_data().get().tolist() == [5] * SIZE


def test_adopted_memory_is_the_callers_own(memory: SyncedMemory) -> None:
    """Copies down are written into it, and it is kept alive and never freed."""
    buffer = np.zeros(SIZE // 4, np.float32)
    memory.set_cpu_data(buffer)
    memory.mutable_gpu_data().view(np.float32).set(np.full(SIZE // 4, 1.5, np.float32))
    memory.cpu_data()
    memory.close()

    assert buffer.tolist() == [1.5] * (SIZE // 4)


def test_an_adopted_buffer_is_let_go_at_close(memory: SyncedMemory) -> None:
    """Kept alive as long as it is needed, and no longer."""

    class Buffer(bytearray):
        __slots__ = ("__weakref__",)

    buffer = Buffer(SIZE)
    watch = weakref.ref(buffer)
    memory.set_cpu_data(buffer)
    del buffer
    gc.collect()
    alive = watch() is not None
    memory.close()
    gc.collect()

    assert (alive, watch()) == (True, None)


@pytest.mark.parametrize("allocator", devices(), ids=lambda allocator: str(allocator.device_type.name))
def test_views_of_another_type_are_alike_on_every_device(allocator: Any) -> None:
    """What is got and set through them has their type; and one of them can be adopted."""
    numbers = np.arange(SIZE // 4, dtype=np.float32)
    with SyncedMemory(SIZE, device=allocator) as memory, SyncedMemory(SIZE - 4, device=allocator) as other:
        memory.mutable_gpu_data().view(np.float32).set(numbers)
        floats = memory.gpu_data().view(np.float32)
        other.set_gpu_data(memory.mutable_gpu_data().view(np.float32)[1:])

        assert (np.float32, numbers.shape, numbers.tolist()) == (floats.dtype, floats.shape, floats.get().tolist())
        assert numbers[1:].tolist() == other.cpu_data().view(np.float32).tolist()
        assert numbers.tolist() == memory.cpu_data().view(np.float32).tolist()
        with pytest.raises((ValueError, TypeError)):
            memory.gpu_data()[1:].view(np.float32)


@pytest.mark.parametrize("allocator", devices(), ids=lambda allocator: str(allocator.device_type.name))
def test_a_stream_is_waited_for_in_one_way_on_every_device(allocator: Any) -> None:
    """By way of an event, because not every kind of stream can be asked itself."""
    with SyncedMemory(SIZE, device=allocator) as memory:
        filled(memory)
        stream = allocator.stream()
        memory.async_gpu_push(stream=stream)
        event = allocator.record(stream)
        event.synchronize()

        assert (True, [7] * SIZE) == (event.done, memory.gpu_data().get().tolist())


def test_a_closed_memory_is_not_entered(memory: SyncedMemory) -> None:
    """It is refused at the door, not at the first call inside."""
    with memory as entered:
        assert entered is memory
    with pytest.raises(ClosedMemoryError, match="__enter__: this memory of 48 bytes is closed"), memory:
        pytest.fail("inside")


def test_device_memory_of_another_device_is_refused(memory: SyncedMemory) -> None:
    other = SimulatedDeviceAllocator(1)

    with pytest.raises(BufferMismatchError, match="another device"):
        memory.set_gpu_data(other.empty(SIZE))


# --- close


def test_every_call_after_close_is_refused(memory: SyncedMemory) -> None:
    """The error names the call and the size; what the memory was can still be read."""
    filled(memory).close()
    calls: dict[str, Callable[[], object]] = {
        "cpu_data": memory.cpu_data,
        "mutable_cpu_data": memory.mutable_cpu_data,
        "gpu_data": memory.gpu_data,
        "mutable_gpu_data": memory.mutable_gpu_data,
        "set_cpu_data": lambda: memory.set_cpu_data(bytearray(SIZE)),
        "set_gpu_data": lambda: memory.set_gpu_data(None),
        "async_gpu_push": lambda: memory.async_gpu_push(stream=None),
        "head": lambda: memory.head,
        "own_cpu_data": lambda: memory.own_cpu_data,
        "own_gpu_data": lambda: memory.own_gpu_data,
        "cpu_malloc_use_cuda": lambda: memory.cpu_malloc_use_cuda,
    }

    for name, call in calls.items():
        with pytest.raises(ClosedMemoryError, match=f"^{name}: this memory of {SIZE} bytes is closed"):
            call()
    assert (memory.closed, memory.size) == (True, SIZE)
    assert repr(memory) == f"<SyncedMemory {SIZE} bytes, closed>"


def test_close_twice_is_harmless(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    filled(memory).gpu_data()
    memory.close()
    memory.close()

    assert device.live_blocks == 0


def test_a_close_that_frees_nothing_changes_nothing(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    """The first free fails: the memory is as it was, and closes later."""
    memory.mutable_gpu_data()
    device.fail_at(1, "release")

    with pytest.raises(ReleaseError, match="told to fail"):
        memory.close()

    assert (memory.closed, memory.head) == (False, SyncedHead.HEAD_AT_GPU)
    memory.close()
    assert device.live_blocks == 0


def test_a_close_that_frees_half_is_finished_by_the_next(
    memory: SyncedMemory, device: SimulatedDeviceAllocator
) -> None:
    """The host side is gone, so the memory is closed; the device side is ours until it is freed."""
    filled(memory).gpu_data()
    device.fail_at(1, "release")

    with pytest.raises(ReleaseError):
        memory.close()

    assert (memory.closed, device.live_blocks, device.pinned_host().live_blocks) == (True, 1, 0)
    memory.close()
    assert device.live_blocks == 0


def test_the_finaliser_frees_at_once_without_the_collector(device: SimulatedDeviceAllocator) -> None:
    """There is no reference cycle: the last reference is enough."""
    gc.disable()
    try:
        memory = filled(SyncedMemory(SIZE, device=device))
        memory.gpu_data()
        del memory

        assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 0)
    finally:
        gc.enable()


def test_a_finaliser_that_fails_warns(device: SimulatedDeviceAllocator) -> None:
    """It leaks rather than raise, and says so."""
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


def test_a_memory_is_initialised_once(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    """A second __init__ would forget what is allocated."""
    filled(memory).gpu_data()

    with pytest.raises(TypeError, match="initialised once"):
        memory.__init__(SIZE, device=device)  # type: ignore[misc] # the point of the test

    memory.close()
    assert device.live_blocks == 0


def test_nothing_is_leaked_at_interpreter_exit() -> None:
    """Memories in globals and in cycles are released before the interpreter goes, and quietly."""
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


# --- devices


def test_without_a_device_its_calls_are_refused() -> None:
    memory = SyncedMemory(SIZE, device=None)
    buffer = bytearray(SIZE)

    for call in (
        memory.gpu_data,
        memory.mutable_gpu_data,
        lambda: memory.set_gpu_data(buffer),
        lambda: memory.set_gpu_data(None),
        lambda: memory.async_gpu_push(stream=None),
    ):
        with pytest.raises(NoDeviceError, match="device=None"):
            call()
    assert (memory.device, memory.head) == (None, SyncedHead.UNINITIALIZED)


def test_work_happens_on_the_memorys_own_device() -> None:
    """Whatever device is current, and it stays current, also after an error."""
    memory = filled(SyncedMemory(SIZE, device=SimulatedDeviceAllocator(2, capacity=SIZE)))
    with using_device(1):
        shown = memory.gpu_data().get().tolist()
        with pytest.raises(AllocationError):
            SyncedMemory(SIZE, device=memory.device).gpu_data()
        current = memory.device.current_ordinal()  # type: ignore[union-attr] # it has a device

    assert (shown, current) == ([7] * SIZE, 1)


def test_the_device_check_refuses_every_call_while_another_device_is_current() -> None:
    """Also close(); the finaliser frees anyway, on the memory's own device."""
    device = SimulatedDeviceAllocator()
    memory = SyncedMemory(SIZE, device=device, check_device=True)
    filled(memory).gpu_data()
    with using_device(3):
        for call in (memory.cpu_data, memory.mutable_cpu_data, memory.gpu_data, memory.close):
            with pytest.raises(WrongDeviceError, match="lives on device 0, but device 3 is current"):
                call()
        del memory, call

        assert device.live_blocks == 0


@pytest.mark.parametrize("bad", [3, object(), SimulatedDeviceAllocator, b"cuda"])
def test_what_is_no_device_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="device must be an allocator, a device name, or None"):
        SyncedMemory(SIZE, device=bad)


def test_what_is_no_host_allocator_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="host must be an allocator, or None"):
        SyncedMemory(SIZE, host="cpu", device=None)  # type: ignore[arg-type] # the point of the test


def test_the_mode_decides_about_pinned_memory_once(device: SimulatedDeviceAllocator) -> None:
    """Pinned in GPU mode, pageable in CPU mode, and freed as it was allocated."""
    with using_mode(Mode.GPU):
        pinned = filled(SyncedMemory(SIZE, device=device))
    with using_mode(Mode.CPU):
        pageable = filled(SyncedMemory(SIZE, device=device))
        flags = (pinned.cpu_malloc_use_cuda, pageable.cpu_malloc_use_cuda)
        live = device.pinned_host().live_blocks
        pinned.close()

    assert (flags, live, device.pinned_host().live_blocks) == ((True, False), 1, 0)
    pageable.close()


# --- what it is


def test_repr_shows_head_sides_and_device(memory: SyncedMemory) -> None:
    filled(memory).set_gpu_data(memory.device.empty(SIZE))  # type: ignore[union-attr] # it has a device

    assert repr(memory) == "<SyncedMemory 48 bytes, HEAD_AT_GPU, host owned pinned, simulated:0 external>"
    assert repr(SyncedMemory(0, device=None)) == "<SyncedMemory 0 bytes, UNINITIALIZED, host none, no device>"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_is_refused(memory: SyncedMemory, duplicate: Any) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(memory)


def test_calls_of_two_threads_are_serialised() -> None:
    """Two threads that go up and down a hundred times lose no byte and leak no block."""
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


def test_only_one_of_many_threads_frees() -> None:
    """close() from many threads at once frees once."""
    device = SimulatedDeviceAllocator()
    memory = filled(SyncedMemory(SIZE, device=device))
    memory.gpu_data()
    threads = [threading.Thread(target=memory.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (memory.closed, device.live_blocks) == (True, 0)


def test_binding_tables_are_complete_or_refused() -> None:
    """An action without a function is found when the table is built."""
    from syncedmem.model import Action, DeclarationError
    from syncedmem.runtime.bindings import BINDINGS, _complete  # pyright: ignore[reportPrivateUsage] -- the check itself

    incomplete: dict[Action, Any] = {
        action: perform for action, perform in BINDINGS.items() if action != Action.COPY_TO_GPU
    }

    assert set(BINDINGS) == set(Action)
    with pytest.raises(DeclarationError, match=r"no implementation for: copy_to_gpu$"):
        _complete(incomplete)


def test_the_hot_path_makes_no_lookup(memory: SyncedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with nothing to do does not even reach the table."""
    filled(memory)

    def fail(*_: object) -> None:
        raise AssertionError("the slow path was taken")

    monkeypatch.setattr(performer_module.Performer, "_access", fail)

    assert memory.cpu_data().tolist() == [7] * SIZE
    assert memory.mutable_cpu_data().tolist() == [7] * SIZE
    with pytest.raises(AssertionError, match="slow path"):
        memory.gpu_data()


def test_kinds_of_copies_have_the_seeds_numbers() -> None:
    """KuiperLLama's numbers, which are also cudaMemcpyKind's."""
    assert [kind.value for kind in MemcpyKind] == [0, 1, 2, 3]
    assert [kind.name for kind in MemcpyKind] == ["CPU2CPU", "CPU2CUDA", "CUDA2CPU", "CUDA2CUDA"]
