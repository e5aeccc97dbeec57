"""`PoolAllocator`: what is idle, when it goes back, and an upstream that gives or takes nothing."""

from __future__ import annotations

import gc
import threading
import warnings
from typing import Any

import pytest
from pools import MIB, lent_and_returned, paper_pool, pushed
from subjects import SIZE

from syncedmem.model import (
    AllocationError,
    ClosedAllocatorError,
    InvalidArgumentError,
    ReentrantCallError,
    ReleaseError,
)
from syncedmem.runtime import Buffer, CPUDeviceAllocator, PoolAllocator, SimulatedDeviceAllocator, TrackingAllocator


def test_a_trim_keeps_what_it_is_told_to() -> None:
    """The largest blocks go first, so few calls give much memory back."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 100, 3 * MIB, 200, 2 * MIB)

    assert (3 * MIB, 2 * MIB + 300) == (pool.trim(2 * MIB + 300), pool.idle_bytes)
    assert (0, 2 * MIB + 200) == (pool.trim(2 * MIB + 300), pool.trim(100))
    assert [3 * MIB, 2 * MIB, 200] == paper.released
    with pytest.raises(InvalidArgumentError, match="keep_bytes must be an integer"):
        pool.trim("1")  # type: ignore[arg-type] # the point of the test


@pytest.mark.parametrize("finish", [PoolAllocator.trim, PoolAllocator.close])
def test_a_block_that_the_upstream_does_not_take_stays_idle(finish: Any) -> None:
    """The other blocks go, the first error is raised, and another trim tries again."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 1, 2, 3)
    paper.stubborn = {2, 3}
    with pytest.raises(ReleaseError, match="failed on paper:0: RuntimeError: stuck"):
        finish(pool)
    assert ([1], 5) == (paper.released, pool.idle_bytes)
    paper.stubborn.clear()
    finish(pool)
    assert ([1, 3, 2], 0) == (paper.released, pool.idle_bytes)


def test_a_release_is_no_failure_when_the_upstream_takes_nothing_back() -> None:
    """The block is released nevertheless, and is idle."""
    pool, paper = paper_pool(idle_limit=5)
    paper.stubborn = {10}
    lent_and_returned(pool, 10)

    assert (10, 0) == (pool.idle_bytes, pool.live_blocks)
    paper.stubborn.clear()


def test_a_closed_pool_lends_nothing_and_takes_back_what_it_lent() -> None:
    """A block that is released goes to the upstream at once, after the work on it."""
    device = SimulatedDeviceAllocator()
    pool, stream = PoolAllocator(device), device.stream()
    kept, gone = pool.allocate(SIZE), pool.allocate(SIZE)
    pool.release(gone)
    pushed(pool, kept, stream)
    pool.close()
    pool.close()
    with pytest.raises(ClosedAllocatorError, match="allocate: this allocator of memory on simulated:0 is closed"):
        pool.allocate(SIZE)
    assert (1, 1, None) == (pool.live_blocks, device.live_blocks, pool.allocate(0))
    pool.release(kept)

    assert (0, 0, 0, True) == (pool.live_blocks, device.live_blocks, pool.idle_blocks, stream.done)


def test_a_pool_that_nobody_uses_any_more_gives_back_what_is_idle() -> None:
    """It warns of blocks that were never released; they stay allocated: a leak rather than a dangling pointer."""
    device = SimulatedDeviceAllocator()
    pool = PoolAllocator(device)
    kept, gone = pool.allocate(SIZE), pool.allocate(SIZE)
    pool.release(gone)
    with pytest.warns(ResourceWarning, match="memory leaked: 1 blocks of a pool on simulated:0 were never released"):
        del pool
        gc.collect()

    assert (1, [0xA5] * SIZE) == (device.live_blocks, kept.get().tolist() if kept is not None else None)


def test_a_finaliser_that_fails_warns() -> None:
    pool, paper = paper_pool()
    lent_and_returned(pool, 2)
    paper.stubborn = {2}
    with pytest.warns(ResourceWarning, match="memory leaked: close failed on paper:0: RuntimeError: stuck"):
        del pool
        gc.collect()


