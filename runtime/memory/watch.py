"""Checked mode: `Watch` tells of bytes that were written, or read, through a view that had lost its right.

Two rules are enough for most mistakes with kept views.  The bytes of a side change only while that side alone is fresh:
after each call the watch knows what the other bytes are, and before the next one it compares.  And a side that becomes
stale is filled with `POISON`, which is NaN for elements of a floating type: who reads it sees that.

Both are done only where somebody has a view (`Views`): without a view to write nobody can change the bytes, and without
any nobody sees them.  Whoever gets a view, gets it from a call, which looks again.  A view that was dropped may have
written before, so it is forgotten only after a comparison.

On the simulated device the watch makes no queued work happen, because that could hide a missing wait.  So it poisons
nothing while work is queued, and nowhere compares what a push may still write.  An adopted buffer is
somebody else's: it is compared, and never poisoned; neither is a block that another checked memory has adopted.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet, ref

from syncedmem.model import InvalidArgumentError, StaleWriteError, SyncedHead, caffe
from syncedmem.model.interface import DeviceType

from ..allocators.base import lends_new_blocks
from ..allocators.forking import fork_safe_lock
from ..allocators.late_writes import (
    LateWrites,
    fill_with_poison,
    first_difference,
    poison_of,
    read_bytes,
    root_of,
    tell_at_exit,
)
from ..allocators.pointers import HostArray, address_of, as_flag
from ..devices.host import CPUDeviceAllocator
from .lines import line_of_caller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from syncedmem.model.lines import Line

    from ..allocators.base import DeviceAllocator
    from .side import Side
    from .sides import Sides

__all__ = ["ALWAYS", "ENVIRONMENT", "Checked", "Watch", "is_checked"]

Bytes = HostArray | None
"""The bytes of a side; None if nothing is known of them."""

ENVIRONMENT = "SYNCEDMEM_CHECKED"
"""The environment variable that checks all memories that do not say ``checked=``, or none of them."""

ALWAYS: Literal["always"] = "always"
"""Compare at every call, whoever has views: for addresses that are used when no view is left, as those of ctypes."""

Checked = bool | Literal["always"]
"""Whether a memory is checked, and whether at every call."""

_IN_ENVIRONMENT: dict[str, Checked | None] = {"": None, "0": False, "1": True, ALWAYS: ALWAYS}


def is_checked(checked: object, device: DeviceAllocator | None) -> Checked:
    """What the argument ``checked`` means.  None: what the environment says, or else whether the device is simulated.

    Raises
    ------
    InvalidArgumentError
        If it is neither None nor a ``bool`` nor `ALWAYS`, or the environment variable has another value than 0, 1 and
        that.
    """
    if isinstance(checked, str) and checked == ALWAYS:
        return ALWAYS
    if checked is not None:
        return as_flag(checked, "checked", f"True, False or {ALWAYS!r}")
    default = _by_environment()
    return getattr(device, "device_type", None) is DeviceType.SIMULATED if default is None else default


@cache
def _by_environment() -> Checked | None:
    """What the environment says; read once, because every memory asks."""
    value = os.environ.get(ENVIRONMENT, "")
    if value not in _IN_ENVIRONMENT:
        raise InvalidArgumentError(ENVIRONMENT, value, f"0, 1 or {ALWAYS}")
    return _IN_ENVIRONMENT[value]


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
    name : str
        ``"host"`` or ``"device"``, for errors.
    expected : array or None
        The bytes that the side must have; None if nothing is known of it.
    taken, ended : Line or None
        The call that returned the last view with the right to write, or adopted the buffer; and the call that ended
        that right.
    """

    __slots__ = ("_always", "ended", "expected", "name", "side", "taken")

    def __init__(self, name: str, side: str, *, always: bool) -> None:
        self.name = name
        self.side = side
        self._always = always
        self.expected: Bytes = None
        self.taken: Line | None = None
        self.ended: Line | None = None

    def of(self, sides: Sides) -> Side:
        """The side of a memory of which this is known."""
        return sides.cpu if self.side == caffe.CPU else sides.gpu

    def may_be_written(self, sides: Sides) -> bool:
        """Whether anybody but the memory may be able to write to the side now."""
        side = self.of(sides)
        if side.ptr is None:
            return False
        if self._always or side.owner is None or sides.flights:
            return True
        if side.views is None:  # nobody has one, but some may be left of those who had the block before
            return not lends_new_blocks(side.owner)
        return side.views.writer.is_out

    def is_shown(self, sides: Sides) -> bool:
        """Whether somebody may have a view of the side to read."""
        views = self.of(sides).views
        return views is not None and views.reader.is_out

    def read(self, sides: Sides) -> Bytes:
        """Its bytes; None if a push may be in flight there, or they cannot be read."""
        ptr: Any = self.of(sides).ptr
        if ptr is None or not sides.size or (self.side == caffe.GPU and sides.flights):
            return None
        content = read_bytes(sides.device, ptr)
        return None if content is None else content[: sides.size]

    def remember(self, sides: Sides) -> None:
        """Expect the bytes that the side has now."""
        self.expected = None
        with suppress(MemoryError):  # a check that does not fit is left out
            now = self.read(sides)
            self.expected = now.copy() if now is not None and self.side == caffe.CPU else now

    def spoil(self, sides: Sides) -> bool:
        """Fill the side with poison and expect that, if nobody else may use it; returns whether it was filled."""
        side = self.of(sides)
        if not _is_ours(sides, side) or not _is_quiet(sides) or not fill_with_poison(sides.device, side.ptr):
            return False
        self.expected = poison_of(sides.size)
        return True


