"""A long run of random calls, with a shadow of every byte, over shared pools, and some of the calls fail.

The shadow knows what was written last, and nothing of heads.  What is read, on either side, must be that.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.model import AllocationError, DeviceError, IllegalCallError
from syncedmem.model.interface import is_host
from syncedmem.runtime import (
    Blob,
    Buffer,
    CPUDeviceAllocator,
    FailingAllocator,
    GuardingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    SyncedMemory,
    TrackingAllocator,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1, 7, 64, 1000)


class Soak:
    """Objects over one host and one device, the shadow of each, and the calls that are made of them.

    Parameters
    ----------
    seed : int
        Everything that is chosen follows from it.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- no secret
        self.real_host, self.real = CPUDeviceAllocator(), SimulatedDeviceAllocator(seed=seed)
        self.failures = 0
        self.pools = [PoolAllocator(TrackingAllocator(GuardingAllocator(item))) for item in (self.real_host, self.real)]
        self.host, self.device = (
            FailingAllocator(FailingAllocator(pool, when=self.fails), operation="memcpy", when=self.fails)
            for pool in self.pools
        )
        self.where: dict[str, Any] = {"host": self.host, "pinned": self.host, "device": self.device}
        self.memories: list[tuple[SyncedMemory, np.ndarray[Any, Any]]] = []
        self.blobs: list[tuple[Blob[Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.buffers: list[tuple[Buffer, np.ndarray[Any, Any]]] = []

    def fails(self, _size: int) -> bool:
        """Whether an allocation or a copy fails: one of fifty."""
        failed = self.random.random() < 0.02
        self.failures += failed
        return failed

    def numbers(self, size: int) -> np.ndarray[Any, Any]:
        """New bytes."""
        return np.frombuffer(self.random.randbytes(size), np.uint8)

    def step(self) -> None:
        """Make one call, which may fail; then nothing has changed."""
        act: Callable[[], None] = self.random.choice(
            [self.make, self.write_memory, self.read_memory, self.adopt, self.push, self.drop, self.blob, self.buffer]
        )
        with suppress(AllocationError, DeviceError):
            act()

    def make(self) -> None:
        """Make another object, of every kind in turn, while there are few."""
        size = self.random.choice(SIZES)
        if len(self.memories) < 8:
            memory = SyncedMemory(size, **self.where)
            memory.cpu_data()
            self.memories.append((memory, np.zeros(size, np.uint8)))
        if len(self.blobs) < 6:
            blob = Blob(size, dtype="float32", **self.where)
            blob.data[...] = 1
            blob.diff[...] = 0
            self.blobs.append((blob, np.ones(size, np.float32), np.zeros(size, np.float32)))
        if len(self.buffers) < 6:
            buffer = Buffer(size, self.random.choice([self.host, self.device]))
            buffer.copy_from(Buffer.from_external(self.numbers(size).copy()))
            shadow = np.empty(size, np.uint8)
            Buffer.from_external(shadow).copy_from(buffer)
            self.buffers.append((buffer, shadow))

    def write_memory(self) -> None:
        """Write a part of a memory, on one side."""
        if not self.memories:
            return
        memory, shadow = self.random.choice(self.memories)
        start, new = self.random.randrange(memory.size), self.numbers(memory.size)
        on_host = self.random.random() < 0.5
        view: Any = memory.mutable_cpu_data() if on_host else memory.mutable_gpu_data()
        if on_host:
            view[start:] = new[start:]
        else:
            view[start:].set(new[start:])
        shadow[start:] = new[start:]

    def read_memory(self) -> None:
        """Read a memory on one side, or both."""
        if self.memories:
            memory, shadow = self.random.choice(self.memories)
            if self.random.random() < 0.6:
                assert memory.cpu_data().tobytes() == shadow.tobytes()
            if self.random.random() < 0.6:
                assert memory.gpu_data().get().tobytes() == shadow.tobytes()

    def adopt(self) -> None:
        """Give a memory a buffer of somebody else."""
        if not self.memories:
            return
        memory, shadow = self.random.choice(self.memories)
        new = self.numbers(memory.size).copy()
        if self.random.random() < 0.5:
            memory.set_cpu_data(new)
        else:
            theirs = self.real.empty(memory.size)
            theirs.set(new)
            memory.set_gpu_data(theirs)
        shadow[:] = new

    def push(self) -> None:
        """Push, and sometimes read or write at once."""
        if self.memories:
            memory, _ = self.random.choice(self.memories)
            with suppress(IllegalCallError):
                memory.async_gpu_push(stream=self.real.stream())

    def drop(self) -> None:
        """Close or drop an object."""
        kind: list[Any] = self.random.choice([self.memories, self.blobs, self.buffers])
        if kind:
            thing = kind.pop(self.random.randrange(len(kind)))[0]
            if hasattr(thing, "close") and self.random.random() < 0.5:
                thing.close()

    def blob(self) -> None:
        """Write, compute with, copy or reshape a blob, and compare its numbers."""
        if not self.blobs:
            return
        index = self.random.randrange(len(self.blobs))
        blob, data, diff = self.blobs[index]
        choice = self.random.randrange(7)
        if choice == 0:
            blob.data[...] = data[...] = self.random.randrange(100)
        elif choice == 1:
            blob.mutable_gpu_diff().set(np.full(data.size, 3, np.float32))
            diff[...] = 3
        elif choice == 2:
            blob.update()
            data -= diff
        elif choice == 3:
            blob.scale_data(0.5)
            data *= np.float32(0.5)
        elif choice == 4:
            other, theirs, _ = self.random.choice(self.blobs)
            if other.shape == blob.shape:
                blob.copy_from(other)
                data[...] = theirs
        elif choice == 5:
            blob.shrink_to_fit()
        self.compare(*self.blobs[index])

    def compare(self, blob: Blob[Any], data: np.ndarray[Any, Any], diff: np.ndarray[Any, Any]) -> None:
        """A blob has the numbers of its shadow, on both sides."""
        assert blob.cpu_data().tobytes() == data.tobytes()
        assert blob.gpu_data().get().tobytes() == data.tobytes()
        assert blob.cpu_diff().tobytes() == diff.tobytes()

    def buffer(self) -> None:
        """Copy between two buffers, some on a stream, and compare."""
        if not self.buffers:
            return
        target, shadow = self.random.choice(self.buffers)
        source, theirs = self.random.choice(
            [buffer for buffer in self.buffers if buffer[0].byte_size <= target.byte_size]
        )
        on_device = not (is_host(target.allocator) and is_host(source.allocator))
        target.copy_from(source, stream=self.real.stream() if on_device and self.random.random() < 0.5 else None)
        shadow[: theirs.size] = theirs
        seen = np.empty(target.byte_size, np.uint8)
        Buffer.from_external(seen).copy_from(target)
        assert seen.tobytes() == shadow.tobytes()

    def end(self) -> None:
        """Everything is dropped: nothing is left, and nobody wrote where he must not."""
        for kind in (self.memories, self.blobs, self.buffers):
            kind.clear()
        for pool in self.pools:
            pool.close()
            guard: Any = pool.upstream
            guard.upstream.check()
            guard.upstream.clear()
        assert (self.real_host.live_blocks, self.real.live_blocks) == (0, 0)
        self.real.check()


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(8))
def test_every_byte_is_what_was_written_last(seed: int) -> None:
    soak = Soak(seed)
    for _ in range(5_000):
        soak.step()
    soak.end()
    assert soak.failures > 20


def test_a_short_run_is_clean() -> None:
    soak = Soak(1)
    for _ in range(300):
        soak.step()
    soak.end()
    assert soak.failures
