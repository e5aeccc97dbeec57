"""Arrays of the simulated device: rows of bytes, their slices and their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from simulated_blocks import SIZE, UP, allocated, row

from syncedmem.model import InvalidArgumentError, InvalidPointerError, InvalidShapeError

if TYPE_CHECKING:
    from syncedmem.runtime import SimulatedDeviceAllocator


# --- rows of bytes


def test_an_array_is_a_row_of_bytes_and_says_where(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device, 7)
    shown = f"<SimulatedArray 16 bytes at {block.ptr:#x} on device 0>"

    assert (SIZE, SIZE, (SIZE,), 1, np.dtype(np.uint8)) == (
        len(block),
        block.nbytes,
        block.shape,
        block.ndim,
        block.dtype,
    )
    assert (0, False, shown) == (block.ordinal, block.read_only, repr(block))
    assert repr(device.read_only(block)) == shown.replace(" on device 0", " on device 0, read-only")


def test_an_array_becomes_no_host_array_by_accident(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device)
    with pytest.raises(TypeError, match=r"memory of a simulated device is not host memory; use \.get\(\)"):
        np.asarray(block)
    with pytest.raises(TypeError, match="sliced, not indexed"):
        block[0]  # type: ignore[index] # on purpose


@pytest.mark.parametrize("step", [-1, 2])
def test_slices_are_contiguous(device: SimulatedDeviceAllocator, step: int) -> None:
    with pytest.raises(ValueError, match="slice it with step 1"):
        allocated(device)[::step]


def test_slices_are_those_of_a_list(device: SimulatedDeviceAllocator) -> None:
    """A slice shows the same bytes, and so does a slice of a slice."""
    block, plain = allocated(device), list(range(SIZE))
    block.set(np.array(plain, np.uint8))
    for key in (slice(None), slice(3, 9), slice(-4, None), slice(9, 3), slice(0, 99), slice(99, 120)):
        assert plain[key] == block[key].get().tolist()
        assert plain[2:][key] == block[2:][key].get().tolist()


def test_a_read_only_array_stays_so(device: SimulatedDeviceAllocator) -> None:
    """It holds for its slices and views too; it can be read."""
    frozen = device.read_only(allocated(device, 7))
    for array in (frozen, frozen[2:], frozen.view()):
        assert array.read_only
        with pytest.raises(ValueError, match="this view is read-only"):
            array.set(row(1, len(array)))
        with pytest.raises(InvalidPointerError, match="dest is read-only"):
            device.memcpy(row(1), array, 1, UP)
        with pytest.raises(InvalidPointerError, match="ptr is read-only"):
            device.memset_zero(array, 1)

    assert [7] * SIZE == frozen.get().tolist()


# What CuPy or PyOpenCL refuses: no array, another length, shape or type, or not contiguous.
UNSETTABLE: dict[str, tuple[Any, str]] = {
    "bytes": (bytes(SIZE), r"b'.*"),
    "None": (None, "None"),
    "too short": (row(0, SIZE - 1), r"ndarray of shape \(15,\) and type uint8"),
    "as many bytes": (np.zeros(SIZE // 4, np.float32), r"ndarray of shape \(4,\) and type float32"),
    "signed": (np.zeros(SIZE, np.int8), r"ndarray of shape \(16,\) and type int8"),
    "two dimensions": (row(0).reshape(4, 4), r"ndarray of shape \(4, 4\) and type uint8"),
    "every second": (row(0, 2 * SIZE)[::2], r"ndarray of shape \(16,\) and type uint8"),
}


@pytest.mark.parametrize("name", UNSETTABLE)
def test_set_takes_an_array_of_the_same_type_and_shape_alone(device: SimulatedDeviceAllocator, name: str) -> None:
    """CuPy and PyOpenCL together refuse as much; the error shows the argument, and nothing is written."""
    data, shown = UNSETTABLE[name]
    block = allocated(device, 7)
    expected = r"data must be a C-contiguous numpy\.ndarray of shape \(16,\) and type uint8, got "
    with pytest.raises(InvalidArgumentError, match=expected + shown):
        block.set(data)

    assert [7] * SIZE == block.get().tolist()


def test_set_writes_all_items_of_whatever_array_it_takes(device: SimulatedDeviceAllocator) -> None:
    block, empty, frozen = allocated(device), device.empty(0), row(5)
    frozen.flags.writeable = False
    block.set(np.ma.masked_array(row(9), mask=[True] * SIZE))
    masked = block.get().tolist()
    block.set(frozen)
    empty.set(row(0, 0))

    assert ([9] * SIZE, [5] * SIZE, 0) == (masked, block.get().tolist(), empty.size)


# --- shapes


def test_an_array_takes_another_shape(device: SimulatedDeviceAllocator) -> None:
    """The new array shows the same bytes, as CuPy's and PyOpenCL's do."""
    row_of_24 = device.empty(24)
    numbers = row_of_24.view(np.float32)
    table = numbers.reshape(2, 3)
    table.set(np.arange(6, dtype=np.float32).reshape(2, 3))

    assert ((2, 3), 2, 6, 24, 2) == (table.shape, table.ndim, table.size, table.nbytes, len(table))
    assert [[0, 1, 2], [3, 4, 5]] == table.get().tolist()
    assert list(range(6)) == numbers.get().tolist()
    for same in (table.reshape((3, 2)), table.reshape(-1, 2), table.reshape([3, -1]), table.reshape(3, 2).view()):
        assert [[0, 1], [2, 3], [4, 5]] == same.get().tolist()
    assert ((3, 2), (1, 1)) == (
        table.reshape(3, 2).viewer()().shape,
        table.as_read_only().reshape(6)[:1].reshape(1, 1).shape,
    )
    assert (True, True) == (
        table.as_read_only().reshape(6).read_only,
        table.as_read_only().reshape(6).viewer()().read_only,
    )
    assert "<SimulatedArray 2 x 3 float32 at " in repr(table)
    assert table.shares(numbers)


def test_an_array_is_sliced_along_its_first_axis(device: SimulatedDeviceAllocator) -> None:
    table = device.empty(24).view(np.float32).reshape(3, 2)
    table.set(np.arange(6, dtype=np.float32).reshape(3, 2))
    table[1:2].set(np.full((1, 2), 9, np.float32))

    assert [[0, 1], [9, 9], [4, 5]] == table.get().tolist()
    assert ((2, 2), (0, 2), 4) == (table[1:].shape, table[3:].shape, table[1:].ptr - table.ptr - 4)


def test_an_array_without_axes_is_one_item(device: SimulatedDeviceAllocator) -> None:
    one: Any = device.empty(4).view(np.float32).reshape(())
    one.set(np.array(7, np.float32))

    assert ((), 1, 7, (1,)) == (one.shape, one.size, one.get(), one.reshape(-1).shape)
    assert "<SimulatedArray 1 float32 at " in repr(one)
    for use in (lambda: len(one), lambda: one[:1]):
        with pytest.raises(TypeError, match="an array without axes has no length"):
            use()


@pytest.mark.parametrize("shape", [(5,), (2, 2), (-1, -1), (-2, -3), (-1, 4), (0, -1), ((7,),)])
def test_a_shape_of_other_size_is_refused(device: SimulatedDeviceAllocator, shape: Any) -> None:
    with pytest.raises(InvalidShapeError, match="there are 6 items"):
        device.empty(6).reshape(*shape)
    with pytest.raises(InvalidArgumentError, match="shape must be integers, or a sequence of them"):
        device.empty(6).reshape("6")


def test_items_change_their_length_in_a_row_only(device: SimulatedDeviceAllocator) -> None:
    """On several axes it would not be clear which axis changes, and devices differ."""
    table: Any = device.empty(24).view(np.float32).reshape(2, 3)
    assert ((2, 3), np.int32) == (table.view(np.int32).shape, table.view(np.int32).dtype)
    with pytest.raises(InvalidArgumentError, match="dtype must be a type of numbers"):
        table.view(np.float64)
    with pytest.raises(InvalidArgumentError):
        table.set(np.zeros(6, np.float32))
    for array in (table, device.empty(4).reshape(2, 2)):
        with pytest.raises(InvalidPointerError, match="not a contiguous row of bytes"):
            device.memset_zero(array, 4)
    with pytest.raises(InvalidPointerError, match="not a contiguous, aligned row"):
        device.arithmetic().asum(table)

    assert (24,) == device.adopt(table, 24).shape
