"""One family of exceptions: each class says who made the mistake, and its attributes hold the wrong values.

The family is in the model because refusals are declared there and every room must be able to name them.  Each class
also derives from the built-in error that a caller would catch.  After any of these errors nothing has changed: head,
flags, pointers and the bytes of every fresh side are as before the call, nothing has leaked, and the next call works.
The only exception is `ReleaseError`, because freed memory cannot be taken back.
"""

from __future__ import annotations

import re
from array import array
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

from .packages import install, is_absent, why

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from .lines import Copy, Line


__all__ = [
    "AllocationError",
    "BufferMismatchError",
    "ClosedAllocatorError",
    "ClosedMemoryError",
    "CopyRefusedError",
    "DeclarationError",
    "DeviceError",
    "FileAccessError",
    "FileFormatError",
    "IllegalCallError",
    "InvalidArgumentError",
    "InvalidExportError",
    "InvalidIndexError",
    "InvalidPointerError",
    "InvalidShapeError",
    "InvalidSizeError",
    "InvalidValueError",
    "MemoryCorruptionError",
    "MissingPackageError",
    "NoArithmeticError",
    "NoCapsuleError",
    "NoDeviceError",
    "NoScopeError",
    "NotCopyableError",
    "ReentrantCallError",
    "ReleaseError",
    "StaleWriteError",
    "SyncedMemoryError",
    "WrongDeviceError",
]


_LONGEST = 80
_MOST_WORDS = 1_000
"""In characters; the message of another library may repeat all of a file."""
_SPELT_OUT: Any = (str, bytes, bytearray, list, array)


class SyncedMemoryError(Exception):
    """Base of all exceptions that this package raises itself."""


class DeclarationError(SyncedMemoryError, ValueError):
    """The declared machine is unsound: ambiguous, incomplete, with a dead guard or an unreachable head."""


class InvalidSizeError(SyncedMemoryError, ValueError):
    """A size in bytes that no memory can have: negative, or beyond the address space.

    A size of a wrong type is an `InvalidArgumentError`.
    """

    def __init__(self, size: int, limit: int, argument: str = "size") -> None:
        super().__init__(f"{argument} must be between 0 and {limit} bytes, got {shown(size)}")
        self.size = size


class InvalidArgumentError(SyncedMemoryError, TypeError):
    """An argument of a type that the call cannot use (a stream that is not one, a size that is a string)."""

    def __init__(self, argument: str, value: object, expected: str) -> None:
        super().__init__(f"{argument} must be {expected}, got {shown(value)}")
        self.argument = argument
        self.value = value


class InvalidExportError(SyncedMemoryError, ValueError):
    """A drawing or an export that cannot be made: its format or its edition lacks something, or a trace is invalid."""

    @classmethod
    def unknown(cls, what: str, name: str, known: Iterable[str]) -> Self:
        """The error for an unknown name; it suggests a known name that looks similar."""
        names = [*known]
        near = get_close_matches(name.lower(), names, 1) or get_close_matches(name, names, 1)
        return cls(
            f"unknown {what} {name!r}{f' (did you mean {listed(near)}?)' if near else ''}; there are {listed(names)}"
        )


class InvalidShapeError(SyncedMemoryError, ValueError):
    """A shape that no blob can have (too many axes, a negative extent, too large), or that does not fit another."""

    def __init__(self, shape: object, reason: str) -> None:
        super().__init__(f"the shape {shown(shape)} cannot be used: {reason}")
        self.shape = shape
        self.reason = reason


class InvalidIndexError(SyncedMemoryError, IndexError):
    """An axis or an index that a shape does not have."""

    def __init__(self, argument: str, value: object, reason: str) -> None:
        super().__init__(f"{argument} {shown(value)}: {reason}")
        self.argument = argument
        self.value = value
        self.reason = reason


class InvalidValueError(SyncedMemoryError, ValueError):
    """A number that elements of a type cannot hold: too large, not finite, not whole, or not real.

    A value that is not a number is an `InvalidArgumentError`.
    """

    def __init__(self, value: object, dtype: object, reason: str) -> None:
        super().__init__(f"{dtype} cannot hold {shown(value)}: {reason}")
        self.value = value
        self.dtype = dtype
        self.reason = reason


