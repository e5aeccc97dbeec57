"""Each adaptor by itself: what it counts, guards, logs and fails, and each way back."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from adaptors import upstreams
from heaps import Heap
from subjects import SIZE, failing

from syncedmem.model import (
    AllocationError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidSizeError,
    MemoryCorruptionError,
    NoScopeError,
)
from syncedmem.runtime import (
    CPUDeviceAllocator,
    DeviceType,
    FailingAllocator,
    GuardingAllocator,
    LimitingAllocator,
    MemcpyKind,
    PoolAllocator,
    SimulatedDeviceAllocator,
    Statistics,
    StatisticsAllocator,
    TrackingAllocator,
)
from syncedmem.runtime.allocators.pointers import address_of
from syncedmem.runtime.interop.exporter import ExportedBlock, Exporter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# --- tracking


def test_tracking_lists_what_is_out() -> None:
    tracking = TrackingAllocator(SimulatedDeviceAllocator())
    first, second, third = (tracking.allocate(size) for size in (10, 20, 30))
    tracking.release(second)

    assert [(1, 10), (3, 30)] == [(number, size) for number, _, size in tracking.outstanding_allocations]
    assert [address_of(first), address_of(third)] == [block.address for block in tracking.outstanding_allocations]
    lines = tracking.leak_report().splitlines()
    assert "40 bytes in 2 blocks are in use on simulated:0" == lines[0]
    assert [f"  #1: 10 bytes at {address_of(first):#x}", f"  #3: 30 bytes at {address_of(third):#x}"] == lines[1:]
    tracking.release(first)
    tracking.release(third)
    assert ["0 bytes in 0 blocks are in use on simulated:0"] == tracking.leak_report().splitlines()


# --- limiting


def test_a_limit_is_reached_and_not_passed() -> None:
    limiting = LimitingAllocator(CPUDeviceAllocator(), 100)
    block = limiting.allocate(60)
    with pytest.raises(AllocationError, match="60 of at most 100") as refused:
        limiting.allocate(41)
    assert ("cpu:0", 41) == (refused.value.where, refused.value.byte_size)
    other = limiting.allocate(40)

    assert (100, 100) == (limiting.limit, limiting.allocated_bytes)
    limiting.release(block)
    limiting.release(other)
    assert 0 == limiting.allocated_bytes


WRONG: list[tuple[type[Exception], Callable[[Any], object], dict[str, Any]]] = [
    (InvalidSizeError, lambda below: LimitingAllocator(below, -1), {"size": -1}),
    # Also a size that has no room for the zones of a guard.
    (InvalidSizeError, lambda below: GuardingAllocator(below).allocate(sys.maxsize), {"size": sys.maxsize}),
    (InvalidArgumentError, lambda below: FailingAllocator(below, operation="free"), {"argument": "operation"}),
    (InvalidArgumentError, lambda below: FailingAllocator(below, at=cast("Any", "2")), {"argument": "at"}),
    (InvalidArgumentError, lambda below: FailingAllocator(below, at=True), {"argument": "at"}),
    (InvalidArgumentError, lambda below: FailingAllocator(below, at=0), {"argument": "at"}),
    (InvalidArgumentError, lambda below: FailingAllocator(below, when=cast("Any", 7)), {"argument": "when"}),
]


@pytest.mark.parametrize(("error", "make", "named"), WRONG)
def test_what_is_no_size_and_no_call_is_refused_as_it_was_given(error: Any, make: Any, named: dict[str, Any]) -> None:
    with pytest.raises(error) as refused:
        make(CPUDeviceAllocator())

    assert named == {name: getattr(refused.value, name) for name in named}


# --- statistics


def test_statistics_count_what_is_out_what_was_at_most_and_all() -> None:
    counting = StatisticsAllocator(CPUDeviceAllocator())
    one, two = counting.allocate(10), counting.allocate(5)
    counting.release(one)
    three = counting.allocate(1)

    assert Statistics(6, 2, 15, 2, 16, 3) == counting.statistics
    counting.statistics.total_count = 99
    assert 3 == counting.statistics.total_count
    counting.release(two)
    counting.release(three)


def test_scopes_count_from_zero_and_are_taken_over() -> None:
    """If the outer scope has its peak while the inner one is open, its peak includes the inner one's."""
    counting = StatisticsAllocator(CPUDeviceAllocator())
    outer = counting.allocate(10)
    before = counting.push_counters()
    inner = counting.allocate(7)
    counting.release(inner)
    counting.release(outer)
    left = counting.pop_counters()

    assert Statistics(10, 1, 10, 1, 10, 1) == before
    assert Statistics(-10, -1, 7, 1, 7, 1) == left
    assert Statistics(0, 0, 17, 2, 17, 2) == counting.statistics
    with pytest.raises(NoScopeError, match="pop_counters: there is no scope to leave"):
        counting.pop_counters()


