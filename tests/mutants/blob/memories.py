"""Wrong memories: access, adoption, sharing, and memory that is not freed."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

from ..registry import seeded_bug
from .handmade import HandmadeBlob


@seeded_bug("B21-accessors", "pycaffe: data is mutable_cpu_data on every read")
class ReadsAsWrites(HandmadeBlob):
    """Reading the data on the host counts as writing it."""

    def cpu_data(self) -> Any:
        return self.mutable_cpu_data()


@seeded_bug("B21-accessors", "blob.hpp:270-271: data_ and diff_")
class DiffTouchesData(HandmadeBlob):
    """Reading the diff also brings the data up to date."""

    def gpu_diff(self) -> Any:
        self.data_memory.gpu_data()
        return super().gpu_diff()


@seeded_bug("B21-accessors", "a view that is kept, as in our own elements.py, without the look whether it still holds")
class LooksOnce(HandmadeBlob):
    """Reading the data on the host again shows the view of the first time, if no other memory has come."""

    def cpu_data(self) -> Any:
        memory, view = self.__dict__.get("looked", (None, None))
        if memory is not self.data_memory:
            memory, view = self.__dict__["looked"] = self.data_memory, super().cpu_data()
        return view[:]


@seeded_bug("B69-fresh-view", "a view that is kept, and is given out itself")
class OneArrayForAll(HandmadeBlob):
    """Reading the data on the host again gives out the same object, while it is over the same bytes."""

    known: tuple[Any, ...] = (None, (), None)

    def cpu_data(self) -> Any:
        view, pointer = super().cpu_data(), self.data_memory._blocks["cpu"].pointer
        if self.known[0] is not pointer or self.known[1] != self.axes:
            self.known = pointer, self.axes, view
        return self.known[2]


@seeded_bug("B22-elements", "blob.cpp:40: the memory is larger than the blob")
class ViewOfEverything(HandmadeBlob):
    """A view shows the whole memory."""

    def device_view(self, memory: Any, call: str) -> Any:
        return getattr(memory, call)()


@seeded_bug("B23-adopt-redirects", "H20")
class AdoptsAlone(HandmadeBlob):
    """Adopting makes a new memory, also if the size is the same."""

    def redirect(self, memory: Any, call: str, buffer: Any) -> None:
        self.data_memory = self.memory(memory.size)
        super().redirect(self.data_memory, call, buffer)


@seeded_bug(
    "B23-adopt-redirects",
    "H18 taken too far: the call frees one side",
    out_of_reach="Caffe has no call that adopts for the diff",
)
class KeepsBothSides(HandmadeBlob):
    """Adopting on one side is refused while the other part uses the memory of the other side."""

    def check_not_adopted(self, memory: Any, other: Any, call: str) -> None:
        for side in ("cpu", "gpu"):
            super().check_not_adopted(memory, other, f"set_{side}_data")


def overlap(first: Any, second: Any, side: str) -> bool:
    """Whether two memories use the same bytes of a side, whoever owns them."""
    blocks = [item._blocks.get(side) for item in (first, second)]
    return all(blocks) and bool(first._places[side].overlaps(*(block.pointer for block in blocks)))


@seeded_bug(
    "B23-adopt-redirects",
    "H18 taken too far: nobody asks whose memory it is",
    out_of_reach="Caffe has no call that adopts for the diff",
)
class KeepsWhatIsAdopted(HandmadeBlob):
    """Adopting is refused while both parts use one buffer of the caller, which nobody frees."""

    def check_not_adopted(self, memory: Any, other: Any, call: str) -> None:
        if overlap(memory, other, call[4:7]):
            self.refuse("the other part uses this buffer")


@seeded_bug("B24-adopt-renews", "H5 taken too far: nobody asks whose memory it is")
class RefusesToRenewWhatIsAdopted(HandmadeBlob):
    """A part of a buffer of the caller is refused if the blob has adopted the whole, which nobody frees."""

    def check_kept(self, given_up: tuple[Any, ...], *kept: Any) -> None:
        if any(overlap(*name) for name in product(given_up, kept, ("cpu", "gpu"))):
            self.refuse("own memory")


@seeded_bug("B24-adopt-renews", "Caffe before 3ba20549b")
class AdoptKeepsDiff(HandmadeBlob):
    """Adopting in another size leaves the diff as it was."""

    def renew_diff(self) -> None:
        pass


@seeded_bug("B25-adopt-diff", "a copy of set_cpu_data with one word changed")
class AdoptDiffRenewsData(HandmadeBlob):
    """Adopting for the diff renews the data too."""

    def adopt_diff(self, call: str, buffer: Any) -> None:
        fits = self.diff_memory.size == self.bytes()
        super().adopt_diff(call, buffer)
        if not fits:
            self.data_memory = self.memory(self.bytes())


@seeded_bug("B26-share-object", "#6488: the object is shared")
class ShareCopies(HandmadeBlob):
    """Sharing makes a separate memory."""

    def share_data(self, other: Any) -> None:
        super().share_data(other)
        self.data_memory = self.memory(other.data_memory.size)


@seeded_bug("B26-share-object", "#6769: ShareData for ShareDiff")
class ShareDiffSharesData(HandmadeBlob):
    """Sharing the diff shares the data."""

    def share_diff(self, other: Any) -> None:
        super().share_diff(other)
        self.data_memory = other.data_memory


@seeded_bug("B27-share-count", "blob.cpp:157: the count, not the shape")
class SharesAnyCount(HandmadeBlob):
    """Blobs of any counts can be shared."""

    def check_count(self, other: Any) -> None:
        pass


@seeded_bug("B27-share-count", "blob.cpp:157: the count, not the shape")
class SharesOneShape(HandmadeBlob):
    """Sharing needs equal shapes."""

    def check_count(self, other: Any) -> None:
        if other.shape != self.shape:
            self.refuse("other shapes")


@seeded_bug("B48-no-device", "PyOP2: the device is an alias of the host", shows_on="no device")
class DeviceIsHost(HandmadeBlob):
    """Without a device, gpu_data is cpu_data."""

    def gpu_data(self) -> Any:
        return self.cpu_data()


@seeded_bug("B49-bad-buffer-refused", "H6: a pointer has no type")
class AdoptsAnyType(HandmadeBlob):
    """Elements of any type are adopted."""

    def check_buffer(self, buffer: Any) -> None:
        pass


@seeded_bug("B68-null-refused", "blob.cpp:91 left out: a null pointer is no buffer, so nothing to do")
class IgnoresNull(HandmadeBlob):
    """NULL is accepted, and nothing is adopted."""

    def adopt_data(self, call: str, buffer: Any) -> None:
        if buffer is not None:
            super().adopt_data(call, buffer)


@seeded_bug("B56-unchanged", "H4: Reshape({7,8,-1,9}) leaves 7 8")
class ShapeBeforeCheck(HandmadeBlob):
    """The shape is set before it is checked completely."""

    def checked(self, extents: list[Any]) -> tuple[int, ...]:
        before, self.axes = self.axes, tuple(extents)
        found = super().checked(extents)
        self.axes = before
        return found


@seeded_bug("B56-unchanged", "H4: Blob::set_gpu_data in a CPU build replaces the memories first")
class RenewsBeforeCheck(HandmadeBlob):
    """Adopting renews the memories before the buffer is checked."""

    def adopt_data(self, call: str, buffer: Any) -> None:
        if self.data_memory.size != self.bytes():
            self.data_memory, self.diff_memory = self.memory(self.bytes()), self.memory(self.bytes())
        super().adopt_data(call, buffer)


@seeded_bug("B57-failure-keeps-numbers", "H4: the shape is set before the copy can fail")
class ReshapesBeforeCopy(HandmadeBlob):
    """A copy drops the old numbers first, to save memory; if it fails, they are lost."""

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        if source is not self and source.count == self.count and self.data_memory is not source.data_memory:
            self.data_memory = self.memory(self.data_memory.size)
        super().copy_from(source, copy_diff, reshape)


@seeded_bug("B57-failure-keeps-numbers", "H4; blob.cpp:436: Reshape comes first")
class FailedCopyReshapes(HandmadeBlob):
    """After a failed copy the new shape stays, with its memory."""

    def restore(self, before: dict[str, Any]) -> None:
        pass


@seeded_bug("B57-failure-keeps-numbers", "H4: the old memory is freed before the new one is filled")
class FailedShrinkForgets(HandmadeBlob):
    """The data is lost if a part cannot be copied to smaller memory."""

    def bring(self, memory: Any, fitting: Any) -> None:
        try:
            super().bring(memory, fitting)
        except Exception:
            self.data_memory = fitting
            raise


@seeded_bug("B57-failure-keeps-numbers", "KuiperLLama: CUDA errors are ignored")
class KeepsFailuresQuiet(HandmadeBlob):
    """A copy that fails half-way is not reported, and the rest is left out."""

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        with suppress(MemoryError):
            super().copy_from(source, copy_diff, reshape)


@seeded_bug("B58-type-mismatch", "in C++ each type is a class")
class SharesAnyType(HandmadeBlob):
    """Blobs of other types are shared and copied, byte by byte."""

    def check_types(self, other: Any) -> None:
        pass


@seeded_bug("B59-independent", "two blobs, one pool")
class OneDiffForAll(HandmadeBlob):
    """All blobs of one size use one diff."""

    common: Any = None

    def share_data(self, other: Any) -> None:
        super().share_data(other)
        other.diff_memory = self.diff_memory


@seeded_bug("B60-nothing-left", "H16: memory is never freed")
class Hoards(HandmadeBlob):
    """Memory that became too small is kept."""

    def set_up(self) -> None:
        self.outgrown: list[Any] = []

    def grow(self, count: int) -> None:
        self.outgrown.append(self.data_memory)
        super().grow(count)


@seeded_bug("B61-shape-once", "blob.cpp:30: every reshape makes the host side newer")
class ShapeSentAgain(HandmadeBlob):
    """The extents are sent again after every reshape."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        super().take_shape(shape)
        self.extents_known = None


