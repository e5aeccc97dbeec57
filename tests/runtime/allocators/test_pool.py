"""`PoolAllocator`: who gets which block, what waits for work in flight, and what goes back when."""

from __future__ import annotations

import gc
import random
import threading
import warnings
import weakref
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from pools import GIB, MIB, lent_and_returned, paper_pool, pushed
from subjects import SIZE, devices, failing

from syncedmem.model import (
    AllocationError,
    ClosedAllocatorError,
    InvalidArgumentError,
    InvalidPointerError,
    ReentrantCallError,
    ReleaseError,
)
from syncedmem.runtime import (
    Buffer,
    CPUDeviceAllocator,
    FailingAllocator,
    LimitingAllocator,
    MemcpyKind,
    PoolAllocator,
    SimulatedDeviceAllocator,
    TrackingAllocator,
)
from syncedmem.runtime.allocators.pointers import size_of

if TYPE_CHECKING:
    from collections.abc import Callable


def reference(steps: list[tuple[str, int]]) -> list[int]:
    """KuiperLLama's choice of blocks, written as simply as possible: for each allocation, the number of its block."""
    blocks: list[list[Any]] = []  # size, busy
    chosen: list[int] = []
    for step, number in steps:
        if step == "release":
            blocks[chosen[number]][1] = False
            continue
        fitting = [at for at, (size, busy) in enumerate(blocks) if not busy and size >= number]
        if number <= MIB:
            fitting = [at for at in fitting if blocks[at][0] <= MIB]
        else:
            fitting = [at for at in fitting if blocks[at][0] > MIB and blocks[at][0] - number < MIB]
            fitting.sort(key=lambda at: blocks[at][0])
        if not fitting:
            blocks.append([number, False])
            fitting = [len(blocks) - 1]
        chosen.append(fitting[0])
        blocks[fitting[0]][1] = True
    return chosen


@pytest.mark.parametrize("seed", range(10))
def test_blocks_are_chosen_as_kuiperllama_chooses_them(seed: int) -> None:
    """The pool and the reference make the same choices for a few hundred random calls."""
    chance = random.Random(seed)  # noqa: S311 -- replayable calls, not secrets
    pool, paper = paper_pool()
    steps: list[tuple[str, int]] = []
    out: dict[int, Any] = {}
    numbers: dict[int, int] = {}
    mine: list[int] = []
    for _ in range(300):
        if out and chance.random() < 0.5:
            number = chance.choice(list(out))
            pool.release(out.pop(number))
            steps.append(("release", number))
            continue
        size = chance.choice((chance.randrange(1, MIB + 2), chance.randrange(MIB, 5 * MIB), 1 << chance.randrange(23)))
        block: Any = pool.allocate(size)
        assert size == len(block) <= len(block.root)
        out[len(mine)] = block
        mine.append(numbers.setdefault(id(block.root), len(numbers)))
        steps.append(("allocate", size))

    assert reference(steps) == mine
    assert len(paper.allocated) == len(numbers)
    for block in out.values():
        pool.release(block)


# --- KuiperLLama's errata


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

    def refused(size: int) -> None:
        with pytest.raises(AllocationError) as told:
            pool.allocate(size)
        assert ("simulated:0", size) == (told.value.where, told.value.byte_size)

    small = [pool.allocate(40), pool.allocate(40)]
    refused(50)
    for block in small:
        pool.release(block)
    large = pool.allocate(100)

    assert (100, 1, 0) == (size_of(large), device.live_blocks, pool.idle_blocks)
    refused(1)
    pool.release(large)
    refused(101)
    assert 0 == device.live_blocks


# --- work in flight


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


