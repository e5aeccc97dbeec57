"""The simulated device: stricter than real ones, so that what is wrong there shows here."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.model import (
    AllocationError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidShapeError,
    InvalidSizeError,
    NoDeviceError,
)
from syncedmem.runtime import (
    CPUDeviceAllocator,
    MemcpyKind,
    SimulatedArray,
    SimulatedDeviceAllocator,
    SimulatedDeviceError,
    SimulatedStream,
    using_device,
)
from syncedmem.runtime.simulated_block import FREED, FRESH, Block, Quarantine
from syncedmem.runtime.simulation import ORDINALS, current_device

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 16
UP, DOWN, ACROSS = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA


def row(value: int, size: int = SIZE) -> Any:
    """Host bytes that are all the same."""
    return np.full(size, value, np.uint8)


def allocated(device: SimulatedDeviceAllocator, value: int | None = None, size: int = SIZE) -> SimulatedArray:
    """A block that is there, filled with a value if one is given."""
    block = device.allocate(size)
    assert block is not None
    if value is not None:
        block.set(row(value, size))
    return block


def storage(allocator: Any, block: Any) -> Any:
    """All the bytes behind a block, red zones too."""
    return allocator._live.behind(block)._storage


# --- memory


def test_fresh_memory_is_poisoned_and_never_at_an_address_used_before(device: SimulatedDeviceAllocator) -> None:
    seen: set[int] = set()
    for _ in range(4):
        block = allocated(device)
        assert [FRESH] * SIZE == block.get().tolist()
        assert block.ptr not in seen
        seen.add(block.ptr)
        device.release(block)


def test_zero_bytes_allocate_nothing_and_null_is_released_freely(device: SimulatedDeviceAllocator) -> None:
    device.release(None)

    assert device.allocate(0) is None
    assert (0, (0,)) == (device.live_blocks, device.empty(0).shape)


@pytest.mark.parametrize("use", ["get", "set", "source", "dest", "zero"])
def test_use_after_the_release_is_caught(device: SimulatedDeviceAllocator, use: str) -> None:
    """Through a view that was made before, as a late user has it."""
    block = allocated(device)
    view = block[2:]
    device.release(block)
    uses: dict[str, Callable[[], object]] = {
        "get": view.get,
        "set": lambda: view.set(row(1, len(view))),
        "source": lambda: device.memcpy(view, row(1), 4, DOWN),
        "dest": lambda: device.memcpy(row(1), view, 4, UP),
        "zero": lambda: device.memset_zero(view, 4),
    }
    with pytest.raises(SimulatedDeviceError, match=r"use of the block of 16 bytes at 0x7f.* after it was freed"):
        uses[use]()


def test_a_write_into_freed_memory_is_caught(device: SimulatedDeviceAllocator) -> None:
    """A write that goes around all the checks, as a kernel's would."""
    block = allocated(device, 7)
    raw = block.raw(SIZE)
    device.release(block)
    device.check()
    assert [FREED] * SIZE == raw.tolist()

    raw[3] = 7
    with pytest.raises(SimulatedDeviceError, match=r"something wrote into the block .* after it was freed"):
        device.check()


@pytest.mark.parametrize("where", [0, 63, 64 + SIZE, -1])
def test_a_write_into_a_red_zone_is_caught_and_the_block_stays(device: SimulatedDeviceAllocator, where: int) -> None:
    """On either side of a block, and each byte of it."""
    for allocator in (device, device.pinned_host()):
        block: Any = allocator.allocate(SIZE)
        behind = storage(allocator, block)
        good = int(behind[where])
        behind[where] ^= 1
        with pytest.raises(SimulatedDeviceError, match="something wrote into the red zone of the block"):
            allocator.release(block)
        assert allocator.live_blocks == 1

        behind[where] = good
        allocator.release(block)
        assert allocator.live_blocks == 0


def test_the_quarantine_lets_the_oldest_go_and_looks_at_it_first() -> None:
    """The block whose release found the stray write is not freed, and can be released again."""
    device = SimulatedDeviceAllocator(capacity=8 << 20)
    first, second, third = (allocated(device, size=2 << 20) for _ in range(3))
    raw = first.raw(1)
    device.release(first)
    device.release(second)
    raw[0] = 7
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        device.release(third)
    assert device.live_blocks == 1

    device.release(third)
    device.check()
    assert (0, True) == (device.live_blocks, device.allocate(8 << 20) is not None)


