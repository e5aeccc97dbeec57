"""Blocks that are owned: what their allocator answers when it is interrupted, and what becomes of them."""

from __future__ import annotations

import gc
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from subjects import SIZE, filled

from syncedmem.model import DeviceError, NoDeviceError, ReleaseError, SyncedHead
from syncedmem.runtime import Buffer, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.devices import forking
from syncedmem.runtime.devices.forking import Home
from syncedmem.runtime.devices.simulated.block import Quarantine
from syncedmem.runtime.memory.owned import Finaliser, Holding, OwnedBlock

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def test_a_second_interrupt_while_a_failed_call_is_undone(on_moody: SyncedMemory, moody: Moody) -> None:
    """First the undoing is completed."""
    moody.copies, moody.releases = [RuntimeError("dead")], [KeyboardInterrupt()]

    with pytest.raises(KeyboardInterrupt):
        on_moody.gpu_data()

    assert (on_moody.head, moody.live_blocks) == (SyncedHead.HEAD_AT_CPU, 0)
    assert on_moody.gpu_data().get().tolist() == [7] * SIZE


def test_a_second_interrupt_while_a_buffer_gives_new_memory_back(moody: Moody) -> None:
    buffer = Buffer(SIZE, moody)
    moody.releases = [RuntimeError("dead"), KeyboardInterrupt()]

    with pytest.raises(KeyboardInterrupt):
        buffer.allocate()

    assert moody.live_blocks == 1
    buffer.close()
    assert moody.live_blocks == 0


@pytest.mark.parametrize("adopt", [False, True])
def test_a_release_that_is_interrupted_and_then_refused(on_moody: SyncedMemory, moody: Moody, adopt: bool) -> None:
    """The interrupt is raised, by a close with a note; another close frees the rest.  An adoption has not happened."""
    on_moody.gpu_data()
    moody.releases = [KeyboardInterrupt(), RuntimeError("dead")]

    with pytest.raises(KeyboardInterrupt) as caught:
        on_moody.set_gpu_data(moody.empty(SIZE)) if adopt else on_moody.close()

    assert adopt or "RuntimeError: dead" in caught.value.__notes__[0]
    assert (moody.live_blocks, adopt) == (1, not on_moody.closed and on_moody.own_gpu_data)
    on_moody.close()
    assert moody.live_blocks == 0


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
def test_what_runs_out_after_a_simulated_block_was_freed_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch, pinned: bool, freed: bool
) -> None:
    """An error before the block was freed is a refusal."""
    device = SimulatedDeviceAllocator()
    allocator: Any = device.pinned_host() if pinned else device
    ptr, take, answers = allocator.allocate(SIZE), Quarantine.take, [MemoryError()]

    def take_and_run_out(quarantine: Quarantine, block: Any) -> None:
        if freed or not answers:
            take(quarantine, block)
        if answers:
            raise answers.pop()

    monkeypatch.setattr(Quarantine, "take", take_and_run_out)
    if not freed:
        with pytest.raises(MemoryError):
            allocator.release(ptr)
        assert allocator.live_blocks == 1
    allocator.release(ptr)

    assert allocator.live_blocks == 0


def test_a_push_that_ran_out_of_memory_may_be_on_its_way(on_moody: SyncedMemory, moody: Moody) -> None:
    """So the stream is waited for before the allocated memory is given back."""
    moody.copies = [MemoryError()]

    with pytest.raises(DeviceError, match="MemoryError"):
        on_moody.async_gpu_push(stream=moody.stream())

    assert (on_moody.head, moody.live_blocks) == (SyncedHead.HEAD_AT_CPU, 0)


