"""Copies and pickles of blobs: what they share, and what goes with them."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from blob_fixtures import CPU, GPU, ROW, SYNCED, UNINITIALIZED, Blob, each_device
from blob_views import HEADS, at_head, snapshot

from syncedmem import runtime
from syncedmem.model import AllocationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.runtime import SimulatedDeviceAllocator

place = each_device


def test_a_shallow_copy_shares_and_a_deep_one_does_not(place: Any) -> None:
    """The elements are copied where they are fresh, and what lies behind the shape with them."""
    for head in HEADS:
        blob = Blob((2, 3), device=place)
        at_head(blob.data_memory, head, ROW)
        at_head(blob.diff_memory, CPU, ROW + 1)
        blob.reshape((3,))
        shallow, deep = copy.copy(blob), copy.deepcopy(blob)
        assert (blob.data_memory, blob.diff_memory) == (shallow.data_memory, shallow.diff_memory)
        assert {SYNCED: GPU}.get(head, head) is deep.data_memory.head
        assert head is blob.data_memory.head
        for it in (shallow, deep):
            assert ((3,), np.float32, place, 6) == (it.shape, it.dtype, it.device, it.capacity)
            it.reshape((2, 3))
            assert (ROW + 1).tolist() == it.cpu_diff().tolist()
            if head is not UNINITIALIZED:
                assert ROW.tolist() == it.cpu_data().tolist()
        deep.data = 9
        assert 9 not in blob.data
    assert "(0)" == copy.deepcopy(copy.copy(Blob(device=place))).shape_string


def test_blobs_that_share_are_deeply_copied_as_such(device: SimulatedDeviceAllocator) -> None:
    one, two = Blob((2, 3), device=device), Blob((6,), device=device)
    two.share_data(one)
    one.data = ROW
    first, second = copy.deepcopy([one, two])
    second.data[0] = 9

    assert first.data_memory is second.data_memory
    assert first.diff_memory is not second.diff_memory
    assert (9, 0) == (first.data[0, 0], one.data[0, 0])


def test_a_deep_copy_that_fails_leaves_nothing_behind(device: SimulatedDeviceAllocator) -> None:
    blob = Blob((2, 3), device=device)
    at_head(blob.data_memory, GPU, ROW)
    blocks, before = device.live_blocks, snapshot(blob)
    device.fail_at(1, "allocate")
    with pytest.raises(AllocationError):
        copy.deepcopy(blob)
    gc.collect()

    assert (blocks, before) == (device.live_blocks, snapshot(blob))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_goes_through_the_host(place: Any, protocol: int) -> None:
    for head in HEADS:
        blob = Blob((2, 3), device=place)
        at_head(blob.data_memory, head, ROW)
        back = pickle.loads(pickle.dumps(blob, protocol))  # noqa: S301 -- our own
        found = back.data_memory.head, back.diff_memory.head, back.shape, back.dtype
        assert (UNINITIALIZED if head is UNINITIALIZED else CPU, UNINITIALIZED, (2, 3), np.float32) == found
        if head is not UNINITIALIZED:
            assert ROW.tolist() == back.gpu_data().get().tolist()


class Layered(runtime.Blob[Any]):
    """A blob that somebody has derived, with an argument of their own."""

    __slots__ = ("layers",)

    def __init__(self, layer: str, *shape: Any, **options: Any) -> None:
        super().__init__(*shape, **options)
        self.layers = [layer]


class Named(Layered):
    """With attributes beside the slots."""

    def __init__(self, layer: str, *shape: Any, **options: Any) -> None:
        super().__init__(layer, *shape, **options)
        self.name, self.me = layer, self


def pickled(blob: Any) -> Any:
    """What comes back."""
    return pickle.loads(pickle.dumps(blob))  # noqa: S301 -- our own


COPIES: list[tuple[Callable[[Any], Any], bool]] = [(copy.copy, False), (copy.deepcopy, True), (pickled, True)]


@pytest.mark.parametrize(("copied", "deep"), COPIES)
def test_copies_of_a_derived_blob_keep_what_it_has_added(copied: Callable[[Any], Any], deep: bool) -> None:
    """Its ``__init__`` is not called, so it may need what it likes."""
    blob = Named("ip", (2, 3), device=None)
    blob.data = ROW
    other = copied(blob)
    assert (Named, "ip", ["ip"], ROW.tolist()) == (type(other), other.name, other.layers, other.data.tolist())
    assert (other.me is other, other.layers is not blob.layers) == (deep, deep)
    other.data[0, 0] = 7
    assert (0 if deep else 7) == blob.data[0, 0]


def test_what_is_pickled_without_a_device_or_a_shape_comes_back_so() -> None:
    empty = pickle.loads(pickle.dumps(Blob(dtype=np.int32, device=None)))  # noqa: S301 -- our own
    diffed = Blob((2, 3), ml_dtypes.bfloat16, device=None)
    diffed.diff = 7
    back = pickle.loads(pickle.dumps(diffed))  # noqa: S301 -- our own

    assert ("(0)", np.int32, None) == (empty.shape_string, empty.dtype, empty.device)
    assert (42.0, UNINITIALIZED, ml_dtypes.bfloat16) == (back.asum_diff(), back.data_memory.head, back.dtype)


def test_buffers_travel_beside_the_pickle(device: SimulatedDeviceAllocator) -> None:
    """Protocol 5: nothing is copied into the pickle itself."""
    blob = Blob((1000,), device=device)
    blob.data = 7
    buffers: list[pickle.PickleBuffer] = []
    small = pickle.dumps(blob, 5, buffer_callback=buffers.append)

    assert (1, True) == (len(buffers), len(small) < 1000)
    assert 7000 == pickle.loads(small, buffers=buffers).asum_data()  # noqa: S301 -- our own
