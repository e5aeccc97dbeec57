"""Bytes that nobody may write, in checked mode: how they are read, filled and compared, and what a pool is told.

A view outlives its block if the block goes back to a pool.  What is written through it then spoils the numbers of the
next owner, who has done nothing wrong.  So a checked owner leaves the pool `LateWrites`: the idle block is filled with
`POISON`, compared before it is lent or freed, and lent to nobody while an array over it is still in use.
"""

from __future__ import annotations

import atexit
import sys
from contextlib import suppress
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakSet

import numpy as np

from syncedmem.model import StaleWriteError

from .forking import fork_safe_lock

if TYPE_CHECKING:
    from syncedmem.model.interface import Pointer
    from syncedmem.model.lines import Line

    from .pointers import HostArray

__all__ = [
    "POISON",
    "LateWrites",
    "Telling",
    "anchored",
    "fill_with_poison",
    "first_difference",
    "poison_of",
    "read_bytes",
    "references_to",
    "root_of",
    "tell_at_exit",
]

POISON = 0xFF
"""The byte that fills what nobody may read: floats of it are NaN."""

_CHUNK = 1 << 18
"""In bytes; so much is compared at once: it stays in the cache, and a comparison needs no memory worth mentioning."""


def _on_host(ptr: Any) -> bool:
    return isinstance(ptr, np.ndarray)


def read_bytes(allocator: Any, ptr: Pointer) -> HostArray | None:
    """The bytes of an array: those of the host themselves, and a copy of those of a device; None if that fails."""
    content: HostArray | None = ptr if _on_host(ptr) else None
    if content is None:
        with suppress(Exception):  # it may be freed, and somebody else's allocator need not be able to do so
            content = allocator.peek(ptr)
    return content


def fill_with_poison(allocator: Any, ptr: Pointer) -> bool:
    """Fill an array with `POISON`; returns whether it could."""
    poison = ptr.fill if _on_host(ptr) else None
    with suppress(Exception):  # as above
        if poison is None:
            allocator.poison(ptr)
        else:
            poison(POISON)
        return True
    return False


def poison_of(byte_size: int) -> HostArray:
    """So many bytes of `POISON`, which take no memory."""
    return np.broadcast_to(np.uint8(POISON), byte_size)


def first_difference(expected: HostArray, content: HostArray) -> int | None:
    """The first byte in which two rows of bytes differ; None if there is none."""
    for start in range(0, len(expected), _CHUNK):
        differs = expected[start : start + _CHUNK] != content[start : start + _CHUNK]
        first = int(differs.argmax())
        if differs[first]:
            return start + first
    return None


def root_of(ptr: Any) -> Any:
    """The array that an array of the host is a part of, directly or not: views of it keep this one alive."""
    while _on_host(ptr.base):
        ptr = ptr.base
    return ptr


def anchored(array: Any, *, written: bool, dtype: Any = None, shape: tuple[int, ...] | None = None) -> Any:
    """An array over a row of bytes, or over the first of them, to which all views of it refer.

    NumPy makes a view of a view refer to the last array of the chain.  Here the chain ends, because below is no array
    but a `PickleBuffer`; it has no part in pickling, but NumPy looks through a `memoryview`.
    """
    content = memoryview(array)
    below: Any = PickleBuffer(content if written else content.toreadonly())
    return np.ndarray(array.shape if shape is None else shape, np.uint8 if dtype is None else dtype, below)


def references_to(allocator: Any, ptr: Pointer) -> int:
    """How many references there are to what the bytes of an array belong to; 0 if the allocator cannot say it."""
    count = getattr(allocator, "_references_to", None)
    return 0 if count is None else int(count(ptr))


class LateWrites(NamedTuple):
    """What is known of a block that its owner gives back to a pool.

    Attributes
    ----------
    side : str
        ``"host"`` or ``"device"``.
    byte_size : int
        How many bytes the owner had.
    taken, ended : Line or None
        The calls that returned the last array over it, and that gave it back.
    """

    side: str
    byte_size: int
    taken: Line | None
    ended: Line | None

    def error(self, call: str, position: int) -> StaleWriteError:
        """The error for a write after that."""
        return StaleWriteError(call, self.side, position, self.taken, self.ended, freed=True)


class Telling(Protocol):
    """What may have a late write to tell of when the interpreter exits."""

    def warn(self, why: str) -> None:
        """Warn of it; `why` says what has found it."""


_telling: WeakSet[Telling] = WeakSet()
_lock = fork_safe_lock()


def tell_at_exit(thing: Telling) -> None:
    """Have something warn at the exit, if it is still there then."""
    with _lock:
        _telling.add(thing)


# A sub-interpreter that nobody has ended ends while the main one is torn down.  A thread that gives up the GIL then, as
# NumPy does to compare, never gets it back, and the process would not end: so what was not told by then is not told.
@atexit.register
def _tell_all() -> None:
    if sys.is_finalizing():
        return
    with _lock:
        remaining = list(_telling)
    for thing in remaining:
        thing.warn("at the exit")
