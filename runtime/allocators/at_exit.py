"""What allocators that keep memory do at the exit of the interpreter."""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["act_at_exit", "at_exit"]

_living: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()


def at_exit(it: Any, act: Callable[[Any], object]) -> None:
    """Call ``act(it)`` at the exit of the interpreter, while everything still works, unless `it` is gone before."""
    _living[it] = act


@atexit.register
def act_at_exit() -> None:
    """Do what has to be done at the exit of the interpreter."""
    for it, act in list(_living.items()):
        act(it)
