"""The requirements of a buffer, each as a check of a class with the interface of `syncedmem.runtime.Buffer`."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

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
from syncedmem.model.interface import DeviceType, MemcpyKind, is_host

from ..engine.checklist import register, run_checks
from ..engine.contents import Watched, pattern
from ..engine.violation import Violation
from ..requirements import applicable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.checklist import Checklist
    from ..engine.report import Conformance
    from ..engine.subject import Subject

__all__ = ["buffer_requirements_for", "check_buffer", "check_buffers"]

_SIZES = (1, 16, 4097)
_SIZE = 16
_TURNS = 20
_PATIENCE = 20
"""In seconds; a thread that takes longer waits for ever."""


class _Lost:
    """An event after a copy that is over and was lost."""

    done = True

    def __init__(self, event: Any) -> None:
        event.synchronize()

    def synchronize(self) -> None:
        raise RuntimeError("the copy was lost")


class _Place:
    """Somewhere to put memory: forwards all calls to an allocator, and notes which blocks are live.

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
        self.upstream = allocator
        self.live: list[Any] = []
        self.queued: list[Any] = []
        self.full = self.loses = False
        self.stuck: Any = None
        self.on_release: Callable[[], object] = lambda: None
        self.host = allocator if is_host(allocator) else allocator.pinned_host()

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

    def write(self, ptr: Any, content: bytes) -> None:
        """Write bytes to the beginning of an array of this place."""
        row = self.host.empty(len(content))
        memoryview(row)[:] = content
        kind = MemcpyKind.CPU2CPU if is_host(self) else MemcpyKind.CPU2CUDA
        self.upstream.memcpy(row, ptr, len(content), kind)

    def read(self, ptr: Any) -> bytes:
        """Return the bytes of an array of this place."""
        if is_host(self):
            return bytes(memoryview(ptr))
        row = self.host.empty(len(ptr))
        self.upstream.memcpy(ptr, row, len(ptr), MemcpyKind.CUDA2CPU)
        return bytes(memoryview(row))


class _Case:
    """One check of one class of buffers, on all places that the subject has."""

    def __init__(self, requirement: str, subject: Subject) -> None:
        self.requirement = requirement
        self.make: Any = subject.make
        self.host = _Place(subject.host)
        devices = [it for it in (subject.device, subject.elsewhere) if it is not None]
        self.devices = [_Place(it) for it in devices]
        self.places = [self.host, *self.devices]

    def require(self, holds: bool, message: str) -> None:
        """Report a violation if the condition does not hold."""
        if not holds:
            raise Violation(self.requirement, message)

    def refused(self, errors: Any, what: str, call: Callable[..., object], *arguments: Any, **named: Any) -> None:
        """Report a call that is not refused with one of these errors; another error is reported by the caller."""
        try:
            call(*arguments, **named)
        except errors:
            return
        raise Violation(self.requirement, f"{what}: not refused")

    def holding(self, number: int, place: _Place, size: int = _SIZE) -> Any:
        """Make a buffer with a pattern in it."""
        buffer = self.make(size, place)
        place.write(buffer.ptr, pattern(number, size))
        return buffer

    def require_bytes(self, buffer: Any, expected: bytes, what: str) -> None:
        """Report a buffer with other bytes, read without its help."""
        found = buffer.allocator.read(buffer.ptr)
        self.require(found == expected, f"{what}: the bytes are {found[:16].hex()}, expected {expected[:16].hex()}")


_CHECKS: dict[str, Callable[[_Case], None]] = {}


_checks = partial(register, _CHECKS)


# --- memory and its owner


@_checks("F01-zero-bytes")
def zero_bytes(case: _Case) -> None:
    for place in case.places:
        nothing, full = case.make(0, place), case.holding(1, place)
        case.require(nothing.ptr is None and len(place.live) == 1, "a buffer of zero bytes has memory")
        case.require(nothing.allocate() is False, "allocate() of zero bytes says that there is memory")
        nothing.copy_from(case.make(0, place))
        full.copy_from(nothing)
        full.copy_from(case.make())
        case.require_bytes(full, pattern(1, _SIZE), "after a copy of zero bytes")