@seeded_bug("B66-own-memory", "H5 of a blob: memory that is replaced is freed")
class AdoptsOwnData(HandmadeBlob):
    """A view of the data's memory, which is larger than the blob, is adopted for the data."""

    def data_gives_up(self) -> tuple[Any, ...]:
        return (self.diff_memory,)


@seeded_bug("B66-own-memory", "H5; blob.cpp:96: the diff is renewed too")
class DataAdoptsOwnDiff(HandmadeBlob):
    """A view of the diff, which is dropped too, is adopted for the data."""

    def data_gives_up(self) -> tuple[Any, ...]:
        return (self.data_memory,)


@seeded_bug("B66-own-memory", "H5; a copy of set_cpu_data with one word changed")
class AdoptsOwnDiff(HandmadeBlob):
    """A view of the diff's memory, which is larger than the blob, is adopted for the diff."""

    def diff_gives_up(self) -> tuple[Any, ...]:
        return ()


@seeded_bug("B66-own-memory", "H18: the other part has adopted one side")
class FreesTheExporter(HandmadeBlob):
    """Adopting frees memory that the other part has adopted."""

    def check_not_adopted(self, memory: Any, other: Any, call: str) -> None:
        pass


@seeded_bug("B66-own-memory", "H18; H20")
class SharesWhatItFrees(HandmadeBlob):
    """A memory of another blob, which had adopted this blob's memory, is shared, and this memory is freed."""

    def share_data(self, other: Any) -> None:
        self.check_alike(other)
        self.check_count(other)
        self.data_memory = other.data_memory


