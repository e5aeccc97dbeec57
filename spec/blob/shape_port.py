"""The shape of the small blob: Caffe's rules about axes, counts and positions (blob.hpp 54-181), by hand."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod
from typing import Any, NoReturn

from ..memory.reference import Refused
from .elements import itemsize

__all__ = ["LEGACY", "ShapePort"]

LEGACY = 4
"""How many axes Caffe's blobs once had."""

_AXES = 32
_ADDRESSES = (1 << 63) - 1


class ShapePort:
    """A shape, and what is asked of it.

    Attributes
    ----------
    dtype : str
    axes : tuple of int
    elements : int
        Not always the product: without a shape there are none.
    """

    dtype: str
    axes: tuple[int, ...]
    elements: int

    def refuse(self, why: str) -> NoReturn:
        raise Refused(why)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.axes

    @property
    def count(self) -> int:
        return self.elements

    @property
    def num_axes(self) -> int:
        return len(self.axes)

    def given(self, shape: tuple[Any, ...]) -> list[Any]:
        found: Any = shape if self.are_numbers(shape) else shape[0]
        if isinstance(found, AbstractSet | Mapping):
            self.refuse("no order")
        return list(getattr(found, "dim", found))

    def are_numbers(self, shape: tuple[Any, ...]) -> bool:
        """Whether the extents are given one by one, as many as there are."""
        return len(shape) != 1 or isinstance(shape[0], int)

    def checked(self, extents: list[Any]) -> tuple[int, ...]:
        self.check_axes(extents)
        if any(type(extent) is not int for extent in extents):
            self.refuse("extents are integers")
        self.check_extents(extents)
        self.check_size(extents)
        return tuple(extents)

    def check_axes(self, extents: list[Any]) -> None:
        if len(extents) > _AXES:
            self.refuse("too many axes")

    def check_extents(self, extents: list[Any]) -> None:
        if min(extents, default=0) < 0:
            self.refuse("a negative extent")

    def check_size(self, extents: list[Any]) -> None:
        size = itemsize(self.dtype)
        for extent in extents:
            size *= extent
            if size > _ADDRESSES:
                self.refuse("too large")

    def shape_string(self) -> str:
        return "".join(f"{extent} " for extent in self.axes) + f"({self.elements})"

    def canonical_axis_index(self, axis: int) -> int:
        if not -self.num_axes <= axis < self.num_axes:
            self.refuse("no such axis")
        return axis % self.num_axes

    def count_axes(self, start: int = 0, end: int | None = None) -> int:
        end = self.num_axes if end is None else end
        if not 0 <= start <= end <= self.num_axes:
            self.refuse("no such axes")
        return prod(self.axes[start:end])

    def legacy_shape(self, index: int) -> int:
        self.check_legacy()
        if not -LEGACY <= index < LEGACY:
            self.refuse("no legacy axis")
        return self.padded(index)

    def check_legacy(self) -> None:
        if self.num_axes > LEGACY:
            self.refuse("more than four axes")

    def padded(self, index: int) -> int:
        return self.axes[index] if -self.num_axes <= index < self.num_axes else 1

    @property
    def num(self) -> int:
        return self.legacy_shape(0)

    @property
    def channels(self) -> int:
        return self.legacy_shape(1)

    @property
    def height(self) -> int:
        return self.legacy_shape(2)

    @property
    def width(self) -> int:
        return self.legacy_shape(3)

    def offset(self, *indices: Any) -> int:
        if len(indices) == 1 and not isinstance(indices[0], int):
            return self.offset_of(list(indices[0]))
        return self.offset_4d([*indices, *[0] * (LEGACY - len(indices))])

    def offset_4d(self, indices: list[int]) -> int:
        position = 0
        for axis, index in enumerate(indices):
            extent = self.legacy_shape(axis)
            self.check_legacy_index(index, extent)
            position = position * extent + index
        return position

    def check_legacy_index(self, index: int, extent: int) -> None:
        if index < 0:
            self.refuse("a negative index")
        if index > extent:
            self.refuse("an index behind the end")

    def offset_of(self, indices: list[int]) -> int:
        if len(indices) > self.num_axes:
            self.refuse("more indices than axes")
        for index, extent in zip(indices, self.axes, strict=False):
            self.check_index(index, extent)
        position = 0
        for extent, index in zip(self.axes, [*indices, *[0] * (self.num_axes - len(indices))], strict=True):
            position = position * extent + index
        return position

    def check_index(self, index: int, extent: int) -> None:
        if not 0 <= index < extent:
            self.refuse("an index outside")
