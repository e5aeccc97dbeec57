"""`CPUDeviceAllocator`: aligned, lazily zeroed host memory."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import pytest

import syncedmem.runtime.devices.host as host_module
from syncedmem.model import AllocationError
from syncedmem.runtime import CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator
from syncedmem.runtime.devices.host import ALIGNMENT

LARGE = 1 << 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux promises zeros after MADV_DONTNEED")


@pytest.fixture
def host() -> CPUDeviceAllocator:
    """A host allocator that only this test uses."""
    return CPUDeviceAllocator()


def allocated(host: CPUDeviceAllocator, size: int) -> Any:
    """Allocate a block that is not None."""
    block = host.allocate(size)
    assert block is not None
    return block


def resident() -> int:
    """Return how many bytes of this process are in physical memory."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 -- a table of the kernel, not a file of ours
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("size", [1 << 60, 2**63 - 1])
@pytest.mark.parametrize("discards", [True, False])
def test_no_room_is_one_error(host: CPUDeviceAllocator, size: int, discards: bool, monkeypatch: Any) -> None:
    """The error is the same from the system and from NumPy; nothing is allocated, and the next call works."""
    monkeypatch.setattr(host_module, "_CAN_DISCARD", discards)
    for allocate in (host.allocate, host.empty):
        with pytest.raises(AllocationError, match=f"cannot allocate {size} bytes on cpu:0: ") as caught:
            allocate(size)
        assert caught.value.__cause__ is not None

    assert host.live_blocks == 0
    host.release(host.allocate(LARGE))


# --- zeros


@linux
def test_a_gigabyte_of_zeros_costs_no_memory(host: CPUDeviceAllocator) -> None:
    """It costs none for a fresh block, and none after a part was written: the written pages are given back."""
    before = resident()
    block = allocated(host, 1 << 30)
    host.memset_zero(block, 1 << 30)
    untouched = resident() - before
    block[: 64 << 20] = 7
    written = resident() - before
    host.memset_zero(block, 1 << 30)
    zeroed = resident() - before

    assert untouched < 8 << 20
    assert written >= 60 << 20
    assert zeroed < 16 << 20
    assert not block[: 64 << 20 : 4096].any()


@linux
def test_pages_that_cannot_be_given_back_are_written(host: CPUDeviceAllocator, monkeypatch: Any) -> None:
    """The system does not take back locked pages."""
    refused: list[int] = []

    class Locked(mmap.mmap):
        """A mapping that does not give pages back."""

        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            del start, length
            refused.append(option)
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Locked)
    block = allocated(host, LARGE)
    block[:] = 7
    host.memset_zero(block, LARGE)

    assert ([mmap.MADV_DONTNEED], False) == (refused, block.any())


def test_elsewhere_than_on_linux_large_blocks_are_zeroed_too(host: CPUDeviceAllocator, monkeypatch: Any) -> None:
    monkeypatch.setattr(host_module, "_CAN_DISCARD", False)
    block = allocated(host, LARGE)
    block[:] = 7
    host.memset_zero(block, LARGE)

    assert (0, False) == (block.ctypes.data % ALIGNMENT, block.any())


def test_an_allocator_knows_its_device() -> None:
    assert DeviceType.CPU is CPUDeviceAllocator().device_type
    assert DeviceType.SIMULATED is SimulatedDeviceAllocator().device_type