class Named(Protocol):
    """A head, of whatever type."""

    @property
    def name(self) -> str: ...


class IllegalCallError(SyncedMemoryError, RuntimeError):
    """A call that the head does not allow: ``async_gpu_push`` anywhere but ``HEAD_AT_CPU``, or a blob's ``update``."""

    def __init__(self, call: str, head: Named, needs: str = "HEAD_AT_CPU", why: str = "") -> None:
        reason = f"; it needs {needs}" if needs else f": {why}"
        super().__init__(f"{call} is not allowed in head {head.name}{reason}")
        self.call = call
        self.head = head


class ReentrantCallError(SyncedMemoryError, RuntimeError):
    """A call on a memory from inside another call on it: an allocator or a buffer that calls back."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call}: this memory is in the middle of another call, made by the same thread")
        self.call = call


class StaleWriteError(SyncedMemoryError, RuntimeError):
    """Bytes of a checked memory that changed while they were not to be written: a view was kept, and used too late.

    Parameters
    ----------
    call : str
        The call that found it; it has done nothing.
    side : str
        ``"host"`` or ``"device"``.
    position : int
        The first byte that changed, counted from the beginning of the side.
    taken, ended : Line or None
        The calls that gave the last right to write to that side, and ended it, with their lines; None if not known.
    freed : bool
        Whether the call that ended the right gave the memory back, to a pool or to the system; it has no owner then.
    """

    def __init__(  # noqa: PLR0913 -- where, through what, and since when
        self, call: str, side: str, position: int, taken: Line | None, ended: Line | None, *, freed: bool = False
    ) -> None:
        reason = _why_freed(side, taken, ended) if freed else _why_stale(side, taken, ended)
        super().__init__(f"{call}: byte {position} of {reason}")
        self.call = call
        self.side = side
        self.position = position
        self.taken = taken
        self.ended = ended
        self.freed = freed


def _why_stale(side: str, taken: Line | None, ended: Line | None) -> str:
    """What is wrong with a write to a side that must not change."""
    if ended is not None:
        given = f"{taken} gave the right to write there, and {ended} ended it" if taken else f"{ended} came before"
        why = f"too late: {given}"
    else:
        why = "without the right to" + (f"; the last view of it came from {taken}" if taken else "")
    again = "mutable_cpu_data" if side == "host" else "mutable_gpu_data"
    if taken is not None and taken.call == again.replace("data", "diff"):
        again = taken.call  # of a blob
    return f"the {side} side was written {why}. Call {again}() again before each write instead of keeping a view"


def _why_freed(side: str, taken: Line | None, ended: Line | None) -> str:
    """What is wrong with a write to memory that its owner has given back."""
    view = f"; {taken} returned the last view of it" if taken else ""
    back = f", and {ended} gave it back" if ended else ""
    return (
        f"{side} memory was written after its owner had given it back{view}{back}. "
        "Use no view after its owner is closed or gone, has grown, or has adopted other memory"
    )


class CopyRefusedError(SyncedMemoryError, RuntimeError):
    """A copy or an allocation inside of a block that does not allow it (`syncedmem.no_copies`); nothing has changed.

    Parameters
    ----------
    copy : Copy
        What the call would have done, with its line.
    unit : str
        What the block counts: ``"copies"``, ``"copies up"``, ``"copies down"``, ``"bytes"`` (that are copied) or
        ``"allocations"``.
    count : int
        How many of these it would have been.
    limit : int
        How many the block allows.
    last : Copy or None
        What was copied or allocated in the block before.
    """

    def __init__(self, copy: Copy, unit: str, count: int, limit: int, last: Copy | None = None) -> None:
        would = f"{copy.line} would {_doing('copy', 'allocate', copy)}"
        parts = [f"{would}; the number of {unit} would be {count}, and this block allows {limit}"]
        if last is not None:
            parts.append(f"Before, {last.line} {_doing('copied', 'allocated', last)}")
        parts += [_instead(cause) for cause in (copy, last) if cause is not None and cause.to_write][:1]
        super().__init__(". ".join(parts))
        self.copy = copy
        self.unit = unit
        self.count = count
        self.limit = limit
        self.last = last


def _doing(copies: str, allocates: str, copy: Copy) -> str:
    """What a call does, with the verbs in the right tense."""
    if copy.what == "allocation":
        return f"{allocates} {copy.byte_size} bytes"
    return f"{copies} {copy.byte_size} bytes {'up to the device' if copy.what == 'up' else 'down to the host'}"


def _instead(copy: Copy) -> str:
    """What to do if all bytes are overwritten."""
    call = copy.line.call
    return f"{call}() copies to keep what you do not overwrite; {call.replace('mutable', 'set')}() copies nothing"


class BufferMismatchError(SyncedMemoryError, ValueError):
    """A buffer that cannot be adopted: not a buffer, too small, of the wrong kind, or already ours."""

    def __init__(self, call: str, buffer: object, reason: str) -> None:
        super().__init__(f"{call} cannot adopt {shown(buffer)}: {reason}")
        self.call = call
        self.buffer = buffer
        self.reason = reason


class ClosedMemoryError(SyncedMemoryError, ValueError):
    """A call on a memory or a buffer after ``close()``."""

    def __init__(self, call: str, size: int, what: str = "memory") -> None:
        super().__init__(f"{call}: this {what} of {size} bytes is closed")
        self.call = call
        self.size = size


class ClosedAllocatorError(SyncedMemoryError, ValueError):
    """A request for memory to an allocator after its ``close()``."""

    def __init__(self, call: str, where: str) -> None:
        super().__init__(f"{call}: this allocator of memory on {where} is closed")
        self.call = call
        self.where = where


class MissingPackageError(SyncedMemoryError, ImportError):
    """An optional package is needed, and cannot be imported; for a package of a device it is a `NoDeviceError`."""

    def __init__(self, what: str, package: str, extra: str, error: Exception | None = None) -> None:
        reason = "" if error is None or is_absent(package, error) else f" ({why(error)})"
        super().__init__(f"{what} needs the package {package}: {install(extra)}{reason}")
        self.package = package
        self.extra = extra


class NoDeviceError(SyncedMemoryError, RuntimeError):
    """There is no such device, or the memory was made without a device: Caffe's ``NO_GPU``."""


