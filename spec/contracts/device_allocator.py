"""The contract of a device allocator: every requirement of the interface in `syncedmem.model.interface`, as a check.

`AllocatorContract` is a class for pytest and unittest; `check_allocator` does the same without either.  For allocators
that need not have this interface, use the fuzzer.
"""

from __future__ import annotations

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

from ..engine.checklist import Case, check_case
from ..engine.contents import Watched, pattern
from ..requirements import requirements_of
from .place import SIZE, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..requirements import Requirement

__all__ = ["AllocatorContract", "check_allocator"]

SIZES = (1, 63, 64, 65, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 5)
"""In bytes; allocators often take blocks of a mebibyte and more from another source."""

_TOO_MUCH = 1 << 60
_MOST = (1 << 63) - 1
"""If an adaptor adds bytes to this size, the sum is beyond the address space."""
_NO_SIZES = (
    (-1, InvalidSizeError),
    (1 << 63, InvalidSizeError),
    *((size, InvalidArgumentError) for size in ("8", None, True, 1.5)),
)
_NO_KINDS = (4, -1, "CPU2CPU", None)
_NO_STREAMS = (7, "stream", object())
_THREADS, _TURNS = 4, 50


class _Size:
    """An integer of another type, as NumPy's are."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


class AllocatorCase(Case):
    """One check of one allocator, whose memory is reached through `place`."""

    def __init__(self, requirement: str, allocator: Any) -> None:
        super().__init__(requirement)
        self.allocator = allocator
        self.place: Place = Place(allocator)
        self.kinds: tuple[MemcpyKind, ...] = (MemcpyKind.CPU2CPU,) if self.place.on_host else tuple(MemcpyKind)
        self._blocks: dict[int, Any] = {}

    def block(self, size: int = SIZE, content: bytes = b"") -> Any:
        """Allocate a block, with some content; `finish` releases it."""
        block = self.allocator.allocate(size)
        self.require(block is not None, f"a request for {size} bytes gave None")
        self._blocks[id(block)] = block
        if content:
            self.place.write(block, content)
        return block

    def give_back(self, block: Any) -> None:
        """Release a block."""
        self.allocator.release(block)
        self._blocks.pop(id(block), None)

    def ends(self, kind: MemcpyKind, new: bytes, old: bytes) -> tuple[Any, Any]:
        """Make the source of a copy and its destination: a block of the device, or a row of the host."""
        source = self.block(len(new), new) if kind.from_device else self.place.row(new)
        return source, self.block(len(old), old) if kind.to_device else self.place.row(old)

    def require_bytes(self, ptr: Any, expected: bytes, message: str) -> None:
        """Report an array with other bytes."""
        self.require(self.place.read(ptr) == expected, message)

    def finish(self) -> None:
        """Release the blocks that are left."""
        for block in list(self._blocks.values()):
            self.give_back(block)


# --- blocks


@AllocatorCase.checks("D01-zero-bytes")
def zero_bytes(case: AllocatorCase) -> None:
    for zero in (0, _Size(0)):
        case.require(case.allocator.allocate(zero) is None, "a request for zero bytes gave a block")
    case.allocator.release(None)
    case.require(len(case.allocator.empty(0)) == 0, "empty(0) has bytes")


@AllocatorCase.checks("D02-row-of-bytes")
def row_of_bytes(case: AllocatorCase) -> None:
    for size in SIZES:
        for array in (case.block(size), case.allocator.empty(size), case.allocator.empty(_Size(size))):
            row = (array.ndim, str(array.dtype), len(array), array.nbytes)
            case.require(row == (1, "uint8", size, size), f"{size} bytes have ndim, dtype, len and nbytes {row}")
            content = pattern(size, size)
            case.place.write(array, content)
            case.require_bytes(array, content, f"{size} bytes were written, and other bytes were read")


@AllocatorCase.checks("D03-sizes-refused")
def sizes_refused(case: AllocatorCase) -> None:
    for size, error in _NO_SIZES:
        for call in (case.allocator.allocate, case.allocator.empty):
            case.refused(error, f"{call.__name__}({size!r})", call, size)


@AllocatorCase.checks("D04-no-room")
def no_room(case: AllocatorCase) -> None:
    for call in (case.allocator.allocate, case.allocator.empty):
        case.refused(AllocationError, f"{call.__name__}({_TOO_MUCH})", call, _TOO_MUCH)
        case.refused((AllocationError, InvalidSizeError), f"{call.__name__}({_MOST})", call, _MOST)
    case.block()


@AllocatorCase.checks("D05-released-once")
def released_once(case: AllocatorCase) -> None:
    block = case.block()
    case.give_back(block)
    case.refused(InvalidPointerError, "a second release", case.allocator.release, block)
    case.block()
    case.refused(InvalidPointerError, "a second release, while another block is live", case.allocator.release, block)


@AllocatorCase.checks("D06-foreign-refused")
def foreign_refused(case: AllocatorCase) -> None:
    content = pattern(1, SIZE)
    block = case.block(SIZE, content)
    foreign = {
        "a view of a block": block[:],
        "an array of empty()": case.allocator.empty(SIZE),
        "a row of the host": case.place.row(content),
        "a bytearray": bytearray(SIZE),
        "a number": 7,
    }
    for what, ptr in foreign.items():
        case.refused(InvalidPointerError, f"a release of {what}", case.allocator.release, ptr)
    case.require_bytes(block, content, "a refused release changed a block")
    case.give_back(block)


@AllocatorCase.checks("D07-late-reader")
def late_reader(case: AllocatorCase) -> None:
    for size in (SIZE, SIZES[-1]):
        content = pattern(2, size)
        block = case.block(size, content)
        view = block[4:8]
        case.give_back(block)
        del block
        for _ in range(8):
            case.block(size, pattern(3, size))
        with suppress(SyncedMemoryError):  # a device may notice the late use, and raise
            bytes_now = case.place.read(view)
            case.require(bytes_now == content[4:8], f"a view of a released block reads {bytes_now!r}")


@AllocatorCase.checks("D08-counts")
def counts(case: AllocatorCase) -> None:
    counted: Callable[[], int] = lambda: getattr(case.allocator, "live_blocks", 0)  # noqa: E731 -- evaluated several times
    if not isinstance(getattr(case.allocator, "live_blocks", None), int):
        raise SkipTest("it has no live_blocks")
    before = counted()
    first, second = case.block(), case.block(64)
    case.require(counted() == before + 2, f"live_blocks is {counted()} with {before + 2} live blocks")
    case.allocator.allocate(0)
    kept = case.allocator.empty(SIZE)
    case.refused(AllocationError, "too large a request", case.allocator.allocate, _TOO_MUCH)
    case.refused(InvalidPointerError, "a foreign release", case.allocator.release, bytearray(4))
    case.require(counted() == before + 2, "live_blocks counts an array that is not a block, or a refused call")
    del kept
    case.give_back(first)
    case.give_back(second)
    case.require(counted() == before, f"live_blocks is {counted()} with {before} live blocks")


# --- copies and fills


@AllocatorCase.checks("D09-copies")
def copies(case: AllocatorCase) -> None:
    old, new = pattern(4, SIZE), pattern(5, SIZE)
    for kind in case.kinds:
        source, dest = case.ends(kind, new, old)
        case.allocator.memcpy(source[2:], dest[4:], 5, kind)
        case.require_bytes(dest, old[:4] + new[2:7] + old[9:], f"{kind.name}: a copy moved other bytes")
        case.require_bytes(source, new, f"{kind.name}: a copy changed its source")


@AllocatorCase.checks("D10-copies-of-nothing")
def copies_of_nothing(case: AllocatorCase) -> None:
    block = case.block()
    for kind in case.kinds:
        case.allocator.memcpy(None, None, 0, kind)
        case.refused(
            InvalidSizeError, f"{kind.name}: a byte from None to None", case.allocator.memcpy, None, None, 1, kind
        )
    case.allocator.memset_zero(None, 0)
    case.allocator.memset_zero(block, 0)


@AllocatorCase.checks("D11-bounds")
def bounds(case: AllocatorCase) -> None:
    content = pattern(6, SIZE)
    for kind in case.kinds:
        source, dest = case.ends(kind, pattern(7, SIZE), content)
        for size, short in ((SIZE + 1, dest), (-1, dest), (5, dest[:4])):
            what = f"{kind.name}: {size} bytes to an array of {len(short)}"
            case.refused(InvalidSizeError, what, case.allocator.memcpy, source, short, size, kind)
        what = f"{kind.name}: 5 bytes from an array of 4"
        case.refused(InvalidSizeError, what, case.allocator.memcpy, source[:4], dest, 5, kind)
        case.require_bytes(dest, content, f"{kind.name}: a refused copy changed bytes")
    block = case.block(SIZE, content)
    for size in (SIZE + 1, -1):
        what = f"{size} zeros in a block of {SIZE}"
        case.refused(InvalidSizeError, what, case.allocator.memset_zero, block, size)
    case.require_bytes(block, content, "a refused fill changed bytes")


@AllocatorCase.checks("D12-ends")
def ends(case: AllocatorCase) -> None:
    content = pattern(8, SIZE)
    frozen = case.place.row(content)[:]
    frozen.flags.writeable = False
    for kind in case.kinds:
        source, dest = case.ends(kind, content, content)
        wrong_sources = (
            [case.place.row(content)] if kind.from_device else [case.place.row(content)[::2], bytearray(SIZE)]
        )
        wrong_dests = [case.place.row(content)] if kind.to_device else [frozen, case.place.row(content)[::2]]
        if not case.place.on_host:
            wrong_sources += [] if kind.from_device else [case.block()]
            wrong_dests += [] if kind.to_device else [case.block()]
        for end in wrong_sources:
            case.refused(InvalidPointerError, f"{kind.name}: a wrong src", case.allocator.memcpy, end, dest, 4, kind)
        for end in wrong_dests:
            case.refused(InvalidPointerError, f"{kind.name}: a wrong dest", case.allocator.memcpy, source, end, 4, kind)
        case.require_bytes(dest, content, f"{kind.name}: a refused copy changed bytes")
    for ptr in (frozen, case.place.row(content)[::2]) if case.place.on_host else (case.place.row(content),):
        case.refused(InvalidPointerError, "a fill of memory that it cannot fill", case.allocator.memset_zero, ptr, 4)


@AllocatorCase.checks("D13-kinds")
def kinds(case: AllocatorCase) -> None:
    content = pattern(9, SIZE)
    block = case.block(SIZE, content)
    for kind in (*_NO_KINDS, *(set(MemcpyKind) - set(case.kinds))):
        what = f"kind={kind!r}"
        case.refused(InvalidArgumentError, what, case.allocator.memcpy, case.place.row(bytes(SIZE)), block, SIZE, kind)
    case.require_bytes(block, content, "a refused copy changed bytes")


@AllocatorCase.checks("D14-zeros")
def zeros(case: AllocatorCase) -> None:
    for size in SIZES[1:]:
        content, half = pattern(10, size), size // 2
        block = case.block(size, content)
        case.allocator.memset_zero(block[3:], half)
        expected = content[:3] + bytes(half) + content[3 + half :]
        case.require_bytes(block, expected, f"{half} zeros from byte 3 of {size} changed other bytes")
        case.place.write(block, content)
        case.allocator.memset_zero(block, half)
        case.require_bytes(block, bytes(half) + content[half:], f"{half} zeros of {size} changed other bytes")
        case.allocator.memset_zero(block, size)
        case.require_bytes(block, bytes(size), f"a block of {size} bytes is not all zeros")
        case.give_back(block)


# --- streams and events


@AllocatorCase.checks("D15-streams")
def streams(case: AllocatorCase) -> None:
    content = pattern(11, SIZE)
    stream = case.allocator.stream()
    case.allocator.check_stream(stream)
    for kind in case.kinds:
        source, dest = case.ends(kind, content, bytes(SIZE))
        case.allocator.memcpy(source, dest, SIZE, kind, stream)
        event = case.allocator.record(stream)
        event.synchronize()
        case.require(event.done, f"{kind.name}: an event is not done after the wait for it")
        case.allocator.order_after(event)
        case.require_bytes(dest, content, f"{kind.name}: a copy on a stream moved other bytes")
        case.allocator.memcpy(source, dest, SIZE, kind, stream)
        event = case.allocator.record(stream)
        case.allocator.memcpy(None, None, 0, kind, stream, need_sync=True)
        case.require(event.done, f"{kind.name}: need_sync did not wait in a copy of zero bytes")
    block = case.block(SIZE, content)
    case.allocator.memset_zero(block, SIZE, stream)
    event = case.allocator.record(stream)
    case.allocator.memset_zero(block, SIZE, stream, need_sync=True)
    case.require(event.done and not any(case.place.read(block)), "a fill on a stream is not complete after need_sync")


@AllocatorCase.checks("D16-foreign-streams")
def foreign_streams(case: AllocatorCase) -> None:
    content = pattern(12, SIZE)
    block, allocator = case.block(SIZE, content), case.allocator
    row, kind = case.place.row(bytes(SIZE)), MemcpyKind.CPU2CPU if case.place.on_host else MemcpyKind.CPU2CUDA
    for stream in _NO_STREAMS:
        case.refused(InvalidArgumentError, "check_stream", allocator.check_stream, stream)
        case.refused(InvalidArgumentError, "record", allocator.record, stream)
        case.refused(InvalidArgumentError, "a copy", allocator.memcpy, row, block, SIZE, kind, stream)
        case.refused(InvalidArgumentError, "a fill", allocator.memset_zero, block, SIZE, stream)
        if not case.place.on_host:
            case.refused(InvalidArgumentError, "order_after", allocator.order_after, stream)
    if not case.place.on_host:
        for call in (allocator.check_stream, allocator.record, allocator.order_after):
            case.refused(InvalidArgumentError, f"{call.__name__}(None)", call, None)
    case.require_bytes(block, content, "a refused call with a wrong stream changed bytes")


# --- arrays over memory


@AllocatorCase.checks("D17-overlaps")
def overlaps(case: AllocatorCase) -> None:
    block, other, overlaps = case.block(), case.block(), case.allocator.overlaps
    case.require(overlaps(block[:8], block[7:]), "two arrays share a byte, and overlaps is false")
    nothing = case.allocator.empty(0)
    apart = ((block[:8], block[8:]), (block[8:], block[:8]), (block, other), (nothing, nothing))
    for first, second in (*apart, (None, block), (block, None)):
        case.require(not overlaps(first, second), "two arrays share no byte, and overlaps is true")


@AllocatorCase.checks("D18-adopts")
def adopts(case: AllocatorCase) -> None:
    content = pattern(13, SIZE)
    theirs = Watched(SIZE) if case.place.on_host else case.allocator.empty(SIZE)
    ptr = case.allocator.adopt(theirs, SIZE - 3)
    case.require(len(ptr) == SIZE - 3, f"{SIZE - 3} bytes were adopted, and the array has {len(ptr)}")
    case.place.write(ptr, content[: SIZE - 3])
    case.require(case.place.read(theirs)[: SIZE - 3] == content[: SIZE - 3], "the adopted memory is a copy")
    for what, buffer, size in (
        ("None", None, 4),
        ("an object", object(), 4),
        ("too few bytes", theirs, SIZE + 1),
        ("a negative size", theirs, -1),
    ):
        case.refused(ValueError, f"an adoption of {what}", case.allocator.adopt, buffer, size)


@AllocatorCase.checks("D19-views")
def views(case: AllocatorCase) -> None:
    content = pattern(14, SIZE)
    block = case.block(SIZE, content)
    viewer = case.allocator.viewer(block)
    first, second = viewer(), viewer()
    case.require(first is not second and first is not block, "a viewer returned the same array twice")
    case.require(case.place.read(case.allocator.read_only(block)) == content, "read_only shows other bytes")
    case.place.write(first, content[::-1])
    case.require_bytes(second, content[::-1], "two views of a block have different bytes")


# --- the device


@AllocatorCase.checks("D20-device")
def device(case: AllocatorCase) -> None:
    allocator = case.allocator
    identity = (allocator.name, allocator.ordinal, allocator.device_type)
    names = isinstance(identity[0], str) and type(identity[1]) is int and isinstance(identity[2], DeviceType)
    case.require(names and identity[2] is not DeviceType.UNKNOWN, f"name, ordinal and device_type are {identity!r}")
    before = allocator.current_ordinal()
    with allocator.using():
        case.require(allocator.current_ordinal() == allocator.ordinal, "using() makes another device current")
    case.block()
    case.require(allocator.current_ordinal() == before, "another device was left current")
    case.require(is_host(allocator.pinned_host()), "pinned_host() is not an allocator of host memory")


@AllocatorCase.checks("D21-threads")
def threads(case: AllocatorCase) -> None:
    shared = case.allocator.allocate(64)
    accepted: list[int] = []

    def work(number: int) -> None:
        content = pattern(15 + number, 64)
        with suppress(InvalidPointerError):
            case.allocator.release(shared)
            accepted.append(number)
        for _ in range(_TURNS):
            block = case.allocator.allocate(64)
            case.place.write(block, content)
            case.require_bytes(block, content, "a block has bytes of another thread")
            case.allocator.release(block)

    case.run_together(*(partial(work, number) for number in range(_THREADS)))
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
    InvalidArgumentError
        If it is no requirement of device allocators.
    """
    check_case(AllocatorCase(requirement, allocator))


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
        raise NotImplementedError(f"{type(self).__qualname__} has no make()")

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
