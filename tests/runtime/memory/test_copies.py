"""Copies are counted, listed with the lines that cause them, and refused inside of a block that allows none."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, devices, failing, filled

from syncedmem import Mode, copies, no_copies, using_mode
from syncedmem.model import CopyRefusedError, DeviceError, InvalidArgumentError, SyncedHead
from syncedmem.model.interface import DeviceType
from syncedmem.runtime import Blob, CPUDeviceAllocator, PoolAllocator, SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).name


@pytest.fixture(params=devices(), ids=lambda place: str(place.device_type.name))
def anywhere(request: pytest.FixtureRequest) -> SyncedMemory:
    """A memory on each device of this machine, with a fresh host side."""
    return filled(SyncedMemory(SIZE, device=request.param))


def test_a_memory_counts_its_copies(anywhere: SyncedMemory) -> None:
    device: Any = anywhere.device
    assert (0, 0, 0) == anywhere.copies
    anywhere.gpu_data()
    anywhere.gpu_data()
    anywhere.mutable_gpu_data()
    anywhere.cpu_data()
    anywhere.mutable_cpu_data()
    anywhere.async_gpu_push(stream=device.stream())

    assert (2, 1, 3 * SIZE) == anywhere.copies == (anywhere.copies.up, anywhere.copies.down, anywhere.copies.bytes)


def test_a_copy_that_fails_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimulatedDeviceAllocator()
    memory = filled(SyncedMemory(SIZE, device=device))
    with monkeypatch.context() as patch, copies() as log:
        patch.setattr(device, "memcpy", failing(RuntimeError, "dead"))
        with pytest.raises(DeviceError):
            memory.gpu_data()

    assert ((0, 0, 0), []) == (memory.copies, log.entries)


def test_a_log_has_each_copy_with_its_line(anywhere: SyncedMemory) -> None:
    with copies() as log:
        anywhere.gpu_data()
        anywhere.gpu_data()
        anywhere.mutable_gpu_data()
        anywhere.cpu_data()
    anywhere.mutable_cpu_data()
    anywhere.gpu_data()

    assert (1, 1, 2 * SIZE, 1) == (log.up, log.down, log.bytes, log.allocations)
    assert ["allocation", "up", "down"] == [entry.what for entry in log.entries]
    assert ["gpu_data", "gpu_data", "cpu_data"] == [entry.line.call for entry in log.entries]
    assert {HERE} == {Path(entry.line.file).name for entry in log.entries}
    assert log.entries[1].line.number < log.entries[2].line.number
    assert f"1 up, 1 down, {2 * SIZE} bytes; 1 allocations" == str(log).splitlines()[-1]


@pytest.mark.parametrize("name", ["gpu_data", "async_gpu_push"])
def test_where_no_copies_may_be_the_call_is_refused_and_nothing_has_changed(anywhere: SyncedMemory, name: str) -> None:
    device: Any = anywhere.device
    options = {"stream": device.stream()} if name == "async_gpu_push" else {}
    with no_copies(), pytest.raises(CopyRefusedError) as caught:
        getattr(anywhere, name)(**options)

    error = caught.value
    assert ("up", SIZE, False) == (error.copy.what, error.copy.byte_size, error.copy.to_write)
    assert (name, HERE) == (error.copy.line.call, Path(error.copy.line.file).name)
    assert ("copies", 1, 0, None) == (error.unit, error.count, error.limit, error.last)
    assert isinstance(error, RuntimeError)
    assert (SyncedHead.HEAD_AT_CPU, False, (0, 0, 0)) == (anywhere.head, anywhere.own_gpu_data, anywhere.copies)
    assert [7] * SIZE == anywhere.gpu_data().get().tolist()


def test_calls_that_copy_nothing_are_allowed(anywhere: SyncedMemory) -> None:
    anywhere.gpu_data()
    with no_copies(allocations=0, at_most=0) as log:
        anywhere.gpu_data()
        anywhere.cpu_data()
        anywhere.mutable_gpu_data()
        anywhere.set_cpu_data(bytearray(SIZE))
    with no_copies(at_most=0) as other:
        SyncedMemory(SIZE, device=anywhere.device).gpu_data()

    assert [] == log.entries
    assert ["allocation"] == [entry.what for entry in other.entries]


LIMITS: list[tuple[dict[str, int], list[str], tuple[str, str, int, int]]] = [
    ({"allocations": 0}, [], ("gpu_data", "allocations", 1, 0)),
    ({"at_most": 2}, ["up", "down"], ("gpu_data", "copies", 3, 2)),
    ({"bytes": 2 * SIZE}, ["up", "down"], ("gpu_data", "bytes", 3 * SIZE, 2 * SIZE)),
    ({"bytes": 3 * SIZE - 1}, ["up", "down"], ("gpu_data", "bytes", 3 * SIZE, 3 * SIZE - 1)),
    ({"up": 1}, ["up", "down"], ("gpu_data", "copies up", 2, 1)),
    ({"down": 1}, ["up", "down", "up"], ("cpu_data", "copies down", 2, 1)),
    ({"up": 3, "down": 0, "bytes": 3 * SIZE}, ["up"], ("cpu_data", "copies down", 1, 0)),
    ({"up": 3, "down": 1, "bytes": 2 * SIZE}, ["up", "down"], ("gpu_data", "bytes", 3 * SIZE, 2 * SIZE)),
]
"""Limits, the copies that they allow, and the call that is refused then, with the unit, the count and the limit."""


@pytest.mark.parametrize(("limits", "allowed", "refused"), LIMITS)
def test_so_many_copies_are_allowed(
    anywhere: SyncedMemory, limits: dict[str, int], allowed: list[str], refused: tuple[str, str, int, int]
) -> None:
    """Limits hold together, and a refused call is refused again."""
    call, *told = refused
    with no_copies(**limits) as log:
        for way in allowed:
            (anywhere.mutable_gpu_data if way == "up" else anywhere.mutable_cpu_data)()
        for _ in range(2):
            with pytest.raises(CopyRefusedError) as caught:
                getattr(anywhere, call)()
            assert told == [caught.value.unit, caught.value.count, caught.value.limit]
            assert (allowed[-1] if allowed else None) == (caught.value.last and caught.value.last.what)

    assert allowed == [copy.what for copy in log.entries if copy.what != "allocation"]


def test_blocks_inside_of_each_other_all_count(anywhere: SyncedMemory) -> None:
    with copies() as outer, no_copies(at_most=1) as inner:
        anywhere.gpu_data()
        anywhere.mutable_cpu_data()
        with pytest.raises(CopyRefusedError):
            anywhere.gpu_data()

    assert (1, 1) == (outer.up, inner.up)


def test_a_function_can_be_decorated_and_each_call_begins_anew(anywhere: SyncedMemory) -> None:
    @no_copies(at_most=1)
    def step() -> None:
        anywhere.mutable_cpu_data()
        anywhere.gpu_data()

    step()
    step()
    assert 2 == anywhere.copies.up


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("function", [coroutine, generator])
def test_what_runs_after_its_call_is_not_decorated(function: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        no_copies()(function)


def test_a_copy_of_a_blob_to_another_device_counts_in_both_directions() -> None:
    source, target = (Blob(4, device=SimulatedDeviceAllocator()) for _ in range(2))
    source.mutable_gpu_data()
    with using_mode(Mode.GPU), copies() as log:
        target.copy_from(source)
    assert (1, 1, 32) == (log.down, log.up, log.bytes)

    source.mutable_gpu_data()
    target.mutable_cpu_data()
    with using_mode(Mode.GPU), no_copies(at_most=1), pytest.raises(CopyRefusedError):
        target.copy_from(source)
    assert SyncedHead.HEAD_AT_CPU is target.data_memory.head


def test_other_threads_are_not_guarded(anywhere: SyncedMemory) -> None:
    with no_copies():
        thread = threading.Thread(target=anywhere.gpu_data)
        thread.start()
        thread.join()

    assert 1 == anywhere.copies.up


def test_a_log_is_entered_once() -> None:
    log = copies()
    with log, pytest.raises(InvalidArgumentError):
        log.__enter__()
    with pytest.raises(InvalidArgumentError), log:
        pytest.fail("inside")


@pytest.mark.parametrize("name", ["at_most", "bytes", "allocations", "up", "down"])
@pytest.mark.parametrize("value", [-1, 1.5, "2", True])
def test_a_wrong_limit_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} must be"):
        no_copies(**{name: value})


def test_a_copy_before_a_write_says_so(anywhere: SyncedMemory) -> None:
    """Whether the caller overwrites all of it, unread, nobody can see."""
    with copies() as log:
        anywhere.gpu_data()
        anywhere.mutable_gpu_data()
        anywhere.mutable_cpu_data()
        anywhere.mutable_gpu_data()

    assert [("up", False), ("down", True), ("up", True)] == [
        (entry.what, entry.to_write) for entry in log.entries if entry.what != "allocation"
    ]


def test_a_line_names_what_the_program_calls(anywhere: SyncedMemory) -> None:
    """Of a blob too.  What a blob does by itself is no view that the program could overwrite unread."""
    blob, other = Blob((4,), device=anywhere.device), Blob((4,), device=anywhere.device)
    other.mutable_gpu_data()
    blob.data = [1, 2, 3, 4]
    blob.gpu_data()
    blob.mutable_cpu_data()
    blob.mutable_cpu_diff()
    with copies() as log:
        blob.mutable_gpu_diff()
        blob.mutable_cpu_diff()
        blob.gpu_data()
        blob.mutable_gpu_data()
        repr(blob.data)
        blob.mutable_gpu_data()
        np.asarray(blob)
        blob.mutable_cpu_data()
        blob.copy_from(other)
    calls = [(entry.line.call, entry.to_write) for entry in log.entries if entry.what != "allocation"]

    assert [("mutable_gpu_diff", True), ("mutable_cpu_diff", True), ("gpu_data", False), ("data", False)] == calls[:4]
    assert [("__array__", False), ("copy_from", False)] == calls[4:]


# --- pageable memory


def matters(device: Any) -> bool:
    """Whether a device has page-locked memory of its own, so that it makes a difference."""
    return device.device_type is not DeviceType.OPENCL


def test_copies_with_page_locked_memory_are_told_from_those_with_pageable(anywhere: SyncedMemory) -> None:
    """The device is asked for the bytes themselves: a slice of a block, or memory of a pool, is what the block is."""
    device: Any = anywhere.device
    mine = np.zeros(SIZE, np.uint8)
    locked = device.pinned_host().allocate(2 * SIZE)
    with PoolAllocator(device.pinned_host()) as pool, copies() as log:
        pooled: Any = pool.allocate(SIZE)
        anywhere.gpu_data()
        for buffer in (mine, locked[SIZE:], pooled):
            anywhere.set_cpu_data(buffer)
            anywhere.gpu_data()
        anywhere.mutable_gpu_data()
        anywhere.cpu_data()
        pool.release(pooled)
    expected = [False, True, False, False, False] if matters(device) else [None] * 5

    assert expected == [entry.pageable for entry in log.entries if entry.what != "allocation"]
    assert (int(matters(device)), None) == (log.pageable, log.entries[0].pageable)
    assert matters(device) is ("with pageable memory" in str(log))


def test_memory_that_is_allocated_for_a_copy_is_asked_too(anywhere: SyncedMemory) -> None:
    device: Any = anywhere.device
    memory = SyncedMemory(SIZE, device=device, pinned=CPUDeviceAllocator())
    memory.mutable_gpu_data()
    with copies() as log:
        memory.cpu_data()

    assert int(matters(device)) == log.pageable


def test_a_device_that_cannot_say_so_breaks_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimulatedDeviceAllocator()
    monkeypatch.setattr(device, "is_pageable", failing(RuntimeError, "dead"))
    memory = filled(SyncedMemory(SIZE, device=device))
    with copies() as log:
        memory.gpu_data()

    assert (1, None) == (log.up, log.entries[-1].pageable)


def test_only_memory_of_the_host_is_pageable_or_not(anywhere: SyncedMemory) -> None:
    device: Any = anywhere.device
    if matters(device):
        with pytest.raises(InvalidArgumentError):
            device.is_pageable(anywhere.gpu_data())
