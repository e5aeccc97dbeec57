"""Failures: what a memory raises, how it stays, and what cannot go back."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from subjects import SIZE, failing, filled

from syncedmem.model import (
    DeviceError,
    InvalidPointerError,
    NoDeviceError,
    ReleaseError,
    caffe,
)
from syncedmem.runtime import Buffer, SimulatedDeviceAllocator, SimulatedDeviceError, SyncedMemory
from syncedmem.runtime.allocators import forking
from syncedmem.runtime.allocators.forking import Home
from syncedmem.runtime.devices.simulated.block import Quarantine
from syncedmem.runtime.memory.side import Side
from syncedmem.runtime.memory.sides import Sides

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@contextmanager
def dead(allocator: Any, *operations: str) -> Generator[None]:
    """Some calls of an allocator fail."""
    with pytest.MonkeyPatch.context() as patch:
        for name in operations:
            patch.setattr(allocator, name, failing(RuntimeError, "dead"))
        yield


@pytest.mark.parametrize("name", ["viewer", "read_only"])
def test_a_view_that_cannot_be_made_frees_nothing(device: SimulatedDeviceAllocator, name: str) -> None:
    """An adoption frees the owned side last, when nothing can fail any more."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_gpu_data().set(np.full(SIZE, 7, np.uint8))
    buffer = device.empty(SIZE)
    with dead(device, name), pytest.raises(DeviceError) as told:
        memory.set_gpu_data(buffer)

    assert ("simulated:0", RuntimeError) == (told.value.where, type(told.value.__cause__))
    assert (memory.own_gpu_data, device.live_blocks, memory.cpu_data().tolist()) == (True, 1, [7] * SIZE)
    memory.set_gpu_data(buffer)
    assert device.live_blocks == 0


def test_after_a_declared_free_nothing_follows_that_could_fail() -> None:
    """The memory relies on this, because what is freed cannot be undone."""
    followers = {
        row.actions[i + 1 :]
        for row in caffe.EVERYTHING.rows
        if row.call != caffe.RELEASE.name
        for i, action in enumerate(row.actions)
        if action in {caffe.FREE_CPU.name, caffe.FREE_GPU.name}
    }

    assert followers == {(caffe.ADOPT_CPU.name,), (caffe.ADOPT_GPU.name,)}


def test_a_device_that_cannot_say_which_is_current_is_reported(device: SimulatedDeviceAllocator) -> None:
    memory = SyncedMemory(SIZE, device=device, check_device=True)
    with dead(device, "current_ordinal"), pytest.raises(DeviceError) as told:
        memory.cpu_data()

    assert ("simulated:0", RuntimeError) == (told.value.where, type(told.value.__cause__))


def raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    """A function that raises, whatever its arguments."""

    def fail(*_: object) -> Any:
        raise error

    return fail


def test_a_view_that_cannot_be_made_while_no_accessor_is_ready_is_a_device_error(
    device: SimulatedDeviceAllocator,
) -> None:
    """With the device check, making the view is all that is left to do."""
    memory: Any = SyncedMemory(SIZE, device=device, check_device=True)
    memory.gpu_data()
    side = memory._sides.gpu
    reader: Any = side.views.reader
    make, reader.make = reader.make, failing(OSError, "no view")
    with pytest.raises(DeviceError, match="no view"):
        memory.gpu_data()
    reader.make = make

    assert SIZE == len(memory.gpu_data())


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
    """On the hot path: our own errors and interrupts pass unchanged, the head stays, and the next call works."""
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


# --- leaks


def test_what_cannot_be_undone_is_reported_as_leaked(memory: SyncedMemory, device: SimulatedDeviceAllocator) -> None:
    """The call fails with its own error; the leak is a ResourceWarning."""
    filled(memory)
    leaked = pytest.warns(ResourceWarning, match=f"{SIZE} bytes leaked on simulated:0: RuntimeError: dead")
    with dead(device, "memcpy", "release"), leaked, pytest.raises(DeviceError):
        memory.gpu_data()


