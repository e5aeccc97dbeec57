"""A blob in expressions: its data on the host, as NumPy computes with it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.model import InvalidArgumentError, NoArithmeticError, SyncedHead
from syncedmem.runtime import Blob as TypedBlob

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.runtime import SimulatedDeviceAllocator

Blob: Any = TypedBlob
HOST = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
OTHER = np.array([[1, 0, 3], [0, 5, 0]], np.float32)
EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x + 1": lambda x, _: x + 1,
    "1 - x": lambda x, _: 1 - x,
    "x * y": operator.mul,
    "x / y": lambda x, y: x / y,
    "x @ y.T": lambda x, y: x @ np.asarray(y).T,
    "x ** 2": lambda x, _: x**2,
    "-x": lambda x, _: -x,
    "abs(x)": lambda x, _: abs(x),
    "x == y": operator.eq,
    "x != 3": lambda x, _: x != 3,
    "x < y": operator.lt,
    "divmod": lambda x, _: divmod(x, 2)[1],
    "np.sqrt": lambda x, _: np.sqrt(x),
    "np.add where": lambda x, _: np.add(x, 1, out=np.zeros((2, 3), np.float32), where=OTHER == 0),
    "bytes + x": lambda x, _: memoryview(b"\1\2\3") + x,
    "np.add.reduce": lambda x, _: np.add.reduce(x),
    "np.maximum.outer": np.maximum.outer,
    "host + x": lambda x, _: OTHER + x,
    "list + x": lambda x, _: [1, 2, 3] + x,  # noqa: RUF005 -- the blob adds
    "np.mean": lambda x, _: np.mean(np.asarray(x)),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_blob_in_an_expression_is_its_data(device: SimulatedDeviceAllocator, name: str) -> None:
    """The result is an array of the host, and the device side stays fresh."""
    compute = EXPRESSIONS[name]
    first, second = (Blob.from_array(item.copy(), device=device) for item in (HOST, OTHER))
    first.gpu_data()
    with np.errstate(all="ignore"):
        expected, found = compute(HOST, OTHER), compute(first, second)

    assert type(expected) is type(found)
    np.testing.assert_array_equal(found, expected)
    assert (SyncedHead.SYNCED, HOST.tolist()) == (first.data_memory.head, first.cpu_data().tolist())


OF_ANY: Any = operator
"""The functions that take blobs too, which their types do not say."""
REFUSED: list[Callable[[Any], object]] = [
    lambda blob: OF_ANY.iadd(blob, 1),
    lambda blob: OF_ANY.isub(blob, blob),
    lambda blob: np.add(blob, 1, out=blob),
    lambda blob: blob + "1",
    lambda blob: blob == "1",
    lambda _: len(Blob((), device=None)),
]


@pytest.mark.parametrize("use", REFUSED)
def test_what_a_blob_cannot_be_in_is_refused(device: SimulatedDeviceAllocator, use: Any) -> None:
    blob = Blob.from_array(HOST.copy(), device=device)
    blob.mutable_gpu_data()
    with pytest.raises(InvalidArgumentError):
        use(blob)

    assert SyncedHead.HEAD_AT_GPU is blob.data_memory.head


def test_two_blobs_are_compared_item_by_item_and_stay_keys() -> None:
    first, second = Blob((2,), device=None), Blob((2,), device=None)

    assert [True, True] == (first == second).tolist()
    assert ({first: 1, second: 2}[second], first in [first, second]) == (2, True)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(first == second)


@pytest.mark.parametrize(("shape", "length"), [((3,), 3), ((2, 5), 2), ((0, 4), 0)])
def test_a_blob_has_the_length_of_its_first_axis_and_is_true(shape: tuple[int, ...], length: int) -> None:
    blob = Blob(shape, device=None)

    assert (length, blob.count, True) == (len(blob), blob.size, bool(blob))
    assert (0, True, True) == (Blob(device=None).size, bool(Blob(device=None)), bool(Blob((), device=None)))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_labels_and_pictures_have_types_of_their_own(device: SimulatedDeviceAllocator, dtype: str) -> None:
    """They go to the device and back; Caffe's arithmetic is refused by name, as for int32."""
    blob = Blob((3,), dtype=dtype, device=device)
    blob.data = [1, 0, 1]
    blob.gpu_data()
    blob.mutable_gpu_data()
    assert (np.dtype(dtype), [1, 0, 1]) == (blob.dtype, blob.cpu_data().astype(int).tolist())
    for call in ("update", "asum_data", "sumsq_diff"):
        with pytest.raises(NoArithmeticError) as refused:
            getattr(blob, call)()
        assert (call, dtype) == (refused.value.call, str(refused.value.dtype))
