"""A small correct blob: Caffe's ``blob.cpp`` written by hand over the reference memory, and made safe.

It is a second implementation, independent of the oracle and of the runtime.  Each step is a separate method, so
a seeded bug overrides one method.  Its arithmetic is plain Python.  On the
device, too, it goes through the views' ``get`` and ``set``.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod
from types import SimpleNamespace
from typing import Any, NoReturn

from syncedmem.model import Mode, SyncedHead, current_mode
from syncedmem.spec.blob.elements import INTEGERS, TYPES, decoded, encoded, itemsize, pour, shown
from syncedmem.spec.memory.reference import ReferenceMemory, Refused

__all__ = ["HandmadeBlob", "IntHandmadeBlob"]

_AXES, _LEGACY = 32, 4
_ADDRESSES = (1 << 63) - 1
_INT_MAX = (1 << 31) - 1
_WITHIN_DEVICE = 3
_AT_GPU = (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED)
_EXTENT = "int32"
_FORMATS = {**TYPES, "float16": "H"}  # formats that `memoryview.cast` supports


class Message:
    """The reference's BlobProto: its fields, which are None or empty if they are not set."""

    def __init__(self) -> None:
        self.num: int | None = None
        self.channels: int | None = None
        self.height: int | None = None
        self.width: int | None = None
        self.shape: SimpleNamespace = SimpleNamespace(dim=[])
        self.data: list[float] = []
        self.diff: list[float] = []
        self.double_data: list[float] = []
        self.double_diff: list[float] = []

    @property
    def old(self) -> list[int | None]:
        """The four old fields."""
        return [self.num, self.channels, self.height, self.width]