def test_the_last_block_is_kept_even_if_it_is_larger_than_the_quarantine() -> None:
    """A late write into it is noticed; what had to make room has been checked."""
    quarantine, small, large = Quarantine(), Block(0, 1 << 20), Block(0, 5 << 20)
    late, raw = small.bytes(0, 1), large.bytes(0, 1)
    quarantine.take(small)
    quarantine.take(large)
    quarantine.take(large)  # again, as after an interrupt
    assert raw[0] == FREED
    late[0] = 7
    quarantine.check()
    raw[0] = 7

    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        quarantine.check()


def test_a_block_of_more_than_64_mib_is_not_kept() -> None:
    """A quarantine must not hold on to memory that somebody may need."""
    quarantine, huge = Quarantine(), Block(0, (64 << 20) + 1)
    watch = weakref.ref(huge)
    quarantine.take(huge)
    quarantine.check()
    freed = not huge.live
    del huge

    assert (True, None) == (freed, watch())


def test_a_stray_write_around_live_memory_is_found(device: SimulatedDeviceAllocator) -> None:
    """Before it is freed: of the device, of an array that owns itself, and of page-locked memory."""
    kept: list[Any] = [allocated(device), device.empty(SIZE), device.pinned_host().allocate(SIZE)]
    device.check()
    for array in kept:
        raw: Any = array.raw(SIZE) if isinstance(array, SimulatedArray) else array
        beyond = np.lib.stride_tricks.as_strided(raw, (SIZE + 1,))
        guard, beyond[SIZE] = beyond[SIZE], 1
        with pytest.raises(SimulatedDeviceError, match="something wrote into the red zone"):
            device.check()
        beyond[SIZE] = guard
    device.check()


def test_the_range_of_a_block_is_checked() -> None:
    block = Block(0x1000, SIZE)
    for offset, size in ((0, SIZE + 1), (SIZE, 1), (-1, 1)):
        with pytest.raises(SimulatedDeviceError, match="lie outside the block of 16 bytes at 0x1000"):
            block.bytes(offset, size)


@pytest.mark.parametrize("size", [-1, 2**63])
def test_impossible_sizes_are_refused(device: SimulatedDeviceAllocator, size: int) -> None:
    for allocate in (device.allocate, device.empty, device.pinned_host().allocate):
        with pytest.raises(InvalidSizeError):
            allocate(size)


@pytest.mark.parametrize("size", [1 << 60, 2**63 - 1])
def test_no_room_is_one_error(device: SimulatedDeviceAllocator, size: int) -> None:
    for allocate in (device.allocate, device.empty, device.pinned_host().allocate):
        with pytest.raises(AllocationError, match=f"cannot allocate {size} bytes on "):
            allocate(size)

    assert (0, 0) == (device.live_blocks, device.pinned_host().live_blocks)


def test_capacity_counts_what_is_out() -> None:
    """A full device refuses, takes again what was given back, and never counts a refused call."""
    device = SimulatedDeviceAllocator(capacity=SIZE)
    block = allocated(device)
    for allocate in (device.allocate, device.empty):
        with pytest.raises(AllocationError, match="cannot allocate 1 bytes on simulated:0: 16 of 16 bytes are in use"):
            allocate(1)
    device.release(block)

    assert device.allocate(SIZE) is not None
    assert SimulatedDeviceAllocator(capacity=0).empty(0).get().shape == (0,)


def test_arrays_of_their_own_are_counted_until_the_last_view_goes() -> None:
    device = SimulatedDeviceAllocator(capacity=SIZE)
    view = device.empty(SIZE)[1:]
    gc.collect()
    with pytest.raises(AllocationError):
        device.empty(1)
    del view
    gc.collect()

    assert len(device.empty(SIZE)) == SIZE


def test_only_the_block_itself_is_released_and_only_once(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device)
    elsewhere = SimulatedDeviceAllocator()
    for foreign in (block[:], device.empty(SIZE), elsewhere.allocate(SIZE), row(0), 7):
        with pytest.raises(InvalidPointerError, match=r"simulated:0 cannot use .* not a live block"):
            device.release(foreign)  # type: ignore[arg-type] # foreign on purpose
    device.release(block)
    with pytest.raises(InvalidPointerError, match="not a live block"):
        device.release(block)


