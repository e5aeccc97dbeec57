"""Caffe's rules about axes, counts and offsets."""

from __future__ import annotations

import sys
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncedmem.model import InvalidArgumentError, InvalidIndexError, InvalidShapeError
from syncedmem.runtime.blobs.shape import (
    INT_MAX,
    MAX_AXES,
    canonical_axis_index,
    check_shape,
    count_axes,
    legacy_shape,
    offset,
    offset_4d,
    shape_string,
)

SHAPE = (2, 3, 4, 5)
shapes = st.lists(st.integers(0, 4), max_size=5).map(tuple)


@pytest.mark.parametrize(
    ("given_shape", "expected"),
    [
        ((), ()),
        ([2, 3], (2, 3)),
        (np.array([2, 0]), (2, 0)),
        ((np.int64(7),), (7,)),
        (SimpleNamespace(dim=[1, 2]), (1, 2)),
        ((1,) * MAX_AXES, (1,) * MAX_AXES),
        ((0, 1 << 30, 1 << 30), (0, 1 << 30, 1 << 30)),
        ((0, sys.maxsize), (0, sys.maxsize)),
        ((0, INT_MAX, INT_MAX), (0, INT_MAX, INT_MAX)),
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
    with pytest.raises(InvalidArgumentError, match="must be given as integers, or as one sequence of them, got"):
        check_shape(bad)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ((1,) * (MAX_AXES + 1), "at most 32 axes"),
        ((2, -1), "an extent cannot be negative, as -1 is"),
        ((sys.maxsize // 4 + 1,), f"up to axis 0 there are {sys.maxsize // 4 + 1} elements of 4 bytes, more than"),
        ((1 << 40, 1 << 40), f"up to axis 1 there are {1 << 80} elements of 4 bytes, more than"),
        ((1 << 40, 1 << 40, 0), f"up to axis 1 there are, but for extents of zero, {1 << 80} elements"),
        ((0, 1 << 70), f"up to axis 1 there are, but for extents of zero, {1 << 70} elements of 4 bytes"),
        ((0, 1 << 40, 0, 1 << 40), f"up to axis 3 there are, but for extents of zero, {1 << 80} elements"),
    ],
)
def test_a_shape_that_no_blob_can_have_is_refused(bad: tuple[int, ...], reason: str) -> None:
    """Before anything is done with it; an endless one too."""
    with pytest.raises(InvalidShapeError, match=reason) as caught:
        check_shape(bad, 4)

    assert bad == caught.value.shape


def test_an_endless_shape_is_refused() -> None:
    with pytest.raises(InvalidShapeError, match="at most 32 axes"):
        check_shape(iter(lambda: 1, 0))


def test_a_shape_is_printed_as_caffe_does() -> None:
    assert ("2 3 4 5 (120)", "(1)", "0 (0)") == (shape_string(SHAPE), shape_string(()), shape_string((0,)))


@given(shapes, st.integers(-7, 7))
def test_negative_axes_count_from_the_back(shape: tuple[int, ...], axis: int) -> None:
    """As NumPy's do."""
    if -len(shape) <= axis < len(shape):
        assert shape[axis] == shape[canonical_axis_index(shape, axis)]
        return
    with pytest.raises(InvalidIndexError, match=f"axis {axis}: out of range for {len(shape)}-D Blob with shape"):
        canonical_axis_index(shape, axis)


@given(shapes, st.integers(-1, 6), st.none() | st.integers(-1, 6))
def test_the_volume_of_a_range_of_axes(shape: tuple[int, ...], start: int, end: int | None) -> None:
    """No negative axes, nothing beyond the last one, and one for no axes at all."""
    last = len(shape) if end is None else end
    if 0 <= start <= last <= len(shape):
        assert int(np.prod(shape[start:last], dtype=object)) == count_axes(shape, start, end)
        return
    with pytest.raises(InvalidIndexError, match=r"start|end"):
        count_axes(shape, start, end)


@pytest.mark.parametrize(("index", "extent"), [(0, 3), (1, 2), (2, 1), (3, 1), (-1, 2), (-2, 3), (-3, 1), (-4, 1)])
def test_missing_axes_have_extent_one(index: int, extent: int) -> None:
    """At the end from the front, at the beginning from the back: 3x2 read both ways."""
    assert extent == legacy_shape((3, 2), index)


@pytest.mark.parametrize("index", [4, -5])
def test_there_are_four_legacy_axes(index: int) -> None:
    with pytest.raises(InvalidIndexError, match=f"index {index}: legacy axes go from -4 to 3"):
        legacy_shape((3, 2), index)
    with pytest.raises(InvalidShapeError, match="at most 4 axes"):
        legacy_shape((1, 1, 1, 1, 1), 0)


def test_offsets_are_those_of_rows_of_numbers() -> None:
    """Both forms, for every element; missing indices are zero."""
    numbers = np.arange(120).reshape(SHAPE)
    for indices in product(*map(range, SHAPE)):
        assert numbers[indices] == offset(SHAPE, indices) == offset_4d(SHAPE, indices)

    assert (60, 0, 0) == (offset(SHAPE, (1,)), offset(SHAPE, ()), offset((), ()))
    assert 1 * 12 + 2 * 4 == offset((2, 3, 4), (1, 2))
    assert 120 == offset_4d(SHAPE, (2, 0, 0, 0))  # one past the end, as pooling layers have it


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: count_axes(SHAPE, 3, 2), "start 3: behind end 2"),
        (lambda: count_axes(SHAPE, 5), "start 5: out of range for 4-D Blob"),
        (lambda: offset_4d(SHAPE, (3, 0)), "index 3: axis 0 of .* goes from 0 to 2"),
        (lambda: offset_4d(SHAPE, (2, 0), strict=True), "index 2: axis 0 of .* goes from 0 to 1"),
        (lambda: offset((2, 0), (0, 0)), r"index 0: axis 1 of 2 0 \(0\) has no elements"),
        (lambda: offset(SHAPE, (0, 3)), r"index 3: axis 1 of 2 3 4 5 \(120\) goes from 0 to 2"),
        (lambda: offset(SHAPE, (-1,)), "index -1: axis 0 of .* goes from 0 to 1"),
        (lambda: offset((2,), (0, 0)), r"indices \(0, 0\): more than 2 \(2\) has axes"),
        (lambda: offset_4d(SHAPE, (0, -1, 0, 0)), "index -1: axis 1 of 2 3 4 5"),
        (lambda: offset_4d(SHAPE, (3, 0, 0, 0)), "index 3: axis 0 of 2 3 4 5"),
    ],
)
def test_an_index_outside_is_refused(call: Any, message: str) -> None:
    """Negative ones too, which Caffe reads memory with."""
    with pytest.raises(InvalidIndexError, match=message):
        call()


@pytest.mark.parametrize("index", [1.0, "1", None, True])
def test_an_index_is_an_integer(index: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="index must be an integer, got"):
        offset(SHAPE, (index,))
