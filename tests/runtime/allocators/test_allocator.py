"""What every allocator checks: sizes, directions, pointers, blocks, and buffers of others."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import weakref
from typing import Any, cast

import numpy as np
import pytest
from subjects import devices

from syncedmem.model import InvalidArgumentError, InvalidPointerError, InvalidSizeError, NoDeviceError
from syncedmem.runtime import CPUDeviceAllocator, MemcpyKind, SimulatedDeviceAllocator
from syncedmem.runtime.allocators.base import check_kind
from syncedmem.runtime.allocators.pointers import (
    End,
    as_integer,
    check_byte_size,
    check_copy,
    check_host,
    check_ordinal,
)
from syncedmem.runtime.devices.host_buffers import adopt_host

# --- sizes and numbers


@pytest.mark.parametrize("value", [7, np.int8(7), np.uint64(7), np.array(7), MemcpyKind(3) + 4])
def test_integers_of_every_kind_become_plain_ones(value: Any) -> None:
    """Python's and NumPy's integers, and an array without dimensions, become the same int."""
    found = as_integer(value, "k", "an integer")

    assert (int, 7) == (type(found), found)


@pytest.mark.parametrize(
    "value", [True, np.bool_(1), 1.0, np.float32(1), "1", b"1", None, [1], np.array([1]), np.array([1, 2]), int]
)
def test_what_is_no_integer_is_refused_by_name(value: Any) -> None:
    """The error names the argument, keeps the value and is a TypeError."""
    with pytest.raises(InvalidArgumentError, match=r"^k must be an integer, got ") as caught:
        as_integer(value, "k", "an integer")

    assert isinstance(caught.value, TypeError)
    assert caught.value.value is value


@pytest.mark.parametrize("size", [0, 1, 8])
def test_sizes_up_to_the_limit_pass(size: int) -> None:
    assert size == check_byte_size(size, limit=8)


@pytest.mark.parametrize("size", [-1, 9, 2**70, np.int64(-1)])
def test_sizes_below_zero_or_above_the_limit_are_refused(size: int) -> None:
    with pytest.raises(InvalidSizeError, match=f"between 0 and 8 bytes, got {size}"):
        check_byte_size(size, limit=8)


def test_the_default_limit_is_the_address_space() -> None:
    assert check_byte_size(2**63 - 1) == 2**63 - 1
    with pytest.raises(InvalidSizeError):
        check_byte_size(2**63)


def test_a_copy_is_no_longer_than_its_shorter_end() -> None:
    """A null pointer has no bytes."""
    short, long = np.zeros(3, np.uint8), np.zeros(5, np.uint8)

    assert check_copy(3, short, long) == 3
    assert check_copy(0, None, long) == 0
    with pytest.raises(InvalidSizeError, match="between 0 and 3 bytes, got 4"):
        check_copy(4, long, short)
    with pytest.raises(InvalidSizeError, match="between 0 and 0 bytes, got 1"):
        check_copy(1, long, None)


@pytest.mark.parametrize("ordinal", [-1, 2, 2**70])
def test_an_ordinal_that_does_not_exist_is_no_device(ordinal: int) -> None:
    with pytest.raises(NoDeviceError, match=f"there is no toy device {ordinal}; there are 2"):
        check_ordinal(ordinal, "toy", 2)


@pytest.mark.parametrize("ordinal", [True, 1.0, "1", None])
def test_an_ordinal_that_is_no_integer_is_refused(ordinal: Any) -> None:
    """It holds even for a value that equals an ordinal."""
    with pytest.raises(InvalidArgumentError, match="ordinal must be the number of a device"):
        check_ordinal(ordinal, "toy", 2)


def test_directions_know_their_ends() -> None:
    """A name says from where to where, and its number is that of cudaMemcpyKind."""
    for kind in MemcpyKind:
        source, dest = kind.name.split("2")
        assert (source == "CUDA", dest == "CUDA") == (kind.from_device, kind.to_device)
        assert kind is check_kind(int(kind))
    assert list(range(4)) == [int(kind) for kind in MemcpyKind]


@pytest.mark.parametrize("kind", [4, -1, "CPU2CPU", None])
def test_what_is_no_direction_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="kind must be a MemcpyKind"):
        check_kind(kind)


# --- pointers

SOURCE, TARGET = End("src", on_device=False, written=False), End("dest", on_device=False, written=True)


def test_rows_of_bytes_and_null_are_host_pointers() -> None:
    """A read-only row may be the source; it is returned unchanged."""
    row = np.zeros(4, np.uint8)
    frozen = row.view()
    frozen.flags.writeable = False

    assert check_host("here", row, TARGET) is row
    assert check_host("here", frozen, SOURCE) is frozen
    assert check_host("here", None, SOURCE) is None
    with pytest.raises(InvalidPointerError, match="dest is read-only"):
        check_host("here", frozen, TARGET)


@pytest.mark.parametrize("other", [bytearray(4), b"abcd", 0xDEAD, SimulatedDeviceAllocator().empty(4)])
def test_what_is_no_host_array_is_no_host_pointer(other: object) -> None:
    with pytest.raises(InvalidPointerError, match=r"here cannot use .*: src is not host memory"):
        check_host("here", other, SOURCE)


@pytest.mark.parametrize("allocator", [CPUDeviceAllocator(), *devices()], ids=lambda it: str(it.device_type.name))
def test_a_copy_in_the_wrong_direction_is_told_which_it_was_given(allocator: Any) -> None:
    """The error names the direction, whether it was given as a member, as a number or not at all; a fill has none."""
    host, ours = np.zeros(4, np.uint8), allocator.empty(4)
    here = isinstance(ours, np.ndarray)
    for kind in [MemcpyKind.CPU2CPU] if here else MemcpyKind:
        elsewhere, near, far = SimulatedDeviceAllocator().empty(4), "memory of this device", "host memory"
        good = [ours if kind.from_device else host, ours if kind.to_device else host]
        for name, ends, place in (
            ("src", [elsewhere, good[1]], near if kind.from_device else far),
            ("dest", [good[0], elsewhere], near if kind.to_device else far),
        ):
            reason = f": {name} is not {place}, as MemcpyKind.{kind.name} requires$"
            for given in (kind, int(kind)):
                with pytest.raises(InvalidPointerError, match=reason):
                    allocator.memcpy(*ends, 4, given)
    with pytest.raises(InvalidPointerError, match=r": ptr is not .* (memory|device)$"):
        allocator.memset_zero(SimulatedDeviceAllocator().empty(4), 4)


@pytest.mark.parametrize(
    "other",
    [
        np.zeros(8, np.uint8)[::2],
        np.zeros(8, np.uint8)[::-1],
        np.zeros((2, 4), np.uint8),
        np.zeros((), np.uint8),
        np.zeros(4, np.int8),
        np.zeros(4, np.float64),
    ],
    ids=["every second", "backwards", "two dimensions", "no dimension", "signed", "floats"],
)
def test_arrays_that_are_no_row_of_bytes_are_refused(other: Any) -> None:
    """A driver would take their address and copy other bytes."""
    with pytest.raises(InvalidPointerError, match="src is not a contiguous row of bytes"):
        check_host("here", other, SOURCE)


# --- blocks


# --- buffers of others


class Pair(ctypes.Structure):
    """A C structure, as a buffer of somebody else."""

    _fields_ = (("first", ctypes.c_int), ("second", ctypes.c_double))


GOOD: dict[str, Any] = {
    "bytes array": np.zeros(16, np.uint8),
    "no dimension": np.zeros((), np.complex128),
    "two dimensions": np.zeros((2, 4), np.int16),
    "structured": np.zeros(2, [("Other", "i4"), ("f", "f4")]),
    "dates": np.zeros(2, "M8[s]"),
    "one element backwards": np.zeros(1, "V16")[::-1],
    "matrix": np.zeros((2, 1), np.float64).view(np.matrix),
    "masked": np.ma.masked_array(np.zeros(16, np.uint8), mask=[True] * 16),
    "bytearray": bytearray(16),
    "array.array": array.array("d", [0.0, 0.0]),
    "memoryview": memoryview(bytearray(20))[4:],
    "cast memoryview": memoryview(bytearray(16)).cast("d"),
    "memoryview of two dimensions": memoryview(bytearray(16)).cast("B", [4, 4]),
    "field with an O": memoryview(cast("Any", np.zeros(16, [("Other", "i1")]))),
    "ctypes array": (ctypes.c_int * 4)(),
    "ctypes structure": Pair(),
    "mmap": mmap.mmap(-1, mmap.PAGESIZE),
}


@pytest.mark.parametrize("name", GOOD)
def test_writeable_buffers_are_adopted_without_a_copy(name: str) -> None:
    """The pointer shows the bytes of the buffer, from its first byte, and only as many as requested."""
    buffer: Any = GOOD[name]
    ptr = adopt_host(buffer, 15)
    ptr[:] = np.arange(1, 16, dtype=np.uint8)
    # np.asarray, because a masked array hides its bytes; not of all, because it splits structures.
    seen = np.asarray(buffer).tobytes() if hasattr(buffer, "dtype") else memoryview(buffer).tobytes()

    assert (np.ndarray, (15,), np.dtype(np.uint8)) == (type(ptr), ptr.shape, ptr.dtype)
    assert bytes([*range(1, 16), 0]) == seen[:16]


class ObjectOrNumber(ctypes.Union):
    """Its format does not mention the Python object."""

    _fields_ = (("number", ctypes.c_uint64), ("object", ctypes.py_object), ("room", ctypes.c_char * 16))


class PackedObjects(ObjectOrNumber):
    """A structure that contains a union with a Python object."""

    _pack_ = 1


READ_ONLY = np.zeros(16, np.uint8)
READ_ONLY.flags.writeable = False

BAD: dict[str, tuple[Any, str]] = {
    "nothing": (None, "no buffer interface"),
    "number": (7, "no buffer interface"),
    "text": ("sixteen letters.", "no buffer interface"),
    "list": ([0] * 16, "no buffer interface"),
    "device memory": (SimulatedDeviceAllocator().empty(16), "no buffer interface"),
    "too small": (np.zeros(15, np.uint8), "has 15 bytes, and 16 are needed"),
    "too small bytes": (bytearray(15), "has 15 bytes, and 16 are needed"),
    "no bytes": (bytearray(), "has 0 bytes, and 16 are needed"),
    "elements of no size": (np.zeros(16, "V0"), "has 0 bytes, and 16 are needed"),
    "Fortran order": (np.zeros((4, 4), np.uint8, order="F"), "not contiguous"),
    "backwards": (np.zeros(16, np.uint8)[::-1], "not contiguous"),
    "every second": (np.zeros(32, np.uint8)[::2], "not contiguous"),
    "broadcast": (np.broadcast_to(np.zeros(1, np.uint8), 16), "not contiguous"),
    "every second of a memoryview": (memoryview(bytearray(32))[::2], "not contiguous"),
    "read-only": (READ_ONLY, "read-only"),
    "bytes": (bytes(16), "read-only"),
    "NumPy scalar": (np.complex128(0), "read-only"),
    "read-only memoryview": (memoryview(bytearray(16)).toreadonly(), "read-only"),
    "read-only mmap": (mmap.mmap(-1, mmap.PAGESIZE, access=mmap.ACCESS_READ), "read-only"),
    "objects": (np.zeros(16, object), "holds Python objects"),
    "objects in a structure": (np.zeros(16, [("f", object)]), "holds Python objects"),
    "strings of any length": (np.zeros(16, np.dtypes.StringDType()), "holds Python objects"),
    "objects in a memoryview": (memoryview(cast("Any", np.zeros(16, object))), "holds Python objects"),
    "objects of ctypes": ((ctypes.py_object * 16)(), "holds Python objects"),
    "objects in a union of ctypes": (ObjectOrNumber(), "holds Python objects"),
    "objects in packed structures of ctypes": ((PackedObjects * 3)(), "holds Python objects"),
}


@pytest.mark.parametrize("name", BAD)
def test_other_buffers_are_refused_with_the_reason(name: str) -> None:
    buffer, reason = BAD[name]
    with pytest.raises(ValueError, match=reason):
        adopt_host(buffer, 16)


def test_a_released_memoryview_is_refused() -> None:
    view = memoryview(bytearray(16))
    view.release()
    with pytest.raises(ValueError, match="released memoryview"):
        adopt_host(view, 16)


@pytest.mark.parametrize("size", [-1, 2**63])
def test_no_impossible_number_of_bytes_is_adopted(size: int) -> None:
    """A negative size would be counted from the end."""
    with pytest.raises(InvalidSizeError):
        adopt_host(bytearray(16), size)


@pytest.mark.parametrize("buffer", [bytearray(), bytearray(4), np.zeros((3, 0)), np.zeros(4)])
def test_zero_bytes_can_be_adopted_from_anything_writeable(buffer: Any) -> None:
    assert adopt_host(buffer, 0).shape == (0,)


def test_an_adopted_bytearray_cannot_be_resized_and_is_kept_alive() -> None:
    """If it grew, its bytes would move, and the pointer would be wrong."""

    class Watched(bytearray):
        """One that can be watched."""

    buffer = Watched(16)
    watch = weakref.ref(buffer)
    ptr = adopt_host(buffer, 16)
    with pytest.raises(BufferError):
        buffer.append(0)
    del buffer
    gc.collect()

    assert watch() is not None
    del ptr
    gc.collect()
    assert watch() is None


class Indexed:
    """An object that says which integer it is."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __index__(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_size_is_a_plain_integer_whatever_it_came_from() -> None:
    """If asking for the integer raises anything, there is one error."""
    assert [int, int] == [type(check_byte_size(Indexed(number))) for number in (3, np.int64(3).item())]
    with pytest.raises(InvalidArgumentError, match="byte_size must be an integer number of bytes") as caught:
        check_byte_size(Indexed(OSError("no idea")))
    assert isinstance(caught.value.__cause__, OSError)


# --- streams and events


def test_a_stream_of_another_device_is_not_recorded() -> None:
    with pytest.raises(InvalidArgumentError, match="stream must be a"):
        SimulatedDeviceAllocator(0).record(SimulatedDeviceAllocator(1).stream())
