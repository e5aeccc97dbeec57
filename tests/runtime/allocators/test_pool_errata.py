"""KuiperLLama's errata: what each of these does in `PoolAllocator` is not what it does there."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from pools import GIB, MIB, lent_and_returned, paper_pool
from subjects import SIZE

from syncedmem.model import AllocationError, InvalidPointerError
from syncedmem.runtime import CPUDeviceAllocator, MemcpyKind, PoolAllocator, SimulatedDeviceAllocator, using_device
from syncedmem.runtime.devices.simulated.simulation import current_device


def test_a_release_counts_while_there_is_no_small_block() -> None:
    """In KuiperLLama a release does nothing until the first small block is made, so big blocks are never used again."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 2 * MIB)
    lent_and_returned(pool, 2 * MIB)

    assert [2 * MIB] == paper.allocated


def test_zero_bytes_take_no_block() -> None:
    """In KuiperLLama they take any idle small block, or make an entry that cannot be released."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 100)
    nothing = pool.allocate(0)
    pool.release(nothing)

    assert (None, [100], 1, 0) == (nothing, paper.allocated, pool.idle_blocks, pool.live_blocks)


def test_zero_bytes_need_no_memory_to_be_copied() -> None:
    """KuiperLLama refuses null before it looks at the size; and `need_sync` waits here."""
    device = SimulatedDeviceAllocator()
    pool, stream = PoolAllocator(device), device.stream()
    block = pool.allocate(SIZE)
    pool.memcpy(np.ones(SIZE, np.uint8), block, SIZE, MemcpyKind.CPU2CUDA, stream)
    pool.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, stream, need_sync=True)

    assert stream.done
    pool.release(block)


def test_the_current_device_is_left_as_it_was() -> None:
    """In KuiperLLama a reclaim leaves the device of the last list current."""
    pool = PoolAllocator(SimulatedDeviceAllocator(1), idle_limit=10)
    with using_device(3):
        lent_and_returned_device = pool.allocate(20)
        pool.release(lent_and_returned_device)
        pool.trim()
        assert 3 == current_device()
    assert 0 == pool.idle_bytes


@pytest.mark.parametrize("again", [False, True])
def test_a_block_is_released_once(again: bool) -> None:
    """In KuiperLLama such a block counts twice as idle, and is lent to two owners."""
    device = SimulatedDeviceAllocator()
    pool = PoolAllocator(device)
    block = pool.allocate(SIZE)
    pool.release(block)
    other = pool.allocate(SIZE) if again else None
    with pytest.raises(InvalidPointerError, match=r"simulated:0 cannot use .*: it is not a live block"):
        pool.release(block)

    assert (int(not again), int(again)) == (pool.idle_blocks, pool.live_blocks)
    pool.release(other)


def test_what_the_pool_did_not_lend_is_refused() -> None:
    """In KuiperLLama it is freed, or the process ends."""
    upstream = CPUDeviceAllocator()
    pool, foreign = PoolAllocator(upstream), upstream.allocate(SIZE)
    for wrong in (foreign, bytearray(4), 0):
        with pytest.raises(InvalidPointerError):
            pool.release(wrong)

    upstream.release(foreign)


def test_idle_memory_is_counted_before_it_is_looked_at() -> None:
    """In KuiperLLama the release that passes a gibibyte does not notice it; only the next one does."""
    pool, paper = paper_pool()
    blocks = [pool.allocate(MIB) for _ in range(1025)]
    for block in blocks[:1024]:
        pool.release(block)
    assert (GIB, []) == (pool.idle_bytes, paper.released)
    pool.release(blocks[1024])

    assert (0, 1025) == (pool.idle_bytes, len(paper.released))


def test_big_blocks_go_back_too() -> None:
    """In KuiperLLama they are kept for ever.  As there, they do not count for the gibibyte."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 2 * GIB, 3)
    assert 2 * GIB + 3 == pool.idle_bytes

    assert 2 * GIB + 3 == pool.trim()
    assert [2 * GIB, 3] == paper.released


def test_what_is_idle_is_given_back_when_the_upstream_is_full() -> None:
    """In KuiperLLama the caller gets null.  Here the pool gives back and asks again, once; then there is no room."""
    device = SimulatedDeviceAllocator(capacity=100)
    pool = PoolAllocator(device)
    small = [pool.allocate(40), pool.allocate(40)]
    with pytest.raises(AllocationError, match="cannot allocate 50 bytes on simulated:0"):
        pool.allocate(50)
    for block in small:
        pool.release(block)
    large = pool.allocate(100)

    assert (100, 1, 0) == (len(large or ()), device.live_blocks, pool.idle_blocks)
    with pytest.raises(AllocationError):
        pool.allocate(1)
    pool.release(large)
    with pytest.raises(AllocationError, match="cannot allocate 101"):
        pool.allocate(101)
    assert 0 == device.live_blocks


def test_threads_may_share_a_pool() -> None:
    """KuiperLLama has no locks.  Here no two threads have the same bytes."""
    upstream = CPUDeviceAllocator()
    pool = PoolAllocator(upstream, idle_limit=1 << 14)
    wrong: list[Any] = []

    def work(mark: int) -> None:
        chance = random.Random(mark)  # noqa: S311 -- replayable calls, not secrets
        for _ in range(300):
            blocks: list[Any] = [pool.allocate(chance.randrange(1, 5000)) for _ in range(3)]
            for block in blocks:
                block[:] = mark
            if not all((block == mark).all() for block in blocks):
                wrong.append(mark)
            for block in blocks:
                pool.release(block)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert ([], 0, pool.idle_blocks) == (wrong, pool.live_blocks, upstream.live_blocks)


@pytest.mark.deep
def test_everything_is_given_back_at_exit() -> None:
    """In KuiperLLama nothing is given back."""
    program = """
from syncedmem import CPUDeviceAllocator, PoolAllocator
class Loud(CPUDeviceAllocator):
    def release(self, ptr):
        super().release(ptr)
        print("released", len(ptr))
pool = PoolAllocator(Loud())
pool.release(pool.allocate(123))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)

    assert ("released 123\n", "") == (done.stdout, done.stderr)
