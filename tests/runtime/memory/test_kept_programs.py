"""Whole programs under checked mode: wrong ones are told or show poison, right ones run as they do without it."""

from __future__ import annotations

import gc
import math
import sys
import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from kept import PROGRAMS
from subjects import SIZE, devices

from syncedmem.model import StaleWriteError, SyncedMemoryError
from syncedmem.model.interface import DeviceType, MemcpyKind
from syncedmem.runtime import (
    Buffer,
    CPUDeviceAllocator,
    FailingAllocator,
    LimitingAllocator,
    PoolAllocator,
    SyncedMemory,
)
from syncedmem.runtime.allocators.late_writes import POISON
from syncedmem.runtime.memory import watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(params=devices(), ids=lambda place: str(place.device_type.name))
def place(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device on which no work is left behind, because queued work may use bytes that would be filled."""
    yield request.param
    request.param.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, None, need_sync=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_view_that_is_kept_is_told_or_shows_poison(place: Any, name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told = True
        try:
            _, got = PROGRAMS[name](place, False)
            told = math.isnan(got) or got == POISON
        except (StaleWriteError, ValueError):  # ValueError: the view is read-only by now
            pass
        gc.collect()

    assert told or any(item.category is RuntimeWarning for item in caught)


@pytest.mark.parametrize("name", PROGRAMS)
def test_who_asks_again_is_told_nothing_and_gets_what_he_wrote(place: Any, name: str) -> None:
    expected, got = PROGRAMS[name](place, True)
    gc.collect()

    assert expected == got


# --- memory that was freed, without a pool


def test_a_write_to_freed_memory_is_told_once_by_any_checked_memory(place: Any) -> None:
    with SyncedMemory(SIZE, device=place, checked=True) as memory:
        kept = memory.mutable_cpu_data()[3:]
    other = SyncedMemory(SIZE, device=place, checked=True)
    other.cpu_data()
    kept[1] = 9
    head = other.head
    with pytest.raises(StaleWriteError) as caught:
        other.gpu_data()
    assert other.head is head

    error = caught.value
    assert ("host", 4, True) == (error.side, error.position, error.freed)
    assert error.taken is not None
    assert "mutable_cpu_data" == error.taken.call
    other.cpu_data()
    kept[1] = 8
    other.close()


def test_freed_memory_is_not_kept_for_the_check(place: Any) -> None:
    before = len(watch._freed)  # pyright: ignore[reportPrivateUsage] -- what is left behind
    with SyncedMemory(SIZE, device=place, host=CPUDeviceAllocator(), pinned=CPUDeviceAllocator(), checked=True) as item:
        kept = item.mutable_cpu_data()[1:]
    with SyncedMemory(SIZE, device=place, checked=True) as item:
        item.mutable_cpu_data()
    assert before + 1 == len(watch._freed)  # pyright: ignore[reportPrivateUsage] -- as above
    del kept, item
    gc.collect()

    assert before == len(watch._freed)  # pyright: ignore[reportPrivateUsage] -- as above


# --- what a program without faults sees


def _write_host(memory: Any, value: int) -> None:
    memory.mutable_cpu_data()[:] = value


def _read_device(memory: Any) -> object:
    return memory.gpu_data().get().tolist()


def _write_device(memory: Any, value: int) -> None:
    memory.mutable_gpu_data().set(np.full(SIZE, value, np.uint8))


def _read_host(memory: Any) -> object:
    return memory.cpu_data().tolist(), memory.head


def _outcomes(place: Any, limit: int, operation: str, at: int | None, checked: bool) -> list[object]:
    """What a program sees that goes on after each error: its numbers, its errors, and what is left at the end."""
    failing = FailingAllocator(place, operation=operation, at=at)
    device, host = PoolAllocator(LimitingAllocator(failing, limit)), PoolAllocator(CPUDeviceAllocator())
    make = partial(SyncedMemory, SIZE, host=host, pinned=host, device=device, checked=checked)
    memories: list[SyncedMemory] = []
    seen: list[object] = []

    def step(act: Callable[[], object]) -> None:
        try:
            seen.append(act())
        except SyncedMemoryError as error:
            seen.append(type(error))

    for number in range(4):
        memory: Any = make()
        memories.append(memory)
        step(partial(_write_host, memory, number))
        step(partial(_read_device, memory))
        step(partial(_write_device, memory, number + 9))
        step(partial(_read_host, memory))
        if number == 2:
            step(memories[0].close)
    for memory in memories:
        step(memory.close)
    step(lambda: Buffer(SIZE, device, checked=checked).close())
    return [*seen, device.live_blocks, device.idle_bytes, host.live_blocks, host.idle_bytes]


@pytest.mark.parametrize("operation", ["allocate", "release", "memcpy", "memset_zero"])
@pytest.mark.parametrize("limit", [SIZE, 2 * SIZE, 1 << 20])
def test_a_program_that_has_no_room_or_fails_ends_as_it_does_without_checks(
    place: Any, limit: int, operation: str
) -> None:
    for at in (None, *range(1, 14)):
        assert _outcomes(place, limit, operation, at, False) == _outcomes(place, limit, operation, at, True), at


class TooLarge:
    """Bytes of which no copy can be made."""

    def __getitem__(self, part: slice) -> TooLarge:
        return self

    def copy(self) -> Any:
        raise MemoryError


def _too_large(*_: object) -> TooLarge:
    return TooLarge()


def test_a_check_that_finds_no_memory_is_left_out(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = SyncedMemory(SIZE, device=place, checked=True)
    memory.mutable_cpu_data()[:] = 7
    with monkeypatch.context() as patch:
        patch.setattr(watch, "read_bytes", _too_large)
        memory.gpu_data()
        memory.cpu_data()

    assert {7} == {*memory.gpu_data().get().tolist()}


def test_threads_with_memories_of_their_own_do_not_disturb_each_other(place: Any) -> None:
    """One adopts, which the others look at before they poison a side; and one writes through a view it may write."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(40):
                memory = SyncedMemory(SIZE, device=place, checked=True)
                if number % 2:
                    memory.set_cpu_data(np.full(SIZE, turn, np.uint8))
                else:
                    memory.mutable_cpu_data()[:] = turn
                assert {turn} == {*memory.gpu_data().get().tolist()}
                memory.mutable_gpu_data()
                memory.cpu_data()
                memory.close()
        except BaseException as error:  # noqa: BLE001 -- shown by the test
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert [] == failures


def test_a_call_looks_at_each_side_once_and_a_move_at_one_side_once_more(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What docs/concepts.md says of the costs: reads and fills of a whole side, for each call of a round."""
    assert [(1, 0), (2, 0), (2, 1), (2, 0), (2, 1)] == _passes(place, monkeypatch, "always")


def test_a_call_looks_at_no_side_of_which_nobody_has_a_view(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which sides can have views that nobody knows of, docs/concepts.md says."""
    device_only, both = [(1, 0), (1, 0), (1, 0), (1, 0), (1, 1)], [(1, 0), (2, 0), (2, 1), (2, 0), (2, 1)]
    expected = {DeviceType.SIMULATED: [(0, 0)] * 5, DeviceType.OPENCL: device_only, DeviceType.CUDA: both}

    assert expected[place.device_type] == _passes(place, monkeypatch, True)


def _passes(place: Any, monkeypatch: pytest.MonkeyPatch, checked: Any) -> list[tuple[int, int]]:
    """How often each call of a round reads a whole side, and fills one, if no view is kept."""
    passes: list[str] = []

    def counted(name: str) -> None:
        work: Callable[..., Any] = getattr(watch, name)

        def count(*arguments: Any) -> Any:
            passes.append(name)
            return work(*arguments)

        monkeypatch.setattr(watch, name, count)

    for name in ("read_bytes", "fill_with_poison"):
        counted(name)
    memory = SyncedMemory(SIZE, device=place, checked=checked)
    memory.mutable_cpu_data()
    found: list[tuple[int, int]] = []
    for call in (memory.gpu_data, memory.gpu_data, memory.mutable_gpu_data, memory.cpu_data, memory.mutable_cpu_data):
        passes.clear()
        call()
        found.append((passes.count("read_bytes"), passes.count("fill_with_poison")))
    return found


def test_a_line_names_the_caller_of_a_function_that_wraps_the_call(place: Any) -> None:
    memory = SyncedMemory(SIZE, device=place, checked=True)

    def wrapped() -> Any:
        return memory.mutable_cpu_data()[:]

    def keep() -> Any:
        return wrapped()

    kept = keep()
    memory.gpu_data()
    kept[0] = 9
    with pytest.raises(StaleWriteError) as caught:
        memory.gpu_data()

    taken: Any = caught.value.taken
    assert ("mutable_cpu_data", "wrapped") == (taken.call, taken.outer.call)
    assert taken.number < taken.outer.number
    assert taken.outer.outer is None
