"""Checked mode: `Watch` tells of bytes that were written, or read, through a view that had lost its right.

Two rules are enough for most mistakes with kept views.  The bytes of a side change only while that side alone is fresh:
after each call the watch knows what the other bytes are, and before the next one it compares.  And a side that becomes
stale is filled with `POISON`, which is NaN for elements of a floating type: who reads it sees that.

On the simulated device the watch makes no queued work happen, because that could hide a missing wait.  So it poisons
nothing while work is queued, and nowhere compares what a push may still write.  An adopted buffer is
somebody else's: it is compared, and never poisoned; neither is a block that another checked memory has adopted.
"""

from __future__ import annotations

import atexit
import os
import warnings
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from syncedmem.model import InvalidArgumentError, StaleWriteError, SyncedHead, caffe
from syncedmem.model.interface import DeviceType

from ..allocators.base import POISON
from ..allocators.pointers import address_of, as_flag
from .lines import line_of_caller

if TYPE_CHECKING:
    from syncedmem.model.lines import Line

    from ..allocators.base import DeviceAllocator
    from .side import Side
    from .sides import Sides

__all__ = ["ENVIRONMENT", "Watch", "is_checked"]

Bytes = bytes | None
"""The bytes of a side; None if nothing is known of them."""

ENVIRONMENT = "SYNCEDMEM_CHECKED"
"""The environment variable that checks all memories that do not say ``checked=``, or none of them."""


def is_checked(checked: object, device: DeviceAllocator | None) -> bool:
    """What the argument ``checked`` means.  None: what the environment says, or else whether the device is simulated.

    Raises
    ------
    InvalidArgumentError
        If it is neither None nor a ``bool``, or the environment variable has another value than 0 and 1.
    """
    if checked is not None:
        return as_flag(checked, "checked")
    said = _by_environment()
    return getattr(device, "device_type", None) is DeviceType.SIMULATED if said is None else said


@cache
def _by_environment() -> bool | None:
    """What the environment says; read once, because every memory asks."""
    value = os.environ.get(ENVIRONMENT, "")
    if value not in ("", "0", "1"):
        raise InvalidArgumentError(ENVIRONMENT, value, "0 or 1")
    return value == "1" if value else None


_CALLS = caffe.EVERYTHING.calls
"""What each call declares of itself; what ends a memory otherwise, such as the exit, declares nothing."""


def _adopts(call: str, side: str) -> bool:
    """Whether a call makes a buffer of the caller that side."""
    declared = _CALLS.get(call)
    return declared is not None and declared.does == "adopt" and declared.side == side


class _Seen:
    """What a watch knows of one side.

    Attributes
    ----------
    expected : bytes or None
        The bytes that the side must have; None if nothing is known of it.
    taken, ended : Line or None
        The call that returned the last view with the right to write, or adopted the buffer; and the call that ended
        that right.
    """

    __slots__ = ("ended", "expected", "name", "side", "taken")

    def __init__(self, name: str, side: str) -> None:
        self.name = name
        self.side = side
        self.expected: bytes | None = None
        self.taken: Line | None = None
        self.ended: Line | None = None


