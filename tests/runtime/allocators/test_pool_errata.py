"""KuiperLLama's errata: what each of these does in `PoolAllocator` is not what it does there."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pools import GIB, MIB, lent_and_returned, paper_pool

from syncedmem.model import AllocationError
from syncedmem.runtime import PoolAllocator, SimulatedDeviceAllocator


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
