"""The memories of the small blob in `port`: when they are renewed, handed out, adopted and shared."""

from __future__ import annotations

from math import prod
from typing import Any

from syncedmem.model import SyncedHead

from ..memory.reference import ReferenceMemory
from .elements import TYPES, decoded, encoded, itemsize, pour, shown
from .shape_port import ShapePort

__all__ = ["MemoryPort"]

_AT_GPU = (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED)
_EXTENT = "int32"
_FORMATS = {**TYPES, "float16": "H"}  # of which a memoryview can be made


class MemoryPort(ShapePort):
    """A blob without arithmetic and messages."""

    def __init__(self, *shape: Any, dtype: str, host: Any, device: Any) -> None:
        self.dtype, self.host, self.device = dtype, host, device
        self.axes: tuple[int, ...] = ()
        self.elements = 0
        self.data_memory = self.memory(0)
        self.diff_memory = self.memory(0)
        self.shape_memory = self.memory(0)
        self.extents_known: Any = None
        self.shaped = False
        self.set_up()
        if shape:
            self.reshape(*shape)

    def set_up(self) -> None:
        """What else the constructor does: nothing."""

    def memory(self, size: int) -> Any:
        return ReferenceMemory(size, host=self.host, device=self.device)

    # --- memory for a shape, blob.cpp 12-60

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
        """Whether the other part lies in this memory, which then has to stay."""
        return any(lends(memory, other, side) for side in ("cpu", "gpu"))

    def bring(self, memory: Any, fitting: Any) -> None:
        side = self.where(memory)
        pour(self.raw(fitting, f"mutable_{side}_data"), shown(self.raw(memory, f"{side}_data")))

    # --- elements, blob.hpp 183-199

    def data_at(self, *indices: Any) -> Any:
        return self.element(self.data_memory, self.offset(*indices))

    def diff_at(self, *indices: Any) -> Any:
        return self.element(self.diff_memory, self.offset(*indices))

    def element(self, memory: Any, position: int) -> Any:
        self.check_position(position)
        return decoded(shown(self.raw(memory, "cpu_data")), self.dtype)[position]

    def check_position(self, position: int) -> None:
        if position >= self.elements:
            self.refuse("no such element")

    # --- the shape on the device, blob.cpp 78

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

    # --- adoption and sharing, blob.cpp 90-168

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
            self.check_not_lent(self.data_memory, self.diff_memory, call)
            self.redirect(self.data_memory, call, buffer)
            return
        fresh = self.memory(self.bytes())
        getattr(fresh, call)(buffer)
        self.check_kept(self.data_gives_up(), fresh)
        self.data_memory = fresh
        self.renew_diff()

    def data_gives_up(self) -> tuple[Any, ...]:
        """What adopting for the data lets go of, if the memory is not of the blob's size."""
        return self.data_memory, self.diff_memory

    def check_buffer(self, buffer: Any) -> None:
        try:
            found = memoryview(buffer).format
        except TypeError:  # device memory, or nothing at all: for the memory to say
            return
        if found not in (TYPES[self.dtype], "B"):
            self.refuse("elements of another type")

    def check_not_extents(self, call: str, buffer: Any) -> None:
        """Refuse the memory of the shape, which goes with another number of axes."""
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
            self.check_not_lent(self.diff_memory, self.data_memory, call)
            getattr(self.diff_memory, call)(buffer)
            return
        fresh = self.memory(self.bytes())
        getattr(fresh, call)(buffer)
        self.check_kept(self.diff_gives_up(), fresh, self.data_memory)
        self.diff_memory = fresh

    def diff_gives_up(self) -> tuple[Any, ...]:
        return (self.diff_memory,)

    def check_not_lent(self, memory: Any, other: Any, call: str) -> None:
        """Refuse to free a side of one part in which the other part lies."""
        if lends(memory, other, call[4:7]):
            self.refuse("the other part lies there")

    def check_kept(self, given_up: tuple[Any, ...], *kept: Any) -> None:
        """Refuse to give up memory in which something lies that is kept."""
        if any(lends(old, memory, side) for old in given_up for memory in kept for side in ("cpu", "gpu")):
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
        if not isinstance(other, MemoryPort):
            self.refuse("no blob")
        self.check_types(other)

    def check_types(self, other: Any) -> None:
        if other.dtype != self.dtype:
            self.refuse("another type")

    def check_count(self, other: Any) -> None:
        if other.count != self.count:
            self.refuse("other counts")


def lends(memory: Any, borrower: Any, side: str) -> bool:
    """Whether a side of another memory lies in one that this memory has to free."""
    mine, theirs = (getattr(it, f"{side}_ptr") for it in (memory, borrower))
    if mine is None or theirs is None or not getattr(memory, f"own_{side}_data"):
        return False
    return bool((memory.host if side == "cpu" else memory.device).overlaps(theirs, mine))
