"""`BlobContents`: the arrays that a message or a file has for a blob, and the checks that all kinds of them share."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from syncedmem.model import AllocationError, FileFormatError, InvalidArgumentError, InvalidShapeError
from syncedmem.model.errors import shown

from ..allocators.pointers import is_masked
from .conversion import are_numbers
from .shape import MAX_AXES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

__all__ = ["BlobContents", "check_contents", "checked_array", "checked_shape", "empty"]

_MOST_VALUES = np.iinfo(np.intp).max // np.dtype(np.float64).itemsize


class BlobContents(NamedTuple):
    """What was read for a blob: its data and, if there is one, its diff, as arrays that nobody else has."""

    shape: tuple[int, ...]
    data: NDArray[Any]
    diff: NDArray[Any] | None

    def __repr__(self) -> str:
        return f"<BlobContents {self.shape}, {self.data.dtype}{', no diff' if self.diff is None else ''}>"


def check_contents(contents: object) -> None:
    """Refuse what are no contents of a blob, also contents whose parts do not fit each other.

    Raises
    ------
    InvalidArgumentError
        If they are no `BlobContents`, or a part is no array of numbers.
    InvalidShapeError
        If an array has more or fewer numbers than the shape.
    FileFormatError
        If no array can have the shape.
    """
    expected = "BlobContents of arrays of numbers, such as load_npz() returns"
    if not isinstance(contents, BlobContents):
        raise InvalidArgumentError("contents", contents, expected)
    size = math.prod(checked_shape(contents.shape, "contents"))
    parts: list[Any] = [contents.data] if contents.diff is None else [contents.data, contents.diff]
    for array in parts:
        masked, numbers = is_masked(array), hasattr(array, "dtype") and are_numbers(array)
        if masked or not numbers or not isinstance(array, np.ndarray):
            raise InvalidArgumentError("contents", array, expected)
        if array.size != size:
            raise InvalidShapeError(contents.shape, f"there are {array.size} numbers")


def checked_array(name: str, value: object, types: Collection[np.dtype[Any]]) -> NDArray[Any]:
    """An argument, after a check that it is a NumPy array of one of some element types."""
    array = cast("NDArray[Any]", value)
    masked = is_masked(value)
    if not isinstance(value, np.ndarray) or masked or array.dtype not in types:
        mask = ", without a mask" if masked else ""
        raise InvalidArgumentError(name, array, f"a NumPy array of {', '.join(map(str, types))}{mask}")
    return array


def checked_shape(shape: Sequence[int], source: str) -> tuple[int, ...]:
    """A shape as a tuple of ``int``, after a check that arrays can have it.

    Raises
    ------
    FileFormatError
        If it has more than `MAX_AXES` axes, a negative one, or more values than the address space allows.  As in NumPy,
        this holds for the other axes even if one has length 0.
    InvalidArgumentError
        If it is no sequence of whole numbers.
    """
    try:
        many = len(shape)  # checked first, because a message may have as many axes as bytes
        axes = tuple(map(operator.index, shape[: MAX_AXES + 1]))
    except TypeError as error:
        raise InvalidArgumentError("shape", shape, "a sequence of whole numbers") from error
    reason = ""
    if many > MAX_AXES:
        reason = f"shape has {many} axes, and a blob at most {MAX_AXES}"
    elif min(axes, default=0) < 0:
        reason = f"shape {shown(axes)} has a negative axis"
    elif math.prod(filter(None, axes)) > _MOST_VALUES:
        reason = f"shape {shown(axes)} has more values than memory can have"
    if reason:
        raise FileFormatError(source, reason)
    return axes


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array to read into."""
    try:
        return np.empty(shape, dtype)
    except MemoryError as error:
        raise AllocationError("the host", math.prod(shape) * dtype.itemsize) from error
