"""Adaptors and threads: counts are right, and `ThreadSafeAllocator` lets in one at a time."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from adaptors import MAKERS, counts
from threads import run_in_threads

from syncedmem.runtime import CPUDeviceAllocator, ThreadSafeAllocator

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def hasty() -> Iterator[None]:
    """Python switches between threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("maker", ["limiting", "statistics", "tracking", "pool", "guarding", "thread-safe"])
def test_threads_leave_the_counts_right(maker: str, hasty: None) -> None:
    """Python switches between the threads as often as it can."""
    del hasty
    upstream = CPUDeviceAllocator()
    adaptor: Any = MAKERS[maker](upstream)

    def work() -> None:
        for size in range(1, 300):
            block = adaptor.allocate(size)
            block[:] = size & 0xFF
            again = adaptor.allocate(size)
            assert (block == size & 0xFF).all()
            adaptor.release(block)
            adaptor.release(again)

    run_in_threads(work, work, work, work)
    now = counts(adaptor)

    if maker == "statistics":
        assert (0, 0, 4 * 2 * 299) == (now[0].current_bytes, now[0].current_count, now[0].total_count)
        assert 4 * 2 * sum(range(1, 300)) == now[0].total_bytes
    elif now:
        assert now[0] in (0, (0, 0))


@pytest.mark.parametrize(("safe", "patience"), [(True, 0.1), (False, 10)])
def test_one_thread_at_a_time_is_let_in(safe: bool, patience: float) -> None:
    """Two threads are never inside at the same time; without the adaptor they are."""
    met, inside = threading.Event(), list[None]()

    class Fragile(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            inside.append(None)
            if len(inside) > 1:
                met.set()
            met.wait(patience)
            inside.pop()
            return super().allocate(byte_size)

    allocator: Any = ThreadSafeAllocator(Fragile()) if safe else Fragile()

    def work() -> None:
        allocator.release(allocator.allocate(8))

    run_in_threads(work, work)

    assert met.is_set() is not safe