def test_a_finaliser_that_ran_out_of_memory_finishes_and_says_nothing(
    moody: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, dispose, answers = SyncedMemory(SIZE, device=moody), Holding.dispose, [MemoryError()]
    memory.mutable_gpu_data()

    def run_out(held: Holding) -> None:
        if answers:
            raise answers.pop()
        dispose(held)

    monkeypatch.setattr(Holding, "dispose", run_out)
    del memory
    gc.collect()

    assert (answers, moody.live_blocks) == ([], 0)


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


def test_the_second_chance_finishes_too(moody: Moody) -> None:
    """It is the finaliser of an object in a cycle, whose finalisers are called in any order."""
    held = Holding("a test", SIZE)
    came: type[BaseException] | None = None
    held.blocks = (OwnedBlock(moody, moody.allocate(SIZE)),)
    moody.releases = [KeyboardInterrupt()]
    try:
        del held
        abs(0)  # a call, after which CPython raises it; no collection, whose callbacks could catch it
    except KeyboardInterrupt as error:
        came = type(error)

    assert (came, moody.live_blocks) == (KeyboardInterrupt, 0)


@pytest.mark.parametrize("says", [(), ("now",)])
def test_an_interrupt_of_a_finaliser_comes_after_it_with_what_it_says(
    moody: Moody, printed: list[BaseException | None], says: tuple[str, ...]
) -> None:
    """What the finaliser holds has a finaliser of its own, in which nobody could catch the interrupt."""
    memory = SyncedMemory(SIZE, device=moody)
    came: tuple[str, ...] | None = None
    memory.gpu_data()
    moody.releases = [KeyboardInterrupt(*says)]
    try:
        del memory
        abs(0)  # a call, after which CPython raises it
    except KeyboardInterrupt as error:
        came = error.args

    assert (says, [], 0) == (came, printed, moody.live_blocks)


def test_a_finaliser_that_holds_nothing_yet_may_be_interrupted(printed: list[BaseException | None]) -> None:
    class Hurried(Finaliser):
        interrupts = [KeyboardInterrupt()]  # noqa: RUF012 -- for one object

        def dispose(self) -> None:
            if self.interrupts:
                raise self.interrupts.pop()

    came, bare = False, Hurried.__new__(Hurried)
    try:
        del bare
        abs(0)
    except KeyboardInterrupt:
        came = True

    assert (True, []) == (came, printed)


def test_copies_that_have_happened_keep_no_block(moody: Moody) -> None:
    class Over:
        def land(self) -> str:
            return ""

    held: Any = Holding("a test", SIZE)
    held.blocks = (OwnedBlock(moody, moody.allocate(SIZE)),)
    held.flights = [Over(), Over()]
    del held

    assert 0 == moody.live_blocks


def test_a_copy_that_is_stuck_keeps_no_block_that_is_released_already(moody: Moody) -> None:
    """The warning names the place where the owner was dropped."""

    class Stuck:
        def land(self) -> str:
            return "the device is gone"

    held: Any = Holding("a test", SIZE)
    held.blocks = (OwnedBlock(moody), OwnedBlock(moody, moody.allocate(SIZE)))
    held.flights = [Stuck()]
    owner = Finaliser(held)
    with pytest.warns(ResourceWarning) as said:
        del held, owner

    assert [f"{SIZE} bytes of a test leaked: the device is gone"] == [str(it.message) for it in said]
    assert [__file__] == [it.filename for it in said]


@pytest.mark.parametrize("kind", [Holding, Finaliser])
def test_what_was_interrupted_before_it_held_anything_goes_quietly(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    bare = kind.__new__(kind)
    del bare

    assert not shown


class Short(list[Any]):
    """A slot whose iterator finds no memory after the pointer."""

    def __iter__(self) -> Iterator[Any]:
        yield self[0]
        raise MemoryError


def test_what_comes_after_a_release_does_not_undo_it(moody: Moody) -> None:
    block = OwnedBlock(moody, moody.allocate(SIZE))
    block.slot = Short(block.slot)
    with pytest.raises(MemoryError):
        block.release()

    assert ((), 0) == (block.slot, moody.live_blocks)
    block.release()


def test_who_cannot_keep_a_block_asks_twice_when_memory_runs_out(moody: Moody) -> None:
    block = OwnedBlock(moody, moody.allocate(SIZE))
    moody.releases = [MemoryError("none left"), MemoryError("none left")]
    assert "none left" in block.surrender()
    assert 1 == moody.live_blocks

    moody.releases = [MemoryError("none left")]
    assert "" == block.surrender()
    assert 0 == moody.live_blocks


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
