"""Checked mode looks at bytes only if somebody has a view of them: whoever has one, in whatever way, is told."""

from __future__ import annotations

import builtins
import ctypes
import gc
import inspect
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, devices, failing

from syncedmem.model import IllegalCallError, InvalidArgumentError, ReleaseError, StaleWriteError, SyncedHead
from syncedmem.model.interface import DeviceType
from syncedmem.runtime import Blob, CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.allocators.late_writes import POISON
from syncedmem.runtime.memory import views, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(params=devices(), ids=lambda place: str(place.device_type.name))
def place(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passes over a whole side so far: reads and fills."""
    gc.collect()  # a memory that another test has left looks at its bytes when it goes
    passes: list[str] = []

    def counting(name: str) -> Callable[..., Any]:
        work: Callable[..., Any] = getattr(watch, name)

        def count(*arguments: Any) -> Any:
            passes.append(name)
            return work(*arguments)

        return count

    for name in ("read_bytes", "fill_with_poison"):
        monkeypatch.setattr(watch, name, counting(name))
    return passes


def passes_of(looks: list[str], call: Callable[[], object]) -> int:
    """How many passes a call makes."""
    looks.clear()
    call()
    return len(looks)


def fill(view: Any, value: int) -> None:
    """Write all bytes, of an array of a device or of the host."""
    if hasattr(view, "set"):
        view.set(np.full(SIZE, value, np.uint8))
    else:
        view[:] = value


def simulated(**options: Any) -> Any:
    return SyncedMemory(SIZE, device=SimulatedDeviceAllocator(), **options)


# --- references of any kind


def in_a_generator(view: Any) -> Any:
    def generate() -> Iterator[int]:
        kept = view
        yield 1
        fill(kept, 9)

    running = generate()
    next(running)
    return lambda: next(running, None)


def in_an_exception(view: Any) -> Any:
    def fail(kept: Any) -> None:
        raise ZeroDivisionError(len(kept))

    try:
        fail(view)
    except ZeroDivisionError as error:
        sys.last_value = error
    last: Any = sys.last_value
    return lambda: fill(last.__traceback__.tb_next.tb_frame.f_locals["kept"], 9)


def in_a_frame(view: Any) -> Any:
    def look(kept: Any) -> Any:  # as a debugger does it
        del kept
        here: Any = inspect.currentframe()
        return here.f_back

    frame = look(view)
    return lambda: fill(frame.f_locals["view"], 9)


def at_the_prompt(view: Any) -> Any:
    prompt: Any = builtins
    prompt._ = view
    return lambda: fill(prompt._, 9)


def in_a_cycle(view: Any) -> Any:
    cycle: list[Any] = [view]
    cycle.append(cycle)
    return lambda: fill(cycle[0], 9)


HOLDERS = [in_a_generator, in_an_exception, in_a_frame, at_the_prompt, in_a_cycle]


@pytest.fixture
def tidy() -> Iterator[None]:
    """Nothing is left at the prompt, and in the last exception."""
    yield
    for owner, name in ((builtins, "_"), (sys, "last_value")):
        vars(owner).pop(name, None)


@pytest.mark.usefixtures("tidy")
@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
@pytest.mark.parametrize("hold", HOLDERS)
def test_whoever_has_a_view_is_told_if_he_writes_late_and_nobody_else_is(
    place: Any, hold: Callable[[Any], Any], on_device: bool
) -> None:
    memory: Any = SyncedMemory(SIZE, device=place, checked=True)
    (memory.mutable_cpu_data if on_device else memory.mutable_gpu_data)()
    write = hold(memory.mutable_gpu_data() if on_device else memory.mutable_cpu_data()[:])
    for _ in range(3):
        memory.cpu_data()
        memory.gpu_data()
        memory.cpu_data()
    write()
    with pytest.raises(StaleWriteError) as caught:
        memory.cpu_data()
    assert ("device" if on_device else "host") == caught.value.side
    memory.close()


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
@pytest.mark.parametrize("moves", [False, True], ids=["both fresh", "stale"])
def test_who_writes_late_and_drops_his_view_is_told(place: Any, on_device: bool, moves: bool) -> None:
    memory: Any = SyncedMemory(SIZE, device=place, checked=True)
    kept = memory.mutable_gpu_data() if on_device else memory.mutable_cpu_data()[:]
    (memory.cpu_data if on_device else memory.gpu_data)()
    if moves:
        (memory.mutable_cpu_data if on_device else memory.mutable_gpu_data)()
    memory.head  # noqa: B018 -- asks nothing of the watch
    fill(kept, 9)
    del kept
    gc.collect()
    with pytest.raises(StaleWriteError):
        (memory.gpu_data if on_device else memory.cpu_data)()


def test_queued_work_has_a_view_until_it_is_done() -> None:
    """The view itself is dropped, and somebody forgets to wait."""
    memory, stream = simulated(checked=True), None
    stream = memory.device.stream()

    def write(items: Any) -> None:
        items[:] = 9

    stream.launch(write, memory.mutable_gpu_data())
    memory.cpu_data()
    stream.synchronize()
    with pytest.raises(StaleWriteError, match="the device side was written"):
        memory.cpu_data()


# --- what costs nothing


@pytest.mark.parametrize("make", [simulated, partial(Blob, (SIZE,), np.uint8, device="simulated")])
def test_no_byte_is_looked_at_while_nobody_has_a_view(looks: list[str], make: Callable[[], Any]) -> None:
    memory = make()
    for _ in range(3):
        memory.mutable_cpu_data()[:] = 3
        assert [3] * SIZE == memory.gpu_data().get().tolist()
        memory.mutable_gpu_data().set(np.full(SIZE, 4, np.uint8))
        for _ in range(3):  # from the second time on the accessors are ready
            assert [4] * SIZE == memory.cpu_data().tolist()
            assert [4] * SIZE == memory.gpu_data().get().tolist()

    assert [] == looks


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("again", [False, True], ids=["same shape", "other shape"])
@pytest.mark.parametrize("accessor", ["cpu_data", "gpu_data"])
def test_elements_that_a_blob_has_shown_are_filled_when_their_side_becomes_stale(
    looks: list[str], accessor: str, again: bool, times: int
) -> None:
    """A blob that has another shape by now makes its views anew; those that were made before are there still."""
    blob: Any = Blob((2, 4), np.uint8, device="simulated")
    blob.data = np.ones((2, 4))
    blob.gpu_data()
    kept = getattr(blob, accessor)()[1]
    for _ in range(times - 1):
        kept = getattr(blob, accessor)()[1]
    if again:
        blob.reshape(4, 2)
        blob.cpu_data()
        blob.gpu_data()
    assert [] == looks
    (blob.mutable_gpu_data if accessor == "cpu_data" else blob.mutable_cpu_data)()

    assert ["fill_with_poison"] == looks
    assert {POISON} == {*(kept.get() if accessor == "gpu_data" else kept).tolist()}


def test_a_view_on_the_fresh_side_costs_nothing(looks: list[str]) -> None:
    for name in ("cpu_data", "gpu_data"):
        memory = simulated()
        kept = getattr(memory, f"mutable_{name}")()[1:]
        assert 0 == passes_of(looks, getattr(memory, name))
        assert SIZE - 1 == len(kept)


def test_a_view_on_a_stale_side_costs_a_pass_when_the_head_moves_and_one_a_call_if_it_can_write(
    looks: list[str],
) -> None:
    memory = simulated()
    filled, kept = memory.mutable_cpu_data()[:], None
    filled[:] = 7
    del filled
    kept = memory.gpu_data()
    assert 1 == passes_of(looks, memory.mutable_cpu_data)
    assert {POISON} == {*kept.get().tolist()}
    assert 0 == passes_of(looks, memory.cpu_data)
    kept = memory.mutable_gpu_data()
    assert 1 == passes_of(looks, memory.mutable_cpu_data)
    assert 1 == passes_of(looks, memory.cpu_data)
    del kept
    assert 1 == passes_of(looks, memory.cpu_data), "it may have been written before it was dropped"
    assert 0 == passes_of(looks, memory.cpu_data)


@pytest.fixture
def nothing_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other test has left views of memory that it has freed."""
    monkeypatch.setattr(watch, "_freed", [])


@pytest.mark.usefixtures("nothing_freed")
def test_accessors_to_read_are_ready_while_nothing_has_to_be_compared() -> None:
    memory: Any = simulated()

    def ready() -> tuple[bool, ...]:
        names = "_read_cpu", "_write_cpu", "_read_gpu", "_write_gpu"
        return tuple(getattr(memory, name) is not None for name in names)

    memory.mutable_cpu_data()
    assert (True, False, False, False) == ready()
    memory.gpu_data()
    assert (True, False, True, False) == ready()
    kept = memory.mutable_cpu_data()[:]
    memory.gpu_data()
    assert (False, False, False, False) == ready()
    del kept
    memory.gpu_data()
    assert (True, False, True, False) == ready()


def test_a_memory_with_ready_accessors_tells_of_memory_that_is_freed_while_somebody_has_a_view(place: Any) -> None:
    ready, memory = (SyncedMemory(SIZE, device=place, checked=True) for _ in range(2))
    ready.mutable_cpu_data()
    ready.cpu_data()
    kept = memory.mutable_cpu_data()[:]
    memory.close()
    kept[3] = 9
    with pytest.raises(StaleWriteError) as caught:
        ready.cpu_data()
    assert (True, 3, SyncedHead.HEAD_AT_CPU) == (caught.value.freed, caught.value.position, ready.head)


@pytest.mark.usefixtures("nothing_freed")
def test_who_only_reads_freed_memory_costs_others_nothing(looks: list[str]) -> None:
    ready, memory = simulated(), simulated()
    ready.mutable_cpu_data()
    memory.mutable_cpu_data()
    kept = memory.cpu_data()
    memory.close()
    assert 0 == passes_of(looks, ready.cpu_data)
    state: Any = ready
    assert state._read_cpu is not None
    assert SIZE == len(kept)


# --- where nobody knows who has a view


class Keeps:
    """Keeps a released block for the next request, and has views of it counted as an allocator that keeps none."""

    kept: Any = None

    def allocate(self, byte_size: int) -> Any:
        block, self.kept = self.kept, None
        below: Any = super()
        return below.allocate(byte_size) if block is None else block

    def release(self, ptr: Any) -> None:
        self.kept = ptr


class Keeping(Keeps, CPUDeviceAllocator):
    """On the host."""


class KeepingOnDevice(Keeps, SimulatedDeviceAllocator):
    """On the simulated device."""


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_a_writer_who_is_left_from_an_unchecked_owner_of_the_block_is_told(on_device: bool) -> None:
    host, device = Keeping(), KeepingOnDevice()
    with SyncedMemory(SIZE, host=host, pinned=host, device=device, checked=False) as before:
        late = before.mutable_gpu_data() if on_device else before.mutable_cpu_data()[:]
    memory: Any = SyncedMemory(SIZE, host=host, pinned=host, device=device, checked=True)
    (memory.mutable_gpu_data if on_device else memory.mutable_cpu_data)()
    (memory.cpu_data if on_device else memory.gpu_data)()
    fill(late, 9)
    with pytest.raises(StaleWriteError):
        memory.cpu_data()


def test_a_python_that_does_not_count_compares_always(looks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_COUNTS", False)
    memory = simulated()
    memory.mutable_cpu_data()

    assert (1, 2) == (passes_of(looks, memory.gpu_data), passes_of(looks, memory.gpu_data))


@pytest.mark.parametrize("make", [partial(SyncedMemory, SIZE), partial(Blob, (SIZE,), np.uint8)])
def test_an_address_that_outlives_its_array_is_told_if_every_call_compares(
    place: Any, make: Callable[..., Any]
) -> None:
    memory = make(device=place, checked="always")
    address = memory.mutable_cpu_data().ctypes.data
    memory.gpu_data()
    memory.gpu_data()
    ctypes.memset(address, 9, 1)
    with pytest.raises(StaleWriteError, match="byte 0 of the host side was written"):
        memory.gpu_data()


@pytest.mark.parametrize("wrong", ["Always", "always ", b"always", "1", 1, 2.0, ["always"]])
def test_another_value_is_refused(wrong: Any) -> None:
    for make in (partial(SyncedMemory, SIZE), partial(Blob, (SIZE,))):
        with pytest.raises(InvalidArgumentError, match="checked must be True, False or 'always', got"):
            make(checked=wrong)


def test_a_call_that_is_refused_after_a_write_was_told_accuses_nobody_of_another_one(place: Any) -> None:
    """The two sides differ then, and stay as they are."""
    memory: Any = SyncedMemory(SIZE, device=place, checked="always")
    kept = memory.mutable_cpu_data()[:]
    memory.gpu_data()
    kept[3] = 9
    with pytest.raises(StaleWriteError):
        memory.gpu_data()
    with pytest.raises(IllegalCallError):
        memory.async_gpu_push(stream=place.stream())
    memory.gpu_data()
    kept[3] = 8
    with pytest.raises(StaleWriteError):
        memory.gpu_data()


# --- memory that was freed


def freed(place: Any) -> Any:
    """What somebody has of memory that was freed; views of the page-locked memory of CUDA are not counted."""
    host = CPUDeviceAllocator()
    where: Any = {"host": host, "pinned": host} if place.device_type is DeviceType.CUDA else {}
    with SyncedMemory(SIZE, device=place, checked=True, **where) as memory:
        return memory.mutable_cpu_data()[1:]


def test_who_writes_to_freed_memory_and_drops_his_view_is_told(place: Any) -> None:
    kept = freed(place)
    kept[2] = 9
    del kept
    with pytest.raises(StaleWriteError) as caught:
        SyncedMemory(SIZE, device=place, checked=True).cpu_data()
    assert (True, 3) == (caught.value.freed, caught.value.position)
    SyncedMemory(SIZE, device=place, checked=True).cpu_data()


def test_freed_memory_of_which_nobody_has_a_view_any_more_is_not_looked_at(place: Any) -> None:
    """The simulated device keeps freed blocks for a while."""
    gc.collect()
    known = watch._freed  # pyright: ignore[reportPrivateUsage] -- what is looked at
    before = len(known)
    kept = freed(place)
    assert before + 1 == len(known)
    del kept

    assert before == len(known)


def test_a_release_that_is_refused_is_no_end_of_the_right_to_write(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory: Any = SyncedMemory(SIZE, device=place, host=CPUDeviceAllocator(), pinned=CPUDeviceAllocator(), checked=True)
    kept, owner = memory.mutable_cpu_data()[:], memory._sides.cpu.owner
    with monkeypatch.context() as patch:
        patch.setattr(owner, "release", failing(RuntimeError, "dead"))
        with pytest.raises(ReleaseError):
            memory.close()
    kept[:] = 4
    assert {4} == {*memory.gpu_data().get().tolist()}
    memory.close()
    SyncedMemory(SIZE, device=place, checked=True).cpu_data()
