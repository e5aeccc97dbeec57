"""An allocator over addresses of another library: when memory goes back, and how its errors are reported."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interop_fixtures import SIZE, Heap, address_of

from syncedmem.model import (
    AllocationError,
    DeviceError,
    InvalidPointerError,
    NoDeviceError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.runtime.interop.foreign import ForeignHostAllocator, allocator_over
from syncedmem.runtime.interop.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable


def test_foreign_memory_is_an_array_over_its_address(foreign: ForeignHostAllocator, heap: Heap) -> None:
    block: Any = foreign.allocate(SIZE)
    (address,) = heap.blocks

    assert ((SIZE,), np.uint8, True, address) == (block.shape, block.dtype, block.flags.writeable, address_of(block))
    block[:] = 7
    assert bytes([7]) * SIZE == ctypes.string_at(address, SIZE)
    assert "a heap" == foreign.name
    foreign.release(block)


def test_foreign_memory_goes_back_once_when_nobody_looks_at_it(foreign: ForeignHostAllocator, heap: Heap) -> None:
    """A view keeps its bytes, as with every allocator, and the allocator keeps blocks that are not released."""
    block: Any = foreign.allocate(SIZE)
    (address,) = heap.blocks
    view = block[10:20]
    foreign.release(block)
    with pytest.raises(InvalidPointerError, match=r"a heap cannot use .* not a live block"):
        foreign.release(block)
    del block
    assert [] == heap.returned
    del view
    assert [address] == heap.returned

    kept = address_of(foreign.allocate(SIZE))
    gc.collect()
    assert kept in heap.blocks
    assert 1 == foreign.live_blocks


def test_what_an_allocator_leaves_goes_back_with_it(heap: Heap) -> None:
    foreign = ForeignHostAllocator(Source("a heap", heap.take))
    address = address_of(foreign.allocate(SIZE))
    del foreign
    gc.collect()

    assert [address] == heap.returned


def raising(error: BaseException) -> Callable[[int], Any]:
    def take(_size: int) -> Any:
        raise error

    return take


def answering(answer: Any) -> Callable[[int], Any]:
    def take(_size: int) -> Any:
        return answer

    return take


@pytest.mark.parametrize(
    ("take", "kind", "message"),
    [
        (raising(MemoryError("full")), AllocationError, "cannot allocate 1000 bytes on theirs: full"),
        (raising(LookupError("none")), AllocationError, "cannot allocate 1000 bytes on theirs: none"),
        (raising(AllocationError("ours", 5)), AllocationError, "cannot allocate 5 bytes on ours"),
        (raising(OSError("broken")), DeviceError, "allocate failed on theirs: OSError: broken"),
        (answering((0, print)), AllocationError, "cannot allocate 1000 bytes on theirs: the address is null"),
        (answering((None, print)), AllocationError, "cannot allocate 1000 bytes on theirs: the address is null"),
        (answering(5), DeviceError, "allocate failed on theirs: TypeError"),
    ],
)
def test_what_a_library_raises_is_of_the_family(take: Any, kind: type[SyncedMemoryError], message: str) -> None:
    foreign = ForeignHostAllocator(Source("theirs", take, lambda error: isinstance(error, LookupError)))
    with pytest.raises(SyncedMemoryError, match=message) as caught:
        foreign.allocate(SIZE)

    assert kind is caught.type
    assert 0 == foreign.live_blocks


def test_a_deallocation_that_fails_is_printed(printed: list[BaseException | None]) -> None:
    """It happens in a finaliser, where nobody can catch it."""

    def take(size: int) -> tuple[int, Callable[[], object]]:
        memory = ctypes.create_string_buffer(size)

        def give() -> None:
            raise RuntimeError(f"no thanks, {len(memory)} are enough")

        return ctypes.addressof(memory), give

    foreign = ForeignHostAllocator(Source("theirs", take))
    foreign.release(foreign.allocate(SIZE))

    (error,) = printed
    assert isinstance(error, ReleaseError)
    assert "deallocate failed on theirs: RuntimeError: no thanks, 1000 are enough" == str(error)


def test_device_memory_needs_a_device(heap: Heap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CuPy, an address on a GPU cannot be used."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    for module in ("devices.cuda", "interop.foreign_cuda"):
        monkeypatch.delitem(sys.modules, f"syncedmem.runtime.{module}", raising=False)
    with pytest.raises(NoDeviceError, match="CUDA needs CuPy, which is not installed"):
        allocator_over(Source("a heap", heap.take), 0)