class WrongDeviceError(SyncedMemoryError, RuntimeError):
    """Another device is current, and the call needs the memory's own device.

    This is checked for a memory with ``check_device=True`` (Caffe's DEBUG check), and where a library assumes that
    memory is on the current device.
    """

    def __init__(self, call: str, expected: int, current: int) -> None:
        super().__init__(f"{call}: this memory lives on device {expected}, but device {current} is current")
        self.call = call
        self.expected = expected
        self.current = current


class AllocationError(SyncedMemoryError, MemoryError):
    """An allocator had no room.  A device that fails in another way raises a `DeviceError`."""

    def __init__(self, where: str, byte_size: int, detail: str = "") -> None:
        super().__init__(f"cannot allocate {byte_size} bytes on {where}{': ' if detail else ''}{detail}")
        self.where = where
        self.byte_size = byte_size


class DeviceError(SyncedMemoryError, RuntimeError):
    """A copy, a fill, a wait or an allocation failed, not for lack of room; the cause is chained."""

    def __init__(self, operation: str, where: str, cause: BaseException) -> None:
        super().__init__(f"{operation} failed on {where}: {said(cause)}")
        self.operation = operation
        self.where = where


class ReleaseError(DeviceError):
    """Memory could not be freed.

    From ``set_cpu_data`` and ``set_gpu_data``, and from ``close()`` when nothing was freed yet: nothing has
    changed.  From ``close()`` after the host side was freed: the memory is closed, the device side is still ours,
    and another ``close()`` tries to free that side again.
    """


class InvalidPointerError(SyncedMemoryError, ValueError):
    """A pointer that cannot be used in this way: foreign, already released, on the other side, or read-only."""

    def __init__(self, where: str, pointer: object, reason: str) -> None:
        super().__init__(f"{where} cannot use {shown(pointer)}: {reason}")
        self.where = where
        self.pointer = pointer


