"""The adapter of Warp, against Warp itself, as far as it goes without a GPU."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import pytest
from interop_fixtures import SIZE, Limited, check_allocator, library, limited

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError

cpu = limited


@pytest.fixture
def warp() -> Any:
    return library("warp")


def test_warp_accepts_our_allocator(warp: Any, cpu: Limited, printed: list[BaseException | None]) -> None:
    """As far as Warp gets without a GPU: it is an allocator, by its protocol and the check behind the setters."""
    theirs = warp.as_resource(cpu)
    assert isinstance(theirs, warp.wp.Allocator)
    sys.modules["warp._src.context"]._validate_allocator(theirs)
    address = theirs.allocate(SIZE)
    theirs.deallocate(address, SIZE - 1)
    assert (1, warp.wp.MemoryKind.HOST) == (cpu.live_blocks, theirs.memory_kind)
    theirs.deallocate(address, SIZE)
    assert (0, 0, [InvalidPointerError]) == (cpu.live_blocks, theirs.allocate(0), [type(error) for error in printed])


def test_arrays_of_warp_lie_in_our_memory(warp: Any, cpu: Limited) -> None:
    theirs = warp.as_resource(cpu)
    warp.wp.config.quiet = True
    address = theirs.allocate(4 * SIZE)
    array = warp.wp.array(
        ptr=address, shape=SIZE, dtype=warp.wp.int32, device="cpu", deleter=theirs.deallocate, capacity=4 * SIZE
    )
    array.fill_(7)
    assert 7 == ctypes.c_int32.from_address(address).value
    del array
    gc.collect()

    assert 0 == cpu.live_blocks


def test_warps_own_allocator_is_ours(warp: Any) -> None:
    """It says itself that the host can read it; a full host is an error of ours."""
    warp.wp.config.quiet = True
    allocator = warp.from_resource(warp.wp.get_device_allocator("cpu"))
    block = allocator.allocate(SIZE)
    block[:] = 7
    allocator.release(block)
    assert "Warp's CpuDefaultAllocator" == allocator.name


def test_an_allocator_of_warp_is_ours(warp: Any, cpu: Limited) -> None:
    theirs = warp.as_resource(cpu)
    check_allocator(warp.from_resource(theirs), cpu)
    del theirs.memory_kind
    check_allocator(warp.from_resource(theirs, device=None), cpu)

    class Full:
        memory_kind = warp.wp.MemoryKind.PINNED
        deallocate = None

        def allocate(self, size: int) -> int:
            raise RuntimeError(f"Failed to allocate {size} bytes on device 'cpu'")

    with pytest.raises(InvalidArgumentError, match="an allocator of Warp, got"):
        warp.from_resource(Full())
    Full.deallocate = print  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue] -- now it is one
    with pytest.raises(AllocationError, match="Failed to allocate 1000 bytes on device 'cpu'"):
        warp.from_resource(Full()).allocate(SIZE)
