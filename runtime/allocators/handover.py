"""How a block changes its owner, so that an interrupt never leaves it with no owner or with two.

An interrupt is an exception that can come at nearly any moment: Ctrl-C, ``SystemExit``, ``MemoryError`` or
``RecursionError``.  CPython looks for signals when a function starts, after a call, and when a loop jumps back.  Also,
an instruction that makes an object can find no memory.  Between two such points no interrupt comes, and no other thread
runs.

Every allocator here keeps one promise.  An ``allocate`` or ``release`` that raises, whatever it raises, has changed no
record of any allocator of the stack; one that returns has changed all of them.  Three rules are enough for this:

* **The record changes in the last step.**  After it, until the return, there is no call and no new object.  Such steps
  are an item assignment, ``del record[key]``, ``record += items``, and assignments of existing values to attributes.
* **C code stores what a call returns.**  In ``ptr = upstream.allocate(size)`` an interrupt can come after the call and
  before the store.  Then nobody owns the block.  ``(ptr,) = map(upstream.allocate, (size,))`` has no such gap.  A
  ``map`` can also be made in advance: its call happens when it is unpacked.  If several of them are unpacked one after
  the other, no interrupt comes between them.
* **If the last step is not reached, all steps before it are undone.**

So all records in a stack of allocators change at the same moment.

A finaliser that is interrupted continues.  One point is left: the start of ``__del__``, before its first line.  For it
there is `SecondChance`, whose own finaliser runs next and does the work.
"""

from __future__ import annotations

import atexit
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .failures import attempt, warn_of_leak, where_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["SecondChance", "act_at_exit", "at_exit", "lock_steps", "take_back"]


def take_back(allocator: DeviceAllocator, ptr: Pointer | None, error: BaseException) -> None:
    """Release a block that nobody gets, because its ``allocate`` is about to raise `error`; None is ignored."""
    if ptr is not None and (problem := attempt(allocator.release, ptr)):
        warn_of_leak(f"a block leaked on {where_of(allocator)}: {problem}", error)


def lock_steps(lock: Any, *, wait: bool = True) -> tuple[Iterator[bool], Iterator[None]]:
    """Two steps: the first acquires a lock and tells whether it did, the second releases the lock.

    A ``with`` block acquires a lock without a gap.  But an interrupt can come in the call that releases the lock, when
    it is too late to undo what the block has done.
    """
    return map(lock.acquire, (wait,)), map(lock.__exit__, (None,))


class SecondChance:
    """Repeats the work of a finaliser after it, in case the finaliser was interrupted.

    Parameters
    ----------
    act : callable
        Does the work, and nothing if the finaliser has done it.  It must not refer to the object that is finalised.
    """

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    # At the exit of the interpreter the memory goes with the process, and the globals of modules may be gone; so the
    # function that tells is a default.
    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_over():
            self._act()


_living: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()


def at_exit(it: Any, act: Callable[[Any], object]) -> None:
    """Call ``act(it)`` at the exit of the interpreter, while everything still works, unless `it` is gone before."""
    _living[it] = act


@atexit.register
def act_at_exit() -> None:
    """Do what has to be done at the exit of the interpreter."""
    for it, act in list(_living.items()):
        act(it)
