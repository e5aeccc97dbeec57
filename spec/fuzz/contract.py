"""The contract of a device allocator: every requirement of the interface in `syncedmem.model.interface`, as a check.

`AllocatorContract` is a class for pytest and unittest; `check_allocator` does the same without either.  For allocators
that need not have this interface, use the fuzzer.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from unittest import SkipTest

from syncedmem.model import (
    AllocationError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidSizeError,
    SyncedMemoryError,
)
from syncedmem.model.interface import DeviceType, MemcpyKind, is_host

from ..engine.checklist import register
from ..engine.contents import Watched, pattern
from ..engine.violation import Violation
from ..requirements import requirements_of
from .finding import TargetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..requirements import Requirement

    Errors = type[Exception] | tuple[type[Exception], ...]

__all__ = ["AllocatorContract", "check_allocator"]

SIZES = (1, 63, 64, 65, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 5)
"""In bytes; allocators often take blocks of a mebibyte and more from another source."""

_TOO_MUCH = 1 << 60
_MOST = (1 << 63) - 1
"""If an adaptor adds bytes to this size, the sum is beyond the address space."""
_NO_SIZES = (
    (-1, InvalidSizeError),
    (1 << 63, InvalidSizeError),
    *((it, InvalidArgumentError) for it in ("8", None, True, 1.5)),
)
_NO_KINDS = (4, -1, "CPU2CPU", None)
_NO_STREAMS = (7, "stream", object())
_SIZE = 16
_THREADS, _TURNS = 4, 50


class _Size:
    """An integer of another type, as NumPy's are."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


class _Case:
    """One check of one allocator, with functions that write and read its memory."""

    def __init__(self, requirement: str, allocator: Any) -> None:
        self.requirement = requirement
        self.allocator = allocator
        self.on_host = is_host(allocator)
        self.host = allocator if self.on_host else allocator.pinned_host()
        self.kinds = (MemcpyKind.CPU2CPU,) if self.on_host else tuple(MemcpyKind)
        self._blocks: dict[int, Any] = {}

    def require(self, holds: bool, message: str) -> None:
        """Report a violation if the condition does not hold."""
        if not holds:
            raise Violation(self.requirement, message)

    def refused(self, errors: Errors, what: str, call: Callable[..., object], *arguments: object) -> None:
        """Report a call that is not refused with one of these errors; another error is reported by the caller."""
        try:
            call(*arguments)
        except errors:
            return
        raise Violation(self.requirement, f"{what}: not refused")

    def block(self, size: int = _SIZE, content: bytes = b"") -> Any:
        """Allocate a block, with some content; `finish` releases it."""
        block = self.allocator.allocate(size)
        self.require(block is not None, f"a request for {size} bytes gave None")
        self._blocks[id(block)] = block
        if content:
            self.write(block, content)
        return block

    def give_back(self, block: Any) -> None:
        """Release a block."""
        self.allocator.release(block)
        self._blocks.pop(id(block), None)

    def row(self, content: bytes) -> Any:
        """Make a row of bytes in host memory."""
        row = self.host.empty(len(content))
        memoryview(row)[:] = content
        return row

    def end(self, content: bytes, *, on_device: bool) -> Any:
        """Make the source or the destination of a copy: a block of the device, or a row of the host."""
        return self.block(len(content), content) if on_device else self.row(content)

    def write(self, ptr: Any, content: bytes) -> None:
        """Write bytes to the beginning of an array of this allocator."""
        kind = MemcpyKind.CPU2CPU if self.on_host else MemcpyKind.CPU2CUDA
        self.allocator.memcpy(self.row(content), ptr, len(content), kind)

    def read(self, ptr: Any) -> bytes:
        """Return the bytes of an array, of this allocator or of the host."""
        if is_row(ptr):
            return bytes(memoryview(ptr))
        row = self.host.empty(len(ptr))
        self.allocator.memcpy(ptr, row, len(ptr), MemcpyKind.CUDA2CPU)
        return bytes(memoryview(row))

    def finish(self) -> None:
        """Release the blocks that are left."""
        for block in list(self._blocks.values()):
            self.give_back(block)


