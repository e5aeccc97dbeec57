"""Shapes: Caffe's rules about axes, counts and offsets, for plain tuples (Caffe's blob.hpp:54-178, blob.cpp:23-45).

Nothing here uses memory, so a shape is checked as a whole before anything is done with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from math import prod
from operator import index as integer_of
from typing import Any, Protocol, SupportsIndex, cast

from syncedmem.model import InvalidArgumentError, InvalidIndexError, InvalidShapeError

from ..allocators.pointers import as_integer

__all__ = [
    "FORMS",
    "INT_MAX",
    "LEGACY_AXES",
    "MAX_AXES",
    "Extents",
    "HasDim",
    "Shape",
    "canonical_axis_index",
    "check_shape",
    "count_axes",
    "is_integer",
    "legacy_shape",
    "offset",
    "offset_4d",
    "shape_string",
]

Shape = tuple[int, ...]
_INTS = frozenset({int})


class HasDim(Protocol):
    """A ``BlobShape``, or an object like it."""

    @property
    def dim(self) -> Iterable[SupportsIndex]:
        """The extents."""
        ...


Extents = SupportsIndex | Iterable[SupportsIndex] | HasDim
"""What callers may give for a shape: one of its numbers, or the whole shape."""

MAX_AXES = 32
"""The most axes that a shape may have: ``kMaxBlobAxes`` (blob.hpp:12)."""

INT_MAX = (1 << 31) - 1
"""Caffe's limit for a count, which is an ``int`` there; here only the address space limits a count."""

FORMS = "given as integers, or as one sequence of them"
"""How errors say what a shape must be."""

_UNORDERED = (str, bytes, bytearray, AbstractSet, Mapping)  # without an order, or text, which can look like integers

LEGACY_AXES = 4
"""The four axes of old blobs: num, channels, height and width."""


def is_integer(value: object) -> bool:
    """Whether an object is one integer and no sequence; every array has ``__index__``, but it may raise."""
    try:
        integer_of(cast("Any", value))
    except Exception:  # noqa: BLE001 -- whatever it raises, the object is no integer
        return False
    return True


def _extents(shape: object) -> Shape:
    """The extents of anything that may be a shape, one more than it may have if there are too many."""
    extents: object = getattr(shape, "dim", shape)
    row = getattr(extents, "ndim", 1) == 1  # NumPy's arrays without axes have __iter__, but it raises
    if isinstance(extents, _UNORDERED) or not isinstance(extents, Iterable) or not row:
        raise InvalidArgumentError("shape", shape, FORMS)
    first = islice(cast("Iterable[object]", extents), MAX_AXES + 1)  # so that an endless iterable is refused too
    return tuple(as_integer(extent, "shape", FORMS) for extent in first)


def check_shape(shape: Any, itemsize: int = 1) -> Shape:
    """A shape as a tuple of ``int``, after a check.

    Parameters
    ----------
    shape : iterable of int, or object with ``dim``
        The extents, or an object such as a ``BlobShape``.
    itemsize : int
        The size of an element in bytes.  All elements have to fit into the address space.  If an extent is zero, there
        are no elements; then the product of the other extents has to fit.  Caffe allows ``(0, INT_MAX, INT_MAX)``.

    Raises
    ------
    InvalidArgumentError
        If it is no sequence of integers; a set or a dictionary has no order, so it is none.
    InvalidShapeError
        If it has more than 32 axes or a negative extent, or is too large.
    """
    usual = bool(type(shape) is tuple and _INTS.issuperset(map(type, shape)))
    checked: Shape = cast("Shape", shape) if usual else _extents(shape)
    if len(checked) > MAX_AXES:
        raise InvalidShapeError(shape, f"there may be at most {MAX_AXES} axes")
    if min(checked, default=0) < 0:
        negative = next(extent for extent in checked if extent < 0)
        raise InvalidShapeError(shape, f"an extent cannot be negative, as {negative} is")
    limit, size, but = sys.maxsize, itemsize, ""
    if 0 in checked:
        size, but = 1, ", but for extents of zero,"
    for axis, extent in enumerate(checked):
        size *= extent or 1
        if size > limit:
            count = size if but else size // itemsize
            many = f"up to axis {axis} there are{but} {count} elements of {itemsize} bytes"
            raise InvalidShapeError(shape, f"{many}, more than {limit} bytes")
    return checked


