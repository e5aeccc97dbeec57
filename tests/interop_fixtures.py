"""What tests of interop share, as a plugin of pytest: somebody's heap, host memory, and addresses of both.

Modules mean different host memory by the same name, so each says which it means: ``cpu = unlimited``.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.runtime import CPUDeviceAllocator
from syncedmem.runtime.interop.foreign import ForeignHostAllocator, Source

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
        memory = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(memory) // 128) * 128 + self._shift
        self.blocks[address] = memory
        return address, lambda: self.give(address)

    def give(self, address: int) -> None:
        self.returned.append(address)
        del self.blocks[address]


@pytest.fixture
def heap() -> Heap:
    return Heap()


@pytest.fixture
def foreign(heap: Heap) -> ForeignHostAllocator:
    return ForeignHostAllocator(Source("a heap", heap.take))


@pytest.fixture
def unlimited() -> CPUDeviceAllocator:
    return CPUDeviceAllocator()


def address_of(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
