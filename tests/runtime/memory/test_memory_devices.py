"""`SyncedMemory` on every device, on none, and on another than the current one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from subjects import SIZE, devices, filled

from syncedmem.model import (
    WrongDeviceError,
)
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory, using_device


@pytest.mark.parametrize("allocator", devices(), ids=lambda allocator: str(allocator.device_type.name))
def test_views_of_another_type_are_alike_on_every_device(allocator: Any) -> None:
    """`get` and `set` use the type of the view; and such a view can be adopted."""
    numbers = np.arange(SIZE // 4, dtype=np.float32)
    with SyncedMemory(SIZE, device=allocator) as memory, SyncedMemory(SIZE - 4, device=allocator) as other:
        memory.mutable_gpu_data().view(np.float32).set(numbers)
        floats = memory.gpu_data().view(np.float32)
        other.set_gpu_data(memory.mutable_gpu_data().view(np.float32)[1:])

        assert (np.float32, numbers.shape, numbers.tolist()) == (floats.dtype, floats.shape, floats.get().tolist())
        assert numbers[1:].tolist() == other.cpu_data().view(np.float32).tolist()
        assert numbers.tolist() == memory.cpu_data().view(np.float32).tolist()
        with pytest.raises((ValueError, TypeError)):
            memory.gpu_data()[1:].view(np.float32)


def test_the_device_check_refuses_every_call_while_another_device_is_current() -> None:
    """It holds for close() too; the finaliser frees nevertheless, on the memory's own device."""
    device = SimulatedDeviceAllocator()
    memory = SyncedMemory(SIZE, device=device, check_device=True)
    filled(memory).gpu_data()
    with using_device(3):
        for call in (memory.cpu_data, memory.mutable_cpu_data, memory.gpu_data, memory.close):
            with pytest.raises(WrongDeviceError, match="lives on device 0, but device 3 is current"):
                call()
        del memory, call

        assert device.live_blocks == 0
