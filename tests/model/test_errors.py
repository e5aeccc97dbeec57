"""The errors are one family. Each is also a built-in error, and has the offending values as attributes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import syncedmem.model
from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    ClosedAllocatorError,
    ClosedMemoryError,
    CopyRefusedError,
    DeclarationError,
    DeviceError,
    FileAccessError,
    FileFormatError,
    IllegalCallError,
    InvalidArgumentError,
    InvalidExportError,
    InvalidIndexError,
    InvalidPointerError,
    InvalidShapeError,
    InvalidSizeError,
    InvalidValueError,
    MemoryCorruptionError,
    MissingPackageError,
    NoArithmeticError,
    NoCapsuleError,
    NoDeviceError,
    NoScopeError,
    NotCopyableError,
    ReentrantCallError,
    ReleaseError,
    StaleWriteError,
    SyncedHead,
    SyncedMemoryError,
    WrongDeviceError,
    errors,
)
from syncedmem.model.lines import Copy, Line

if TYPE_CHECKING:
    from collections.abc import Callable

TAKEN, ENDED = Line("mutable_cpu_data", "a.py", 3), Line("gpu_data", "a.py", 4)

STALE, REFUSED = "call side position taken ended freed", "copy unit count limit last"
WRITTEN: dict[str, Any] = {"call": "close", "side": "host", "position": 5, "taken": TAKEN, "ended": ENDED}
WRITTEN["freed"] = False
COPIED: dict[str, Any] = {"copy": Copy("up", 8, ENDED), "unit": "copies", "count": 3, "limit": 2, "last": None}
TO_WRITE = Copy("down", 8, TAKEN, to_write=True)
PACKAGE = {"what": "a message", "package": "protobuf", "extra": "proto"}
FAILED: dict[str, Any] = {"operation": "copying", "where": "device 0", "cause": OSError("gone")}
CASES: list[tuple[type[SyncedMemoryError], type[Exception], str, dict[str, Any], str]] = [
    (InvalidSizeError, ValueError, "size", {"size": -3, "limit": 9}, ""),
    (InvalidArgumentError, TypeError, "argument value", {"argument": "stream", "value": "s", "expected": "a port"}, ""),
    (InvalidValueError, ValueError, "value dtype reason", {"value": 2**40, "dtype": "int32", "reason": "large"}, ""),
    (IllegalCallError, RuntimeError, "call head", {"call": "push", "head": SyncedHead.SYNCED}, "HEAD_AT_CPU"),
    (BufferMismatchError, ValueError, "call buffer reason", {"call": "set", "buffer": b"xy", "reason": "small"}, ""),
    (ClosedMemoryError, ValueError, "call size", {"call": "cpu_data", "size": 12}, ""),
    (ClosedAllocatorError, ValueError, "call where", {"call": "allocate", "where": "cpu:0"}, ""),
    (MemoryCorruptionError, RuntimeError, "where byte_size", {"where": "cpu:0", "byte_size": 8, "reason": "wrote"}, ""),
    (NoCapsuleError, BufferError, "argument value", {"argument": "stream", "value": 3, "reason": "stream is 3"}, ""),
    (StaleWriteError, RuntimeError, STALE, WRITTEN, "mutable_cpu_data() again"),
    (StaleWriteError, RuntimeError, STALE, WRITTEN | {"side": "device", "ended": None}, "mutable_gpu_data() again"),
    (StaleWriteError, RuntimeError, STALE, WRITTEN | {"freed": True}, "given it back"),
    (CopyRefusedError, RuntimeError, REFUSED, COPIED, "up to the device"),
    (CopyRefusedError, RuntimeError, REFUSED, COPIED | {"copy": Copy("allocation", 7, ENDED)}, "allocate"),
    (CopyRefusedError, RuntimeError, REFUSED, COPIED | {"copy": TO_WRITE, "last": COPIED["copy"]}, "set_cpu_data()"),
    (NoScopeError, IndexError, "call", {"call": "pop_counters"}, ""),
    (NotCopyableError, TypeError, "kind", {"kind": "PoolAllocator", "advice": "share it", "why": "owns work"}, ""),
    (NoArithmeticError, TypeError, "call dtype", {"call": "axpy", "dtype": "int32", "types": ("float32",)}, "float32"),
    (MissingPackageError, ImportError, "package extra", PACKAGE, "pip install protobuf"),
    (InvalidShapeError, ValueError, "shape reason", {"shape": (2, -1), "reason": "no"}, ""),
    (InvalidIndexError, IndexError, "argument value reason", {"argument": "axis", "value": 5, "reason": "far"}, ""),
    (ReentrantCallError, RuntimeError, "call", {"call": "close"}, ""),
    (WrongDeviceError, RuntimeError, "call expected current", {"call": "gpu_data", "expected": 1, "current": 0}, ""),
    (AllocationError, MemoryError, "where byte_size", {"where": "device 0", "byte_size": 64, "detail": "full"}, ""),
    (DeviceError, RuntimeError, "operation where", FAILED, ""),
    (ReleaseError, DeviceError, "operation where", FAILED, ""),
    (InvalidPointerError, ValueError, "where pointer", {"where": "device 0", "pointer": 7, "reason": "foreign"}, ""),
    (
        FileFormatError,
        ValueError,
        "source reason position",
        {"source": "a", "reason": "cut", "position": 12},
        "byte 12",
    ),
    (FileFormatError, ValueError, "source reason position", {"source": "a", "reason": "no", "position": None}, ""),
]
"""Each class, the built-in one, the attributes, what an error is made of, and what it has to say besides."""
PLAIN = {DeclarationError: ValueError, InvalidExportError: ValueError, NoDeviceError: RuntimeError}
"""Errors whose only argument is their message."""

SHOWING: list[Callable[[object], Exception]] = [
    lambda value: InvalidArgumentError("data", value, "bytes"),
    lambda value: BufferMismatchError("set_cpu_data", value, "no"),
    lambda value: InvalidPointerError("host", value, "no"),
]


def words_of(value: object) -> list[str]:
    """What the message has to show of a value."""
    if isinstance(value, Copy):
        return [str(value.line), str(value.byte_size)]
    if isinstance(value, OSError):
        return ["OSError", str(value)]
    return [] if value is None or isinstance(value, bool | tuple) else [getattr(value, "name", str(value))]


@pytest.mark.parametrize(("kind", "builtin", "kept", "given", "also"), CASES)
def test_an_error_is_a_builtin_one_and_has_and_shows_its_values(
    kind: Any, builtin: type[Exception], kept: str, given: dict[str, Any], also: str
) -> None:
    error = kind(**given)
    assert isinstance(error, SyncedMemoryError)
    assert isinstance(error, builtin)
    assert {name: given[name] for name in kept.split()} == vars(error)
    shown = [word for name, value in given.items() if name != "extra" for word in words_of(value)]
    assert [] == [word for word in (*shown, also) if word not in str(error)]


def test_every_error_is_tried_above_and_can_be_imported_from_the_model() -> None:
    """The family is what the module lists, and the model exports all of it."""
    family = {getattr(errors, name) for name in errors.__all__}
    assert {SyncedMemoryError, FileAccessError, *PLAIN, *(kind for kind, *_ in CASES)} == family
    assert {error.__name__ for error in family} <= set(syncedmem.model.__all__)
    for kind, builtin in PLAIN.items():
        assert (issubclass(kind, SyncedMemoryError), issubclass(kind, builtin), "no") == (True, True, str(kind("no")))


def test_an_error_of_a_file_is_one_of_the_system_and_of_a_format() -> None:
    error = FileAccessError("a.npy", "Is a directory", 21)
    assert isinstance(error, OSError)
    assert isinstance(error, FileFormatError)
    assert {"source": "a.npy", "reason": "Is a directory", "position": None} == vars(error)
    assert (21, True) == (error.errno, {"a.npy:", "Is", "directory"} < {*str(error).split()})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 78, "'" + "x" * 78 + "'"),
        ("x" * 79, "'" + "x" * 76 + "..."),
        (SimpleNamespace(shape=(2, 3), dtype="f4"), "SimpleNamespace of shape (2, 3) and type f4"),
        (SimpleNamespace(shape=(2, 3)), "namespace(shape=(2, 3))"),
        (SimpleNamespace(dtype="f4"), "namespace(dtype='f4')"),
    ],
)
@pytest.mark.parametrize("make", SHOWING)
def test_a_long_value_is_cut_and_an_array_is_described(
    make: Callable[[object], Exception], value: object, shown: str
) -> None:
    """A value is cut at 80 characters. An array is described because it would print many lines."""
    assert f" {shown}" in str(make(value)).partition(":")[0] + ":"
    assert len(shown) <= 80


def test_a_value_that_cannot_be_shown_is_named_by_its_type() -> None:
    """The error that reports the value must not fail itself."""

    class Shy:
        def __repr__(self) -> str:
            raise KeyError("no")

    assert "size must be a number, got an object of type Shy" == str(InvalidArgumentError("size", Shy(), "a number"))


def test_an_error_that_cannot_speak_is_named_by_its_type() -> None:
    """A device may raise any object, also one whose ``str()`` fails."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise KeyError("no")

    assert "copy failed on cpu:0: Mute" == str(DeviceError("copy", "cpu:0", Mute()))
    assert ("Mute", "no", "KeyError: 'no'") == (
        errors.words(Mute()),
        errors.words(OSError("no")),
        errors.said(KeyError("no")),
    )
