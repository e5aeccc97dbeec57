"""A pool over host memory, and its caller; checks that their records agree."""

# These tests read the private records of pools.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Heap:
    """A pool, which a test puts over the bottom as its stack, and its caller.

    Attributes
    ----------
    out : list of arrays
        The blocks that the caller has.
    """

    def __init__(self, bottom: Any) -> None:
        self.bottom = bottom
        self.stack: Any = bottom
        self.out: list[Any] = []

    def with_blocks(self, *sizes: int) -> None:
        """Allocate a block of each of these sizes."""
        for size in sizes:
            self.allocate(size)

    def allocate(self, byte_size: int) -> None:
        """Allocate, and store the block."""
        self.out.append(self.stack.allocate(byte_size))

    def release(self, number: int) -> None:
        """Release a block of the caller, and forget it if it was released."""
        self.stack.release(self.out[number])
        del self.out[number]

    def check(self) -> None:
        """Fail unless no lock is held, and the records of the pool agree with what the caller has."""
        with ThreadPoolExecutor(1) as elsewhere:
            assert elsewhere.submit(self.stack._lock.acquire, blocking=False).result(), "a lock is held"
            elsewhere.submit(self.stack._lock.release).result()
        assert not getattr(self.stack, "_busy", False), "a pool is busy"
        live, idle = self.stack._live, self.stack._idle
        assert {id(ptr) for ptr in self.out} == set(live.blocks), "live blocks"
        assert len(self.out) == len(live)
        blocks = live.all_behind() + idle.everything()
        assert len(blocks) == len({id(block) for block in blocks}), "a block is in two places"
        assert len(blocks) == len({id(block.whole) for block in blocks}), "memory is in two blocks"
        assert all(block.whole is not None for block in blocks), "a block that was given back is kept"
        figures = len(idle.everything()), sum(block.size for block in idle.everything())
        assert figures == (self.stack.idle_blocks, self.stack.idle_bytes), "idle figures"
        assert sum(block.size for block in idle.small()) == idle.small_bytes, "small bytes"

    def finish(self) -> None:
        """Use the pool once more, give everything back, and fail if anything is left."""
        self.with_blocks(64, 100, 3000)
        for number, ptr in enumerate(self.out):
            ptr[:] = number
        assert [*range(len(self.out))] == [ptr[0] for ptr in self.out], "two have one block"
        while self.out:
            self.release(-1)
        self.check()
        self.stack.close()
        self.check()
        assert 0 == self.bottom.live_blocks, "blocks are left"
