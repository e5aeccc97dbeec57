"""What every allocator checks: sizes, directions, pointers, blocks, and buffers of others."""

from __future__ import annotations

import ctypes
import gc
import mmap
import weakref
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from subjects import devices

from syncedmem.model import InvalidArgumentError, InvalidPointerError
from syncedmem.runtime import CPUDeviceAllocator, MemcpyKind, SimulatedDeviceAllocator
from syncedmem.runtime.allocators.base import check_kind
from syncedmem.runtime.allocators.pointers import (
    End,
    as_integer,
    check_byte_size,
    check_host,
)
from syncedmem.runtime.devices import host_buffers
from syncedmem.runtime.devices.host_buffers import adopt_host

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_directions_know_their_ends() -> None:
    """A name says from where to where, and its number is that of cudaMemcpyKind."""
    for kind in MemcpyKind:
        source, dest = kind.name.split("2")
        assert (source == "CUDA", dest == "CUDA") == (kind.from_device, kind.to_device)
        assert kind is check_kind(int(kind))
    assert list(range(4)) == [int(kind) for kind in MemcpyKind]


# --- pointers

SOURCE = End("src", on_device=False, written=False)


@pytest.mark.parametrize("allocator", [CPUDeviceAllocator(), *devices()], ids=lambda place: str(place.device_type.name))
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
        check_host(CPUDeviceAllocator(), other, SOURCE)


@pytest.mark.parametrize("device", devices(), ids=lambda place: str(place.device_type.name))
def test_an_array_of_a_device_that_is_no_row_of_bytes_is_no_pointer(device: Any) -> None:
    """A driver would take its address and copy other bytes; the simulated device has no other arrays."""
    near = device.allocate(16)
    near.set(np.full(16, 7, np.uint8))
    wrong = [near.view(np.float32), *([] if isinstance(device, SimulatedDeviceAllocator) else [near[::2]])]
    for bad in wrong:
        with pytest.raises(InvalidPointerError, match="src is not a contiguous row of bytes"):
            device.memcpy(bad, near, 4, MemcpyKind.CUDA2CUDA)
        with pytest.raises(InvalidPointerError, match="ptr is not a contiguous row of bytes"):
            device.memset_zero(bad, 4)
    assert [7] * 16 == near.get().tolist()
    device.release(near)


# --- buffers of others


class Pair(ctypes.Structure):
    """A C structure, as a buffer of somebody else."""

    _fields_ = (("first", ctypes.c_int), ("second", ctypes.c_double))


GOOD: dict[str, Any] = {
    "no dimension": np.zeros((), np.complex128),
    "two dimensions": np.zeros((2, 4), np.int16),
    "structured": np.zeros(2, [("Other", "i4"), ("f", "f4")]),
    "dates": np.zeros(2, "M8[s]"),
    "one element backwards": np.zeros(1, "V16")[::-1],
    "matrix": np.zeros((2, 1), np.float64).view(np.matrix),
    "memoryview of two dimensions": memoryview(bytearray(16)).cast("B", [4, 4]),
    "field with an O": memoryview(cast("Any", np.zeros(16, [("Other", "i1")]))),
    "ctypes structure": Pair(),
    "mmap": mmap.mmap(-1, mmap.PAGESIZE),
}


@pytest.mark.parametrize("name", GOOD)
def test_writeable_buffers_are_adopted_without_a_copy(name: str) -> None:
    """The pointer shows the bytes of the buffer, from its first byte, and only as many as requested."""
    buffer: Any = GOOD[name]
    ptr = adopt_host(buffer, 15)
    ptr[:] = np.arange(1, 16, dtype=np.uint8)
    # NumPy's own way for its arrays, because np.asarray splits structures.
    seen = buffer.tobytes() if hasattr(buffer, "dtype") else memoryview(buffer).tobytes()

    assert (np.ndarray, (15,), np.dtype(np.uint8)) == (type(ptr), ptr.shape, ptr.dtype)
    assert bytes([*range(1, 16), 0]) == seen[:16]


BAD: dict[str, tuple[Any, str]] = {
    "list": ([0] * 16, "no buffer interface"),
    "device memory": (SimulatedDeviceAllocator().empty(16), "no buffer interface"),
    "elements of no size": (np.zeros(16, "V0"), "has 0 bytes, and 16 are needed"),
    "masked": (np.ma.masked_array(np.zeros(16, np.uint8), mask=[True] * 16), "whose mask would be lost"),
    "masked, nothing": (np.ma.masked_array(np.zeros(16, np.uint8)), "whose mask would be lost"),
    "broadcast": (np.broadcast_to(np.zeros(1, np.uint8), 16), "not contiguous"),
    "NumPy scalar": (np.complex128(0), "read-only"),
    "read-only mmap": (mmap.mmap(-1, mmap.PAGESIZE, access=mmap.ACCESS_READ), "read-only"),
    "objects": (np.zeros(16, object), "holds Python objects"),
    "objects in a structure": (np.zeros(16, [("f", object)]), "holds Python objects"),
    "strings of any length": (np.zeros(16, np.dtypes.StringDType()), "holds Python objects"),
    "objects in a memoryview": (memoryview(cast("Any", np.zeros(16, object))), "holds Python objects"),
    "objects of ctypes": ((ctypes.py_object * 16)(), "holds Python objects"),
}


@pytest.mark.parametrize("name", BAD)
def test_other_buffers_are_refused_with_the_reason(name: str) -> None:
    """The contract of a memory hands in the buffers of every day."""
    buffer, reason = BAD[name]
    with pytest.raises(ValueError, match=reason):
        adopt_host(buffer, 16)


def test_a_released_memoryview_is_refused() -> None:
    view = memoryview(bytearray(16))
    view.release()
    with pytest.raises(ValueError, match="released memoryview"):
        adopt_host(view, 16)


@pytest.mark.parametrize(
    ("format", "objects"), [("B", False), ("O", True), ("T{B:O:}", False), ("T{O:a:}", True), ("T{B:a:O:b:}", True)]
)
def test_a_format_says_whether_there_are_objects(format: str, objects: bool) -> None:  # noqa: A002 -- as memoryview has it
    """An O in the name of a field does not mean an object."""
    view: Any = SimpleNamespace(obj=None, format=format)

    assert objects is host_buffers._holds_objects(view)  # pyright: ignore[reportPrivateUsage] -- no exporter here has these


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


def test_a_stream_of_another_device_is_refused() -> None:
    """So is a queue of another context of OpenCL; the contract hands in what is no stream at all."""
    pairs: list[Any] = [(SimulatedDeviceAllocator(0), SimulatedDeviceAllocator(1))]
    pairs += [(device, type(device)()) for device in devices() if device.name.startswith("opencl")]
    for device, other in pairs:
        stream, block = other.stream(), device.empty(4)
        uses: list[Callable[[], object]] = [
            partial(device.record, stream),
            partial(device.check_stream, stream),
            partial(device.memset_zero, block, 4, stream),
            partial(device.memcpy, np.zeros(4, np.uint8), block, 4, MemcpyKind.CPU2CUDA, stream),
        ]
        for use in uses:
            with pytest.raises(InvalidArgumentError, match="stream must be a"):
                use()
