"""The requirements of a buffer, each as a check of a class with the interface of `syncedmem.runtime.Buffer`."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    ClosedMemoryError,
    InvalidArgumentError,
    InvalidSizeError,
    NotCopyableError,
    ReentrantCallError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.model.interface import DeviceType

from ..engine.checklist import Case, check_case, run_checks
from ..engine.contents import Watched, pattern
from ..requirements import applicable
from ..requirements.buffer import BUFFER_NEEDS
from .place import SIZE, Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.checklist import Checklist
    from ..engine.report import Conformance
    from ..engine.subject import Subject

__all__ = ["buffer_requirements_for", "check_buffer", "check_buffers"]

_SIZES = (1, SIZE, 4097)
_TURNS = 20


class _Lost:
    """An event after a copy that is over and was lost."""

    done = True

    def __init__(self, event: Any) -> None:
        event.synchronize()

    def synchronize(self) -> None:
        raise RuntimeError("the copy was lost")


class WatchedPlace(Place):
    """An allocator for buffers: forwards all calls to another one, and notes which blocks are live.

    Attributes
    ----------
    live : list
        The blocks.
    queued : list of Event
        For each copy that was queued on a stream, an event that was recorded directly after the copy, and so before any
        event that the buffer itself records: if the buffer has waited, this one is done.
    full, loses : bool
        Whether requests are refused, and events report lost copies.
    stuck : object
        The block whose release fails.
    on_release : callable
        Called before a release.
    """

    def __init__(self, allocator: Any) -> None:
        super().__init__(allocator)
        self.live: list[Any] = []
        self.queued: list[Any] = []
        self.full = self.loses = False
        self.stuck: Any = None
        self.on_release: Callable[[], object] = lambda: None

    def allocate(self, byte_size: int) -> Any:
        if self.full:
            raise AllocationError("a full device", byte_size)
        ptr = self.upstream.allocate(byte_size)
        if ptr is not None:
            self.live.append(ptr)
        return ptr

    def release(self, ptr: Any) -> None:
        self.on_release()
        if ptr is not None and ptr is self.stuck:
            raise RuntimeError("the release fails")
        self.upstream.release(ptr)
        self.live = [it for it in self.live if it is not ptr]

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self, src: Any, dest: Any, byte_size: int, kind: Any, stream: Any = None, need_sync: bool = False
    ) -> None:
        self.upstream.memcpy(src, dest, byte_size, kind, stream, need_sync)
        if stream is not None and byte_size:
            self.queued.append(self.upstream.record(stream))

    def record(self, stream: Any) -> Any:
        event = self.upstream.record(stream)
        return _Lost(event) if self.loses else event

    def __getattr__(self, name: str) -> Any:
        return getattr(self.upstream, name)


class BufferCase(Case):
    """One check of one class of buffers, on one of the places of a subject.

    Attributes
    ----------
    make : BufferMaker
    place : WatchedPlace
    places : list of WatchedPlace
        All places: that of the host, and then the devices.
    """

    def __init__(self, requirement: str, make: Any, place: WatchedPlace, places: list[WatchedPlace]) -> None:
        super().__init__(requirement)
        self.make = make
        self.place = place
        self.places = places
        self.host: WatchedPlace = places[0]

    def holding(self, number: int, place: WatchedPlace, size: int = SIZE) -> Any:
        """Make a buffer with a pattern in it."""
        buffer = self.make(size, place)
        place.write(buffer.ptr, pattern(number, size))
        return buffer

    def require_bytes(self, buffer: Any, expected: bytes, what: str) -> None:
        """Report a buffer with other bytes, read without its help."""
        found = buffer.allocator.read(buffer.ptr)
        self.require(found == expected, f"{what}: the bytes are {found[:16].hex()}, expected {expected[:16].hex()}")


# --- memory and its owner


@BufferCase.checks("F01-zero-bytes")
def zero_bytes(case: BufferCase) -> None:
    place = case.place
    nothing, full = case.make(0, place), case.holding(1, place)
    case.require(nothing.ptr is None and len(place.live) == 1, "a buffer of zero bytes has memory")
    case.require(nothing.allocate() is False, "allocate() of zero bytes says that there is memory")
    nothing.copy_from(case.make(0, place))
    full.copy_from(nothing)
    full.copy_from(case.make())
    case.require_bytes(full, pattern(1, SIZE), "after a copy of zero bytes")


@BufferCase.checks("F02-allocates")
def allocates(case: BufferCase) -> None:
    place = case.place
    for size in _SIZES:
        buffer = case.make(size, place)
        found = (len(buffer.ptr), buffer.byte_size, buffer.nbytes, len(buffer))
        case.require(found == (size,) * 4, f"{size} bytes have the lengths {found}")
        case.require(
            len(place.live) == 1 and place.live[0] is buffer.ptr, "the memory is not one block of the allocator"
        )
        case.require(buffer.allocator is place and not buffer.is_external, "its allocator or its owner is wrong")
        buffer.close()


@BufferCase.checks("F03-released-once")
def released_once(case: BufferCase) -> None:
    place = case.place
    closed = case.make(SIZE, place)
    closed.close()
    case.require(not place.live, "close() did not release the memory")
    closed.close()
    with case.make(SIZE, place):
        case.require(len(place.live) == 1, "the memory was released inside of a with block")
    case.require(not place.live, "the end of a with block did not release the memory")
    dropped = case.make(SIZE, place)
    del dropped
    gc.collect()
    case.require(not place.live, "the memory of a dropped buffer was not released")


@BufferCase.checks("F04-external")
def external(case: BufferCase) -> None:
    theirs = Watched(SIZE)
    alive = weakref.ref(theirs)
    buffer = case.make(SIZE, None, theirs, use_external=True)
    case.require(buffer.is_external, "is_external is false")
    memoryview(buffer.ptr)[:] = pattern(1, SIZE)
    case.require(bytes(theirs) == pattern(1, SIZE), "external host memory is not used in place")
    del theirs
    gc.collect()
    case.require(alive() is not None, "external memory is not kept alive")
    place = case.place
    block = place.allocate(SIZE)
    with case.make(SIZE, place, block, use_external=True) as wrapped:
        wrapped.copy_from(case.holding(2, case.host))
    case.require(place.read(block) == pattern(2, SIZE), "external memory of a device is not used in place")
    case.require(any(it is block for it in place.live), "external memory was released")
    place.release(block)


@BufferCase.checks("F05-handed-over")
def handed_over(case: BufferCase) -> None:
    place = case.place
    buffer = case.make(SIZE, place, place.allocate(SIZE))
    case.require(not buffer.is_external, "is_external is true")
    buffer.close()
    case.require(not place.live, "the block was not released")


@BufferCase.checks("F06-allocate")
def allocate(case: BufferCase) -> None:
    place = case.place
    buffer = case.make(SIZE, place)
    old = buffer.ptr
    case.require(buffer.allocate() is True, "allocate() says that there is no memory")
    case.require(buffer.ptr is not old and len(place.live) == 1, "the old memory is still there")
    buffer.close()
    case.require(buffer.allocate() is True and len(place.live) == 1, "a closed buffer has no memory again")
    with buffer:
        case.require(buffer.ptr is not None, "the new memory is gone")
    block = place.allocate(SIZE)
    wrapped = case.make(SIZE, place, block, use_external=True)
    wrapped.allocate()
    case.require(not wrapped.is_external and wrapped.ptr is not block, "after allocate() the memory is external")
    wrapped.close()
    case.require(len(place.live) == 1, "external memory was released, or the new memory was not")
    place.release(block)
    case.refused(InvalidArgumentError, "allocate() without an allocator", case.make().allocate)


@BufferCase.checks("F07-failure-unchanged")
def failure_unchanged(case: BufferCase) -> None:
    place = case.place
    buffer = case.holding(3, place)
    old = buffer.ptr
    place.full = True
    case.refused(AllocationError, "allocate() without room", buffer.allocate)
    case.refused(AllocationError, "a new buffer without room", case.make, SIZE, place)
    place.full = False
    case.require(buffer.ptr is old, "there was no room, and the memory is another one")
    place.stuck = old
    try:
        case.refused(ReleaseError, "allocate() whose release fails", buffer.allocate)
    finally:
        place.stuck = None
    case.require(buffer.ptr is old, "the release failed, and the memory is another one")
    case.require(len(place.live) == 1, "the new memory leaked")
    case.require_bytes(buffer, pattern(3, SIZE), "after a failure")
    buffer.close()


# --- copies


@BufferCase.checks("F08-copies")
def copies(case: BufferCase) -> None:
    there = case.place
    for here in case.places:
        for size in _SIZES:
            source, target = case.holding(4, there, size), case.holding(5, here, size + 2)
            target.copy_from(source)
            expected = pattern(4, size) + pattern(5, size + 2)[size:]
            case.require_bytes(target, expected, f"{size} bytes from {there.name} to {here.name}")
            case.require_bytes(source, pattern(4, size), "the source")
    own = case.holding(6, there)
    own.copy_from(own)
    case.require_bytes(own, pattern(6, SIZE), f"a buffer on {there.name} that is copied onto itself")


@BufferCase.checks("F09-too-long")
def too_long(case: BufferCase) -> None:
    place = case.place
    target = case.holding(7, place)
    case.refused(InvalidSizeError, "a longer source", target.copy_from, case.holding(8, place, SIZE + 1))
    case.require_bytes(target, pattern(7, SIZE), "after a refused copy")


@BufferCase.checks("F10-no-memory")
def no_memory(case: BufferCase) -> None:
    place = case.place
    full, closed = case.holding(9, place), case.make(SIZE, place)
    closed.close()
    case.refused(InvalidArgumentError, "a source without memory", full.copy_from, closed)
    case.refused(InvalidArgumentError, "a destination without memory", closed.copy_from, full)
    case.require_bytes(full, pattern(9, SIZE), "after a refused copy")


@BufferCase.checks("F11-bad-arguments")
def bad_arguments(case: BufferCase) -> None:
    row = case.host.empty(SIZE)
    for errors, arguments in (
        (InvalidSizeError, (-1,)),
        (InvalidArgumentError, ("8",)),
        (InvalidArgumentError, (SIZE, 3)),
        (InvalidArgumentError, (SIZE, None, row)),
    ):
        case.refused(errors, f"{len(arguments)} wrong arguments", case.make, *arguments)
    for what, ptr in (
        ("an object", object()),
        ("too few bytes", row[:-1]),
        ("read-only bytes", bytes(SIZE)),
        ("every second byte", case.host.empty(2 * SIZE)[::2]),
    ):
        case.refused(BufferMismatchError, what, case.make, SIZE, case.host, ptr, use_external=True)
    case.refused(InvalidArgumentError, "a source that is no buffer", case.make(SIZE, case.place).copy_from, row)


# --- queued copies


@BufferCase.checks("F12-queued")
def queued(case: BufferCase) -> None:
    device = case.place
    for leaving in ("the target", "the source", "a dropped target", "a target that allocates anew"):
        first, second = device.stream(), device.stream()
        target, source = case.make(SIZE, device), case.holding(1, case.host)
        device.queued.clear()
        target.copy_from(source, stream=first)
        target.copy_from(source, stream=second)
        if leaving == "the source":
            source.close()
        elif leaving == "the target":
            target.close()
        elif leaving == "a target that allocates anew":
            target.allocate()
        else:
            del target
            gc.collect()
        over = [event.done for event in device.queued]
        for event in device.queued:  # whatever is in flight must not write into memory of the next check
            event.synchronize()
        case.require(all(over), f"{leaving} released its memory before the queued copies were over: {over}")


@BufferCase.checks("F13-in-order")
def in_order(case: BufferCase) -> None:
    device = case.place
    stream = device.stream()
    for here in case.places:
        read, written, other = case.holding(1, device), case.holding(2, device), case.holding(3, here)
        result = case.make(SIZE, here)
        for where, target, source, changed, number in (
            ("out of the target", result, written, result, 1),
            ("into the target", written, other, written, 3),
            ("into the source", read, other, written, 1),
        ):
            written.copy_from(read, stream=stream)
            target.copy_from(source)
            device.upstream.record(stream).synchronize()
            what = f"a copy {where} of a queued one, from {source.allocator.name} to {target.allocator.name}"
            case.require_bytes(changed, pattern(number, SIZE), what)


@BufferCase.checks("F14-lost-told")
def lost_told(case: BufferCase) -> None:
    device = case.place
    for late in (False, True):
        target, source = case.make(SIZE, device), case.holding(1, device)
        device.loses = True
        target.copy_from(source, stream=device.stream())
        device.loses = False
        if late:
            target.copy_from(case.holding(2, device), stream=device.stream())
        case.refused(SyncedMemoryError, "a close after a lost copy", target.close)
        target.close()
        case.require(target.ptr is None, "the memory is kept after a lost copy was reported")


@BufferCase.checks("F15-need-sync")
def need_sync(case: BufferCase) -> None:
    device = case.place
    for size in (0, SIZE):
        stream, target, source = device.stream(), case.make(SIZE, device), case.holding(1, case.host)
        target.copy_from(source, stream=stream)
        event = device.upstream.record(stream)
        case.make(size, device).copy_from(case.make(size, device), need_sync=True)
        done = event.done
        event.synchronize()
        case.require(done, f"a copy of {size} bytes with need_sync did not wait for a stream of the device")


# --- the object


@BufferCase.checks("F16-device-type")
def device_type(case: BufferCase) -> None:
    place = case.place
    expected = {
        "without memory": (case.make(), DeviceType.UNKNOWN),
        "of host memory": (case.make(SIZE, None, bytearray(SIZE), use_external=True), DeviceType.CPU),
        f"on {place.name}": (case.make(SIZE, place), place.device_type),
    }
    for what, (buffer, kind) in expected.items():
        case.require(buffer.device_type == kind, f"the type {what} is {buffer.device_type!r}, expected {kind!r}")


@BufferCase.checks("F17-closed")
def closed(case: BufferCase) -> None:
    def enter(buffer: Any) -> None:
        with buffer:
            pass

    buffer = case.make(SIZE, case.place)
    buffer.close()
    case.require(buffer.ptr is None, "a closed buffer has memory")
    case.refused(ClosedMemoryError, "a with block of a closed buffer", enter, buffer)
    enter(case.make())


@BufferCase.checks("F18-not-copied")
def not_copied(case: BufferCase) -> None:
    buffer = case.make(SIZE, case.place)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        case.refused(NotCopyableError, duplicate.__name__, duplicate, buffer)


@BufferCase.checks("F19-threads")
def threads(case: BufferCase) -> None:
    place = case.place
    one, other = case.holding(1, place), case.holding(1, place)

    def copy_often(target: Any, source: Any) -> None:
        for _ in range(_TURNS):
            target.copy_from(source)

    case.run_together(partial(copy_often, one, other), partial(copy_often, other, one))


@BufferCase.checks("F20-reentrant")
def reentrant(case: BufferCase) -> None:
    place = case.place
    buffer = case.holding(1, place)
    old, refused = buffer.ptr, list[bool]()

    def call_back() -> None:
        place.on_release = lambda: None
        try:
            buffer.close()
        except ReentrantCallError:
            refused.append(True)
            raise
        refused.append(False)

    place.on_release = call_back
    case.refused(SyncedMemoryError, "a close whose release closes again", buffer.close)
    case.require(refused == [True], "a close inside of a close was not refused")
    case.require(buffer.ptr is old and len(place.live) == 1, "the buffer has changed")
    buffer.close()
    case.require(not place.live, "the memory was not released later")


# --- the kit


def buffer_requirements_for(subject: Subject) -> list[str]:
    """The requirements that a subject of buffers can be checked for."""
    return applicable("buffer", subject.profile, {"no device" if subject.device is None else "device"})


def check_buffer(subject: Subject, requirement: str) -> None:
    """Check one requirement of a class of buffers.

    Parameters
    ----------
    subject : Subject
        A subject whose maker makes buffers; see `BufferMaker`.
    requirement : str
        One of ``requirements_of("buffer")``.

    Raises
    ------
    Violation
        If the class does not meet the requirement.
    SkipTest
        If the requirement needs a device, and the subject has none.
    InvalidArgumentError
        If it is no requirement of buffers.
    """
    places = [WatchedPlace(it) for it in (subject.host, subject.device, subject.elsewhere) if it is not None]
    needs_device = requirement.partition("-")[0] in BUFFER_NEEDS
    if needs_device and subject.device is None:
        raise SkipTest(f"{requirement}: {subject.name} has no device")
    for place in places[1:] if needs_device else places:
        check_case(BufferCase(requirement, subject.make, place, places))


def check_buffers(subject: Subject, *, progress: Callable[[str, int], None] | None = None) -> Conformance[Checklist]:
    """Check all requirements of a class of buffers.

    Parameters
    ----------
    subject : Subject
        A subject whose maker makes buffers; see `BufferMaker`.
    progress : callable, optional
        Called with a requirement and the number of its checks until now.

    Returns
    -------
    Conformance
        Every requirement is checked, whatever became of the others.
    """

    def reproducer(requirement: str, _: str) -> tuple[str, ...]:
        lines = ("from syncedmem.spec.contracts import check_buffer", subject.source)
        return (*filter(None, lines), f"check_buffer(subject, {requirement!r})")

    wanted = buffer_requirements_for(subject)
    checklist = {it: {subject.name: partial(check_buffer, subject, it)} for it in wanted}
    return run_checks(subject.name, checklist, reproducer, progress)
