"""Planted faults: wrong blobs that the kit must refuse, at least one for every requirement.

Each is `syncedmem.spec.blobs.port.BlobPort` with one step done wrong, labelled with the requirement it breaks and with
where the fault comes from: a seed text, an issue, a hazard of Caffe, or what a port is likely to get wrong.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from syncedmem.model import Mode, SyncedHead, current_mode

from ..faults.registry import Fault
from .elements import decoded, encoded, itemsize, pour, shown
from .port import BlobPort

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..faults.registry import Shows

__all__ = ["BLOB_FAULTS"]

BLOB_FAULTS: dict[str, Fault] = {}
"""Every planted fault by name."""


def planted(requirement: str, source: str, *, bench: Shows = "device") -> Callable[[type[BlobPort]], type[BlobPort]]:
    """Register a wrong blob under the name of its class."""

    def register(make: type[BlobPort]) -> type[BlobPort]:
        BLOB_FAULTS[make.__name__] = Fault(make.__name__, requirement, source, bench, make)
        return make

    return register


# --- shape


@planted("B01-empty", "Reshape({}) has one element, and Blob() has none")
class BornScalar(BlobPort):
    """A blob without a shape has one element."""

    def set_up(self) -> None:
        self.elements = 1


@planted("B02-lazy", "001 allocates in the constructor")
class EagerData(BlobPort):
    """Making a blob allocates its host side."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        self.data_memory.cpu_data()


@planted("B03-shape", "blob.cpp 26: the count starts at one")
class CountOfLastAxes(BlobPort):
    """The count leaves out the first axis."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        self.elements = prod(shape[1:])


@planted("B04-reshape-forms", "002:55-66: the four numbers forward to the vector")
class WidthBeforeHeight(BlobPort):
    """Four numbers are taken as num, channels, width and height."""

    def given(self, shape: tuple[Any, ...]) -> list[Any]:
        found = super().given(shape)
        return [*found[:2], found[3], found[2]] if len(shape) == 4 else found  # noqa: PLR2004 -- the legacy form


@planted("B05-reshape-keeps", "NVCaffe allocates whenever the count changes")
class AlwaysRenews(BlobPort):
    """Every change of the count takes new memory."""

    def fits(self, count: int) -> bool:
        return count == self.capacity


@planted("B05-reshape-keeps", "Caffe before 4fff96636: a count of zero drops the memory")
class ZeroDrops(BlobPort):
    """A reshape to no elements gives the memory back."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        if not self.elements:
            self.grow(0)


