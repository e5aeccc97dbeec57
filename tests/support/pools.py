"""Pools for tests: over memory that does not exist, with idle blocks, and with a block that a copy is queued into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from subjects import SIZE

from syncedmem.runtime import MemcpyKind, PoolAllocator

if TYPE_CHECKING:
    from collections.abc import Callable


MIB, GIB = 1 << 20, 1 << 30


class Paper:
    """An allocator of memory that does not exist: its blocks have a length, but no bytes."""

    name = "paper:0"
    ordinal = 0

    def __init__(self, capacity: int = 1 << 60) -> None:
        self.room = capacity
        self.live: dict[int, Any] = {}
        self.allocated: list[int] = []
        self.released: list[int] = []
        self.stubborn: set[int] = set()

    def allocate(self, byte_size: int) -> Any:
        if byte_size > self.room:
            raise MemoryError(f"{self.room} bytes are left")
        self.room -= byte_size
        self.allocated.append(byte_size)
        block = Sheet(byte_size)
        self.live[id(block)] = block
        return block

    def release(self, ptr: Any) -> None:
        if len(ptr) in self.stubborn:
            raise RuntimeError("stuck")
        del self.live[id(ptr)]
        self.room += len(ptr)
        self.released.append(len(ptr))

    def viewer(self, ptr: Any) -> Callable[[], Any]:
        return lambda: Sheet(len(ptr), ptr.root)


class Sheet:
    """A block of `Paper`, or a view of one."""

    def __init__(self, size: int, root: Any = None) -> None:
        self.size = size
        self.root = root or self

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: slice) -> Sheet:
        return Sheet(key.stop, self.root)


def paper_pool(**options: Any) -> tuple[PoolAllocator, Paper]:
    """Return a pool over `Paper`, and the `Paper`."""
    paper: Any = Paper()
    return PoolAllocator(paper, **options), paper


def lent_and_returned(pool: PoolAllocator, *sizes: int) -> list[Any]:
    """Allocate and release blocks of these sizes, so that they are idle; return their roots."""
    blocks = [pool.allocate(size) for size in sizes]
    for block in blocks:
        pool.release(block)
    return [block.root for block in blocks if block is not None]


def pushed(pool: PoolAllocator, block: Any, stream: Any) -> None:
    """Queue a copy into a block."""
    pool.memcpy(np.ones(SIZE, np.uint8), block, SIZE, MemcpyKind.CPU2CUDA, stream)
