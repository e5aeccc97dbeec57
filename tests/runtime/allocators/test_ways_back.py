"""Blocks between an allocator and its upstream: each way back when a call on the upstream fails or is interrupted."""

# The tests look at what each layer has recorded.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
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
