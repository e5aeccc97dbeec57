"""Fixtures of several modules, as a plugin of pytest: a device of the test's own, and a memory on it."""

from __future__ import annotations

import pytest
from benches import SIZE

from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory


@pytest.fixture
def device() -> SimulatedDeviceAllocator:
    """A simulated device of the test's own."""
    return SimulatedDeviceAllocator()


@pytest.fixture
def memory(device: SimulatedDeviceAllocator) -> SyncedMemory:
    """A fresh memory on it."""
    return SyncedMemory(SIZE, device=device)
