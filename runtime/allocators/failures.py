"""How an error of a device becomes an error of the `SyncedMemoryError` family."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, BufferMismatchError, DeviceError, SyncedMemoryError
from syncedmem.model.errors import said, words

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from syncedmem.model.interface import HostAllocator, Pointer

__all__ = [
    "adopting",
    "attempt",
    "block_from",
    "reporting",
    "take_back",
    "told",
    "warn_of_interrupted_release",
    "warn_of_leak",
    "where_of",
]


class reporting:  # noqa: N801 -- used like a function; as a generator it would cost a microsecond a call
    """A ``with`` block around somebody else's code, which turns its errors into a `DeviceError`.

    The `DeviceError` names the operation and the device.  A `SyncedMemoryError` passes unchanged, and so does an
    interrupt.
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


class adopting:  # noqa: N801 -- as above
    """A ``with`` block around an adoption, which turns a ``ValueError`` with the reason into a `BufferMismatchError`.

    Parameters
    ----------
    buffer : object
        What is to be adopted.
    where : DeviceAllocator
    """

    __slots__ = ("buffer", "where")

    def __init__(self, buffer: object, where: object) -> None:
        self.buffer: object = buffer
        self.where: object = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ValueError) and not isinstance(error, SyncedMemoryError):
            raise self._refused(error) from None

    # Not where it is raised: a variable with the error would make a cycle with its traceback, and keep the buffer.
    def _refused(self, error: ValueError) -> BufferMismatchError:
        refused = BufferMismatchError(where_of(self.where), self.buffer, words(error))
        refused.call = "adopt"
        return refused


def block_from(allocator: HostAllocator, byte_size: int) -> Pointer:
    """A block of an allocator; None is no block, except for zero bytes."""
    block = allocator.allocate(byte_size)
    if block is None and byte_size:
        raise AllocationError(where_of(allocator), byte_size, "the allocator returned None")
    return block


def attempt(act: Callable[..., object], *arguments: object) -> str:
    """Call `act` while another error is on its way; returns the message of its own error, or an empty string."""
    try:
        act(*arguments)
    except Exception as error:  # noqa: BLE001 -- reported by the caller
        return told(error)
    return ""


def told(error: BaseException) -> str:
    """The message of an error, without the error itself, whose traceback would keep frames and their objects alive."""
    return error.args[0] if isinstance(error, SyncedMemoryError) and error.args else said(error)


def take_back(allocator: HostAllocator, ptr: Pointer | None, error: BaseException) -> None:
    """Release a block that nobody gets, because its ``allocate`` is about to raise `error`; None is ignored."""
    if ptr is not None and (problem := attempt(allocator.release, ptr)):
        warn_of_leak(f"a block leaked on {where_of(allocator)}: {problem}", error)


def warn_of_leak(message: str, error: BaseException) -> None:
    """Warn of a leak while `error` is on its way; if warnings are errors, add the message to `error` as a note."""
    try:
        warnings.warn(message, ResourceWarning, stacklevel=6)
    except ResourceWarning:
        error.add_note(message)


def warn_of_interrupted_release(allocator: HostAllocator, byte_size: int, interrupt: BaseException) -> None:
    """Warn of a block whose release was interrupted: nobody can tell whether it has happened, so nobody tries again."""
    where = where_of(allocator)
    warn_of_leak(f"{byte_size} bytes on {where} may be lost: their release was interrupted", interrupt)


def where_of(allocator: Any) -> str:
    """The name of an allocator in errors; somebody else's allocator may have no ``name``, and is shown by its type."""
    return str(getattr(allocator, "name", type(allocator).__name__))
