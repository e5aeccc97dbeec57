"""The adaptors that count: `TrackingAllocator`, `LimitingAllocator`, `StatisticsAllocator`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from adaptors import upstreams
from subjects import SIZE

from syncedmem.model import AllocationError, InvalidSizeError, NoScopeError
from syncedmem.runtime import (
    CPUDeviceAllocator,
    LimitingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    Statistics,
    StatisticsAllocator,
    SyncedMemory,
    TrackingAllocator,
)
from syncedmem.runtime.allocators.pointers import address_of

# --- tracking


def test_tracking_lists_what_is_out() -> None:
    tracking = TrackingAllocator(SimulatedDeviceAllocator())
    first, second, third = (tracking.allocate(size) for size in (10, 20, 30))
    tracking.release(second)

    assert [(1, 10, None), (3, 30, None)] == [
        (n, size, stack) for n, _, size, stack in tracking.outstanding_allocations
    ]
    assert [address_of(first), address_of(third)] == [block.address for block in tracking.outstanding_allocations]
    lines = tracking.leak_report().splitlines()
    assert "40 bytes in 2 blocks are in use on simulated:0" == lines[0]
    assert [f"  #1: 10 bytes at {address_of(first):#x}", f"  #3: 30 bytes at {address_of(third):#x}"] == lines[1:]
    tracking.release(first)
    tracking.release(third)
    assert ["0 bytes in 0 blocks are in use on simulated:0"] == tracking.leak_report().splitlines()


def test_tracking_with_stacks_says_who_allocated() -> None:
    """The innermost call is last, and there is no call of the adaptor itself."""
    tracking = TrackingAllocator(CPUDeviceAllocator(), stacks=True)

    def forgetful() -> Any:
        return tracking.allocate(5)

    kept = forgetful()
    (block,) = tracking.outstanding_allocations
    assert block.stack is not None
    assert ("forgetful", "test_tracking_with_stacks_says_who_allocated") == (block.stack[-1].name, block.stack[-2].name)
    assert tracking.leak_report().splitlines()[-1] == "        return tracking.allocate(5)"
    tracking.release(kept)
    with SyncedMemory(8, host=PoolAllocator(StatisticsAllocator(tracking)), device=None) as memory:
        memory.cpu_data()
        assert tracking.leak_report().splitlines()[-1] == "        memory.cpu_data()"


def test_addresses_are_those_of_each_kind_of_device() -> None:
    class Cuda:
        """It tells its address as CuPy's arrays do."""

        __cuda_array_interface__ = {"data": (0x1234, False)}  # noqa: RUF012 -- as there

    assert 0x1234 == address_of(Cuda())
    for allocator in upstreams():
        block = allocator.allocate(SIZE)
        assert address_of(block[5:]) == address_of(block) + 5
        allocator.release(block)


# --- limiting


def test_a_limit_that_is_no_size_is_named_as_the_limit() -> None:
    with pytest.raises(InvalidSizeError, match=r"^limit must be between 0 and \d+ bytes, got -1$"):
        LimitingAllocator(CPUDeviceAllocator(), -1)


def test_a_limit_is_reached_and_not_passed() -> None:
    limiting = LimitingAllocator(CPUDeviceAllocator(), 100)
    block = limiting.allocate(60)
    with pytest.raises(AllocationError, match="cannot allocate 41 bytes on cpu:0: 60 of at most 100 bytes are in use"):
        limiting.allocate(41)
    other = limiting.allocate(40)

    assert (100, 100) == (limiting.limit, limiting.allocated_bytes)
    limiting.release(block)
    limiting.release(other)
    assert 0 == limiting.allocated_bytes


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
