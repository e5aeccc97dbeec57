"""Fixtures for tests of blobs: places where a blob can be, and blobs in known states.

Different modules need different places under the same name, so each module chooses one: ``place = each_place``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_views import HEADS, at_head
from subjects import devices

from syncedmem import runtime

if TYPE_CHECKING:
    from syncedmem.runtime import SimulatedDeviceAllocator

Blob: Any = runtime.Blob
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
ROW = np.arange(6, dtype=np.float32).reshape(2, 3)
PLACES: list[Any] = devices()
_NAMES = [device.device_type.name.lower() for device in PLACES]


@pytest.fixture(params=[None, *PLACES], ids=["cpu", *_NAMES])
def each_place(request: pytest.FixtureRequest) -> Any:
    """No device, and each device of this machine in turn."""
    return request.param


@pytest.fixture
def untouched(device: SimulatedDeviceAllocator) -> Any:
    """A new blob of 2 x 3 x 4 x 5, to which nothing was written."""
    return Blob(2, 3, 4, 5, device=device)


@pytest.fixture(params=PLACES, ids=_NAMES)
def each_device(request: pytest.FixtureRequest) -> Any:
    """Each device of this machine in turn."""
    return request.param


@pytest.fixture
def on_both_sides(device: SimulatedDeviceAllocator) -> Any:
    """A blob of 2 x 3 with fresh data on both sides."""
    blob = Blob((2, 3), device=device)
    at_head(blob.data_memory, SYNCED, ROW)
    return blob