def test_a_reclaim_at_the_limit_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block with work in flight stays idle, and is considered again the next time."""
    device = SimulatedDeviceAllocator()
    monkeypatch.setattr("syncedmem.runtime.allocators.pool._IDLE_LIMIT", 10)
    pool, stream = PoolAllocator(device), device.stream()
    block, other, last = (pool.allocate(SIZE) for _ in range(3))
    pushed(pool, block, stream)
    pool.release(block)
    assert (False, SIZE) == (stream.done, pool.idle_bytes)
    pool.release(other)
    assert (False, SIZE, 2) == (stream.done, pool.idle_bytes, device.live_blocks)
    stream.synchronize()
    pool.release(last)

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


def test_what_is_refused_once_goes_back_with_the_pool_itself() -> None:
    """Its error keeps nothing: with its traceback in a cycle the block would wait for a garbage collection."""
    device = SimulatedDeviceAllocator()
    pool = PoolAllocator(FailingAllocator(device, operation="release", at=2))
    blocks = [pool.allocate(8) for _ in range(3)]
    while blocks:
        pool.release(blocks.pop())
    gc.disable()
    try:
        del pool
        assert 0 == device.live_blocks
    finally:
        gc.enable()


def test_what_cannot_be_held_is_refused_and_not_remembered() -> None:
    """A future has a method ``done``, which as an object is always true: its block would be lent too early."""
    device = SimulatedDeviceAllocator()
    pool, stream = PoolAllocator(device), device.stream()
    block, lent, event = pool.allocate(4), pool.allocate(4), device.record(stream)
    pool.release(block)
    for wrong in (block, None, np.zeros(4, np.uint8), device.empty(4)):
        with pytest.raises(InvalidPointerError) as refused:
            pool.hold(wrong, event)
        assert refused.value.pointer is wrong
    future: Any = Future[None]()
    future.synchronize = future.result
    others: list[Any] = [future, Never, SimpleNamespace(done=False), SimpleNamespace(synchronize=print)]
    for wrong in others:
        with pytest.raises(InvalidArgumentError) as error:
            pool.hold(lent, wrong)
        assert ("event", True) == (error.value.argument, error.value.value is wrong)
    pool.release(lent)

    assert (2, 2) == (pool.idle_blocks, device.live_blocks)
    pool.release(pool.allocate(4))
    assert 2 == device.live_blocks


def test_events_that_are_over_are_not_kept() -> None:
    """The block may be lent for as long as the program runs."""
    device = SimulatedDeviceAllocator()
    pool, stream, seen = PoolAllocator(device), device.stream(), list[Any]()
    block: Any = pool.allocate(SIZE)

    def use() -> None:
        device.memset_zero(block, SIZE, stream)
        event = device.record(stream)
        seen.append(weakref.ref(event))
        pool.hold(block, event)
        event.synchronize()

    for _ in range(3):
        use()
    assert [False, False, True] == [watch() is not None for watch in seen]
    pool.release(block)


def test_what_is_no_stream_is_refused_and_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the block could not be released, because its work cannot be recorded."""
    device = SimulatedDeviceAllocator()
    pool, stream = PoolAllocator(device), device.stream()
    block = pool.allocate(SIZE)
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("stream", lambda: pushed(pool, block, 7)),
        ("stream", lambda: queue_fill(pool, block, 7)),
        ("kind", lambda: pool.memcpy(block, block, 1, cast("Any", 9), stream)),
        ("keep_bytes", lambda: pool.trim(cast("Any", "1"))),
    ]
    for argument, use in wrong:
        with pytest.raises(InvalidArgumentError) as refused:
            use()
        assert argument == refused.value.argument
    pool.release(block)
    assert 1 == pool.idle_blocks

    again = pool.allocate(SIZE)
    pushed(pool, again, stream)
    with monkeypatch.context() as patch:
        patch.setattr(device, "record", failing(RuntimeError, "no events left"))
        with pytest.raises(RuntimeError, match="no events left"):
            pool.release(again)
    assert 1 == pool.live_blocks
    pool.release(again)


# --- what is idle


