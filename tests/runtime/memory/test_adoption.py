"""`SyncedMemory`: buffers of others that it adopts, or refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from subjects import SIZE, filled

from syncedmem.model import BufferMismatchError, SyncedHead
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory


@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (None, "a buffer is needed"),
        (bytes(SIZE), "read-only"),
        (bytearray(SIZE - 1), f"it has {SIZE - 1} bytes, and {SIZE} are needed"),
        (np.zeros(2 * SIZE, np.uint8)[::2], "not contiguous"),
        (object(), "not host memory"),
        (np.array([None] * SIZE), "Python objects"),
    ],
    ids=["none", "read-only", "too small", "strided", "no buffer", "objects"],
)
def test_unsuitable_host_buffers_are_refused(memory: SyncedMemory, buffer: Any, reason: str) -> None:
    """The error says why and is a ValueError, and nothing has changed."""
    filled(memory)

    with pytest.raises(BufferMismatchError, match=reason) as caught:
        memory.set_cpu_data(buffer)

    assert isinstance(caught.value, ValueError)
    assert caught.value.buffer is buffer
    assert (memory.head, memory.own_cpu_data) == (SyncedHead.HEAD_AT_CPU, True)
    assert memory.cpu_data().tolist() == [7] * SIZE


def test_the_same_external_buffer_may_be_adopted_again(memory: SyncedMemory) -> None:
    """The memory does not own it, so nothing would be freed."""
    buffer = bytearray(SIZE)
    memory.set_cpu_data(buffer)
    buffer[:] = bytes([5]) * SIZE
    memory.set_cpu_data(buffer)

    assert memory.gpu_data().get().tolist() == [5] * SIZE


def test_device_memory_of_another_device_is_refused(memory: SyncedMemory) -> None:
    other = SimulatedDeviceAllocator(1)

    with pytest.raises(BufferMismatchError, match="another device"):
        memory.set_gpu_data(other.empty(SIZE))


class Interface:
    """An array that tells where its memory is, as NumPy's interface of arrays says it, and has no buffer protocol."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


def test_an_array_with_the_interface_of_arrays_is_adopted(memory: SyncedMemory) -> None:
    array = np.arange(SIZE, dtype=np.uint8)
    memory.set_cpu_data(Interface(array))
    memory.mutable_cpu_data()[0] = 77
    assert 77 == array[0]
    assert not memory.own_cpu_data