def is_row(ptr: Any) -> bool:
    """Return whether the host can read an array directly."""
    try:
        memoryview(ptr)
    except TypeError:
        return False
    return True


_CHECKS: dict[str, Callable[[_Case], None]] = {}


_checks = partial(register, _CHECKS)


# --- blocks


@_checks("D01-zero-bytes")
def zero_bytes(case: _Case) -> None:
    for zero in (0, _Size(0)):
        case.require(case.allocator.allocate(zero) is None, "a request for zero bytes gave a block")
    case.allocator.release(None)
    case.require(len(case.allocator.empty(0)) == 0, "empty(0) has bytes")


@_checks("D02-row-of-bytes")
def row_of_bytes(case: _Case) -> None:
    for size in SIZES:
        for array in (case.block(size), case.allocator.empty(size), case.allocator.empty(_Size(size))):
            found = (array.ndim, str(array.dtype), len(array), array.nbytes)
            case.require(found == (1, "uint8", size, size), f"{size} bytes have ndim, dtype, len and nbytes {found}")
            content = pattern(size, size)
            case.write(array, content)
            case.require(case.read(array) == content, f"{size} bytes were written, and other bytes were read")


@_checks("D03-sizes-refused")
def sizes_refused(case: _Case) -> None:
    for size, error in _NO_SIZES:
        for call in (case.allocator.allocate, case.allocator.empty):
            case.refused(error, f"{call.__name__}({size!r})", call, size)


@_checks("D04-no-room")
def no_room(case: _Case) -> None:
    for call in (case.allocator.allocate, case.allocator.empty):
        case.refused(AllocationError, f"{call.__name__}({_TOO_MUCH})", call, _TOO_MUCH)
        case.refused((AllocationError, InvalidSizeError), f"{call.__name__}({_MOST})", call, _MOST)
    case.block()


@_checks("D05-released-once")
def released_once(case: _Case) -> None:
    block = case.block()
    case.give_back(block)
    case.refused(InvalidPointerError, "a second release", case.allocator.release, block)
    case.block()
    case.refused(InvalidPointerError, "a second release, while another block is live", case.allocator.release, block)


@_checks("D06-foreign-refused")
def foreign_refused(case: _Case) -> None:
    content = pattern(1, _SIZE)
    block = case.block(_SIZE, content)
    foreign = {
        "a view of a block": block[:],
        "an array of empty()": case.allocator.empty(_SIZE),
        "a row of the host": case.row(content),
        "a bytearray": bytearray(_SIZE),
        "a number": 7,
    }
    for what, ptr in foreign.items():
        case.refused(InvalidPointerError, f"a release of {what}", case.allocator.release, ptr)
    case.require(case.read(block) == content, "a refused release changed a block")
    case.give_back(block)


@_checks("D07-late-reader")
def late_reader(case: _Case) -> None:
    for size in (_SIZE, SIZES[-1]):
        content = pattern(2, size)
        block = case.block(size, content)
        view = block[4:8]
        case.give_back(block)
        del block
        for _ in range(8):
            case.block(size, pattern(3, size))
        with suppress(SyncedMemoryError):  # a device may notice the late use, and raise
            found = case.read(view)
            case.require(found == content[4:8], f"a view of a released block reads {found!r}")


@_checks("D08-counts")
def counts(case: _Case) -> None:
    counted: Callable[[], int] = lambda: getattr(case.allocator, "live_blocks", 0)  # noqa: E731 -- evaluated several times
    if not isinstance(getattr(case.allocator, "live_blocks", None), int):
        raise SkipTest("it has no live_blocks")
    before = counted()
    first, second = case.block(), case.block(64)
    case.require(counted() == before + 2, f"live_blocks is {counted()} with {before + 2} live blocks")
    case.allocator.allocate(0)
    kept = case.allocator.empty(_SIZE)
    case.refused(AllocationError, "too large a request", case.allocator.allocate, _TOO_MUCH)
    case.refused(InvalidPointerError, "a foreign release", case.allocator.release, bytearray(4))
    case.require(counted() == before + 2, "live_blocks counts an array that is not a block, or a refused call")
    del kept
    case.give_back(first)
    case.give_back(second)
    case.require(counted() == before, f"live_blocks is {counted()} with {before} live blocks")