class MemoryCorruptionError(SyncedMemoryError, RuntimeError):
    """Somebody wrote to memory that was not theirs: around a block, or into a released block."""

    def __init__(self, where: str, byte_size: int, reason: str) -> None:
        super().__init__(f"{where}: {reason} a block of {byte_size} bytes")
        self.where = where
        self.byte_size = byte_size


class NoScopeError(SyncedMemoryError, IndexError):
    """A call to leave a scope of statistics when no scope was entered."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call}: there is no scope to leave")
        self.call = call


class NoCapsuleError(SyncedMemoryError, BufferError):
    """What DLPack asks for is not there: a side on another device, or a stream of the host.

    What NumPy or the library of a device cannot export, they refuse themselves, with a ``BufferError``.
    """

    def __init__(self, argument: str, value: object, reason: str) -> None:
        super().__init__(reason)
        self.argument = argument
        self.value = value


class NotCopyableError(SyncedMemoryError, TypeError):
    """An attempt to copy or pickle an object that owns memory or queued work, or that records allocations.

    The copy and the original would own the same thing.
    """

    def __init__(self, kind: str, advice: str, why: str = "owns memory") -> None:
        super().__init__(f"{_with_article(kind)} {why} and cannot be copied or pickled; {advice}")
        self.kind = kind


class NoArithmeticError(SyncedMemoryError, TypeError):
    """Arithmetic on elements of a type that it does not support: integers (Caffe's ``NOT_IMPLEMENTED``), or a gap."""

    def __init__(self, call: str, dtype: object, types: tuple[str, ...]) -> None:
        super().__init__(f"{call} is not for elements of type {dtype}; it is for {', '.join(types)}")
        self.call = call
        self.dtype = dtype


class FileFormatError(SyncedMemoryError, ValueError):
    """A file or a message with wrong contents: cut short, of another format, or inconsistent.

    It is also raised for a file that would be so if it were written.  ``source`` is the path, or the name of the
    message.  ``position`` is the byte of the mistake, if there is such a byte.
    """

    def __init__(self, source: str, reason: str, position: int | None = None) -> None:
        super().__init__(f"{source}{'' if position is None else f', byte {position}'}: {reason}")
        self.source = source
        self.reason = reason
        self.position = position


class FileAccessError(FileFormatError, OSError):
    """A file that the system does not let us read or write: missing, a directory, not permitted, a full disk."""

    def __init__(self, source: str, reason: str, number: int | None = None) -> None:
        super().__init__(source, reason)
        self.errno = number  # as in OSError, for code that catches OSError


def listed(names: Iterable[object]) -> str:
    """Names in an error, in quotes where one has blanks or commas itself."""
    return ", ".join(repr(name) if re.search(r"[\s,;]", name) else name for name in map(str, names)) or "none"


def shown(value: object) -> str:
    """A value as an error shows it: its repr, shortened, because arrays print over many lines.

    If the repr fails, the type of the value.
    """
    try:
        text = _text(value)
    except Exception:  # noqa: BLE001 -- an error must not fail because a value has no repr
        text = f"an object of type {type(value).__name__}"
    text = text if text.strip() else f"{_with_article(type(value).__name__)} that prints as nothing"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _text(value: object) -> str:
    anything: Any = value
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None and not isinstance(value, type):
        return f"{type(value).__name__} of shape {shape} and type {dtype}"
    # Cut before the repr: the repr of a gigabyte takes a minute and four more gigabytes.
    return repr(anything[:_LONGEST] if isinstance(value, _SPELT_OUT) else value)


def _with_article(name: str) -> str:
    """A name after "a" or "an", chosen by its first letter."""
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def said(error: BaseException) -> str:
    """An error as another error shows it: its type, and its message if it has one."""
    name, text = type(error).__name__, words(error)
    return name if text == name else f"{name}: {text}"


def words(error: BaseException) -> str:
    """The message of an error, which may repeat all of a file, shortened; its type, if the message cannot be made."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 -- as above
        return type(error).__name__
    return text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 3] + "..."