class Watch:
    """What is known of the bytes of a memory's two sides after its last call."""

    __slots__ = ("_far", "_near")

    def __init__(self, sides: Sides) -> None:
        self._near, self._far = _Seen("host", caffe.CPU), _Seen("device", caffe.GPU)
        _watched.add(sides)

    def compare(self, sides: Sides, call: str) -> StaleWriteError | None:
        """The error to raise if a side has other bytes than after the last call; it is told once."""
        error = None
        for seen, side, read in ((self._near, sides.cpu, _host_bytes), (self._far, sides.gpu, _device_bytes)):
            if seen.expected is None:
                continue
            now = read(sides)
            if now == seen.expected or now is None:
                continue
            # Who adopts a buffer says that its bytes are fresh, also if it is the one that is adopted already.
            if not (side.owner is None and _adopts(call, seen.side)):
                first = int(np.argmax(np.frombuffer(seen.expected, np.uint8) != np.frombuffer(now, np.uint8)))
                error = error or StaleWriteError(call, seen.name, first, seen.taken, seen.ended)
            seen.expected = now
        return error

    def record(self, sides: Sides, before: SyncedHead, head: SyncedHead) -> None:
        """Remember what the bytes are after a call that has moved the head, or given a side other memory."""
        near, far = self._near, self._far
        if before is not head:
            line = line_of_caller()
            for seen, fresh in ((near, SyncedHead.HEAD_AT_CPU), (far, SyncedHead.HEAD_AT_GPU)):
                if before is fresh:
                    seen.ended = line
        if head is SyncedHead.SYNCED:
            near.expected = far.expected = _host_bytes(sides)  # a copy has made both the same
        elif head is SyncedHead.HEAD_AT_GPU:
            near.expected = _poisoned(sides, sides.cpu, before is not head) or _host_bytes(sides)
        elif head is SyncedHead.HEAD_AT_CPU:
            far.expected = _poisoned(sides, sides.gpu, before is not head) or _device_bytes(sides)

    def forget(self) -> tuple[Bytes, Bytes]:
        """Expect nothing any more; returns what was expected of the host side and of the device side."""
        known = self._near.expected, self._far.expected
        self._near.expected = self._far.expected = None
        return known

    def expect(self, known: tuple[Bytes, Bytes]) -> None:
        """Expect again what `forget` has returned."""
        self._near.expected, self._far.expected = known

    def take(self, sides: Sides, call: str) -> None:
        """Remember the line of a call, if it has returned a view that can be written to, or adopted a buffer."""
        declared = _CALLS.get(call)
        if declared is None:
            return
        seen = self._far if declared.side == self._far.side else self._near
        if _adopts(call, seen.side):
            _adopters.add(sides)
        # On real devices one can write to every view, but one that was given for writing is the likelier one.
        read = declared.shows and seen is self._far and seen.taken is None
        if declared.writes or read or _adopts(call, seen.side):
            seen.taken = line_of_caller()

    def warn(self, sides: Sides, why: str) -> None:
        """Warn of a stale write when no call is left that could raise."""
        error = self.compare(sides, why)
        self.forget()
        if error is not None:
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _is_ours(sides: Sides, side: Side) -> bool:
    """Whether a side has memory that it owns, and that no other checked memory has adopted."""
    if side.owner is None or side.ptr is None:
        return False
    for other in list(_adopters):
        theirs = other.gpu if side is sides.gpu else other.cpu
        if theirs.owner is None and theirs.ptr is not None and other is not sides and _overlap(theirs.ptr, side.ptr):
            return False
    return True


def _overlap(first: Any, second: Any) -> bool:
    """Whether two arrays may have bytes in common; the allocators are not asked, because kits count their calls."""
    begin, start = address_of(first), address_of(second)
    return bool(begin < start + second.nbytes and start < begin + first.nbytes)


def _is_quiet(sides: Sides) -> bool:
    """Whether no queued work may still use the bytes; a real device is waited for."""
    if sides.device is None or sides.flights or not sides.size:
        return False
    with suppress(Exception):  # somebody else's allocator need not be able to say so
        return bool(sides.device.settled())
    return False


def _poisoned(sides: Sides, side: Side, moved: bool) -> bytes | None:
    """Fill a side that has become stale; returns what it has from now on, or None if it was left as it is."""
    if not moved or not _is_ours(sides, side) or not _is_quiet(sides):
        return None
    with suppress(Exception):  # somebody else's allocator need not be able to do so
        if side is sides.cpu:
            side.ptr[: sides.size] = POISON
        else:
            sides.device.poison(side.ptr)
        return bytes((POISON,)) * sides.size
    return None


def _host_bytes(sides: Sides) -> bytes | None:
    ptr: Any = sides.cpu.ptr
    return None if ptr is None or not sides.size else ptr[: sides.size].tobytes()


def _device_bytes(sides: Sides) -> bytes | None:
    """A copy of the bytes of the device side; None if a push may be in flight, or they cannot be read."""
    ptr: Any = sides.gpu.ptr
    if ptr is None or not sides.size or sides.flights:
        return None
    with suppress(Exception):  # somebody else's buffer may be freed by now, and somebody else's allocator lack this
        found: bytes = sides.device.peek(ptr)[: sides.size].tobytes()
        return found
    return None


_watched: WeakSet[Sides] = WeakSet()
_adopters: WeakSet[Sides] = WeakSet()
"""The checked memories that have adopted a buffer, which may be the block of another one."""


@atexit.register
def _tell_at_exit() -> None:
    for sides in list(_watched):
        if sides.watch is not None:
            sides.watch.warn(sides, "at the exit")
