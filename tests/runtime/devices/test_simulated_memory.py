"""Memory of the simulated device: poison, red zones, quarantine, and what it counts and refuses."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from simulated_blocks import DOWN, SIZE, UP, allocated, row

from syncedmem.model import AllocationError
from syncedmem.runtime import SimulatedArray, SimulatedDeviceAllocator, SimulatedDeviceError
from syncedmem.runtime.devices.simulated.block import FREED, FRESH, Block, Quarantine

if TYPE_CHECKING:
    from collections.abc import Callable


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


@pytest.mark.parametrize("use", ["get", "set", "source", "dest", "zero"])
def test_use_after_the_release_is_caught(device: SimulatedDeviceAllocator, use: str) -> None:
    """The use is through a view that was made before the release."""
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


def test_the_last_block_is_kept_even_if_it_is_larger_than_the_quarantine() -> None:
    """A late write into it is noticed; the block that made room for it was checked, and is not kept."""
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
    """The quarantine must not keep so much memory that the program may need it."""
    quarantine, huge = Quarantine(), Block(0, (64 << 20) + 1)
    watch = weakref.ref(huge)
    quarantine.take(huge)
    quarantine.check()
    freed = not huge.live
    del huge

    assert (True, None) == (freed, watch())


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


def test_the_range_of_a_block_is_checked() -> None:
    block = Block(0x1000, SIZE)
    for offset, size in ((0, SIZE + 1), (SIZE, 1), (-1, 1)):
        with pytest.raises(SimulatedDeviceError, match="lie outside the block of 16 bytes at 0x1000"):
            block.bytes(offset, size)


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