@_checks("F02-allocates")
def allocates(case: _Case) -> None:
    for place in case.places:
        for size in _SIZES:
            buffer = case.make(size, place)
            found = (len(buffer.ptr), buffer.byte_size, buffer.nbytes, len(buffer))
            case.require(found == (size,) * 4, f"{size} bytes have the lengths {found}")
            case.require(
                len(place.live) == 1 and place.live[0] is buffer.ptr, "the memory is not one block of the allocator"
            )
            case.require(buffer.allocator is place and not buffer.is_external, "its allocator or its owner is wrong")
            buffer.close()


@_checks("F03-released-once")
def released_once(case: _Case) -> None:
    for place in case.places:
        closed = case.make(_SIZE, place)
        closed.close()
        case.require(not place.live, "close() did not release the memory")
        closed.close()
        with case.make(_SIZE, place):
            case.require(len(place.live) == 1, "the memory was released inside of a with block")
        case.require(not place.live, "the end of a with block did not release the memory")
        dropped = case.make(_SIZE, place)
        del dropped
        gc.collect()
        case.require(not place.live, "the memory of a dropped buffer was not released")


@_checks("F04-external")
def external(case: _Case) -> None:
    theirs = Watched(_SIZE)
    alive = weakref.ref(theirs)
    buffer = case.make(_SIZE, None, theirs, use_external=True)
    case.require(buffer.is_external, "is_external is false")
    memoryview(buffer.ptr)[:] = pattern(1, _SIZE)
    case.require(bytes(theirs) == pattern(1, _SIZE), "external host memory is not used in place")
    del theirs
    gc.collect()
    case.require(alive() is not None, "external memory is not kept alive")
    for place in case.places:
        block = place.allocate(_SIZE)
        with case.make(_SIZE, place, block, use_external=True) as wrapped:
            wrapped.copy_from(case.holding(2, case.host))
        case.require(place.read(block) == pattern(2, _SIZE), "external memory of a device is not used in place")
        case.require(any(it is block for it in place.live), "external memory was released")
        place.release(block)


@_checks("F05-handed-over")
def handed_over(case: _Case) -> None:
    for place in case.places:
        buffer = case.make(_SIZE, place, place.allocate(_SIZE))
        case.require(not buffer.is_external, "is_external is true")
        buffer.close()
        case.require(not place.live, "the block was not released")


@_checks("F06-allocate")
def allocate(case: _Case) -> None:
    for place in case.places:
        buffer = case.make(_SIZE, place)
        old = buffer.ptr
        case.require(buffer.allocate() is True, "allocate() says that there is no memory")
        case.require(buffer.ptr is not old and len(place.live) == 1, "the old memory is still there")
        buffer.close()
        case.require(buffer.allocate() is True and len(place.live) == 1, "a closed buffer has no memory again")
        with buffer:
            case.require(buffer.ptr is not None, "the new memory is gone")
        case.refused(InvalidArgumentError, "allocate() without an allocator", case.make().allocate)


@_checks("F07-failure-unchanged")
def failure_unchanged(case: _Case) -> None:
    for place in case.places:
        buffer = case.holding(3, place)
        old = buffer.ptr
        place.full = True
        case.refused(AllocationError, "allocate() without room", buffer.allocate)
        case.refused(AllocationError, "a new buffer without room", case.make, _SIZE, place)
        place.full = False
        case.require(buffer.ptr is old, "there was no room, and the memory is another one")
        place.stuck = old
        try:
            case.refused(ReleaseError, "allocate() whose release fails", buffer.allocate)
        finally:
            place.stuck = None
        case.require(buffer.ptr is old, "the release failed, and the memory is another one")
        case.require(len(place.live) == 1, "the new memory leaked")
        case.require_bytes(buffer, pattern(3, _SIZE), "after a failure")
        buffer.close()