# --- copies and fills


@_checks("D09-copies")
def copies(case: _Case) -> None:
    old, new = pattern(4, _SIZE), pattern(5, _SIZE)
    for kind in case.kinds:
        source = case.end(new, on_device=kind.from_device)
        dest = case.end(old, on_device=kind.to_device)
        case.allocator.memcpy(source[2:], dest[4:], 5, kind)
        case.require(case.read(dest) == old[:4] + new[2:7] + old[9:], f"{kind.name}: a copy moved other bytes")
        case.require(case.read(source) == new, f"{kind.name}: a copy changed its source")


@_checks("D10-copies-of-nothing")
def copies_of_nothing(case: _Case) -> None:
    block = case.block()
    for kind in case.kinds:
        case.allocator.memcpy(None, None, 0, kind)
        case.refused(
            InvalidSizeError, f"{kind.name}: a byte from None to None", case.allocator.memcpy, None, None, 1, kind
        )
    case.allocator.memset_zero(None, 0)
    case.allocator.memset_zero(block, 0)


@_checks("D11-bounds")
def bounds(case: _Case) -> None:
    content = pattern(6, _SIZE)
    for kind in case.kinds:
        source = case.end(pattern(7, _SIZE), on_device=kind.from_device)
        dest = case.end(content, on_device=kind.to_device)
        for size, short in ((_SIZE + 1, dest), (-1, dest), (5, dest[:4])):
            what = f"{kind.name}: {size} bytes to an array of {len(short)}"
            case.refused(InvalidSizeError, what, case.allocator.memcpy, source, short, size, kind)
        what = f"{kind.name}: 5 bytes from an array of 4"
        case.refused(InvalidSizeError, what, case.allocator.memcpy, source[:4], dest, 5, kind)
        case.require(case.read(dest) == content, f"{kind.name}: a refused copy changed bytes")
    block = case.block(_SIZE, content)
    for size in (_SIZE + 1, -1):
        what = f"{size} zeros in a block of {_SIZE}"
        case.refused(InvalidSizeError, what, case.allocator.memset_zero, block, size)
    case.require(case.read(block) == content, "a refused fill changed bytes")


@_checks("D12-ends")
def ends(case: _Case) -> None:
    content = pattern(8, _SIZE)
    frozen = case.row(content)[:]
    frozen.flags.writeable = False
    for kind in case.kinds:
        source = case.end(content, on_device=kind.from_device)
        dest = case.end(content, on_device=kind.to_device)
        wrong_sources = [case.row(content)] if kind.from_device else [case.row(content)[::2], bytearray(_SIZE)]
        wrong_dests = [case.row(content)] if kind.to_device else [frozen, case.row(content)[::2]]
        if not case.on_host:
            wrong_sources += [] if kind.from_device else [case.block()]
            wrong_dests += [] if kind.to_device else [case.block()]
        for end in wrong_sources:
            case.refused(InvalidPointerError, f"{kind.name}: a wrong src", case.allocator.memcpy, end, dest, 4, kind)
        for end in wrong_dests:
            case.refused(InvalidPointerError, f"{kind.name}: a wrong dest", case.allocator.memcpy, source, end, 4, kind)
        case.require(case.read(dest) == content, f"{kind.name}: a refused copy changed bytes")
    for ptr in (frozen, case.row(content)[::2]) if case.on_host else (case.row(content),):
        case.refused(InvalidPointerError, "a fill of memory that it cannot fill", case.allocator.memset_zero, ptr, 4)


@_checks("D13-kinds")
def kinds(case: _Case) -> None:
    content = pattern(9, _SIZE)
    block = case.block(_SIZE, content)
    for kind in (*_NO_KINDS, *(set(MemcpyKind) - set(case.kinds))):
        what = f"kind={kind!r}"
        case.refused(InvalidArgumentError, what, case.allocator.memcpy, case.row(bytes(_SIZE)), block, _SIZE, kind)
    case.require(case.read(block) == content, "a refused copy changed bytes")


