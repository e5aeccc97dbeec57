"""Copies in flight: pushes that were queued and may not have happened yet."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from syncedmem.model import SyncedMemoryError
from syncedmem.model.interface import MemcpyKind

from ..allocators.failures import reporting, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Event, Pointer

    from ..allocators.base import DeviceAllocator

__all__ = ["Drain", "Push", "queue_copy"]


class Push:
    """A queued copy to the device; it keeps its source and its destination alive.

    Parameters
    ----------
    device : DeviceAllocator
    event : Event
        A point in the stream after the copy.
    ends : (pointer, pointer)
        The source and the destination.

    Attributes
    ----------
    failed : bool
        Whether the copy is over and did not happen, and a caller was told.
    """

    __slots__ = ("_device", "_ends", "_event", "failed")

    def __init__(self, device: DeviceAllocator, event: Event, ends: tuple[Pointer, Pointer]) -> None:
        self._device = device
        self._event = event
        self._ends = ends
        self.failed: bool = False

    @property
    def landed(self) -> bool:
        """Whether the copy has happened; it does not wait, and is False if it cannot tell."""
        with suppress(Exception):
            if self._event.done:
                self._event.synchronize()
                return True
        return False

    @property
    def over(self) -> bool:
        """Whether the copy has happened or failed, so that nothing is left to wait for; False if nobody can tell."""
        with suppress(Exception):
            return bool(self._event.done)
        return False

    def wait(self) -> None:
        """Wait until the copy has happened.

        Raises
        ------
        DeviceError
            If the copy failed, or cannot be waited for.
        """
        with reporting("waiting for the push", self._device):
            try:
                self._event.synchronize()
            except Exception:
                self.failed = self.over
                raise

    def end(self) -> str:
        """Wait for a caller that does not need the bytes; returns why the copy may still be in flight, or nothing."""
        try:
            if not self.failed:
                self.wait()
        except SyncedMemoryError as error:
            return "" if self.failed else told(error)
        return ""

    def precede(self) -> bool:
        """Make later work of the device's current stream wait for the copy; False if the copy is already over.

        Raises
        ------
        DeviceError
            If the device cannot do so.
        """
        with reporting("ordering after the push", self._device):
            if self._event.done or isinstance(self._event, Drain):  # a device cannot wait for a Drain
                return False
            self._device.order_after(self._event)
            return True


def queue_copy(  # noqa: PLR0913 -- a copy has two ends, a size, a direction and a stream
    device: DeviceAllocator,
    ends: tuple[Pointer, Pointer],
    byte_size: int,
    kind: MemcpyKind,
    stream: Any,
    keep: Callable[[Push | None], None],
) -> None:
    """Queue a copy so that it can be waited for, even if an interrupt or an error comes meanwhile.

    Parameters
    ----------
    device : DeviceAllocator
    ends : (pointer, pointer)
        The source and the destination.
    byte_size : int
        In bytes.
    kind : MemcpyKind
    stream : stream
    keep : callable
        Called with the push before anything is queued; with None if nothing was queued; and with the push and its own
        event after the copy was queued.
    """
    keep(Push(device, Drain(device, stream), ends))
    try:
        device.memcpy(*ends, byte_size, kind, stream)
    except Exception:
        keep(None)  # a memcpy that raises has queued nothing
        raise
    keep(Push(device, device.record(stream), ends))


class Drain:
    """In place of an event that is not recorded yet: it waits for the whole device.

    Parameters
    ----------
    device : DeviceAllocator
    stream : stream
    """

    __slots__ = ("_device", "_stream")

    done = False

    def __init__(self, device: DeviceAllocator, stream: Any) -> None:
        self._device = device
        self._stream = stream

    def synchronize(self) -> None:
        """Wait until all work of the device is done."""
        # Not every stream can wait for itself, but every allocator can wait after a copy of zero bytes.
        self._device.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, self._stream, need_sync=True)
