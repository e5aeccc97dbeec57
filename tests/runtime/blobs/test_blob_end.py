"""The end of a blob: what `close` frees, what it leaves to others, and what is refused afterwards."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.model import ClosedMemoryError, ReleaseError, StaleWriteError, SyncedHead
from syncedmem.runtime import Blob as TypedBlob

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.runtime import SimulatedDeviceAllocator

Blob: Any = TypedBlob

AFTERWARDS: dict[str, Callable[[Any, Any], object]] = {
    "data": lambda blob, _: blob.data,
    "cpu_data": lambda blob, _: blob.cpu_data(),
    "mutable_gpu_diff": lambda blob, _: blob.mutable_gpu_diff(),
    "gpu_shape": lambda blob, _: blob.gpu_shape(),
    "smaller": lambda blob, _: blob.reshape(1),
    "larger": lambda blob, _: blob.reshape(100),
    "reshape_like": lambda blob, other: blob.reshape_like(other),
    "shrink_to_fit": lambda blob, _: blob.shrink_to_fit(),
    "set_cpu_data": lambda blob, _: blob.set_cpu_data(np.zeros(3, np.float32)),
    "set_cpu_diff": lambda blob, _: blob.set_cpu_diff(np.zeros(3, np.float32)),
    "share_data": lambda blob, other: blob.share_data(other),
    "share_data of it": lambda blob, other: other.share_data(blob),
    "share_diff of it": lambda blob, other: other.share_diff(blob),
    "copy_from of it": lambda blob, other: other.copy_from(blob),
    "copy_from": lambda blob, other: blob.copy_from(other),
    "copy_from larger": lambda blob, _: blob.copy_from(Blob(9, device=blob.device), reshape=True),
    "update": lambda blob, _: blob.update(),
    "asum_data": lambda blob, _: blob.asum_data(),
    "from_proto": lambda blob, other: blob.from_proto(other.to_proto()),
    "with": lambda blob, _: blob.__enter__(),
    "deepcopy": lambda blob, _: copy.deepcopy(blob),
    "pickle": lambda blob, _: pickle.dumps(blob),
    "np.asarray": lambda blob, _: np.asarray(blob),
    "blob + 1": lambda blob, _: blob + 1,
}


def written(device: SimulatedDeviceAllocator, **options: Any) -> Any:
    """A blob with numbers on both sides."""
    blob = Blob(3, device=device, **options)
    for write, read in ((blob.mutable_cpu_data, blob.gpu_data), (blob.mutable_cpu_diff, blob.gpu_diff)):
        write()[...] = [1, 2, 3]
        read()
    return blob


def test_close_frees_what_the_blob_has(device: SimulatedDeviceAllocator) -> None:
    blob = written(device)
    blob.gpu_shape()
    memories = [blob.data_memory, blob.diff_memory, blob.shape_memory]
    assert 3 == device.live_blocks
    for _ in range(2):
        blob.close()

    assert (0, True, [True] * 3) == (device.live_blocks, blob.closed, [memory.closed for memory in memories])
    assert ((3,), "closed") == (blob.shape, repr(blob).rsplit(" ", 1)[1].strip("]>"))


@pytest.mark.parametrize("name", AFTERWARDS)
def test_a_closed_blob_refuses_calls_and_takes_no_memory(device: SimulatedDeviceAllocator, name: str) -> None:
    blob, other = written(device), written(device)
    blob.close()
    blocks = device.live_blocks
    with pytest.raises(ClosedMemoryError):
        AFTERWARDS[name](blob, other)

    assert (blocks, True, (3,)) == (device.live_blocks, blob.closed, blob.shape)
    assert (False, SyncedHead.SYNCED, [1, 2, 3]) == (other.closed, other.data_memory.head, other.data.tolist())


@pytest.mark.parametrize("share", ["share_data", "share_diff", "copy"])
@pytest.mark.parametrize("first", ["owner", "sharer"])
def test_what_is_shared_is_left_to_the_others(device: SimulatedDeviceAllocator, share: str, first: str) -> None:
    """It is freed with the last blob that has it."""
    owner = written(device)
    if share == "copy":
        sharer = copy.copy(owner)
    else:
        sharer = Blob(3, device=device)
        getattr(sharer, share)(owner)
    ended, left = (owner, sharer) if first == "owner" else (sharer, owner)
    ended.close()
    of_diff = share == "share_diff"

    assert [1, 2, 3] == (left.cpu_diff() if of_diff else left.cpu_data()).tolist()
    with pytest.raises(ClosedMemoryError):
        ended.cpu_diff() if of_diff else ended.cpu_data()
    del owner, sharer, ended
    left.close()
    del left
    assert 0 == device.live_blocks


def test_a_block_of_code_closes_its_blob(device: SimulatedDeviceAllocator) -> None:
    with written(device) as blob:
        assert [1, 2, 3] == blob.data.tolist()
    assert (True, 0) == (blob.closed, device.live_blocks)
    with pytest.raises(KeyError), written(device) as blob:
        raise KeyError
    assert (True, 0) == (blob.closed, device.live_blocks)


def test_a_memory_that_cannot_be_freed_is_told_and_the_others_are_freed(device: SimulatedDeviceAllocator) -> None:
    blob = written(device)
    device.fail_at(1, "release")
    with pytest.raises(ReleaseError):
        blob.close()
    assert (1, True) == (device.live_blocks, blob.closed)
    blob.close()

    assert (0, True) == (device.live_blocks, blob.closed)


def test_close_tells_of_a_stale_write(device: SimulatedDeviceAllocator) -> None:
    """Everything is closed nevertheless; with another error on its way, it is a warning."""
    blob = written(device, checked=True)
    kept = blob.mutable_cpu_data().view()
    blob.gpu_data()
    kept[0] = 9
    with pytest.raises(StaleWriteError):
        blob.close()
    assert (True, 0) == (blob.closed, device.live_blocks)

    with pytest.warns(RuntimeWarning), pytest.raises(KeyError), written(device, checked=True) as other:  # noqa: PT012
        kept = other.mutable_cpu_data().view()
        other.gpu_data()
        kept[0] = 9
        raise KeyError
    assert (True, 0) == (other.closed, device.live_blocks)


def test_an_empty_blob_is_closed_too() -> None:
    blob = Blob(device=None)
    blob.close()
    with pytest.raises(ClosedMemoryError):
        blob.reshape(2)
    assert (True, 0) == (blob.closed, blob.count)


def test_what_the_user_adopted_is_dropped_and_keeps_its_numbers(device: SimulatedDeviceAllocator) -> None:
    mine = np.array([1, 2, 3], np.float32)
    with Blob.from_array(mine, device=device) as blob:
        blob.mutable_gpu_data().fill(7)
        blob.cpu_data()

    assert [7, 7, 7] == mine.tolist()
