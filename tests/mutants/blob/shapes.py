"""Wrong shapes, and wrong memory after a change of shape."""

from __future__ import annotations

from math import prod
from typing import Any

from syncedmem.model import SyncedHead
from syncedmem.spec.blob.elements import decoded, encoded, itemsize, pour

from ..registry import seeded_bug
from .handmade import HandmadeBlob


@seeded_bug("B01-empty", "Reshape({}) has one element, but Blob() has none")
class BornScalar(HandmadeBlob):
    """A blob without a shape has one element."""

    def set_up(self) -> None:
        self.elements = 1


@seeded_bug("B02-lazy", "blob.cpp:42: a memory is made, but nothing is allocated")
class EagerData(HandmadeBlob):
    """Making a blob allocates its host side."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        self.data_memory.cpu_data()


@seeded_bug("B67-shape-lazy", "blob.cpp:27-30, which is Caffe itself")
class ShapeAllocatedAtOnce(HandmadeBlob):
    """Every shape with more axes than before has memory for its extents on the host, at once."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        size = len(shape) * itemsize("int32")
        if self.shape_memory.size < size:
            self.shape_memory = self.memory(size)
        self.write_extents()

    def write_extents(self) -> None:
        extents = encoded(self.axes, "int32")
        pour(self.shape_memory.mutable_cpu_data()[: len(extents)], extents)
        self.extents_known = self.axes

    def gpu_shape(self) -> Any:
        return super().gpu_shape()[: self.num_axes * itemsize("int32")]


@seeded_bug("B03-shape", "blob.cpp:25: the count starts at one")
class CountOfLastAxes(HandmadeBlob):
    """The count leaves out the first axis."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        self.elements = prod(shape[1:])


@seeded_bug("B04-reshape-forms", "blob.cpp:12-20: the four numbers are passed on as a vector")
class WidthBeforeHeight(HandmadeBlob):
    """Four numbers are read as num, channels, width and height."""

    def given(self, shape: tuple[Any, ...]) -> list[Any]:
        found = super().given(shape)
        return [*found[:2], found[3], found[2]] if len(shape) == 4 else found


@seeded_bug(
    "B04-reshape-forms",
    "blob.cpp:12: four numbers, the only form in old versions",
    out_of_reach="Caffe takes four numbers too, or a vector",
)
class FourNumbersOnly(HandmadeBlob):
    """A call with more or fewer than four numbers is refused."""

    def given(self, shape: tuple[Any, ...]) -> list[Any]:
        if self.are_numbers(shape) and len(shape) != 4:
            self.refuse("four numbers")
        return super().given(shape)


@seeded_bug("B05-reshape-keeps", "NVCaffe allocates whenever the count changes")
class AlwaysRenews(HandmadeBlob):
    """Every change of the count makes new memory."""

    def fits(self, count: int) -> bool:
        return count == self.capacity


@seeded_bug("B05-reshape-keeps", "Caffe before 4fff96636: a count of zero drops the memory")
class ZeroDrops(HandmadeBlob):
    """A reshape to zero elements frees the memory."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        if not self.elements:
            self.grow(0)


