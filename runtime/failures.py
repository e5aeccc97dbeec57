"""What a device raises, as an error of the family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import DeviceError, SyncedMemoryError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["reporting", "where_of"]


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
        self.operation = operation
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, SyncedMemoryError):
            raise DeviceError(self.operation, where_of(self.where), error) from error


def where_of(allocator: Any) -> str:
    """An allocator as errors show it, although it may be anybody's."""
    return str(getattr(allocator, "name", type(allocator).__name__))
