"""How a block changes hands, so that an interrupt neither loses it nor leaves it with two owners.

An interrupt is whatever can come at a moment that nobody chose: Ctrl-C, ``SystemExit``, ``MemoryError`` or
``RecursionError``.  CPython looks for signals when a function starts, after a call, and when a loop jumps back, and an
instruction that makes an object can find no memory.  Between two such points nothing comes, and no other thread runs.

Every allocator here keeps one promise.  An ``allocate`` or ``release`` that raises, whatever it raises, has changed no
book; one that returns has changed all.  Three rules are enough for it:

* **The books change in the last step.**  From there to the return there is no call and no new object.  Such steps are
  an item assignment, ``del book[key]``, ``book += items``, and assignments of values at hand to attributes.
* **C code stores what a call returns.**  In ``ptr = upstream.allocate(size)`` an interrupt can come after the call and
  before the store, and then the block is nobody's.  ``(ptr,) = map(upstream.allocate, (size,))`` has no such gap.  A
  ``map`` can also be made in advance.  It is then a step that is taken when it is unpacked, and steps that are unpacked
  one after the other are one step.
* **What came before the last step is undone** if the last step is not reached.

So in a stack of allocators all books change at the same moment.

A finaliser that is interrupted goes on.  One point is left, where ``__del__`` starts, before its first line.  What
would be lost there is in the hands of a `SecondChance`, whose finaliser comes next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .failures import attempt, warn_of_leak, where_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["SecondChance", "lock_steps", "take_back"]


def take_back(allocator: DeviceAllocator, ptr: Pointer | None, error: BaseException) -> None:
    """Release a block that nobody gets, because the call that allocated it ends with `error`; None is ignored."""
    if ptr is not None and (problem := attempt(allocator.release, ptr)):
        warn_of_leak(f"a block leaked on {where_of(allocator)}: {problem}", error)


def lock_steps(lock: Any, *, wait: bool = True) -> tuple[Iterator[bool], Iterator[None]]:
    """Two steps: to acquire a lock, which tells whether it was acquired, and to release it.

    A ``with`` block acquires without a gap, but the call that releases the lock is a point where an interrupt can come,
    too late for what was done in the block to be undone.
    """
    return map(lock.acquire, (wait,)), map(lock.__exit__, (None,))


class SecondChance:
    """Does what a finaliser has to do when that finaliser is over, in case it was interrupted.

    Parameters
    ----------
    act : callable
        It finds nothing to do if the finaliser came to its end.  It knows nothing of the object that is going.
    """

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def __del__(self) -> None:
        self._act()