@seeded_bug("B05-reshape-keeps", "numpy.ndarray.resize zeroes")
class ZeroesOnReuse(HandmadeBlob):
    """A reshape that fits clears the data."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        if self.data_memory.head is SyncedHead.HEAD_AT_CPU:
            row = self.data_memory.mutable_cpu_data()
            pour(row, bytes(len(row)))


@seeded_bug("B06-growth-renews", "std::vector reserves more than it needs")
class GrowsByHalf(HandmadeBlob):
    """Growing makes memory for half as many elements again."""

    def grow(self, count: int) -> None:
        super().grow(count + count // 2)


@seeded_bug("B07-growth-unshares", "#4883: the owner of shared memory")
class GrowthTellsSharers(HandmadeBlob):
    """Growing clears the old memory, although others share it."""

    def grow(self, count: int) -> None:
        if self.data_memory.head is not SyncedHead.UNINITIALIZED:
            row = self.data_memory.mutable_cpu_data()
            pour(row, bytes(len(row)))
        super().grow(count)


@seeded_bug("B08-equal-sizes", "mini-caffe: a blob without diff")
class DiffOnDemand(HandmadeBlob):
    """Growing leaves the diff as it was."""

    def grow(self, count: int) -> None:
        self.data_memory = self.memory(count * itemsize(self.dtype))

    def fits(self, count: int) -> bool:
        return bool(count * itemsize(self.dtype) <= self.data_memory.size)


@seeded_bug("B09-shape-string", "numpy prints commas")
class ShapeWithCommas(HandmadeBlob):
    """The extents have commas between them."""

    def shape_string(self) -> str:
        return ", ".join(map(str, self.axes)) + f" ({self.elements})"


@seeded_bug("B10-canonical-axis", "blob.hpp:122-124")
class AxisOneTooFar(HandmadeBlob):
    """The axis after the last is the first."""

    def canonical_axis_index(self, axis: int) -> int:
        return 0 if axis == self.num_axes else super().canonical_axis_index(axis)


@seeded_bug("B11-count-axes", "Python's slices")
class CountsFromTheBack(HandmadeBlob):
    """Negative axes are counted from the back."""

    def count_axes(self, start: int = 0, end: int | None = None) -> int:
        return prod(self.axes[start:end])


@seeded_bug("B12-legacy-shape", "blob.hpp:144-149: one-padding")
class PadsInFront(HandmadeBlob):
    """Missing axes count as the first ones, also when axes are counted from the front."""

    def padded(self, index: int) -> int:
        return super().padded(index - 4 if index >= 0 else index)


@seeded_bug("B13-legacy-names", "blob.hpp:131-138: num, channels, height, width")
class HeightIsWidth(HandmadeBlob):
    """The height is the width."""

    @property
    def height(self) -> int:
        return self.width


@seeded_bug("B14-legacy-limit", "blob.hpp:140")
class LegacyOfMany(HandmadeBlob):
    """Legacy accessors use the first four of more axes."""

    def check_legacy(self) -> None:
        pass


@seeded_bug("B15-offset-numbers", "#3952: pooling needs one past the end")
class StrictOffset(HandmadeBlob):
    """One past the end is refused."""

    def check_legacy_index(self, index: int, extent: int) -> None:
        super().check_legacy_index(index + 1, extent)


@seeded_bug("B16-offset-sequence", "blob.hpp:172-173: each index is less than its extent")
class LooseOffset(HandmadeBlob):
    """One past the end is accepted in a sequence too."""

    def check_index(self, index: int, extent: int) -> None:
        super().check_index(min(index, extent - 1), extent)


@seeded_bug("B17-gpu-shape", "blob.cpp:28: 32-bit integers")
class ShapeBackwards(HandmadeBlob):
    """The extents on the device are in reverse order."""

    def write_extents(self) -> None:
        super().write_extents()
        pour(self.shape_memory.mutable_cpu_data(), encoded(self.axes[::-1], "int32"))


@seeded_bug("B17-gpu-shape", "num, channels, height; the width is the rest")
class ThreeExtents(HandmadeBlob):
    """Of four extents the last is missing."""

    def gpu_shape(self) -> Any:
        shown = super().gpu_shape()
        return shown[: 3 * itemsize("int32")] if self.num_axes == 4 else shown


@seeded_bug("B17-gpu-shape", "bytes counted as elements")
class ShortShape(HandmadeBlob):
    """The number of axes is used as the number of bytes."""

    def gpu_shape(self) -> Any:
        return super().gpu_shape()[: self.num_axes]


@seeded_bug("B18-element", "pycaffe: data is float for every type")
class ElementAsFloat(HandmadeBlob):
    """An element of type double is rounded to a float."""

    def element(self, memory: Any, position: int) -> Any:
        found = super().element(memory, position)
        return decoded(encoded((found,), "float32"), "float32")[0] if self.dtype == "float64" else found


@seeded_bug("B18-element", "blob.hpp:166: old versions had four axes")
class ManyAxesAtZero(HandmadeBlob):
    """In a blob of more than four axes every index gives the first element."""

    def element(self, memory: Any, position: int) -> Any:
        return super().element(memory, 0 if self.num_axes > 4 else position)


@seeded_bug("B18-element", "blob.hpp:193: cpu_data()[offset]")
class ElementOnTheDevice(HandmadeBlob):
    """Reading an element makes the device side stale."""

    def element(self, memory: Any, position: int) -> Any:
        found = super().element(memory, position)
        memory.mutable_cpu_data()
        return found


@seeded_bug("B19-max-axes", "blob.cpp:24")
class OneAxisTooMany(HandmadeBlob):
    """33 axes are accepted."""

    def check_axes(self, extents: list[Any]) -> None:
        super().check_axes(extents[1:])


@seeded_bug("B20-negative-extent", "blob.cpp:32")
class NegativeExtent(HandmadeBlob):
    """Negative extents are refused only if their product is negative."""

    def check_extents(self, extents: list[Any]) -> None:
        if prod(extents) < 0:
            super().check_extents(extents)


@seeded_bug("B44-int-count", "blob.cpp:34: only INT_MAX / count_ may follow", shows_on="caffe profile")
class CountOverflows(HandmadeBlob):
    """A count may be larger than an int."""


@seeded_bug("B47-wide-count", "H15; blob.cpp:52: int64 to int")
class ExtentsCut(HandmadeBlob):
    """Extents are cut to 32 bits."""

    def given(self, shape: tuple[Any, ...]) -> list[Any]:
        return [
            extent & 0x7FFF_FFFF if type(extent) is int and extent > 0 else extent for extent in super().given(shape)
        ]


@seeded_bug("B65-too-large", "H15; #2474: the size wraps around")
class SizeWraps(HandmadeBlob):
    """A size beyond the address space is reduced modulo its size."""

    def check_size(self, extents: list[Any]) -> None:
        pass

    def memory(self, size: int) -> Any:
        return super().memory(size % (1 << 63))


@seeded_bug("B65-too-large", "a set of integers is iterable too")
class TakesSets(HandmadeBlob):
    """Extents are accepted from a set, in any order."""

    def given(self, shape: tuple[Any, ...]) -> list[Any]:
        return super().given(tuple(map(list, shape)) if {type(item) for item in shape} == {set} else shape)


@seeded_bug("B45-shrink", "H16: std::vector::shrink_to_fit may do nothing")
class NeverShrinks(HandmadeBlob):
    """shrink_to_fit does nothing."""

    def fitting(self, memory: Any, other: Any) -> Any:
        return memory


@seeded_bug("B45-shrink", "#4102: free memory that is not used")
class ShrinkForgets(HandmadeBlob):
    """shrink_to_fit loses the elements."""

    def bring(self, memory: Any, fitting: Any) -> None:
        getattr(fitting, f"mutable_{self.where(memory)}_data")()


@seeded_bug("B46-capacity", "H1; #5439: ShareData does not update capacity_")
class CapacityRemembered(HandmadeBlob):
    """The capacity is that of the last growth, even after another memory is used."""

    remembered = 0

    def grow(self, count: int) -> None:
        super().grow(count)
        self.remembered = count

    @property
    def capacity(self) -> int:
        return self.remembered
