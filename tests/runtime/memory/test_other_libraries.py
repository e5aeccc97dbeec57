"""Memories and the array libraries of others: NumPy's conversions, DLPack, and buffers that come from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from syncedmem.model import BufferMismatchError, ClosedMemoryError, InvalidArgumentError, Mode, SyncedHead, using_mode
from syncedmem.runtime import Blob, SimulatedDeviceAllocator, SyncedMemory

SIZE = 8


class Tensor:
    """An array of a library that has no buffer protocol, as PyTorch's; its types are not NumPy's."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.dtype = object()
        self.shape = array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self._array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)


@pytest.fixture
def memory() -> SyncedMemory:
    return SyncedMemory(SIZE, device="simulated")


def test_numpy_takes_a_memory_for_what_cpu_data_returns(memory: SyncedMemory) -> None:
    memory.mutable_gpu_data().set(np.arange(SIZE, dtype=np.uint8))
    array = np.asarray(memory)

    assert (SyncedHead.SYNCED, [*range(SIZE)]) == (memory.head, array.tolist())
    assert np.shares_memory(array, memory.cpu_data())
    assert not array.flags.writeable
    assert "float32" == np.asarray(memory, np.float32).dtype.name
    assert np.array(memory).flags.writeable


def test_dlpack_gives_the_fresh_side_to_read(memory: SyncedMemory) -> None:
    """The arrays of this device cannot be exported, so the bytes come to the host."""
    memory.mutable_gpu_data().set(np.arange(SIZE, dtype=np.uint8))
    array = np.from_dlpack(memory)

    assert (1, 0) == memory.__dlpack_device__()
    assert ([*range(SIZE)], False) == (array.tolist(), array.flags.writeable)
    assert np.shares_memory(array, memory.cpu_data())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, BufferError),
        ({"dl_device": (2, 0)}, BufferError),
        ({"dl_device": 5}, InvalidArgumentError),
        ({"stream": 3, "max_version": (1, 0)}, BufferError),
    ],
)
def test_what_dlpack_cannot_say_is_refused_and_moves_no_head(
    memory: SyncedMemory, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        memory.__dlpack__(**options)

    assert SyncedHead.UNINITIALIZED is memory.head


def test_a_memory_that_is_closed_or_empty(memory: SyncedMemory) -> None:
    blob = Blob((2,), device="simulated")
    for closed in (memory, blob):
        closed.close()
        for take in (np.asarray, np.from_dlpack):
            with pytest.raises(ClosedMemoryError):
                take(closed)
        with pytest.raises(ClosedMemoryError):
            closed.__dlpack__()
    for take in (np.asarray, np.from_dlpack):
        assert 0 == len(take(SyncedMemory(0, device="simulated")))


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


@pytest.mark.parametrize("read_only", [False, True])
def test_an_array_of_another_library_is_adopted(memory: SyncedMemory, read_only: bool) -> None:
    """Through DLPack, or what NumPy says of the same bytes if a capsule cannot say that they may be written."""
    numbers = np.zeros(2, np.float32)
    tensor = Tensor(numbers)
    if read_only:  # a capsule without a version
        tensor.__dlpack__ = lambda **_: numbers.__dlpack__()  # type: ignore[method-assign]
    memory.set_cpu_data(tensor)
    memory.mutable_cpu_data().view(np.float32)[:] = 1, 2

    assert [1, 2] == numbers.tolist()


def test_what_another_library_has_and_a_memory_cannot_adopt_is_refused(memory: SyncedMemory) -> None:
    fixed = np.zeros(2, np.float32)
    fixed.flags.writeable = False
    copying = Tensor(fixed)
    copying.__array__ = lambda *_, **__: np.zeros(2, np.float32)  # type: ignore[method-assign]
    others: list[Any] = [
        Tensor(np.zeros(1, np.float32)),
        Tensor(np.zeros(4, np.float32)[::2]),
        *(Tensor(fixed), copying),
        Tensor(np.zeros(2, "M8[s]")),
        *(SyncedMemory(SIZE, device="simulated"), memory, Blob((2,), device="simulated")),
    ]
    for wrong in others:
        with pytest.raises(BufferMismatchError) as refused:
            memory.set_cpu_data(wrong)
        assert ("set_cpu_data", True) == (refused.value.call, refused.value.buffer is wrong)

    assert SyncedHead.UNINITIALIZED is memory.head


def test_a_blob_knows_the_types_of_another_library() -> None:
    numbers, blob = np.zeros((2, 3), np.float32), Blob((2, 3), device="simulated")
    blob.set_cpu_data(Tensor(numbers))
    blob.mutable_cpu_data()[1, 2] = 5
    for wrong in (np.zeros((2, 3), np.int64), np.zeros((3, 2), np.float32), np.zeros((4, 6), np.float32)[::2, ::2]):
        with pytest.raises(BufferMismatchError) as refused:
            blob.set_cpu_data(Tensor(wrong))
        assert "set_cpu_data" == refused.value.call

    assert 5 == numbers[1, 2]


@pytest.mark.parametrize("mode", Mode)
def test_host_memory_of_the_simulated_device_is_aligned_as_other_host_memory(mode: Mode) -> None:
    """To 64 bytes: JAX copies arrays that are aligned less, without a word."""
    with using_mode(mode):
        places = {Blob((n,), device=SimulatedDeviceAllocator()).cpu_data().ctypes.data % 64 for n in range(1, 30)}

    assert {0} == places
