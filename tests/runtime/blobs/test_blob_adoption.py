"""Buffers that a `Blob` adopts, and those that it refuses; blobs with which it does not share.

The kit checks what adopting and sharing do to memories and heads (B23 to B27).
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from blob_fixtures import CPU, SYNCED, Blob, each_place, untouched
from blob_views import at_head, snapshot

from syncedmem.model import BufferMismatchError, InvalidArgumentError
from syncedmem.runtime import SimulatedDeviceAllocator

place = each_place
blob = untouched


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


@pytest.mark.parametrize("call", ["set_cpu_data", "set_cpu_diff"])
@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (memoryview(bytearray(32))[1:], "it does not start at a multiple of 4 bytes, as float32 must"),
        (np.zeros(12, np.float32)[::2], "it is not contiguous"),
        (np.zeros((3, 2), np.float32), r"its shape is \(3, 2\), and \(6,\) is needed, or a single axis"),
        (np.zeros((3, 2), np.float32).data, r"its shape is \(3, 2\), and \(6,\) is needed, or a single axis"),
    ],
)
def test_a_buffer_that_is_refused_changes_nothing(blob: Any, call: str, buffer: Any, reason: str) -> None:
    """It holds whether new memory has to be made or not; the kit hands in other buffers (B49)."""
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
        (ours[1:29].view(np.float32), "does not start at a multiple of 4 bytes"),
        (ours.view(np.int32), "its elements are int32"),
    ):
        before = snapshot(blob)
        with pytest.raises(BufferMismatchError, match=f"{call} cannot adopt .*{reason}"):
            getattr(blob, call)(buffer)
        assert before == snapshot(blob)


def test_bytes_are_adopted_as_elements(place: Any) -> None:
    """A buffer of bytes, or without a type, is accepted; a blob without elements accepts any address."""
    raw: Any
    for raw in (bytearray(24), memoryview(bytearray(24)), np.zeros(24, np.uint8), np.zeros(30, np.int8)):
        blob = Blob((2, 3), device=place)
        blob.set_cpu_data(raw)
        blob.mutable_cpu_data()[...] = 1
        assert [0, 0, 128, 63] == list(memoryview(raw).cast("B")[:4])
    empty = Blob(device=place)
    empty.set_cpu_data(memoryview(bytearray(8))[1:])
    assert CPU is empty.data_memory.head


# --- sharing


def test_a_blob_of_another_device_is_not_shared(blob: Any) -> None:
    cases: list[tuple[Any, str]] = [
        (Blob((120,), device=None), "a blob on simulated:0, as this one is, and not on the host"),
        (Blob((120,), device=SimulatedDeviceAllocator()), "and not on another simulated:0"),
    ]
    before = snapshot(blob)
    for other, reason in cases:
        for call in (blob.share_data, blob.share_diff):
            with pytest.raises(InvalidArgumentError, match=reason):
                call(other)

    assert before == snapshot(blob)
