"""`Blob`: an N-dimensional array of numbers and their gradients (Caffe's blob.hpp).

A blob has a shape and two memories, its data and its diff.  Each is a `SyncedMemory`.  So a blob is on the host and on
the device at once, and nothing is copied or allocated before it is needed.  A third memory has the shape for kernels;
it is made when a kernel needs it.  Questions about a shape are in ``shape``, and computations in ``arithmetic``.
``elements`` shows a memory as numbers.  Messages and files are read and written as arrays.

Reshaping never moves bytes.  A shape that fits keeps the memories; a larger one gets new memories, and the old contents
are lost.  Blobs share a memory as one object, so a change through one blob is seen through the other.  The capacity is
never stored.  It is computed from the memories that the blob has, shared and adopted ones included, so nothing can be
written past the end of one.  A call makes everything new before it gives up anything old.

Every array that a blob returns is a new view over the memory itself, and keeps its bytes.  This holds even when the
blob has grown and has another memory, unless a pool has lent the bytes again.  On the simulated device, views of freed
memory raise an error.  For the same reason a blob has no ``__array_interface__`` and no ``__cuda_array_interface__``:
their users keep the blob alive, but not its memory.  The views have these attributes.

Where Caffe would write past the end of something, or stop half-way, this class does not; docs/blobs.md lists every
difference.
"""

from __future__ import annotations

from copy import deepcopy
from math import prod
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, SupportsFloat, TypedDict, TypeVar, Unpack, overload
from weakref import ref

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from syncedmem.model import (
    BufferMismatchError,
    ClosedMemoryError,
    InvalidArgumentError,
    InvalidIndexError,
    InvalidShapeError,
    SyncedHead,
    SyncedMemoryError,
    caffe,
)
from syncedmem.model.files import write_whole

from ..allocators.failures import where_of
from ..allocators.pointers import as_flag
from ..devices.registry import AUTOMATIC, resolve_device, resolve_sides
from ..memory import dlpack
from ..memory.synced_memory import SyncedMemory, memory_over
from ..memory.tables import CLEARED
from ..memory.watch import is_checked
from . import arithmetic
from . import shape as shapes
from .contents import check_contents
from .conversion import checked, fill
from .elements import OWNED, Elements, check_dtype, check_viewable
from .file_kinds import file_kind
from .foreign_arrays import ForeignArray
from .live_array import assign, is_foreign, is_of_elements, live, rehearse_in_full, rehearse_of_elements
from .messages import VALUE_TYPES, check_blob, message_to_write, read_proto, shape_equals, write_proto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import SupportsIndex

    from numpy.typing import DTypeLike, NDArray

    from syncedmem.model.files import StoredPath
    from syncedmem.model.interface import DeviceArray

    from ..allocators.arguments import DeviceMemory, HostMemory, Numbers, ReadOnlyArray
    from ..allocators.base import DeviceAllocator
    from ..memory.watch import Checked
    from .contents import BlobContents
    from .shape import Extents, Shape

__all__ = ["Blob"]

ScalarT = TypeVar("ScalarT", bound=np.generic)
"""The type of the elements, as a NumPy scalar type."""

ElementT = TypeVar(
    "ElementT", bound=np.float16 | np.float32 | np.float64 | np.int32 | np.uint32 | np.int64 | np.uint8 | np.bool_
)
"""An element type of blobs, as a NumPy scalar type."""

ElementType = type[ScalarT] | np.dtype[ScalarT]
"""An argument that names an element type in a way that type checkers understand."""


class Where(TypedDict, total=False):
    """The arguments that say where the two sides of a blob's memories are; as for `SyncedMemory`."""

    host: DeviceAllocator | None
    pinned: DeviceAllocator | None
    device: DeviceAllocator | str | None
    checked: Checked | None


_EXTENT = np.dtype(np.int32)  # the type of an extent in the shape for kernels (blob.cpp:28)
_FREED = {
    caffe.SET_CPU_DATA.name: CLEARED[caffe.ADOPT_CPU.name],
    caffe.SET_GPU_DATA.name: CLEARED[caffe.ADOPT_GPU.name],
}  # which side each call of adoption frees, if the memory owns it

_FRESH_ON_HOST = (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED)  # the heads with which reading there copies nothing
_NOTHING = (0,)  # the shape of a view without elements
_BYTES = np.dtype(np.uint8)


