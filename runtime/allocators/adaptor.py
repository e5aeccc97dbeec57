"""`Adaptor`: an allocator over another allocator, its upstream, which does the work.

An adaptor passes on unchanged whatever it does not change itself.  So a stack of adaptors, in any order, is an
allocator like the one at the bottom: it is of the same device, and has the same streams and the same alignment.

``allocate`` calls the upstream first and changes the adaptor's own record last.  ``release`` changes the adaptor's own
record first, so that of two threads only one succeeds, and calls the upstream last.  If that refuses, the record
is restored.  Wherever a record changes, CPython delivers no signal between its parts: there is no call between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from syncedmem.model.interface import DeviceType, MemcpyKind

from .arithmetic import arithmetic_of
from .base import DeviceAllocator, check_allocator
from .failures import is_live, where_of
from .late_writes import references_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from syncedmem.model.interface import Allocator, Event, Pointer, Stream

    from .arithmetic import Arithmetic
    from .late_writes import LateWrites
    from .pointers import HostArray

__all__ = ["COUNTS", "Adaptor"]

COUNTS = frozenset({"allocated_bytes", "leak_report", "live_blocks", "outstanding_allocations", "statistics"})
"""The attributes that tell how much is allocated.  Below an adaptor that keeps memory, they count what it keeps too."""


class Adaptor(DeviceAllocator):
    """Passes every call on to another allocator; subclasses override what they change.

    Attributes that only `upstream` has (``live_blocks``, ``check``, ``fail_at``...) can be read from the adaptor too.
    There is one exception: if an adaptor keeps released memory, the counts of its upstream are not those of its users,
    so they raise ``AttributeError`` here.  Ask the upstream itself.
    Type checkers know only the attributes of the adaptor itself; keep the upstream in a variable to use the others.
    `pinned_host` is passed on unchanged: page-locked memory belongs to another allocator, which takes its own adaptors;
    a memory takes it as ``pinned=``.

    Parameters
    ----------
    upstream : DeviceAllocator
        Or any object that has the same calls.

    Raises
    ------
    InvalidArgumentError
        If `upstream` is no allocator.

    Attributes
    ----------
    keeps_memory : bool
        Whether a block may stay with the adaptor after its release, or be larger than the request.
    """

    keeps_memory: ClassVar[bool] = False

    def __init__(self, upstream: DeviceAllocator) -> None:
        check_allocator("upstream", upstream, "an allocator")
        self._upstream = upstream
        self.device_type: DeviceType = getattr(upstream, "device_type", DeviceType.UNKNOWN)
        self.ordinal: int = getattr(upstream, "ordinal", 0)

    @property
    def upstream(self) -> DeviceAllocator:
        """The allocator below this one."""
        return self._upstream

    @property
    def name(self) -> str:
        return where_of(self._upstream)

    def allocate(self, byte_size: int) -> Pointer | None:
        return self._upstream.allocate(byte_size)

    def release(self, ptr: Pointer | None) -> None:
        self._upstream.release(ptr)

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Pointer,
        dest: Pointer,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,
    ) -> None:
        self._upstream.memcpy(src, dest, byte_size, kind, stream, need_sync)

    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        self._upstream.memset_zero(ptr, byte_size, stream, need_sync)

    def empty(self, byte_size: int) -> Pointer:
        return self._upstream.empty(byte_size)

    def stream(self) -> Stream:
        return self._upstream.stream()

    def check_stream(self, stream: object) -> None:
        self._upstream.check_stream(stream)

    def adopt(self, buffer: object, byte_size: int) -> Pointer:
        return self._upstream.adopt(buffer, byte_size)

    def overlaps(self, first: Pointer, second: Pointer) -> bool:
        return self._upstream.overlaps(first, second)

    def record(self, stream: Any) -> Event:
        return self._upstream.record(stream)

    def order_after(self, event: Event) -> None:
        self._upstream.order_after(event)

    def current_stream(self) -> Stream | None:
        # Somebody else's allocator need not have it: a memory does not call it.
        current: Callable[[], Stream | None] = getattr(self._upstream, "current_stream", super().current_stream)
        return current()

    def on(self, stream: Stream | None) -> AbstractContextManager[object]:
        entering: Callable[[Stream | None], AbstractContextManager[object]] = getattr(self._upstream, "on", super().on)
        return entering(stream)

    def pinned_host(self) -> Allocator:
        return self._upstream.pinned_host()

    def read_only(self, ptr: Pointer) -> Pointer:
        return self._upstream.read_only(ptr)

    def viewer(self, ptr: Pointer) -> Callable[[], Pointer]:
        return self._upstream.viewer(ptr)

    def using(self) -> AbstractContextManager[object]:
        return self._upstream.using()

    def current_ordinal(self) -> int:
        return self._upstream.current_ordinal()

    def arithmetic(self) -> Arithmetic:
        return arithmetic_of(self._upstream)

    def settled(self) -> bool:
        ask: Callable[[], bool] = getattr(self._upstream, "settled", bool)  # somebody else's need not have these
        return ask()

    def peek(self, ptr: Pointer) -> HostArray:
        return self._upstream.peek(ptr)

    def poison(self, ptr: Pointer) -> None:
        self._upstream.poison(ptr)

    def _references_to(self, ptr: Pointer) -> int:
        return references_to(self._upstream, ptr)

    def _is_live(self, ptr: Pointer) -> bool | None:
        return is_live(self._upstream, ptr)

    def watch_idle(self, ptr: Pointer, late: LateWrites) -> None:
        watch: Callable[[Pointer, LateWrites], None] = getattr(self._upstream, "watch_idle", super().watch_idle)
        watch(ptr, late)

    def is_pageable(self, ptr: Pointer) -> bool | None:
        ask: Callable[[Pointer], bool | None] = getattr(self._upstream, "is_pageable", super().is_pageable)
        return ask(ptr)

    def _of_upstream(self, name: str) -> Any:
        # Names with an underscore are not passed on: if `_upstream` itself were missing, this would recurse for ever.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if self.keeps_memory and name in COUNTS:
            raise AttributeError(
                f"{type(self).__name__} keeps memory, so its upstream's {name} does not tell what is out: ask .upstream"
            )
        return getattr(cast("Any", self._upstream), name)

    if not TYPE_CHECKING:  # a checker that saw it would take every name for one of the upstream
        __getattr__ = _of_upstream

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._upstream!r}>"
