"""Blocks of the simulated device, and equal bytes to fill them with."""

from __future__ import annotations

from typing import Any

import numpy as np

from syncedmem.runtime import MemcpyKind, SimulatedArray, SimulatedDeviceAllocator

SIZE = 16
UP, DOWN, ACROSS = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA


def row(value: int, size: int = SIZE) -> Any:
    """Return equal bytes on the host."""
    return np.full(size, value, np.uint8)


def allocated(device: SimulatedDeviceAllocator, value: int | None = None, size: int = SIZE) -> SimulatedArray:
    """Return a new block, filled with a value if one is given."""
    block = device.allocate(size)
    assert block is not None
    if value is not None:
        block.set(row(value, size))
    return block