def test_a_scope_with_less_than_the_peak_around_it_leaves_that() -> None:
    counting = StatisticsAllocator(CPUDeviceAllocator())
    for size in (5, 6):
        counting.release(counting.allocate(size))
    with counting.scope():
        pass

    assert Statistics(0, 0, 6, 1, 11, 2) == counting.statistics


def test_a_scope_is_a_with_block_and_keeps_its_figures() -> None:
    counting = StatisticsAllocator(CPUDeviceAllocator())
    with counting.scope() as outside:
        with suppress(AllocationError), counting.scope() as inside:
            counting.release(counting.allocate(3))
            raise AllocationError("here", 1)
        kept = counting.allocate(4)
        seen = outside.total_bytes
    counting.release(kept)

    assert Statistics(0, 0, 3, 1, 3, 1) == inside
    assert (7, Statistics(4, 1, 4, 1, 7, 2)) == (seen, outside)
    assert Statistics(0, 0, 4, 1, 7, 2) == counting.statistics


# --- failing


def is_even(size: int) -> bool:
    """A condition for which a call fails."""
    return size % 2 == 0


def twice_the_threes(size: int) -> int:
    """A condition that is no bool."""
    return size // 3 * 2


def outcomes(failing: FailingAllocator, sizes: Sequence[int]) -> list[bool]:
    """For each allocation, whether it failed."""
    failed: list[bool] = []
    for size in sizes:
        try:
            failing.release(failing.allocate(size))
        except AllocationError as error:
            assert "told to fail" in str(error)  # noqa: PT017 -- of many calls
            failed.append(True)
        else:
            failed.append(False)
    return failed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [False] * 5),
        ({"at": 3}, [False, False, True, False, False]),
        ({"when": is_even}, [False, True, False, True, False]),
        ({"when": twice_the_threes}, [False, False, True, True, True]),
        ({"at": 1, "when": is_even}, [True, True, False, True, False]),
    ],
)
def test_calls_fail_where_they_are_told_to(options: dict[str, Any], expected: list[bool]) -> None:
    upstream = CPUDeviceAllocator()
    failing = FailingAllocator(upstream, **options)

    assert expected == outcomes(failing, [1, 2, 3, 4, 5])
    assert (5, sum(expected), 0) == (failing.calls, failing.failures, upstream.live_blocks)


@pytest.mark.parametrize("operation", ["release", "memcpy", "memset_zero"])
def test_other_calls_can_fail_too(operation: str) -> None:
    upstream = CPUDeviceAllocator()
    failing = FailingAllocator(upstream, operation=operation, at=1)
    block = failing.allocate(SIZE)
    arguments = {"release": (block,), "memcpy": (np.ones(SIZE, np.uint8), block, SIZE), "memset_zero": (block, SIZE)}
    with pytest.raises(DeviceError) as told:
        getattr(failing, operation)(*arguments[operation])

    assert (operation, "cpu:0", 1) == (told.value.operation, told.value.where, upstream.live_blocks)
    getattr(failing, operation)(*arguments[operation])


# --- guarding