# --- copies


@_checks("F08-copies")
def copies(case: _Case) -> None:
    for there in case.places:
        for here in case.places:
            for size in _SIZES:
                source, target = case.holding(4, there, size), case.holding(5, here, size + 2)
                target.copy_from(source)
                expected = pattern(4, size) + pattern(5, size + 2)[size:]
                case.require_bytes(target, expected, f"{size} bytes from {there.name} to {here.name}")
                case.require_bytes(source, pattern(4, size), "the source")
    for place in case.places:
        own = case.holding(6, place)
        own.copy_from(own)
        case.require_bytes(own, pattern(6, _SIZE), f"a buffer on {place.name} that is copied onto itself")


@_checks("F09-too-long")
def too_long(case: _Case) -> None:
    for place in case.places:
        target = case.holding(7, place)
        case.refused(InvalidSizeError, "a longer source", target.copy_from, case.holding(8, place, _SIZE + 1))
        case.require_bytes(target, pattern(7, _SIZE), "after a refused copy")


@_checks("F10-no-memory")
def no_memory(case: _Case) -> None:
    for place in case.places:
        full, closed = case.holding(9, place), case.make(_SIZE, place)
        closed.close()
        case.refused(InvalidArgumentError, "a source without memory", full.copy_from, closed)
        case.refused(InvalidArgumentError, "a destination without memory", closed.copy_from, full)
        case.require_bytes(full, pattern(9, _SIZE), "after a refused copy")


@_checks("F11-bad-arguments")
def bad_arguments(case: _Case) -> None:
    row = case.host.empty(_SIZE)
    for errors, arguments in (
        (InvalidSizeError, (-1,)),
        (InvalidArgumentError, ("8",)),
        (InvalidArgumentError, (_SIZE, 3)),
        (InvalidArgumentError, (_SIZE, None, row)),
    ):
        case.refused(errors, f"{len(arguments)} wrong arguments", case.make, *arguments)
    for what, ptr in (
        ("an object", object()),
        ("too few bytes", row[:-1]),
        ("read-only bytes", bytes(_SIZE)),
        ("every second byte", case.host.empty(2 * _SIZE)[::2]),
    ):
        case.refused(BufferMismatchError, what, case.make, _SIZE, case.host, ptr, use_external=True)
    for place in case.places:
        case.refused(InvalidArgumentError, "a source that is no buffer", case.make(_SIZE, place).copy_from, row)


# --- queued copies


@_checks("F12-queued")
def queued(case: _Case) -> None:
    device = case.devices[0]
    for leaving in ("the target", "the source", "a dropped target"):
        first, second = device.stream(), device.stream()
        target, source = case.make(_SIZE, device), case.holding(1, case.host)
        device.queued.clear()
        target.copy_from(source, stream=first)
        target.copy_from(source, stream=second)
        if leaving == "the source":
            source.close()
        elif leaving == "the target":
            target.close()
        else:
            del target
            gc.collect()
        over = [event.done for event in device.queued]
        for event in device.queued:  # whatever is in flight must not write into memory of the next check
            event.synchronize()
        case.require(all(over), f"{leaving} released its memory before the queued copies were over: {over}")


@_checks("F13-in-order")
def in_order(case: _Case) -> None:
    device = case.devices[0]
    stream = device.stream()
    host, first, second = case.holding(1, case.host), case.holding(2, device), case.holding(3, device)
    result = case.make(_SIZE, case.host)
    second.copy_from(first, stream=stream)
    first.copy_from(host)  # after the copy that reads it
    result.copy_from(second)  # after the copy that writes it
    device.upstream.record(stream).synchronize()
    case.require_bytes(result, pattern(2, _SIZE), "the buffer that was written on the stream")
    case.require_bytes(second, pattern(2, _SIZE), "the same buffer later")
    case.require_bytes(first, pattern(1, _SIZE), "the buffer that was read on the stream")


