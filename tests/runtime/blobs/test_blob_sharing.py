"""Memory that blobs share: it is one memory, and its capacity is that of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blob_fixtures import Blob, each_place, untouched
from blob_views import snapshot

from syncedmem.model import InvalidArgumentError, InvalidShapeError
from syncedmem.runtime import SimulatedDeviceAllocator

place = each_place
blob = untouched


def test_the_capacity_follows_sharing(place: Any) -> None:
    """In Caffe the old one stays, and what grows back into it writes past the end of the other's memory (H1)."""
    one, two = Blob((100,), device=place), Blob((10,), device=place)
    one.reshape((10,)).share_data(two)
    assert 10 == one.capacity
    one.reshape((100,))
    one.mutable_cpu_data()[99] = 7

    assert (400, 40) == (one.data_memory.size, two.data_memory.size)
    assert one.data_memory is not two.data_memory


def test_what_cannot_be_shared_is_refused(blob: Any) -> None:
    device: Any = blob.device
    cases: list[tuple[Any, type[Exception], str]] = [
        (Blob((119,), device=device), InvalidShapeError, "119 elements cannot be shared by 120"),
        (Blob((120,), np.float64, device=device), InvalidArgumentError, "a blob of float32"),
        (Blob((120,), device=None), InvalidArgumentError, "a blob on simulated:0, as this one is, and not on the host"),
        (Blob((120,), device=SimulatedDeviceAllocator()), InvalidArgumentError, "and not on another simulated:0"),
        (7, InvalidArgumentError, "other must be a Blob, got 7"),
    ]
    before = snapshot(blob)
    for other, error, reason in cases:
        for call in (blob.share_data, blob.share_diff):
            with pytest.raises(error, match=reason):
                call(other)

    assert before == snapshot(blob)
