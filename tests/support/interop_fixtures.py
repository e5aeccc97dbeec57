"""What tests of interop share, as a plugin of pytest: somebody's heap, host memory, and libraries if they are there.

Modules mean different host memory by the same name, so each says which it means: ``cpu = limited``.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem import interop
from syncedmem.model import AllocationError, InvalidPointerError, NoDeviceError
from syncedmem.runtime import CPUDeviceAllocator
from syncedmem.runtime.interop.foreign import ForeignHostAllocator
from syncedmem.runtime.interop.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1000
"""In bytes, where a test has no reason for another."""


class Heap:
    """Somebody's allocator: integers out, integers back, and a note of both."""

    def __init__(self, shift: int = 0) -> None:
        self.blocks: dict[int, Any] = {}
        self.returned: list[int] = []
        self._shift = shift

    def take(self, size: int) -> tuple[int, Callable[[], object]]:
        if size > 1 << 40:
            raise MemoryError
        memory = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(memory) // 128) * 128 + self._shift
        self.blocks[address] = memory
        return address, lambda: self.give(address)

    def give(self, address: int) -> None:
        self.returned.append(address)
        del self.blocks[address]


class Limited(CPUDeviceAllocator):
    """Host memory with a limit, and a note of what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def allocate(self, byte_size: int) -> Any:
        self.asked.append(byte_size)
        if byte_size > 1 << 26:
            raise AllocationError(self.name, byte_size, "the limit")
        return super().allocate(byte_size)


@pytest.fixture
def heap() -> Heap:
    return Heap()


@pytest.fixture
def foreign(heap: Heap) -> ForeignHostAllocator:
    return ForeignHostAllocator(Source("a heap", heap.take))


@pytest.fixture
def unlimited() -> CPUDeviceAllocator:
    return CPUDeviceAllocator()


@pytest.fixture
def limited() -> Limited:
    return Limited()


def library(name: str) -> Any:
    """The adapter of a library; without the library its tests are skipped."""
    try:
        return getattr(interop, name)
    except NoDeviceError as error:
        pytest.skip(str(error))


def address_of(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def check_allocator(allocator: Any, behind: CPUDeviceAllocator) -> None:
    """Foreign memory is usable, full is full, and all of it goes back."""
    first, second = allocator.allocate(SIZE), allocator.allocate(1)
    first[:] = 7
    second[:] = 9
    assert (7, 9) == (first[SIZE - 1], second[0])
    assert behind.live_blocks
    with pytest.raises(AllocationError):
        allocator.allocate(1 << 30)
    with pytest.raises(InvalidPointerError):
        allocator.release(first[:])
    for block in (first, second):
        allocator.release(block)
    assert allocator.allocate(0) is None
    assert 0 == allocator.live_blocks