@seeded_bug("B66-own-memory", "H18: the memory of the extents is freed when their number changes")
class AdoptsItsExtents(HandmadeBlob):
    """A blob adopts the memory of its own shape for its numbers."""

    def check_not_extents(self, call: str, buffer: Any) -> None:
        pass


@seeded_bug("B66-own-memory", "H16, H18: memory that is not needed is freed")
class ShrinkFreesTheExporter(HandmadeBlob):
    """shrink_to_fit frees memory that the other part has adopted."""

    def holds(self, memory: Any, other: Any) -> bool:
        return False


@seeded_bug("B62-negative-index", "blob.hpp:157: channels() for c")
class NegativeChannel(HandmadeBlob):
    """A negative channel is accepted."""

    def offset_4d(self, indices: list[int]) -> int:
        n, c, *rest = indices
        position = super().offset_4d([n, max(c, 0), *rest])
        return position + min(c, 0) * self.legacy_shape(2) * self.legacy_shape(3)


@seeded_bug("B63-element-in-range", "#6021: one past the end is an offset, but not an element")
class ElementBehindTheEnd(HandmadeBlob):
    """The element one past the end of its axis is the first of the next row."""

    def check_element(self, index: int, extent: int) -> None:
        pass


@seeded_bug("B64-no-elements", "H14: the pointers of an empty blob are null")
class EmptyIsNull(HandmadeBlob):
    """A blob without elements refuses copies."""

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        if not self.elements:
            self.refuse("null")
        super().copy_from(source, copy_diff, reshape)