def test_a_trim_keeps_what_it_is_told_to() -> None:
    """The largest blocks go first, so few calls give much memory back."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 100, 3 * MIB, 200, 2 * MIB)

    assert (3 * MIB, 2 * MIB + 300) == (pool.trim(2 * MIB + 300), pool.idle_bytes)
    assert (0, 2 * MIB + 200) == (pool.trim(2 * MIB + 300), pool.trim(100))
    assert [3 * MIB, 2 * MIB, 200] == paper.released


@pytest.mark.parametrize("finish", [PoolAllocator.trim, PoolAllocator.close])
def test_a_block_that_the_upstream_does_not_take_stays_idle(finish: Any) -> None:
    """The other blocks go, the first error is raised, and another trim tries again."""
    pool, paper = paper_pool()
    lent_and_returned(pool, 1, 2, 3)
    paper.stubborn = {2, 3}
    with pytest.raises(ReleaseError) as told:
        finish(pool)
    assert ("paper:0", [1], 5) == (told.value.where, paper.released, pool.idle_bytes)
    paper.stubborn.clear()
    finish(pool)
    assert ([1, 3, 2], 0) == (paper.released, pool.idle_bytes)


@pytest.mark.parametrize("finish", [PoolAllocator.trim, PoolAllocator.close])
def test_a_block_that_is_gone_already_keeps_no_other_block_idle(finish: Any) -> None:
    """Somebody released an idle block behind the pool's back: that is told, and the others go."""
    upstream: Any = SimulatedDeviceAllocator()
    pool = PoolAllocator(upstream)
    for block in [pool.allocate(size) for size in (1, 2, 3)]:
        pool.release(block)
    _, stolen, _ = upstream._live.blocks.values()  # nobody but the pool has its array
    upstream.release(stolen[0])

    with pytest.raises(ReleaseError) as told:
        finish(pool)
    assert isinstance(told.value.__cause__, InvalidPointerError)
    assert (0, 0) == (pool.idle_bytes, upstream.live_blocks)
    finish(pool)


def test_a_finaliser_that_fails_warns() -> None:
    pool, paper = paper_pool()
    lent_and_returned(pool, 2)
    paper.stubborn = {2}
    with pytest.warns(ResourceWarning, match="leaked on paper:0.*stuck"):
        del pool
        gc.collect()


def test_a_release_is_no_failure_when_the_upstream_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block is released nevertheless, and is idle."""
    monkeypatch.setattr("syncedmem.runtime.allocators.pool._IDLE_LIMIT", 5)
    pool, paper = paper_pool()
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


@pytest.mark.parametrize("answer", [None, "raise"])
def test_an_upstream_that_gives_nothing_is_an_error(answer: Any) -> None:
    """If the upstream fails for another reason than room, it is not asked again."""
    asked: list[int] = []

    class Empty(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            asked.append(byte_size)
            if answer == "raise":
                raise OSError("bus")

    with pytest.raises((AllocationError, OSError), match=r"the allocator returned None|bus"):
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


def test_a_release_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finaliser may release in a thread that has a lock for which the call inside waits; that call does the rest."""
    inside, go_on = threading.Event(), threading.Event()

    class Slow(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            if byte_size == 3:
                inside.set()
                go_on.wait(30)
            return super().allocate(byte_size)

    upstream = Slow()
    monkeypatch.setattr("syncedmem.runtime.allocators.pool._IDLE_LIMIT", 1)
    pool = PoolAllocator(upstream)
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


def test_what_was_returned_while_another_thread_was_inside_is_lent_again() -> None:
    """The upstream has no room for a second block."""
    pool = PoolAllocator(LimitingAllocator(CPUDeviceAllocator(), 64))
    block = pool.allocate(64)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with pool._lock:  # pyright: ignore[reportPrivateUsage] -- as every call of the pool does
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    pool.release(block)  # it cannot be put among what is idle now
    leave.set()
    thread.join()
    again = pool.allocate(64)

    assert 64 == len(again)  # type: ignore[arg-type]
    pool.release(again)


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