class Blob(NDArrayOperatorsMixin, Generic[ScalarT]):
    """An array of numbers with gradients, on the host and on a device.

    ``Blob()`` has no shape and no elements.  ``Blob(())`` has no axes and one element, as in Caffe.

    Unlike calls on a `SyncedMemory`, calls on one blob are not serialised.  Threads that share a blob have to take
    turns if they reshape, adopt or compute.

    A derived class may need other arguments in ``__init__``.  Copies and pickles keep its attributes and do not call
    its ``__init__``.  `from_array`, `load` and `from_contents` call it with ``dtype``, ``host`` and ``device``, and
    with ``pinned`` and ``checked`` if they were given one.

    Parameters
    ----------
    *shape : int, or one sequence of int
        Up to 32 extents, in elements: as numbers (four of them are num, channels, height, width), in a sequence, or in
        an object with ``dim``, such as a ``BlobShape``.  Without any, the blob is empty.
    dtype : numpy.dtype or type
        ``float32``, ``float64``, ``int32``, ``uint32``, ``float16`` or, with ``ml_dtypes`` imported, ``bfloat16``.
        It may also be the second positional argument, after one number or the sequence.
    host, pinned, device, checked : DeviceAllocator, str, bool or None
        As for `SyncedMemory`.

    Raises
    ------
    InvalidShapeError
        If no blob can have that shape.
    InvalidArgumentError
        If an argument has the wrong type.
    NoDeviceError
        If the device is not here.
    """

    __slots__ = (
        "__weakref__",
        "_checked",
        "_data",
        "_device",
        "_diff",
        "_host",
        "_pinned",
        "_shape",
        "_shape_known",
        "_shape_memory",
    )

    @overload
    def __init__(self: Blob[np.float32], *shape: Extents, dtype: None = None, **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self, shape: Extents, dtype: ElementType[ScalarT], /, **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self, *shape: Extents, dtype: ElementType[ScalarT], **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self: Blob[np.float32], shape: Extents, dtype: Literal["float32"], /, **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self: Blob[np.float32], *shape: Extents, dtype: Literal["float32"], **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self: Blob[np.float64], shape: Extents, dtype: Literal["float64"], /, **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self: Blob[np.float64], *shape: Extents, dtype: Literal["float64"], **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self: Blob[Any], shape: Extents, dtype: DTypeLike, /, **on: Unpack[Where]) -> None: ...
    @overload
    def __init__(self: Blob[Any], *shape: Extents, dtype: DTypeLike, **on: Unpack[Where]) -> None: ...
    def __init__(
        self,
        *shape: Any,
        dtype: Any = None,
        host: Any = None,
        pinned: Any = None,
        device: Any = AUTOMATIC,
        checked: Checked | None = None,
    ) -> None:
        if len(shape) == 2 and dtype is None and not shapes.is_integer(shape[1]):  # noqa: PLR2004 -- Blob(shape, dtype)
            first, dtype = shape
            shape = (first,)
        kind = check_dtype(np.float32 if dtype is None else dtype)
        self._host, self._pinned, self._device = resolve_sides(host, pinned, device)
        self._checked: Checked = is_checked(checked, self._device)
        self._shape: Shape | None = _checked(shape, kind) if shape else None
        extents = _NOTHING if self._shape is None else self._shape
        self._data, self._diff = self._fresh(extents, kind), self._fresh(extents, kind)
        self._shape_known = False  # whether the memory of the shape has the present shape
        self._shape_memory: SyncedMemory | None = None

    # --- the shape, and Caffe's questions about it (blob.hpp:54-178)

    @property
    def shape(self) -> Shape:
        """The extents of the axes, in elements."""
        return self._shape or ()

    @property
    def num_axes(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes, under NumPy's name."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """The number of elements; of 64 bits, where Caffe has an ``int``."""
        return 0 if self._shape is None else prod(self._shape)

    @property
    def size(self) -> int:
        """The number of elements, under NumPy's name."""
        return self.count

    def __len__(self) -> int:
        """The extent of the first axis, as of a NumPy array.

        Raises
        ------
        InvalidArgumentError
            If there are no axes.
        """
        if not self._shape:
            raise InvalidArgumentError("blob", self, "a blob with axes, because another one has no length")
        return self._shape[0]

    def __bool__(self) -> bool:
        """True, also without elements: a blob is an object that has arrays, as in pycaffe."""
        return True

    @property
    def nbytes(self) -> int:
        """How many bytes the data has, and also the diff; memory beyond the shape is not counted."""
        return self.count * self.dtype.itemsize

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
        """The shape as Caffe prints it: ``"2 3 4 5 (120)"``; ``"(0)"`` without a shape, ``"(1)"`` without axes."""
        return "(0)" if self._shape is None else shapes.shape_string(self._shape)

    def canonical_axis_index(self, axis: SupportsIndex) -> int:
        """The number of an axis, counted from the front; a negative `axis` counts from the back.

        Raises
        ------
        InvalidIndexError
            If there is no such axis.
        """
        return shapes.canonical_axis_index(self.shape, axis)

    def count_axes(self, start: SupportsIndex = 0, end: SupportsIndex | None = None) -> int:
        """The volume of the axes from `start` to before `end`: Caffe's ``count(start, end)``; one if there are none.

        Raises
        ------
        InvalidIndexError
            Unless ``0 <= start <= end <= num_axes``.
        """
        return shapes.count_axes(self.shape, start, end)

    def legacy_shape(self, index: SupportsIndex) -> int:
        """The extent of one of four axes; missing axes have the extent one.

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
            One to four numbers, for at most four axes; or one sequence, with at most as many indices as there are axes.
            Each number may be up to *one past the end* of its axis, because pooling layers need it.  Each index of a
            sequence has to be inside its axis.  Missing ones are zero.

        Raises
        ------
        InvalidIndexError
            If an index is out of range, or there are too many.
        InvalidShapeError
            If numbers are given, and there are more than four axes.
        InvalidArgumentError
            If there are no indices, or more than four numbers, or they are no integers.
        """
        return self._offset(indices, strict=False)

    def _offset(self, indices: tuple[Any, ...], *, strict: bool) -> int:
        if len(indices) == 1 and hasattr(indices[0], "__iter__"):
            return shapes.offset(self.shape, indices[0])
        if not 1 <= len(indices) <= shapes.LEGACY_AXES:
            raise InvalidArgumentError("indices", indices, "one to four integers, or a sequence of them")
        return shapes.offset_4d(self.shape, (*indices, *(0,) * (shapes.LEGACY_AXES - len(indices))), strict=strict)

    def _position(self, indices: tuple[Any, ...]) -> int:
        """As `offset`, but each index has to be inside its axis: the position of an element that can be read."""
        position = self._offset(indices, strict=True)
        if not self.count:
            raise InvalidIndexError("indices", indices, f"there is no element in {self.shape_string}")
        return position

    # --- another shape

    def reshape(self, *shape: Extents) -> Self:
        """Take another shape (blob.cpp:12-55).

        If data and diff both fit, they keep their memories: no bytes are moved, and no head changes.  After a smaller
        shape, a larger one shows the old elements again.  If they do not fit, both get new memories and their contents
        are lost; blobs that shared the old memories keep them.

        Parameters
        ----------
        *shape
            Up to 32 integers, as in pycaffe (Caffe takes four); a sequence of them; or an object with ``dim``, such as
            a ``BlobShape``.

        Returns
        -------
        Blob
            This blob.

        Raises
        ------
        InvalidShapeError, InvalidArgumentError
            If no blob can have that shape; nothing has changed.
        """
        self._check_open("reshape")
        self._take(_checked(shape, self.dtype))
        return self

    def reshape_like(self, other: Blob[Any]) -> Self:
        """Take the shape of another blob (blob.cpp:58); errors as for `reshape`."""
        if not isinstance(other, Blob):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("other", other, "a Blob")
        return self.reshape(other.shape)

    def _fitted(self, shape: Shape) -> tuple[Elements, Elements]:
        """Data and diff in another shape: in the present memories, or in new ones if one of these is too small."""
        needed = prod(shape) * self.dtype.itemsize
        if needed <= min(self._data.memory.size, self._diff.memory.size):
            return self._data.reshaped(shape), self._diff.reshaped(shape)
        return self._fresh(shape, self.dtype), self._fresh(shape, self.dtype)

    def _fresh(self, shape: Shape, dtype: np.dtype[Any]) -> Elements:
        """Elements in new memory, which nobody has written."""
        return Elements(self._memory(prod(shape) * dtype.itemsize), dtype, shape)

    def _take(self, shape: Shape, fitted: tuple[Elements, Elements] | None = None) -> None:
        """Take another shape, with data and diff that fit it."""
        data, diff = fitted or self._fitted(shape)
        old = self._data, self._diff  # dropped at the end, because freeing memory may run any code
        known = self._shape_known and shape == self._shape
        self._shape, self._shape_known, self._data, self._diff = shape, known, data, diff
        del old

    def shrink_to_fit(self) -> Self:
        """Give back the memory that the present shape does not need; Caffe has no such call, and its blobs only grow.

        The elements are copied on the side where they are fresh.  If the memory is shared or adopted, others keep it,
        and this blob gets one of its own; a memory that has exactly the needed size is kept in any case.  If one part
        adopted memory of the other part, that memory is kept too.

        Returns
        -------
        Blob
            This blob.

        Raises
        ------
        AllocationError, DeviceError
            If there is no room, or a copy fails; the blob is unchanged.
        """
        self._check_open("shrink_to_fit")
        data = self._shrunk(self._data, self._diff)
        self._data, self._diff = data, self._shrunk(self._diff, data)
        return self

    def _shrunk(self, elements: Elements, kept: Elements) -> Elements:
        if elements.memory.size == elements.nbytes or elements.owns_bytes_of(kept):
            return elements
        fitting = self._fresh(elements.shape, self.dtype)
        arithmetic.copy_on_fresh_side(elements, fitting)
        return fitting

    # --- the end

    def close(self) -> None:
        """Free data, diff and the memory of the shape; a memory that another blob shares is given up, not closed.

        It waits for pushes in flight.  Later calls for elements or for another shape are refused.  Closing twice is
        harmless.

        Raises
        ------
        ReleaseError, DeviceError
            If a memory cannot be closed; the others are.  Call again to free what is left.
        StaleWriteError
            In checked mode, if somebody wrote to a stale side; everything is closed.
        """
        self._end(SyncedMemory.close)

    def __enter__(self) -> Self:
        self._check_open("with")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(lambda memory: memory.__exit__(kind, error, traceback))

    def _end(self, end: Callable[[SyncedMemory], None]) -> None:
        """End each memory that is this blob's alone, and give up the others."""
        failure: SyncedMemoryError | None = None
        own = [part.memory for part in (self._data, self._diff) if not part.shared]
        for memory in own if self._shape_memory is None else (*own, self._shape_memory):
            try:
                end(memory)
            except SyncedMemoryError as error:
                failure = failure or error
        self._data, self._diff = self._given_up(self._data), self._given_up(self._diff)
        if failure is not None:
            raise failure

    def _given_up(self, elements: Elements) -> Elements:
        """Elements of a closed memory in place of those of a shared one."""
        if not elements.shared:
            return elements
        memory = self._memory(elements.memory.size)
        memory.close()
        return Elements(memory, elements.dtype, elements.shape)

    @property
    def closed(self) -> bool:
        """Whether `close` was called, also if it did not come to its end: then call it again."""
        return self._data.memory.closed or self._diff.memory.closed

    def _check_open(self, call: str) -> None:
        """Refuse a call that would give a closed blob new memory."""
        if self.closed:
            raise ClosedMemoryError(call, self.nbytes)

    # --- what a blob has

    @property
    def capacity(self) -> int:
        """How many elements fit into the present memories of both data and diff."""
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
    def pinned(self) -> DeviceAllocator:
        """The allocator of host memory in GPU mode; without a device, that of ordinary host memory."""
        return self._pinned

    @property
    def device(self) -> DeviceAllocator | None:
        """The allocator of the device side, or None."""
        return self._device

    @property
    def shape_memory(self) -> SyncedMemory:
        """The memory of the shape, as `gpu_shape` shows it; Caffe's ``shape_data_``.

        It is written when somebody asks for it, and only if the shape has changed since then.

        Raises
        ------
        InvalidShapeError
            If the blob was never given a shape, or an extent has more than 31 bits.
        """
        memory = self._shape_memory
        if memory is None or not self._shape_known:
            self._shape_memory = memory = self._written_shape()
            self._shape_known = True
        return memory

    def _written_shape(self) -> SyncedMemory:
        self._check_open("shape_memory")
        shape = self._shape
        if shape is None:
            raise InvalidShapeError((), "this blob was never given a shape")
        if max(shape, default=0) > shapes.INT_MAX:
            raise InvalidShapeError(shape, f"kernels take extents of at most {shapes.INT_MAX}")
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
        NoDeviceError
            If the blob has no device.
        InvalidShapeError
            As for `shape_memory`.
        AllocationError, DeviceError
            As for `SyncedMemory.gpu_data`.
        """
        return self.shape_memory.gpu_data().view(_EXTENT)

    @property
    def data_memory(self) -> SyncedMemory:
        """The memory of the data (Caffe's ``data()``); it may have more bytes than the blob."""
        return self._data.memory

    @property
    def diff_memory(self) -> SyncedMemory:
        """The memory of the diff (Caffe's ``diff()``); it may have more bytes than the blob."""
        return self._diff.memory

    def __repr__(self) -> str:
        sides = f"data {_said(self.data_memory)}, diff {_said(self.diff_memory)}"
        return f"<Blob {self.shape_string} {self.dtype}, {sides}>"

    # --- Caffe's accessors

    def cpu_data(self) -> ReadOnlyArray[Any, np.dtype[ScalarT]]:
        """The data on the host, to read: a NumPy array of the blob's shape and type, which stays read-only.

        Raises
        ------
        AllocationError, DeviceError
            As for `SyncedMemory.cpu_data`.
        """
        view: ReadOnlyArray[Any, np.dtype[ScalarT]] = self._data.cpu_data()
        return view

    def mutable_cpu_data(self) -> NDArray[ScalarT]:
        """The data on the host, to write; the device side is stale after this call."""
        view: NDArray[ScalarT] = self._data.mutable_cpu_data()
        return view

    def gpu_data(self) -> DeviceArray:
        """The data on the device, to read: an array of the device's own kind, of the blob's shape and type.

        Keep the blob as long as you use the array.  When the memory is freed, the array shows old bytes on a real
        device, and raises `SimulatedDeviceError` on the simulated one.
        """
        view: DeviceArray = self._data.gpu_data()
        return view

    def mutable_gpu_data(self) -> DeviceArray:
        """The data on the device, to write; the host side is stale after this call."""
        view: DeviceArray = self._data.mutable_gpu_data()
        return view

    def cpu_diff(self) -> ReadOnlyArray[Any, np.dtype[ScalarT]]:
        """The diff on the host, to read."""
        view: ReadOnlyArray[Any, np.dtype[ScalarT]] = self._diff.cpu_data()
        return view

    def mutable_cpu_diff(self) -> NDArray[ScalarT]:
        """The diff on the host, to write; the device side is stale after this call."""
        view: NDArray[ScalarT] = self._diff.mutable_cpu_data()
        return view

    def gpu_diff(self) -> DeviceArray:
        """The diff on the device, to read."""
        view: DeviceArray = self._diff.gpu_data()
        return view

    def mutable_gpu_diff(self) -> DeviceArray:
        """The diff on the device, to write; the host side is stale after this call."""
        view: DeviceArray = self._diff.mutable_gpu_data()
        return view

    def data_at(self, *indices: Any) -> ScalarT:
        """One element of the data, read on the host; the host side is brought up to date.

        Parameters
        ----------
        *indices
            As for `offset`, but each has to be inside its axis.

        Raises
        ------
        InvalidIndexError, InvalidShapeError, InvalidArgumentError
            As for `offset`; also if the blob has no such element.
        AllocationError, DeviceError
            As for `SyncedMemory.cpu_data`.
        """
        return self._at(self._data, indices)

    def diff_at(self, *indices: Any) -> ScalarT:
        """One element of the diff; see `data_at`."""
        return self._at(self._diff, indices)

    def _at(self, elements: Elements, indices: tuple[Any, ...]) -> ScalarT:
        position = self._position(indices)
        element: ScalarT = elements.flat(elements.memory.cpu_data())[position]
        return element

    # --- pycaffe's attributes

    @property
    def data(self) -> NDArray[ScalarT]:
        """The data on the host as a NumPy array, as in pycaffe.

        Reading it leaves the device side fresh.  Assigning makes it stale, as in ``blob.data[...] = 1``, ``blob.data -=
        step`` or ``blob.data = values``.  For everything else the array is read-only.

        Read ``blob.data`` again each time; do not keep the array.  An array that you kept shows what was on the host
        when you took it.  A write through it is refused (`InvalidPointerError`) if the device has newer numbers, or the
        blob has another memory.

        Raises
        ------
        InvalidValueError
            If an element cannot hold one of the assigned numbers, such as 2**40 or NaN for ``int32``.
        InvalidArgumentError, InvalidShapeError
            If the assigned values are no numbers, or do not fit.  After any of these errors nothing has changed.
        """
        return live(self._data, ref(self))

    @data.setter
    def data(self, values: Numbers) -> None:
        assign(self._data, values)

    @property
    def diff(self) -> NDArray[ScalarT]:
        """The diff on the host as a NumPy array; see `data`."""
        return live(self._diff, ref(self))

    @diff.setter
    def diff(self, values: Numbers) -> None:
        assign(self._diff, values)

    # --- operators and protocols; all of them show the data

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """What NumPy computes with the data on the host: ``blob + 1``, ``blob == other`` and ``np.sqrt(blob)``.

        Raises
        ------
        InvalidArgumentError
            If the result has to go into a blob, as in ``blob += 1``; or if NumPy cannot compute with the types.
            After this error, and after one that NumPy raises itself, no head has moved.
        """
        targets: tuple[object, ...] = options.get("out") or ()
        if any(isinstance(target, Blob) for target in targets):
            raise InvalidArgumentError("out", self, "blob.data or blob.diff, as in blob.data += 1: a blob has both")
        if any(is_foreign(operand) and not isinstance(operand, Blob) for operand in (*inputs, *targets)):
            return NotImplemented
        operation = getattr(function, method)
        operands = [(operand, isinstance(operand, Blob)) for operand in inputs]
        try:
            if any(is_blob and operand.data_memory.head not in _FRESH_ON_HOST for operand, is_blob in operands):
                stand_ins: list[Any] = [_stand_in(operand) if is_blob else operand for operand, is_blob in operands]
                of_elements = is_of_elements(function, method, stand_ins, options)
                (rehearse_of_elements if of_elements else rehearse_in_full)(operation, stand_ins, options)
            return operation(*[operand.cpu_data() if is_blob else operand for operand, is_blob in operands], **options)
        except SyncedMemoryError:
            raise
        except (TypeError, OverflowError) as error:
            expected = f"numbers that NumPy can use in {function}"
            raise InvalidArgumentError("operand", inputs[-1], expected) from error

    def __hash__(self) -> int:
        """By identity, although ``==`` compares elements: a blob can be a key."""
        return object.__hash__(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # This raises what the last line would raise, but before a head moves.
        np.array(dlpack.nothing(self.dtype), dtype, copy=copy)
        return np.array(self.cpu_data(), dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host.  A consumer that wants the device side asks for it, or takes ``gpu_data()``."""
        return dlpack.HOST

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        """A capsule over the data: of the host side, unless another device is asked for.

        The capsule is read-only, so the consumer has to support versions (``max_version=(1, 0)``).  To other consumers
        you can give ``mutable_cpu_data()``.

        Parameters
        ----------
        dl_device : tuple of int, optional
            As in the array API standard: the blob's own device, or the host.
        **options
            ``stream``, ``max_version`` and ``copy``, for NumPy or the library of the device.

        Raises
        ------
        InvalidArgumentError
            If `dl_device` is no pair of integers.
        BufferError
            If the data is not on that device, or cannot be exported in that way; no head has moved.
        ClosedMemoryError
            If this blob is closed.
        """
        self._check_open("__dlpack__")
        there = dlpack.HOST if dl_device is None else dl_device
        return dlpack.capsule(self.dtype, self._device, there, options, (self.cpu_data, self.gpu_data))

    # --- adoption and sharing

    def set_cpu_data(self, data: HostMemory) -> None:
        """Use somebody else's host memory as the data (blob.cpp:90).

        If the data's memory has exactly the blob's size, it adopts the buffer, and everybody who shares the memory sees
        the buffer.  Otherwise data and diff get new memories first: the diff is lost and sharing ends, as in Caffe.
        The capacity is then that of the new memories, unlike in Caffe.

        Parameters
        ----------
        data : buffer
            As for `SyncedMemory.set_cpu_data`, with at least `count` elements.  If it has an element type, that is the
            blob's, or one of a single byte.  If it has `count` elements in several axes, these are the blob's.

        Raises
        ------
        BufferMismatchError
            If the buffer cannot be adopted; or if it lies in memory that this call would free, which is the blob's own
            data or diff (shared or not) or the memory of `gpu_shape`.  Nothing has changed.
        NoDeviceError, ReleaseError
            As for `SyncedMemory.set_cpu_data`; nothing has changed.
        """
        self._adopt("set_cpu_data", caffe.SET_CPU_DATA.name, data)

    def set_gpu_data(self, data: DeviceMemory) -> None:
        """Use somebody else's device memory as the data (blob.cpp:108); see `set_cpu_data`."""
        self._adopt("set_gpu_data", caffe.SET_GPU_DATA.name, data)

    def set_cpu_diff(self, diff: HostMemory) -> None:
        """Use somebody else's host memory as the diff; in Caffe one does this through ``diff()``.

        The data is not changed.  If the diff's memory does not have exactly the blob's size, only that memory is
        replaced.

        Raises
        ------
        BufferMismatchError, NoDeviceError, ReleaseError
            As for `set_cpu_data`.
        """
        self._adopt("set_cpu_diff", caffe.SET_CPU_DATA.name, diff)

    def set_gpu_diff(self, diff: DeviceMemory) -> None:
        """Use somebody else's device memory as the diff; see `set_cpu_diff`."""
        self._adopt("set_gpu_diff", caffe.SET_GPU_DATA.name, diff)

    def _adopt(self, name: str, call: str, buffer: Any) -> None:
        """Make a buffer one side of the data, or of the diff; the name of the call says which."""
        self._check_open(name)
        of_diff = name.endswith("diff")
        mine, other = (self._diff, self._data) if of_diff else (self._data, self._diff)
        if mine.memory.size == mine.nbytes:
            if self._extents:
                adopter = self._fresh(mine.shape, self.dtype)
                adopter.adopt(name, call, buffer)  # a trial: a later refusal must not change memory that others share
                _check_kept(name, buffer, self._extents, {"it": adopter})
            _check_kept(name, buffer, (mine,), {"the other part": other}, _FREED[call])
            adopter = mine.reshaped(mine.shape)  # new elements, which have stored no view of the old buffer
            adopter.adopt(name, call, buffer)
        else:
            adopter = self._fresh(mine.shape, self.dtype)
            adopter.adopt(name, call, buffer)  # nobody else has this memory yet, so the call can still be refused
            given_up = (*((mine,) if of_diff else (mine, other)), *self._extents)
            other = other if of_diff else self._fresh(other.shape, self.dtype)
            _check_kept(name, buffer, given_up, {"it": adopter, "the data": other})
        self._data, self._diff = (other, adopter) if of_diff else (adopter, other)

    @property
    def _extents(self) -> tuple[Elements, ...]:
        """The memory of the shape, if there is one, as elements; another number of axes would free it."""
        memory = self._shape_memory
        return () if memory is None else (Elements(memory, _EXTENT, (memory.size // _EXTENT.itemsize,)),)

    def share_data(self, other: Blob[ScalarT]) -> None:
        """Use the data of another blob as this one's: the same memory, not a copy (blob.cpp:156).

        Raises
        ------
        InvalidShapeError
            If the counts differ; nothing has changed.
        InvalidArgumentError
            If `other` is no blob, or of another type or device; nothing has changed.
        BufferMismatchError
            If the other's data, or this blob's diff, lies in memory that this call would free: this blob's own data, or
            the memory of its `gpu_shape`.  Nothing has changed.
        """
        self._data = self._shared("share_data", self._data, other, "_data", self._diff)

    def share_diff(self, other: Blob[ScalarT]) -> None:
        """Use the diff of another blob as this one's (blob.cpp:162); see `share_data`."""
        self._diff = self._shared("share_diff", self._diff, other, "_diff", self._data)

    def _shared(self, name: str, mine: Elements, other: Blob[Any], part: str, kept: Elements) -> Elements:
        """The data or diff of another blob, in this one's shape, in place of this one's own."""
        self._check_open(name)
        self._check_same_type("other", other)
        other._check_open(name)  # the memory of a closed blob would close this one
        if other.count != self.count:
            raise InvalidShapeError(other.shape, f"a blob of {self.count} elements cannot share {other.count}")
        if other.device is not self._device:
            here, there = (where_of(blob.device) if blob.device else "the host alone" for blob in (self, other))
            another = "another " if here == there else ""
            raise InvalidArgumentError("other", other, f"a blob on {here}, as this one is, and not on {another}{there}")
        theirs: Elements = getattr(other, part)
        if theirs.memory is not mine.memory:
            given_up = (mine, *self._extents)
            _check_kept(name, other, given_up, {"its memory": theirs, "the other part": kept})
        theirs.share()
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

        As in Caffe, the mode decides where: on the device in GPU mode, on the host in CPU mode.  Without a device it
        copies on the host.

        Parameters
        ----------
        source : Blob
        copy_diff : bool
            Copy the diff instead of the data.
        reshape : bool
            If the shapes differ, take the shape of `source`.

        Raises
        ------
        InvalidShapeError
            If the shapes differ and `reshape` is false, or `source` has no shape; nothing has changed.
        InvalidArgumentError
            If `source` is no blob, or of another type, or a flag is no ``bool``; nothing has changed.
        AllocationError, DeviceError
            The blob has its old shape and memories; sides of both blobs may have been brought up to date.
        """
        self._check_same_type("source", source)
        copy_diff, reshape = as_flag(copy_diff, "copy_diff"), as_flag(reshape, "reshape")
        self._check_open("copy_from")
        source._check_open("copy_from")
        if source._shape == self._shape:
            fitted = self._data, self._diff
        elif not reshape:
            reason = f"this blob has the shape {self.shape_string}, and reshape is false"
            raise InvalidShapeError(source.shape, reason)
        elif source._shape is None:
            raise InvalidShapeError((), "the source was never given a shape, so there is nothing to copy")
        else:
            fitted = self._fitted(source._shape)
        part = source._diff if copy_diff else source._data
        arithmetic.copy(part, fitted[copy_diff])
        if source._shape is not None:
            self._take(source._shape, fitted)

    def update(self) -> None:
        """Subtract the diff from the data, on the side where the data is fresh (blob.cpp:174-197).

        Raises
        ------
        IllegalCallError
            If nothing was ever written to the data.
        NoArithmeticError
            If the elements are integers (Caffe's NOT_IMPLEMENTED), or of a type that the device has no arithmetic for.
        InvalidPointerError
            If data and diff are adopted buffers that overlap, on either side, or one buffer for both.
        AllocationError, DeviceError
            The elements are unchanged; a side of the diff may have been brought up to date.
        """
        arithmetic.subtract("update", self._diff, self._data)

    def asum_data(self) -> float:
        """The sum of the magnitudes of the data: its L1 norm.  It is 0 if nothing was ever written."""
        return arithmetic.total("asum_data", "asum", self._data)

    def asum_diff(self) -> float:
        """The sum of the magnitudes of the diff.  It is 0 if nothing was ever written."""
        return arithmetic.total("asum_diff", "asum", self._diff)

    def sumsq_data(self) -> float:
        """The sum of the squares of the data: the square of its L2 norm (blob.cpp:280-341)."""
        return arithmetic.total("sumsq_data", "sumsq", self._data)

    def sumsq_diff(self) -> float:
        """The sum of the squares of the diff: the square of its L2 norm."""
        return arithmetic.total("sumsq_diff", "sumsq", self._diff)

    def scale_data(self, factor: SupportsFloat) -> None:
        """Multiply the data by `factor`, on the side where it is fresh; does nothing if it was never written."""
        arithmetic.scale("scale_data", factor, self._data)

    def scale_diff(self, factor: SupportsFloat) -> None:
        """Multiply the diff by `factor`, on the side where it is fresh."""
        arithmetic.scale("scale_diff", factor, self._diff)

    # --- messages and files (blob.cpp:410-554): a call checks and allocates everything before it overwrites an element

    def to_proto(self, write_diff: bool = False, proto: Any = None) -> Any:
        """The blob as a ``BlobProto``; the host side is brought up to date (blob.cpp:517).

        Parameters
        ----------
        write_diff : bool
            Write the diff too.
        proto : BlobProto or None
            The message to write to; all its fields that describe a blob are cleared first.  None makes a new message.

        Raises
        ------
        InvalidShapeError
            If the blob was never given a shape; a message cannot express that.
        InvalidArgumentError
            If the type of the elements is not float32 or float64.
        MissingPackageError
            If the protobuf package is not installed.
        """
        write_diff = as_flag(write_diff, "write_diff")
        if self._shape is None:
            raise InvalidShapeError((), "this blob was never given a shape, and a message cannot express that")
        if self.dtype not in VALUE_TYPES:
            raise InvalidArgumentError("dtype", self.dtype, "float32 or float64 for a blob in a message")
        message = message_to_write(proto)
        check_blob(self.shape, *self._stand_ins(write_diff))  # a blob that is too long is refused before a head moves
        return write_proto(self.shape, self.cpu_data(), self.cpu_diff() if write_diff else None, message)

    def _stand_ins(self, write_diff: bool) -> tuple[Any, Any]:
        """An array like the data, and one like the diff if it is wanted."""
        stand_in = _stand_in(self)
        return stand_in, stand_in if write_diff else None

    def from_proto(self, proto: Any, reshape: bool = True) -> None:
        """Take shape, data and, if there is one, diff from a ``BlobProto`` or its bytes (blob.cpp:466).

        Numbers are converted to the blob's type; for integers, fractions are cut off, as C does it.  A message without
        a diff leaves the diff unchanged.

        Parameters
        ----------
        proto : BlobProto, or its bytes
        reshape : bool
            Take the shape of the message; otherwise it has to be the blob's.

        Raises
        ------
        InvalidShapeError
            If the message has another shape, and `reshape` is false.
        FileFormatError, InvalidArgumentError
            If it is no message of a blob; see `syncedmem.runtime.read_proto`.
        InvalidValueError
            If an element cannot hold one of the numbers.
        AllocationError, DeviceError
            After any of these errors, shape and elements are unchanged.
        """
        reshape = as_flag(reshape, "reshape")
        contents = read_proto(proto)
        if not reshape and (self._shape is None or not shape_equals(self._shape, proto)):
            reason = f"this blob has the shape {self.shape_string}, and reshape is false"
            raise InvalidShapeError(contents.shape, reason)
        self._fill(contents if reshape else contents._replace(shape=self.shape), cut=True)

    def shape_equals(self, proto: Any) -> bool:
        """Whether the blob has the shape of a ``BlobProto`` or of its bytes (blob.cpp:410).

        If the message has any of the four old fields, these four are compared, from the last axis backwards.
        """
        return shape_equals(self.shape, proto)

    def _fill(self, contents: BlobContents, *, cut: bool = False) -> None:
        """Take over contents that were read, on the host."""
        self._check_open("from_proto")
        data, diff = (None if content is None else checked(content, self.dtype, cut=cut) for content in contents[1:])
        fitted = self._fitted(contents.shape)
        pairs = [(part, values) for part, values in zip(fitted, (data, diff), strict=True) if values is not None]
        for elements, _ in pairs:
            elements.mutable_cpu_data()  # this can fail, so it comes before any element is overwritten
        for elements, values in pairs:
            fill(elements.mutable_cpu_data(), values.reshape(contents.shape))
        self._take(contents.shape, fitted)

    def save(self, path: StoredPath, write_diff: bool = False) -> None:
        """Write to a file; the end of its name says of which kind: ``.npy``, ``.npz`` or ``.binaryproto``.

        A new file takes the place of the old one.  So hard links to the old file keep the old contents.

        Raises
        ------
        FileAccessError, FileFormatError, InvalidArgumentError
            As for `syncedmem.save_npy`, `save_npz` and `save_binaryproto`; also if the file cannot hold a diff, or the
            name ends in no known kind.
        InvalidShapeError
            If the blob was never given a shape.
        AllocationError, DeviceError
            As for `cpu_data`.  After any of these errors the old file is still there.  A blob or a path that cannot be
            written is refused before any head moves.
        """
        kind, write_diff = file_kind(path), as_flag(write_diff, "write_diff")
        if self._shape is None:
            raise InvalidShapeError((), "this blob was never given a shape, and a file cannot express that")
        kind.check(path, *self._stand_ins(write_diff))
        write_whole(path, lambda file: kind.write(file, self.cpu_data(), self.cpu_diff() if write_diff else None))

    @classmethod
    def load(  # noqa: PLR0913 -- the arguments of the class
        cls,
        path: StoredPath,
        *,
        dtype: Any = None,
        host: DeviceAllocator | None = None,
        pinned: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = AUTOMATIC,
        checked: Checked | None = None,
    ) -> Blob[Any]:
        """A blob from a ``.npy``, ``.npz`` or ``.binaryproto`` file.

        Parameters
        ----------
        path : str or os.PathLike
        dtype : numpy.dtype or type, optional
            The type to which elements are converted; None keeps the type of the file.
        host, pinned, device, checked
            As for the class.

        Raises
        ------
        FileAccessError, FileFormatError, InvalidArgumentError
            As for `syncedmem.load_npy`, `load_npz` and `load_binaryproto`; also if the name ends in no known kind.
        InvalidValueError
            If elements of `dtype` cannot hold one of the numbers.
        """
        contents = file_kind(path).load(path)
        return cls.from_contents(contents, dtype=dtype, host=host, pinned=pinned, device=device, checked=checked)

    @classmethod
    def from_contents(  # noqa: PLR0913 -- the arguments of the class
        cls,
        contents: BlobContents,
        *,
        dtype: Any = None,
        host: DeviceAllocator | None = None,
        pinned: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = AUTOMATIC,
        checked: Checked | None = None,
    ) -> Blob[Any]:
        """A blob from contents that were read from a file, for example by `syncedmem.load_caffemodel`; see `load`.

        Raises
        ------
        InvalidArgumentError, InvalidShapeError, FileFormatError
            If these are no contents of a blob, or their parts do not fit each other; otherwise as for `load`.
        """
        check_contents(contents)
        blob: Any = cls._made(contents.data.dtype if dtype is None else dtype, host, pinned, device, checked)
        blob._fill(contents)  # noqa: SLF001 -- the blob is of this class
        return blob  # type: ignore[no-any-return]

    # --- arrays of other libraries

    @overload
    @classmethod
    def from_array(
        cls, array: NDArray[ElementT], *, dtype: None = None, copy: bool | None = None, **on: Unpack[Where]
    ) -> Blob[ElementT]: ...
    @overload
    @classmethod
    def from_array(
        cls, array: Any, *, dtype: ElementType[ElementT], copy: bool | None = None, **on: Unpack[Where]
    ) -> Blob[ElementT]: ...
    @overload
    @classmethod
    def from_array(
        cls, array: Any, *, dtype: DTypeLike | None = None, copy: bool | None = None, **on: Unpack[Where]
    ) -> Blob[Any]: ...
    @classmethod
    def from_array(  # noqa: PLR0913 -- the arguments of the class, and two more
        cls,
        array: Any,
        *,
        dtype: Any = None,
        copy: bool | None = None,
        host: DeviceAllocator | None = None,
        pinned: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = AUTOMATIC,
        checked: Checked | None = None,
    ) -> Blob[Any]:
        """A blob whose data is somebody else's array: of NumPy, CuPy, PyTorch, JAX or PyOpenCL, or a list.

        An array on the blob's own device becomes the device side.  An array that the processor can read becomes the
        host side.  It is adopted without a copy if it is contiguous, aligned and writeable, and has an element type of
        blobs.

        Parameters
        ----------
        array : array
        dtype : numpy.dtype or type, optional
            The type of the elements; None keeps the array's own type.
        copy : bool, optional
            True: always copy.  False: never copy.  None: copy only if the array cannot be adopted.
        host, pinned, device, checked
            As for the class.

        Raises
        ------
        BufferMismatchError
            With the reason, if the array cannot be used at all (it is on another device, or no array of numbers), or
            not without a copy although `copy` is False.
        InvalidArgumentError
            If no blob has elements of its type, and `dtype` does not say to which type to convert them.
        InvalidValueError
            If an element of `dtype` cannot hold one of the numbers.
        AllocationError, DeviceError
            If there is no room, or a copy fails.
        """
        if copy is not None and not isinstance(copy, bool | np.bool_):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("copy", copy, "True, False or None")
        allocator = resolve_device(device)
        theirs = ForeignArray(array, allocator)
        kind = theirs.element_type() if dtype is None else dtype
        blob: Blob[Any] = cls._made(kind, host, pinned, allocator, checked).reshape(theirs.shape)
        if not copy:
            try:
                theirs.check_adoptable(blob.dtype)
                (blob.set_gpu_data if theirs.on_device else blob.set_cpu_data)(theirs.view)
            except BufferMismatchError as error:
                if copy is not None:
                    raise BufferMismatchError("from_array", array, f"{error.reason}; it would need a copy") from error
            else:
                return blob
        theirs.copied_to(blob._data, blob._memory)
        return blob

    # --- copies, pickles, and how a blob of a derived class is made

    @classmethod
    def _made(cls, dtype: Any, host: Any, pinned: Any, device: Any, checked: Any) -> Self:
        """A blob without a shape, made by the ``__init__`` of this class, which may be a derived one."""
        make: Any = cls
        # A derived class does not need parameters `pinned` and `checked` if nobody passes one.
        given = {name: value for name, value in (("pinned", pinned), ("checked", checked)) if value is not None}
        blob: Self = make(dtype=dtype, host=host, device=device, **given)
        return blob

    @classmethod
    def _bare(cls, dtype: Any, **where: Any) -> Self:
        """A blob without a shape, without a call of a derived ``__init__``, which may need other arguments."""
        blob: Any = object.__new__(cls)
        Blob.__init__(blob, dtype=dtype, **where)  # pyright: ignore[reportUnknownMemberType] -- blob is Any
        return blob  # type: ignore[no-any-return]

    def _added(self) -> dict[str, Any]:
        """The attributes that a derived class has added, by name."""
        state: Any = object.__getstate__(self)
        attributes: dict[str, Any] | None
        slots: dict[str, Any]
        attributes, slots = state
        return (attributes or {}) | {name: value for name, value in slots.items() if name not in _OWN}

    def _memory(self, size: int) -> SyncedMemory:
        return memory_over(size, (self._host, self._pinned, self._device), self._checked)

    def _like(self, shape: Shape | None, data: Elements, diff: Elements) -> Self:
        """Another blob on the same allocators, with these elements."""
        where = {"host": self._host, "pinned": self._pinned, "device": self._device, "checked": self._checked}
        blob = self._bare(self.dtype, **where)
        blob._shape, blob._data, blob._diff = shape, data, diff  # noqa: SLF001 -- the blob is of this class
        return blob

    def __copy__(self) -> Self:
        """A blob that shares both memories, as `share_data` and `share_diff` do."""
        blob = self._like(self._shape, *(part.reshaped(part.shape) for part in (self._data, self._diff)))
        for elements in (self._data, self._diff):
            elements.share()
        for name, value in self._added().items():
            setattr(blob, name, value)
        return blob

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A blob with memories of its own; the elements are copied on the side where they are fresh.

        If blobs that share a memory are copied together, their copies share its copy.
        """
        blob = self._like(self._shape, *(self._copied(part, memo) for part in (self._data, self._diff)))
        memo[id(self)] = blob  # before its attributes are copied, because one of them may be the blob itself
        for name, value in self._added().items():
            setattr(blob, name, deepcopy(value, memo))
        return blob

    def _copied(self, elements: Elements, memo: dict[Any, Any]) -> Elements:
        memory = elements.memory
        key = Blob, id(memory)  # not the id alone: with it the memory itself could be copied, which it refuses
        if key not in memo:
            copied = Elements(self._memory(memory.size), _BYTES, (memory.size,))
            arithmetic.copy_on_fresh_side(Elements(memory, _BYTES, (memory.size,)), copied)
            memo[key] = copied.memory
        return Elements(memo[key], elements.dtype, elements.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the elements on the host.  Sharing is lost, and so are bytes beyond the present shape."""
        fresh = [
            None if part.memory.head is SyncedHead.UNINITIALIZED else part.cpu_data()
            for part in (self._data, self._diff)
        ]
        arguments = type(self), self._shape, self.dtype, self._device is not None, *fresh
        return _unpickled, arguments, (None, self._added())  # the form in which pickle stores the state of slots


_OWN = frozenset(Blob.__slots__)


def _stand_in(blob: Blob[Any]) -> NDArray[Any]:
    """An array that looks like the data of a blob, but stores one element; no head moves."""
    shape = blob.shape if blob.shape or blob.count else _NOTHING
    check_viewable(shape, blob.dtype)
    return np.broadcast_to(np.zeros((), blob.dtype), shape)


def _checked(arguments: tuple[Any, ...], dtype: np.dtype[Any]) -> Shape:
    """The shape that the arguments of a call give, as one sequence or as numbers; checked for elements of a type."""
    given: Any = arguments[0] if len(arguments) == 1 else arguments
    usual = bool(type(given) is tuple and given is not arguments)
    if usual:
        return shapes.check_shape(given, dtype.itemsize)  # the usual way to say it
    if not arguments or (given is arguments and not all(map(shapes.is_integer, arguments))):
        raise InvalidArgumentError("shape", arguments, shapes.FORMS)
    return shapes.check_shape(arguments if shapes.is_integer(given) else given, dtype.itemsize)


def _check_kept(
    name: str, argument: object, given_up: tuple[Elements, ...], kept: dict[str, Elements], own: int = OWNED
) -> None:
    """Refuse a call that would free memory in which elements lie that the blob goes on using.

    This does not depend on who else shares that memory: the others may drop it at any time.
    """
    for what, elements in kept.items():
        if any(old.owns_bytes_of(elements, own) for old in given_up):
            raise BufferMismatchError(name, argument, f"{what} lies in this blob's own memory, which would be freed")


def _unpickled(  # noqa: PLR0913 -- the parts of a blob
    kind: type[Blob[Any]], shape: Shape | None, dtype: Any, on_device: bool, data: Any, diff: Any
) -> Blob[Any]:
    """A blob from its pickled parts.  If it was on a device, it goes to the default device of this process."""
    kept: Any = kind
    blob: Blob[Any] = kept._bare(dtype, device=AUTOMATIC if on_device else None)  # noqa: SLF001 -- a blob of this class
    if shape is not None:
        blob.reshape(shape)
    if data is not None:
        blob.mutable_cpu_data()[...] = data
    if diff is not None:
        blob.mutable_cpu_diff()[...] = diff
    return blob


def _said(memory: SyncedMemory) -> str:
    """The repr of a memory without its class and its brackets."""
    return f"[{repr(memory).removeprefix('<SyncedMemory ').removesuffix('>')}]"
