"""The shape of a `Blob`: positions, shapes that are refused, and shapes of no array; the kit checks the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_fixtures import UNINITIALIZED, Blob, each_place, untouched
from blob_views import got

from syncedmem.model import (
    InvalidArgumentError,
    InvalidIndexError,
    InvalidShapeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.runtime import SimulatedDeviceAllocator

place = each_place
blob = untouched


# --- positions


def test_an_offset_is_given_by_one_to_four_numbers_or_by_a_sequence() -> None:
    blob = Blob(2, 3, 4, 5, device=None)
    for nonsense in ((), (0, 0, 0, 0, 0)):
        with pytest.raises(InvalidArgumentError, match="indices must be one to four integers, or a sequence"):
            blob.offset(*nonsense)

    assert 119 == blob.offset(np.array([1, 2, 3, 4]))


def test_an_element_is_a_number_of_the_blobs_type(place: Any) -> None:
    """The indices may come from an iterator; without elements every index is refused."""
    blob = Blob((2, 3), device=place)
    blob.mutable_cpu_data()[...] = [[0, 1, 2], [3, 4, 5]]
    for empty in (Blob(device=place), Blob((2, 0), device=place)):
        for nothing in (0, list[int]()):
            with pytest.raises(InvalidIndexError):
                empty.data_at(nothing)

    assert (5, np.float32) == (blob.data_at(iter([1, 2])), type(blob.data_at(0)))


# --- reshaping


def test_reshaping_returns_the_blob_and_takes_the_shape_of_another(blob: Any) -> None:
    assert blob.reshape((5,)) is blob
    assert blob.reshape_like(Blob((2, 2), device=None)) is blob
    assert blob.shrink_to_fit() is blob
    assert (2, 2) == blob.shape
    with pytest.raises(InvalidArgumentError, match="other must be a Blob, got 7"):
        blob.reshape_like(7)


def test_what_has_no_elements_has_arrays_all_the_same(place: Any) -> None:
    """Extents that NumPy refuses next to a zero are refused when the shape is given."""
    blob = Blob((0, 2**60), device=place)
    assert ((0, 2**60), (0, 2**60)) == (blob.data.shape, np.asarray(blob).shape)
    if place is not None:
        assert (0, 2**60) == blob.mutable_gpu_data().shape
    for shape in ((0, 2**70), (0, 2**40, 2**40)):
        with pytest.raises(InvalidShapeError, match="but for extents of zero"):
            blob.reshape(shape)
    assert (0, 2**60) == blob.shape


def test_what_no_array_shows_moves_no_head(place: Any, tmp_path: Path) -> None:
    """Caffe accepts this shape, but NumPy can make no array of it."""
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
        with pytest.raises(
            InvalidShapeError, match=r"no array can have it: its other extents make \d+ bytes, more than"
        ):
            look()
    assert (UNINITIALIZED, UNINITIALIZED) == (blob.data_memory.head, blob.diff_memory.head)
    assert blob.copy_from(Blob(blob.shape, device=place)) is None


# --- the shape on the device


def test_kernels_are_handed_no_shape_that_there_is_not(device: SimulatedDeviceAllocator) -> None:
    """The second shape fits into 64 bits, but kernels read 32."""
    with pytest.raises(InvalidShapeError, match="this blob was never given a shape"):
        Blob(device=device).gpu_shape()
    blob = Blob((2**31, 0), device=device)
    with pytest.raises(InvalidShapeError, match="extents of at most 2147483647"):
        blob.gpu_shape()

    assert [2**31 - 1] == got(blob.reshape((2**31 - 1,)).gpu_shape()).tolist()