class HandmadeBlob:
    """A blob; see `syncedmem.spec.BlobMaker`.

    Attributes
    ----------
    dtype : str
    axes : tuple of int
    elements : int
        Not always the product of the axes: a blob without a shape has no elements.
    data_memory, diff_memory : ReferenceMemory
    """

    def __init__(self, *shape: Any, dtype: str, host: Any, device: Any) -> None:
        self.dtype: str = dtype
        self.host: Any = host
        self.device: Any = device
        self.axes: tuple[int, ...] = ()
        self.elements: int = 0
        self.data_memory: Any = self.memory(0)
        self.diff_memory: Any = self.memory(0)
        self.shape_memory: Any = self.memory(0)
        self.extents_known: Any = None
        self.shaped: bool = False
        self.set_up()
        if shape:
            self.reshape(*shape)

    def set_up(self) -> None:
        """Hook for subclasses at the end of the constructor."""

    def memory(self, size: int) -> Any:
        return ReferenceMemory(size, host=self.host, device=self.device)

    # --- the shape, blob.hpp:54-178

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
        """Whether the extents are given one by one, as separate arguments."""
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
        if not -_LEGACY <= index < _LEGACY:
            self.refuse("no legacy axis")
        return self.padded(index)

    def check_legacy(self) -> None:
        if self.num_axes > _LEGACY:
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
        return self.offset_4d([*indices, *[0] * (_LEGACY - len(indices))])

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
            self.refuse("an index after the end")

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
            self.refuse("an index out of range")

    # --- memory for a shape, blob.cpp:12-60

    @property
    def capacity(self) -> int:
        size: int = min(self.data_memory.size, self.diff_memory.size)
        return size // itemsize(self.dtype)

    def reshape(self, *shape: Any) -> None:
        self.take_shape(self.checked(self.given(shape)))

    def take_shape(self, shape: tuple[int, ...]) -> None:
        count = prod(shape)
        if not self.fits(count):
            self.grow(count)
        self.axes, self.elements, self.shaped = shape, count, True

    def fits(self, count: int) -> bool:
        return count <= self.capacity

    def grow(self, count: int) -> None:
        size = count * itemsize(self.dtype)
        self.data_memory, self.diff_memory = self.memory(size), self.memory(size)

    def reshape_like(self, other: Any) -> None:
        self.reshape(other.shape)

    def shrink_to_fit(self) -> None:
        data = self.fitting(self.data_memory, self.diff_memory)
        self.data_memory, self.diff_memory = data, self.fitting(self.diff_memory, data)

    def fitting(self, memory: Any, other: Any) -> Any:
        if memory.size == self.bytes() or self.holds(memory, other):
            return memory
        fitting = self.memory(self.bytes())
        if memory.head is not SyncedHead.UNINITIALIZED:
            self.bring(memory, fitting)
        return fitting

    def holds(self, memory: Any, other: Any) -> bool:
        """Whether the other part uses bytes of this memory, which must then stay."""
        return any(memory.owns_bytes_of(other, side) for side in ("cpu", "gpu"))

    def bring(self, memory: Any, fitting: Any) -> None:
        side = self.where(memory)
        pour(self.raw(fitting, f"mutable_{side}_data"), shown(self.raw(memory, f"{side}_data")))

    # --- elements, blob.hpp:191-207

    def data_at(self, *indices: Any) -> Any:
        return self.element(self.data_memory, self.position(*indices))

    def diff_at(self, *indices: Any) -> Any:
        return self.element(self.diff_memory, self.position(*indices))

    def position(self, *indices: Any) -> int:
        position = self.offset(*indices)
        if len(indices) > 1:  # a sequence is checked by `offset`, and one number by `check_position`
            for axis, index in enumerate(indices):
                self.check_element(index, self.legacy_shape(axis))
        return position

    def check_element(self, index: int, extent: int) -> None:
        if index >= extent:
            self.refuse("one past the end")

    def element(self, memory: Any, position: int) -> Any:
        self.check_position(position)
        return decoded(shown(self.raw(memory, "cpu_data")), self.dtype)[position]

    def check_position(self, position: int) -> None:
        if position >= self.elements:
            self.refuse("no such element")

    # --- the shape on the device, blob.cpp:78

    def gpu_shape(self) -> Any:
        if not self.shaped:
            self.refuse("shape_data_ is null")
        if self.extents_known != self.axes:
            self.write_extents()
        return self.shape_memory.gpu_data()

    def write_extents(self) -> None:
        size = self.num_axes * itemsize(_EXTENT)
        if self.shape_memory.size != size:
            self.shape_memory = self.memory(size)
        pour(self.shape_memory.mutable_cpu_data(), encoded(self.axes, _EXTENT))
        self.extents_known = self.axes

    # --- access

    def cpu_data(self) -> Any:
        return self.host_view(self.data_memory, "cpu_data")

    def mutable_cpu_data(self) -> Any:
        return self.host_view(self.data_memory, "mutable_cpu_data")

    def gpu_data(self) -> Any:
        return self.device_view(self.data_memory, "gpu_data")

    def mutable_gpu_data(self) -> Any:
        return self.device_view(self.data_memory, "mutable_gpu_data")

    def cpu_diff(self) -> Any:
        return self.host_view(self.diff_memory, "cpu_data")

    def mutable_cpu_diff(self) -> Any:
        return self.host_view(self.diff_memory, "mutable_cpu_data")

    def gpu_diff(self) -> Any:
        return self.device_view(self.diff_memory, "gpu_data")

    def mutable_gpu_diff(self) -> Any:
        return self.device_view(self.diff_memory, "mutable_gpu_data")

    def bytes(self) -> int:
        return self.elements * itemsize(self.dtype)

    def raw(self, memory: Any, call: str) -> Any:
        """The bytes of the elements."""
        return getattr(memory, call)()[: self.bytes()]

    def device_view(self, memory: Any, call: str) -> Any:
        return self.raw(memory, call)

    def host_view(self, memory: Any, call: str) -> Any:
        row: Any = memoryview(self.raw(memory, call)).cast("B")
        # A view without elements has no shape.
        return row.cast(_FORMATS[self.dtype], self.axes) if self.elements else row

    def where(self, memory: Any) -> str:
        return "gpu" if memory.head in _AT_GPU else "cpu"

    # --- adoption and sharing, blob.cpp:90-165

    def set_cpu_data(self, data: Any) -> None:
        self.adopt_data("set_cpu_data", data)

    def set_gpu_data(self, data: Any) -> None:
        self.adopt_data("set_gpu_data", data)

    def set_cpu_diff(self, diff: Any) -> None:
        self.adopt_diff("set_cpu_data", diff)

    def set_gpu_diff(self, diff: Any) -> None:
        self.adopt_diff("set_gpu_data", diff)

    def adopt_data(self, call: str, buffer: Any) -> None:
        self.check_buffer(buffer)
        self.check_not_extents(call, buffer)
        if self.data_memory.size == self.bytes():
            self.check_not_adopted(self.data_memory, self.diff_memory, call)
            self.redirect(self.data_memory, call, buffer)
            return
        fresh = self.memory(self.bytes())
        getattr(fresh, call)(buffer)
        self.check_kept(self.data_gives_up(), fresh)
        self.data_memory = fresh
        self.renew_diff()

    def data_gives_up(self) -> tuple[Any, ...]:
        """The memories that adopting for the data drops, if the memory is not of the blob's size."""
        return self.data_memory, self.diff_memory

    def check_buffer(self, buffer: Any) -> None:
        try:
            found = memoryview(buffer).format
        except TypeError:  # device memory, or not a buffer: the memory decides
            return
        if found not in (TYPES[self.dtype], "B"):
            self.refuse("elements of another type")

    def check_not_extents(self, call: str, buffer: Any) -> None:
        """Refuse the memory of the shape, which another number of axes would free."""
        adopted = self.memory(self.bytes())
        getattr(adopted, call)(buffer)
        self.check_kept((self.shape_memory,), adopted)

    def redirect(self, memory: Any, call: str, buffer: Any) -> None:
        getattr(memory, call)(buffer)

    def renew_diff(self) -> None:
        self.diff_memory = self.memory(self.bytes())

    def adopt_diff(self, call: str, buffer: Any) -> None:
        self.check_buffer(buffer)
        self.check_not_extents(call, buffer)
        if self.diff_memory.size == self.bytes():
            self.check_not_adopted(self.diff_memory, self.data_memory, call)
            getattr(self.diff_memory, call)(buffer)
            return
        fresh = self.memory(self.bytes())
        getattr(fresh, call)(buffer)
        self.check_kept(self.diff_gives_up(), fresh, self.data_memory)
        self.diff_memory = fresh

    def diff_gives_up(self) -> tuple[Any, ...]:
        return (self.diff_memory,)

    def check_not_adopted(self, memory: Any, other: Any, call: str) -> None:
        """Refuse to free a side of one part if the other part uses its bytes."""
        if memory.owns_bytes_of(other, call[4:7]):
            self.refuse("the other part uses this memory")

    def check_kept(self, given_up: tuple[Any, ...], *kept: Any) -> None:
        """Refuse to drop a memory if a kept memory uses its bytes."""
        if any(old.owns_bytes_of(memory, side) for old in given_up for memory in kept for side in ("cpu", "gpu")):
            self.refuse("own memory, which would be freed")

    def share_data(self, other: Any) -> None:
        self.check_alike(other)
        self.check_count(other)
        if other.data_memory is not self.data_memory:
            self.check_kept((self.data_memory, self.shape_memory), other.data_memory, self.diff_memory)
        self.data_memory = other.data_memory

    def share_diff(self, other: Any) -> None:
        self.check_alike(other)
        self.check_count(other)
        if other.diff_memory is not self.diff_memory:
            self.check_kept((self.diff_memory, self.shape_memory), other.diff_memory, self.data_memory)
        self.diff_memory = other.diff_memory

    def check_alike(self, other: Any) -> None:
        if not isinstance(other, HandmadeBlob):
            self.refuse("not a blob")
        self.check_types(other)

    def check_types(self, other: Any) -> None:
        if other.dtype != self.dtype:
            self.refuse("another type")

    def check_count(self, other: Any) -> None:
        if other.count != self.count:
            self.refuse("another count")

    # --- copies and arithmetic, blob.cpp:174-463

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        self.check_alike(source)
        before = dict(vars(self))
        try:
            if (source.shape, source.count) != (self.shape, self.count):
                self.shape_like_source(source, reshape)
            self.copy_part(source, copy_diff)
        except Exception:
            self.restore(before)
            raise

    def restore(self, before: dict[str, Any]) -> None:
        """Restore the shape and the memories of before the call."""
        vars(self).update(before)

    def copy_part(self, source: Any, copy_diff: bool) -> None:
        mine, theirs = self.parts(source, copy_diff)
        side = self.side_of_copy(mine, theirs)
        taken, given = self.raw(mine, f"mutable_{side}_data"), self.raw(theirs, f"{side}_data")
        if mine is not theirs and self.elements:
            self.copy(given, taken, side)

    def shape_like_source(self, source: Any, reshape: bool) -> None:
        if not reshape or source.count != prod(source.shape):
            self.refuse("another shape")
        self.take_shape(source.shape)

    def parts(self, source: Any, copy_diff: bool) -> tuple[Any, Any]:
        return (self.diff_memory, source.diff_memory) if copy_diff else (self.data_memory, source.data_memory)

    def side_of_copy(self, _mine: Any, _theirs: Any) -> str:
        return "gpu" if current_mode() is Mode.GPU and self.device is not None else "cpu"

    def copy(self, given: Any, taken: Any, side: str) -> None:
        if side == "gpu":
            self.device.memcpy(given, taken, self.bytes(), _WITHIN_DEVICE)
        else:
            pour(taken, shown(given))

    def update(self) -> None:
        self.check_arithmetic()
        self.check_written()
        side = self.where(self.data_memory)
        step = self.raw(self.diff_memory, f"{side}_data")
        data = self.raw(self.data_memory, f"mutable_{side}_data")
        differences = self.differences(decoded(shown(data), self.dtype), decoded(shown(step), self.dtype))
        pour(data, encoded(differences, self.dtype))

    def differences(self, values: tuple[float, ...], steps: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(map(self.stepped, values, steps))

    def stepped(self, value: float, step: float) -> float:
        return value - step

    def check_written(self) -> None:
        if self.data_memory.head is SyncedHead.UNINITIALIZED:
            self.refuse("Syncedmem not initialized.")

    def check_arithmetic(self) -> None:
        if self.dtype in INTEGERS:
            self.refuse("Not Implemented Yet")

    def asum_data(self) -> float:
        return self.asum(self.data_memory)

    def asum_diff(self) -> float:
        return self.asum(self.diff_memory)

    def sumsq_data(self) -> float:
        return self.sumsq(self.data_memory)

    def sumsq_diff(self) -> float:
        return self.sumsq(self.diff_memory)

    def asum(self, memory: Any) -> float:
        return float(sum(map(abs, self.values(memory))))

    def sumsq(self, memory: Any) -> float:
        return float(sum(value * value for value in self.values(memory)))

    def values(self, memory: Any) -> tuple[Any, ...]:
        """The numbers, read on the side where they are; empty if nothing was ever written."""
        self.check_arithmetic()
        return () if self.unwritten(memory) else self.read(memory)

    def unwritten(self, memory: Any) -> bool:
        return memory.head is SyncedHead.UNINITIALIZED

    def read(self, memory: Any) -> tuple[Any, ...]:
        return decoded(shown(self.raw(memory, f"{self.where(memory)}_data")), self.dtype)

    def scale_data(self, factor: float) -> None:
        self.scale(self.data_memory, factor)

    def scale_diff(self, factor: float) -> None:
        self.scale(self.diff_memory, factor)

    def scale(self, memory: Any, factor: float) -> None:
        self.check_arithmetic()
        if not self.untouched(memory):
            row = self.raw(memory, f"mutable_{self.side_of_scale(memory)}_data")
            pour(row, encoded((factor * value for value in decoded(shown(row), self.dtype)), self.dtype))

    def untouched(self, memory: Any) -> bool:
        return memory.head is SyncedHead.UNINITIALIZED

    def side_of_scale(self, memory: Any) -> str:
        return self.where(memory)

    # --- messages, blob.cpp:410-554

    def to_proto(self, write_diff: bool = False) -> Message:
        message, double = Message(), "double_" if self.dtype == "float64" else ""
        message.shape.dim.extend(self.axes)
        for part in ("data", "diff") if write_diff else ("data",):
            self.write_part(getattr(message, f"{double}{part}"), part)
        return message

    def write_part(self, field: list[float], part: str) -> None:
        field.extend(decoded(shown(getattr(self, f"cpu_{part}")()), self.dtype))

    def from_proto(self, message: Message, reshape: bool = True) -> None:
        if not reshape and not self.shape_equals(message):
            self.refuse("shape mismatch (reshape not set)")
        shape = self.checked(self.shape_in(message)) if reshape else self.axes
        data, diff = self.numbers_in(message, "data") or [], self.numbers_in(message, "diff")
        self.check_numbers(shape, data, diff)
        before = dict(vars(self))
        try:
            self.take_shape(shape)
            self.fill(data, diff)
        except Exception:
            self.restore(before)
            raise

    def shape_in(self, message: Message) -> list[int]:
        old = message.old
        return list(message.shape.dim) if old == [None] * _LEGACY else [extent or 0 for extent in old]

    def numbers_in(self, message: Message, part: str) -> list[float] | None:
        return getattr(message, f"double_{part}") or getattr(message, part) or None

    def check_numbers(self, shape: tuple[int, ...], data: list[float], diff: list[float] | None) -> None:
        if len(data) != prod(shape) or (diff is not None and len(diff) != prod(shape)):
            self.refuse("another count")

    def fill(self, data: list[float], diff: list[float] | None) -> None:
        parts = [(self.data_memory, data), *([] if diff is None else [(self.diff_memory, diff)])]
        # Everything that can fail comes before the first number is overwritten.
        places = [self.raw(memory, "mutable_cpu_data") for memory, _ in parts]
        for place, (_, values) in zip(places, parts, strict=True):
            pour(place, encoded(values, self.dtype))

    def shape_equals(self, message: Message) -> bool:
        if message.old == [None] * _LEGACY:
            return self.axes == tuple(message.shape.dim)
        padded = (*(1,) * (_LEGACY - self.num_axes), *self.axes)
        return list(padded) == [extent or 0 for extent in message.old]


class IntHandmadeBlob(HandmadeBlob):
    """A blob with Caffe's own limit: a count is an ``int`` (blob.cpp:33-35)."""

    def check_size(self, extents: list[Any]) -> None:
        if prod(extents) > _INT_MAX:
            self.refuse("blob size exceeds INT_MAX")
