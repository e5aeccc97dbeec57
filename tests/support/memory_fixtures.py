"""Fixtures of several modules, as a plugin of pytest: a device of the test's own, a memory, errors."""

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
    """A simulated device of the test's own."""
    return SimulatedDeviceAllocator()


@pytest.fixture
def memory(device: SimulatedDeviceAllocator) -> SyncedMemory:
    """A fresh memory on it."""
    return SyncedMemory(SIZE, device=device)


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """What Python prints because nobody can catch it."""
    errors: list[BaseException | None] = []

    def note(unraisable: UnraisableHookArgs) -> None:
        errors.append(unraisable.exc_value)

    monkeypatch.setattr(sys, "unraisablehook", note)
    return errors
