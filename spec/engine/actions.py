"""Actions: what a memory does to its blocks, as its allocators see it or as a program says it."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["UNSAID", "Action", "Allocated"]

UNSAID = -1
"""The block of an action that does not say which one: of a free, the last of its side."""


class Action(NamedTuple):
    """Something that a memory does to its blocks.

    Attributes
    ----------
    does : str
        ``allocate``, ``zero``, ``copy``, ``push`` (a queued copy), ``clone`` (a copy within a side), ``free`` or
        ``wait``.
    side : str
        Of a copy, its destination.
    source : str
        Of a copy.
    size : int or None
        In bytes; None if it is not said.
    pinned : bool or None
        Of an allocation and a free; None if it is not said.
    stream : int, str or None
        Of a push and of a wait; None if it is not said, which is every stream for a wait.
    block : int, None, or ``UNSAID``
        The number of what is allocated or freed; None for something that is not allocated; ``UNSAID``: the last of its
        side.
    buffer : str
        The buffer of the caller that is freed.
    failed : bool
    """

    does: str
    side: str = ""
    source: str = ""
    size: int | None = None
    pinned: bool | None = None
    stream: Any = None
    block: int | None = UNSAID
    buffer: str = ""
    failed: bool = False


class Allocated(NamedTuple):
    """A block that is allocated: its side, its size in bytes, and whether it is page-locked."""

    side: str
    size: int
    pinned: bool = False

    def __str__(self) -> str:
        return f"{self.size} bytes on {self.side}{', page-locked' if self.pinned else ''}"
