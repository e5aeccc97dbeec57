"""Arrays of NumPy that a memory, a buffer or a blob has adopted: what is refused, and what is refused later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import devices

from syncedmem.model import BufferMismatchError, InvalidPointerError, SyncedHead
from syncedmem.runtime import Blob, Buffer, CPUDeviceAllocator, MemcpyKind, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 6


@pytest.fixture(params=devices(), ids=lambda place: place.device_type.name.lower())
def place(request: pytest.FixtureRequest) -> Any:
    return request.param


def numbers() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return an array that shows whether somebody has written to it."""
    return np.arange(COUNT, dtype=np.float32)


def test_a_view_that_a_memory_has_lent_can_be_adopted_and_stays_writeable(place: Any) -> None:
    """A view that was lent before it becomes read-only, but not the one that is the memory by now."""
    with SyncedMemory(COUNT * 4, device=place) as memory:
        memory.set_cpu_data(numbers())
        memory.gpu_data()
        view = memory.mutable_cpu_data()
        memory.set_cpu_data(view)
        memory.gpu_data()
        memory.mutable_cpu_data()[0] = 7
        assert (7, True) == (view[0], view.flags.writeable)


# --- an array that was made read-only after its adoption


def adopted_by_a_memory(array: Any, place: Any) -> SyncedMemory:
    memory = SyncedMemory(array.nbytes, device=place)
    memory.set_cpu_data(array)
    return memory


def refused(use: Any) -> None:
    """Make a call that must be refused."""
    with pytest.raises(InvalidPointerError, match="read-only since"):
        use()


FORMS: list[Callable[[Any], Any]] = [
    lambda array: array,
    lambda array: array.reshape(2, 3),
    lambda array: array.view(np.uint8),
    lambda array: array[1:],
]


@pytest.mark.parametrize("form", FORMS)
def test_no_copy_goes_into_an_array_that_is_read_only_by_now(place: Any, form: Any) -> None:
    """The flag of the array that was handed in counts; the memory has a view of its own, which stays writeable."""
    array = form(numbers())
    before = array.tolist()
    with adopted_by_a_memory(array, place) as memory:
        memory.mutable_gpu_data().set(np.zeros(array.nbytes, np.uint8))
        array.flags.writeable = False
        for use in (memory.cpu_data, memory.mutable_cpu_data):
            refused(use)
            assert (SyncedHead.HEAD_AT_GPU, before) == (memory.head, array.tolist())
        array.flags.writeable = True
        assert not memory.cpu_data().any()
        assert not array.any()


def test_no_view_to_write_an_array_that_is_read_only_by_now(place: Any) -> None:
    """The first call after the adoption is the quick one, and so are calls after it; each asks the array."""
    array = numbers()
    with adopted_by_a_memory(array, place) as memory:
        memory.mutable_cpu_data()
        for head in (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED):
            array.flags.writeable = False
            refused(memory.mutable_cpu_data)
            assert (head, numbers().tobytes()) == (memory.head, memory.cpu_data().tobytes())
            memory.gpu_data()
            array.flags.writeable = True
        memory.mutable_cpu_data()[:] = 1
        assert (SyncedHead.HEAD_AT_CPU, 1) == (memory.head, array.view(np.uint8)[0])


def test_a_read_only_array_can_be_read_pushed_and_given_up(place: Any) -> None:
    array, other = numbers(), numbers()
    with adopted_by_a_memory(array, place) as memory:
        array.flags.writeable = False
        memory.async_gpu_push(stream=place.stream())
        assert array.tobytes() == memory.gpu_data().get().tobytes()
        memory.mutable_gpu_data()
        memory.set_cpu_data(other)
        memory.mutable_cpu_data()[:] = 0

    assert (numbers().tolist(), 0) == (array.tolist(), other.sum())


