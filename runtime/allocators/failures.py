"""How an error of a device becomes an error of the `SyncedMemoryError` family."""

from __future__ import annotations

import warnings
from operator import index
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
    "is_live",
    "is_refused",
    "new_block",
    "reporting",
    "take_back",
    "told",
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
    if block is None and index(byte_size):
        raise AllocationError(where_of(allocator), byte_size, "the allocator returned None")
    return block


def new_block(allocator: HostAllocator, byte_size: int) -> tuple[Pointer, int, int]:
    """A block for an adaptor, with its ``id`` and its length, so that its record needs no call; None for zero bytes.

    After an error or an interrupt the block is back.
    """
    block = None
    try:
        block = block_from(allocator, byte_size)
        return block, id(block), 0 if block is None else len(block)
    except BaseException as error:
        take_back(allocator, block, error)
        raise


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


def is_refused(allocator: Any, ptr: Pointer, error: BaseException) -> bool:
    """Whether a release that ended with an error has left the block with its owner.

    The error may come from a signal handler, of whatever class, right after the block was taken back.  So the allocator
    is asked.  If it cannot say it, as those of others, an exception is a refusal.  After an interrupt nobody can tell;
    then the block is not used again, and a warning says that it may be lost.
    """
    live = is_live(allocator, ptr)
    if live is not None:
        return live
    if not isinstance(error, Exception):
        text = f"{len(ptr)} bytes on {where_of(allocator)} may be lost: their release was interrupted"
        warn_of_leak(text, error)
        return False
    return True


def is_live(allocator: Any, ptr: Pointer) -> bool | None:
    """Whether a block is allocated and not released; None if its allocator cannot say it."""
    ask: Callable[[Pointer], bool | None] | None = getattr(allocator, "_is_live", None)
    return None if ask is None else ask(ptr)


def warn_of_leak(message: str, error: BaseException) -> None:
    """Warn of a leak while `error` is on its way; if warnings are errors, add the message to `error` as a note."""
    try:
        warnings.warn(message, ResourceWarning, stacklevel=6)
    except ResourceWarning:
        error.add_note(message)


def where_of(allocator: Any) -> str:
    """The name of an allocator in errors; somebody else's allocator may have no ``name``, and is shown by its type."""
    return str(getattr(allocator, "name", type(allocator).__name__))