@_checks("F14-lost-told")
def lost_told(case: _Case) -> None:
    device = case.devices[0]
    for late in (False, True):
        target, source = case.make(_SIZE, device), case.holding(1, device)
        device.loses = True
        target.copy_from(source, stream=device.stream())
        device.loses = False
        if late:
            target.copy_from(case.holding(2, device), stream=device.stream())
        case.refused(SyncedMemoryError, "a close after a lost copy", target.close)
        target.close()
        case.require(target.ptr is None, "the memory is kept after a lost copy was reported")


@_checks("F15-need-sync")
def need_sync(case: _Case) -> None:
    device = case.devices[0]
    for size in (0, _SIZE):
        stream, target, source = device.stream(), case.make(_SIZE, device), case.holding(1, case.host)
        target.copy_from(source, stream=stream)
        event = device.upstream.record(stream)
        case.make(size, device).copy_from(case.make(size, device), need_sync=True)
        done = event.done
        event.synchronize()
        case.require(done, f"a copy of {size} bytes with need_sync did not wait for a stream of the device")


# --- the object


@_checks("F16-device-type")
def device_type(case: _Case) -> None:
    expected = {
        "without memory": (case.make(), DeviceType.UNKNOWN),
        "of host memory": (case.make(_SIZE, None, bytearray(_SIZE), use_external=True), DeviceType.CPU),
        **{f"on {it.name}": (case.make(_SIZE, it), it.device_type) for it in case.places},
    }
    for what, (buffer, kind) in expected.items():
        case.require(buffer.device_type == kind, f"the type {what} is {buffer.device_type!r}, expected {kind!r}")


@_checks("F17-closed")
def closed(case: _Case) -> None:
    def enter(buffer: Any) -> None:
        with buffer:
            pass

    for place in case.places:
        buffer = case.make(_SIZE, place)
        buffer.close()
        case.require(buffer.ptr is None, "a closed buffer has memory")
        case.refused(ClosedMemoryError, "a with block of a closed buffer", enter, buffer)
    enter(case.make())


@_checks("F18-not-copied")
def not_copied(case: _Case) -> None:
    buffer = case.make(_SIZE, case.host)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        case.refused(NotCopyableError, duplicate.__name__, duplicate, buffer)


@_checks("F19-threads")
def threads(case: _Case) -> None:
    for place in case.places[:2]:
        one, other, wrong = case.holding(1, place), case.holding(1, place), list[str]()

        def work(first: Any, second: Any, wrong: list[str]) -> None:
            try:
                for _ in range(_TURNS):
                    first.copy_from(second)
            except Exception as error:  # noqa: BLE001 -- reported below
                wrong.append(f"{type(error).__name__}: {error}")

        running = [
            threading.Thread(target=work, args=(*pair, wrong), daemon=True) for pair in ((one, other), (other, one))
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(_PATIENCE)
        case.require(not any(thread.is_alive() for thread in running), "two threads wait for each other")
        case.require(not wrong, wrong[0] if wrong else "")


@_checks("F20-reentrant")
def reentrant(case: _Case) -> None:
    for place in case.places:
        buffer = case.holding(1, place)
        old, refused = buffer.ptr, list[bool]()

        def call_back(place: _Place = place, buffer: Any = buffer, refused: list[bool] = refused) -> None:
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
        One of `buffer_requirements_for` the subject.

    Raises
    ------
    Violation
        If the class does not meet the requirement.
    """
    try:
        _CHECKS[requirement](_Case(requirement, subject))
    except Violation:
        raise
    except Exception as error:
        raise Violation(requirement, f"{type(error).__name__}: {error}") from error


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
        lines = ("from syncedmem.spec.buffer import check_buffer", subject.source)
        return (*filter(None, lines), f"check_buffer(subject, {requirement!r})")

    wanted = buffer_requirements_for(subject)
    checks = {it: {subject.name: partial(check_buffer, subject, it)} for it in wanted}
    return run_checks(subject.name, checks, reproducer, progress)
