"""The bytes of an allocator's memory, written and read without the subject under test."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from syncedmem.model.interface import MemcpyKind, is_host

__all__ = ["SIZE", "Place"]

SIZE = 16
"""Of a block, in bytes, where the size does not matter."""


class Place:
    """Somewhere to put bytes: the memory of an allocator, and the host memory beside it.

    Attributes
    ----------
    upstream : Allocator
    on_host : bool
        Whether it is an allocator of host memory.
    host : Allocator
        The allocator of rows of bytes; itself if it is on the host.
    """

    def __init__(self, allocator: Any) -> None:
        self.upstream = allocator
        self.on_host: bool = is_host(allocator)
        self.host: Any = allocator if self.on_host else allocator.pinned_host()

    def row(self, content: bytes) -> Any:
        """Make a row of bytes in host memory."""
        row = self.host.empty(len(content))
        memoryview(row)[:] = content
        return row

    def write(self, ptr: Any, content: bytes) -> None:
        """Write bytes to the beginning of an array of this place."""
        kind = MemcpyKind.CPU2CPU if self.on_host else MemcpyKind.CPU2CUDA
        self.upstream.memcpy(self.row(content), ptr, len(content), kind)

    def read(self, ptr: Any) -> bytes:
        """Return the bytes of an array, of this place or of the host."""
        with suppress(TypeError):  # the host cannot read an array of a device directly
            return bytes(memoryview(ptr))
        row = self.host.empty(len(ptr))
        self.upstream.memcpy(ptr, row, len(ptr), MemcpyKind.CUDA2CPU)
        return bytes(memoryview(row))
