"""A pytest plugin with fixtures for several modules: a device, a memory on it, a gate, errors that are only printed."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest
from subjects import SIZE

from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Iterator
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
def gate() -> Iterator[threading.Event]:
    """An event that a stream can wait for; it is set at the end, so that nothing hangs."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """Return the list of errors that Python only prints, because no code can catch them."""
    errors: list[BaseException | None] = []

    def note(unraisable: UnraisableHookArgs) -> None:
        errors.append(unraisable.exc_value)

    monkeypatch.setattr(sys, "unraisablehook", note)
    return errors
