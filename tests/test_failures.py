"""Failures, interrupts and callbacks: what holds when a call does not come to its end."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import warnings
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from benches import SIZE, filled

from syncedmem.model import (
    TRANSITIONS,
    Action,
    AllocationError,
    BufferMismatchError,
    Call,
    DeviceError,
    ReentrantCallError,
    SyncedHead,
    SyncedMemoryError,
)
from syncedmem.runtime import Buffer, CPUDeviceAllocator, SimulatedDeviceAllocator, SimulatedDeviceError, SyncedMemory
from syncedmem.runtime.pointers import no_room
from syncedmem.runtime.simulated_block import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def test_a_view_that_cannot_be_made_frees_nothing(device: SimulatedDeviceAllocator) -> None:
    """Adopting frees what is ours last, when nothing can fail any more."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_gpu_data().set(np.full(SIZE, 7, np.uint8))
    buffer = device.empty(SIZE)

    def fail(_: object) -> None:
        raise RuntimeError("no view")

    for name in ("viewer", "read_only"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device, name, fail)
            with pytest.raises(DeviceError, match="making a view failed on simulated:0: RuntimeError: no view"):
                memory.set_gpu_data(buffer)

    assert (memory.own_gpu_data, device.live_blocks, memory.cpu_data().tolist()) == (True, 1, [7] * SIZE)
    memory.set_gpu_data(buffer)
    assert device.live_blocks == 0


def test_after_a_declared_free_nothing_follows_that_could_fail() -> None:
    """The performer relies on it: what is freed cannot be undone."""
    frees, harmless = {Action.FREE_CPU, Action.FREE_GPU}, {Action.ADOPT_CPU, Action.ADOPT_GPU}
    followers = {
        row.actions[i + 1 :]
        for row in TRANSITIONS
        if row.call is not Call.RELEASE
        for i, action in enumerate(row.actions)
        if action in frees
    }

    assert followers == {(action,) for action in harmless}


