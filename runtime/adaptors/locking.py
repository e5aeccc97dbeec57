"""`ThreadSafeAllocator`: one thread at a time, for an upstream that needs it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..adaptor import Adaptor
from ..allocator import MemcpyKind
from ..handover import lock_steps

if TYPE_CHECKING:
    from ..allocator import DeviceAllocator, Event
    from ..pointers import Pointer

__all__ = ["ThreadSafeAllocator"]


class ThreadSafeAllocator(Adaptor):
    """Lets one thread at a time into the upstream; RMM's ``thread_safe_resource_adaptor``.

    The allocators of this package need none; it is for somebody else's.  Waiting for an event and for a stream needs
    no turn, so that nobody who waits keeps the others from going on.  A finaliser that
    releases memory needs a turn too, and may have one while the thread that runs it is inside.
    """

    def __init__(self, upstream: DeviceAllocator) -> None:
        super().__init__(upstream)
        self._lock = threading.RLock()

    def allocate(self, byte_size: int) -> Pointer | None:
        allocating = map(self._upstream.allocate, (byte_size,))
        entering, leaving = lock_steps(self._lock)
        (_,) = entering
        try:
            (ptr,) = allocating
        finally:
            (_,) = leaving
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        releasing = map(self._upstream.release, (ptr,))
        entering, leaving = lock_steps(self._lock)
        (_,) = entering
        try:
            (_,) = releasing
        finally:
            (_,) = leaving

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Pointer,
        dest: Pointer,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,
    ) -> None:
        with self._lock:
            self._upstream.memcpy(src, dest, byte_size, kind, stream, need_sync)

    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        with self._lock:
            self._upstream.memset_zero(ptr, byte_size, stream, need_sync)

    def empty(self, byte_size: int) -> Pointer:
        with self._lock:
            return self._upstream.empty(byte_size)

    def stream(self) -> Any:
        with self._lock:
            return self._upstream.stream()

    def record(self, stream: Any) -> Event:
        with self._lock:
            return self._upstream.record(stream)

    def order_after(self, event: Event) -> None:
        with self._lock:
            self._upstream.order_after(event)