def around(block: Any, reach: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The host memory around a block, from before it to after it, as a wrong pointer could reach it."""
    import ctypes

    start, size = block.ctypes.data - reach, block.size + 2 * reach
    return np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8)


@pytest.mark.parametrize("where", [0, -1])
@pytest.mark.parametrize("found_by", ["release", "check"])
def test_a_write_around_a_block_is_found(where: int, found_by: str) -> None:
    """It holds for writes before the block and after it; the block is not released."""
    upstream = CPUDeviceAllocator()
    guarding = GuardingAllocator(upstream)
    block: Any = guarding.allocate(SIZE)
    zone = around(block, 1)
    was, zone[where] = int(zone[where]), 0
    with pytest.raises(MemoryCorruptionError, match="cpu:0: somebody wrote into the red zone of a block of 48 bytes"):
        guarding.release(block) if found_by == "release" else guarding.check()

    assert 1 == upstream.live_blocks
    zone[where] = was
    guarding.release(block)
    guarding.check()


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
def test_a_write_into_a_released_block_is_found(upstream: Any) -> None:
    """The write goes through an array that somebody kept, on every device; memory is poisoned, new and released."""
    guarding, before = GuardingAllocator(upstream), upstream.live_blocks
    block = guarding.allocate(SIZE)
    assert {0xA5} == bytes_in(block)
    guarding.release(block)
    assert {0xDD} == bytes_in(block)
    guarding.check()
    kind = MemcpyKind.CPU2CPU if upstream.device_type is DeviceType.CPU else MemcpyKind.CPU2CUDA
    guarding.memcpy(np.zeros(1, np.uint8), block, 1, kind)

    for call in (guarding.check, guarding.clear):
        with pytest.raises(MemoryCorruptionError) as told:
            call()
        assert (upstream.name, SIZE) == (told.value.where, told.value.byte_size)
    guarding.clear()
    assert before == upstream.live_blocks


def bytes_in(block: Any) -> set[int]:
    """The values of the bytes of a block, on a device or on the host."""
    return {*(block.get() if hasattr(block, "get") else block).tolist()}


def test_the_quarantine_keeps_the_last_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest blocks leave, and are checked once more; a block that is too large is released at once."""
    upstream = CPUDeviceAllocator()
    monkeypatch.setattr("syncedmem.runtime.allocators.guards._QUARANTINE", 100)
    guarding = GuardingAllocator(upstream)
    spoilt, second, third, large = (guarding.allocate(size) for size in (50, 50, 60, 101))
    guarding.release(spoilt)
    guarding.release(second)
    assert 4 == upstream.live_blocks
    assert spoilt is not None
    spoilt[3] = 0
    with pytest.raises(MemoryCorruptionError, match="after its release into a block of 50 bytes"):
        guarding.release(third)
    assert 3 == upstream.live_blocks
    guarding.release(third)
    assert 2 == upstream.live_blocks
    guarding.release(large)
    assert 1 == upstream.live_blocks


def test_the_quarantine_makes_room_when_the_upstream_is_full() -> None:
    """If the quarantine is empty, there is no room."""
    device = SimulatedDeviceAllocator(capacity=2100)
    guarding = GuardingAllocator(device)
    guarding.release(guarding.allocate(1500))
    block = guarding.allocate(1500)
    with pytest.raises(AllocationError, match="2012 of 2100 bytes are in use"):
        guarding.allocate(1500)

    guarding.release(block)


def test_a_guard_that_nobody_uses_any_more_gives_back_what_it_kept() -> None:
    """It reports damage that it finds, and tries again what failed once."""
    device = SimulatedDeviceAllocator()
    for spoil, stuck in ((False, False), (True, False), (False, True)):
        guarding = GuardingAllocator(device)
        blocks: list[Any] = [guarding.allocate(SIZE), guarding.allocate(SIZE)]
        for block in blocks:
            guarding.release(block)
        if spoil:
            guarding.memcpy(np.zeros(1, np.uint8), blocks[0], 1, MemcpyKind.CPU2CUDA)
        if stuck:
            device.fail_at(1, "release")
        with pytest.warns(ResourceWarning, match="after its release") if spoil else nullcontext():
            del guarding
            gc.collect()
        assert 0 == device.live_blocks


def test_a_guard_that_cannot_give_back_what_it_kept_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimulatedDeviceAllocator()
    guarding = GuardingAllocator(device)
    guarding.release(guarding.allocate(SIZE))
    monkeypatch.setattr(device, "release", failing(RuntimeError, "dead"))
    with pytest.warns(ResourceWarning, match="dead"):
        del guarding

    assert 1 == device.live_blocks


def test_a_guard_that_cannot_be_set_up_gives_the_block_back() -> None:
    device = SimulatedDeviceAllocator()
    device.fail_at(1, "memcpy")
    with pytest.raises(Exception, match="told to fail"):
        GuardingAllocator(device).allocate(SIZE)

    assert 0 == device.live_blocks


# --- interrupts and failures on the way back


class Moody(CPUDeviceAllocator):
    """Host memory whose next calls of some kind are interrupted, before or after they have done their work."""

    before: type[BaseException] | None = None
    after_copies = -1

    def release(self, ptr: Any) -> None:
        if self.before is not None:
            raise self.before
        super().release(ptr)

    def memcpy(self, *arguments: Any, **named: Any) -> None:
        super().memcpy(*arguments, **named)
        self.after_copies -= 1
        if not self.after_copies:
            raise KeyboardInterrupt


def test_a_block_that_cannot_pass_through_a_pool_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error of the upstream the pool keeps it for later."""
    heap = Heap(bottom=Moody())
    monkeypatch.setattr("syncedmem.runtime.allocators.pool._IDLE_LIMIT", 10)
    heap.stack = PoolAllocator(heap.bottom)
    heap.with_blocks(SIZE)
    heap.bottom.before = MemoryError
    heap.release(0)
    heap.bottom.before = None

    assert not heap.out
    heap.check()
    heap.finish()


class Reticent(Moody):
    """It does not say which of its blocks are live, as allocators of others."""

    def _is_live(self, ptr: Any) -> None:
        pass


def test_a_block_whose_way_through_a_pool_is_interrupted_is_lost_if_nobody_can_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The upstream may have it already, so nobody gets it again: neither its owner nor another one."""
    upstream = Reticent()
    monkeypatch.setattr("syncedmem.runtime.allocators.pool._IDLE_LIMIT", 10)
    pool = PoolAllocator(upstream)
    ptr = pool.allocate(SIZE)
    upstream.before = KeyboardInterrupt
    with pytest.warns(ResourceWarning, match=f"^{SIZE} bytes on .* may be lost"), pytest.raises(KeyboardInterrupt):
        pool.release(ptr)
    upstream.before = None

    assert (0, 0, 1) == (pool.live_blocks, pool.idle_blocks, upstream.live_blocks)
    with pytest.raises(InvalidPointerError):
        pool.release(ptr)


def test_a_block_whose_way_through_a_pool_is_interrupted_stays_with_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Moody()
    monkeypatch.setattr("syncedmem.runtime.allocators.pool._IDLE_LIMIT", 10)
    pool = PoolAllocator(upstream)
    ptr = pool.allocate(SIZE)
    upstream.before = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        pool.release(ptr)
    upstream.before = None

    assert (1, 0, 1) == (pool.live_blocks, pool.idle_blocks, upstream.live_blocks)
    pool.release(ptr)
    assert (0, 0) == (pool.live_blocks, upstream.live_blocks)


@pytest.mark.parametrize("copy", [3, 4])
def test_a_guard_that_is_interrupted_gives_its_owner_the_bytes_back(copy: int) -> None:
    """After the copy that reads the bytes, and after the one that poisons them."""
    upstream = Moody()
    guarding = GuardingAllocator(upstream)
    block: Any = guarding.allocate(SIZE)
    block[:] = 7
    upstream.after_copies = copy
    with pytest.raises(KeyboardInterrupt):
        guarding.release(block)

    assert ([7] * SIZE, 1) == (block.tolist(), guarding.live_blocks)
    guarding.release(block)


def test_a_block_stays_in_quarantine_if_it_cannot_leave() -> None:
    upstream = Moody()
    guarding = GuardingAllocator(upstream)
    guarding.release(guarding.allocate(SIZE))
    upstream.before = ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        guarding.clear()
    upstream.before = None

    guarding.clear()
    assert 0 == upstream.live_blocks


def test_a_block_whose_way_out_of_the_quarantine_is_interrupted_is_lost_if_nobody_can_tell() -> None:
    upstream = Reticent()
    guarding = GuardingAllocator(upstream)
    guarding.release(guarding.allocate(SIZE))
    upstream.before = KeyboardInterrupt
    with pytest.warns(ResourceWarning, match="bytes on .* may be lost"), pytest.raises(KeyboardInterrupt):
        guarding.clear()
    upstream.before = None

    guarding.clear()
    assert 1 == upstream.live_blocks


def test_a_block_whose_way_out_of_the_quarantine_is_interrupted_stays_there() -> None:
    upstream = Moody()
    guarding = GuardingAllocator(upstream)
    guarding.release(guarding.allocate(SIZE))
    upstream.before = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        guarding.clear()
    upstream.before = None

    guarding.clear()
    assert 0 == upstream.live_blocks


def test_a_block_that_cannot_be_taken_back_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call ends with its own error, and with a warning."""
    upstream = Moody()
    guarding = GuardingAllocator(upstream)
    upstream.before = OSError
    monkeypatch.setattr(upstream, "memcpy", failing(ZeroDivisionError))
    with pytest.warns(ResourceWarning, match="a block leaked on cpu:0: OSError"), pytest.raises(ZeroDivisionError):
        guarding.allocate(SIZE)


def test_an_exported_block_that_was_never_made_needs_no_finaliser() -> None:
    """Either there was no memory for it, or it was not made at all."""
    exporter = Exporter(CPUDeviceAllocator())
    with pytest.raises(TypeError):
        exporter.export("8")  # type: ignore[arg-type] # the point of the test
    del (block := [ExportedBlock.__new__(ExportedBlock)])[0]

    assert (0, []) == (len(exporter), block)


def test_an_address_that_cannot_be_told_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = CPUDeviceAllocator()
    exporter = Exporter(upstream)

    monkeypatch.setattr(exporter, "_start", failing(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        exporter.allocate(SIZE)

    assert (0, 0) == (len(exporter), upstream.live_blocks)


def test_what_is_released_inside_another_call_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = Heap(bottom=Moody())
    monkeypatch.setattr("syncedmem.runtime.allocators.pool._IDLE_LIMIT", 100)
    heap.stack = PoolAllocator(heap.bottom)
    heap.with_blocks(60, 60, 60)
    allocate = heap.bottom.allocate

    def allocate_and_release(byte_size: int) -> Any:
        while heap.out:
            heap.release(0)
        assert (180, 3) == (heap.stack.idle_bytes, heap.bottom.live_blocks)
        return allocate(byte_size)

    heap.bottom.allocate = allocate_and_release
    heap.allocate(500)

    assert (0, 1) == (heap.stack.idle_bytes, heap.bottom.live_blocks)
    heap.check()
    heap.stack.release(heap.out.pop())
