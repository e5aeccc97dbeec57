"""Blocks that are owned: what becomes of them when their allocator refuses, or when their owner goes."""

from __future__ import annotations

import gc
import sys
import warnings
from typing import Any

import pytest
from subjects import SIZE, filled

from syncedmem.model import DeviceError, NoDeviceError, ReleaseError, SyncedHead
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.devices import forking
from syncedmem.runtime.devices.forking import Home
from syncedmem.runtime.devices.simulated.block import Quarantine
from syncedmem.runtime.memory.owned import Finaliser, OwnedBlock


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
@pytest.mark.parametrize("freed", [False, True])
def test_a_simulated_release_that_runs_out_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, pinned: bool, freed: bool
) -> None:
    """Before the block was freed, and after it."""
    device = SimulatedDeviceAllocator()
    allocator: Any = device.pinned_host() if pinned else device
    ptr, take, answers = allocator.allocate(SIZE), Quarantine.take, [MemoryError()]

    def take_and_run_out(quarantine: Quarantine, block: Any) -> None:
        if freed or not answers:
            take(quarantine, block)
        if answers:
            raise answers.pop()

    monkeypatch.setattr(Quarantine, "take", take_and_run_out)
    with pytest.raises(MemoryError):
        allocator.release(ptr)
    assert allocator.live_blocks == 1
    allocator.release(ptr)

    assert allocator.live_blocks == 0


def test_a_push_that_ran_out_of_memory_was_not_queued(on_moody: SyncedMemory, moody: Moody) -> None:
    """Nothing has changed."""
    moody.copies = [MemoryError()]

    with pytest.raises(DeviceError, match="MemoryError"):
        on_moody.async_gpu_push(stream=moody.stream())

    assert (on_moody.head, moody.live_blocks) == (SyncedHead.HEAD_AT_CPU, 0)


def test_a_finaliser_whose_warning_is_an_error_shows_it(moody: Moody, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    memory = SyncedMemory(SIZE, device=moody)
    memory.mutable_gpu_data()
    moody.releases = [RuntimeError("dead")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del memory
        gc.collect()

    assert [ResourceWarning] == [it.exc_type for it in shown]


def test_copies_that_have_happened_keep_no_block(moody: Moody) -> None:
    class Over:
        def end(self) -> str:
            return ""

    held: Any = Finaliser("a test", SIZE)
    held.blocks = (OwnedBlock(moody, moody.allocate(SIZE)),)
    held.flights = [Over(), Over()]
    del held

    assert 0 == moody.live_blocks


def test_a_copy_that_is_stuck_keeps_no_block_that_is_released_already(moody: Moody) -> None:
    """The warning names the place where the owner was dropped."""

    class Stuck:
        def end(self) -> str:
            return "the device is gone"

    held: Any = Finaliser("a test", SIZE)
    held.blocks = (OwnedBlock(moody), OwnedBlock(moody, moody.allocate(SIZE)))
    held.flights = [Stuck()]
    with pytest.warns(ResourceWarning) as said:
        del held

    assert [f"{SIZE} bytes of a test leaked: the device is gone"] == [str(it.message) for it in said]
    assert [__file__] == [it.filename for it in said]


def test_an_interrupt_in_a_finaliser_loses_one_block_and_frees_the_other(
    moody: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    held = Finaliser("a test", SIZE)
    held.blocks = tuple(OwnedBlock(moody, moody.allocate(SIZE)) for _ in range(2))
    moody.releases = [KeyboardInterrupt()]
    with pytest.warns(ResourceWarning, match=rf"^{SIZE} bytes on .* may be lost: their release was interrupted$"):
        del held

    assert ([KeyboardInterrupt], 1) == ([it.exc_type for it in shown], moody.live_blocks)


def test_what_was_interrupted_before_it_held_anything_goes_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    bare = Finaliser.__new__(Finaliser)
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
