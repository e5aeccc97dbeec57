"""`ThreadSafeAllocator`: one thread at a time, for an upstream that needs it."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .adaptor import Adaptor
from .failures import take_back
from .forking import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["ThreadSafeAllocator"]

CallT = TypeVar("CallT", bound="Callable[..., Any]")


def _taking_turns(call: CallT) -> CallT:
    """A call of an adaptor that lets one thread at a time into the upstream."""

    @wraps(call)
    def in_turn(self: Any, /, *arguments: Any, **named: Any) -> Any:
        with self._lock:
            return call(self, *arguments, **named)

    return cast("CallT", in_turn)


class ThreadSafeAllocator(Adaptor):
    """Lets one thread at a time into the upstream; RMM's ``thread_safe_resource_adaptor``.

    The allocators of this package do not need it; it is for somebody else's.  The lock is not held while a thread waits
    for an event or a stream, so a thread that waits does not stop the others.  A finaliser that releases memory takes
    the lock too.  It may take it even if its own thread is already inside.
    """

    def __init__(self, upstream: DeviceAllocator) -> None:
        super().__init__(upstream)
        self._lock = fork_safe_lock()

    def allocate(self, byte_size: int) -> Pointer | None:
        ptr = None
        try:
            with self._lock:
                ptr = self._upstream.allocate(byte_size)
        except BaseException as error:  # an interrupt may come when the lock is released
            take_back(self, ptr, error)
            raise
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        with self._lock:
            self._upstream.release(ptr)

    if not TYPE_CHECKING:  # they have the types of what they wrap
        memcpy = _taking_turns(Adaptor.memcpy)
        memset_zero = _taking_turns(Adaptor.memset_zero)
        empty = _taking_turns(Adaptor.empty)
        stream = _taking_turns(Adaptor.stream)
        record = _taking_turns(Adaptor.record)
        order_after = _taking_turns(Adaptor.order_after)
