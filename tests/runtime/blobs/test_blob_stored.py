"""Blobs in messages and in files: what the pages of ``schema`` say, seen through `Blob`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_fixtures import each_place
from blob_views import HEADS

from syncedmem import runtime
from syncedmem.model import (
    AllocationError,
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    InvalidShapeError,
    SyncedHead,
)
from syncedmem.runtime import CPUDeviceAllocator, FailingAllocator, load_npz, save_npy
from syncedmem.runtime.blobs.messages import message_types

if TYPE_CHECKING:
    from pathlib import Path

Blob: Any = runtime.Blob
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
place = each_place
ROW = np.arange(6, dtype=np.float32).reshape(2, 3)


def message(**fields: Any) -> Any:
    """A `BlobProto` with some fields."""
    made: Any = message_types()[1]()
    made.shape.dim.extend(fields.pop("dim", ()))
    if not made.shape.dim:
        made.ClearField("shape")
    for name, value in fields.items():
        if isinstance(value, int):
            setattr(made, name, value)
        else:
            getattr(made, name).extend(value)
    return made


# --- messages


def test_a_blob_without_a_shape_is_equal_to_no_message() -> None:
    """Its shape is empty, and so is the shape of this message, which has one number."""
    with pytest.raises(InvalidShapeError, match=r"this blob has the shape \(0\)"):
        Blob(device=None).from_proto(message(data=[1.0]), reshape=False)


def test_what_a_message_cannot_say_is_refused(place: Any) -> None:
    """That is no shape at all, and integers, for which Caffe has no ToProto (H14)."""
    with pytest.raises(InvalidShapeError, match="a message cannot express that"):
        Blob(device=place).to_proto()
    integers = Blob((2,), np.int32, device=place)
    with pytest.raises(InvalidArgumentError, match="dtype must be float32 or float64 for a blob in a message"):
        integers.to_proto()
    assert UNINITIALIZED is integers.data_memory.head


# --- files


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".binaryproto"])
def test_a_blob_travels_in_a_file(place: Any, tmp_path: Path, suffix: str) -> None:
    path, blob = tmp_path / f"blob{suffix}", Blob((2, 3), device=place)
    blob.data = ROW
    if place is not None:
        blob.gpu_data()
        blob.scale_data(2)
    blob.diff = ROW + 1
    blob.save(path)
    back = Blob.load(path, device=place)
    assert (blob.data.tolist(), (2, 3), np.float32) == (back.data.tolist(), back.shape, back.dtype)
    assert (UNINITIALIZED, place) == (back.diff_memory.head, back.device)
    wide = Blob.load(path, dtype=np.float64, device=place)
    assert (np.float64, blob.data.tolist()) == (wide.dtype, wide.data.tolist())
    if suffix == ".npy":
        with pytest.raises(FileFormatError, match="holds one array, and there is a diff"):
            blob.save(path, write_diff=True)
    else:
        blob.save(path, write_diff=True)
        assert (ROW + 1).tolist() == Blob.load(path, device=place).diff.tolist()


def test_other_types_travel_in_files_of_numpy(tmp_path: Path) -> None:
    blob = Blob((3,), np.uint32, device=None)
    blob.data = [1, 2, 3]
    blob.save(tmp_path / "blob.npz")

    assert (np.uint32, [1, 2, 3]) == (blob.dtype, Blob.load(tmp_path / "blob.npz", device=None).data.tolist())
    assert [1, 2, 3] == Blob.from_contents(load_npz(tmp_path / "blob.npz"), device=None).data.tolist()
    with pytest.raises(InvalidArgumentError, match="must be a NumPy array of float32, float64"):
        blob.save(tmp_path / "blob.binaryproto")


def test_a_view_is_saved_like_an_array(tmp_path: Path) -> None:
    """A function that takes arrays takes the views of a blob."""
    blob = Blob((2, 3), device="simulated")
    blob.data = ROW
    for array in (blob.data, blob.cpu_data()):
        save_npy(tmp_path / "data.npy", array)
        assert ROW.tolist() == np.load(tmp_path / "data.npy").tolist()


def test_a_blob_that_there_is_no_room_for_leaves_the_file_alone(tmp_path: Path) -> None:
    """The new file is begun before the blob is asked for its host side."""
    path = tmp_path / "blob.npy"
    path.write_bytes(b"before")
    blob = Blob((2, 3), host=FailingAllocator(CPUDeviceAllocator(), at=1), device=None)
    with pytest.raises(AllocationError, match="told to"):
        blob.save(path)

    assert ([path], b"before") == (list(tmp_path.iterdir()), path.read_bytes())


def test_a_file_that_cannot_be(tmp_path: Path) -> None:
    blob = Blob((2, 3), device=None)
    for path in (tmp_path / "blob.txt", tmp_path / "blob", b"blob.caffemodel"):
        with pytest.raises(InvalidArgumentError, match=r"a name that ends in \.npy, \.npz, \.binaryproto"):
            blob.save(path)
        with pytest.raises(InvalidArgumentError, match="path must be a name that ends in"):
            Blob.load(path)
    with pytest.raises(InvalidArgumentError, match=r"\(load_caffemodel reads the many blobs of a \.caffemodel\), got"):
        Blob.load("net.caffemodel")
    with pytest.raises(FileAccessError):
        Blob.load(tmp_path / "blob.npy")
    with pytest.raises(InvalidShapeError, match="a file cannot express that"):
        Blob(device=None).save(tmp_path / "blob.npy")

    assert ([], SyncedHead.UNINITIALIZED) == (list(tmp_path.iterdir()), blob.data_memory.head)
