"""`Shaped`: what has axes, and Caffe's questions about them (Caffe's blob.hpp 54-190).

The answers are functions of the shape alone and stand in ``shape``; here they are asked of an object that has one.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, overload

from syncedmem.model import InvalidArgumentError, InvalidIndexError

from . import shape as shapes
from .shape import LEGACY_AXES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import SupportsIndex

    from .shape import Shape

__all__ = ["Shaped"]


class Shaped:
    """Something with a shape, or with none yet: then there are no axes, and no elements either.

    A shape without axes that was *given* has one element, as in Caffe.
    """

    __slots__ = ("_shape",)

    _shape: Shape | None

    @property
    def shape(self) -> Shape:
        """The extents, in elements."""
        return self._shape or ()

    @property
    def num_axes(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """How many elements there are; 64 bits wide, where Caffe has an ``int``."""
        return 0 if self._shape is None else prod(self._shape)

    @property
    def num(self) -> int:
        """``legacy_shape(0)``."""
        return self.legacy_shape(0)

    @property
    def channels(self) -> int:
        """``legacy_shape(1)``."""
        return self.legacy_shape(1)

    @property
    def height(self) -> int:
        """``legacy_shape(2)``."""
        return self.legacy_shape(2)

    @property
    def width(self) -> int:
        """``legacy_shape(3)``."""
        return self.legacy_shape(3)

    @property
    def shape_string(self) -> str:
        """As Caffe prints it: ``"2 3 4 5 (120)"``; ``"(0)"`` without a shape, ``"(1)"`` without axes."""
        return "(0)" if self._shape is None else shapes.shape_string(self._shape)

    def canonical_axis_index(self, axis: SupportsIndex) -> int:
        """The axis counted from the front; negative ones count from the back.

        Raises
        ------
        InvalidIndexError
            If there is no such axis.
        """
        return shapes.canonical_axis_index(self.shape, axis)

    def count_axes(self, start: SupportsIndex = 0, end: SupportsIndex | None = None) -> int:
        """The volume of the axes from `start` to before `end`: Caffe's ``count(start, end)``; that of no axes is one.

        Raises
        ------
        InvalidIndexError
            Unless ``0 <= start <= end <= num_axes``.
        """
        return shapes.count_axes(self.shape, start, end)

    def legacy_shape(self, index: SupportsIndex) -> int:
        """The extent of one of four axes, with missing ones counted as one.

        Raises
        ------
        InvalidShapeError
            If there are more than four axes.
        InvalidIndexError
            Unless ``-4 <= index < 4``.
        """
        return shapes.legacy_shape(self.shape, index)

    @overload
    def offset(
        self, num: SupportsIndex, channel: SupportsIndex = 0, row: SupportsIndex = 0, column: SupportsIndex = 0, /
    ) -> int: ...
    @overload
    def offset(self, indices: Iterable[SupportsIndex], /) -> int: ...
    def offset(self, *indices: Any) -> int:
        """The position of an element, in elements (blob.hpp 153-181).

        Parameters
        ----------
        *indices : int, or one sequence of int
            One to four numbers, for at most four axes, each at most *one past the end* of its axis, as pooling layers
            need it; or a sequence of at most as many indices as there are axes, each inside its axis.  Missing ones
            are zero.

        Raises
        ------
        InvalidIndexError
            If an index is out of range, or there are too many.
        InvalidShapeError
            If numbers are given, and there are more than four axes.
        """
        return self._offset(indices, strict=False)

    def _offset(self, indices: tuple[Any, ...], *, strict: bool) -> int:
        if len(indices) == 1 and hasattr(indices[0], "__iter__"):
            return shapes.offset(self.shape, indices[0])
        if not 1 <= len(indices) <= LEGACY_AXES:
            raise InvalidArgumentError("indices", indices, "one to four integers, or a sequence of them")
        return shapes.offset_4d(self.shape, (*indices, *(0,) * (LEGACY_AXES - len(indices))), strict=strict)

    def _position(self, indices: tuple[Any, ...]) -> int:
        """As `offset`, but strictly inside: the position of an element that can be read.

        Raises
        ------
        InvalidIndexError, InvalidShapeError
        """
        position = self._offset(indices, strict=True)
        if not self.count:
            raise InvalidIndexError("indices", indices, f"there is no element in {self.shape_string}")
        return position