def shape_string(shape: Shape) -> str:
    """The shape as Caffe prints it: ``"2 3 4 5 (120)"`` (blob.hpp:54)."""
    return "".join(f"{extent} " for extent in shape) + f"({prod(shape)})"


def canonical_axis_index(shape: Shape, axis: object) -> int:
    """The number of an axis, counted from the front; a negative `index` counts from the back (blob.hpp:118)."""
    axes, index = len(shape), as_integer(axis, "axis", "an integer")
    if not -axes <= index < axes:
        raise InvalidIndexError("axis", index, f"out of range for {axes}-D Blob with shape {shape_string(shape)}")
    return index % axes


def count_axes(shape: Shape, start: object = 0, end: object = None) -> int:
    """The volume of the axes from `start` to before `end`; one if there are none (blob.hpp:85).

    Raises
    ------
    InvalidIndexError
        Unless ``0 <= start <= end <= num_axes``; as in Caffe, negative axes do not count from the back.
    """
    axes = len(shape)
    first = as_integer(start, "start", "an integer")
    last = axes if end is None else as_integer(end, "end", "an integer")
    for name, axis in (("start", first), ("end", last)):
        if not 0 <= axis <= axes:
            raise InvalidIndexError(name, axis, f"out of range for {axes}-D Blob with shape {shape_string(shape)}")
    if first > last:
        raise InvalidIndexError("start", first, f"behind end {last}")
    return prod(shape[first:last])


def legacy_shape(shape: Shape, index: object) -> int:
    """The extent of one of four axes; missing axes have the extent one (blob.hpp:139).

    If `index` counts from the front, missing axes are at the end; if it is negative, they are at the beginning.

    Raises
    ------
    InvalidShapeError
        If there are more than four axes.
    InvalidIndexError
        Unless ``-4 <= index < 4``.
    """
    axes, axis = len(shape), as_integer(index, "index", "an integer")
    if axes > LEGACY_AXES:
        raise InvalidShapeError(shape, f"legacy accessors are for at most {LEGACY_AXES} axes")
    if not -LEGACY_AXES <= axis < LEGACY_AXES:
        raise InvalidIndexError("index", axis, f"legacy axes go from {-LEGACY_AXES} to {LEGACY_AXES - 1}")
    return shape[axis] if -axes <= axis < axes else 1


def offset_4d(shape: Shape, indices: Iterable[object], *, strict: bool = False) -> int:
    """The position of an element, in elements, by up to four indices (blob.hpp:153).

    An index may be one past the end, because pooling layers of Caffe need that; with `strict` it has to be inside.  It
    may not be negative, which Caffe forgets to check.  Raises
    ------
    InvalidShapeError
        If there are more than four axes.
    InvalidIndexError
        If an index is out of range.
    """
    position = 0
    for axis, given in enumerate(indices):
        extent, index = legacy_shape(shape, axis), as_integer(given, "index", "an integer")
        if not 0 <= index <= extent - strict:
            raise _outside(shape, axis, index, extent - strict)
        position = position * extent + index
    return position


def offset(shape: Shape, indices: Iterable[object]) -> int:
    """The position of an element, in elements; missing indices at the end are zero (blob.hpp:166)."""
    given = tuple(indices)
    if len(given) > len(shape):
        raise InvalidIndexError("indices", given, f"more than {shape_string(shape)} has axes")
    position = 0
    for axis, extent in enumerate(shape):
        index = as_integer(given[axis], "index", "an integer") if axis < len(given) else 0
        if axis < len(given) and not 0 <= index < extent:
            raise _outside(shape, axis, index, extent - 1)
        position = position * extent + index
    return position


def _outside(shape: Shape, axis: int, index: int, last: int) -> InvalidIndexError:
    """The error for an index that is not from 0 to `last`."""
    where = f"axis {axis} of {shape_string(shape)}"
    return InvalidIndexError(
        "index", index, f"{where} has no elements" if last < 0 else f"{where} goes from 0 to {last}"
    )