@planted("B05-reshape-keeps", "numpy.ndarray.resize zeroes")
class ZeroesOnReuse(BlobPort):
    """A reshape that fits clears the data."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        if self.data_memory.head is SyncedHead.HEAD_AT_CPU:
            row = self.data_memory.mutable_cpu_data()
            pour(row, bytes(len(row)))


@planted("B06-growth-renews", "std::vector keeps what it holds")
class GrowsByHalf(BlobPort):
    """Growing takes half as much again as is needed."""

    def grow(self, count: int) -> None:
        super().grow(count + count // 2)


@planted("B07-growth-unshares", "#4883: whose memory is it")
class GrowthTellsSharers(BlobPort):
    """Growing makes the old memory forget what is in it, although others share it."""

    def grow(self, count: int) -> None:
        if self.data_memory.head is not SyncedHead.UNINITIALIZED:
            row = self.data_memory.mutable_cpu_data()
            pour(row, bytes(len(row)))
        super().grow(count)


@planted("B08-equal-sizes", "mini-caffe: a blob without diff")
class DiffOnDemand(BlobPort):
    """Growing leaves the diff as it was."""

    def grow(self, count: int) -> None:
        self.data_memory = self.memory(count * itemsize(self.dtype))

    def fits(self, count: int) -> bool:
        return count * itemsize(self.dtype) <= self.data_memory.size


@planted("B09-shape-string", "numpy prints commas")
class ShapeWithCommas(BlobPort):
    """The extents have commas between them."""

    def shape_string(self) -> str:
        return ", ".join(map(str, self.axes)) + f" ({self.elements})"


@planted("B10-canonical-axis", "blob.hpp 121")
class AxisOneTooFar(BlobPort):
    """The axis behind the last is the first."""

    def canonical_axis_index(self, axis: int) -> int:
        return 0 if axis == self.num_axes else super().canonical_axis_index(axis)


@planted("B11-count-axes", "Python's slices")
class CountsFromTheBack(BlobPort):
    """Negative axes are counted from the back."""

    def count_axes(self, start: int = 0, end: int | None = None) -> int:
        return prod(self.axes[start:end])


@planted("B12-legacy-shape", "blob.hpp 143-149: one-padding")
class PadsInFront(BlobPort):
    """Missing axes are at the beginning, from the front too."""

    def padded(self, index: int) -> int:
        return super().padded(index - 4 if index >= 0 else index)


@planted("B13-legacy-names", "002:36: num, channels, height, width")
class HeightIsWidth(BlobPort):
    """The height is the width."""

    @property
    def height(self) -> int:
        return self.width


@planted("B14-legacy-limit", "blob.hpp 140")
class LegacyOfMany(BlobPort):
    """Legacy accessors look at the first four of many axes."""

    def check_legacy(self) -> None:
        pass


@planted("B15-offset-numbers", "#3952: pooling goes one past the end")
class StrictOffset(BlobPort):
    """One past the end is refused."""

    def check_legacy_index(self, index: int, extent: int) -> None:
        super().check_legacy_index(index + 1, extent)


@planted("B16-offset-sequence", "blob.hpp 174: each index strictly inside")
class LooseOffset(BlobPort):
    """One past the end is taken from a sequence too."""

    def check_index(self, index: int, extent: int) -> None:
        super().check_index(min(index, extent - 1), extent)


@planted("B17-gpu-shape", "blob.cpp 41: 32-bit integers")
class ShapeBackwards(BlobPort):
    """The extents are on the device in reverse."""

    def write_extents(self) -> None:
        super().write_extents()
        pour(self.shape_memory.mutable_cpu_data(), encoded(self.axes[::-1], "int32"))


@planted("B18-element", "blob.hpp 183: cpu_data()[offset]")
class ElementOnTheDevice(BlobPort):
    """Reading an element makes the host side the only fresh one."""

    def element(self, memory: Any, position: int) -> Any:
        found = super().element(memory, position)
        memory.mutable_cpu_data()
        return found


@planted("B19-max-axes", "blob.cpp 24")
class OneAxisTooMany(BlobPort):
    """33 axes are taken."""

    def check_axes(self, extents: list[Any]) -> None:
        super().check_axes(extents[1:])


@planted("B20-negative-extent", "blob.cpp 33")
class NegativeExtent(BlobPort):
    """The check of the count hides a negative extent."""

    def check_extents(self, extents: list[Any]) -> None:
        if prod(extents) < 0:
            super().check_extents(extents)


@planted("B44-int-count", "blob.cpp 34: only INT_MAX / count_ may follow", bench="caffe profile")
class CountOverflows(BlobPort):
    """A count may exceed what an int holds."""


@planted("B47-wide-count", "H15; blob.cpp 51: int64 to int")
class ExtentsCut(BlobPort):
    """Extents are cut to 32 bits."""

    def given(self, shape: tuple[Any, ...]) -> list[Any]:
        return [extent & 0x7FFF_FFFF if type(extent) is int and extent > 0 else extent for extent in super().given(shape)]


@planted("B65-too-large", "H15; #2474: the size wraps")
class SizeWraps(BlobPort):
    """A size that the address space cannot hold is taken modulo it."""

    def check_size(self, extents: list[Any]) -> None:
        pass

    def memory(self, size: int) -> Any:
        return super().memory(size % (1 << 63))


@planted("B45-shrink", "H16: std::vector::shrink_to_fit may do nothing")
class NeverShrinks(BlobPort):
    """shrink_to_fit does nothing."""

    def fitting(self, memory: Any) -> Any:
        return memory


@planted("B45-shrink", "#4102: give back what is not used")
class ShrinkForgets(BlobPort):
    """shrink_to_fit loses the elements."""

    def bring(self, memory: Any, fitting: Any) -> None:
        getattr(fitting, f"mutable_{self.where(memory)}_data")()


@planted("B46-capacity", "H1; #5439: ShareData leaves capacity_ as it was")
class CapacityRemembered(BlobPort):
    """The capacity is that of the last growth, whatever memory came since."""

    remembered = 0

    def grow(self, count: int) -> None:
        super().grow(count)
        self.remembered = count

    @property
    def capacity(self) -> int:
        return self.remembered


# --- access, adoption, sharing


@planted("B21-accessors", "pycaffe: data is mutable_cpu_data on every read")
class ReadsAsWrites(BlobPort):
    """Reading the data on the host counts as writing it."""

    def cpu_data(self) -> Any:
        return self.mutable_cpu_data()


@planted("B21-accessors", "003: data_ and diff_")
class DiffTouchesData(BlobPort):
    """Asking for the diff brings the data along."""

    def gpu_diff(self) -> Any:
        self.data_memory.gpu_data()
        return super().gpu_diff()


@planted("B22-elements", "blob.cpp 42: the memory is larger than the blob")
class ViewOfEverything(BlobPort):
    """A view shows all of the memory."""

    def device_view(self, memory: Any, call: str) -> Any:
        return getattr(memory, call)()


@planted("B23-adopt-redirects", "H20")
class AdoptsAlone(BlobPort):
    """Adopting takes a memory of one's own, also where the size is the same."""

    def redirect(self, memory: Any, call: str, buffer: Any) -> None:
        self.data_memory = self.memory(memory.size)
        super().redirect(self.data_memory, call, buffer)


