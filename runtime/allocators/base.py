"""`DeviceAllocator`: the base class of our allocators.  ``model.interface`` says what each of its calls means."""

from __future__ import annotations

from abc import ABC
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Never, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, NotCopyableError
from syncedmem.model.interface import OPERATIONS, Allocator, DeviceType, MemcpyKind

from .late_writes import POISON
from .pointers import End

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from syncedmem.model.interface import Pointer, Stream

    from .arithmetic import Arithmetic
    from .late_writes import LateWrites
    from .pointers import HostArray

__all__ = [
    "SOURCES",
    "TARGETS",
    "DeviceAllocator",
    "check_allocator",
    "check_event",
    "check_kind",
    "check_operation",
    "lends_new_blocks",
]

# Made once, because every copy needs two of them.
SOURCES = {kind: End("src", kind.from_device, False, f"MemcpyKind.{kind.name}") for kind in MemcpyKind}
"""For each direction of a copy: where the source must be, and what errors say if it is not there."""

TARGETS = {kind: End("dest", kind.to_device, True, f"MemcpyKind.{kind.name}") for kind in MemcpyKind}
"""For each direction of a copy: where the destination must be."""


class DeviceAllocator(Allocator, ABC):
    """The base class of our allocators: the interface to memory, with defaults for what is the same on most devices.

    An allocator does not need this base class.  `model.interface.Allocator` says what each call means, and every object
    that has these calls is an allocator.

    Attributes
    ----------
    device_type : DeviceType
    ordinal : int
        The number of the device, among those of its type.
    """

    # The protocol has properties, which a plain attribute satisfies.
    device_type: DeviceType = DeviceType.UNKNOWN  # pyright: ignore[reportIncompatibleMethodOverride] -- as said above
    ordinal: int = 0  # pyright: ignore[reportIncompatibleMethodOverride] -- as said above

    @property
    def name(self) -> str:
        return f"{self.device_type.name.lower()}:{self.ordinal}"

    def arithmetic(self) -> Arithmetic:
        """Arithmetic on this memory; `arithmetic_of` asks for it.

        Raises
        ------
        InvalidArgumentError
            The base class has no arithmetic; a device that has it overrides this method.
        """
        raise InvalidArgumentError("allocator", self, "one of a device that can compute")

    def current_stream(self) -> Stream | None:
        """The stream of this thread's work that names no stream; None where no work is queued.

        Copies that name another stream, and pushes, come after the work that is queued here before them.
        """
        return None

    def on(self, stream: Stream | None) -> AbstractContextManager[object]:
        """Make a stream the current one of this thread, inside a ``with`` block.

        Raises
        ------
        InvalidArgumentError
            If `stream` is no stream of this device.
        """
        self.check_stream(stream)
        return nullcontext(stream)

    def _is_mine(self, ptr: object) -> bool:
        """Whether an object is an array of this device's kind, on this device; devices say more than this."""
        return hasattr(ptr, "view")

    def _check_mine(self, argument: str, ptr: object) -> None:
        """Refuse an object that is no memory of this device."""
        if not self._is_mine(ptr):
            raise InvalidArgumentError(argument, ptr, f"memory of {self.name}")

    def _are_mine(self, first: object, second: object) -> bool:
        """Whether there are two pointers to compare, and neither is None; errors as for `_check_mine`."""
        for argument, ptr in (("first", first), ("second", second)):
            if ptr is not None:
                self._check_mine(argument, ptr)
        return first is not None and second is not None

    def read_only(self, ptr: Pointer) -> Pointer:
        self._check_mine("ptr", ptr)
        return ptr

    def viewer(self, ptr: Pointer) -> Callable[[], Pointer]:
        self._check_mine("ptr", ptr)
        maker: Callable[[], Pointer] = ptr.view
        return maker

    def using(self) -> AbstractContextManager[object]:
        return nullcontext()

    def current_ordinal(self) -> int:
        return self.ordinal

    # --- for checked memories, and for those that count copies: these are no calls of an interface that anybody counts

    def settled(self) -> bool:
        """Whether no queued work may still use memory of this device: a real device is waited for."""
        self.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, None, need_sync=True)
        return True

    def peek(self, ptr: Pointer) -> HostArray:
        """A copy of the bytes that an array has after the work of the current stream, on the host.

        Raises
        ------
        InvalidArgumentError
            If it is no memory of this device.
        """
        self._check_array(ptr)
        with self.using():
            content: HostArray = ptr.get()
        return content

    def poison(self, ptr: Pointer) -> None:
        """Fill an array with the byte 0xFF, while no work is queued that may use it.

        Raises
        ------
        InvalidArgumentError
            If it is no memory of this device.
        """
        self._check_array(ptr)
        with self.using():
            ptr.set(np.full(len(ptr), POISON, np.uint8))
        self.settled()  # who looks at it may do so on another stream

    def _references_to(self, ptr: Pointer) -> int:
        """How many references there are to what the bytes of an array of this allocator belong to; 0: nobody knows.

        Each array over these bytes has one.
        """
        del ptr
        return 0

    def _is_live(self, ptr: Pointer) -> bool | None:
        """Whether an array is a block that was allocated here and is not released; None: nobody knows.

        Asked after a release that an error or an interrupt has ended.
        """
        del ptr
        return None

    def watch_idle(self, ptr: Pointer, late: LateWrites) -> None:
        """Tell of writes into a live block after its release, which comes next; nothing where no block is kept."""
        del ptr, late

    def is_pageable(self, ptr: Pointer) -> bool | None:
        """Whether host memory is pageable, so that copies between it and this device are slower.

        None if that makes no difference on this device.
        """
        del ptr
        return None

    def _check_array(self, ptr: Pointer) -> None:
        self._check_mine("ptr", ptr)
        if not hasattr(ptr, "set"):
            raise InvalidArgumentError("ptr", ptr, "memory of a device")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "share it, or make another one")


def lends_new_blocks(allocator: object) -> bool:
    """Whether nobody can have an array over a block that was allocated just now, and the allocator can count views.

    Its own class has to say so.  One that is derived from ours may keep blocks, of which somebody has views still.
    An allocator that says so has ``_anchored(ptr, *, written, dtype=None, shape=None)``.  It returns an array over a
    block, to read or to write, and an object to which nothing refers but that array and its views.  What is made of
    these counts as a view.  With `dtype` and `shape` the array has the first bytes as such elements.
    """
    return bool(vars(type(allocator)).get("lends_new_blocks"))


def check_allocator(argument: str, allocator: object, expected: str) -> None:
    """Refuse an object without ``allocate``, or a class.  Somebody else's allocator needs no base class of ours."""
    if isinstance(allocator, type) or not hasattr(allocator, "allocate"):
        raise InvalidArgumentError(argument, allocator, expected)


def check_event(event: object, kind: type, where: str) -> None:
    """Refuse an object that is no event of a device."""
    if not isinstance(event, kind):
        raise InvalidArgumentError("event", event, f"an event of {where}, as its record() returns")


def check_operation(operation: object, other: str = "") -> str:
    """The name of a call that touches memory, after a check; `other` says what else there may be."""
    if not isinstance(operation, str) or operation not in OPERATIONS:
        raise InvalidArgumentError("operation", operation, f"one of {', '.join(OPERATIONS)}{other}")
    return operation


def check_kind(kind: object) -> MemcpyKind:
    """The direction of a copy; its number is accepted too."""
    if type(kind) is MemcpyKind:
        return kind  # the usual case, and every copy comes here
    try:
        return MemcpyKind(cast("Any", kind))
    except ValueError:
        raise InvalidArgumentError("kind", kind, "a MemcpyKind") from None
