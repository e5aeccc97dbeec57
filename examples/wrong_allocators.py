"""An allocator that is right, and one that is wrong on purpose: `syncedmem fuzz` passes the first and not the second.

Try it: `syncedmem fuzz examples/wrong_allocators.py:PutBackTwice`.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np


class FreeList:
    """Right: a freed block serves the next request for as many bytes, once the work that was queued on it is done."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks: dict[int, Any] = {}
        self.idle: dict[int, list[tuple[int, Any]]] = {}

    def allocate(self, size: int, stream: Any = None) -> int:
        """The address of an idle block, or of a new one."""
        del stream
        with self.lock:
            idle = self.idle.setdefault(size, [])
            for number, (block, last_use) in enumerate(idle):
                if last_use is None or last_use.done:
                    del idle[number]
                    return block
            try:
                memory = np.empty(size, np.uint8)
            except ValueError as error:  # NumPy has no arrays of so many bytes
                raise MemoryError from error
            block = int(memory.ctypes.data)
            self.blocks[block] = memory
            return block

    def deallocate(self, block: int, size: int, stream: Any = None) -> None:
        """Keep the block for later; work on the stream may still use it."""
        with self.lock:
            self.idle[size].append((block, None if stream is None else stream.record()))


class PutBackTwice(FreeList):
    """Wrong: a freed block is in the list twice, so two requests get it, as in glibc before 2.26."""

    def deallocate(self, block: int, size: int, stream: Any = None) -> None:
        """Keep the block, and keep it again."""
        super().deallocate(block, size, stream)
        super().deallocate(block, size, stream)
