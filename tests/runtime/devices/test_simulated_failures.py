"""Calls of the simulated device that are told to fail."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_blocks import ACROSS, SIZE, allocated, row

from syncedmem.model import AllocationError, InvalidArgumentError
from syncedmem.runtime import SimulatedArray, SimulatedDeviceAllocator, SimulatedDeviceError


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
    """All calls of the interface that use memory count; making an array does not."""
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
    """The earlier setting of the device is unchanged."""
    device.fail_at(1, "allocate")
    with pytest.raises(InvalidArgumentError, match=r"^(k|operation) must be "):
        device.fail_at(k, operation)
    with pytest.raises(AllocationError, match="told to fail"):
        device.allocate(SIZE)