@_checks("D14-zeros")
def zeros(case: _Case) -> None:
    for size in SIZES[1:]:
        content, half = pattern(10, size), size // 2
        block = case.block(size, content)
        case.allocator.memset_zero(block[3:], half)
        expected = content[:3] + bytes(half) + content[3 + half :]
        case.require(case.read(block) == expected, f"{half} zeros from byte 3 of {size} changed other bytes")
        case.write(block, content)
        case.allocator.memset_zero(block, half)
        case.require(case.read(block) == bytes(half) + content[half:], f"{half} zeros of {size} changed other bytes")
        case.allocator.memset_zero(block, size)
        case.require(not any(case.read(block)), f"a block of {size} bytes is not all zeros")
        case.give_back(block)


# --- streams and events


@_checks("D15-streams")
def streams(case: _Case) -> None:
    content = pattern(11, _SIZE)
    stream = case.allocator.stream()
    case.allocator.check_stream(stream)
    for kind in case.kinds:
        source = case.end(content, on_device=kind.from_device)
        dest = case.end(bytes(_SIZE), on_device=kind.to_device)
        case.allocator.memcpy(source, dest, _SIZE, kind, stream)
        event = case.allocator.record(stream)
        event.synchronize()
        case.require(event.done, f"{kind.name}: an event is not done after the wait for it")
        case.allocator.order_after(event)
        case.require(case.read(dest) == content, f"{kind.name}: a copy on a stream moved other bytes")
        case.allocator.memcpy(source, dest, _SIZE, kind, stream)
        event = case.allocator.record(stream)
        case.allocator.memcpy(None, None, 0, kind, stream, need_sync=True)
        case.require(event.done, f"{kind.name}: need_sync did not wait in a copy of zero bytes")
    block = case.block(_SIZE, content)
    case.allocator.memset_zero(block, _SIZE, stream)
    event = case.allocator.record(stream)
    case.allocator.memset_zero(block, _SIZE, stream, need_sync=True)
    case.require(event.done and not any(case.read(block)), "a fill on a stream is not complete after need_sync")


@_checks("D16-foreign-streams")
def foreign_streams(case: _Case) -> None:
    content = pattern(12, _SIZE)
    block, allocator = case.block(_SIZE, content), case.allocator
    row, kind = case.row(bytes(_SIZE)), MemcpyKind.CPU2CPU if case.on_host else MemcpyKind.CPU2CUDA
    for stream in _NO_STREAMS:
        case.refused(InvalidArgumentError, "check_stream", allocator.check_stream, stream)
        case.refused(InvalidArgumentError, "record", allocator.record, stream)
        case.refused(InvalidArgumentError, "a copy", allocator.memcpy, row, block, _SIZE, kind, stream)
        case.refused(InvalidArgumentError, "a fill", allocator.memset_zero, block, _SIZE, stream)
        if not case.on_host:
            case.refused(InvalidArgumentError, "order_after", allocator.order_after, stream)
    if not case.on_host:
        for call in (allocator.check_stream, allocator.record, allocator.order_after):
            case.refused(InvalidArgumentError, f"{call.__name__}(None)", call, None)
    case.require(case.read(block) == content, "a refused call with a wrong stream changed bytes")


# --- arrays over memory


@_checks("D17-overlaps")
def overlaps(case: _Case) -> None:
    block, other, overlaps = case.block(), case.block(), case.allocator.overlaps
    case.require(overlaps(block[:8], block[7:]), "two arrays share a byte, and overlaps is false")
    nothing = case.allocator.empty(0)
    apart = ((block[:8], block[8:]), (block[8:], block[:8]), (block, other), (nothing, nothing))
    for first, second in (*apart, (None, block), (block, None)):
        case.require(not overlaps(first, second), "two arrays share no byte, and overlaps is true")


@_checks("D18-adopts")
def adopts(case: _Case) -> None:
    content = pattern(13, _SIZE)
    theirs = Watched(_SIZE) if case.on_host else case.allocator.empty(_SIZE)
    ptr = case.allocator.adopt(theirs, _SIZE - 3)
    case.require(len(ptr) == _SIZE - 3, f"{_SIZE - 3} bytes were adopted, and the array has {len(ptr)}")
    case.write(ptr, content[: _SIZE - 3])
    case.require(case.read(theirs)[: _SIZE - 3] == content[: _SIZE - 3], "the adopted memory is a copy")
    for what, buffer, size in (
        ("None", None, 4),
        ("an object", object(), 4),
        ("too few bytes", theirs, _SIZE + 1),
        ("a negative size", theirs, -1),
    ):
        case.refused(ValueError, f"an adoption of {what}", case.allocator.adopt, buffer, size)


