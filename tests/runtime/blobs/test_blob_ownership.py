"""Whose memory a blob's is: nothing is freed that the blob, after the same call, goes on using (H5, H18)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blob_fixtures import each_place
from blob_views import snapshot
from loops import some

from syncedmem import runtime
from syncedmem.model import BufferMismatchError, DeviceError, SyncedHead
from syncedmem.runtime import Adaptor, CPUDeviceAllocator, SimulatedDeviceAllocator, SimulatedDeviceError

Blob: Any = runtime.Blob
place = each_place
NUMBERS = np.arange(8, dtype=np.float32)
OURS = "lies in this blob's own memory, which would be freed"


def sides(place: Any) -> tuple[str, ...]:
    """The sides that a blob on this device has."""
    return ("cpu",) if place is None else ("cpu", "gpu")


def written(place: Any, side: str, capacity: int) -> Any:
    """A blob of six elements with numbers on one side, in memory that is larger."""
    blob = Blob((capacity,), device=place)
    for part in ("data", "diff"):
        setattr(blob, part, NUMBERS[:capacity])
        getattr(blob, f"mutable_{side}_{part}")()
    return blob.reshape((6,))


def test_the_memory_of_the_shape_is_not_adopted(place: Any) -> None:
    """Another number of axes frees that memory."""
    for side in some(sides(place)):
        blob = Blob((1,), dtype=np.int32, device=place)
        extents = getattr(blob.shape_memory, f"mutable_{side}_data")()
        before = snapshot(blob)
        for part in ("data", "diff"):
            with pytest.raises(BufferMismatchError, match=f"set_{side}_{part} cannot adopt .*: it {OURS}"):
                getattr(blob, f"set_{side}_{part}")(extents)
        assert before == snapshot(blob)

        other = Blob((1,), dtype=np.int32, device=place)
        getattr(other, f"set_{side}_data")(extents)  # as any memory of somebody else's, which its caller keeps
        assert [1] == other.cpu_data().tolist()
        with pytest.raises(BufferMismatchError, match=f"share_data cannot adopt .*: its memory {OURS}"):
            blob.share_data(other)

        larger = Blob((2,), dtype=np.int32, device=place).reshape((1,))
        extents = getattr(larger.shape_memory, f"mutable_{side}_data")()
        with pytest.raises(BufferMismatchError, match=f"set_{side}_data cannot adopt .*: it {OURS}"):
            getattr(larger, f"set_{side}_data")(extents)
        assert 2 == larger.capacity


def test_what_is_not_freed_may_be_adopted(place: Any) -> None:
    """A buffer of the caller may be adopted again, or a part of it."""
    for side in some(sides(place)):
        mine: Any = np.zeros(32, np.uint8) if side == "cpu" else place.empty(32)
        blob = Blob((8,), device=place)
        getattr(blob, f"set_{side}_data")(mine)
        getattr(blob, f"set_{side}_diff")(mine)
        blob.reshape((6,))
        for part in ("data", "diff", "data"):
            getattr(blob, f"set_{side}_{part}")(mine)
            getattr(blob, f"set_{side}_{part}")(mine[:24])
        assert 6 == blob.capacity


def test_a_diff_that_holds_the_data_is_not_given_up(place: Any) -> None:
    """The data has adopted the diff while both had the blob's size; then the blob became smaller."""
    for side in some(sides(place)):
        blob = written(place, side, 8).reshape((8,))
        getattr(blob, f"set_{side}_data")(getattr(blob, f"mutable_{side}_diff")())
        blob.reshape((6,))
        mine: Any = np.ones(6, np.float32) if side == "cpu" else place.empty(24)
        with pytest.raises(BufferMismatchError, match=f"set_{side}_diff cannot adopt .*: the data {OURS}"):
            getattr(blob, f"set_{side}_diff")(mine)

        assert NUMBERS[:6].tolist() == blob.data.tolist()


def test_what_was_adopted_from_a_blob_is_not_shared_in_its_place(place: Any) -> None:
    """The other blob, or the other part, has adopted this blob's memory, which sharing would free."""
    for side in some(sides(place)):
        for part, other_part in (("data", "diff"), ("diff", "data")):
            blob, other = written(place, side, 8), Blob((6,), device=place)
            getattr(other, f"set_{side}_{part}")(getattr(blob, f"mutable_{side}_{part}")())
            before = snapshot(blob)
            with pytest.raises(BufferMismatchError, match=f"share_{part} cannot adopt Blob .*: its memory {OURS}"):
                getattr(blob, f"share_{part}")(other)
            assert before == snapshot(blob)

            blob, other = written(place, side, 6), Blob((6,), device=place)
            getattr(blob, f"set_{side}_{other_part}")(getattr(blob, f"mutable_{side}_{part}")())
            getattr(blob, f"share_{part}")(blob)  # gives nothing up
            with pytest.raises(BufferMismatchError, match=f"the other part {OURS}"):
                getattr(blob, f"share_{part}")(other)
            assert NUMBERS[:6].tolist() == getattr(blob, other_part).tolist()


def test_an_allocator_that_cannot_compare_fails_the_call_and_nothing_else() -> None:
    class Confused(Adaptor):
        def overlaps(self, first: Any, second: Any) -> bool:
            raise RuntimeError(f"which was it, {len(first)} or {len(second)}?")

    blob = Blob((8,), host=Confused(CPUDeviceAllocator()), device=None)
    blob.data = NUMBERS
    blob.reshape((6,))
    with pytest.raises(
        DeviceError, match=r"comparing two buffers failed on .*: RuntimeError: which was it, 24 or 32\?"
    ):
        blob.set_cpu_data(np.ones(6, np.float32))

    assert (8, SyncedHead.HEAD_AT_CPU) == (blob.capacity, blob.data_memory.head)
    assert NUMBERS[:6].tolist() == blob.data.tolist()


def test_an_exporter_may_be_freed_through_a_sharer(device: SimulatedDeviceAllocator) -> None:
    """The sharer cannot know who has adopted its memory; the blob itself refuses."""
    blob, sharer = Blob((2, 3), device=device), Blob((2, 3), device=device)
    blob.set_gpu_data(blob.mutable_gpu_diff())
    sharer.share_diff(blob)
    mine = device.allocate(24)
    with pytest.raises(BufferMismatchError, match="lies in this blob's own memory, which would be freed"):
        blob.set_gpu_diff(mine)
    sharer.set_gpu_diff(mine)
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        blob.cpu_data()
    sharer.set_gpu_diff(device.allocate(24))
    device.release(mine)
