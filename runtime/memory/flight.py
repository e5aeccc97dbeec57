"""Copies in flight: they were queued, and may not have happened yet."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from syncedmem.model import SyncedMemoryError
from syncedmem.model.interface import MemcpyKind

from ..allocators.failures import reporting, told
from ..allocators.unraisable import print_unraisable

if TYPE_CHECKING:
    from syncedmem.model.interface import Event, Pointer

    from ..allocators.base import DeviceAllocator

__all__ = ["Flight"]


class Flight:
    """A copy that is queued; it keeps its source and its destination alive.

    Its owner stores it before anything is queued, so that a copy that an interrupt has left behind can be waited for.

    Parameters
    ----------
    device : DeviceAllocator
    stream : stream
    ends : (pointer, pointer)
        The source and the destination.

    Attributes
    ----------
    failed : bool
        Whether the copy is over and did not happen, and a caller was told.
    """

    __slots__ = ("_device", "_ends", "_event", "_stream", "failed")

    def __init__(self, device: DeviceAllocator, stream: Any, ends: tuple[Pointer, Pointer]) -> None:
        self._device = device
        self._stream = stream
        self._ends = ends
        # A point in the stream after the copy.  Without it, to wait for the copy is to wait for the whole device.
        self._event: Event | None = None
        self.failed: bool = False

    def start(self, byte_size: int, kind: MemcpyKind) -> None:
        """Queue the copy.  If that is refused, there is nothing to wait for."""
        try:
            self._device.memcpy(*self._ends, byte_size, kind, self._stream)
        except Exception as error:
            # A memcpy that raises has queued nothing; but what a signal handler raises, of whatever class, may come
            # when the copy is queued.  A point in the stream after that can be waited for in both cases.
            if not isinstance(error, SyncedMemoryError):
                with suppress(Exception):
                    self._event = self._device.record(self._stream)
            self.failed = self._event is None
            raise
        self._event = self._device.record(self._stream)

    @property
    def over(self) -> bool:
        """Whether the copy has happened or failed, so that nothing is left to wait for; False if nobody can tell."""
        with suppress(Exception):
            return self._event is not None and bool(self._event.done)
        return False

    @property
    def landed(self) -> bool:
        """Whether the copy has happened; it does not wait, and is False if it cannot tell."""
        with suppress(Exception):
            if self._event is not None and self._event.done:
                self._event.synchronize()
                return True
        return False

    def wait(self) -> None:
        """Wait until the copy has happened."""
        with reporting("waiting for the push", self._device):
            try:
                if self._event is not None:
                    self._event.synchronize()
                else:  # not every stream can wait for itself, but every allocator can wait after a copy of zero bytes
                    self._device.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, self._stream, need_sync=True)
            except Exception:
                self.failed = self.over
                raise

    def end(self) -> str:
        """Wait for a caller that does not need the bytes; returns why the copy may still be in flight, or nothing."""
        try:
            if not self.failed:
                self.wait()
        except SyncedMemoryError as error:
            return "" if self.failed else self._ended_again(error)
        return ""

    def _ended_again(self, error: SyncedMemoryError) -> str:
        """Wait again after a wait that ended with this error, which may be what a signal handler has raised."""
        cause = error.__cause__
        if cause is None or isinstance(cause, SyncedMemoryError):
            return told(error)
        with suppress(SyncedMemoryError):
            self.wait()
            print_unraisable(cause)
            return ""
        return "" if self.failed else told(error)

    def precede(self) -> bool:
        """Make later work of the device's current stream wait for the copy; False if the host has to wait."""
        if self._event is None:
            return False
        with reporting("ordering after the push", self._device):
            if self._event.done:
                return False
            self._device.order_after(self._event)
            return True
