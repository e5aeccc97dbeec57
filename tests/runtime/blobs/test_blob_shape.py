"""The shape of a `Blob`: positions, refused shapes, shapes of no array; the kit checks the rest (B09 to B20)."""

from __future__ import annotations

import sys
from types import SimpleNamespace
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
from syncedmem.runtime.blobs.shape import (
    canonical_axis_index,
    check_shape,
    offset,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.runtime import SimulatedDeviceAllocator

place = each_place
blob = untouched


# --- positions


def test_an_offset_is_given_by_one_to_four_numbers_or_by_a_sequence() -> None:
    """With a negative index Caffe reads memory that is not the blob's."""
    blob = Blob(2, 3, 4, 5, device=None)
    for nonsense in ((), (0, 0, 0, 0, 0)):
        with pytest.raises(InvalidArgumentError) as refused:
            blob.offset(*nonsense)
        assert "indices" == refused.value.argument
    for wrong in (1.0, "1", None, True):
        with pytest.raises(InvalidArgumentError) as refused:
            offset((2, 3, 4, 5), (wrong,))
        assert ("index", wrong) == (refused.value.argument, refused.value.value)
    outside: list[tuple[Callable[[], object], int, str]] = [
        (lambda: canonical_axis_index((3, 2), 2), 2, "2-D"),
        (lambda: offset((2, 0), (0, 0)), 0, "no elements"),
    ]
    for use, value, reason in outside:
        with pytest.raises(InvalidIndexError, match=reason) as error:
            use()
        assert value == error.value.value

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


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_an_extent_of_zero_may_be_anywhere(shape: tuple[int, ...]) -> None:
    """Caffe once divided by the product of the extents so far, which could be zero."""
    blob = Blob(shape, device=None)
    assert (0, shape) == (blob.count, blob.shape)


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
        with pytest.raises(InvalidShapeError):
            look()
    assert (UNINITIALIZED, UNINITIALIZED) == (blob.data_memory.head, blob.diff_memory.head)
    assert blob.copy_from(Blob(blob.shape, device=place)) is None


# --- the shape on the device


def test_kernels_are_handed_no_shape_that_there_is_not(device: SimulatedDeviceAllocator) -> None:
    """The second shape fits into 64 bits, but kernels read 32."""
    for shape in ([], [(2**31, 0)]):
        with pytest.raises(InvalidShapeError):
            Blob(*shape, device=device).gpu_shape()

    assert [2**31 - 1] == got(Blob((2**31 - 1,), device=device).gpu_shape()).tolist()


# --- shapes and indices by themselves


@pytest.mark.parametrize(
    ("given_shape", "expected"),
    [
        (np.array([2, 0]), (2, 0)),
        ((np.int64(7),), (7,)),
        (SimpleNamespace(dim=[1, 2]), (1, 2)),
        ((0, 1 << 30, 1 << 30), (0, 1 << 30, 1 << 30)),
        ((0, sys.maxsize), (0, sys.maxsize)),
        (iter((4, 5)), (4, 5)),
    ],
)
def test_a_shape_is_a_tuple_of_plain_integers(given_shape: Any, expected: tuple[int, ...]) -> None:
    checked = check_shape(given_shape, 4)

    assert expected == checked
    assert all(type(extent) is int for extent in checked)


@pytest.mark.parametrize(
    "bad",
    [None, 5, "23", b"23", bytearray(b"23"), {2, 3}, {2: 3}, np.array(5), (1.0,), (True,), ("2",), object(), ((2, 3),)],
)
def test_what_is_no_sequence_of_integers_is_no_shape(bad: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        check_shape(bad)
    assert "shape" == refused.value.argument


@pytest.mark.parametrize(
    "bad", [(sys.maxsize // 4 + 1,), (1 << 40, 1 << 40), (1 << 40, 1 << 40, 0), (0, 1 << 70)], ids=str
)
def test_a_shape_that_no_blob_can_have_is_refused(bad: tuple[int, ...]) -> None:
    """It is refused before anything is done with it; an endless one too."""
    with pytest.raises(InvalidShapeError) as caught:
        check_shape(bad, 4)
    assert bad == caught.value.shape
    with pytest.raises(InvalidShapeError):
        check_shape(iter(lambda: 1, 0))
