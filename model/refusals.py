"""The error that tells why a call is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import BufferMismatchError, IllegalCallError, NoDeviceError, SyncedMemoryError

if TYPE_CHECKING:
    from .declaration import Refusal
    from .errors import Named

__all__ = ["error_of"]


def error_of(refusal: Refusal, call: str, head: Named, argument: object) -> SyncedMemoryError:
    """The error for a refusal of a call in a head; its class is the one that the refusal names."""
    if refusal.error == BufferMismatchError.__name__:
        return BufferMismatchError(call, argument, refusal.text)
    if refusal.error == NoDeviceError.__name__:
        return NoDeviceError(f"{call}: {refusal.text}")
    return IllegalCallError(call, head, refusal.needs, refusal.text or refusal.name)
