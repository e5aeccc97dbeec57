"""The errors are one family. Each is also a built-in error, and has the offending values as attributes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

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

CASES: list[tuple[SyncedMemoryError, type[Exception], str, dict[str, object]]] = [
    (DeclarationError("caffe: no"), ValueError, "caffe: no", {}),
    (InvalidSizeError(-3, 9), ValueError, "size must be between 0 and 9 bytes, got -3", {"size": -3}),
    (
        InvalidArgumentError("stream", "s", "a stream or None"),
        TypeError,
        "stream must be a stream or None, got 's'",
        {"argument": "stream", "value": "s"},
    ),
    (
        InvalidValueError(2**40, "int32", "it is not between 0 and 9"),
        ValueError,
        "int32 cannot hold 1099511627776: it is not between 0 and 9",
        {"value": 2**40, "dtype": "int32", "reason": "it is not between 0 and 9"},
    ),
    (
        IllegalCallError("async_gpu_push", SyncedHead.SYNCED),
        RuntimeError,
        "async_gpu_push is not allowed in head SYNCED; it needs HEAD_AT_CPU",
        {"call": "async_gpu_push", "head": SyncedHead.SYNCED},
    ),
    (
        BufferMismatchError("set_cpu_data", b"xy", "too small"),
        ValueError,
        "set_cpu_data cannot adopt b'xy': too small",
        {"call": "set_cpu_data", "buffer": b"xy", "reason": "too small"},
    ),
    (
        ClosedMemoryError("cpu_data", 12),
        ValueError,
        "cpu_data: this memory of 12 bytes is closed",
        {"call": "cpu_data", "size": 12},
    ),
    (
        ClosedAllocatorError("allocate", "cpu:0"),
        ValueError,
        "allocate: this allocator of memory on cpu:0 is closed",
        {"call": "allocate", "where": "cpu:0"},
    ),
    (
        MemoryCorruptionError("cpu:0", 8, "somebody wrote into"),
        RuntimeError,
        "cpu:0: somebody wrote into a block of 8 bytes",
        {"where": "cpu:0", "byte_size": 8},
    ),
    (
        NoCapsuleError("stream", 3, "there are no streams on the host, and stream is 3"),
        BufferError,
        "there are no streams on the host, and stream is 3",
        {"argument": "stream", "value": 3},
    ),
    (
        StaleWriteError("cpu_data", "host", 5, TAKEN, ENDED),
        RuntimeError,
        (
            "cpu_data: byte 5 of the host side was written too late: mutable_cpu_data at a.py:3 gave the right to "
            "write there, and gpu_data at a.py:4 ended it. Call mutable_cpu_data() again before each write instead "
            "of keeping a view"
        ),
        {"call": "cpu_data", "side": "host", "position": 5, "taken": TAKEN, "ended": ENDED, "freed": False},
    ),
    (
        StaleWriteError("trim", "host", 5, TAKEN, ENDED, freed=True),
        RuntimeError,
        (
            "trim: byte 5 of host memory was written after its owner had given it back; mutable_cpu_data at "
            "a.py:3 returned the last view of it, and gpu_data at a.py:4 gave it back. Use no view after its owner is "
            "closed or gone, has grown, or has adopted other memory"
        ),
        {"call": "trim", "side": "host", "position": 5, "taken": TAKEN, "ended": ENDED, "freed": True},
    ),
    (
        StaleWriteError("close", "device", 0, ENDED, None),
        RuntimeError,
        (
            "close: byte 0 of the device side was written without the right to; the last view of it came from "
            "gpu_data at a.py:4. Call mutable_gpu_data() again before each write instead of keeping a view"
        ),
        {"call": "close", "side": "device", "position": 0, "taken": ENDED, "ended": None, "freed": False},
    ),
    (
        CopyRefusedError(Copy("up", 8, ENDED), "copies", 1, 0),
        RuntimeError,
        (
            "gpu_data at a.py:4 would copy 8 bytes up to the device; the number of copies would be 1, and this block "
            "allows 0"
        ),
        {"copy": Copy("up", 8, ENDED), "unit": "copies", "count": 1, "limit": 0, "last": None},
    ),
    (
        CopyRefusedError(Copy("down", 8, TAKEN, to_write=True), "copies", 3, 2, Copy("up", 8, ENDED)),
        RuntimeError,
        (
            "mutable_cpu_data at a.py:3 would copy 8 bytes down to the host; the number of copies would be 3, and "
            "this block allows 2. Before, gpu_data at a.py:4 copied 8 bytes up to the device. mutable_cpu_data() "
            "copies to keep what you do not overwrite; set_cpu_data() copies nothing"
        ),
        {
            "copy": Copy("down", 8, TAKEN, to_write=True),
            "unit": "copies",
            "count": 3,
            "limit": 2,
            "last": Copy("up", 8, ENDED),
        },
    ),
    (
        CopyRefusedError(Copy("allocation", 8, ENDED), "allocations", 1, 0),
        RuntimeError,
        "gpu_data at a.py:4 would allocate 8 bytes; the number of allocations would be 1, and this block allows 0",
        {"copy": Copy("allocation", 8, ENDED), "unit": "allocations", "count": 1, "limit": 0, "last": None},
    ),
    (NoScopeError("pop_counters"), IndexError, "pop_counters: there is no scope to leave", {"call": "pop_counters"}),
    (
        NotCopyableError("PoolAllocator", "share it"),
        TypeError,
        "a PoolAllocator owns memory and cannot be copied or pickled; share it",
        {"kind": "PoolAllocator"},
    ),
    (
        NotCopyableError("OpenCLDeviceAllocator", "share it"),
        TypeError,
        "an OpenCLDeviceAllocator owns memory and cannot be copied or pickled; share it",
        {"kind": "OpenCLDeviceAllocator"},
    ),
    (
        NotCopyableError("SimulatedStream", "share it", "owns queued work"),
        TypeError,
        "a SimulatedStream owns queued work and cannot be copied or pickled; share it",
        {"kind": "SimulatedStream"},
    ),
    (
        NoArithmeticError("axpy", "int32", ("float32", "float64")),
        TypeError,
        "axpy is not for elements of type int32; it is for float32, float64",
        {"call": "axpy", "dtype": "int32"},
    ),
    (
        MissingPackageError("a message", "protobuf", "proto"),
        ImportError,
        "a message needs the package protobuf: pip install protobuf",
        {"package": "protobuf", "extra": "proto"},
    ),
    (InvalidExportError("no such format"), ValueError, "no such format", {}),
    (
        InvalidShapeError((2, -1), "no"),
        ValueError,
        "the shape (2, -1) cannot be used: no",
        {"shape": (2, -1), "reason": "no"},
    ),
    (
        InvalidIndexError("axis", 5, "out of range"),
        IndexError,
        "axis 5: out of range",
        {"argument": "axis", "value": 5, "reason": "out of range"},
    ),
    (NoDeviceError("no such device"), RuntimeError, "no such device", {}),
    (
        ReentrantCallError("close"),
        RuntimeError,
        "close: this memory is in the middle of another call, made by the same thread",
        {"call": "close"},
    ),
    (
        WrongDeviceError("gpu_data", 1, 0),
        RuntimeError,
        "gpu_data: this memory lives on device 1, but device 0 is current",
        {"call": "gpu_data", "expected": 1, "current": 0},
    ),
    (
        AllocationError("device 0", 64),
        MemoryError,
        "cannot allocate 64 bytes on device 0",
        {"where": "device 0", "byte_size": 64},
    ),
    (
        AllocationError("device 0", 64, "it is full"),
        MemoryError,
        "cannot allocate 64 bytes on device 0: it is full",
        {"where": "device 0", "byte_size": 64},
    ),
    (
        DeviceError("copying", "device 0", OSError("gone")),
        RuntimeError,
        "copying failed on device 0: OSError: gone",
        {"operation": "copying", "where": "device 0"},
    ),
    (
        ReleaseError("freeing", "device 0", OSError("gone")),
        DeviceError,
        "freeing failed on device 0: OSError: gone",
        {"operation": "freeing", "where": "device 0"},
    ),
    (
        InvalidPointerError("device 0", 7, "it is foreign"),
        ValueError,
        "device 0 cannot use 7: it is foreign",
        {"where": "device 0", "pointer": 7},
    ),
    (
        FileFormatError("a.caffemodel", "it is cut short", 12),
        ValueError,
        "a.caffemodel, byte 12: it is cut short",
        {"source": "a.caffemodel", "reason": "it is cut short", "position": 12},
    ),
    (
        FileFormatError("BlobProto", "no"),
        ValueError,
        "BlobProto: no",
        {"source": "BlobProto", "reason": "no", "position": None},
    ),
    (
        FileAccessError("a.npy", "Is a directory", 21),
        OSError,
        "a.npy: Is a directory",
        {"source": "a.npy", "reason": "Is a directory", "position": None},
    ),
]

SHOWING: list[Callable[[object], Exception]] = [
    lambda value: InvalidArgumentError("data", value, "bytes"),
    lambda value: BufferMismatchError("set_cpu_data", value, "no"),
    lambda value: InvalidPointerError("host", value, "no"),
]


@pytest.mark.parametrize(("error", "builtin", "message", "attributes"), CASES)
def test_an_error_says_what_was_wrong(
    error: SyncedMemoryError, builtin: type[Exception], message: str, attributes: dict[str, object]
) -> None:
    """It belongs to the family and to a built-in class. It shows its values, which are its only attributes."""
    assert isinstance(error, builtin)
    assert message == str(error)
    assert attributes == vars(error)


def test_every_error_is_tried_above_and_can_be_imported_from_the_model() -> None:
    """The family is what the module lists, and the model exports all of it."""
    family = {getattr(errors, name) for name in errors.__all__}
    assert {SyncedMemoryError, *(type(error) for error, *_ in CASES)} == family
    assert {error.__name__ for error in family} <= set(syncedmem.model.__all__)
    assert not [error for error in family if not issubclass(error, SyncedMemoryError)]


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