def test_pageable_and_pinned_memory_are_not_freed_as_each_other(device: SimulatedDeviceAllocator) -> None:
    """Both are NumPy arrays, and each allocator knows its own."""
    pageable, pinned = CPUDeviceAllocator(), device.pinned_host()
    ours, theirs = pageable.allocate(SIZE), pinned.allocate(SIZE)
    with pytest.raises(InvalidPointerError, match="pinned host memory of simulated:0 cannot use"):
        pinned.release(ours)
    with pytest.raises(InvalidPointerError, match="cpu:0 cannot use"):
        pageable.release(theirs)

    pageable.release(ours)
    pinned.release(theirs)
    pinned.release(None)
    assert (0, 0) == (pageable.live_blocks, pinned.live_blocks)


def test_pinned_memory_is_poisoned_when_fresh_and_kept_when_freed(device: SimulatedDeviceAllocator) -> None:
    """A late reader sees what was there, and a late writer is caught."""
    pinned = device.pinned_host()
    block: Any = pinned.allocate(SIZE)
    assert ([FRESH] * SIZE, None) == (block.tolist(), pinned.allocate(0))
    block[:] = 3
    pinned.release(block)
    assert [3] * SIZE == block.tolist()
    device.check()

    block[0] = 7
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        device.check()


def test_an_event_goes_on_failing_when_its_copy_failed(device: SimulatedDeviceAllocator) -> None:
    """And so does one that waits for it elsewhere; events of later copies on the same stream do not."""
    stream, source = device.stream(), np.zeros(SIZE, np.uint8)
    target = allocated(device)
    device.memcpy(source, target, SIZE, UP, stream)
    lost = device.record(stream)
    device.release(target)
    for _ in range(3):
        with pytest.raises(SimulatedDeviceError, match="after it was freed"):
            lost.synchronize()
    assert lost.done

    other = allocated(device)
    device.memcpy(source, other, SIZE, UP, stream)
    device.record(stream).synchronize()
    assert not other.get().any()
    device.order_after(lost)
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        other.get()


def test_freed_memory_is_not_adopted(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device)
    device.release(block)

    with pytest.raises(ValueError, match="after it was freed"):
        device.adopt(block, SIZE)


def test_the_size_of_an_array_is_not_for_its_users_to_say(device: SimulatedDeviceAllocator) -> None:
    array: Any = device.empty(SIZE)

    with pytest.raises(AttributeError, match="size"):
        array.size = 2 * SIZE


# --- arrays


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
    """Over the same bytes, also of a slice."""
    block, plain = allocated(device), list(range(SIZE))
    block.set(np.array(plain, np.uint8))
    for key in (slice(None), slice(3, 9), slice(-4, None), slice(9, 3), slice(0, 99), slice(99, 120)):
        assert plain[key] == block[key].get().tolist()
        assert plain[2:][key] == block[2:][key].get().tolist()


def test_get_copies_and_views_do_not(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device, 7)
    copied, view = block.get(), block.view()
    view.set(row(9))

    assert (7, 9) == (copied[0], block.get()[0])
    assert view is not block


