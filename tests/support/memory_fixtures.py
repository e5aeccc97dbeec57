"""A pytest plugin with fixtures for several modules: a device, a memory on it, and errors that are only printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from subjects import SIZE

from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


@pytest.fixture
def device() -> SimulatedDeviceAllocator:
    """Return a new simulated device."""
    return SimulatedDeviceAllocator()


@pytest.fixture
def memory(device: SimulatedDeviceAllocator) -> SyncedMemory:
    """Return a new memory on this device."""
    return SyncedMemory(SIZE, device=device)


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """Return the list of errors that Python only prints, because no code can catch them."""
    errors: list[BaseException | None] = []

    def note(unraisable: UnraisableHookArgs) -> None:
        errors.append(unraisable.exc_value)

    monkeypatch.setattr(sys, "unraisablehook", note)
    return errors
