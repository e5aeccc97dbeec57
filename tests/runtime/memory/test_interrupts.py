"""Interrupts: no block has two owners or is freed twice, no lock stays held, no head lies, every object works on.

They come before and after each call of an allocator, and as real signals.  A block that was being allocated or freed at
that instant may be lost; nothing else is.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
import warnings
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE

from syncedmem.model import ClosedAllocatorError, SyncedHead
from syncedmem.runtime import (
    Blob,
    Buffer,
    CPUDeviceAllocator,
    GuardingAllocator,
    LimitingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    StatisticsAllocator,
    SyncedMemory,
    ThreadSafeAllocator,
    TrackingAllocator,
)
from syncedmem.runtime.allocators.adaptor import Adaptor
from syncedmem.runtime.interop.exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupting(Adaptor):
    """An allocator whose k-th call is interrupted, before or after it has done its work.

    Parameters
    ----------
    upstream : DeviceAllocator
    fuse : list of int
        How many calls there are until the interrupt; shared by all allocators of a world.
    knows : bool
        Whether it says which of its blocks are live; allocators of others do not.
    """

    def __init__(self, upstream: Any, fuse: list[int], *, late: bool, knows: bool) -> None:
        super().__init__(upstream)
        self._fuse = fuse
        self._late = late
        self._knows = knows

    def _is_live(self, ptr: Any) -> bool | None:
        return super()._is_live(ptr) if self._knows else None

    def _call(self, name: str, *arguments: Any) -> Any:
        self._fuse[0] -= 1
        comes = self._fuse[0] == 0
        if comes and not self._late:
            raise KeyboardInterrupt
        result = getattr(self.upstream, name)(*arguments)
        if comes:
            raise KeyboardInterrupt
        return result

    def allocate(self, byte_size: int) -> Any:
        return self._call("allocate", byte_size)

    def release(self, ptr: Any) -> None:
        self._call("release", ptr)

    def memcpy(self, *arguments: Any, **_: Any) -> None:
        self._call("memcpy", *arguments)

    def memset_zero(self, *arguments: Any, **_: Any) -> None:
        self._call("memset_zero", *arguments)


class World:
    """A host and a device that nobody else uses, and an object that owns memory on them."""

    def __init__(self, make: Callable[[World], Any], *, late: bool = False, knows: bool = True) -> None:
        self.real = SimulatedDeviceAllocator()
        self.real_host = CPUDeviceAllocator()
        self.fuse = [0]
        self.device = Interrupting(self.real, self.fuse, late=late, knows=knows)
        self.host = Interrupting(self.real_host, self.fuse, late=late, knows=knows)
        self.owner = make(self)

    @property
    def live_blocks(self) -> int:
        return self.real_host.live_blocks + self.real.live_blocks


def memory(world: World) -> Any:
    return SyncedMemory(SIZE, device=world.device, host=world.host, pinned=world.host)


def blob(world: World) -> Any:
    return Blob(SIZE // 4, dtype="float32", device=world.device, host=world.host, pinned=world.host)


def walk_memory(memory: Any) -> None:
    """Every kind of call, and what a head says is fresh must have the bytes that were written last."""
    memory.mutable_cpu_data()[:] = 7
    assert memory.gpu_data().get().tolist() == [7] * SIZE
    memory.mutable_gpu_data().set(np.full(SIZE, 3, np.uint8))
    assert memory.cpu_data().tolist() == [3] * SIZE
    memory.set_cpu_data(bytearray(b"\x05" * SIZE))
    memory.async_gpu_push(stream=memory.device.stream())
    assert memory.gpu_data().get().tolist() == [5] * SIZE
    memory.set_gpu_data(memory.device.empty(SIZE))
    memory.mutable_cpu_data()


def walk_blob(blob: Any) -> None:
    blob.reshape(SIZE // 2)
    blob.mutable_gpu_diff()
    blob.reshape(SIZE // 4)
    blob.mutable_cpu_data()[:] = 2
    blob.mutable_cpu_diff()[:] = 1
    blob.update()


def walk_buffer(buffer: Any) -> None:
    buffer.allocate()
    source = Buffer(SIZE, buffer.allocator)
    buffer.copy_from(source)
    source.close()
    buffer.allocate()


def walk_allocator(allocator: Any) -> None:
    blocks = [allocator.allocate(SIZE) for _ in range(3)]
    for block in blocks:
        allocator.release(block)
    allocator.release(allocator.allocate(2 * SIZE))


def walk_exporter(exporter: Any) -> None:
    block = exporter.export(SIZE)
    block.give_back()
    exporter.deallocate(exporter.allocate(SIZE))


OWNERS: dict[str, tuple[Callable[[World], Any], Callable[[Any], None]]] = {
    "memory": (memory, walk_memory),
    "blob": (blob, walk_blob),
    "buffer": (lambda world: Buffer(SIZE, world.device), walk_buffer),
    "pool": (lambda world: PoolAllocator(world.device), walk_allocator),
    "guard": (lambda world: GuardingAllocator(world.device), walk_allocator),
    "tracking": (lambda world: TrackingAllocator(world.device), walk_allocator),
    "statistics": (lambda world: StatisticsAllocator(world.device), walk_allocator),
    "limit": (lambda world: LimitingAllocator(world.device, 1 << 20), walk_allocator),
    "thread-safe": (lambda world: ThreadSafeAllocator(world.device), walk_allocator),
    "exporter": (lambda world: Exporter(world.host), walk_exporter),
}
"""What owns memory, or keeps books about it, and calls that take and give it back."""


def check_whole(world: World, walk: Callable[[Any], None], blocks: int) -> None:
    """The object works on, and what is lost in the end are at most so many blocks."""
    owner = world.owner
    if isinstance(owner, SyncedMemory) and not owner.closed and owner.head is SyncedHead.SYNCED:
        assert owner.cpu_data().tolist() == owner.gpu_data().get().tolist()
    if not getattr(owner, "closed", False):
        with suppress(ClosedAllocatorError):  # it was interrupted while it was closed
            walk(owner)
    if hasattr(owner, "close"):
        owner.close()
    world.owner = owner = None
    gc.collect()
    world.real.check()
    assert world.live_blocks <= blocks


@pytest.mark.parametrize("knows", [False, True], ids=["unknown", "known"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", OWNERS)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_of_any_call_of_an_allocator(name: str, late: bool, knows: bool) -> None:
    make, walk = OWNERS[name]
    k = 0
    for k in count(1):
        world = World(make, late=late, knows=knows)
        world.fuse[0] = k
        with suppress(KeyboardInterrupt):
            walk(world.owner)
            if hasattr(world.owner, "close"):
                world.owner.close()
        if world.fuse[0] > 0:
            break
        # At most one block was in the hands of the call that was interrupted; a walk also drops those that it holds.
        held = 3 if walk is walk_allocator else 1
        check_whole(world, walk, held)
    assert k > 4  # it was reached again and again


def test_a_block_that_may_be_lost_is_told_of() -> None:
    """Of those whose release was interrupted, only that of an allocator which does not say whether it has happened."""
    world = World(memory, late=True, knows=False)
    world.fuse[0] = 1
    told = rf"^{SIZE} bytes on .* may be lost: their %s was interrupted$"
    with pytest.warns(ResourceWarning, match=told % "allocation"), pytest.raises(KeyboardInterrupt):
        world.owner.mutable_cpu_data()
    world.owner.mutable_cpu_data()
    world.fuse[0] = 1
    with pytest.warns(ResourceWarning, match=told % "release"), pytest.raises(KeyboardInterrupt):
        world.owner.close()
    assert world.owner.closed


def test_a_call_that_was_interrupted_after_its_free_has_taken_effect() -> None:
    """The buffer is adopted: the block that it replaces does not come back."""
    world = World(memory, late=True)
    world.owner.mutable_cpu_data()[:] = 1
    world.fuse[0] = 1
    with pytest.raises(KeyboardInterrupt):
        world.owner.set_cpu_data(bytearray(b"\x09" * SIZE))

    assert world.owner.head is SyncedHead.HEAD_AT_CPU
    assert not world.owner.own_cpu_data
    assert world.owner.cpu_data().tolist() == [9] * SIZE


@pytest.mark.parametrize("name", ["memory", "blob", "buffer", "pool"])
def test_real_signals(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at any instant of half a second of calls."""
    # As Python's own hook, and unlike that of pytest, it keeps no traceback, and so no frame and nothing in it.
    monkeypatch.setattr(sys, "unraisablehook", id)
    if sys.gettrace() is not None:
        pytest.skip("needs a run without a tracer: one that is interrupted keeps its own lock")
    make, walk = OWNERS[name]
    end, delays, before = time.monotonic() + 0.5, count(20e-6, 7e-6), signal.getsignal(signal.SIGALRM)
    came, armed = 0, list[bool]()

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    try:
        while time.monotonic() < end:
            world = World(make)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                try:
                    armed.append(True)
                    signal.setitimer(signal.ITIMER_REAL, next(delays))
                    for _ in range(20):
                        copy_context().run(walk, world.owner)  # NumPy's settings may stay as they are when interrupted
                except KeyboardInterrupt:
                    came += 1
                finally:
                    armed.clear()  # a signal that comes late does nothing
                    signal.setitimer(signal.ITIMER_REAL, 0)
                check_whole(world, walk, 3 if walk is walk_allocator else 1)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert came
