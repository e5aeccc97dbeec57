"""Copies are counted, listed with the lines that cause them, and refused inside of a block that allows none."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, devices, failing, filled

from syncedmem import copies, no_copies
from syncedmem.model import CopyRefusedError, DeviceError, InvalidArgumentError, SyncedHead
from syncedmem.runtime import Blob, SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).name


@pytest.fixture(params=devices(), ids=lambda it: str(it.device_type.name))
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
    assert ["allocation", "up", "down"] == [it.what for it in log.entries]
    assert ["gpu_data", "gpu_data", "cpu_data"] == [it.line.call for it in log.entries]
    assert {HERE} == {Path(it.line.file).name for it in log.entries}
    assert log.entries[1].line.number < log.entries[2].line.number
    assert f"1 up, 1 down, {2 * SIZE} bytes; 1 allocations" == str(log).splitlines()[-1]


def test_where_no_copies_may_be_the_call_is_refused_and_nothing_has_changed(anywhere: SyncedMemory) -> None:
    with no_copies(), pytest.raises(CopyRefusedError) as caught:
        anywhere.gpu_data()

    error = caught.value
    assert ("gpu_data", "up", SIZE) == (error.call, error.what, error.byte_size)
    assert HERE in error.line
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
    assert ["allocation"] == [it.what for it in other.entries]


@pytest.mark.parametrize("limit", [{"at_most": 2}, {"bytes": 2 * SIZE}, {"bytes": 3 * SIZE - 1}])
def test_so_many_copies_are_allowed(anywhere: SyncedMemory, limit: dict[str, int]) -> None:
    with no_copies(**limit) as log:
        anywhere.gpu_data()
        anywhere.mutable_gpu_data()
        anywhere.cpu_data()
        anywhere.mutable_cpu_data()
        for _ in range(2):
            with pytest.raises(CopyRefusedError, match=f"allows at most {next(iter(limit.values()))} "):
                anywhere.gpu_data()

    assert (1, 1) == (log.up, log.down)


def test_allocations_can_be_refused(anywhere: SyncedMemory) -> None:
    with no_copies(allocations=0), pytest.raises(CopyRefusedError) as caught:
        anywhere.gpu_data()
    assert ("allocation", SIZE) == (caught.value.what, caught.value.byte_size)


def test_a_push_is_a_copy(anywhere: SyncedMemory) -> None:
    device: Any = anywhere.device
    with no_copies(), pytest.raises(CopyRefusedError, match="async_gpu_push"):
        anywhere.async_gpu_push(stream=device.stream())

    assert anywhere.head is SyncedHead.HEAD_AT_CPU


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


@pytest.mark.parametrize("name", ["at_most", "bytes", "allocations"])
@pytest.mark.parametrize("value", [-1, 1.5, "2", True])
def test_a_wrong_limit_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} must be"):
        no_copies(**{name: value})


# --- what people waste


def _ping_pong(blob: Any) -> None:
    for _ in range(3):
        blob.mutable_cpu_data()[:] = 1
        blob.mutable_gpu_data()


def _norm_on_the_wrong_side(blob: Any) -> None:
    blob.mutable_gpu_data()
    np.linalg.norm(blob.cpu_data())


def _copied_in_each_iteration(blob: Any) -> None:
    for _ in range(3):
        blob.mutable_gpu_data()
        float(blob.cpu_data()[0])


def _looked_at(blob: Any) -> None:
    blob.mutable_gpu_data()
    repr(blob.data)


def _overwritten_unread(blob: Any) -> None:
    blob.mutable_gpu_data()
    blob.mutable_cpu_data()[:] = 0


def _on_the_device_alone(blob: Any) -> None:
    for _ in range(3):
        blob.mutable_gpu_data()
        blob.scale_data(0.5)
        blob.asum_data()


def _on_the_host_alone(blob: Any) -> None:
    blob.set_cpu_data(np.zeros(4, np.float32))
    for _ in range(3):
        blob.mutable_cpu_data()[:] = 1
        blob.scale_data(0.5)


WASTE: list[Callable[[Any], None]] = [
    _ping_pong,
    _norm_on_the_wrong_side,
    _copied_in_each_iteration,
    _looked_at,
    _overwritten_unread,
]


@pytest.fixture
def blob() -> Blob[np.float32]:
    made = Blob((4,), device=SimulatedDeviceAllocator())
    made.mutable_gpu_data()
    return made


@pytest.mark.parametrize("waste", WASTE)
def test_waste_is_found_with_its_line(blob: Any, waste: Callable[[Any], None]) -> None:
    with no_copies(), pytest.raises(CopyRefusedError) as caught:
        waste(blob)

    assert HERE in caught.value.line


@pytest.mark.parametrize("right", [_on_the_device_alone, _on_the_host_alone])
def test_programs_that_waste_nothing_are_not_stopped(blob: Any, right: Callable[[Any], None]) -> None:
    with no_copies() as log:
        right(blob)

    assert (0, 0) == (log.up, log.down)