def test_a_read_only_array_stays_so(device: SimulatedDeviceAllocator) -> None:
    """Its slices and views too; and it can be read."""
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
    "a bytearray": (bytearray(SIZE), r"bytearray\(.*"),
    "a list": ([0] * SIZE, r"\[0, .*"),
    "None": (None, "None"),
    "too short": (row(0, SIZE - 1), r"ndarray of shape \(15,\) and type uint8"),
    "too long": (row(0, SIZE + 1), r"ndarray of shape \(17,\) and type uint8"),
    "as many bytes": (np.zeros(SIZE // 4, np.float32), r"ndarray of shape \(4,\) and type float32"),
    "as many items": (np.zeros(SIZE), r"ndarray of shape \(16,\) and type float64"),
    "signed": (np.zeros(SIZE, np.int8), r"ndarray of shape \(16,\) and type int8"),
    "two dimensions": (row(0).reshape(4, 4), r"ndarray of shape \(4, 4\) and type uint8"),
    "every second": (row(0, 2 * SIZE)[::2], r"ndarray of shape \(16,\) and type uint8"),
    "backwards": (row(0)[::-1], r"ndarray of shape \(16,\) and type uint8"),
}


@pytest.mark.parametrize("name", UNSETTABLE)
def test_set_takes_an_array_of_the_same_type_and_shape_alone(device: SimulatedDeviceAllocator, name: str) -> None:
    """As real devices do between them; the error shows what was given, and nothing is written."""
    data, shown = UNSETTABLE[name]
    block = allocated(device, 7)
    expected = r"data must be a C-contiguous numpy\.ndarray of shape \(16,\) and type uint8, got "
    with pytest.raises(InvalidArgumentError, match=expected + shown):
        block.set(data)

    assert [7] * SIZE == block.get().tolist()


def test_set_writes_all_items_of_whatever_array_it_takes(device: SimulatedDeviceAllocator) -> None:
    """Also those that are masked, and those that may only be read."""
    block, empty, frozen = allocated(device), device.empty(0), row(5)
    frozen.flags.writeable = False
    block.set(np.ma.masked_array(row(9), mask=[True] * SIZE))
    masked = block.get().tolist()
    block.set(frozen)
    empty.set(row(0, 0))

    assert ([9] * SIZE, [5] * SIZE, 0) == (masked, block.get().tolist(), empty.size)


# --- views of another type

FLOATS: np.dtype[Any] = np.dtype(np.float32)


def test_a_view_of_another_type_looks_at_the_same_bytes(device: SimulatedDeviceAllocator) -> None:
    """Its lengths are in items, what it gets and takes has its type, and its own views and slices too."""
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


def test_a_typed_view_takes_no_bytes(device: SimulatedDeviceAllocator) -> None:
    """What the block itself would take is of another type and shape."""
    with pytest.raises(InvalidArgumentError, match=r"of shape \(4,\) and type float32, got ndarray of shape \(16,\)"):
        allocated(device).view(np.float32).set(row(1))


@pytest.mark.parametrize(
    "dtype", [np.float64, "f4", "object", "V1", "S2", "U1", "datetime64[s]", "nonsense", 7, b"", "f4,"]
)
def test_bytes_are_viewed_as_whole_numbers_of_numbers(device: SimulatedDeviceAllocator, dtype: Any) -> None:
    """A size that does not come out even is refused, and what is no type of numbers, or none at all."""
    expected = "dtype must be a type of numbers, of which 15 bytes are a whole number, got "
    with pytest.raises(InvalidArgumentError, match=expected) as caught:
        allocated(device)[1:].view(dtype)

    assert caught.value.value is dtype
    assert 0 == device.empty(0).view(np.float64).size


def test_a_typed_view_is_watched_like_its_block(device: SimulatedDeviceAllocator) -> None:
    """It is read-only where the block is, belongs to its device, overlaps by bytes, and finds out that it is late."""
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
    """As many of them as are needed, counted in bytes."""
    floats = allocated(device, 7).view(np.float32)
    ptr = device.adopt(floats[1:], SIZE - 6)

    assert (floats.ptr + 4, SIZE - 6, np.dtype(np.uint8)) == (ptr.ptr, ptr.size, ptr.dtype)
    with pytest.raises(ValueError, match="has 12 bytes, and 13 are needed"):
        device.adopt(floats[1:], SIZE - 3)


def test_a_typed_view_is_no_pointer(device: SimulatedDeviceAllocator) -> None:
    """A pointer is a row of bytes, here as on real devices."""
    block = allocated(device, 7)
    floats = block.view(np.float32)
    with pytest.raises(InvalidPointerError, match="src is not a contiguous row of bytes"):
        device.memcpy(floats, row(0), 4, DOWN)
    with pytest.raises(InvalidPointerError, match="ptr is not a contiguous row of bytes"):
        device.memset_zero(floats, 4)
    with pytest.raises(InvalidPointerError, match="not a live block"):
        device.release(floats)

    assert [7] * SIZE == block.get().tolist()


def test_overlaps_are_shared_bytes(device: SimulatedDeviceAllocator) -> None:
    """Nothing is shared with no bytes, another block, or the same address on another device."""
    block, other = allocated(device), allocated(device)

    assert device.overlaps(block[:8], block[7:])
    assert not device.overlaps(block[:8], block[8:])
    assert not device.overlaps(block[4:4], block)
    assert not device.overlaps(block, other)
    twin = allocated(SimulatedDeviceAllocator())
    assert (twin.ptr, False) == (allocated(SimulatedDeviceAllocator()).ptr, device.overlaps(block, twin))


def test_adoption_looks_at_the_same_bytes(device: SimulatedDeviceAllocator) -> None:
    buffer = device.empty(SIZE)
    ptr = device.adopt(buffer, SIZE - 4)
    ptr.set(row(7, SIZE - 4))

    assert [*[7] * (SIZE - 4), *[FRESH] * 4] == buffer.get().tolist()


def test_other_memory_is_not_adopted(device: SimulatedDeviceAllocator) -> None:
    """Each refusal says why."""
    cases: list[tuple[Any, int, str]] = [
        (row(0), SIZE, "not memory of simulated:0"),
        (None, SIZE, "not memory of simulated:0"),
        (SimulatedDeviceAllocator(1).empty(SIZE), SIZE, r"memory of another device \(1\), and simulated:0 is needed"),
        (SimulatedDeviceAllocator().empty(SIZE), SIZE, "memory of another device"),
        (device.read_only(device.empty(SIZE)), SIZE, "a read-only view"),
        (device.empty(SIZE - 1), SIZE, "has 15 bytes, and 16 are needed"),
        (device.empty(SIZE), -1, "between 0 and"),
    ]
    for buffer, size, reason in cases:
        with pytest.raises(ValueError, match=reason):
            device.adopt(buffer, size)


# --- copies


def test_copies_in_every_direction(device: SimulatedDeviceAllocator) -> None:
    """Each moves the bytes asked for, and those only."""
    for kind in MemcpyKind:
        source: Any = allocated(device, 7) if kind.from_device else row(7)
        dest: Any = allocated(device, 9) if kind.to_device else row(9)
        device.memcpy(source, dest, 4, kind)
        found = dest.get() if kind.to_device else dest
        assert [7] * 4 + [9] * (SIZE - 4) == found.tolist(), kind


def test_null_ends_are_fine_for_no_bytes_alone(device: SimulatedDeviceAllocator) -> None:
    for kind in MemcpyKind:
        device.memcpy(None, None, 0, kind)
        with pytest.raises(InvalidSizeError):
            device.memcpy(None, None, 1, kind)
    device.memset_zero(None, 0)  # type: ignore[arg-type] # null on purpose


@pytest.mark.parametrize("kind", list(MemcpyKind))
def test_an_end_on_the_wrong_side_is_refused(device: SimulatedDeviceAllocator, kind: MemcpyKind) -> None:
    """Host memory for device memory, the other way round, and another device's."""
    for wrong in ("src", "dest"):
        near: Any = allocated(device)
        far = [row(0), SimulatedDeviceAllocator().empty(SIZE), SimulatedDeviceAllocator(1).empty(SIZE)]
        good: dict[str, Any] = {
            "src": near if kind.from_device else row(0),
            "dest": near if kind.to_device else row(0),
            "byte_size": SIZE,
            "kind": kind,
        }
        for bad in far if isinstance(good[wrong], SimulatedArray) else [near, *far[1:]]:
            ends: Any = {**good, wrong: bad}
            with pytest.raises(InvalidPointerError, match=f"{wrong} is not "):
                device.memcpy(**ends)


def test_what_cannot_be_zeroed_is_refused(device: SimulatedDeviceAllocator) -> None:
    for bad in (row(0), SimulatedDeviceAllocator().empty(SIZE)):
        with pytest.raises(InvalidPointerError, match="ptr is not memory of this device"):
            device.memset_zero(bad, 4)
    with pytest.raises(InvalidSizeError):
        device.memset_zero(allocated(device), SIZE + 1)


def test_zeroing_starts_at_the_pointer(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device, 7)
    device.memset_zero(block[4:], 2)

    assert [*[7] * 4, 0, 0, *[7] * 10] == block.get().tolist()


def test_a_stream_of_another_device_is_refused_before_anything_happens(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device, 7)
    foreign = SimulatedDeviceAllocator().stream()
    uses: list[Callable[[Any], object]] = [
        lambda stream: device.memcpy(row(1), block, SIZE, UP, stream),
        lambda stream: device.memset_zero(block, SIZE, stream),
        lambda stream: block.set(row(1), stream),
        device.check_stream,
    ]
    for stream in (foreign, 7, object()):
        for use in uses:
            with pytest.raises(InvalidArgumentError, match="stream must be a stream of simulated:0"):
                use(stream)

    assert (True, [7] * SIZE) == (foreign.done, block.get().tolist())
    with pytest.raises(InvalidArgumentError):
        device.check_stream(None)


# --- streams


def test_a_queued_copy_happens_when_its_stream_is_waited_for(device: SimulatedDeviceAllocator) -> None:
    """It reads its source then: who changes it too early sees that."""
    source, block, stream = row(7), allocated(device, 9), device.stream()
    device.memcpy(source, block, SIZE, UP, stream)
    before = block.get()
    source[:] = 8
    stream.synchronize()

    assert ([9] * SIZE, [8] * SIZE) == (before.tolist(), block.get().tolist())


def test_everything_queued_can_be_waited_for_at_once(device: SimulatedDeviceAllocator) -> None:
    """By need_sync, or by synchronize()."""
    waits: list[Callable[[], object]] = [
        lambda: device.memset_zero(allocated(device), 1, need_sync=True),
        lambda: device.memcpy(row(0), row(0), 0, need_sync=True),
        device.synchronize,
    ]
    for wait in waits:
        block, stream = allocated(device, 9), device.stream()
        block.set(row(7), stream)
        assert not stream.done
        wait()
        assert (True, 7) == (stream.done, block.get()[0])


def test_the_work_of_a_stream_that_nobody_holds_happens(device: SimulatedDeviceAllocator) -> None:
    """As on a real device, where destroying a stream does not stop what is in it; then the stream goes."""
    block = allocated(device, 9)
    stream = device.stream()
    device.memset_zero(block, SIZE, stream)
    watch = weakref.ref(stream)
    del stream
    gc.collect()
    held = watch() is not None
    device.synchronize()
    gc.collect()

    assert (True, True, 0) == (held, watch() is None, int(block.get().max()))


def test_an_event_is_done_when_what_was_queued_before_it_is(device: SimulatedDeviceAllocator) -> None:
    """Waiting for it runs the stream that far and no further."""
    first, second, stream = allocated(device, 1), allocated(device, 1), device.stream()
    assert device.record(stream).done
    device.memset_zero(first, SIZE, stream)
    event = device.record(stream)
    device.memset_zero(second, SIZE, stream)
    assert not event.done
    event.synchronize()

    assert (True, False, 0, 1) == (event.done, stream.done, first.get()[0], second.get()[0])


def test_a_stream_waits_for_an_event_of_another(device: SimulatedDeviceAllocator) -> None:
    """Running the second stream runs the first up to the event."""
    block, first, second = allocated(device, 1), device.stream(), device.stream()
    block.set(row(2), first)
    event = first.record()
    second.wait_event(event)
    copy = allocated(device)
    device.memcpy(block, copy, SIZE, ACROSS, second)
    assert not event.done
    second.synchronize()

    assert (True, [2] * SIZE) == (event.done, copy.get().tolist())


def test_waiting_for_all_streams_skips_those_that_others_ran(device: SimulatedDeviceAllocator) -> None:
    first, second, block = device.stream(), device.stream(), allocated(device, 1)
    block.set(row(3), first)
    block.set(row(2), second)
    first.wait_event(second.record())
    device.synchronize()

    assert (True, True, 2) == (first.done, second.done, block.get()[0])


def test_later_work_of_the_default_stream_comes_after_an_event(device: SimulatedDeviceAllocator) -> None:
    """Without blocking now: nothing has happened until somebody reads."""
    block, stream = allocated(device, 1), device.stream()
    block.set(row(2), stream)
    event = device.record(stream)
    device.order_after(event)
    assert not event.done

    assert ([2] * SIZE, True) == (block.get().tolist(), event.done)


def test_a_failed_operation_is_dropped_and_raised_where_somebody_waits(device: SimulatedDeviceAllocator) -> None:
    """What was queued after it happens, and a call that finds it has done nothing itself."""
    gone, block, stream = allocated(device), allocated(device, 1), device.stream()
    device.memset_zero(gone, SIZE, stream)
    device.memset_zero(block, SIZE, stream)
    device.order_after(device.record(stream))
    device.release(gone)
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        device.memcpy(row(7), block, SIZE, UP)

    assert ([0] * SIZE, True) == (block.get().tolist(), stream.done)


def test_an_operation_that_was_interrupted_happens_when_somebody_waits_again(device: SimulatedDeviceAllocator) -> None:
    """And one that waits for itself, by way of a finaliser, happens once."""
    stream, seen = device.stream(), list[str]()

    def operation() -> None:
        seen.append("begun")
        if len(seen) == 1:
            raise KeyboardInterrupt
        if len(seen) == 2:
            stream.synchronize()

    stream.put(operation)
    with pytest.raises(KeyboardInterrupt):
        stream.synchronize()
    assert not stream.done
    stream.synchronize()

    assert (True, 3, 1) == (stream.done, len(seen), stream.finished)


def moments(seed: Any) -> list[list[bool]]:
    """When three streams get their work done, seen after each of some calls."""
    device = SimulatedDeviceAllocator(seed=seed)
    streams = [device.stream() for _ in range(3)]
    block, seen = allocated(device), list[list[bool]]()
    for step in range(24):
        device.memset_zero(block, SIZE, streams[step % 3])
        seen.append([stream.done for stream in streams])
    return seen


def test_a_seed_replays_the_moments_and_other_seeds_have_others() -> None:
    """An object's address, which differs from run to run, plays no part."""
    keep = [object() for _ in range(1000)]
    runs = [moments(5), moments(np.int64(5)), moments(6), moments(7)]
    del keep[::2]

    assert runs[0] == runs[1] == moments(5)
    assert len({str(run) for run in runs}) == 3
    assert {True, False} == {done for run in runs for step in run for done in step}
    assert not any(done for step in moments(None)[2:] for done in step)


def test_a_seeded_device_keeps_the_order_of_a_stream() -> None:
    """Whatever the moments, the last copy queued is the last to happen."""
    for seed in range(20):
        device = SimulatedDeviceAllocator(seed=seed)
        block, stream = allocated(device), device.stream()
        for value in range(8):
            block.set(row(value), stream)
        stream.synchronize()
        assert block.get()[0] == 7


@pytest.mark.parametrize("seed", [1.5, "seed", True])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="seed must be an integer"):
        SimulatedDeviceAllocator(seed=seed)


