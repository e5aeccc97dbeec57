"""`Blob`: an N-dimensional array of numbers and the gradients that belong to them (Caffe's blob.hpp).

A blob has a shape and two memories, its data and its diff.  Each is a `SyncedMemory`, so a blob is on the host and on
the device at once, and nothing is copied or allocated before somebody looks.  A third memory has the shape for kernels,
if one asks for it.  What is said of shapes stands in ``shape``, what is computed in ``arithmetic``; ``elements`` looks
at a memory as numbers, and messages and files are read and written as arrays.

Reshaping never moves bytes: what still fits keeps its memory, and what grows gets new memory and forgets the old.
Sharing is by object: a memory that two blobs share is one memory, whatever is done through either.  A capacity is never
stored: it is what the memories hold, shared and adopted ones included, so nothing can be written past the end of one.
Everything new is made before anything old is given up.

Every array that a blob hands out is a fresh view over the memory itself and keeps its bytes, also when the blob has
grown and has another memory, unless a pool has lent them again.  On the simulated device, views of freed memory raise
an error.  For the same reason a blob has no ``__array_interface__`` and no ``__cuda_array_interface__``: whoever takes
one keeps the blob alive, and not the memory.  The views have them.

Where Caffe would write past the end of something, or stop half-way, this class does not; docs/blobs.md lists every
difference.
"""

from __future__ import annotations

import operator
from copy import deepcopy
from math import prod
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, SupportsFloat, TypedDict, TypeVar, Unpack, overload
from weakref import ref

import numpy as np

from syncedmem.model import (
    EFFECTS,
    Action,
    BufferMismatchError,
    Call,
    InvalidArgumentError,
    InvalidIndexError,
    InvalidShapeError,
    SyncedHead,
)
from syncedmem.model.files import write_whole

from ..allocators.failures import where_of
from ..allocators.pointers import as_flag
from ..devices.registry import resolve_device, resolve_host
from ..memory.synced_memory import SyncedMemory
from . import arithmetic
from . import shape as shapes
from .conversion import checked, fill
from .elements import OWNED, Elements, check_dtype, check_viewable
from .file_kinds import file_kind
from .foreign_arrays import ForeignArray
from .live_array import assign, live
from .messages import VALUE_TYPES, check_blob, message_to_write, read_proto, shape_equals, write_proto

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import SupportsIndex

    from numpy.typing import DTypeLike, NDArray

    from syncedmem.model import Fact
    from syncedmem.model.files import StoredPath
    from syncedmem.model.interface import DeviceArray

    from ..allocators.base import DeviceAllocator
    from .contents import BlobContents
    from .shape import Extents, Shape

__all__ = ["Blob"]

ScalarT = TypeVar("ScalarT", bound=np.generic)
"""The type of the elements, as NumPy has it."""

ElementT = TypeVar("ElementT", bound=np.float16 | np.float32 | np.float64 | np.int32 | np.uint32)
"""A type that elements of blobs have, as arrays of NumPy have it."""

ElementType = type[ScalarT] | np.dtype[ScalarT]
"""What names a type of elements, and lets a type checker know it."""


class Sides(TypedDict, total=False):
    """Where the two sides of a blob's memories are; as for `SyncedMemory`."""

    host: DeviceAllocator | None
    device: DeviceAllocator | str | None


_EXTENT = np.dtype(np.int32)  # of what kernels read of a shape (blob.cpp:28)
_FREED = {
    Call.SET_CPU_DATA: EFFECTS[Action.ADOPT_CPU].clears,
    Call.SET_GPU_DATA: EFFECTS[Action.ADOPT_GPU].clears,
}  # the side that an adoption frees, if it is the memory's own

_NOTHING = (0,)  # the shape of views of no elements
_BYTES = np.dtype(np.uint8)
_HOST = (1, 0)
"""``kDLCPU`` and its only device, as DLPack numbers them."""