class Watch:
    """What is known of the bytes of a memory's two sides after its last call."""

    __slots__ = ("_far", "_near")

    def __init__(self, sides: Sides, memory: object, *, always: bool) -> None:
        self._near, self._far = (_Seen("host", caffe.CPU, always=always), _Seen("device", caffe.GPU, always=always))
        tell_at_exit(sides)
        with _lock:
            _watched.add(memory)

    def has_nothing_to_compare(self) -> bool:
        """Whether the next call has nothing to compare; another thread may change that at any time."""
        return self._near.expected is None and self._far.expected is None and not _freed

    def compare(self, sides: Sides, call: str) -> StaleWriteError | None:
        """The error to raise if a side has other bytes than after the last call; it is told once."""
        error = None
        for seen in (self._near, self._far):
            expected = seen.expected
            if expected is None:
                continue
            # Asked first: who has no view by now has written before the bytes are read.
            held = seen.may_be_written(sides)
            now = seen.read(sides)
            if now is None:
                continue
            first = first_difference(expected, now)
            # Who adopts a buffer says that its bytes are fresh, also if it is the one that is adopted already.
            if first is not None and not (seen.of(sides).owner is None and _adopts(call, seen.side)):
                error = error or StaleWriteError(_as_written(call), seen.name, first, seen.taken, seen.ended)
            if not held:
                seen.expected = None
            elif first is not None:
                seen.remember(sides)
        return error or (_written_after_free(call) if _freed else None)

    def record(self, sides: Sides, before: SyncedHead, head: SyncedHead) -> None:
        """Remember what the bytes are after a call that has moved the head, or given a side other memory."""
        near, far = self._near, self._far
        if before is not head and before is SyncedHead.HEAD_AT_CPU:
            near.ended = line_of_caller()
        elif before is not head and before is SyncedHead.HEAD_AT_GPU:
            far.ended = line_of_caller()
        if head is SyncedHead.SYNCED:
            near_held, far_held = near.may_be_written(sides), far.may_be_written(sides)
            if near_held or far_held:
                near.remember(sides)
            far.expected = near.expected if far_held else None  # a copy has made both the same
            near.expected = near.expected if near_held else None
        elif head is not SyncedHead.UNINITIALIZED:
            stale = near if head is SyncedHead.HEAD_AT_GPU else far
            held = stale.may_be_written(sides)
            spoiled = before is not head and (held or stale.is_shown(sides)) and stale.spoil(sides)
            if not held:
                stale.expected = None
            elif not spoiled:
                stale.remember(sides)

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
            with _lock:
                _adopters.add(sides)
        # On real devices one can write to every view, but one that was given for writing is the likelier one.
        read = declared.shows and seen is self._far and seen.taken is None
        if declared.writes or read or _adopts(call, seen.side):
            seen.taken = line_of_caller()

    def leave(self, sides: Sides, freed: Iterable[Side]) -> None:
        """Have the blocks of sides watched that are given back next: by their pool, or here if somebody has a view."""
        for seen in (self._near, self._far):
            side = seen.of(sides)
            if side not in freed or not _is_ours(sides, side):
                continue
            late = LateWrites(seen.name, sides.size, seen.taken, line_of_caller())
            if is_pooled(side.owner):
                if _is_quiet(sides):
                    leave_late_writes(side, late)
            elif seen is self._near and isinstance(side.owner, CPUDeviceAllocator) and not sides.flights:
                with suppress(MemoryError):  # a check that does not fit is left out
                    if seen.may_be_written(sides):
                        _Freed(side, late)

    def warn(self, sides: Sides, why: str) -> None:
        """Warn of a stale write when no call is left that could raise."""
        error = self.compare(sides, why)
        self.forget()
        if error is not None:
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)


_lock = fork_safe_lock()
_watched: WeakSet[Any] = WeakSet()
"""The checked memories.  Any: the module of `SyncedMemory` imports this one."""

