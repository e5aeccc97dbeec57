"""The simulated device: its arrays, its memory with poison, red zones and quarantine, and calls that fail when told."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interrupts import ANYWHERE, Interrupt
from simulated_blocks import ACROSS, DOWN, SIZE, UP, allocated, row

from syncedmem.model import (
    AllocationError,
    InvalidArgumentError,
    InvalidIndexError,
    InvalidPointerError,
    InvalidShapeError,
)
from syncedmem.runtime import SimulatedArray, SimulatedDeviceAllocator, SimulatedDeviceError
from syncedmem.runtime.devices.simulated.block import FREED, FRESH

if TYPE_CHECKING:
    from collections.abc import Callable


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
    block: Any = allocated(device)
    for use in (lambda: np.asarray(block), lambda: [*block[0]], lambda: block[[0]], lambda: block["1":]):
        with pytest.raises(InvalidArgumentError):
            use()


@pytest.mark.parametrize(("step", "error"), [(-1, InvalidPointerError), (2, InvalidPointerError), (0, TypeError)])
def test_slices_are_contiguous(device: SimulatedDeviceAllocator, step: int, error: type[Exception]) -> None:
    with pytest.raises(error):
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
        with pytest.raises(InvalidPointerError):
            array.set(row(1, len(array)))
        with pytest.raises(InvalidPointerError):
            device.memcpy(row(1), array, 1, UP)
        with pytest.raises(InvalidPointerError):
            device.memset_zero(array, 1)

    assert [7] * SIZE == frozen.get().tolist()


# What CuPy or PyOpenCL refuses: no array, another length, shape or type, or not contiguous.
UNSETTABLE: dict[str, Any] = {
    "bytes": bytes(SIZE),
    "None": None,
    "too short": row(0, SIZE - 1),
    "as many bytes": np.zeros(SIZE // 4, np.float32),
    "signed": np.zeros(SIZE, np.int8),
    "two dimensions": row(0).reshape(4, 4),
    "masked": np.ma.masked_array(row(0), mask=[True] * SIZE),
    "every second": row(0, 2 * SIZE)[::2],
}


@pytest.mark.parametrize("name", UNSETTABLE)
def test_set_takes_an_array_of_the_same_type_and_shape_alone(device: SimulatedDeviceAllocator, name: str) -> None:
    """CuPy and PyOpenCL together refuse as much; nothing is written."""
    block = allocated(device, 7)
    with pytest.raises(InvalidArgumentError) as refused:
        block.set(UNSETTABLE[name])

    assert "data" == refused.value.argument
    assert [7] * SIZE == block.get().tolist()


def test_set_writes_all_items_of_whatever_array_it_takes(device: SimulatedDeviceAllocator) -> None:
    block, empty, frozen = allocated(device), device.empty(0), row(5)
    frozen.flags.writeable = False
    block.set(frozen)
    empty.set(row(0, 0))

    assert ([5] * SIZE, 0) == (block.get().tolist(), empty.size)


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
    with pytest.raises(InvalidArgumentError):
        len(one)
    with pytest.raises(InvalidIndexError):
        one[:1]


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (1, 5), (5, 1), (1, 2, 1), (2, 1, 3), (0, 3), (2, 0)], ids=str)
def test_axes_of_one_item_leave_an_array_contiguous(device: SimulatedDeviceAllocator, shape: Any) -> None:
    """As in NumPy, so that the transposed array of a row is one that can be written."""
    host = np.zeros(shape, np.uint8)
    array: Any = device.empty(host.size).reshape(shape)
    for here, there in ((host, array), (host.T, array.T)):
        assert (here.flags.c_contiguous, here.flags.f_contiguous) == there.flags
        if here.flags.c_contiguous:
            there.set(here)


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
    with pytest.raises(InvalidArgumentError) as caught:
        allocated(device)[1:].view(dtype)

    assert caught.value.value is dtype
    assert 0 == device.empty(0).view(np.float64).size


def test_a_typed_view_is_like_its_block(device: SimulatedDeviceAllocator) -> None:
    """It is read-only if the block is, overlaps by bytes, and is adopted as bytes, as many as the memory needs."""
    block, other = allocated(device, 7), allocated(device)
    floats = block.view(np.float32)
    frozen = device.read_only(block).view(np.float32)
    with pytest.raises(InvalidPointerError):
        frozen.set(np.zeros(4, np.float32))
    assert (True, FLOATS) == (device.read_only(floats).read_only, device.read_only(floats).dtype)
    assert device.overlaps(floats[2:], block[11:])
    assert not device.overlaps(floats[2:], block[:8])
    assert not device.overlaps(floats, other)

    ptr = device.adopt(floats[1:], SIZE - 6)
    assert (floats.ptr + 4, SIZE - 6, np.dtype(np.uint8)) == (ptr.ptr, ptr.size, ptr.dtype)
    wrong = {"12 bytes": floats[1:], "another device": SimulatedDeviceAllocator().empty(SIZE), "read-only": frozen}
    for reason, array in wrong.items():
        with pytest.raises(ValueError, match=reason):
            device.adopt(array, SIZE - 3)


# --- adoption


# --- poison, red zones, quarantine


def storage(allocator: Any, block: Any) -> Any:
    """All the bytes behind a block, red zones too."""
    return allocator._live.behind(block)._storage


def test_fresh_memory_is_poisoned_and_never_at_an_address_used_before(device: SimulatedDeviceAllocator) -> None:
    seen: set[int] = set()
    for _ in range(4):
        block = allocated(device)
        assert [FRESH] * SIZE == block.get().tolist()
        assert block.ptr not in seen
        seen.add(block.ptr)
        device.release(block)


USES: dict[str, Callable[[SimulatedDeviceAllocator, SimulatedArray], object]] = {
    "get": lambda _, view: view.get(),
    "set": lambda _, view: view.set(row(1, len(view))),
    "get of a type": lambda _, view: view.view(np.int16).get(),
    "set of a type": lambda _, view: view.view(np.int16).set(np.zeros(len(view) // 2, np.int16)),
    "source": lambda device, view: device.memcpy(view, row(1), 4, DOWN),
    "dest": lambda device, view: device.memcpy(row(1), view, 4, UP),
    "zero": lambda device, view: device.memset_zero(view, 4),
    "adopt": lambda device, view: device.adopt(view, 4),
}


@pytest.mark.parametrize("use", USES)
def test_use_after_the_release_is_caught(device: SimulatedDeviceAllocator, use: str) -> None:
    """The use is through a view that was made before the release."""
    block = allocated(device)
    view = block[2:]
    device.release(block)
    with pytest.raises((SimulatedDeviceError, ValueError), match=rf"block of 16 bytes at {block.ptr:#x}"):
        USES[use](device, view)

    device.check()


def test_a_write_into_freed_memory_is_caught(device: SimulatedDeviceAllocator) -> None:
    """The write goes around all checks, as the write of a kernel does."""
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
    """The red zones are on both sides of a block; their first and last bytes are tried."""
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


def test_the_last_block_is_kept_even_if_it_is_larger_than_the_quarantine(device: SimulatedDeviceAllocator) -> None:
    """A late write into it is noticed; the block that made room for it was checked, and is not kept."""
    small, large = allocated(device, size=1 << 20), allocated(device, size=5 << 20)
    late, raw = small.raw(1), large.raw(1)
    device.release(small)
    device.release(large)
    assert raw[0] == FREED
    late[0] = 7
    device.check()
    raw[0] = 7

    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        device.check()


def test_many_small_blocks_are_not_kept_for_ever(device: SimulatedDeviceAllocator) -> None:
    """Each takes much more than its bytes."""
    first: Any = allocated(device)
    watch = weakref.ref(first._block)
    device.release(first)
    del first
    for _ in range(4095):
        device.release(device.allocate(1))
    assert watch() is not None
    device.release(device.allocate(1))
    assert watch() is None


def test_a_block_of_more_than_64_mib_is_not_kept(device: SimulatedDeviceAllocator) -> None:
    """The quarantine must not keep so much memory that the program may need it."""
    huge: Any = allocated(device, size=(64 << 20) + 1)
    watch = weakref.ref(huge._block)
    device.release(huge)
    device.check()
    freed = not huge._block.live
    del huge

    assert (True, None) == (freed, watch())


@pytest.mark.parametrize("place", ["device", "pinned"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("queued", [False, True])
def test_a_release_that_is_interrupted_anywhere_leaves_the_block_with_its_bytes(
    device: SimulatedDeviceAllocator, place: str, error: type[BaseException], queued: bool
) -> None:
    """Also while queued work will use them."""
    allocator: Any = device if place == "device" else device.pinned_host()
    ptr = allocator.allocate(SIZE)
    raw = ptr.raw(SIZE) if place == "device" else ptr
    raw[:] = 7
    if queued and place == "device":
        device.stream().launch(id, ptr)
    points = 0
    while Interrupt(points + 1, ANYWHERE, error).comes_in(partial(allocator.release, ptr)):
        points += 1
        if allocator.live_blocks == 0:
            break
        assert {7} == set((ptr.raw(SIZE) if place == "device" else ptr).tolist()), points
        device.check()

    assert (0, True) == (allocator.live_blocks, points > 10)
    with pytest.raises(InvalidPointerError):
        allocator.release(ptr)


def test_a_stray_write_around_live_memory_is_found(device: SimulatedDeviceAllocator) -> None:
    """It is found before a release, around device memory, an array that owns its memory, and page-locked memory."""
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


def test_capacity_counts_what_is_out() -> None:
    """A full device refuses; released memory can be allocated again; a refused call is not counted."""
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


def test_pinned_memory_is_poisoned_when_fresh_and_kept_when_freed(device: SimulatedDeviceAllocator) -> None:
    """A late reader sees the old bytes, and a late writer is caught."""
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


def test_the_size_of_an_array_is_not_for_its_users_to_say(device: SimulatedDeviceAllocator) -> None:
    array: Any = device.empty(SIZE)

    with pytest.raises(AttributeError, match="size"):
        array.size = 2 * SIZE


# --- calls that are told to fail


def call(device: SimulatedDeviceAllocator, operation: str, block: SimulatedArray) -> None:
    """One call of an operation that changes nothing."""
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
    """Calls of other operations do not count, and the failing call has done nothing."""
    block = allocated(device, 7)
    device.fail_at(k, operation)
    device.release(None)
    for other in {"memcpy", "memset_zero"} - {operation}:
        call(device, other, block)
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
    """All calls of the interface that use memory count; making an array does not.  Zero calls the failure off."""
    device.fail_at(1, "memset_zero")
    device.fail_at(0)
    device.memset_zero(allocated(device), SIZE)
    device.fail_at(4)
    block = allocated(device)
    device.empty(SIZE)
    device.memset_zero(block, SIZE)
    device.memcpy(block, block, SIZE, ACROSS)
    with pytest.raises(SimulatedDeviceError):
        device.release(block)
    device.release(block)


@pytest.mark.parametrize(("k", "operation"), [(-1, None), (1.0, None), ("1", None), (1, "empty"), (1, "free")])
def test_only_calls_that_there_are_can_be_told_to_fail(
    device: SimulatedDeviceAllocator, k: Any, operation: str | None
) -> None:
    """The earlier setting of the device is unchanged."""
    device.fail_at(1, "allocate")
    with pytest.raises(InvalidArgumentError, match=r"^(k|operation) must be "):
        device.fail_at(k, operation)
    with pytest.raises(AllocationError, match="told to fail"):
        device.allocate(SIZE)
