"""What tests of blobs begin with: places for a blob to be, and blobs in known states.

Modules mean different ones by the same name, so each says which it means: ``place = each_place``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from benches import devices
from blob_views import HEADS

from syncedmem import runtime

if TYPE_CHECKING:
    from syncedmem.runtime import SimulatedDeviceAllocator

Blob: Any = runtime.Blob
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
_DEVICES: list[Any] = devices()
_NAMES = [device.device_type.name.lower() for device in _DEVICES]


@pytest.fixture(params=[None, *_DEVICES], ids=["cpu", *_NAMES])
def each_place(request: pytest.FixtureRequest) -> Any:
    """No device, and every device of this machine."""
    return request.param


@pytest.fixture
def untouched(device: SimulatedDeviceAllocator) -> Any:
    """A blob of 2 x 3 x 4 x 5 that nobody has written."""
    return Blob(2, 3, 4, 5, device=device)