_adopters: WeakSet[Sides] = WeakSet()
"""The checked memories that have adopted a buffer, which may be the block of another one.  Several threads use it."""

_freed: list[_Freed] = []
"""Those of which somebody has a view still."""


class _Freed:
    """Host memory that was freed while somebody had a view of it.  It is there until the last view is gone."""

    def __init__(self, side: Side, late: LateWrites) -> None:
        root, ptr = root_of(side.ptr), side.ptr
        # If its release is interrupted, nothing here may keep it from being given back.
        self._side: ref[Side] = ref(side)
        self._late = late
        self._start: int = address_of(ptr) - address_of(root)
        self._then: HostArray = ptr[: late.byte_size].copy()
        self._position: int | None = None  # the first byte that was written, once nobody can write any more
        # A view here would keep the memory, and so does none.
        self._root: ref[HostArray] = ref(root)
        anchor: Any = None if side.views is None else side.views.writer.anchor
        self._held: ref[Any] = ref(root, self._forget) if anchor is None else ref(anchor, self._end)
        with _lock:
            _freed.append(self)
            watched = list(_watched)
        for memory in watched:
            memory._withdraw()  # noqa: SLF001 -- from now on each call has something to compare
        tell_at_exit(self)

    # The globals are defaults, because at the exit of the interpreter they may be gone before the memory is.
    def _forget(self, _: object, lock: AbstractContextManager[object] = _lock, known: list[_Freed] = _freed) -> None:
        with lock:
            if self in known:
                known.remove(self)

    # At the exit of the interpreter nothing works that compares.
    def _end(self, _: object, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        """Look at the memory for the last time, because the last view goes now; what was written is told later."""
        if not is_over():
            self._position = self._written()
            if self._position is None:
                self._forget(None)

    def _written(self) -> int | None:
        """The first byte that was written since the memory was freed."""
        root = self._root()
        if root is None or self._is_back():
            return None
        return first_difference(self._then, root[self._start : self._start + self._late.byte_size])

    def _is_back(self) -> bool:
        """Whether the release was refused."""
        side = self._side()
        return side is not None and side.ptr is not None

    def error(self, call: str) -> StaleWriteError | None:
        """The error to raise if the memory was written; it is told once."""
        position = self._written() if self._position is None else self._position
        if position is not None or self._held() is None or self._is_back():
            self._forget(None)
        return None if position is None else self._late.error(call, position)

    def warn(self, why: str) -> None:
        """Warn of a write when no call is left that could raise."""
        if self in _freed and (error := self.error(why)) is not None:
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _as_written(call: str) -> str:
    """A call of a memory as the program has it: ``gpu_diff``, if that is what a blob was asked for."""
    if not call.isidentifier():
        return call  # the end of something, which no program calls
    outermost = line_of_caller().call
    return outermost if outermost.isidentifier() else call


def _written_after_free(call: str) -> StaleWriteError | None:
    """The error to raise if memory was written that was freed; each is told of once."""
    written = _as_written(call)
    for freed in tuple(_freed):  # which forgets itself
        error = freed.error(written)
        if error is not None:
            return error
    return None


def is_pooled(owner: Any) -> bool:
    """Whether blocks may stay with an allocator, or with one below it, after their release."""
    while owner is not None:
        if getattr(owner, "keeps_memory", False):
            return True
        owner = getattr(owner, "upstream", None)
    return False


def is_settled(allocator: Any) -> bool:
    """Whether no queued work may still use memory of an allocator; a real device is waited for."""
    with suppress(Exception):  # somebody else's allocator need not be able to say so
        return bool(allocator.settled())
    return False


def leave_late_writes(side: Side, late: LateWrites) -> None:
    """Have the pool of a block tell of writes that come after its release."""
    with suppress(Exception):  # somebody else's allocator need not be able to do so
        side.owner.watch_idle(side.ptr, late)


def _is_ours(sides: Sides, side: Side) -> bool:
    """Whether a side has memory that it owns, and that no other checked memory has adopted."""
    if side.owner is None or side.ptr is None:
        return False
    with _lock:
        adopters = list(_adopters)
    for other in adopters:
        theirs = other.gpu if side is sides.gpu else other.cpu
        ptr = theirs.ptr  # another thread may close that memory now
        if theirs.owner is None and ptr is not None and other is not sides and _overlap(ptr, side.ptr):
            return False
    return True


def _overlap(first: Any, second: Any) -> bool:
    """Whether two arrays may have bytes in common; the allocators are not asked, because kits count their calls."""
    begin, start = address_of(first), address_of(second)
    return bool(begin < start + second.nbytes and start < begin + first.nbytes)


def _is_quiet(sides: Sides) -> bool:
    """Whether no queued work may still use the bytes; a real device is waited for."""
    if sides.flights or not sides.size:
        return False
    return sides.device is None or is_settled(sides.device)
