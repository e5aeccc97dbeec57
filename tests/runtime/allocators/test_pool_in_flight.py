"""`PoolAllocator`: a block with work in flight is lent to nobody, and waited for."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pools import MIB, paper_pool, pushed
from subjects import SIZE, devices

from syncedmem.model import InvalidArgumentError, InvalidPointerError, ReleaseError
from syncedmem.runtime import MemcpyKind, PoolAllocator, SimulatedDeviceAllocator

if TYPE_CHECKING:
    from collections.abc import Callable


def queue_fill(pool: PoolAllocator, block: Any, stream: Any) -> None:
    pool.memset_zero(block, SIZE, stream)


def queue_download(pool: PoolAllocator, block: Any, stream: Any) -> None:
    pool.memcpy(block, np.zeros(SIZE, np.uint8), SIZE, MemcpyKind.CUDA2CPU, stream)


def queue_into_a_part(pool: PoolAllocator, block: Any, stream: Any) -> None:
    pool.memset_zero(block[8:16], 8, stream)


def queue_and_say_so(pool: PoolAllocator, block: Any, stream: Any) -> None:
    """Work that does not go through the pool."""
    pool.upstream.memset_zero(block, SIZE, stream)
    pool.hold(block[:4], pool.record(stream))


@pytest.mark.parametrize("size", [SIZE, MIB + SIZE])
@pytest.mark.parametrize("queue", [pushed, queue_fill, queue_download, queue_into_a_part, queue_and_say_so])
def test_a_block_with_work_in_flight_is_lent_to_nobody(queue: Callable[..., None], size: int) -> None:
    """Without work in flight it would be lent at once.  When the work is over it is lent again."""
    device = SimulatedDeviceAllocator()
    pool, stream = PoolAllocator(device), device.stream()
    block: Any = pool.allocate(size)
    untouched = pool.allocate(size)
    queue(pool, block, stream)
    queue(pool, block, stream)
    pool.release(block)
    meanwhile = pool.allocate(size)
    assert (False, 3) == (pool.overlaps(block, meanwhile), device.live_blocks)
    stream.synchronize()
    afterwards = pool.allocate(size)

    assert (True, 3) == (pool.overlaps(block, afterwards), device.live_blocks)
    for lent in (meanwhile, afterwards, untouched):
        pool.release(lent)
    device.check()


@pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)
def test_work_in_flight_is_waited_for_before_memory_goes_back(device: Any) -> None:
    """On every device a trim and a close wait for unfinished work."""
    before = device.live_blocks
    for finish in (PoolAllocator.trim, PoolAllocator.close):
        pool, stream = PoolAllocator(device), device.stream()
        block = pool.allocate(SIZE)
        pushed(pool, block, stream)
        pool.release(block)
        finish(pool)
        assert (0, before) == (pool.idle_blocks, device.live_blocks)
        assert getattr(stream, "done", True)


def test_a_reclaim_at_the_limit_waits_for_nobody() -> None:
    """A block with work in flight stays idle, and is considered again the next time."""
    device = SimulatedDeviceAllocator()
    pool, stream = PoolAllocator(device, idle_limit=10), device.stream()
    block, other = pool.allocate(SIZE), pool.allocate(SIZE)
    pushed(pool, block, stream)
    pool.release(block)
    assert (False, SIZE) == (stream.done, pool.idle_bytes)
    stream.synchronize()
    pool.release(other)

    assert (0, 0) == (pool.idle_bytes, device.live_blocks)


def test_a_full_upstream_is_worth_waiting_for_work_in_flight() -> None:
    device = SimulatedDeviceAllocator(capacity=SIZE + 8)
    pool, stream = PoolAllocator(device), device.stream()
    block = pool.allocate(SIZE)
    pushed(pool, block, stream)
    pool.release(block)
    other = pool.allocate(SIZE + 8)

    assert (True, 1) == (stream.done, device.live_blocks)
    pool.release(other)


class Never:
    """An event of a device that is gone."""

    @property
    def done(self) -> bool:
        raise RuntimeError("gone")

    def synchronize(self) -> None:
        raise RuntimeError("gone")


def test_what_cannot_be_asked_is_not_known_to_be_over() -> None:
    """Its block stays idle, and is neither lent nor given back."""
    pool, paper = paper_pool()
    block = pool.allocate(8)
    pool.hold(block, Never())
    pool.release(block)
    other = pool.allocate(8)

    assert ([8, 8], 1) == (paper.allocated, pool.idle_blocks)
    with pytest.raises(ReleaseError, match="trim failed on paper:0: RuntimeError: work on a block cannot be waited"):
        pool.trim()
    pool.release(other)
    with pytest.warns(ResourceWarning, match="cannot be waited for"):
        del pool
        gc.collect()
    assert [8] == paper.released


def test_holding_what_was_not_lent_is_refused() -> None:
    device = SimulatedDeviceAllocator()
    pool = PoolAllocator(device)
    event: Any = SimpleNamespace(done=True)
    block, lent = pool.allocate(4), pool.allocate(4)
    pool.release(block)
    for wrong in (block, None, np.zeros(4, np.uint8), device.empty(4)):
        with pytest.raises(InvalidPointerError, match="it is not in a live block of this pool"):
            pool.hold(wrong, event)
    pool.release(lent)


def no_events(stream: object) -> Any:
    """A device that cannot record an event."""
    raise RuntimeError(f"no events left for {stream}")


def test_what_is_no_stream_is_refused_and_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the block could not be released, because its work cannot be recorded."""
    device = SimulatedDeviceAllocator()
    pool, stream = PoolAllocator(device), device.stream()
    block = pool.allocate(SIZE)
    for queue in (pushed, queue_fill):
        with pytest.raises(InvalidArgumentError, match="stream must be a stream of simulated:0"):
            queue(pool, block, 7)
    with pytest.raises(InvalidArgumentError, match="kind must be a MemcpyKind"):
        pool.memcpy(block, block, 1, 9, stream)  # type: ignore[arg-type] # the point of the test
    pool.release(block)
    assert 1 == pool.idle_blocks
    again = pool.allocate(SIZE)
    pushed(pool, again, stream)
    with monkeypatch.context() as patch:
        patch.setattr(device, "record", no_events)
        with pytest.raises(RuntimeError, match="no events left"):
            pool.release(again)
    assert 1 == pool.live_blocks
    pool.release(again)
