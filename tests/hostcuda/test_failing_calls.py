"""Every CUDA call fails once, at every place that makes one: nothing changes, and nothing is lost.

A case is made again for k = 1, 2, ... until it makes fewer than k calls.  The k-th call fails.  There are two correct
results.  Our call raises, changes nothing, and succeeds when it is made again.  Or our call does not raise, because the
failure does not matter, and does its work.  At the end, all memory, streams and events are given back.
"""

from __future__ import annotations

import gc
import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hostcuda_control import FREES, NO_MEMORY, UNKNOWN, hostcuda

from syncedmem.model import AllocationError, Mode, SyncedMemoryError, using_mode
from syncedmem.runtime import Blob, Buffer, CPUDeviceAllocator, SyncedMemory
from syncedmem.runtime.devices.cuda import CUDADeviceAllocator, cupy
from syncedmem.runtime.memory.flight import Flight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZE = 4096
MINE, HOSTS, DEVICES = 7, 3, 5
"""The values of the bytes that a case writes, and of the host and device arrays that are adopted."""

pytestmark = pytest.mark.parametrize("pool", [False, True], ids=["malloc", "pool"])


@dataclass
class Case:
    """An object, and a call on it.

    Attributes
    ----------
    subject : object
    act : callable
        The call.
    seen : callable
        Returns the state, which a call that raises must not change.
    check : callable
        Asserts that the call has done its work.
    queues : str
        The CUDA call that queues work which cannot be undone.  If a later CUDA call fails, the work may still be done.
    """

    subject: Any
    act: Callable[[], object]
    seen: Callable[[], object]
    check: Callable[[], None]
    queues: str = ""


def live() -> dict[str, int]:
    """Return the number of live objects of each kind, after CuPy's pools gave back their unused memory."""
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
    return hostcuda.everything()


def attempt(make: Callable[[], Case], k: int, error: int) -> tuple[list[str], type[Exception] | None]:
    """Make a call whose k-th CUDA call fails; return the CUDA calls, and the error that was raised."""
    case = make()
    before = case.seen()
    raised: type[Exception] | None = None
    with hostcuda.recorded() as names, hostcuda.failing(k, error):
        try:
            case.act()
        except SyncedMemoryError as problem:
            raised = type(problem)
    cupy.cuda.runtime.setDevice(0)  # the failed call may be the one that restores the device
    if raised is not None and not (case.queues in names[: k - 1] and before != case.seen()):
        assert before == case.seen(), f"{names[k - 1]}, call {k}, failed"
        case.act()
    case.check()
    return names, raised


def check_every_call(make: Callable[[], Case], error: int = UNKNOWN) -> dict[str, type[Exception] | None]:
    """Let each CUDA call fail; return the error (or None) for the last call of each name."""
    outcomes: dict[str, type[Exception] | None] = {}
    attempt(make, 0, error)  # so that objects which are made only once exist
    for k in itertools.count(1):
        before = live()
        names, raised = attempt(make, k, error)
        lost = {kind: count - before[kind] for kind, count in live().items() if count != before[kind]}
        if len(names) < k:
            assert (None, {}) == (raised, lost)
            return outcomes
        name = names[k - 1]
        # If a destructor cannot free something, it is lost, and no caller gets the error.
        assert not lost or (name in FREES and [1] == list(lost.values())), f"{name}, call {k}, failed: lost {lost}"
        outcomes[name] = raised
    raise AssertionError("there is an end to every call")


@pytest.fixture(autouse=True)
def _quiet_and_quick(printed: list[BaseException | None]) -> Iterator[None]:
    """Errors of destructors are only printed, so they are collected here. The collector ignores older objects."""
    del printed
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


# --- a memory


WORDS: dict[str, tuple[str, ...]] = {
    "fresh": (),
    "host": ("mutable_cpu_data",),
    "device": ("mutable_gpu_data",),
    "synced": ("mutable_cpu_data", "gpu_data"),
    "host, both sides": ("mutable_cpu_data", "gpu_data", "mutable_cpu_data"),
    "device, both sides": ("mutable_cpu_data", "mutable_gpu_data"),
    "pushed": ("mutable_cpu_data", "async_gpu_push"),
    "adopted": ("set_cpu_data", "set_gpu_data"),
}
"""The calls that lead to the state in which a call is tried."""

CALLS = (
    "cpu_data",
    "gpu_data",
    "mutable_cpu_data",
    "mutable_gpu_data",
    "set_cpu_data",
    "set_gpu_data",
    "async_gpu_push",
    "close",
)