def test_a_blob_does_not_write_an_array_that_is_read_only_by_now(place: Any) -> None:
    array = numbers()
    blob = Blob.from_array(array, device=place)
    blob.mutable_cpu_data()
    array.flags.writeable = False

    def assign() -> None:
        blob.data = 1

    def subtract() -> None:
        blob.data -= 1

    for use in (blob.mutable_cpu_data, assign, subtract, lambda: blob.scale_data(2)):
        refused(use)
    blob.diff = 1
    refused(blob.update)
    assert (SyncedHead.HEAD_AT_CPU, numbers().tolist()) == (blob.data_memory.head, array.tolist())
    array.flags.writeable = True
    blob.update()
    assert (numbers() - 1).tolist() == array.tolist()


def test_a_buffer_does_not_write_an_array_that_is_read_only_by_now(place: Any) -> None:
    array = numbers()
    with Buffer.from_external(array) as mine, Buffer(array.nbytes, place) as source:
        place.memset_zero(source.ptr, array.nbytes)
        array.flags.writeable = False
        refused(lambda: mine.copy_from(source))
        source.copy_from(mine)

    assert numbers().tolist() == array.tolist()


def test_a_pointer_of_the_host_is_not_written_after_its_array_became_read_only() -> None:
    cpu, array = CPUDeviceAllocator(), numbers()
    ptr = cpu.adopt(array, array.nbytes)
    array.flags.writeable = False
    refused(lambda: cpu.memset_zero(ptr, 4))
    refused(lambda: cpu.memcpy(np.zeros(4, np.uint8), ptr, 4))
    cpu.memcpy(ptr, np.zeros(4, np.uint8), 4)

    assert (np.ndarray, numbers().tolist()) == (type(ptr), array.tolist())


def test_of_two_memories_over_the_same_bytes_neither_knows_what_the_other_writes(place: Any) -> None:
    """As in Caffe.  The second one is told by a call for its host side to write."""
    array = np.zeros(8, np.uint8)
    with SyncedMemory(8, device=place, checked=False) as first, SyncedMemory(8, device=place, checked=False) as second:
        for memory in (first, second):
            memory.set_cpu_data(array)
            memory.gpu_data()
        first.mutable_cpu_data()[:] = 3

        assert (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED) == (first.head, second.head)
        assert (3, 0) == (second.cpu_data()[0], second.gpu_data().get()[0])
        second.mutable_cpu_data()
        assert 3 == second.gpu_data().get()[0]


# --- arrays with a mask


@pytest.mark.parametrize("mask", [True, False])
def test_a_masked_array_is_not_adopted(place: Any, mask: bool) -> None:
    """Its mask would be lost.  It makes no difference that it may mask nothing: somebody may mask an item later."""
    masked: Any = np.ma.array(numbers(), mask=mask)
    memory, blob = SyncedMemory(masked.nbytes, device=place), Blob((COUNT,), device=place)
    ways: list[Any] = [
        lambda: memory.set_cpu_data(masked),
        lambda: memory.set_gpu_data(masked),
        lambda: blob.set_cpu_data(masked),
        lambda: blob.set_cpu_diff(masked),
        lambda: Buffer.from_external(masked),
    ]
    for way in ways:
        with pytest.raises(BufferMismatchError):
            way()
    assert {SyncedHead.UNINITIALIZED} == {memory.head for memory in (memory, blob.data_memory, blob.diff_memory)}


def test_a_masked_array_is_no_end_of_a_copy(place: Any) -> None:
    masked, block = np.ma.array(np.ones(8, np.uint8), mask=True), place.allocate(8)
    place.memset_zero(block, 8)
    for source, target, kind in ((masked, block, MemcpyKind.CPU2CUDA), (block, masked, MemcpyKind.CUDA2CPU)):
        with pytest.raises(InvalidPointerError):
            place.memcpy(source, target, 8, kind)

    assert ([0] * 8, [1] * 8) == (block.get().tolist(), masked.data.tolist())
    place.release(block)


def test_a_masked_array_is_no_operand() -> None:
    row, masked = np.ones(4, np.float32), np.ma.array(np.ones(4, np.float32), mask=True)
    arithmetic = CPUDeviceAllocator().arithmetic()
    for use in (lambda: arithmetic.axpy(1, masked, row), lambda: arithmetic.asum(masked)):
        with pytest.raises(InvalidPointerError):
            use()
