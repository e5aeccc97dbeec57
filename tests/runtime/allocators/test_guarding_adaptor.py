"""`GuardingAllocator`: writes around blocks and after their release, and the quarantine."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from adaptors import upstreams
from subjects import SIZE

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidSizeError, MemoryCorruptionError
from syncedmem.runtime import CPUDeviceAllocator, DeviceType, GuardingAllocator, MemcpyKind, SimulatedDeviceAllocator


def around(block: Any, reach: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The host memory around a block, from before it to after it, as a wrong pointer could reach it."""
    import ctypes

    start, size = block.ctypes.data - reach, block.size + 2 * reach
    return np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8)


@pytest.mark.parametrize("where", [0, -1])
@pytest.mark.parametrize("found_by", ["release", "check"])
def test_a_write_around_a_block_is_found(where: int, found_by: str) -> None:
    """It holds for writes before the block and after it; the block is not released."""
    upstream = CPUDeviceAllocator()
    guarding = GuardingAllocator(upstream)
    block: Any = guarding.allocate(SIZE)
    zone = around(block, 1)
    was, zone[where] = int(zone[where]), 0
    with pytest.raises(MemoryCorruptionError, match="cpu:0: somebody wrote into the red zone of a block of 48 bytes"):
        guarding.release(block) if found_by == "release" else guarding.check()

    assert 1 == upstream.live_blocks
    zone[where] = was
    guarding.release(block)
    guarding.check()


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
def test_a_write_into_a_released_block_is_found(upstream: Any) -> None:
    """The write goes through an array that somebody kept, on every device."""
    guarding, before = GuardingAllocator(upstream), upstream.live_blocks
    block = guarding.allocate(SIZE)
    guarding.release(block)
    guarding.check()
    kind = MemcpyKind.CPU2CPU if upstream.device_type is DeviceType.CPU else MemcpyKind.CPU2CUDA
    guarding.memcpy(np.zeros(1, np.uint8), block, 1, kind)

    with pytest.raises(MemoryCorruptionError, match="somebody wrote after its release into a block of 48 bytes"):
        guarding.check()
    with pytest.raises(MemoryCorruptionError):
        guarding.clear()
    guarding.clear()
    assert before == upstream.live_blocks


def test_memory_is_poisoned_when_it_is_new_and_when_it_is_released() -> None:
    guarding = GuardingAllocator(CPUDeviceAllocator())
    block: Any = guarding.allocate(SIZE)
    fresh = set(block.tolist())
    guarding.release(block)

    assert ({0xA5}, {0xDD}) == (fresh, set(block.tolist()))


def test_the_quarantine_keeps_the_last_blocks() -> None:
    """The oldest blocks leave, and are checked once more; a block that is too large is released at once."""
    upstream = CPUDeviceAllocator()
    guarding = GuardingAllocator(upstream, quarantine=100)
    spoilt, second, third, large = (guarding.allocate(size) for size in (50, 50, 60, 101))
    guarding.release(spoilt)
    guarding.release(second)
    assert 4 == upstream.live_blocks
    assert spoilt is not None
    spoilt[3] = 0
    with pytest.raises(MemoryCorruptionError, match="after its release into a block of 50 bytes"):
        guarding.release(third)
    assert 3 == upstream.live_blocks
    guarding.release(third)
    assert 2 == upstream.live_blocks
    guarding.release(large)
    assert 1 == upstream.live_blocks


def test_the_quarantine_makes_room_when_the_upstream_is_full() -> None:
    """If the quarantine is empty, there is no room."""
    device = SimulatedDeviceAllocator(capacity=2000)
    guarding = GuardingAllocator(device, red_zone=64)
    guarding.release(guarding.allocate(1500))
    block = guarding.allocate(1500)
    with pytest.raises(AllocationError, match="1628 of 2000 bytes are in use"):
        guarding.allocate(1500)

    guarding.release(block)


def test_a_guard_that_nobody_uses_any_more_gives_back_what_it_kept() -> None:
    """It reports damage that it finds; and it does not try for ever to release a block that cannot be released."""
    device = SimulatedDeviceAllocator()
    for spoil, stuck in ((False, False), (True, False), (False, True)):
        guarding = GuardingAllocator(device)
        blocks: list[Any] = [guarding.allocate(SIZE), guarding.allocate(SIZE)]
        for block in blocks:
            guarding.release(block)
        if spoil:
            guarding.memcpy(np.zeros(1, np.uint8), blocks[0], 1, MemcpyKind.CPU2CUDA)
        if stuck:
            device.fail_at(1, "release")
        said = "after its release|told to fail"
        with pytest.warns(ResourceWarning, match=said) if spoil or stuck else nullcontext():
            del guarding
            gc.collect()
        assert 0 == device.live_blocks


def test_a_guard_that_cannot_be_set_up_gives_the_block_back() -> None:
    device = SimulatedDeviceAllocator()
    device.fail_at(1, "memcpy")
    with pytest.raises(Exception, match="told to fail"):
        GuardingAllocator(device).allocate(SIZE)

    assert 0 == device.live_blocks


@pytest.mark.parametrize("zone", [0, 32, 100, "64"])
def test_a_red_zone_that_would_spoil_the_alignment_is_refused(zone: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="red_zone must be"):
        GuardingAllocator(CPUDeviceAllocator(), red_zone=zone)


def test_a_size_without_room_for_the_zones_is_named_as_it_was_asked_for() -> None:
    size = sys.maxsize

    with pytest.raises(InvalidSizeError) as caught:
        GuardingAllocator(CPUDeviceAllocator()).allocate(size)

    assert size == caught.value.size