@planted("B24-adopt-renews", "Caffe before 3ba20549b")
class AdoptKeepsDiff(BlobPort):
    """Adopting in another size leaves the diff as it was."""

    def renew_diff(self) -> None:
        pass


@planted("B25-adopt-diff", "a copy of set_cpu_data with one word changed")
class AdoptDiffRenewsData(BlobPort):
    """Adopting for the diff renews the data too."""

    def adopt_diff(self, call: str, buffer: Any) -> None:
        fits = self.diff_memory.size == self.bytes()
        super().adopt_diff(call, buffer)
        if not fits:
            self.data_memory = self.memory(self.bytes())


@planted("B26-share-object", "#6488: what is shared is the object")
class ShareCopies(BlobPort):
    """Sharing copies the other's numbers."""

    def share_data(self, other: Any) -> None:
        super().share_data(other)
        self.data_memory = self.memory(other.data_memory.size)


@planted("B26-share-object", "#6769: ShareData for ShareDiff")
class ShareDiffSharesData(BlobPort):
    """Sharing the diff shares the data."""

    def share_diff(self, other: Any) -> None:
        super().share_diff(other)
        self.data_memory = other.data_memory


@planted("B27-share-count", "blob.cpp 157: the count, not the shape")
class SharesAnyCount(BlobPort):
    """Blobs of any count are shared."""

    def check_count(self, other: Any) -> None:
        pass


@planted("B27-share-count", "blob.cpp 157: the count, not the shape")
class SharesOneShape(BlobPort):
    """Sharing needs equal shapes."""

    def check_count(self, other: Any) -> None:
        if other.shape != self.shape:
            self.refuse("other shapes")


@planted("B48-no-device", "PyOP2: the device is an alias of the host", bench="no device")
class DeviceIsHost(BlobPort):
    """Without a device, gpu_data is cpu_data."""

    def gpu_data(self) -> Any:
        return self.cpu_data()


@planted("B49-bad-buffer-refused", "H6: a pointer has no type")
class AdoptsAnyType(BlobPort):
    """Elements of any type are adopted."""

    def check_buffer(self, buffer: Any) -> None:
        pass


@planted("B56-unchanged", "H4: Reshape({7,8,-1,9}) leaves 7 8")
class ShapeBeforeCheck(BlobPort):
    """The shape is taken before it is checked to the end."""

    def checked(self, extents: list[Any]) -> tuple[int, ...]:
        before, self.axes = self.axes, tuple(extents)
        found = super().checked(extents)
        self.axes = before
        return found


@planted("B56-unchanged", "H4: Blob::set_gpu_data in a CPU build replaces the memories first")
class RenewsBeforeCheck(BlobPort):
    """Adopting renews the memories before the buffer is looked at."""

    def adopt_data(self, call: str, buffer: Any) -> None:
        if self.data_memory.size != self.bytes():
            self.data_memory, self.diff_memory = self.memory(self.bytes()), self.memory(self.bytes())
        super().adopt_data(call, buffer)


@planted("B57-failure-keeps-numbers", "H4: the shape is taken before the copy can fail")
class ReshapesBeforeCopy(BlobPort):
    """A copy that fails has dropped the old numbers, to save memory."""

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        if source is not self and source.count == self.count and self.data_memory is not source.data_memory:
            self.data_memory = self.memory(self.data_memory.size)
        super().copy_from(source, copy_diff, reshape)


@planted("B58-type-mismatch", "C++ has a type for each")
class SharesAnyType(BlobPort):
    """Blobs of other types are shared and copied, byte by byte."""

    def check_types(self, other: Any) -> None:
        pass


@planted("B59-independent", "two blobs, one pool")
class OneDiffForAll(BlobPort):
    """All blobs of one size use one diff."""

    common: Any = None

    def share_data(self, other: Any) -> None:
        super().share_data(other)
        other.diff_memory = self.diff_memory


