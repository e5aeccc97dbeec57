"""Blocks of the simulated device, and rows of bytes to fill them with."""

from __future__ import annotations

from typing import Any

import numpy as np

from syncedmem.runtime import MemcpyKind, SimulatedArray, SimulatedDeviceAllocator

SIZE = 16
UP, DOWN, ACROSS = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA


def row(value: int, size: int = SIZE) -> Any:
    """Host bytes that are all the same."""
    return np.full(size, value, np.uint8)


def allocated(device: SimulatedDeviceAllocator, value: int | None = None, size: int = SIZE) -> SimulatedArray:
    """A block that is there, filled with a value if one is given."""
    block = device.allocate(size)
    assert block is not None
    if value is not None:
        block.set(row(value, size))
    return block
