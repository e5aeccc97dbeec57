"""Arrays of the simulated device that share memory with others: views of another type, overlaps, adoption."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated_blocks import SIZE, allocated

from syncedmem.model import InvalidArgumentError, InvalidPointerError
from syncedmem.runtime import SimulatedDeviceAllocator, SimulatedDeviceError

# --- views of another type

FLOATS: np.dtype[Any] = np.dtype(np.float32)


def test_a_view_of_another_type_looks_at_the_same_bytes(device: SimulatedDeviceAllocator) -> None:
    """Its length counts items; `get`, `set`, views and slices have its type."""
    block, numbers = allocated(device, 0), np.array([1.5, 2, -3, 4], np.float32)
    floats = block.view(np.float32)
    floats.set(numbers)
    shown = f"<SimulatedArray 4 float32 at {block.ptr:#x} on device 0>"

    assert (4, 4, SIZE, (4,), FLOATS) == (len(floats), floats.size, floats.nbytes, floats.shape, floats.dtype)
    assert (block.ptr, shown) == (floats.ptr, repr(floats))
    for same in (floats, floats.view(), floats.viewer()(), floats[:], block.view("f4"), floats.view("u1").view("f4")):
        assert (FLOATS, numbers.tolist()) == (same.get().dtype, same.get().tolist())
    assert numbers.tobytes() == block.get().tobytes()
    assert (block.ptr + 4, [2.0, -3.0]) == (floats[1:3].ptr, floats[1:3].get().tolist())
    floats[3:].set(np.array([8], np.float32))
    assert [1.5, 2, -3, 8] == floats.get().tolist()
    assert (np.dtype(np.uint8), SIZE) == (floats.view(np.uint8).dtype, floats.view(np.uint8).size)


@pytest.mark.parametrize(
    "dtype", [np.float64, "f4", "object", "V1", "S2", "U1", "datetime64[s]", "nonsense", 7, b"", "f4,"]
)
def test_bytes_are_viewed_as_whole_numbers_of_numbers(device: SimulatedDeviceAllocator, dtype: Any) -> None:
    """A size that is not a whole number of items is refused, and so is a type that is not a type of numbers."""
    expected = "dtype must be a type of numbers, of which 15 bytes are a whole number, got "
    with pytest.raises(InvalidArgumentError, match=expected) as caught:
        allocated(device)[1:].view(dtype)

    assert caught.value.value is dtype
    assert 0 == device.empty(0).view(np.float64).size


def test_a_typed_view_is_watched_like_its_block(device: SimulatedDeviceAllocator) -> None:
    """It is read-only if the block is, belongs to its device, overlaps by bytes, and raises when the block is freed."""
    block, other = allocated(device, 7), allocated(device)
    floats = block.view(np.float32)
    frozen = device.read_only(block).view(np.float32)
    with pytest.raises(InvalidPointerError, match="this view is read-only"):
        frozen.set(np.zeros(4, np.float32))
    assert (True, FLOATS) == (device.read_only(floats).read_only, device.read_only(floats).dtype)
    assert device.overlaps(floats[2:], block[11:])
    assert not device.overlaps(floats[2:], block[:8])
    assert not device.overlaps(floats, other)
    device.release(block)
    for use in (floats.get, lambda: floats.set(np.zeros(4, np.float32))):
        with pytest.raises(SimulatedDeviceError, match="after it was freed"):
            use()
    device.check()


def test_a_typed_view_is_adopted_as_bytes(device: SimulatedDeviceAllocator) -> None:
    """The memory takes as many bytes as it needs."""
    floats = allocated(device, 7).view(np.float32)
    ptr = device.adopt(floats[1:], SIZE - 6)

    assert (floats.ptr + 4, SIZE - 6, np.dtype(np.uint8)) == (ptr.ptr, ptr.size, ptr.dtype)
    with pytest.raises(ValueError, match="has 12 bytes, and 13 are needed"):
        device.adopt(floats[1:], SIZE - 3)


# --- adoption


def test_other_memory_is_not_adopted(device: SimulatedDeviceAllocator) -> None:
    cases: list[tuple[Any, int, str]] = [
        (SimulatedDeviceAllocator().empty(SIZE), SIZE, "memory of another device"),
        (device.read_only(device.empty(SIZE)), SIZE, "a read-only view"),
    ]
    for buffer, size, reason in cases:
        with pytest.raises(ValueError, match=reason):
            device.adopt(buffer, size)


def test_freed_memory_is_not_adopted(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device)
    device.release(block)

    with pytest.raises(ValueError, match="after it was freed"):
        device.adopt(block, SIZE)