def test_a_block_that_is_gone_already_does_not_keep_a_memory_open(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may happen after a second interrupt, while the first one was handled."""
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
    memory: SyncedMemory, device: SimulatedDeviceAllocator
) -> None:
    """The call still fails with its own error, and a push that is stuck is still known."""
    filled(memory)
    with dead(device, "memcpy", "release"), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeviceError) as caught:
            memory.gpu_data()

    assert "copy_to_gpu" == caught.value.operation
    assert ["48 bytes leaked on simulated:0: RuntimeError: dead"] == caught.value.__notes__
    assert memory.gpu_data().get().tolist() == [7] * SIZE


def test_an_error_on_the_way_out_keeps_nobody_alive(device: SimulatedDeviceAllocator) -> None:
    """A block that could not be given back is reported as text, not as an error that refers to the memory."""
    memory = filled(SyncedMemory(SIZE, device=device))
    gc.disable()
    try:
        with dead(device, "memcpy", "release"), pytest.warns(ResourceWarning), suppress(DeviceError):
            memory.gpu_data()
        watch = weakref.ref(memory)
        del memory
        assert watch() is None
    finally:
        gc.enable()


def test_a_finaliser_whose_host_side_is_stuck_frees_the_device_side(device: SimulatedDeviceAllocator) -> None:
    """The stuck host side leaks; nothing else does."""
    memory = filled(SyncedMemory(SIZE, device=device))
    memory.gpu_data()
    with dead(device.pinned_host(), "release"), pytest.warns(ResourceWarning, match="pinned host memory.*dead"):
        del memory

    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 1)


# --- sides


class Moody(SimulatedDeviceAllocator):
    """A device whose first calls raise errors, and whose later calls work."""

    def __init__(self) -> None:
        super().__init__()
        self.releases: list[BaseException] = []
        self.copies: list[BaseException] = []

    def release(self, ptr: Any) -> None:
        if self.releases:
            raise self.releases.pop(0)
        super().release(ptr)

    def memcpy(self, *arguments: Any, **options: Any) -> None:
        if self.copies:
            raise self.copies.pop(0)
        super().memcpy(*arguments, **options)


@pytest.fixture
def moody() -> Moody:
    return Moody()


@pytest.fixture
def on_moody(moody: Moody) -> SyncedMemory:
    """A memory whose host side is fresh."""
    return filled(SyncedMemory(SIZE, device=moody))


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_an_allocator_that_runs_out_has_refused(on_moody: SyncedMemory, moody: Moody, error: Any) -> None:
    """The memory is unchanged, and can be closed later."""
    on_moody.gpu_data()
    moody.releases = [error()]
    with pytest.raises(ReleaseError, match=error.__name__):
        on_moody.close()

    assert (on_moody.closed, moody.live_blocks) == (True, 1)  # the host side is gone
    on_moody.close()
    assert moody.live_blocks == 0


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_simulated_release_that_runs_out_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, pinned: bool, kept: bool
) -> None:
    """Before and after the quarantine has taken the block it is live still."""
    device = SimulatedDeviceAllocator()
    allocator: Any = device.pinned_host() if pinned else device
    ptr, take, answers = allocator.allocate(SIZE), Quarantine.take, [MemoryError()]

    def take_and_run_out(quarantine: Quarantine, block: Any) -> None:
        if kept or not answers:
            take(quarantine, block)
        if answers:
            raise answers.pop()

    gc.collect()  # a memory that an earlier test left in a cycle would be released in place of this block
    monkeypatch.setattr(Quarantine, "take", take_and_run_out)
    with pytest.raises(MemoryError):
        allocator.release(ptr)
    assert allocator.live_blocks == 1
    allocator.release(ptr)

    assert allocator.live_blocks == 0
    with pytest.raises(InvalidPointerError):
        allocator.release(ptr)


def test_a_finaliser_whose_warning_is_an_error_shows_it(moody: Moody, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    memory = SyncedMemory(SIZE, device=moody)
    memory.mutable_gpu_data()
    moody.releases = [RuntimeError("dead"), RuntimeError("dead")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del memory
        gc.collect()

    assert [ResourceWarning] == [item.exc_type for item in shown]


@pytest.mark.parametrize("error", [TimeoutError("the alarm"), RuntimeError("the device is busy")])
def test_a_finaliser_tries_a_release_again(moody: Moody, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A signal handler's exception looks like a refusal, and nobody is left who could try again; Python prints it."""
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    memory = SyncedMemory(SIZE, device=moody)
    memory.mutable_gpu_data()
    moody.releases = [error]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del memory
        gc.collect()

    assert ([error], 0) == ([item.exc_value for item in shown], moody.live_blocks)


def test_a_copy_that_is_stuck_keeps_no_block_that_is_released_already(moody: Moody) -> None:
    """The warning names the place where the owner was dropped."""

    class Stuck:
        def end(self) -> str:
            return "the device is gone"

    sides, stuck = Sides(SIZE, moody, moody, moody), Stuck()
    sides.flights.append(cast("Any", stuck))
    sides.gpu = Side(SIZE, sides.flights)
    sides.gpu.allocate(moody)
    with pytest.warns(ResourceWarning) as said:
        del sides

    assert [f"{SIZE} bytes leaked on simulated:0: the device is gone"] == [str(item.message) for item in said]
    assert [__file__] == [item.filename for item in said]


@pytest.mark.parametrize("knows", [True, False])
def test_an_interrupt_in_a_finaliser_loses_one_block_at_most_and_frees_the_other(
    moody: Moody, knows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is lost if the allocator says that it has not freed it."""
    if not knows:
        monkeypatch.setattr(Moody, "_is_live", print)
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    sides = Sides(SIZE, moody, moody, moody)
    sides.cpu, sides.gpu = Side(SIZE, []), Side(SIZE, [])
    sides.cpu.allocate(moody)
    sides.gpu.allocate(moody)
    moody.releases = [KeyboardInterrupt()]
    told = pytest.warns(ResourceWarning, match=rf"^{SIZE} bytes on .* may be lost: their release was interrupted$")
    with nullcontext() if knows else told:
        del sides

    kinds = [item.exc_type for item in shown]
    shown.clear()  # a traceback keeps the side
    assert ([KeyboardInterrupt], not knows) == (kinds, moody.live_blocks)


def test_what_was_interrupted_before_it_held_anything_goes_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    for kind in (Sides, Side, Buffer):
        bare = kind.__new__(kind)
        del bare

    assert not shown


def test_a_device_of_another_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of a fork sees it so; coverage does not follow the child."""
    home = Home("cuda:7")
    home.check()
    monkeypatch.setattr(forking, "_homes", [home])
    forking._lose()  # pyright: ignore[reportPrivateUsage] -- only the hook of a fork calls it

    with pytest.raises(
        NoDeviceError, match=r"^cuda:7 was opened in process \d+, and its driver does not survive a fork"
    ):
        home.check()
