"""The accessors of a `Blob`: the heads that they move, the views that they give, and their short way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_fixtures import Blob, each_place
from blob_views import got

from syncedmem.model import ClosedMemoryError

if TYPE_CHECKING:
    from syncedmem.runtime import SimulatedDeviceAllocator

place = each_place


def test_an_accessor_waits_for_nothing_that_is_not_there(device: SimulatedDeviceAllocator) -> None:
    """During a push in flight the blob calls its memory each time, until nothing is left to do."""
    blob = Blob((2, 3), device=device)
    blob.mutable_cpu_data()[...] = 7
    stream = blob.data_memory.device
    assert stream is device
    queue = device.stream()
    blob.data_memory.async_gpu_push(stream=queue)
    first = blob.gpu_data()
    blob.mutable_cpu_data()[...] = 8

    assert [7] * 6 == first.get().ravel().tolist()
    assert [8] * 6 == blob.gpu_data().get().ravel().tolist()


# --- the short way, when nothing is to be done


def test_every_accessor_has_a_short_way(place: Any) -> None:
    """A second call with nothing to do returns another array object over the same bytes."""
    blob = Blob((2, 3), device=place)
    names = ["mutable_cpu_data", "cpu_data"] + ["mutable_gpu_data", "gpu_data"] * (place is not None)
    for name in names:
        first, second, third = (getattr(blob, name)() for _ in range(3))
        assert (first is not second, second is not third, (2, 3)) == (True, True, third.shape)
        if "mutable_cpu" in name:
            first[...] = 7
        elif "mutable" in name:
            first.set(np.full((2, 3), 8, np.float32))
        assert got(third).tolist() == got(first).tolist()

    assert ([[8] * 3] * 2 if place is not None else [[7] * 3] * 2) == blob.cpu_data().tolist()


@pytest.mark.parametrize("call", ["gpu_data", "mutable_gpu_data", "cpu_data", "mutable_cpu_data"])
def test_the_short_way_is_left_when_there_is_something_to_do(device: SimulatedDeviceAllocator, call: str) -> None:
    """The other side is written between two calls, through this blob or through the memory."""
    for others in ("blob", "memory"):
        blob = Blob((2, 3), device=device)
        view = getattr(blob, call)
        view()
        view()
        if "gpu" in call:
            (blob.mutable_cpu_data() if others == "blob" else blob.data_memory.mutable_cpu_data())[...] = 0x40
        else:
            there = blob.mutable_gpu_data() if others == "blob" else blob.data_memory.mutable_gpu_data()
            there.set(np.full(there.shape, 0x40, there.dtype))
        assert (64.0 if others == "blob" else 3.0039215087890625) == got(view())[1, 2]


def test_a_memory_that_was_closed_is_closed_for_its_blobs(place: Any) -> None:
    """It holds for the fast path too, which has stored a view of the memory."""
    blob = Blob((2, 3), device=place)
    blob.mutable_cpu_data()
    blob.mutable_cpu_data()
    blob.data_memory.close()
    for use in (blob.mutable_cpu_data, blob.update, blob.asum_data):
        with pytest.raises(ClosedMemoryError, match="this memory of 24 bytes is closed"):
            use()

    assert "[24 bytes, closed]" in repr(blob)
    assert [0] * 6 == blob.diff.ravel().tolist()
