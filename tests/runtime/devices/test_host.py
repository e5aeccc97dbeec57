"""`CPUDeviceAllocator`: aligned, lazily zeroed host memory."""

from __future__ import annotations

import mmap
import sys
from typing import Any, cast

import numpy as np
import pytest

import syncedmem.runtime.devices.host as host_module
from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError, InvalidSizeError
from syncedmem.runtime import CPUDeviceAllocator, DeviceType, MemcpyKind, SimulatedDeviceAllocator
from syncedmem.runtime.devices.host import ALIGNMENT, cpu_allocator

LARGE = 1 << 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux promises zeros after MADV_DONTNEED")


@pytest.fixture
def host() -> CPUDeviceAllocator:
    """A host allocator of the test's own."""
    return CPUDeviceAllocator()


def allocated(host: CPUDeviceAllocator, size: int) -> Any:
    """A block that is there."""
    block = host.allocate(size)
    assert block is not None
    return block


def resident() -> int:
    """The bytes of this process that are in memory now."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 -- a kernel's table, not a path of ours
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("size", [1, 63, 64, 65, LARGE - 1, LARGE, LARGE + 1])
def test_blocks_are_aligned_writeable_rows_of_exactly_that_many_bytes(host: CPUDeviceAllocator, size: int) -> None:
    block = allocated(host, size)
    block[0], block[-1] = 1, 2

    assert (size, np.uint8, True) == (len(block), block.dtype, block.flags.c_contiguous)
    assert block.ctypes.data % ALIGNMENT == 0
    assert host.live_blocks == 1
    host.release(block)
    assert host.live_blocks == 0


def test_zero_bytes_allocate_nothing_and_null_is_released_freely(host: CPUDeviceAllocator) -> None:
    assert host.allocate(0) is None
    host.release(None)

    assert host.live_blocks == 0
    assert host.empty(0).shape == (0,)


@pytest.mark.parametrize("size", [1 << 60, 2**63 - 1])
@pytest.mark.parametrize("discards", [True, False])
def test_no_room_is_one_error(host: CPUDeviceAllocator, size: int, discards: bool, monkeypatch: Any) -> None:
    """Whether the system or NumPy says so; nothing was allocated, and the next call works."""
    monkeypatch.setattr(host_module, "_CAN_DISCARD", discards)
    for allocate in (host.allocate, host.empty):
        with pytest.raises(AllocationError, match=f"cannot allocate {size} bytes on cpu:0: ") as caught:
            allocate(size)
        assert caught.value.__cause__ is not None

    assert host.live_blocks == 0
    host.release(host.allocate(LARGE))


@pytest.mark.parametrize("size", [-1, 2**63])
def test_impossible_sizes_are_refused(host: CPUDeviceAllocator, size: int) -> None:
    with pytest.raises(InvalidSizeError):
        host.allocate(size)


def test_a_view_still_reads_after_the_release(host: CPUDeviceAllocator) -> None:
    """A late reader finds old bytes, also of memory that came straight from the system."""
    for size in (16, LARGE):
        block = allocated(host, size)
        block[:] = 7
        view = block[4:8]
        host.release(block)
        others = [allocated(host, size) for _ in range(8)]
        for other in others:
            other[:] = 9

        assert [7] * 4 == view.tolist()


def test_only_the_block_itself_is_released_and_only_once(host: CPUDeviceAllocator) -> None:
    block = allocated(host, 16)
    for foreign in (block[:], block.copy(), CPUDeviceAllocator().allocate(16), bytearray(16), 7):
        with pytest.raises(InvalidPointerError, match=r"cpu:0 cannot use .* not a live block of this allocator"):
            host.release(foreign)  # type: ignore[arg-type] # foreign on purpose
    assert host.live_blocks == 1
    host.release(block)
    with pytest.raises(InvalidPointerError, match="not a live block"):
        host.release(block)


def test_copies_move_that_many_bytes(host: CPUDeviceAllocator) -> None:
    source, dest = np.arange(8, dtype=np.uint8), np.full(8, 9, np.uint8)
    host.memcpy(source, dest, 5)
    host.memcpy(None, dest, 0)
    host.memcpy(source, None, 0)

    assert [0, 1, 2, 3, 4, 9, 9, 9] == dest.tolist()


@pytest.mark.parametrize("size", [9, -1])
def test_copies_that_leave_an_array_are_refused(host: CPUDeviceAllocator, size: int) -> None:
    short, long = np.zeros(8, np.uint8), np.zeros(16, np.uint8)
    for source, dest in ((short, long), (long, short)):
        with pytest.raises(InvalidSizeError):
            host.memcpy(source, dest, size)
    with pytest.raises(InvalidSizeError):
        host.memset_zero(short, size)


@pytest.mark.parametrize("kind", [MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA, 1])
def test_the_host_copies_to_no_device(host: CPUDeviceAllocator, kind: Any) -> None:
    row = np.zeros(8, np.uint8)
    with pytest.raises(InvalidArgumentError, match=r"kind must be MemcpyKind\.CPU2CPU"):
        host.memcpy(row, row.copy(), 8, kind)


def test_device_memory_is_no_host_memory(host: CPUDeviceAllocator) -> None:
    row, far = np.zeros(8, np.uint8), SimulatedDeviceAllocator().empty(8)
    for source, dest in ((row, far), (far, row)):
        with pytest.raises(InvalidPointerError, match="is not host memory"):
            host.memcpy(source, dest, 8)
    with pytest.raises(InvalidPointerError, match="ptr is not host memory"):
        host.memset_zero(far, 8)


# --- zeros


@pytest.mark.parametrize("size", [16, LARGE - 1, LARGE, LARGE + 5])
def test_zeroing_after_somebody_wrote_really_zeroes(host: CPUDeviceAllocator, size: int) -> None:
    """All of the block, or its first bytes and no more."""
    block = allocated(host, size)
    block[:] = 7
    host.memset_zero(block, size // 2)
    assert (not block[: size // 2].any(), block[size // 2 :].min()) == (True, 7)

    block[:] = 7
    host.memset_zero(block, size)
    assert not block.any()


def test_zeroing_a_view_or_nothing_leaves_the_rest(host: CPUDeviceAllocator) -> None:
    """A view of a large block is not the block, wherever it starts."""
    block = allocated(host, LARGE)
    block[:] = 7
    host.memset_zero(block[: LARGE - 1], LARGE - 1)
    host.memset_zero(block, 0)
    host.memset_zero(None, 0)

    assert (0, 7) == (block[:-1].max(), block[-1])


@linux
def test_a_gigabyte_of_zeros_costs_no_memory(host: CPUDeviceAllocator) -> None:
    """Neither fresh nor after a part was written; the pages written are given back."""
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
    """The system refuses that for pages that somebody locked."""
    refused: list[int] = []

    class Locked(mmap.mmap):
        """A mapping whose pages stay."""

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


# --- the rest of the interface


def test_overlaps_are_shared_bytes(host: CPUDeviceAllocator) -> None:
    block = allocated(host, 16)

    assert host.overlaps(block[:8], block[7:])
    assert not host.overlaps(block[:8], block[8:])
    assert not host.overlaps(block, block.copy())


def test_the_host_has_no_streams_and_its_events_are_over(host: CPUDeviceAllocator) -> None:
    host.check_stream(None)
    event = host.record(None)
    host.order_after(event)

    assert (True, None) == (event.done, cast("Any", host).stream())
    with pytest.raises(InvalidArgumentError, match="stream must be None on the host"):
        host.check_stream(7)
    with pytest.raises(InvalidArgumentError, match="stream must be None on the host"):
        host.record(7)


def test_the_host_behaves_like_a_device_that_is_always_current(host: CPUDeviceAllocator) -> None:
    with host.using():
        assert host.ordinal == host.current_ordinal()
    row = host.empty(4)

    assert (DeviceType.CPU, "cpu:0") == (host.device_type, host.name)
    assert repr(host) == "<CPUDeviceAllocator cpu:0>"
    assert host.read_only(row) is row
    assert host.viewer(row)() is not row
    assert host.pinned_host() is host
    assert host.adopt(row, 3).shape == (3,)


def test_everybody_shares_one_host_allocator() -> None:
    assert cpu_allocator() is cpu_allocator()