class Subject:
    """A memory, arrays that it can adopt, and the value that it has to hold."""

    def __init__(self, device: Any) -> None:
        self.memory = SyncedMemory(SIZE, device=device)
        self.host = np.full(SIZE, HOSTS, np.uint8)
        self.device = device.empty(SIZE)
        self.device.set(np.full(SIZE, DEVICES, np.uint8))
        self.stream = device.stream()
        self.holds = 0

    def call(self, name: str) -> object:
        """Make one call, without writing."""
        if name == "set_cpu_data":
            result: object = self.memory.set_cpu_data(self.host)  # type: ignore[func-returns-value]
            self.holds = HOSTS
        elif name == "set_gpu_data":
            result = self.memory.set_gpu_data(self.device)  # type: ignore[func-returns-value]
            self.holds = DEVICES
        elif name == "async_gpu_push":
            result = self.memory.async_gpu_push(stream=self.stream)  # type: ignore[func-returns-value]
        else:
            result = getattr(self.memory, name)()
        return result

    def walk(self, word: tuple[str, ...]) -> None:
        for name in word:
            view: Any = self.call(name)
            if name == "mutable_cpu_data":
                view[:] = self.holds = MINE
            elif name == "mutable_gpu_data":
                view.set(np.full(SIZE, MINE + 1, np.uint8))
                self.holds = MINE + 1

    def seen(self) -> object:
        memory = self.memory
        return memory.head, memory.own_cpu_data, memory.cpu_malloc_use_cuda, memory.own_gpu_data, memory.closed

    def check(self) -> None:
        if self.memory.closed:
            return
        with self.memory as memory:
            assert {self.holds} == set(memory.gpu_data().get().tolist())
            assert {self.holds} == set(memory.cpu_data().tolist())


def memory_case(device: Any, word: str, call: str) -> Case:
    subject = Subject(device)
    subject.walk(WORDS[word])

    def check() -> None:
        assert (call == "close") is subject.memory.closed
        subject.check()

    return Case(subject, lambda: subject.call(call), subject.seen, check)


LEGAL = [(call, word) for call in CALLS for word in WORDS if call != "async_gpu_push" or word.startswith("host")]
"""A push is legal if only the host side is fresh."""


@pytest.mark.parametrize("ordinal", [0, 1])
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("call", "word"), LEGAL)
def test_a_memory_is_as_it_was_whichever_call_fails(call: str, word: str, mode: Mode, ordinal: int, pool: bool) -> None:
    """The host memory is page-locked or pageable. The device is the current one or another one."""
    device = CUDADeviceAllocator(ordinal, pool=pool)
    with using_mode(mode):
        check_every_call(lambda: memory_case(device, word, call))

    assert (0, 0) == (device.live_blocks, device.pinned_host().live_blocks)


def test_every_kind_of_call_was_made_to_fail(pool: bool) -> None:
    """A failed CUDA call raises an error of the right type, unless a destructor makes the call."""
    device = CUDADeviceAllocator(1, pool=pool)
    outcomes: dict[str, type[Exception] | None] = {}
    with using_mode(Mode.GPU):
        for call, word in LEGAL:
            outcomes |= check_every_call(lambda call=call, word=word: memory_case(device, word, call), NO_MEMORY)  # type: ignore[misc]

    told = {name for name, error in outcomes.items() if error is not None}
    assert {"cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamSynchronize"} <= told
    assert {"cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventDestroy"} <= set(outcomes)
    assert {"cudaGetDevice", "cudaSetDevice", "cudaEventQuery"} <= set(outcomes)
    if not pool:
        assert (AllocationError, AllocationError) == (outcomes["cudaMalloc"], outcomes["cudaHostAlloc"])
        assert {"cudaFree", "cudaFreeHost"} <= set(outcomes)


