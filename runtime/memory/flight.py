"""Copies in flight: a push that was queued and may not have happened."""

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
    """A copy to the device that was queued; keeps both of its ends alive.

    Parameters
    ----------
    device : DeviceAllocator
    event : Event
        After the copy.
    ends : (pointer, pointer)

    Attributes
    ----------
    failed : bool
        It is over and did not happen, and a caller was told.
    """

    __slots__ = ("_device", "_ends", "_event", "failed")

    def __init__(self, device: DeviceAllocator, event: Event, ends: tuple[Pointer, Pointer]) -> None:
        self._device = device
        self._event = event
        self._ends = ends
        self.failed: bool = False

    @property
    def landed(self) -> bool:
        """Whether the copy has happened, as far as can be told without waiting."""
        with suppress(Exception):
            if self._event.done:
                self._event.synchronize()
                return True
        return False

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for, as far as the device can tell."""
        with suppress(Exception):
            return bool(self._event.done)
        return False

    def wait(self) -> None:
        """Block until the copy has happened.

        Raises
        ------
        DeviceError
            If it did not, or cannot be waited for.
        """
        with reporting("waiting for the push", self._device):
            try:
                self._event.synchronize()
            except Exception:
                self.failed = self.over
                raise

    def land(self) -> str:
        """Wait for somebody who does not need the bytes; why the copy may still be on its way, if it may."""
        problem = ""
        for _ in range(2):  # an interrupt such as MemoryError, which comes once, is no reason to leave it
            try:
                if not self.failed:
                    self.wait()
            except SyncedMemoryError as error:
                problem = told(error)
            else:
                return ""
        return "" if self.failed else problem

    def precede(self) -> bool:
        """Have later work of the device's current stream wait for the copy; False if that is over already.

        Raises
        ------
        DeviceError
        """
        with reporting("ordering after the push", self._device):
            if self._event.done or isinstance(self._event, Drain):  # which is nothing that a device can wait for
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
    """Queue a copy so that whoever must wait for it can, whatever happens.

    Parameters
    ----------
    keep : callable
        Told of the push before anything is queued, of None if nothing was, and of the push with its own event.
    """
    keep(Push(device, Drain(device, stream), ends))
    try:
        device.memcpy(*ends, byte_size, kind, stream)
    except Exception as error:
        if not isinstance(error, MemoryError | RecursionError):  # which can also come after it
            keep(None)  # a call that raises has queued nothing
        raise
    keep(Push(device, device.record(stream), ends))


class Drain:
    """The event of a copy that has none, because it could not be recorded yet: the whole stream has to run dry.

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
        """Block until it has."""
        # Not every kind of stream has a method for it; every allocator can wait behind a copy of nothing.
        self._device.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, self._stream, need_sync=True)
