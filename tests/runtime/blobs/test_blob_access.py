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


def test_views_are_fresh_and_over_the_memory(place: Any) -> None:
    """Also when nothing has to be done; and they follow the shape, adoption and sharing."""
    blob, other = Blob((2, 3), device=place), Blob((6,), device=place)
    first, second = blob.mutable_cpu_data(), blob.mutable_cpu_data()
    first[0, 1] = 7
    assert (second[0, 1], (2, 3)) == (7, blob.cpu_data().shape)
    assert (3, 2) == blob.reshape((3, 2)).cpu_data().shape

    mine = np.arange(6, dtype=np.float32)
    blob.set_cpu_data(mine)
    assert np.shares_memory(mine, blob.cpu_data())
    assert np.shares_memory(mine, blob.mutable_cpu_data())
    other.mutable_cpu_data()[...] = 9
    blob.share_data(other)
    assert [[9, 9]] * 3 == blob.cpu_data().tolist()
    if place is not None:
        assert [[9, 9]] * 3 == got(blob.gpu_data()).tolist()
        blob.mutable_gpu_data().set(np.ones((3, 2), np.float32))
        assert [1] * 6 == other.cpu_data().tolist()
        assert [1] * 6 == got(other.gpu_data()).tolist()


def test_an_accessor_waits_for_nothing_that_is_not_there(device: SimulatedDeviceAllocator) -> None:
    """A push in flight: the blob asks its memory each time, until nothing is left to do."""
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
    """Asked again with nothing to do, it shows the same bytes by another array object."""
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
    """The other side is written in between, through this blob or the memory."""
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
    """Also for the short way, which remembers a view of it."""
    blob = Blob((2, 3), device=place)
    blob.mutable_cpu_data()
    blob.mutable_cpu_data()
    blob.data_memory.close()
    for use in (blob.mutable_cpu_data, blob.update, blob.asum_data):
        with pytest.raises(ClosedMemoryError, match="this memory of 24 bytes is closed"):
            use()

    assert "[24 bytes, closed]" in repr(blob)
    assert [0] * 6 == blob.diff.ravel().tolist()