def test_a_pool_that_was_never_made_needs_no_finaliser() -> None:
    """Only the error itself is reported."""
    with pytest.raises(InvalidArgumentError):
        PoolAllocator(None)  # type: ignore[arg-type] # the point of the test
    gc.collect()


@pytest.mark.parametrize("answer", [None, "raise"])
def test_an_upstream_that_gives_nothing_is_an_error(answer: Any) -> None:
    """If the upstream fails for another reason than room, it is not asked again."""
    asked: list[int] = []

    class Empty(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            asked.append(byte_size)
            if answer == "raise":
                raise OSError("bus")

    with pytest.raises((AllocationError, OSError), match=r"the upstream returned None|bus"):
        PoolAllocator(Empty()).allocate(SIZE)
    assert [SIZE] == asked


def test_a_block_that_cannot_be_lent_stays_idle() -> None:
    pool, paper = paper_pool()
    viewer, broken = paper.viewer, [MemoryError]

    def view(ptr: Any) -> Any:
        if broken:
            raise broken.pop()
        return viewer(ptr)

    paper.viewer = view  # type: ignore[method-assign] # a wrapper
    with pytest.raises(MemoryError):
        pool.allocate(10)
    assert (10, 0, 1) == (pool.idle_bytes, pool.live_blocks, pool.idle_blocks)
    lent_and_returned(pool, 10)
    assert [10] == paper.allocated


def test_a_call_from_inside_another_goes_past_what_is_idle() -> None:
    """A finaliser may call at any time: it gets memory from the upstream, and what it releases waits."""
    pool, paper = paper_pool()
    first, allocate, inner = pool.allocate(1), paper.allocate, list[Any]()
    lent_and_returned(pool, 2)

    def allocate_and_call_back(byte_size: int) -> Any:
        if byte_size == 3:
            inner.append(pool.allocate(1))
            pool.release(first)
            for call in (pool.trim, pool.close):
                with pytest.raises(ReentrantCallError, match=r"trim|close"):
                    call()
        return allocate(byte_size)

    paper.allocate = allocate_and_call_back  # type: ignore[method-assign] # a wrapper
    outer = pool.allocate(3)

    assert ([1, 2, 1, 3], 2, 2) == (paper.allocated, pool.idle_blocks, pool.live_blocks)
    pool.release(outer)
    pool.release(inner[0])
    assert 7 == pool.trim()


def test_a_release_waits_for_nobody() -> None:
    """A finaliser may release in a thread that has a lock for which the call inside waits; that call does the rest."""
    inside, go_on = threading.Event(), threading.Event()

    class Slow(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            if byte_size == 3:
                inside.set()
                go_on.wait(30)
            return super().allocate(byte_size)

    upstream = Slow()
    pool = PoolAllocator(upstream, idle_limit=1)
    block, lent = pool.allocate(2), list[Any]()
    other = threading.Thread(target=lambda: lent.append(pool.allocate(3)))
    other.start()
    inside.wait(30)
    pool.release(block)
    before = upstream.live_blocks
    go_on.set()
    other.join(30)

    assert (1, 1, 0) == (before, upstream.live_blocks, pool.live_blocks - 1)
    pool.release(lent[0])


def test_a_pool_that_goes_with_its_buffer_goes_quietly() -> None:
    """The buffer may release its block after the finaliser of the pool, and then nothing is left."""
    upstream = TrackingAllocator(CPUDeviceAllocator())
    pool = PoolAllocator(upstream)
    together: list[Any] = [pool, Buffer(SIZE, pool)]
    together.append(together)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del pool, together
        gc.collect()

    assert [] == caught


def test_an_interrupt_while_memory_goes_back_leaves_nothing_half_done() -> None:
    """The block is given back, and is not idle any more."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 10, 20)
    release, interrupts = paper.release, [KeyboardInterrupt]

    def release_or_be_interrupted(ptr: Any) -> None:
        release(ptr)
        if interrupts:
            raise interrupts.pop()

    paper.release = release_or_be_interrupted  # type: ignore[method-assign] # a wrapper
    with pytest.raises(KeyboardInterrupt):
        pool.trim()

    assert ([20], 10) == (paper.released, pool.idle_bytes)
    assert 10 == pool.trim()
