"""What tests of blobs begin with: places for a blob to be, and blobs in known states.

Modules mean different ones by the same name, so each says which it means: ``place = each_place``.
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
    """No device, and every device of this machine."""
    return request.param


@pytest.fixture
def untouched(device: SimulatedDeviceAllocator) -> Any:
    """A blob of 2 x 3 x 4 x 5 that nobody has written."""
    return Blob(2, 3, 4, 5, device=device)


@pytest.fixture(params=PLACES, ids=_NAMES)
def each_device(request: pytest.FixtureRequest) -> Any:
    """Every device of this machine."""
    return request.param


@pytest.fixture
def on_both_sides(device: SimulatedDeviceAllocator) -> Any:
    """A blob of 2 x 3 with data on both sides."""
    blob = Blob((2, 3), device=device)
    at_head(blob.data_memory, SYNCED, ROW)
    return blob
