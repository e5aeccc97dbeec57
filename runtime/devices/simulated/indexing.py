"""Which items of a simulated array an index means: NumPy says it, and looks at no byte."""

from __future__ import annotations

from operator import index
from typing import Any, Protocol, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidIndexError, InvalidPointerError

__all__ = ["check_slice", "picked"]

_PARTS = "an integer, a slice with step 1, ..., None, or a tuple of these; get() returns items for other indices"


class Laid(Protocol):
    """An array whose items an index means."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ordinal(self) -> int: ...


def check_slice(key: Any, length: int, array: Laid) -> tuple[int, int]:
    """Where a slice of the first axis starts and stops.

    Raises
    ------
    InvalidArgumentError
        If it has no integers, or its step is zero.
    InvalidPointerError
        If its step is another one than 1.
    """
    try:
        start, stop, step = key.indices(length)
    except (TypeError, ValueError) as error:  # no integers, or the step is zero
        raise InvalidArgumentError("index", key, "a slice of integers, with step 1") from error
    if step != 1:
        raise _with_gaps(array, f"slice it with step 1, not {step}")
    return start, stop


def picked(key: Any, array: Laid) -> tuple[int, tuple[int, ...], tuple[int, ...] | None]:
    """Where the items that an index means begin, in bytes from the first item; their shape, and their strides.

    The strides are None if the last axis is fastest.

    Raises
    ------
    InvalidArgumentError
        If it is an index of another kind.
    InvalidIndexError
        If there is no such item, or the array has fewer axes.
    InvalidPointerError
        If there are other items between them.
    """
    parts = _parts_of(key)
    if not all(_is_simple(part) for part in parts):
        raise InvalidArgumentError("index", key, _PARTS)
    # An array of the same shape, over one item that nobody reads.
    whole: Any = np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), array.shape, array.strides)
    try:
        part = whole[parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)]
    except IndexError as error:
        raise InvalidIndexError("index", key, f"the array has the shape {array.shape}") from error
    except (TypeError, ValueError) as error:  # a slice without integers, or with step zero
        raise InvalidArgumentError("index", key, _PARTS) from error
    if not part.flags.forc:
        raise _with_gaps(array, "slice it with step 1, along its first axes")
    return part.ctypes.data - whole.ctypes.data, part.shape, None if part.flags.c_contiguous else part.strides


def _parts_of(key: object) -> tuple[Any, ...]:
    """One part for each axis, or less."""
    return tuple(cast("Any", key)) if isinstance(key, tuple) else (key,)


def _is_simple(part: object) -> bool:
    """Whether a part of an index means a view: no boolean, no array and no list."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return True
    try:
        index(cast("Any", part))
    except TypeError:
        return False
    return not isinstance(part, bool | np.bool_)


def _with_gaps(array: Laid, advice: str) -> InvalidPointerError:
    reason = f"its slices have to be contiguous, as PyOpenCL's kernels need them; {advice}"
    return InvalidPointerError(f"simulated:{array.ordinal}", array, reason)
