"""Buffers that a `Blob` adopts: what it keeps and loses by that, and which it refuses."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from blob_fixtures import CPU, GPU, SYNCED, UNINITIALIZED, Blob, each_place, untouched
from blob_views import at_head, snapshot

from syncedmem.model import BufferMismatchError, NoDeviceError
from syncedmem.runtime import SimulatedDeviceAllocator

place = each_place
blob = untouched


def test_adoption_of_the_right_size_is_seen_by_all_sharers(place: Any) -> None:
    """The memory itself is redirected, as in Caffe (H20)."""
    blob, other = Blob((2, 3), device=place), Blob((6,), device=place)
    other.share_data(blob)
    mine = np.arange(6, dtype=np.float32)
    memory = blob.data_memory
    blob.set_cpu_data(mine)
    blob.mutable_cpu_data()[0, 0] = 9

    assert (9, 9, memory) == (mine[0], other.cpu_data()[0], blob.data_memory)
    assert UNINITIALIZED is blob.diff_memory.head


def test_adoption_of_another_size_brings_new_memory_and_its_capacity(place: Any) -> None:
    """The diff is lost and sharing ends, as in Caffe; nothing can be written past the end, as it can there (H2)."""
    blob, other = Blob((100,), device=place), Blob((100,), device=place)
    other.share_data(blob)
    at_head(blob.diff_memory, CPU, np.ones(100, np.float32))
    mine = np.arange(10, dtype=np.float32)
    blob.reshape((10,)).set_cpu_data(mine)

    assert (10, 40, 40) == (blob.capacity, blob.data_memory.size, blob.diff_memory.size)
    assert UNINITIALIZED is blob.diff_memory.head
    assert 400 == other.data_memory.size
    blob.reshape((100,))
    blob.mutable_cpu_diff()[99] = 7
    assert (400, UNINITIALIZED) == (blob.diff_memory.size, blob.data_memory.head)
    assert list(range(10)) == mine.tolist()


@pytest.mark.parametrize("side", ["data", "diff"])
def test_a_buffer_is_let_go_when_another_takes_its_place(place: Any, side: str) -> None:
    blob = Blob((6,), device=place)
    first: Any = np.zeros(6, np.float32)
    getattr(blob, f"set_cpu_{side}")(first)
    getattr(blob, f"mutable_cpu_{side}")()
    getattr(blob, f"cpu_{side}")()
    kept = weakref.ref(first)
    del first
    assert kept() is not None
    getattr(blob, f"set_cpu_{side}")(np.ones(6, np.float32))

    assert kept() is None


def test_adoption_drops_what_only_the_other_side_held(device: SimulatedDeviceAllocator) -> None:
    """As in Caffe: what is set is the newest, and what was newer before is gone (H8)."""
    blob = Blob((2,), device=device)
    at_head(blob.data_memory, GPU, np.array([1, 2], np.float32))
    blob.set_cpu_data(np.array([3, 4], np.float32))
    assert (CPU, [3, 4]) == (blob.data_memory.head, blob.gpu_data().get().tolist())

    blob.mutable_cpu_data()[...] = 5
    there: Any = device.empty(8)
    there.set(np.array([6, 7], np.float32).view(np.uint8))
    blob.set_gpu_data(there)
    assert (GPU, [6, 7]) == (blob.data_memory.head, blob.cpu_data().tolist())


@pytest.mark.parametrize("call", ["set_cpu_data", "set_cpu_diff"])
@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (np.zeros(5, np.float32), "it has 20 bytes, and 24 are needed"),
        (np.zeros(6, np.float64), "its elements are float64, and float32 are needed"),
        (np.zeros(6, np.int32).data, "its elements are int32, and float32 are needed"),
        (memoryview(bytearray(32))[1:], "it does not start at a multiple of 4 bytes, as float32 must"),
        (np.zeros(12, np.float32)[::2], "it is not contiguous"),
        (b"0123456789" * 3, "it is read-only"),
        (None, "a buffer is needed"),
        (7, "it is not host memory"),
    ],
)
def test_a_buffer_that_is_refused_changes_nothing(blob: Any, call: str, buffer: Any, reason: str) -> None:
    """Whether there is new memory to make or not."""
    for capacity in (6, 8):
        blob.reshape((capacity,)).shrink_to_fit().reshape((6,))
        at_head(blob.data_memory, SYNCED, np.arange(6, dtype=np.float32))
        before = snapshot(blob)
        with pytest.raises(BufferMismatchError, match=f"{call} cannot adopt .*{reason}"):
            getattr(blob, call)(buffer)

        assert before == snapshot(blob)


@pytest.mark.parametrize("call", ["set_gpu_data", "set_gpu_diff"])
def test_a_device_buffer_that_is_refused_changes_nothing(blob: Any, call: str) -> None:
    blob.reshape((6,))
    there: Any = SimulatedDeviceAllocator().empty(40)
    ours: Any = blob.device.empty(40)
    for buffer, reason in (
        (there, "memory of another device"),
        (ours[:20], "it has 20 bytes"),
        (ours[1:29].view(np.float32), "does not start at a multiple of 4 bytes"),
        (ours.view(np.int32), "its elements are int32"),
        (np.zeros(6, np.float32), "it is not memory of simulated:0"),
    ):
        before = snapshot(blob)
        with pytest.raises(BufferMismatchError, match=f"{call} cannot adopt .*{reason}"):
            getattr(blob, call)(buffer)
        assert before == snapshot(blob)
    with pytest.raises(NoDeviceError, match=f"{call}: cannot use a GPU"):
        getattr(Blob((2,), device=None), call)(ours)


def test_bytes_are_adopted_as_elements(place: Any) -> None:
    """What has no type of its own, or bytes; and a blob without elements takes what starts anywhere."""
    raw: Any
    for raw in (bytearray(24), memoryview(bytearray(24)), np.zeros(24, np.uint8), np.zeros(30, np.int8)):
        blob = Blob((2, 3), device=place)
        blob.set_cpu_data(raw)
        blob.mutable_cpu_data()[...] = 1
        assert [0, 0, 128, 63] == list(memoryview(raw).cast("B")[:4])
    empty = Blob(device=place)
    empty.set_cpu_data(memoryview(bytearray(8))[1:])
    assert CPU is empty.data_memory.head