class Blob(Generic[ScalarT]):
    """An array of numbers with gradients, on the host and on a device.

    ``Blob()`` has no axes and no elements, ``Blob(())`` no axes and one element, as in Caffe.

    Calls on one blob are not serialised, as those on a `SyncedMemory` are: threads that share one, and reshape, adopt
    or compute, have to take turns.

    A class that is derived from this one may need other arguments.  Copies and pickles keep its attributes and do not
    call its ``__init__``; `from_array`, `load` and `from_contents` call it, with ``dtype``, ``host`` and ``device``.

    Parameters
    ----------
    *shape : int, or one sequence of int
        Up to 32 extents, as numbers (four of them are num, channels, height, width) or in a sequence; or an object with
        ``dim`` such as a ``BlobShape``; nothing for an empty blob.
    dtype : numpy.dtype or type
        ``float32``, ``float64``, ``int32``, ``uint32``, ``float16`` or, with ``ml_dtypes`` imported, ``bfloat16``.
        It may also follow one number or the sequence, without its name.
    host, device : DeviceAllocator, str or None
        As for `SyncedMemory`.

    Raises
    ------
    InvalidShapeError, InvalidArgumentError, NoDeviceError
    """

    __slots__ = ("__weakref__", "_data", "_device", "_diff", "_host", "_shape", "_shape_known", "_shape_memory")

    @overload
    def __init__(self: Blob[np.float32], *shape: Extents, dtype: None = None, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self, shape: Extents, dtype: ElementType[ScalarT], /, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self, *shape: Extents, dtype: ElementType[ScalarT], **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.float32], shape: Extents, dtype: Literal["float32"], /, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.float32], *shape: Extents, dtype: Literal["float32"], **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.float64], shape: Extents, dtype: Literal["float64"], /, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.float64], *shape: Extents, dtype: Literal["float64"], **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.float16], shape: Extents, dtype: Literal["float16"], /, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.float16], *shape: Extents, dtype: Literal["float16"], **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.int32], shape: Extents, dtype: Literal["int32"], /, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.int32], *shape: Extents, dtype: Literal["int32"], **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.uint32], shape: Extents, dtype: Literal["uint32"], /, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[np.uint32], *shape: Extents, dtype: Literal["uint32"], **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[Any], shape: Extents, dtype: DTypeLike, /, **on: Unpack[Sides]) -> None: ...
    @overload
    def __init__(self: Blob[Any], *shape: Extents, dtype: DTypeLike, **on: Unpack[Sides]) -> None: ...
    def __init__(self, *shape: Any, dtype: Any = None, host: Any = None, device: Any = "auto") -> None:
        if len(shape) == 2 and dtype is None and not shapes.is_integer(shape[1]):  # noqa: PLR2004 -- Blob(shape, dtype)
            first, dtype = shape
            shape = (first,)
        kind = check_dtype(np.float32 if dtype is None else dtype)
        self._host = resolve_host(host)
        self._device = resolve_device(device)
        self._shape: Shape | None = _checked(shape, kind) if shape else None
        extents = _NOTHING if self._shape is None else self._shape
        self._data, self._diff = self._fresh(extents, kind), self._fresh(extents, kind)
        self._shape_known = False  # whether the shape's memory holds it
        self._shape_memory: SyncedMemory | None = None

    # --- the shape, and Caffe's questions about it (blob.hpp:54-178)

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
        """The position of an element, in elements (blob.hpp:153-178).

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
        if not 1 <= len(indices) <= shapes.LEGACY_AXES:
            raise InvalidArgumentError("indices", indices, "one to four integers, or a sequence of them")
        return shapes.offset_4d(self.shape, (*indices, *(0,) * (shapes.LEGACY_AXES - len(indices))), strict=strict)

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

    # --- another shape

    def reshape(self, *shape: Extents) -> Self:
        """Take another shape (blob.cpp:12-55).

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

    def reshape_like(self, other: Blob[Any]) -> Self:
        """Take the shape of another blob (blob.cpp:58)."""
        if not isinstance(other, Blob):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
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
        arithmetic.copy_on_fresh_side(elements, fitting)
        return fitting

    # --- what it has

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

    def gpu_shape(self) -> DeviceArray:
        """The extents on the device, as a row of ``int32`` for kernels (blob.cpp:78).

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

    def __repr__(self) -> str:
        sides = f"data {_said(self.data_memory)}, diff {_said(self.diff_memory)}"
        return f"<Blob {self.shape_string} {self.dtype}, {sides}>"

    # --- Caffe's accessors

    def cpu_data(self) -> NDArray[ScalarT]:
        """The data on the host, to read: a NumPy array of the blob's shape and type that is and stays read-only.

        Raises
        ------
        AllocationError, DeviceError
            As for `SyncedMemory.cpu_data`.
        """
        view: NDArray[ScalarT] = self._data.cpu_data()
        return view

    def mutable_cpu_data(self) -> NDArray[ScalarT]:
        """The data on the host, to write; the device side is stale then."""
        view: NDArray[ScalarT] = self._data.mutable_cpu_data()
        return view

    def gpu_data(self) -> DeviceArray:
        """The data on the device, to read: an array of the device's own kind, of the blob's shape and type.

        Keep the blob as long as you use it: when the memory is freed, real devices show old bytes through it, and the
        simulated one raises `SimulatedDeviceError`.
        """
        view: DeviceArray = self._data.gpu_data()
        return view

    def mutable_gpu_data(self) -> DeviceArray:
        """The data on the device, to write; the host side is stale then."""
        view: DeviceArray = self._data.mutable_gpu_data()
        return view

    def cpu_diff(self) -> NDArray[ScalarT]:
        """The diff on the host, to read."""
        view: NDArray[ScalarT] = self._diff.cpu_data()
        return view

    def mutable_cpu_diff(self) -> NDArray[ScalarT]:
        """The diff on the host, to write; the device side is stale then."""
        view: NDArray[ScalarT] = self._diff.mutable_cpu_data()
        return view

    def gpu_diff(self) -> DeviceArray:
        """The diff on the device, to read."""
        view: DeviceArray = self._diff.gpu_data()
        return view

    def mutable_gpu_diff(self) -> DeviceArray:
        """The diff on the device, to write; the host side is stale then."""
        view: DeviceArray = self._diff.mutable_gpu_data()
        return view

    def data_at(self, *indices: Any) -> ScalarT:
        """An element of the data; brings the host side up to date.

        Parameters
        ----------
        *indices
            As for `offset`, but each strictly inside its axis.

        Raises
        ------
        InvalidIndexError, InvalidShapeError, AllocationError, DeviceError
        """
        return self._at(self._data, indices)

    def diff_at(self, *indices: Any) -> ScalarT:
        """An element of the diff; see `data_at`."""
        return self._at(self._diff, indices)

    def _at(self, elements: Elements, indices: tuple[Any, ...]) -> ScalarT:
        position = self._position(indices)
        element: ScalarT = elements.flat(elements.memory.cpu_data())[position]
        return element

    # --- pycaffe's attributes

    @property
    def data(self) -> NDArray[ScalarT]:
        """The data on the host as a NumPy array, as in pycaffe.

        Reading it leaves the device side fresh.  Assigning, as in ``blob.data[...] = 1``, ``blob.data -= step`` or
        ``blob.data = values``, makes it stale.  Everything else finds the array read-only.

        Take it anew instead of keeping it.  One that was kept shows what was on the host when it was taken; it is
        refused to write through it (`InvalidPointerError`) once the device has newer numbers, or the blob other memory.

        Raises
        ------
        InvalidValueError
            If an element cannot hold one of the numbers that are assigned, such as 2**40 or NaN for ``int32``.
        InvalidArgumentError, InvalidShapeError
            If they are no numbers, or do not fit.  In every case nothing has changed.
        """
        return live(self._data, ref(self))

    @data.setter
    def data(self, values: object) -> None:
        assign(self._data, values)

    @property
    def diff(self) -> NDArray[ScalarT]:
        """The diff on the host as a NumPy array; see `data`."""
        return live(self._diff, ref(self))

    @diff.setter
    def diff(self, values: object) -> None:
        assign(self._diff, values)

    # --- protocols; all of them show the data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        np.array(self._nothing(), dtype, copy=copy)  # refused, if it will be
        return np.array(self.cpu_data(), dtype, copy=copy)

    def __buffer__(self, flags: int) -> memoryview:
        """For ``memoryview(blob)``, read-only; Python asks for it from 3.12 on."""
        nothing: Any = self._nothing()
        memoryview(nothing)  # NumPy itself refuses what a buffer cannot describe, such as bfloat16
        view: Any = self.cpu_data()
        return memoryview(view)

    def _nothing(self) -> NDArray[ScalarT]:
        """No elements, looked at as `cpu_data` shows them: what is refused of it will be refused of that."""
        nothing: NDArray[ScalarT] = np.empty(0, self.dtype)
        nothing.flags.writeable = False
        return nothing

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host: a consumer that wants the device side asks for it, or takes ``gpu_data()``."""
        return _HOST

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        """A capsule over the data, of the host side unless another device is asked for.

        It is read-only, so the consumer has to know of versions (``max_version=(1, 0)``); others can be given
        ``mutable_cpu_data()``.

        Parameters
        ----------
        dl_device : tuple of int, optional
            As in the array API standard; the blob's own device, or the host.
        **options
            ``stream``, ``max_version`` and ``copy``, for NumPy or the library of the device.

        Raises
        ------
        InvalidArgumentError
            If `dl_device` is no pair of integers.
        BufferError
            If the data is not on that device, or cannot be handed out like that; no head has moved.
        """
        wanted = {name: value for name, value in options.items() if value is not None}
        there = _HOST if dl_device is None else _dlpack_device(dl_device)
        nothing: Any = self._nothing()
        if there == _HOST:
            if "stream" in wanted:
                raise BufferError(f"there are no streams on the host, and stream is {wanted['stream']!r}")
            nothing.__dlpack__(**wanted)
            view: Any = self.cpu_data()
            return view.__dlpack__(**wanted)
        nothing = None if self._device is None else self._device.empty(0)
        if not hasattr(nothing, "__dlpack__") or tuple(nothing.__dlpack_device__()) != there:
            raise BufferError(f"the data is not on the device {there} of DLPack, but on {self._device}")
        nothing.view(self.dtype).__dlpack__(**wanted)
        there_view: Any = self.gpu_data()
        return there_view.__dlpack__(**wanted)

    # --- adoption and sharing

    def set_cpu_data(self, data: Any) -> None:
        """Use somebody else's host memory as the data (blob.cpp:90).

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
        """Use somebody else's device memory as the data (blob.cpp:108); see `set_cpu_data`."""
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

    def share_data(self, other: Blob[ScalarT]) -> None:
        """Use the data of another blob as one's own: the memory itself, not a copy (blob.cpp:156).

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

    def share_diff(self, other: Blob[ScalarT]) -> None:
        """Use the diff of another blob as one's own (blob.cpp:162); see `share_data`."""
        self._diff = self._shared("share_diff", self._diff, other, "_diff", self._data)

    def _shared(self, name: str, mine: Elements, other: Blob[Any], part: str, kept: Elements) -> Elements:
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
        if not isinstance(other, Blob):
            raise InvalidArgumentError(argument, other, "a Blob")
        if theirs.dtype != self.dtype:
            raise InvalidArgumentError(argument, theirs, f"a blob of {self.dtype}")

    # --- arithmetic, and copies of numbers

    def copy_from(self, source: Blob[ScalarT], copy_diff: bool = False, reshape: bool = False) -> None:
        """Copy the data of another blob, or its diff (blob.cpp:433).

        Where it is done is Caffe's mode: on the device in GPU mode, on the host in CPU mode and without a device.

        Parameters
        ----------
        source : Blob
        copy_diff : bool
            Copy the diff, and not the data.
        reshape : bool
            Take the shape of `source`, if it is another.

        Raises
        ------
        InvalidShapeError
            If the shapes differ and `reshape` is false, or `source` has none; nothing has changed.
        InvalidArgumentError
            If `source` is no blob, or of another type, or a flag is no ``bool``; nothing has changed.
        AllocationError, DeviceError
            The blob has its old shape and memory; sides of both blobs may have been brought up to date.
        """
        self._check_same_type("source", source)
        copy_diff, reshape = as_flag(copy_diff, "copy_diff"), as_flag(reshape, "reshape")
        if source._shape == self._shape:
            fitted = self._data, self._diff
        elif not reshape:
            reason = f"this blob has the shape {self.shape_string}, and reshape was not asked for"
            raise InvalidShapeError(source.shape, reason)
        elif source._shape is None:
            raise InvalidShapeError((), "the source was never given one, and there is nothing in it to copy")
        else:
            fitted = self._fitted(source._shape)
        taken = source._diff if copy_diff else source._data
        arithmetic.copy(taken, fitted[copy_diff])
        if source._shape is not None:
            self._take(source._shape, fitted)

    def update(self) -> None:
        """Subtract the diff from the data, where the data is (blob.cpp:174-197).

        Raises
        ------
        IllegalCallError
            If nothing was ever written to the data.
        NoArithmeticError
            If the elements are integers (Caffe's NOT_IMPLEMENTED), or of a type that the device lacks.
        InvalidPointerError
            If data and diff are adopted buffers that overlap in part.
        """
        arithmetic.subtract("update", self._diff, self._data)

    def asum_data(self) -> float:
        """The sum of the magnitudes of the data, its L1 norm; 0 if nothing was ever written."""
        return arithmetic.total("asum_data", "asum", self._data)

    def asum_diff(self) -> float:
        """The sum of the magnitudes of the diff."""
        return arithmetic.total("asum_diff", "asum", self._diff)

    def sumsq_data(self) -> float:
        """The sum of the squares of the data: the square of its L2 norm, and not an L1 norm (blob.cpp:280-341)."""
        return arithmetic.total("sumsq_data", "sumsq", self._data)

    def sumsq_diff(self) -> float:
        """The sum of the squares of the diff."""
        return arithmetic.total("sumsq_diff", "sumsq", self._diff)

    def scale_data(self, factor: SupportsFloat) -> None:
        """Multiply the data, where it is; nothing happens if nothing was ever written."""
        arithmetic.scale("scale_data", factor, self._data)

    def scale_diff(self, factor: SupportsFloat) -> None:
        """Multiply the diff, where it is."""
        arithmetic.scale("scale_diff", factor, self._diff)

    # --- messages and files (blob.cpp:410-554): everything is checked and allocated before an element is overwritten

    def to_proto(self, write_diff: bool = False, proto: Any = None) -> Any:
        """The blob as a ``BlobProto``; brings the host side up to date (blob.cpp:517).

        Parameters
        ----------
        write_diff : bool
            Write the diff too.
        proto : BlobProto or None
            The message to write to; all fields of a blob that it has are cleared first.  None for a new one.

        Raises
        ------
        InvalidShapeError
            If there is no shape yet, which a message cannot say.
        InvalidArgumentError
            If the elements are of another type than float32 and float64.
        MissingPackageError
        """
        write_diff = as_flag(write_diff, "write_diff")
        if self._shape is None:
            raise InvalidShapeError((), "this blob was never given one, and a message cannot say so")
        if self.dtype not in VALUE_TYPES:
            raise InvalidArgumentError("dtype", self.dtype, "float32 or float64 for a blob in a message")
        message = message_to_write(proto)
        check_blob(self.shape, *self._stand_ins(write_diff))  # which refuses what is too long, before a head moves
        return write_proto(self.shape, self.cpu_data(), self.cpu_diff() if write_diff else None, message)

    def _stand_ins(self, write_diff: bool) -> tuple[Any, Any]:
        """Arrays that look like data and diff, if that is wanted, and have one element; no head moves for them."""
        check_viewable(self.shape, self.dtype)
        stand_in = np.broadcast_to(np.zeros((), self.dtype), self.shape)
        return stand_in, stand_in if write_diff else None

    def from_proto(self, proto: Any, reshape: bool = True) -> None:
        """Take shape, data and, if it is there, diff from a ``BlobProto`` or its bytes (blob.cpp:466).

        Numbers are converted to the blob's type; fractions are cut off for integers, as C does it.  A message without a
        diff leaves the diff as it is.

        Parameters
        ----------
        proto : BlobProto, or its bytes
        reshape : bool
            Take the shape of the message; otherwise it has to be the blob's.

        Raises
        ------
        InvalidShapeError
            If the shape is another, and `reshape` is false.
        FileFormatError, InvalidArgumentError
            If it is no message of a blob; see `syncedmem.runtime.read_proto`.
        InvalidValueError
            If an integer cannot hold one of the numbers.
        AllocationError, DeviceError
            In every case shape and elements are as they were.
        """
        reshape = as_flag(reshape, "reshape")
        contents = read_proto(proto)
        if not reshape and (self._shape is None or not shape_equals(self._shape, proto)):
            reason = f"this blob has the shape {self.shape_string}, and reshape was not asked for"
            raise InvalidShapeError(contents.shape, reason)
        self._fill(contents if reshape else contents._replace(shape=self.shape), cut=True)

    def shape_equals(self, proto: Any) -> bool:
        """Whether the blob has the shape of a ``BlobProto`` or its bytes (blob.cpp:410).

        The four old fields, if the message has any of them, are compared from the last axis backwards.
        """
        return shape_equals(self.shape, proto)

    def _fill(self, contents: BlobContents, *, cut: bool = False) -> None:
        """Take over what was read, on the host."""
        data, diff = (None if it is None else checked(it, self.dtype, cut=cut) for it in contents[1:])
        fitted = self._fitted(contents.shape)
        pairs = [(it, values) for it, values in zip(fitted, (data, diff), strict=True) if values is not None]
        for elements, _ in pairs:
            elements.mutable_cpu_data()  # all that can fail, before any element is overwritten
        for elements, values in pairs:
            fill(elements.mutable_cpu_data(), values.reshape(contents.shape))
        self._take(contents.shape, fitted)

    def save(self, path: StoredPath, write_diff: bool = False) -> None:
        """Write to a file, of the kind that its name ends in: ``.npy``, ``.npz`` or ``.binaryproto``.

        A new file takes the place of the old one, so other names of that, its hard links, keep the old contents.

        Raises
        ------
        FileAccessError, FileFormatError, InvalidArgumentError
            As for `syncedmem.save_npy` and its like; also if the file cannot hold a diff, or its kind is not known.
        InvalidShapeError
            If there is no shape yet.
        AllocationError, DeviceError
            What cannot be written in a place like that is refused before any head moves; in every case what was at the
            path is still there.
        """
        kind, write_diff = file_kind(path), as_flag(write_diff, "write_diff")
        if self._shape is None:
            raise InvalidShapeError((), "this blob was never given one, and a file cannot say so")
        kind.check(path, *self._stand_ins(write_diff))
        write_whole(path, lambda file: kind.write(file, self.cpu_data(), self.cpu_diff() if write_diff else None))

    @classmethod
    def load(
        cls,
        path: StoredPath,
        *,
        dtype: Any = None,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
    ) -> Blob[Any]:
        """A blob from a ``.npy``, ``.npz`` or ``.binaryproto`` file.

        Parameters
        ----------
        path : str or os.PathLike
        dtype : numpy.dtype or type, optional
            What to convert the elements to; None for the type that they have.
        host, device
            As for the class.

        Raises
        ------
        FileAccessError, FileFormatError, InvalidArgumentError
            As for `syncedmem.load_npy` and its like.
        InvalidValueError
            If elements of `dtype` cannot hold one of the numbers.
        """
        return cls.from_contents(file_kind(path).load(path), dtype=dtype, host=host, device=device)

    @classmethod
    def from_contents(
        cls,
        contents: BlobContents,
        *,
        dtype: Any = None,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
    ) -> Blob[Any]:
        """A blob from what was read of a file, for example by `syncedmem.load_caffemodel`; see `load`."""
        blob: Any = cls._made(contents.data.dtype if dtype is None else dtype, host, device)
        blob._fill(contents)  # noqa: SLF001 -- one of this class
        return blob  # type: ignore[no-any-return]

    # --- arrays of others

    @overload
    @classmethod
    def from_array(
        cls, array: NDArray[ElementT], *, dtype: None = None, copy: bool | None = None, **on: Unpack[Sides]
    ) -> Blob[ElementT]: ...
    @overload
    @classmethod
    def from_array(
        cls, array: Any, *, dtype: ElementType[ElementT], copy: bool | None = None, **on: Unpack[Sides]
    ) -> Blob[ElementT]: ...
    @overload
    @classmethod
    def from_array(
        cls, array: Any, *, dtype: DTypeLike | None = None, copy: bool | None = None, **on: Unpack[Sides]
    ) -> Blob[Any]: ...
    @classmethod
    def from_array(
        cls,
        array: Any,
        *,
        dtype: Any = None,
        copy: bool | None = None,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
    ) -> Blob[Any]:
        """A blob whose data is somebody else's array: NumPy's, CuPy's, PyTorch's, JAX's, PyOpenCL's, or a list.

        An array on the blob's own device becomes the device side, one that the processor can read the host side.  It is
        adopted, so nothing is copied, if it is contiguous, aligned, writeable, and of a type that blobs have.

        Parameters
        ----------
        array : array
        dtype : numpy.dtype or type, optional
            The type of the elements; None for the array's own.
        copy : bool, optional
            True: always copy.  False: never.  None: if it cannot be adopted.
        host, device
            As for the class.

        Raises
        ------
        BufferMismatchError
            If it cannot be taken at all (it is on another device, or no array of numbers), or not without a copy; with
            the reason.
        InvalidArgumentError
            If blobs have no elements of its type, and `dtype` does not say what to convert them to.
        InvalidValueError
            If an element of that type cannot hold one of the numbers.
        AllocationError, DeviceError
        """
        if copy is not None and not isinstance(copy, bool | np.bool_):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("copy", copy, "True, False or None")
        allocator = resolve_device(device)
        theirs = ForeignArray(array, allocator)
        kind = theirs.element_type() if dtype is None else dtype
        blob: Blob[Any] = cls._made(kind, host, allocator).reshape(theirs.shape)
        if not copy:
            try:
                theirs.check_adoptable(blob.dtype)
                (blob.set_gpu_data if theirs.on_device else blob.set_cpu_data)(theirs.view)
            except BufferMismatchError:
                if copy is not None:
                    raise
            else:
                return blob
        theirs.copied_to(blob._data, blob.host)
        return blob

    # --- copies, pickles, and how a derived class is made

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
        Blob.__init__(blob, dtype=dtype, host=host, device=device)  # pyright: ignore[reportUnknownMemberType] -- of no type yet
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

    def _like(self, shape: Shape | None, data: Elements, diff: Elements) -> Self:
        """Another blob on the same allocators, with these elements."""
        blob = self._bare(self.dtype, self._host, self._device)
        blob._shape, blob._data, blob._diff = shape, data, diff  # noqa: SLF001 -- one of this class
        return blob

    def __copy__(self) -> Self:
        """A blob that shares both memories, as `share_data` and `share_diff` make one."""
        blob = self._like(self._shape, *(it.reshaped(it.shape) for it in (self._data, self._diff)))
        for name, value in self._added().items():
            setattr(blob, name, value)
        return blob

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A blob with memories of its own, the elements copied where they are fresh.

        Blobs that share a memory and are copied together share its copy.
        """
        blob = self._like(self._shape, *(self._copied(it, memo) for it in (self._data, self._diff)))
        memo[id(self)] = blob  # before its attributes are copied, among which it may be itself
        for name, value in self._added().items():
            setattr(blob, name, deepcopy(value, memo))
        return blob

    def _copied(self, elements: Elements, memo: dict[int, Any]) -> Elements:
        memory = elements.memory
        if id(memory) not in memo:
            whole = Elements(memory, _BYTES, (memory.size,))
            memo[id(memory)] = Elements(self._memory(memory.size), _BYTES, (memory.size,))
            arithmetic.copy_on_fresh_side(whole, memo[id(memory)])
        return Elements(memo[id(memory)].memory, elements.dtype, elements.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Through the host: what the device holds is brought down.  Sharing and what lies behind the shape are lost."""
        fresh = [
            None if it.memory.head is SyncedHead.UNINITIALIZED else it.cpu_data() for it in (self._data, self._diff)
        ]
        made = type(self), self._shape, self.dtype, self._device is not None, *fresh
        return _unpickled, made, (None, self._added())  # as pickle has the state of what has slots


_OWN = frozenset(Blob.__slots__)


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


def _dlpack_device(device: Any) -> tuple[int, int]:
    """What DLPack calls a device: a kind, and a number."""
    try:
        kind, number = map(operator.index, device)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError("dl_device", device, "a pair of integers") from error
    return kind, number


def _unpickled(  # noqa: PLR0913 -- what there is to a blob
    kind: type[Blob[Any]], shape: Shape | None, dtype: Any, on_device: bool, data: Any, diff: Any
) -> Blob[Any]:
    """A blob from what was pickled: on the device of this process, if it was on one."""
    kept: Any = kind
    blob: Blob[Any] = kept._bare(dtype, None, "auto" if on_device else None)  # noqa: SLF001 -- one of this class
    if shape is not None:
        blob.reshape(shape)
    if data is not None:
        blob.mutable_cpu_data()[...] = data
    if diff is not None:
        blob.mutable_cpu_diff()[...] = diff
    return blob


def _said(memory: SyncedMemory) -> str:
    """A memory in a few words, without the brackets."""
    return f"[{repr(memory).removeprefix('<SyncedMemory ').removesuffix('>')}]"
