"""Blobs of bfloat16, which NumPy does not have."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from blob_fixtures import GPU, ROW, UNINITIALIZED, Blob, each_device
from blob_views import HEADS, at_head

place = each_device


@pytest.mark.parametrize("head", HEADS)
def test_bfloat16_goes_everywhere_that_the_other_types_go(place: Any, head: Any) -> None:
    """NumPy does not have it, so there is no buffer, no DLPack and no file of it."""
    dtype: Any = np.dtype(ml_dtypes.bfloat16)
    row = (ROW / 3).astype(dtype)
    blob = Blob((2, 3), dtype, device=place)
    at_head(blob.data_memory, head, row)
    at_head(blob.diff_memory, head, row + row)
    data, diff = (row * 0, row * 0) if head is UNINITIALIZED else (row, row + row)
    for copied in (copy.deepcopy(blob), pickle.loads(pickle.dumps(blob))):  # noqa: S301 -- our own
        assert (dtype, data.tolist(), diff.tolist()) == (copied.dtype, copied.data.tolist(), copied.diff.tolist())
    assert data.tolist() == blob.gpu_data().get().tolist() == np.asarray(blob).tolist()
    assert diff.astype(np.float64).sum() == blob.asum_diff()
    blob.data[0] = 7
    blob.diff *= 2
    blob.mutable_gpu_diff()
    data[0], twice = 7, diff * dtype.type(2)
    blob.gpu_data()
    blob.update()
    blob.scale_data(0.5)

    assert ((data - twice) * dtype.type(0.5)).tolist() == blob.data.tolist()
    assert twice.tolist() == blob.diff.tolist()


def test_bfloat16_of_others_is_adopted_and_converted(place: Any) -> None:
    dtype: Any = np.dtype(ml_dtypes.bfloat16)
    mine = ROW.astype(dtype)
    blob = Blob.from_array(mine, copy=False, device=place)
    blob.data[0, 0] = 9
    assert (9, dtype, False) == (mine[0, 0], blob.dtype, blob.data_memory.own_cpu_data)
    theirs = Blob((2, 3), dtype, device=place)
    theirs.data = ROW
    array = theirs.mutable_gpu_data()
    for there in (Blob.from_array(array, copy=it, device=place) for it in (False, True)):
        assert (dtype, GPU, ROW.tolist()) == (there.dtype, there.data_memory.head, there.data.tolist())
    for other in (np.float32, np.float64, np.int32):
        assert ROW.tolist() == Blob.from_array(array, dtype=other, device=place).data.tolist()
        assert ROW.tolist() == Blob.from_array(ROW.astype(other), dtype=dtype, device=place).data.tolist()
