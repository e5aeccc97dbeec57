"""`SimulatedArray`: the arrays of the simulated device."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from syncedmem.model import InvalidArgumentError, InvalidPointerError, InvalidShapeError, NotCopyableError

from ...allocators.pointers import as_integer, is_masked, no_room
from .indexing import check_slice, picked
from .operators import NOT_BOTH, OPERATORS, Outcome, compute, number, number_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...allocators.pointers import HostArray
    from .block import Block
    from .simulation import DeviceSpace, SimulatedStream

__all__ = ["BYTES", "SimulatedArray"]

BYTES = np.dtype(np.uint8)
"""The type of the elements of arrays that allocators return."""

_NUMBERS = "biufc"
"""The kinds of types that arrays of other devices have too: booleans, integers, floating and complex numbers."""

_NUMBERS_OF_OTHERS = ("bfloat16",)
"""Types of other packages, which NumPy takes for plain bytes."""

_BOOL = np.dtype(np.bool_)


class Flags(NamedTuple):
    """How the items of an array lie in memory.

    Attributes
    ----------
    c_contiguous : bool
        Without gaps, the last axis fastest.
    f_contiguous : bool
        Without gaps, the first axis fastest.
    """

    c_contiguous: bool
    f_contiguous: bool


class SimulatedArray(NDArrayOperatorsMixin):
    """Memory of a simulated device: items without gaps, which the host reaches only by `get` and `set`.

    Allocators return rows of bytes, ``uint8``.  `view` gives the bytes another type, and `reshape` another shape.  An
    array can what ``cupy.ndarray`` and ``pyopencl.array.Array`` both can, so a program that works here works on their
    devices; what only one of them can is refused.  Like ``cupy.ndarray``, an array refuses to become a NumPy array by
    accident.

    ``+ - * / **``, ``& | ^ ~``, ``abs()`` and comparisons work item by item, with a number or an array of this device,
    also in place; types are those of NumPy.  The result is a new array on the device, and the work is queued on the
    current stream.  ``x[1]``, ``x[1:3]``, ``x[0, 1]`` and ``x.T`` are views, and can be assigned to.

    Because ``==`` compares items, arrays have no hash, and only an array of one item has a truth value.  To ask whether
    two names are the same array, use ``is``; to ask whether two arrays show the same bytes, use `shares`.

    An array does not keep its memory alive.  After the memory is freed, `get` and `set` raise `SimulatedDeviceError`.
    Arrays of real devices would show old bytes.
    """

    __slots__ = ("__weakref__", "_block", "_dtype", "_nbytes", "_offset", "_read_only", "_shape", "_space", "_strides")

    def __init__(  # noqa: PLR0913 -- where the bytes are, and which array they form
        self,
        space: DeviceSpace,
        block: Block,
        offset: int,
        nbytes: int,
        dtype: np.dtype[Any] = BYTES,
        read_only: bool = False,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self._space = space
        self._block = block
        self._offset = offset
        self._nbytes = nbytes
        self._dtype = dtype
        self._read_only = read_only
        self._shape = (nbytes // dtype.itemsize,) if shape is None else shape
        self._strides = strides  # None: the last axis is fastest

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the items."""
        return self._dtype

    @property
    def size(self) -> int:
        """The number of items."""
        return self._nbytes // self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self._nbytes

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of items along each axis."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """How many bytes lie from one item to the next, along each axis."""
        return _row_major(self._shape, self._dtype.itemsize) if self._strides is None else self._strides

    @property
    def flags(self) -> Flags:
        """Whether the last axis is fastest, and whether the first one is; both if only one axis has several items."""
        backwards = _is_row_major(self._shape[::-1], self.strides[::-1], self._dtype.itemsize)
        return Flags(self._strides is None, backwards)

    @property
    def ptr(self) -> int:
        """The simulated address of the first byte; nothing is mapped there."""
        return self._block.address + self._offset

    @property
    def ordinal(self) -> int:
        """The number of the device that has the bytes."""
        return self._space.ordinal

    @property
    def read_only(self) -> bool:
        """Whether `set` is refused."""
        return self._read_only

    def get(self) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy of the items on the host, made after all work on the current stream.

        Returns
        -------
        numpy.ndarray
            With the shape and the type of this array.

        Raises
        ------
        SimulatedDeviceError
            If the memory was freed, or the array goes beyond its block.
        """
        with self._space.entered():
            self._space.current_stream.synchronize()
            return self.items().copy()

    def set(self, data: Any, stream: SimulatedStream | None = None) -> None:
        """Copy items from the host into this array, at once or on a stream.

        Parameters
        ----------
        data : numpy.ndarray
            C-contiguous, with the shape and the type of this array: ``array.view(np.float32).set(floats)``.
        stream : SimulatedStream or None
            None: after all work on the current stream, and finished on return.  A stream: queued there, also after
            what the current stream has now.

        Raises
        ------
        InvalidArgumentError
            If `data` is anything else, or `stream` is not a stream of this device.
        InvalidPointerError
            If this view is read-only.
        """
        self._check_writeable()
        source = self._source(data)
        if stream is not None:
            self._space.check_stream(stream)
        with self._space.entered():
            self._space.now(stream, lambda: np.copyto(self.raw(self._nbytes), source))

    def _check_writeable(self) -> None:
        if self._read_only:
            reason = "this view is read-only; mutable_gpu_data() gives a writeable one"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, reason)

    def _source(self, data: object) -> HostArray:
        """The bytes of the argument of `set`, after a check.

        CuPy refuses another type or shape, PyOpenCL an array that is not contiguous, and both an object that is no
        array.
        """
        expected = f"a C-contiguous numpy.ndarray of shape {self.shape} and type {self._dtype}, without a mask"
        if self._strides is not None:
            reason = "set() cannot write to a transposed array; call it on the array that was transposed"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, reason)
        if not isinstance(data, np.ndarray):
            raise InvalidArgumentError("data", data, expected)
        array = cast("np.ndarray[Any, np.dtype[Any]]", data)
        if is_masked(array) or (array.dtype, array.shape) != (self._dtype, self.shape) or not array.flags.c_contiguous:
            raise InvalidArgumentError("data", array, expected)
        return np.asarray(array).reshape(-1).view(np.uint8)

    def view(self, dtype: Any = None) -> Self:
        """A new array object over the same bytes.

        Parameters
        ----------
        dtype : type of numbers, or None
            The new type of the items; None keeps the type.

        Raises
        ------
        InvalidArgumentError
            If `dtype` is no type of numbers, or the bytes are not a whole number of its items, or the array has several
            axes and the length of an item would change.
        """
        kind = self._dtype if dtype is None else self._kind(dtype)
        if kind.itemsize != self._dtype.itemsize:
            return self._over(self._offset, self._nbytes, kind, None)
        return self._over(self._offset, self._nbytes, kind, self._shape, self._strides)

    def reshape(self, *shape: Any) -> Self:
        """A new array object over the same items, in another shape.

        Parameters
        ----------
        *shape : int or sequence of int
            The number of items along each axis.  One of them may be -1, and is then computed.

        Raises
        ------
        InvalidArgumentError
            If these are no integers.
        InvalidShapeError
            If the new shape has more or fewer items; or if the array is transposed, because it would have to be copied.
        """
        given: Any = shape[0] if len(shape) == 1 and hasattr(shape[0], "__iter__") else shape
        extents = [as_integer(extent, "shape", "integers, or a sequence of them") for extent in given]
        if extents.count(-1) == 1:
            known = -prod(extents)
            extents[extents.index(-1)] = self.size // known if known else 0
        if min(extents, default=0) < 0 or prod(extents) != self.size:
            raise InvalidShapeError(tuple(given), f"there are {self.size} items")
        if self._strides is not None:
            raise InvalidShapeError(tuple(given), "the array is transposed; reshape a copy() of it")
        return self._over(self._offset, self._nbytes, self._dtype, tuple(extents))

    def ravel(self) -> Self:
        """A new array object over the same items, in a row; errors as for `reshape`."""
        return self.reshape(-1)

    def squeeze(self) -> Self:
        """A new array object over the same items, without axes of length one; errors as for `reshape`."""
        return self.reshape([extent for extent in self._shape if extent != 1])

    @property
    def T(self) -> Self:  # noqa: N802 -- the name that all arrays have
        """A new array object over the same items, with the axes in the opposite order."""
        shape, strides = self._shape[::-1], self.strides[::-1]
        ordered = _is_row_major(shape, strides, self._dtype.itemsize)
        return self._over(self._offset, self._nbytes, self._dtype, shape, None if ordered else strides)

    def transpose(self) -> Self:
        """The same as `T`."""
        return self.T

    def _over(
        self,
        offset: int,
        nbytes: int,
        dtype: np.dtype[Any],
        shape: tuple[int, ...] | None,
        strides: tuple[int, ...] | None = None,
    ) -> Self:
        """Another array object over all or some of these bytes."""
        return type(self)(self._space, self._block, offset, nbytes, dtype, self._read_only, shape, strides)

    def _kind(self, dtype: Any) -> np.dtype[Any]:
        """The type that the argument of `view` names, after a check."""
        expected = f"a type of numbers, of which {self._nbytes} bytes are a whole number"
        kind = _number_type(dtype, expected)
        row = self.ndim == 1 or kind.itemsize == self._dtype.itemsize
        if self._nbytes % kind.itemsize or not row:
            raise InvalidArgumentError("dtype", dtype, expected)
        return kind

    def viewer(self) -> Callable[[], Self]:
        """A function that does what `view` does without a type, and is quick to call."""
        # Arguments are passed by position, because names take longer.
        where = self._space, self._block, self._offset, self._nbytes
        return partial(type(self), *where, self._dtype, self._read_only, self._shape, self._strides)

    def as_read_only(self) -> Self:
        """A new array object over the same bytes, through which nothing can be written."""
        where = self._space, self._block, self._offset, self._nbytes
        return type(self)(*where, self._dtype, True, self._shape, self._strides)

    def raw(self, nbytes: int) -> HostArray:
        """The first bytes, as host memory; for the device, not for its users."""
        return self._block.bytes(self._offset, nbytes)

    def items(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The items themselves, as host memory; for the device, not for its users."""
        raw = self.raw(self._nbytes)
        items: np.ndarray[Any, np.dtype[Any]]
        if self._strides is None:
            items = raw.view(self._dtype).reshape(self._shape)
        else:
            items = np.ndarray(self._shape, self._dtype, cast("Any", raw), 0, self._strides)
        items.flags.writeable = not self._read_only
        return items

    def lent(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The items themselves, for queued work; for the device, not for its users."""
        items = self.items()
        self._block.lend(items)
        return items

    def shares(self, other: SimulatedArray) -> bool:
        """Whether two arrays have bytes in common."""
        start, stop = max(self._offset, other._offset), min(self._offset + self.nbytes, other._offset + other.nbytes)
        return self._block is other._block and start < stop

    def unusable(self, written: bool) -> str:
        """Why a copy cannot use this array, or write to it; empty if it can."""
        if self._dtype != BYTES or len(self._shape) != 1:
            return "not a contiguous row of bytes"
        return "read-only" if written and self._read_only else ""

    def belongs_to(self, space: DeviceSpace) -> bool:
        """Whether the bytes are in a memory space."""
        return self._space is space

    # --- work of the device

    def copy(self) -> Self:
        """A new array with the same items, the last axis fastest; the host does not wait.

        Raises
        ------
        SimulatedDeviceError
            If the memory was freed.
        AllocationError
            If there is no room.
        """
        return self._computed(_converted, self._shape, self._dtype, [self])

    def astype(self, dtype: Any) -> Self:
        """A new array with the items converted to another type, as C converts them; the host does not wait.

        Raises
        ------
        InvalidArgumentError
            If `dtype` is no type of numbers, or is real and the items are complex.
        SimulatedDeviceError, AllocationError
            As for `copy`.
        """
        expected = f"a type of numbers to which {self._dtype} can be converted"
        kind = _number_type(dtype, expected)
        if self._dtype.kind == "c" != kind.kind:
            raise InvalidArgumentError("dtype", dtype, expected)
        return self._computed(_converted, self._shape, kind, [self])

    def any(self) -> Self:
        """Whether any item is not zero, as an array without axes; errors as for `copy`."""
        return self._computed(np.any, (), _BOOL, [self])

    def all(self) -> Self:
        """Whether no item is zero, as an array without axes; errors as for `copy`."""
        return self._computed(np.all, (), _BOOL, [self])

    def fill(self, value: Any) -> None:
        """Set all items to a number; the host does not wait.

        Raises
        ------
        InvalidArgumentError
            If `value` is no number that an item can hold.
        InvalidPointerError
            If this view is read-only.
        SimulatedDeviceError
            If the memory was freed.
        """
        self._check_writeable()
        self._write(_converted, [number_as(self._dtype, value)])

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set some items, to a number or to as many items of an array of this device; the host does not wait.

        Raises
        ------
        InvalidIndexError, InvalidArgumentError, InvalidPointerError
            As for ``x[key]`` and `fill`; also if `value` is an array of the host, or of another type.
        InvalidShapeError
            If `value` has another shape.
        """
        target = self[key]
        if not self._is_mine(value):
            target.fill(value)
            return
        target._check_writeable()  # noqa: SLF001 -- another array of this class
        if value.dtype != self._dtype:
            raise InvalidArgumentError("value", value, f"items of type {self._dtype}: astype() converts them")
        if value.shape != target.shape:
            raise InvalidShapeError(value.shape, f"it is assigned to items of shape {target.shape}")
        target._write(_converted, [value])  # noqa: SLF001 -- as above

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Self:
        """The result of an operator, or of NumPy's function for it; the host does not wait.

        It is a new array, or the one that ``out`` names, as for operators in place.

        Raises
        ------
        InvalidArgumentError
            If it is no operator that CuPy and PyOpenCL both have; if an operand is neither a number nor an array of
            this device; or if the type of the result does not fit into that of ``out``.
        InvalidShapeError
            If the shapes do not fit together.
        InvalidPointerError
            If ``out`` is read-only.
        SimulatedDeviceError
            If the memory of an operand was freed.
        AllocationError
            If there is no room for the result.  After any of these errors nothing is queued.
        """
        where = f"simulated:{self.ordinal}"
        (target,) = options.pop("out", (None,))
        if function not in OPERATORS or method != "__call__" or options:
            raise InvalidArgumentError("operation", function, f"an operator of arrays ({NOT_BOTH})")
        expected = f"a number or an array of {where}; the host computes with what get() returns"
        operands = [operand if self._is_mine(operand) else number(function, operand, expected) for operand in inputs]
        if target is None:
            outcome = Outcome(function, operands)
            return self._computed(partial(compute, function), outcome.shape, outcome.dtype, operands)
        if not self._is_mine(target):
            raise InvalidArgumentError("out", target, f"an array of {where}")
        into = cast("Self", target)
        into._check_writeable()  # noqa: SLF001 -- another array of this class
        Outcome(function, operands).check_into(into.shape, into.dtype)
        into._write(partial(compute, function), operands)  # noqa: SLF001 -- as above
        return into

    def _computed(
        self, work: Callable[..., object], shape: tuple[int, ...], dtype: np.dtype[Any], operands: list[Any]
    ) -> Self:
        """A new array, into which work is queued; it is called with the operands' items, and ``out=``."""
        nbytes = prod(shape) * dtype.itemsize
        with self._space.entered():
            items = _items_of(operands)
            try:
                block = self._space.new_block(nbytes)
            except (MemoryError, ValueError) as error:  # ValueError: the size is too large for NumPy
                raise no_room(f"simulated:{self.ordinal}", nbytes, error) from error
            result = type(self)(self._space, block, 0, nbytes, dtype, False, shape)
            self._space.current_stream.put(partial(work, *items, out=result.lent()))
        return result

    def _write(self, work: Callable[..., object], operands: list[Any]) -> None:
        """Queue work that writes into this array; see `_computed`."""
        with self._space.entered():
            self._space.current_stream.put(partial(work, *_items_of(operands), out=self.lent()))

    def _is_mine(self, operand: object) -> bool:
        return isinstance(operand, SimulatedArray) and operand.belongs_to(self._space)

    def __bool__(self) -> bool:
        if self.size != 1:
            reason = "only one item has a truth value; ask the host, as in (x == y).get().all()"
            raise InvalidShapeError(self._shape, reason)
        return bool(self.get())

    # --- as a sequence

    def __len__(self) -> int:
        if not self._shape:
            raise InvalidArgumentError("array", self, "an array with axes, because another one has no length")
        return self._shape[0]

    def __getitem__(self, key: Any) -> Self:
        """A view of some items, also of a single one, which then has no axes.

        Parameters
        ----------
        key : int, slice, Ellipsis, None, or a tuple of these

        Raises
        ------
        InvalidArgumentError
            If it is anything else.
        InvalidIndexError
            If there is no such item, or the array has fewer axes.
        InvalidPointerError
            If the items would not lie next to each other, because no kernel of PyOpenCL could use them.
        """
        if isinstance(key, slice) and self._shape and self._strides is None:  # the usual case
            start, stop = check_slice(key, self._shape[0], self)
            extents = (max(stop - start, 0), *self._shape[1:])
            each = prod(extents[1:]) * self._dtype.itemsize
            return self._over(self._offset + start * each, extents[0] * each, self._dtype, extents)
        offset, shape, strides = picked(key, self)
        nbytes = prod(shape) * self._dtype.itemsize
        return self._over(self._offset + offset, nbytes, self._dtype, shape, strides)

    def __iter__(self) -> Iterator[Self]:
        return (self[position] for position in range(len(self)))

    def __getattr__(self, name: str) -> NoReturn:
        words = f"{type(self).__name__!r} object has no attribute {name!r}"
        if hasattr(np.ndarray, name) and not name.startswith("_"):
            words = f"{words}: {NOT_BOTH}, as in x.get().{name}"
        raise AttributeError(words, name=name, obj=self)

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise InvalidArgumentError("array", self, "host memory, as .get() returns it, and not memory of a device")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise NotCopyableError(type(self).__name__, "copy get() instead")

    def __repr__(self) -> str:
        items = "bytes" if self._dtype == BYTES else self._dtype.name
        kind = ", read-only" if self._read_only else ""
        extents = " x ".join(map(str, self._shape)) or "1"
        return f"<SimulatedArray {extents} {items} at {self.ptr:#x} on device {self.ordinal}{kind}>"


def _row_major(shape: tuple[int, ...], each: int) -> tuple[int, ...]:
    """The strides of an array whose last axis is fastest, with items of `each` bytes."""
    return tuple(each * prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _is_row_major(shape: tuple[int, ...], strides: tuple[int, ...], each: int) -> bool:
    """Whether the last axis is fastest; as in NumPy, the stride of an axis with one item does not matter."""
    axes = zip(shape, strides, _row_major(shape, each), strict=True)
    return 0 in shape or all(extent == 1 or stride == expected for extent, stride, expected in axes)


def _number_type(dtype: Any, expected: str) -> np.dtype[Any]:
    """The type of numbers that an argument names, after a check."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except Exception as error:
        raise InvalidArgumentError("dtype", dtype, expected) from error
    if kind.kind not in _NUMBERS and kind.name not in _NUMBERS_OF_OTHERS:
        raise InvalidArgumentError("dtype", dtype, expected)
    return kind


def _items_of(operands: list[Any]) -> list[Any]:
    """The items of arrays, for queued work, and numbers as they are."""
    return [operand.lent() if isinstance(operand, SimulatedArray) else operand for operand in operands]


def _converted(items: Any, *, out: Any) -> None:
    """Copy items to others, converted as C does it; a device gives no warnings."""
    with np.errstate(all="ignore"):
        np.copyto(out, items, casting="unsafe")
