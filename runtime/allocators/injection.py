"""`FailingAllocator`: calls that fail on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, DeviceError, InvalidArgumentError

from .adaptor import Adaptor
from .base import check_operation
from .pointers import as_integer, check_byte_size, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["FailingAllocator"]

_WORDS = "this call was told to fail"


class FailingAllocator(Adaptor):
    """Fails where you tell it to, before anything is done; without such an argument it never fails.

    If several arguments make the same call fail, it fails once.  Calls for zero bytes and for None are not counted.

    Parameters
    ----------
    upstream : DeviceAllocator
    operation : {"allocate", "release", "memcpy", "memset_zero"}
        The call that is counted and may fail.
    at : int or None
        The number of the call that fails, counted from 1.
    when : callable or None
        Gets the size of each call in bytes; the call fails if it returns true.

    Attributes
    ----------
    calls : int
        How many calls were counted.
    failures : int
        How many of them failed here.

    Raises
    ------
    InvalidArgumentError
        If an argument has the wrong type or value.
    """

    def __init__(
        self,
        upstream: DeviceAllocator,
        *,
        operation: str = "allocate",
        at: int | None = None,
        when: Callable[[int], bool] | None = None,
    ) -> None:
        super().__init__(upstream)
        self._operation = check_operation(operation)
        expected = "the number of a call, from 1, or None"
        self._at = None if at is None else as_integer(at, "at", expected)
        if self._at is not None and self._at < 1:
            raise InvalidArgumentError("at", at, expected)
        if when is not None and not callable(when):
            raise InvalidArgumentError("when", when, "a function of a size, or None")
        self._when = when
        self.calls: int = 0
        self.failures: int = 0

    def allocate(self, byte_size: int) -> Pointer | None:
        size = check_byte_size(byte_size)
        if self._fails("allocate", size):
            raise AllocationError(self.name, size, _WORDS)
        return self._upstream.allocate(size)

    def release(self, ptr: Pointer | None) -> None:
        self._check("release", size_of(ptr))
        self._upstream.release(ptr)

    def memcpy(self, src: Pointer, dest: Pointer, byte_size: int, *rest: Any, **named: Any) -> None:
        self._check("memcpy", check_byte_size(byte_size))
        super().memcpy(src, dest, byte_size, *rest, **named)

    def memset_zero(self, ptr: Pointer, byte_size: int, *rest: Any, **named: Any) -> None:
        self._check("memset_zero", check_byte_size(byte_size))
        super().memset_zero(ptr, byte_size, *rest, **named)

    def _check(self, operation: str, size: int) -> None:
        if self._fails(operation, size):
            raise DeviceError(operation, self.name, RuntimeError(_WORDS))

    def _fails(self, operation: str, size: int) -> bool:
        """Count a call; returns whether it fails."""
        if operation != self._operation or size == 0:
            return False
        self.calls += 1
        fails = self.calls == self._at or (self._when is not None and bool(self._when(size)))
        self.failures += fails
        return fails
