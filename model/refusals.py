"""The error that tells why a call is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import BufferMismatchError, IllegalCallError, NoDeviceError, SyncedMemoryError

if TYPE_CHECKING:
    from .declaration import Machine, Refusal, Row
    from .errors import Named

__all__ = ["error_of", "reason_of"]


def error_of(refusal: Refusal, call: str, head: Named, argument: object) -> SyncedMemoryError:
    """The error for a refusal of a call in a head; its class is the one that the refusal names."""
    if refusal.error == BufferMismatchError.__name__:
        return BufferMismatchError(call, argument, refusal.text)
    if refusal.error == NoDeviceError.__name__:
        return NoDeviceError(f"{call}: {refusal.text}")
    return IllegalCallError(call, head, refusal.needs, refusal.text or refusal.name)


def reason_of(machine: Machine, row: Row, head: str) -> str | None:
    """Why a row refuses its call in a head, as the error says it; None if it does not."""
    if not row.refusal:
        return None
    return str(error_of(machine.refusals[row.refusal], row.call, machine.heads[head], _Null()))


class _Null:
    """No data: shown as ``NULL``, the word of inputs, not as Python's None."""

    def __repr__(self) -> str:
        return "NULL"