@_checks("D19-views")
def views(case: _Case) -> None:
    content = pattern(14, _SIZE)
    block = case.block(_SIZE, content)
    viewer = case.allocator.viewer(block)
    first, second = viewer(), viewer()
    case.require(first is not second and first is not block, "a viewer returned the same array twice")
    case.require(case.read(case.allocator.read_only(block)) == content, "read_only shows other bytes")
    case.write(first, content[::-1])
    case.require(case.read(second) == content[::-1], "two views of a block have different bytes")


# --- the device


@_checks("D20-device")
def device(case: _Case) -> None:
    allocator = case.allocator
    found = (allocator.name, allocator.ordinal, allocator.device_type)
    names = isinstance(found[0], str) and type(found[1]) is int and isinstance(found[2], DeviceType)
    case.require(names and found[2] is not DeviceType.UNKNOWN, f"name, ordinal and device_type are {found!r}")
    before = allocator.current_ordinal()
    with allocator.using():
        case.require(allocator.current_ordinal() == allocator.ordinal, "using() makes another device current")
    case.block()
    case.require(allocator.current_ordinal() == before, "another device was left current")
    case.require(is_host(allocator.pinned_host()), "pinned_host() is not an allocator of host memory")


@_checks("D21-threads")
def threads(case: _Case) -> None:
    shared = case.allocator.allocate(64)
    accepted: list[int] = []
    wrong: list[str] = []
    start = threading.Barrier(_THREADS)

    def work(number: int) -> None:
        content = pattern(15 + number, 64)
        try:
            start.wait()
            try:
                case.allocator.release(shared)
                accepted.append(number)
            except InvalidPointerError:
                pass
            for _ in range(_TURNS):
                block = case.allocator.allocate(64)
                case.write(block, content)
                if case.read(block) != content:
                    wrong.append("a block has bytes of another thread")
                case.allocator.release(block)
        except Exception as error:  # noqa: BLE001 -- reported below
            wrong.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    case.require(not wrong, wrong[0] if wrong else "")
    case.require(len(accepted) == 1, f"one block was released by {len(accepted)} threads")


def check_allocator(allocator: Any, requirement: str) -> None:
    """Check one requirement of an allocator with the interface of this package.

    Parameters
    ----------
    allocator : Allocator
        Its live blocks are not changed.
    requirement : str
        One of ``requirements_of("device allocator")``.

    Raises
    ------
    Violation
        If the allocator does not meet the requirement.
    SkipTest
        If the allocator does not have what the check needs.
    """
    case = _Case(requirement, allocator)
    try:
        _CHECKS[requirement](case)
        case.finish()
    except (Violation, SkipTest):
        raise
    except Exception as error:
        raise Violation(requirement, f"{type(error).__name__}: {error}") from error


class AllocatorContract:
    """One test for every requirement: subclass it, define `make`, and run pytest.

    Attributes
    ----------
    exempt : dict
        Requirements that are not checked, each with the reason.
    """

    exempt: ClassVar[Mapping[str, str]] = {}

    def make(self) -> Any:
        """Return an allocator: a new one, or a shared one."""
        raise TargetError(f"{type(self).__qualname__} has no make()")

    def check(self, requirement: str) -> None:
        """Check one requirement."""
        if requirement in self.exempt:
            raise SkipTest(f"{requirement}: {self.exempt[requirement]}")
        check_allocator(self.make(), requirement)


def _test_of(requirement: Requirement) -> Callable[[AllocatorContract], None]:
    def test(self: AllocatorContract) -> None:
        self.check(requirement.id)

    test.__doc__ = requirement.text
    return test


for _name, _requirement in requirements_of("device allocator").items():
    setattr(AllocatorContract, f"test_{_name.replace('-', '_')}", _test_of(_requirement))
