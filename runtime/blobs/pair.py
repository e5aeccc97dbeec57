"""`Pair`: the memories of a blob, its data and its diff, in one shape (002, 003; Caffe's blob.hpp, blob.cpp 12-170).

Reshaping never moves bytes: what still fits keeps its memory, and what grows gets new memory and forgets the old.
Sharing is by object: a memory that two blobs share is one memory, whatever is done through either.

A capacity is never stored: it is what the memories hold, shared and adopted ones included, so nothing can be
written past the end of one.  Everything new is made before anything old is given up.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from syncedmem.model import EFFECTS, Action, BufferMismatchError, Call, InvalidArgumentError, InvalidShapeError

from ..allocators.failures import where_of
from ..devices.registry import resolve_device, resolve_host
from ..memory.synced_memory import SyncedMemory
from . import shape as shapes
from .arithmetic import copy_on_fresh_side
from .elements import OWNED, Elements, check_dtype
from .shaped import Shaped

if TYPE_CHECKING:
    from syncedmem.model import Fact

    from ..allocators.base import DeviceAllocator
    from .shape import Shape

__all__ = ["Pair", "ScalarT"]

ScalarT = TypeVar("ScalarT", bound=np.generic)
"""The type of the elements, as NumPy has it."""

_EXTENT = np.dtype(np.int32)  # of what kernels read of a shape (blob.cpp 28)
_FREED = {
    Call.SET_CPU_DATA: EFFECTS[Action.ADOPT_CPU].clears,
    Call.SET_GPU_DATA: EFFECTS[Action.ADOPT_GPU].clears,
}  # the side that an adoption frees, if it is the memory's own

_NOTHING = (0,)  # the shape of views of no elements


class Pair(Shaped, Generic[ScalarT]):
    """Data and diff: two memories of one type and shape, lazily allocated.

    Parameters
    ----------
    shape : tuple
        The arguments that `reshape` takes; none of them for no shape yet.
    dtype : numpy.dtype or type
    host, device : DeviceAllocator, str or None
        As for `SyncedMemory`.
    """

    __slots__ = ("__weakref__", "_data", "_device", "_diff", "_host", "_shape_known", "_shape_memory")

    def __init__(self, shape: tuple[Any, ...], dtype: Any, host: Any, device: Any) -> None:
        kind = check_dtype(dtype)
        self._host = resolve_host(host)
        self._device = resolve_device(device)
        self._shape = _checked(shape, kind) if shape else None
        extents = _NOTHING if self._shape is None else self._shape
        self._data, self._diff = self._fresh(extents, kind), self._fresh(extents, kind)
        self._shape_known = False  # whether the shape's memory holds it
        self._shape_memory: SyncedMemory | None = None

    @classmethod
    def _made(cls, dtype: Any, host: Any, device: Any) -> Self:
        """A blob without a shape, as the class that this becomes is made."""
        make: Any = cls
        blob: Self = make(dtype=dtype, host=host, device=device)
        return blob

    @classmethod
    def _bare(cls, dtype: Any, host: Any, device: Any) -> Self:
        """A blob without a shape, and without what a derived class adds, whose ``__init__`` may need more than this."""
        blob: Any = object.__new__(cls)
        Pair.__init__(blob, (), dtype, host, device)  # pyright: ignore[reportUnknownMemberType] -- of no type yet
        return blob  # type: ignore[no-any-return]

    def _added(self) -> dict[str, Any]:
        """What a derived class has added, by the names of the attributes."""
        state: Any = object.__getstate__(self)
        attributes: dict[str, Any] | None
        slots: dict[str, Any]
        attributes, slots = state
        return (attributes or {}) | {name: value for name, value in slots.items() if name not in _OWN}

    def _memory(self, size: int) -> SyncedMemory:
        return SyncedMemory(size, host=self._host, device=self._device)

    # --- shape

    def reshape(self, *shape: Any) -> Self:
        """Take another shape (blob.cpp 12-57).

        What still fits stays where it is: no bytes are moved, no head changes, and what lay behind a smaller shape
        can be seen again through a larger one.  What does not fit gets new memory, data and diff alike, so contents are
        lost, and whoever shared the old memory keeps it.

        Parameters
        ----------
        *shape
            Up to 32 integers, as in pycaffe (Caffe takes four); a sequence of them; or an object with ``dim``, such as
            a ``BlobShape``.

        Returns
        -------
        Blob
            This one.

        Raises
        ------
        InvalidShapeError, InvalidArgumentError
            If no blob can have that shape; nothing has changed.
        """
        self._take(_checked(shape, self.dtype))
        return self

    def reshape_like(self, other: Shaped) -> Self:
        """Take the shape of another blob (blob.cpp 59)."""
        if not isinstance(other, Shaped):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("other", other, "a Blob")
        return self.reshape(other.shape)

    def _fitted(self, shape: Shape) -> tuple[Elements, Elements]:
        """Data and diff in another shape, in the memory there is or, if it is too small, in new memory."""
        needed = prod(shape) * self.dtype.itemsize
        if needed <= min(self._data.memory.size, self._diff.memory.size):
            return self._data.reshaped(shape), self._diff.reshaped(shape)
        return self._fresh(shape, self.dtype), self._fresh(shape, self.dtype)

    def _fresh(self, shape: Shape, dtype: np.dtype[Any]) -> Elements:
        """Elements that nobody has written, in new memory."""
        return Elements(self._memory(prod(shape) * dtype.itemsize), dtype, shape)

    def _take(self, shape: Shape, fitted: tuple[Elements, Elements] | None = None) -> None:
        """Have another shape, with data and diff that fit it."""
        data, diff = fitted or self._fitted(shape)
        old = self._data, self._diff  # let go of at the end: freeing memory may run anybody's code
        known = self._shape_known and shape == self._shape
        self._shape, self._shape_known, self._data, self._diff = shape, known, data, diff
        del old

    def shrink_to_fit(self) -> Self:
        """Give back what lies behind the present shape; Caffe has no such call, and its blobs only grow.

        The elements stay, on the side where they were fresh.  Memory that was shared or adopted is left to its others,
        unless it has exactly this size.  If one part was adopted from the other's memory, that memory stays.

        Returns
        -------
        Blob
            This one.

        Raises
        ------
        AllocationError, DeviceError
            The blob is as it was.
        """
        data = self._shrunk(self._data, self._diff)
        self._data, self._diff = data, self._shrunk(self._diff, data)
        return self

    def _shrunk(self, elements: Elements, kept: Elements) -> Elements:
        if elements.memory.size == elements.nbytes or elements.lends(kept):
            return elements
        fitting = self._fresh(elements.shape, self.dtype)
        copy_on_fresh_side(elements, fitting)
        return fitting

    @property
    def capacity(self) -> int:
        """How many elements fit without new memory, into data and diff as they are."""
        return min(self._data.memory.size, self._diff.memory.size) // self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype[ScalarT]:
        """The type of the elements."""
        return self._data.dtype

    @property
    def host(self) -> DeviceAllocator:
        """The allocator of ordinary host memory."""
        return self._host

    @property
    def device(self) -> DeviceAllocator | None:
        """The allocator of the device side, or None."""
        return self._device

    @property
    def shape_memory(self) -> SyncedMemory:
        """The memory of the shape, as `gpu_shape` shows it; Caffe's ``shape_data_``.

        It is written when somebody asks, and only if the shape has changed since.

        Raises
        ------
        InvalidShapeError
            If there is no shape yet, or an extent that has more than 31 bits.
        """
        memory = self._shape_memory
        if memory is None or not self._shape_known:
            self._shape_memory = memory = self._written_shape()
            self._shape_known = True
        return memory

    def _written_shape(self) -> SyncedMemory:
        shape = self._shape
        if shape is None:
            raise InvalidShapeError((), "this blob was never given one")
        if max(shape, default=0) > shapes.INT_MAX:
            raise InvalidShapeError(shape, f"kernels are handed extents of at most {shapes.INT_MAX}")
        size = len(shape) * _EXTENT.itemsize
        memory = self._shape_memory
        if memory is None or memory.size != size:
            memory = self._memory(size)
        memory.mutable_cpu_data().view(_EXTENT)[:] = shape
        return memory

    def gpu_shape(self) -> Any:
        """The extents on the device, as a row of ``int32`` for kernels (blob.cpp 78).

        Raises
        ------
        NoDeviceError, InvalidShapeError, AllocationError, DeviceError
        """
        return self.shape_memory.gpu_data().view(_EXTENT)

    @property
    def data_memory(self) -> SyncedMemory:
        """The memory of the data (Caffe's ``data()``), which may be larger than the blob."""
        return self._data.memory

    @property
    def diff_memory(self) -> SyncedMemory:
        """The memory of the diff (Caffe's ``diff()``)."""
        return self._diff.memory

    # --- adoption and sharing

    def set_cpu_data(self, data: Any) -> None:
        """Use somebody else's host memory as the data (blob.cpp 90).

        If the data's memory is not of exactly the blob's size, data and diff get new memory first, so the diff is
        lost and sharing ends, as in Caffe; the capacity is then that of the new memory, as it is not in Caffe.
        Otherwise everybody who shares the memory sees the buffer.

        Parameters
        ----------
        data : buffer
            As for `SyncedMemory.set_cpu_data`, at least `count` elements; if it has a type, the blob's or bytes.

        Raises
        ------
        BufferMismatchError
            If it cannot be adopted, or memory that this call gives up would be freed under it: the blob's own data or
            diff, whoever else shares that; or if it is the memory of `gpu_shape`.  Nothing has changed.
        NoDeviceError, ReleaseError
            Nothing has changed.
        """
        self._adopt("set_cpu_data", Call.SET_CPU_DATA, data)

    def set_gpu_data(self, data: Any) -> None:
        """Use somebody else's device memory as the data (blob.cpp 108); see `set_cpu_data`."""
        self._adopt("set_gpu_data", Call.SET_GPU_DATA, data)

    def set_cpu_diff(self, diff: Any) -> None:
        """Use somebody else's host memory as the diff, which Caffe's users do through ``diff()``.

        The data is left alone: if the diff's memory is not of exactly the blob's size, it alone is replaced.

        Raises
        ------
        BufferMismatchError, NoDeviceError, ReleaseError
            As for `set_cpu_data`.
        """
        self._adopt("set_cpu_diff", Call.SET_CPU_DATA, diff)

    def set_gpu_diff(self, diff: Any) -> None:
        """Use somebody else's device memory as the diff; see `set_cpu_diff`."""
        self._adopt("set_gpu_diff", Call.SET_GPU_DATA, diff)

    def _adopt(self, name: str, call: Call, buffer: Any) -> None:
        """Make a buffer a side of the data or of the diff, the call's name says of which."""
        of_diff = name.endswith("diff")
        mine, other = (self._diff, self._data) if of_diff else (self._data, self._diff)
        if mine.memory.size == mine.nbytes:
            if self._extents:
                taken = self._fresh(mine.shape, self.dtype)
                taken.adopt(name, call, buffer)  # on trial: others may see what becomes of the memory there is
                _check_kept(name, buffer, self._extents, {"it": taken})
            _check_kept(name, buffer, (mine,), {"the other part": other}, _FREED[call])
            taken = mine.reshaped(mine.shape)  # which remembers no view of what was there
            taken.adopt(name, call, buffer)
        else:
            taken = self._fresh(mine.shape, self.dtype)
            taken.adopt(name, call, buffer)  # by memory that nobody has yet, so this can still be refused
            given_up = (*((mine,) if of_diff else (mine, other)), *self._extents)
            other = other if of_diff else self._fresh(other.shape, self.dtype)
            _check_kept(name, buffer, given_up, {"it": taken, "the data": other})
        self._data, self._diff = (other, taken) if of_diff else (taken, other)

    @property
    def _extents(self) -> tuple[Elements, ...]:
        """What lies behind `gpu_shape`, if anything does: another number of axes would free it."""
        memory = self._shape_memory
        return () if memory is None else (Elements(memory, _EXTENT, (memory.size // _EXTENT.itemsize,)),)

    def share_data(self, other: Pair[ScalarT]) -> None:
        """Use the data of another blob as one's own: the memory itself, not a copy (blob.cpp 156).

        Raises
        ------
        InvalidShapeError
            If the counts differ; nothing has changed.
        InvalidArgumentError
            If `other` is no blob, or of another type or device; nothing has changed.
        BufferMismatchError
            If the other's data, or the diff, was adopted from this blob's own data, which would be freed, or from its
            `gpu_shape`; nothing has changed.
        """
        self._data = self._shared("share_data", self._data, other, "_data", self._diff)

    def share_diff(self, other: Pair[ScalarT]) -> None:
        """Use the diff of another blob as one's own (blob.cpp 162); see `share_data`."""
        self._diff = self._shared("share_diff", self._diff, other, "_diff", self._data)

    def _shared(self, name: str, mine: Elements, other: Pair[Any], part: str, kept: Elements) -> Elements:
        """A part of another blob in this one's shape, to have in place of one's own."""
        self._check_same_type("other", other)
        if other.count != self.count:
            raise InvalidShapeError(other.shape, f"{other.count} elements cannot be shared by {self.count}")
        if other.device is not self._device:
            here, there = (where_of(it.device) if it.device else "the host alone" for it in (self, other))
            another = "another " if here == there else ""
            raise InvalidArgumentError("other", other, f"a blob on {here}, as this one is, and not on {another}{there}")
        theirs: Elements = getattr(other, part)
        if theirs.memory is not mine.memory:
            given_up = (mine, *self._extents)
            _check_kept(name, other, given_up, {"its memory": theirs, "the other part": kept})
        return theirs.reshaped(mine.shape)

    def _check_same_type(self, argument: str, other: object) -> None:
        theirs: Any = other
        if not isinstance(other, Pair):
            raise InvalidArgumentError(argument, other, "a Blob")
        if theirs.dtype != self.dtype:
            raise InvalidArgumentError(argument, theirs, f"a blob of {self.dtype}")


_OWN = frozenset((*Shaped.__slots__, *Pair.__slots__))


def _checked(arguments: tuple[Any, ...], dtype: np.dtype[Any]) -> Shape:
    """The shape in the arguments of a call, one sequence or numbers, of elements of a type."""
    given: object = arguments[0] if len(arguments) == 1 else arguments
    if not arguments or (given is arguments and not all(map(shapes.is_integer, arguments))):
        raise InvalidArgumentError("shape", arguments, shapes.FORMS)
    return shapes.check_shape(arguments if shapes.is_integer(given) else given, dtype.itemsize)


def _check_kept(
    name: str, argument: object, given_up: tuple[Elements, ...], kept: dict[str, Elements], own: Fact = OWNED
) -> None:
    """Refuse a call that would free memory in which elements lie that the blob goes on using.

    It does not matter who shares that memory: others may let go of it at any time.

    Raises
    ------
    BufferMismatchError
    """
    for what, elements in kept.items():
        if any(old.lends(elements, own) for old in given_up):
            raise BufferMismatchError(name, argument, f"{what} lies in this blob's own memory, which would be freed")
