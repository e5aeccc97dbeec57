"""`BlobContents`: what a message or a file says of a blob, as arrays; and what every kind of them checks."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from syncedmem.model import AllocationError, FileFormatError, InvalidArgumentError
from syncedmem.model.errors import shown

from .shape import MAX_AXES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

__all__ = ["BlobContents", "checked_array", "checked_shape", "empty"]

_MOST_VALUES = np.iinfo(np.intp).max // np.dtype(np.float64).itemsize


class BlobContents(NamedTuple):
    """What was read of a blob: arrays of that shape, which nobody else has."""

    shape: tuple[int, ...]
    data: NDArray[Any]
    diff: NDArray[Any] | None


def checked_array(name: str, value: object, types: Collection[np.dtype[Any]]) -> NDArray[Any]:
    """An argument that is an array of one of some types.

    Raises
    ------
    InvalidArgumentError
        It is none.
    """
    array = cast("NDArray[Any]", value)
    masked = isinstance(value, np.ma.MaskedArray)
    if not isinstance(value, np.ndarray) or masked or array.dtype not in types:
        mask = ", without a mask" if masked else ""
        raise InvalidArgumentError(name, array, f"a NumPy array of {', '.join(map(str, types))}{mask}")
    return array


def checked_shape(shape: Sequence[int], source: str) -> tuple[int, ...]:
    """A shape that arrays can have.

    Raises
    ------
    FileFormatError
        More than `MAX_AXES` axes, a negative one, or more values than memory can be asked for.  As in NumPy, an axis
        of length 0 does not excuse the others.
    InvalidArgumentError
        It is no row of whole numbers.
    """
    try:
        many = len(shape)  # looked at first: a message may have as many axes as bytes
        axes = tuple(map(operator.index, shape[: MAX_AXES + 1]))
    except TypeError as error:
        raise InvalidArgumentError("shape", shape, "a sequence of whole numbers") from error
    reason = ""
    if many > MAX_AXES:
        reason = f"shape has {many} axes, and a blob at most {MAX_AXES}"
    elif min(axes, default=0) < 0:
        reason = f"shape {shown(axes)} has a negative axis"
    elif math.prod(filter(None, axes)) > _MOST_VALUES:
        reason = f"shape {shown(axes)} has more values than memory can be asked for"
    if reason:
        raise FileFormatError(source, reason)
    return axes


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array to read into.

    Raises
    ------
    AllocationError
        There is no room.
    """
    try:
        return np.empty(shape, dtype)
    except MemoryError as error:
        raise AllocationError("the host", math.prod(shape) * dtype.itemsize) from error
