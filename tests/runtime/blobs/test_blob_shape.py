"""The shape of a `Blob`: positions, reshaping, and what kernels see of it; the kit asks about axes (B09 to B14)."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_fixtures import CPU, GPU, SYNCED, UNINITIALIZED, Blob, each_place, untouched
from blob_views import HEADS, at_head, got, heads, recorded, snapshot

from syncedmem.model import (
    InvalidArgumentError,
    InvalidIndexError,
    InvalidShapeError,
    SyncedMemoryError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.runtime import SimulatedDeviceAllocator

place = each_place
blob = untouched


# --- positions


def test_an_offset_is_given_by_numbers_or_by_a_sequence() -> None:
    """Numbers may be one past the end of their axes, as pooling needs it; a sequence may not."""
    blob = Blob(2, 3, 4, 5, device=None)

    assert (60, 119, 120, 120) == (blob.offset(1), blob.offset(1, 2, 3, 4), blob.offset(2), blob.offset(1, 3))
    assert (0, 60, 119) == (blob.offset([]), blob.offset((1,)), blob.offset(np.array([1, 2, 3, 4])))
    for wrong in ((3,), (0, 4), (-1,), (0, -1), ([2],), ([0, 3],), ([0, 0, 0, 0, 0],), ([-1],)):
        with pytest.raises(InvalidIndexError):
            blob.offset(*wrong)
    for nonsense in ((), (0, 0, 0, 0, 0)):
        with pytest.raises(InvalidArgumentError, match="indices must be one to four integers, or a sequence"):
            blob.offset(*nonsense)


def test_elements_are_read_strictly_inside(place: Any) -> None:
    """Unlike in Caffe, whose data_at takes what offset takes, one past the end."""
    blob = Blob((2, 3), device=place)
    blob.mutable_cpu_data()[...] = [[0, 1, 2], [3, 4, 5]]
    blob.mutable_cpu_diff()[...] = 9
    if place is not None:
        blob.mutable_gpu_data()

    assert (5, 5, 3, 9) == (blob.data_at(1, 2), blob.data_at(iter([1, 2])), blob.data_at([1]), blob.diff_at(0, 0))
    assert type(blob.data_at(0)) is np.float32
    for wrong in ((2,), (0, 3), (1, 2, 1), ([2],), ([0, 3],)):
        with pytest.raises(InvalidIndexError):
            blob.data_at(*wrong)
    for empty in (Blob(device=place), Blob((2, 0), device=place)):
        for nothing in (0, list[int]()):
            with pytest.raises(InvalidIndexError):
                empty.data_at(nothing)


# --- reshaping


def test_what_grows_gets_new_memory_and_forgets_the_old(device: SimulatedDeviceAllocator) -> None:
    """Data and diff alike; who shared the old memory keeps it, and it goes when nobody has it."""
    blob, other = Blob((2, 3), device=device), Blob((6,), device=device)
    other.share_data(blob)
    blob.mutable_cpu_data()[...] = 7
    kept, lost = blob.data_memory, weakref.ref(blob.diff_memory)
    blob.reshape(7, 1, 1, 1)

    assert (7, 28, UNINITIALIZED, UNINITIALIZED) == (blob.capacity, blob.data_memory.size, *heads(blob))
    assert other.data_memory is kept
    assert [7] * 6 == other.cpu_data().tolist()
    assert lost() is None


def test_reshaping_returns_the_blob_and_takes_the_shape_of_another(blob: Any) -> None:
    assert blob.reshape((5,)) is blob
    assert blob.reshape_like(Blob((2, 2), device=None)) is blob
    assert (2, 2) == blob.shape
    with pytest.raises(InvalidArgumentError, match="other must be a Blob, got 7"):
        blob.reshape_like(7)


@pytest.mark.parametrize(
    ("shape", "error", "reason"),
    [
        (((1,) * 33,), InvalidShapeError, "at most 32 axes"),
        (((7, 8, -1, 9),), InvalidShapeError, "an extent cannot be negative, as -1 is"),
        ((7, 8, -1, 9), InvalidShapeError, "cannot be negative"),
        (((2**40, 2**40),), InvalidShapeError, "more than"),
        (((2, 2.0),), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        (("23",), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        (
            (2.5, 3),
            InvalidArgumentError,
            r"shape must be given as integers, or as one sequence of them, got \(2.5, 3\)",
        ),
        (((2, 3), 4), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        ((True, 3), InvalidArgumentError, "shape must be given as integers, or as one sequence of them, got True"),
        ((), InvalidArgumentError, r"shape must be given as integers, or as one sequence of them, got \(\)"),
        (({2, 3},), InvalidArgumentError, "shape must be given as integers, or as one sequence of them, got {2, 3}"),
        (({2: 3},), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        ((np.array(2.0),), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        ((None,), InvalidArgumentError, "shape must be given as integers, or as one sequence of them, got None"),
    ],
)
def test_a_shape_that_is_refused_changes_nothing(
    blob: Any, shape: Any, error: type[SyncedMemoryError], reason: str
) -> None:
    """Caffe leaves the first extents behind (H4)."""
    at_head(blob.data_memory, SYNCED, np.arange(120, dtype=np.float32))
    before = snapshot(blob)
    with pytest.raises(error, match=reason):
        blob.reshape(*shape)

    assert before == snapshot(blob)


def test_counts_are_wider_than_an_int(place: Any) -> None:
    """2**32 elements and an extent of as many are shapes like others; nobody allocates them here (H15)."""
    blob = Blob((2**16, 2**16), device=place)

    assert (2**32, 2**32, 2**34) == (blob.count, blob.capacity, blob.data_memory.size)
    assert (2**32 + 3,) == blob.reshape(SimpleNamespace(dim=[2**32 + 3])).shape
    assert 2**40 == Blob((0, 2**20, 2**20), device=place).count_axes(1)


def test_what_has_no_elements_has_arrays_all_the_same(place: Any) -> None:
    """Extents that NumPy refuses next to a zero are refused when they are given, and not when somebody looks."""
    blob = Blob((0, 2**60), device=place)
    assert ((0, 2**60), (0, 2**60)) == (blob.data.shape, np.asarray(blob).shape)
    if place is not None:
        assert (0, 2**60) == blob.mutable_gpu_data().shape
    for shape in ((0, 2**70), (0, 2**40, 2**40)):
        with pytest.raises(InvalidShapeError, match="but for extents of zero"):
            blob.reshape(shape)
    assert (0, 2**60) == blob.shape


def test_what_no_array_shows_moves_no_head(place: Any, tmp_path: Path) -> None:
    """Caffe has this shape, and NumPy no arrays of it."""
    blob = Blob((0, 2**31 - 1, 2**31 - 1), device=place)
    looks: list[Callable[[], Any]] = [
        lambda: blob.data,
        lambda: np.asarray(blob),
        blob.mutable_cpu_diff,
        lambda: setattr(blob, "diff", blob.diff),
        lambda: blob.save(tmp_path / "blob.npy"),
        *([] if place is None else [blob.gpu_data, blob.mutable_gpu_diff]),
    ]
    for look in looks:
        with pytest.raises(InvalidShapeError, match=r"no arrays of it: its other extents make \d+ bytes, more than"):
            look()
    assert (UNINITIALIZED, UNINITIALIZED) == (blob.data_memory.head, blob.diff_memory.head)
    assert blob.copy_from(Blob(blob.shape, device=place)) is None


def test_shrinking_gives_back_what_is_behind_the_shape(place: Any) -> None:
    """The elements stay, where they were fresh (H16)."""
    for head in HEADS if place is not None else (UNINITIALIZED, CPU):
        blob = Blob((8,), device=place)
        at_head(blob.data_memory, head, np.arange(8, dtype=np.float32))
        assert blob.reshape((3,)).shrink_to_fit() is blob
        assert (3, 12, 12) == (blob.capacity, blob.data_memory.size, blob.diff_memory.size)
        assert {SYNCED: GPU}.get(head, head) is blob.data_memory.head
        assert UNINITIALIZED is blob.diff_memory.head
        if head is not UNINITIALIZED:
            assert [0, 1, 2] == blob.cpu_data().tolist()
        memory = blob.data_memory
        assert blob.shrink_to_fit().data_memory is memory


# --- the shape on the device


def test_the_shape_is_copied_again_only_if_it_has_changed(device: SimulatedDeviceAllocator) -> None:
    """Caffe copies it again after every Reshape, also to the same shape."""
    blob, log = recorded(device, (2, 3))
    blob.gpu_shape()
    assert ["host allocate", "host zero", "device allocate", "up"] == log
    del log[:]
    memory = blob.shape_memory
    blob.gpu_shape()
    blob.reshape((2, 3)).gpu_shape()
    assert [] == log
    blob.reshape((3, 2)).gpu_shape()

    assert ["up"] == log
    assert (memory, 8, SYNCED) == (blob.shape_memory, memory.size, memory.head)
    assert blob.reshape((6,)).shape_memory is not memory


def test_kernels_are_handed_no_shape_that_there_is_not(device: SimulatedDeviceAllocator) -> None:
    """The second fits into 64 bits, which kernels do not read."""
    with pytest.raises(InvalidShapeError, match="this blob was never given one"):
        Blob(device=device).gpu_shape()
    blob = Blob((2**31, 0), device=device)
    with pytest.raises(InvalidShapeError, match="extents of at most 2147483647"):
        blob.gpu_shape()

    assert [2**31 - 1] == got(blob.reshape((2**31 - 1,)).gpu_shape()).tolist()
