"""Blocks that change hands: each way back, taken where a call on the upstream is interrupted."""

# The tests look at what each layer has recorded.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
import sys
from collections import deque
from typing import Any

import numpy as np
import pytest
from heaps import Heap
from subjects import SIZE, failing

from syncedmem.runtime import (
    CPUDeviceAllocator,
    GuardingAllocator,
    LoggingAllocator,
    PoolAllocator,
    TrackingAllocator,
)
from syncedmem.runtime.interop.exporter import ExportedBlock, Exporter


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


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_block_that_passes_through_a_pool_stays_lent_or_idle(error: type[BaseException]) -> None:
    """After an interrupt it is lent; after an error the pool keeps it for later."""
    heap = Heap(bottom=Moody())
    heap.stack = PoolAllocator(heap.bottom, idle_limit=10)
    heap.with_blocks(SIZE)
    heap.bottom.before = error
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            heap.release(0)
    else:
        heap.release(0)
    heap.bottom.before = None

    assert (error is KeyboardInterrupt) == bool(heap.out)
    heap.check()
    heap.finish()


class Interrupting(deque[Any]):
    """A deque whose first change is interrupted."""

    interrupted = False

    def _once(self) -> None:
        if not self.interrupted:
            self.interrupted = True
            raise KeyboardInterrupt

    def __iadd__(self, items: Any) -> Any:  # type: ignore[misc] # deque.__add__ is another matter
        self._once()
        return super().__iadd__(items)

    def __delitem__(self, position: Any) -> None:
        self._once()
        super().__delitem__(position)


def test_a_block_that_the_pool_could_not_take_back_is_still_lent() -> None:
    heap = Heap(["pool"]).with_blocks(SIZE)
    heap.stack._idle.returned = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        heap.release(0)

    heap.check()
    heap.finish()


def test_a_block_that_was_sorted_in_is_not_sorted_in_again() -> None:
    """It holds although it is still in the list of blocks to be sorted in."""
    heap = Heap(["pool"]).with_idle(SIZE)
    heap.stack._idle.returned = Interrupting(heap.stack._idle.returned)
    with pytest.raises(KeyboardInterrupt):
        heap.stack.trim()

    assert (1, SIZE) == (heap.stack.idle_blocks, heap.stack.idle_bytes)
    heap.check()
    heap.finish()


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
    upstream.before = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        guarding.clear()
    upstream.before = None

    assert (1, SIZE) == (len(guarding._kept), guarding._kept_bytes)
    guarding.clear()
    assert 0 == upstream.live_blocks


def test_a_log_that_is_closed_does_not_hide_a_wrong_release() -> None:
    log = LoggingAllocator(CPUDeviceAllocator(), sys.stderr)
    log.close()
    with pytest.raises(ValueError, match="not a live block"):
        log.release(np.zeros(4, np.uint8))

    assert log.failure is None


def test_a_block_that_cannot_be_taken_back_is_told_of() -> None:
    """The call ends with its own error, and with a warning."""
    upstream = Moody()
    tracking = TrackingAllocator(upstream)
    tracking._numbers = iter(())  # type: ignore[assignment] # what cannot happen
    upstream.before = OSError
    with pytest.warns(ResourceWarning, match="a block leaked on cpu:0: OSError"), pytest.raises(StopIteration):
        tracking.allocate(SIZE)


def dies(_it: object) -> None:
    """A finaliser that is interrupted when it starts."""
    raise KeyboardInterrupt


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The errors that finalisers could not raise."""
    found: list[Any] = []

    def show(unraisable: Any) -> None:
        found.append(unraisable.exc_type)

    monkeypatch.setattr(sys, "unraisablehook", show)
    return found


@pytest.mark.parametrize("kind", [PoolAllocator, GuardingAllocator])
def test_a_finaliser_that_does_not_start_has_a_second_chance(
    kind: Any, shown: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()  # so that nobody else's goes meanwhile
    upstream = CPUDeviceAllocator()
    allocator = kind(upstream)
    for block in [allocator.allocate(size) for size in (8, SIZE)]:
        allocator.release(block)
    monkeypatch.setattr(kind, "__del__", dies)
    del allocator
    gc.collect()

    assert ([KeyboardInterrupt], 0) == (shown, upstream.live_blocks)


def test_an_exported_block_is_given_back_by_its_second_finaliser(
    shown: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds also if the first finaliser was interrupted before it could give the block back."""
    upstream, calls = CPUDeviceAllocator(), [KeyboardInterrupt]
    exporter = Exporter(upstream)
    give_back = exporter.give_back

    def give_back_later(*arguments: Any) -> None:
        if calls:
            raise calls.pop()
        give_back(*arguments)

    monkeypatch.setattr(exporter, "give_back", give_back_later)
    block = exporter.export(SIZE)
    del block
    gc.collect()

    assert ([KeyboardInterrupt], 0, 0) == (shown, len(exporter), upstream.live_blocks)


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


def test_what_is_released_inside_another_call_waits_for_its_end() -> None:
    heap = Heap(bottom=Moody())
    heap.stack = PoolAllocator(heap.bottom, idle_limit=100)
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