def test_a_device_that_cannot_say_which_is_current_is_reported(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = SyncedMemory(SIZE, device=device, check_device=True)

    def fail() -> int:
        raise RuntimeError("no context")

    monkeypatch.setattr(device, "current_ordinal", fail)

    with pytest.raises(DeviceError, match="asking for the current device failed on simulated:0: RuntimeError: no"):
        memory.cpu_data()


def test_a_buffer_that_raises_while_it_is_looked_at_is_refused() -> None:
    """Whatever it raises, the caller gets one error with the buffer in it."""

    class Odd(CPUDeviceAllocator):
        def adopt(self, buffer: object, byte_size: int) -> Any:
            raise OSError(5, f"{type(buffer).__name__} of {byte_size} bytes")

    memory = SyncedMemory(SIZE, host=Odd(), device=None)
    buffer = bytearray(SIZE)

    with pytest.raises(BufferMismatchError, match=r"OSError: .* bytearray of 48 bytes") as caught:
        memory.set_cpu_data(buffer)

    assert caught.value.buffer is buffer


class Mute(Exception):
    """An error that cannot say anything."""

    def __str__(self) -> str:
        raise KeyError("no")


class MuteValue(Mute, ValueError):
    """The same, as allocators refuse a buffer."""


class MuteMemory(Mute, MemoryError):
    """The same, of a device that has no room."""


def raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    """What raises, however it is called."""

    def fail(*_: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [Mute, MuteValue])
def test_a_buffer_is_refused_although_the_reason_cannot_be_shown(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a memory and by a `Buffer`; the reason is named by its type."""
    host, mine = CPUDeviceAllocator(), bytearray(SIZE)
    memory = SyncedMemory(SIZE, host=host, device=None)
    monkeypatch.setattr(host, "adopt", raising(error))
    for adopting in (lambda: memory.set_cpu_data(mine), lambda: Buffer(SIZE, host, mine, use_external=True)):
        with pytest.raises(BufferMismatchError, match=rf": {error.__name__}$"):
            adopting()


def test_a_lack_of_room_that_cannot_be_shown_is_an_allocation_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a memory, of a `Buffer`, and of an allocator."""
    host = CPUDeviceAllocator()
    memory = SyncedMemory(SIZE, host=host, device=None)
    monkeypatch.setattr(host, "allocate", raising(MuteMemory))
    for allocating in (memory.cpu_data, lambda: Buffer(SIZE, host)):
        with pytest.raises(AllocationError, match=r"cannot allocate 48 bytes on cpu:0: MuteMemory$"):
            allocating()

    assert "cannot allocate 4 bytes on here: MuteMemory" == str(no_room("here", 4, MuteMemory()))


@pytest.mark.parametrize(
    ("accessor", "ready"),
    [
        ("cpu_data", "_read_cpu"),
        ("mutable_cpu_data", "_write_cpu"),
        ("gpu_data", "_read_gpu"),
        ("mutable_gpu_data", "_write_gpu"),
    ],
)
def test_a_view_that_cannot_be_made_with_nothing_else_to_do_is_a_device_error(
    memory: SyncedMemory, accessor: str, ready: str
) -> None:
    """On the hot path; errors of the family and interrupts pass, the head stays, and the next call works."""
    call = getattr(memory, accessor)
    call()
    head, maker = memory.head, getattr(memory, ready)
    cause = OSError(5, "no view")
    setattr(memory, ready, raising(cause))
    with pytest.raises(DeviceError, match=r"making a view failed on simulated:0: OSError: .*no view") as caught:
        call()
    assert caught.value.__cause__ is cause
    for passing in (SimulatedDeviceError("late"), KeyboardInterrupt()):
        setattr(memory, ready, raising(passing))
        with pytest.raises(type(passing)) as passed:
            call()
        assert passed.value is passing
    setattr(memory, ready, maker)

    assert (head, SIZE) == (memory.head, call().nbytes)


def test_an_error_of_the_device_becomes_one_of_the_family(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a device raises is chained to an error that names action and device."""
    filled(memory)

    def fail(*_: object) -> None:
        raise RuntimeError("bus error")

    monkeypatch.setattr(device, "memcpy", fail)

    with pytest.raises(DeviceError, match="copy_to_gpu failed on simulated:0: RuntimeError: bus error") as caught:
        memory.gpu_data()

    assert isinstance(caught.value.__cause__, RuntimeError)
    assert (device.live_blocks, memory.head) == (0, SyncedHead.HEAD_AT_CPU)


@pytest.mark.parametrize("check_device", [False, True])
def test_a_copy_between_sides_that_are_there_fails_like_any_other(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch, check_device: bool
) -> None:
    """Nothing is allocated, so nothing is undone; head and bytes stay, and the next call copies."""
    memory = filled(SyncedMemory(SIZE, device=device, check_device=check_device))
    memory.gpu_data()
    filled(memory, 9)
    device.fail_at(1, "memcpy")
    with pytest.raises(SyncedMemoryError, match="told to fail") as caught:
        memory.gpu_data()

    def fail(*_: object) -> None:
        raise RuntimeError("bus error")

    with monkeypatch.context() as patch:
        patch.setattr(device, "memcpy", fail)
        with pytest.raises(DeviceError, match="copy_to_gpu failed on simulated:0: RuntimeError: bus error"):
            memory.gpu_data()

    assert "SimulatedDeviceError" == type(caught.value).__name__
    assert (memory.head, device.live_blocks) == (SyncedHead.HEAD_AT_CPU, 1)
    assert memory.gpu_data().get().tolist() == [9] * SIZE


def test_an_error_of_the_family_is_raised_as_it_is(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    filled(memory)
    device.fail_at(1, "memcpy")

    with pytest.raises(SyncedMemoryError, match="told to fail") as caught:
        memory.gpu_data()

    assert type(caught.value).__name__ == "SimulatedDeviceError"


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


class Plain(CPUDeviceAllocator):
    """A host allocator that runs out, or breaks its contract, on request."""

    answer: Any = MemoryError("no more")

    def allocate(self, byte_size: int) -> Any:
        del byte_size
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "text"), [(MemoryError("no more"), "no more"), (None, "the allocator returned None")]
)
def test_any_memory_error_is_an_allocation_error(answer: Any, text: str) -> None:
    """Foreign allocators run out in their own way; callers see one error."""
    host = Plain()
    host.answer = answer

    with pytest.raises(AllocationError, match=f"cannot allocate {SIZE} bytes on cpu:0: {text}"):
        SyncedMemory(SIZE, host=host, device=None).cpu_data()


def test_what_cannot_be_undone_is_reported_as_leaked(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call fails with its own error; the leak is a ResourceWarning."""
    filled(memory)

    def fail(*_: object) -> None:
        raise RuntimeError("dead")

    monkeypatch.setattr(device, "memcpy", fail)
    monkeypatch.setattr(device, "release", fail)

    with (
        pytest.warns(ResourceWarning, match=f"{SIZE} bytes leaked on simulated:0: RuntimeError: dead"),
        pytest.raises(DeviceError),
    ):
        memory.gpu_data()


def test_a_device_that_is_full_leaves_the_memory_usable() -> None:
    device = SimulatedDeviceAllocator(capacity=SIZE)
    first, second = filled(SyncedMemory(SIZE, device=device)), filled(SyncedMemory(SIZE, device=device))
    first.gpu_data()

    with pytest.raises(AllocationError, match="48 of 48 bytes are in use"):
        second.gpu_data()

    first.close()
    assert second.gpu_data().get().tolist() == [7] * SIZE


def test_a_view_that_cannot_be_made_undoes_the_call(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last thing that can fail before a call takes effect."""
    filled(memory)

    def fail(_: object) -> None:
        raise RuntimeError("no view")

    monkeypatch.setattr(device, "read_only", fail)

    with pytest.raises(DeviceError, match="making a view failed"):
        memory.gpu_data()

    assert (memory.head, device.live_blocks) == (SyncedHead.HEAD_AT_CPU, 0)


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


def test_an_allocator_that_calls_back_from_the_finaliser_is_refused(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory that is going gives nothing out any more."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_gpu_data()
    known, release, refused = [weakref.ref(memory)], device.release, list[bool]()

    def call_back(ptr: Any) -> None:
        going: Any = known[0]()
        with pytest.raises(ReentrantCallError):
            going.mutable_gpu_data()
        refused.append(True)
        release(ptr)

    monkeypatch.setattr(device, "release", call_back)
    del memory

    assert (refused, device.live_blocks) == ([True], 0)


# --- interrupts


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


def test_a_block_that_is_gone_already_does_not_keep_a_memory_open(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a second interrupt while the first was dealt with."""
    blocks, allocate = list[Any](), device.allocate

    def note(byte_size: int) -> Any:
        blocks.append(allocate(byte_size))
        return blocks[-1]

    with monkeypatch.context() as patch:
        patch.setattr(device, "allocate", note)
        memory.gpu_data()
    device.release(blocks[0])
    memory.close()

    assert (memory.closed, device.live_blocks) == (True, 0)


def test_a_leak_is_a_note_on_the_error_where_warnings_are_errors(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call still fails with its own error, and a push that is stuck is still known."""
    filled(memory)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("dead")

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(device, "memcpy", fail)
        patch.setattr(device, "release", fail)
        with pytest.raises(DeviceError, match="copy_to_gpu failed") as caught:
            memory.gpu_data()

    assert ["48 bytes leaked on simulated:0: RuntimeError: dead"] == caught.value.__notes__
    assert memory.gpu_data().get().tolist() == [7] * SIZE


def test_an_error_on_the_way_out_keeps_nobody_alive(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be given back is reported in words, not in an error that knows the memory."""
    memory = filled(SyncedMemory(SIZE, device=device))

    def fail(*_: object) -> None:
        raise RuntimeError("dead")

    gc.disable()
    try:
        with monkeypatch.context() as patch, pytest.warns(ResourceWarning, match="leaked"):
            patch.setattr(device, "memcpy", fail)
            patch.setattr(device, "release", fail)
            with suppress(DeviceError):
                memory.gpu_data()
        watch = weakref.ref(memory)
        del memory
        assert watch() is None
    finally:
        gc.enable()


def test_a_finaliser_whose_host_side_is_stuck_frees_the_device_side(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One leak is enough."""
    memory = filled(SyncedMemory(SIZE, device=device))
    memory.gpu_data()

    def fail(_: object) -> None:
        raise RuntimeError("dead")

    monkeypatch.setattr(device.pinned_host(), "release", fail)
    with pytest.warns(ResourceWarning, match="leaked: release failed on pinned host memory"):
        del memory

    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 1)