# --- devices


def test_the_current_device_belongs_to_a_thread_and_is_restored(device: SimulatedDeviceAllocator) -> None:
    """Also after an exception, and after calls on another device."""
    other, seen = SimulatedDeviceAllocator(2), list[int]()

    def work() -> None:
        other.release(other.allocate(SIZE))
        seen.append(other.current_ordinal())
        with other.using():
            seen.append(device.current_ordinal())
        with pytest.raises(AllocationError):
            other.allocate(1 << 60)
        seen.append(current_device())
        thread = threading.Thread(target=lambda: seen.append(current_device()))
        thread.start()
        thread.join(10)
        raise KeyError

    with pytest.raises(KeyError), using_device(3):
        work()
    seen.append(current_device())

    assert [3, 2, 3, 0, 0] == seen


@pytest.mark.parametrize("ordinal", [-1, ORDINALS])
def test_there_are_no_other_devices(ordinal: int) -> None:
    with pytest.raises(NoDeviceError, match=f"there is no simulated device {ordinal}; there are 4"):
        SimulatedDeviceAllocator(ordinal)
    with pytest.raises(NoDeviceError), using_device(ordinal):
        pass

    assert (current_device(), "simulated:3") == (0, SimulatedDeviceAllocator(ORDINALS - 1).name)


