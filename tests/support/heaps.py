"""A stack of allocators over host memory, and its caller; checks that all their records agree."""

# These tests read the private records of allocators.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from adaptors import stacked

from syncedmem.runtime import (
    Adaptor,
    CPUDeviceAllocator,
    DeviceType,
    GuardingAllocator,
    LimitingAllocator,
    PoolAllocator,
    StatisticsAllocator,
    ThreadSafeAllocator,
    TrackingAllocator,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


LOCKED = PoolAllocator | ThreadSafeAllocator


class Heap:
    """A stack of allocators and its caller.

    Parameters
    ----------
    names : sequence of str
        What they are stacked over; None for host memory of its own.
    bottom : DeviceAllocator or None
        What they are over; None for host memory of its own.

    Attributes
    ----------
    out : list of arrays
        The blocks that the caller has.
    sizes : tuple of int
        The sizes that `finish` allocates.
    """

    def __init__(self, names: Sequence[str] = (), bottom: Any = None) -> None:
        self.bottom: Any = CPUDeviceAllocator() if bottom is None else bottom
        self.stack: Any = stacked(names, self.bottom)
        self.out: list[Any] = []
        self.sizes: tuple[int, ...] = (64, 100, 3000)
        self.before = self.bottom.live_blocks

    def with_blocks(self, *sizes: int) -> Heap:
        """Allocate blocks of these sizes; returns the heap."""
        for size in sizes:
            self.allocate(size)
        return self

    def with_idle(self, *sizes: int) -> Heap:
        """Allocate blocks of these sizes and release them; returns the heap."""
        kept = len(self.out)
        self.with_blocks(*sizes)
        while len(self.out) > kept:
            self.release(kept)
        return self

    def allocate(self, byte_size: int) -> None:
        """Allocate, and store the block if one was returned."""
        self.out.extend(map(self.stack.allocate, (byte_size,)))

    def release(self, number: int) -> None:
        """Release a block of the caller, and forget it if it was released."""
        releasing, forgetting = map(self.stack.release, (self.out[number],)), map(self.out.pop, (number,))
        (_,) = releasing
        (_,) = forgetting

    def layers(self) -> list[Any]:
        """The allocators from the top to the bottom."""
        found = [self.stack]
        while isinstance(found[-1], Adaptor):
            found.append(found[-1].upstream)
        return found

    def check(self) -> None:
        """Fail unless no lock is held, and the records of all layers agree with what the caller has."""
        locked = [layer._lock for layer in self.layers() if isinstance(layer, LOCKED)]
        assert all(free_elsewhere(locked)), "a lock is held"
        assert not any(getattr(layer, "_busy", False) for layer in self.layers()), "a pool is busy"
        self.check_blocks()

    def check_blocks(self) -> None:
        """Fail unless the records agree."""
        have = self.out
        for layer in self.layers():
            check_figures(layer, have)
            if hasattr(layer, "_live"):
                assert {id(ptr) for ptr in have} == set(layer._live.blocks), f"live blocks of {layer}"
                assert len(have) == len(layer._live)
            have = below(layer, have)

    def finish(self) -> None:
        """Use the stack once more, give everything back, and fail if anything is left."""
        if not getattr(self.stack, "_closed", False):
            self.with_blocks(*self.sizes)
        for number, ptr in enumerate(self.out):
            ptr[:] = number
        assert [number % 256 for number in range(len(self.out))] == [ptr[0] for ptr in self.out], "two have one block"
        while self.out:
            self.release(-1)
        self.check_blocks()
        for layer in self.layers():
            if isinstance(layer, PoolAllocator):
                layer.close()
            if isinstance(layer, GuardingAllocator):
                layer.check()
                layer.clear()
        self.check_blocks()
        assert 0 == self.bottom.live_blocks, "blocks are left"


class Later:
    """An event of work that is over as soon as somebody has waited for it."""

    done = False

    def synchronize(self) -> None:
        self.done = True


class Streamed(CPUDeviceAllocator):
    """Host memory that looks like a device's: work on its streams is over only when somebody has waited for it."""

    device_type = DeviceType.SIMULATED

    def check_stream(self, stream: object) -> None:
        pass

    def record(self, stream: object) -> Later:
        del stream
        return Later()


def check_figures(layer: Any, have: list[Any]) -> None:
    """Check that a layer has counted the blocks that the layer above has."""
    total = sum(len(ptr) for ptr in have)
    if isinstance(layer, LimitingAllocator):
        assert total == layer.allocated_bytes, f"figures of {layer}"
    if isinstance(layer, TrackingAllocator):
        assert (len(have), total) == (layer.live_blocks, layer.allocated_bytes), f"figures of {layer}"
    if isinstance(layer, StatisticsAllocator):
        counted = layer.statistics
        assert (len(have), total) == (counted.current_count, counted.current_bytes), f"figures of {layer}"
        assert counted.peak_count >= counted.current_count <= counted.total_count, f"figures of {layer}"
        assert counted.peak_bytes >= counted.current_bytes <= counted.total_bytes, f"figures of {layer}"


def below(layer: Any, have: list[Any]) -> list[Any]:
    """The blocks that a layer has of the layer below it."""
    if isinstance(layer, GuardingAllocator):
        assert layer._kept.byte_size == sum(block.size for block in layer._kept.blocks), "bytes in quarantine"
        return [block.whole for block in [*layer._live.all_behind(), *layer._kept.blocks]]
    if isinstance(layer, PoolAllocator):
        lent, idle = layer._live.all_behind(), layer._idle.everything()
        blocks = lent + idle
        assert len(blocks) == len({id(block) for block in blocks}), "a block is in two places"
        assert len(blocks) == len({id(block.whole) for block in blocks}), "memory is in two blocks"
        assert all(block.whole is not None for block in blocks), "a block that was given back is kept"
        assert (len(idle), sum(block.size for block in idle)) == (layer.idle_blocks, layer.idle_bytes), "idle figures"
        assert sum(block.size for block in layer._idle.small()) == layer._idle.small_bytes, "small bytes"
        return [block.whole for block in blocks]
    return have


def free_elsewhere(locks: list[Any]) -> list[bool]:
    """Whether another thread can acquire each lock."""
    found: list[bool] = []

    def acquire() -> None:
        for lock in locks:
            found.append(lock.acquire(blocking=False))
            if found[-1]:
                lock.release()

    thread = threading.Thread(target=acquire)
    thread.start()
    thread.join()
    return found
