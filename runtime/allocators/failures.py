"""What a device raises, as an error of the family."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from syncedmem.model import DeviceError, SyncedMemoryError
from syncedmem.model.errors import said

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["attempt", "reporting", "told", "warn_of_leak", "where_of"]


class reporting:  # noqa: N801 -- used like a function; as a generator it would cost a microsecond a call
    """Around other people's code: whatever it raises comes out as a `DeviceError` that names operation and device.

    Errors of the family pass as they are, and so do interrupts.

    Parameters
    ----------
    operation : str
    where : DeviceAllocator
    """

    __slots__ = ("operation", "where")

    def __init__(self, operation: str, where: object) -> None:
        self.operation: str = operation
        self.where: object = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, SyncedMemoryError):
            raise DeviceError(self.operation, where_of(self.where), error) from error


def attempt(act: Callable[..., object], *arguments: object) -> str:
    """Do something on the way out of a call that is failing already; what the error said, if there was one."""
    try:
        act(*arguments)
    except Exception as error:  # noqa: BLE001 -- reported by the caller
        return told(error)
    return ""


def told(error: BaseException) -> str:
    """The words of an error alone: it knows the frames that it came through, and they know who is waiting for it."""
    return error.args[0] if isinstance(error, SyncedMemoryError) and error.args else said(error)


def warn_of_leak(message: str, error: BaseException) -> None:
    """Warn of a leak while `error` is on its way, which stays the error even where warnings are errors."""
    try:
        warnings.warn(message, ResourceWarning, stacklevel=6)
    except ResourceWarning:
        error.add_note(message)


def where_of(allocator: Any) -> str:
    """An allocator as errors show it, although it may be anybody's."""
    return str(getattr(allocator, "name", type(allocator).__name__))
