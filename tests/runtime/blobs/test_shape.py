"""Shapes, axes and indices that are refused, and why; the kit checks Caffe's rules about them (B09 to B20)."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from syncedmem.model import InvalidArgumentError, InvalidIndexError, InvalidShapeError
from syncedmem.runtime.blobs.shape import (
    canonical_axis_index,
    check_shape,
    offset,
)

SHAPE = (2, 3, 4, 5)
shapes = st.lists(st.integers(0, 4), max_size=5).map(tuple)


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
    with pytest.raises(InvalidArgumentError, match="must be given as integers, or as one sequence of them, got"):
        check_shape(bad)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ((sys.maxsize // 4 + 1,), f"up to axis 0 there are {sys.maxsize // 4 + 1} elements of 4 bytes, more than"),
        ((1 << 40, 1 << 40), f"up to axis 1 there are {1 << 80} elements of 4 bytes, more than"),
        ((1 << 40, 1 << 40, 0), f"up to axis 1 there are, but for extents of zero, {1 << 80} elements"),
        ((0, 1 << 70), f"up to axis 1 there are, but for extents of zero, {1 << 70} elements of 4 bytes"),
    ],
)
def test_a_shape_that_no_blob_can_have_is_refused(bad: tuple[int, ...], reason: str) -> None:
    """It is refused before anything is done with it; an endless one too."""
    with pytest.raises(InvalidShapeError, match=reason) as caught:
        check_shape(bad, 4)

    assert bad == caught.value.shape


def test_an_endless_shape_is_refused() -> None:
    with pytest.raises(InvalidShapeError, match="at most 32 axes"):
        check_shape(iter(lambda: 1, 0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: canonical_axis_index((3, 2), 2), "axis 2: out of range for 2-D Blob with shape 3 2"),
        (lambda: offset((2, 0), (0, 0)), r"index 0: axis 1 of 2 0 \(0\) has no elements"),
    ],
)
def test_an_index_outside_is_refused(call: Any, message: str) -> None:
    """With a negative index Caffe reads memory that is not the blob's."""
    with pytest.raises(InvalidIndexError, match=message):
        call()


@pytest.mark.parametrize("index", [1.0, "1", None, True])
def test_an_index_is_an_integer(index: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="index must be an integer, got"):
        offset(SHAPE, (index,))
