"""Copies of the simulated device: every direction, and what is refused before anything happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from simulated_blocks import SIZE, UP, allocated, row

from syncedmem.model import InvalidArgumentError, InvalidPointerError, InvalidSizeError
from syncedmem.runtime import MemcpyKind, SimulatedArray, SimulatedDeviceAllocator

if TYPE_CHECKING:
    from collections.abc import Callable


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