@planted("B60-nothing-left", "H16: nothing is ever given back")
class Hoards(BlobPort):
    """Memory that was outgrown is kept for later."""

    def set_up(self) -> None:
        self.outgrown: list[Any] = []

    def grow(self, count: int) -> None:
        self.outgrown.append(self.data_memory)
        super().grow(count)


@planted("B61-shape-once", "blob.cpp 30: every reshape makes the host side newer")
class ShapeSentAgain(BlobPort):
    """The extents are sent again after every reshape."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        self.extents_known = None


@planted("B62-negative-index", "blob.hpp 156: channels() for c")
class NegativeChannel(BlobPort):
    """A negative channel is taken."""

    def offset_4d(self, indices: list[int]) -> int:
        n, c, *rest = indices
        position = super().offset_4d([n, max(c, 0), *rest])
        return position + min(c, 0) * self.legacy_shape(2) * self.legacy_shape(3)


@planted("B63-element-in-range", "#6021: one past the end is an offset, and no element")
class ElementBehindTheEnd(BlobPort):
    """The element one past the end is the last."""

    def element(self, memory: Any, position: int) -> Any:
        return super().element(memory, min(position, self.elements - 1))


@planted("B64-no-elements", "H14: the pointers of an empty blob are null")
class EmptyIsNull(BlobPort):
    """A blob without elements has nothing to copy from."""

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        if not self.elements:
            self.refuse("null")
        super().copy_from(source, copy_diff, reshape)


# --- arithmetic and copies


@planted("B28-update-numbers", "003:52: data - diff")
class UpdateAdds(BlobPort):
    """update adds the diff."""

    def stepped(self, value: float, step: float) -> float:
        return value + step


@planted("B29-update-side", "H11: by the head, not by the mode")
class UpdateByMode(BlobPort):
    """update works where the mode says."""

    def update(self) -> None:
        side = "gpu" if current_mode() is Mode.GPU and self.device is not None else "cpu"
        if not self.unwritten(self.data_memory):
            getattr(self.data_memory, f"mutable_{side}_data")()
        super().update()


@planted("B29-update-side", "blob.cpp 183: SYNCED is the device")
class SyncedUpdatesOnHost(BlobPort):
    """What is on both sides is updated on the host."""

    def where(self, memory: Any) -> str:
        return "gpu" if memory.head is SyncedHead.HEAD_AT_GPU else "cpu"


@planted("B30-update-unwritten", "blob.cpp 194")
class UpdatesNothing(BlobPort):
    """update of what was never written subtracts from zero."""

    def check_written(self) -> None:
        pass


@planted("B31-asum", "003:90: L1")
class AsumOfSigned(BlobPort):
    """asum forgets the magnitudes."""

    def asum(self, memory: Any) -> float:
        return float(sum(self.values(memory)))


@planted("B32-sumsq", "003:92 says that sumsq is the L1 norm")
class SumsqIsL1(BlobPort):
    """sumsq is the sum of the magnitudes."""

    def sumsq(self, memory: Any) -> float:
        return self.asum(memory)


@planted("B33-norm-unwritten", "blob.cpp 217")
class NormAllocates(BlobPort):
    """The norm of what was never written is taken of zeroes."""

    def unwritten(self, memory: Any) -> bool:
        memory.cpu_data()
        return False


@planted("B34-norm-side", "pycaffe: everything through cpu_data")
class NormOnHost(BlobPort):
    """Norms are taken on the host."""

    def read(self, memory: Any) -> tuple[Any, ...]:
        return decoded(shown(self.raw(memory, "cpu_data")), self.dtype)


@planted("B35-scale-numbers", "blob.cpp 357: count_")
class ScalesTheFirst(BlobPort):
    """Only the first element is scaled."""

    def scale(self, memory: Any, factor: float) -> None:
        if self.untouched(memory) or not self.elements:
            super().scale(memory, factor)
            return
        self.check_arithmetic()
        row = self.raw(memory, f"mutable_{self.where(memory)}_data")
        first, *rest = decoded(shown(row), self.dtype)
        pour(row, encoded((first * factor, *rest), self.dtype))


@planted("B36-scale-side", "blob.cpp 360: SYNCED is the device")
class ScalesOnHost(BlobPort):
    """What is on both sides is scaled on the host."""

    def side_of_scale(self, memory: Any) -> str:
        return "gpu" if memory.head is SyncedHead.HEAD_AT_GPU else "cpu"


@planted("B37-scale-unwritten", "blob.cpp 351")
class ScaleAllocates(BlobPort):
    """Scaling what was never written allocates zeroes."""

    def untouched(self, _memory: Any) -> bool:
        return False


@planted("B38-integers-refused", "blob.cpp 170: NOT_IMPLEMENTED")
class IntegersToo(BlobPort):
    """Integers have arithmetic."""

    def check_arithmetic(self) -> None:
        pass


@planted("B39-copy-numbers", "blob.cpp 445: count_, not bytes")
class CopiesAllButTheLast(BlobPort):
    """The last element is not copied."""

    def copy(self, given: Any, taken: Any, side: str) -> None:
        kept = shown(taken)[-itemsize(self.dtype) :]
        super().copy(given, taken, side)
        pour(taken, shown(given)[: -itemsize(self.dtype)] + kept)


@planted("B40-copy-by-mode", "H11: by the mode, not by the head")
class CopiesByHead(BlobPort):
    """A copy is made where the source is."""

    def side_of_copy(self, _mine: Any, theirs: Any) -> str:
        return self.where(theirs)


@planted("B41-copy-reshape", "blob.cpp 436")
class CopyKeepsShape(BlobPort):
    """A copy that has room keeps its shape, and fills the beginning."""

    def shape_like_source(self, source: Any, reshape: bool) -> None:
        before, count = self.axes, self.elements
        super().shape_like_source(source, reshape)
        if prod(source.shape) <= count:
            self.axes, self.elements = before, count


@planted("B42-copy-shape", "blob.cpp 435: count or shape")
class CopiesByCount(BlobPort):
    """A copy needs equal counts only."""

    def shape_like_source(self, source: Any, reshape: bool) -> None:
        if reshape or source.count != self.count:
            super().shape_like_source(source, reshape)


@planted("B43-copy-self", "math_functions.cpp 89: X != Y")
class SelfCopyIsNothing(BlobPort):
    """Copying onto oneself does nothing at all."""

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        if source is not self:
            super().copy_from(source, copy_diff, reshape)


# --- messages


@planted("B50-message-shape", "blob.cpp 467: old fields win")
class NewShapeFirst(BlobPort):
    """The shape of a message is read before its old fields."""

    def shape_in(self, message: Any) -> list[int]:
        return list(message.shape.dim) or super().shape_in(message)


@planted("B50-message-shape", "caffe.proto 19-22: the default is zero")
class MissingFieldsAreOne(BlobPort):
    """Old fields that are missing count as one."""

    def shape_in(self, message: Any) -> list[int]:
        found = super().shape_in(message)
        return found if message.num is None else [extent or 1 for extent in found]


@planted("B51-message-numbers", "blob.cpp 488: double_data first")
class FloatsFirst(BlobPort):
    """Floats are read before doubles."""

    def numbers_in(self, message: Any, part: str) -> list[float] | None:
        return getattr(message, part) or super().numbers_in(message, part)


@planted("B51-message-numbers", "blob.cpp 501-516: the old diff is kept")
class MissingDiffIsZero(BlobPort):
    """A diff that is not in the message is cleared."""

    def numbers_in(self, message: Any, part: str) -> list[float] | None:
        found = super().numbers_in(message, part)
        return [0.0] * len(super().numbers_in(message, "data") or []) if found is None else found


@planted("B52-message-count", "#4215; blob.cpp 494")
class ShortMessages(BlobPort):
    """Numbers that a message lacks are zero."""

    def check_numbers(self, shape: tuple[int, ...], data: list[float], diff: list[float] | None) -> None:
        for values in (data, diff or data):
            values += [0.0] * (prod(shape) - len(values))
        super().check_numbers(shape, data, diff)


@planted("B53-message-same-shape", "blob.cpp 485")
class MessagesByCount(BlobPort):
    """A message of another shape is taken if the counts are the same."""

    def from_proto(self, message: Any, reshape: bool = True) -> None:
        same = prod(self.shape_in(message)) == self.elements
        super().from_proto(message, reshape or same)


@planted("B54-message-written", "blob.cpp 519: write_diff")
class WritesNoDiff(BlobPort):
    """The diff is not written although it was asked for."""

    def to_proto(self, write_diff: bool = False) -> Any:
        return super().to_proto(write_diff=False)


@planted("B55-shape-equals", "blob.cpp 413: from the last axis")
class ComparesFromTheFront(BlobPort):
    """Old fields are compared from the first axis."""

    def shape_equals(self, message: Any) -> bool:
        if message.num is None:
            return super().shape_equals(message)
        return [*self.axes, *(1,) * (4 - self.num_axes)] == message.old