@pytest.mark.parametrize("ordinal", [1.0, True, "1"])
def test_a_device_has_a_whole_number(ordinal: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="ordinal must be the number of a device"):
        SimulatedDeviceAllocator(ordinal)


@pytest.mark.parametrize(("capacity", "error"), [(-1, InvalidSizeError), (1.5, InvalidArgumentError)])
def test_a_capacity_is_a_size(capacity: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        SimulatedDeviceAllocator(capacity=capacity)


@pytest.mark.parametrize("use", ["get", "memcpy", "allocate", "release", "synchronize"])
def test_two_threads_on_one_device_wait_for_each_other(device: SimulatedDeviceAllocator, use: str) -> None:
    """While one of them performs what is queued, the other does not return with it half done."""
    block, other, stream = allocated(device, 1), allocated(device), device.stream()
    entered, gate = threading.Event(), threading.Event()
    uses: dict[str, Callable[[], object]] = {
        "get": block.get,
        "memcpy": lambda: device.memcpy(row(1), other, SIZE, UP),
        "allocate": lambda: device.allocate(SIZE),
        "release": lambda: device.release(other),
        "synchronize": stream.synchronize,
    }

    def operation() -> None:
        entered.set()
        gate.wait(10)

    stream.put(operation)
    threads = [threading.Thread(target=stream.synchronize), threading.Thread(target=uses[use])]
    threads[0].start()
    assert entered.wait(10)
    threads[1].start()
    threads[1].join(0.05)
    waits = threads[1].is_alive()
    gate.set()
    for thread in threads:
        thread.join(10)

    assert (True, False) == (waits, threads[1].is_alive())


# --- calls that are told to fail


def call(device: SimulatedDeviceAllocator, operation: str, block: SimulatedArray) -> None:
    """One call of an operation that leaves everything as it was."""
    if operation == "allocate":
        device.release(device.allocate(SIZE))
    elif operation == "release":
        device.release(allocated(device))
    elif operation == "memcpy":
        device.memcpy(block, block, SIZE, ACROSS)
    else:
        device.memset_zero(block, SIZE)


@pytest.mark.parametrize("operation", ["allocate", "release", "memcpy", "memset_zero"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_kth_call_of_an_operation_fails_once(device: SimulatedDeviceAllocator, operation: str, k: int) -> None:
    """Calls of others are not counted, and the failing one has done nothing."""
    block = allocated(device, 7)
    device.fail_at(k, operation)
    device.release(None)
    if operation != "memcpy":
        call(device, "memcpy", block)
    if operation != "memset_zero":
        call(device, "memset_zero", block)
    for _ in range(k - 1):
        call(device, operation, block)
    live = device.live_blocks
    block.set(row(7))
    error = AllocationError if operation == "allocate" else SimulatedDeviceError
    with pytest.raises(error, match="this call was told to fail"):
        call(device, operation, block)

    assert (7, live + (operation == "release")) == (block.get()[0], device.live_blocks)
    call(device, operation, block)


def test_without_an_operation_every_call_counts(device: SimulatedDeviceAllocator) -> None:
    """Those of the interface that touch memory; an array of one's own is no such call."""
    device.fail_at(4)
    block = allocated(device)
    device.empty(SIZE)
    device.memset_zero(block, SIZE)
    device.memcpy(block, block, SIZE, ACROSS)
    with pytest.raises(SimulatedDeviceError, match="release: this call was told to fail"):
        device.release(block)
    device.release(block)


def test_zero_calls_a_failure_off(device: SimulatedDeviceAllocator) -> None:
    device.fail_at(1, "memset_zero")
    device.fail_at(0)
    device.memset_zero(allocated(device), SIZE)

    assert device.live_blocks == 1


@pytest.mark.parametrize(("k", "operation"), [(-1, None), (1.0, None), ("1", None), (1, "empty"), (1, "free")])
def test_only_calls_that_there_are_can_be_told_to_fail(
    device: SimulatedDeviceAllocator, k: Any, operation: str | None
) -> None:
    """And what was told before stays."""
    device.fail_at(1, "allocate")
    with pytest.raises(InvalidArgumentError, match=r"^(k|operation) must be "):
        device.fail_at(k, operation)
    with pytest.raises(AllocationError, match="told to fail"):
        device.allocate(SIZE)


def test_the_device_shows_its_streams_by_number(device: SimulatedDeviceAllocator) -> None:
    streams = [device.stream() for _ in range(3)]

    assert [1, 2, 3] == [stream.number for stream in streams]
    assert {SimulatedStream} == {type(stream) for stream in streams}


# --- shapes


def test_an_array_takes_another_shape(device: SimulatedDeviceAllocator) -> None:
    """Over the same bytes; as CuPy's and PyOpenCL's do."""
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
    """Which axis would change is not the same on all devices."""
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
        device.vectors().asum(table)

    assert (24,) == device.adopt(table, 24).shape