@pytest.mark.parametrize("call", ["gpu_data", "mutable_gpu_data"])
def test_a_push_in_flight_comes_first_whichever_call_fails(
    call: str, pool: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate holds the push until the call is made. If the call cannot be ordered after the push, it waits itself."""
    device = CUDADeviceAllocator(1, pool=pool)
    wait, gates = Flight.wait, list[threading.Event]()

    def open_and_wait(push: Flight) -> None:
        gates[-1].set()
        wait(push)

    monkeypatch.setattr(Flight, "wait", open_and_wait)

    def make() -> Case:
        subject, gate = Subject(device), threading.Event()
        gates.append(gate)
        subject.walk(("gpu_data", "mutable_cpu_data"))
        subject.stream.launch_host_func(gate.wait, 30)
        subject.call("async_gpu_push")

        def check() -> None:
            gate.set()
            subject.check()

        return Case(subject, lambda: subject.call(call), subject.seen, check)

    with using_mode(Mode.GPU):
        outcomes = check_every_call(make)
    assert outcomes["cudaStreamWaitEvent"] is not None


# --- a buffer


def buffer_of(device: Any, value: int) -> Buffer:
    """Return a buffer that holds one value; without a device, it is in host memory."""
    buffer = Buffer(SIZE, device if device is not None else CPUDeviceAllocator())
    ptr: Any = buffer.ptr
    if device is None:
        ptr[:] = value
    else:
        ptr.set(np.full(SIZE, value, np.uint8))
    return buffer


def bytes_of(buffer: Buffer) -> set[int]:
    array: Any = buffer.ptr
    return set((array.get() if isinstance(array, cupy.ndarray) else array).tolist())


def copying_case(source_device: Any, device: Any, queued: bool) -> Case:
    source, dest = buffer_of(source_device, MINE), buffer_of(device, 0)
    place = device or source_device
    stream = place.stream() if queued else None

    def check() -> None:
        cupy.cuda.runtime.deviceSynchronize()
        if stream is not None:
            stream.synchronize()
        assert ({MINE}, {MINE}) == (bytes_of(source), bytes_of(dest))
        source.close()
        dest.close()

    return Case(source, lambda: dest.copy_from(source, stream=stream), lambda: (id(source.ptr), id(dest.ptr)), check)


ENDS = {"up": (None, 0), "down": (0, None), "across": (0, 0), "between two devices": (0, 1), "on the other": (1, 1)}


@pytest.mark.parametrize("queued", [False, True], ids=["at once", "queued"])
@pytest.mark.parametrize("ends", ENDS)
def test_a_buffer_copies_whichever_call_fails(ends: str, queued: bool, pool: bool) -> None:
    devices = [CUDADeviceAllocator(ordinal, pool=pool) for ordinal in (0, 1)]
    source, dest = (None if ordinal is None else devices[ordinal] for ordinal in ENDS[ends])

    outcomes = check_every_call(lambda: copying_case(source, dest, queued))
    assert outcomes["cudaMemcpyAsync"] is not None
    assert [0, 0] == [device.live_blocks for device in devices]


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_a_buffer_allocates_whichever_call_fails(again: bool, pool: bool) -> None:
    device = CUDADeviceAllocator(1, pool=pool)

    def make() -> Case:
        buffer = Buffer(SIZE, device)
        if not again:
            buffer.close()

        def check() -> None:
            ptr: Any = buffer.ptr
            assert (SIZE, 1) == (ptr.nbytes, ptr.device.id)
            buffer.close()

        return Case(buffer, buffer.allocate, lambda: id(buffer.ptr), check)

    outcomes = check_every_call(make, NO_MEMORY)
    assert pool or AllocationError is outcomes["cudaMalloc"]
    assert 0 == device.live_blocks


@pytest.mark.parametrize("in_flight", [False, True], ids=["at rest", "in flight"])
def test_a_buffer_closes_whichever_call_fails(in_flight: bool, pool: bool) -> None:
    device = CUDADeviceAllocator(1, pool=pool)

    def make() -> Case:
        buffer, source, stream = Buffer(SIZE, device), buffer_of(device, MINE), device.stream()
        if in_flight:
            buffer.copy_from(source, stream=stream)

        def close() -> None:
            buffer.close()
            source.close()

        def check() -> None:
            assert (None, None) == (buffer.ptr, source.ptr)

        return Case((buffer, source, stream), close, lambda: None, check)

    check_every_call(make)
    assert 0 == device.live_blocks


# --- a blob


HEADS = {"host": ("mutable_cpu_data", "mutable_cpu_diff"), "device": ("mutable_gpu_data", "mutable_gpu_diff")}


@pytest.mark.parametrize("ordinal", [0, 1])
@pytest.mark.parametrize("head", HEADS)
def test_a_blob_is_updated_once_whichever_call_fails(head: str, ordinal: int, pool: bool) -> None:
    """Data and diff are on either side.  After the kernel is queued, the update may be done although the call fails."""
    device = CUDADeviceAllocator(ordinal, pool=pool)
    data, diff = (np.arange(64, dtype=np.float32) * factor for factor in (4, 1))

    def make() -> Case:
        blob = Blob((64,), np.float32, device=device)
        blob.data, blob.diff = data, diff
        view, _ = (getattr(blob, name)() for name in HEADS[head])

        def seen() -> object:
            return blob.data_memory.head, cupy.asnumpy(view).tolist()

        def check() -> None:
            assert (data - diff).tolist() == blob.data.tolist()
            assert diff.tolist() == blob.diff.tolist()

        return Case(blob, blob.update, seen, check, queues="cuLaunchKernel")

    outcomes = check_every_call(make)
    assert (head == "host") or outcomes["cuLaunchKernel"] is not None
    assert 0 == device.live_blocks
