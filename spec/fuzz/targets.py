"""A target of the fuzzer: a few functions and a capability record.

Allocators differ in their names, in the kind of their pointers, and in the arguments of a free.  For those in Python
`conventions` makes the target, for those in shared libraries `native`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .c_functions import CContracts
    from .capabilities import Capabilities

__all__ = ["SIZE_MAX", "Target"]

SIZE_MAX = 2 * sys.maxsize + 1
"""The largest size that a function in C can be told."""


@dataclass(frozen=True, repr=False)
class Target:
    """One allocator.

    Attributes
    ----------
    kind : str
        The convention that it follows, in words.
    subject : object
        The allocator itself, for its statistics, its limit and its close.
    capabilities : Capabilities
        Its promises, unless the user replaces them.
    take : callable
        ``take(size)`` returns the allocator's result; ``None`` or 0 is null.
    give : callable
        ``give(handle, size)`` frees it.
    take_aligned, take_on, give_on, take_zeroed, take_many, resize, copy : callable or None
        ``take_aligned(size, alignment)``, ``take_on(size, stream)``, ``give_on(handle, size, stream)``,
        ``take_zeroed(size)``, ``take_many(count, size)``, ``resize(handle, size, old_size)``,
        ``copy(source, destination, size)``, if the allocator has them.
    reset : callable or None
        ``reset()`` frees all blocks, and makes the allocator as new.
    read, write : callable or None
        ``read(handle, size)`` and ``write(handle, data)``, if the allocator has them.
    usable_size : callable or None
        ``usable_size(handle)`` is the number of bytes that may be used, if the allocator says it.
    contracts : CContracts or None
        The calls of which C and POSIX say more than that they allocate, if the target has C's functions.
    keeps_alignment : bool
        Whether `resize` is told the alignment that was asked for, so that the block must have it afterwards too.
    most : int
        The largest size that its functions can be told.
    owned : bool
        Whether it was made only for this run, and may be closed.
    """

    kind: str
    subject: Any
    capabilities: Capabilities
    take: Callable[[int], Any]
    give: Callable[[Any, int], Any]
    take_aligned: Callable[[int, int], Any] | None = None
    take_on: Callable[[int, Any], Any] | None = None
    give_on: Callable[[Any, int, Any], Any] | None = None
    take_zeroed: Callable[[int], Any] | None = None
    take_many: Callable[[int, int], Any] | None = None
    resize: Callable[[Any, int, int], Any] | None = None
    copy: Callable[[Any, Any, int], Any] | None = None
    reset: Callable[[], Any] | None = None
    read: Callable[[Any, int], bytes] | None = None
    write: Callable[[Any, bytes], Any] | None = None
    usable_size: Callable[[Any], int] | None = None
    contracts: CContracts | None = None
    keeps_alignment: bool = False
    most: int = SIZE_MAX
    owned: bool = False

    def __repr__(self) -> str:
        return f"<Target {self.subject!r}: {self.kind}>"
