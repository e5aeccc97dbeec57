"""`SimulatedArray`: the arrays of the simulated device.

An array is a block and a NumPy array over its bytes.  The NumPy array knows how the items lie there, and whether they
may be written; code that reads or writes them gets it from `SimulatedArray.items`.
"""

from __future__ import annotations

from functools import partial
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from syncedmem.model import (
    InvalidArgumentError,
    InvalidIndexError,
    InvalidPointerError,
    InvalidShapeError,
    NotCopyableError,
)

from ...allocators.late_writes import anchored
from ...allocators.pointers import as_integer, is_masked, no_room
from .operators import NOT_BOTH, OPERATORS, Outcome, compute, number, number_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...allocators.pointers import HostArray
    from .block import Block
    from .simulation import DeviceSpace, SimulatedStream

    Items = np.ndarray[Any, np.dtype[Any]]

__all__ = ["BYTES", "SimulatedArray"]

BYTES = np.dtype(np.uint8)
"""The type of the elements of arrays that allocators return."""

_NUMBERS = "biufc"
"""The kinds of types that arrays of other devices have too: booleans, integers, floating and complex numbers."""

_NUMBERS_OF_OTHERS = ("bfloat16",)
"""Types of other packages, which NumPy takes for plain bytes."""

_BOOL = np.dtype(np.bool_)

_INDEX = "an integer, a slice, ..., None, or a tuple of these; get() returns items for other indices"


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

    __slots__ = ("__weakref__", "_block", "_layout", "_space")

    def __init__(self, space: DeviceSpace, block: Block, layout: Items) -> None:
        self._space = space
        self._block = block
        self._layout = layout  # the items; `items` looks first whether they are there still

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the items."""
        return self._layout.dtype

    @property
    def size(self) -> int:
        """The number of items."""
        return self._layout.size

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self._layout.nbytes

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of items along each axis."""
        shape: tuple[int, ...] = self._layout.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._layout.ndim

    @property
    def strides(self) -> tuple[int, ...]:
        """How many bytes lie from one item to the next, along each axis."""
        return self._layout.strides

    @property
    def flags(self) -> Flags:
        """Whether the last axis is fastest, and whether the first one is; both if only one axis has several items."""
        flags = self._layout.flags
        return Flags(flags.c_contiguous, flags.f_contiguous)

    @property
    def ptr(self) -> int:
        """The simulated address of the first byte; nothing is mapped there."""
        return self._block.address_of(self._layout)

    @property
    def ordinal(self) -> int:
        """The number of the device that has the bytes."""
        return self._space.ordinal

    @property
    def read_only(self) -> bool:
        """Whether `set` is refused."""
        return not self._layout.flags.writeable

    def get(self) -> Items:
        """A copy of the items on the host, made after all work on the current stream.

        Returns
        -------
        numpy.ndarray
            With the shape and the type of this array.

        Raises
        ------
        SimulatedDeviceError
            If the memory was freed.
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
            self._space.now(stream, lambda: np.copyto(self.items(), source))

    def _check_writeable(self) -> None:
        if self.read_only:
            reason = "this view is read-only; mutable_gpu_data() gives a writeable one"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, reason)

    def _source(self, data: object) -> Items:
        """The argument of `set` as a plain array, after a check.

        CuPy refuses another type or shape, PyOpenCL an array that is not contiguous, and both an object that is no
        array.
        """
        here = self._layout
        if not here.flags.c_contiguous:
            reason = "set() cannot write to a transposed array; call it on the array that was transposed"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, reason)
        array = _plain(data)
        if array is not None and array.dtype == here.dtype and array.shape == here.shape and array.flags.c_contiguous:
            return array
        expected = f"a C-contiguous numpy.ndarray of shape {self.shape} and type {self.dtype}, without a mask"
        raise InvalidArgumentError("data", data, expected)

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
        if dtype is None:
            return self._over(self._layout)
        expected = f"a type of numbers, of which {self.nbytes} bytes are a whole number"
        kind = _number_type(dtype, expected)
        if kind.itemsize != self.dtype.itemsize and (self.ndim != 1 or self.nbytes % kind.itemsize):
            raise InvalidArgumentError("dtype", dtype, expected)
        return self._over(self._layout.view(kind))

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
        if not self._layout.flags.c_contiguous:
            raise InvalidShapeError(tuple(given), "the array is transposed; reshape a copy() of it")
        problem = InvalidShapeError(tuple(given), f"there are {self.size} items")
        if min(extents, default=0) < -1:  # NumPy takes any negative number for -1
            raise problem
        try:
            return self._over(self._layout.reshape(extents))
        except ValueError:
            raise problem from None

    def ravel(self) -> Self:
        """A new array object over the same items, in a row; errors as for `reshape`."""
        return self.reshape(-1)

    def squeeze(self) -> Self:
        """A new array object over the same items, without axes of length one; errors as for `reshape`."""
        return self.reshape([extent for extent in self.shape if extent != 1])

    @property
    def T(self) -> Self:  # noqa: N802 -- the name that all arrays have
        """A new array object over the same items, with the axes in the opposite order."""
        return self._over(self._layout.T)

    def transpose(self) -> Self:
        """The same as `T`."""
        return self.T

    def as_read_only(self) -> Self:
        """A new array object over the same bytes, through which nothing can be written."""
        layout = self._layout.view()
        layout.setflags(write=False)
        return self._over(layout)

    def _over(self, layout: Items) -> Self:
        """Another array object over all or some of these bytes."""
        return type(self)(self._space, self._block, layout)

    # --- for the device, not for its users

    def viewer(self) -> Callable[[], Self]:
        """A function that does what `view` does without a type, and is quick to call."""
        return partial(type(self), self._space, self._block, self._layout)  # by position: names take longer

    def anchored(self, **options: Any) -> tuple[Self, object]:
        """Another array over this row of bytes, and an object to which only it, its views and work with them refer."""
        layout = anchored(self._layout, **options)
        return self._over(layout), layout

    def items(self) -> Items:
        """The items themselves, as host memory."""
        if not self._block.live:
            raise self._block.freed()
        return self._layout

    def raw(self, nbytes: int) -> HostArray:
        """The first bytes of a row of bytes, as host memory."""
        items = self.items()
        return items if nbytes == items.size else items[:nbytes]

    def lent(self) -> Items:
        """The items themselves, for queued work."""
        items = self.items().view()
        self._block.lend(items)
        return items

    def shares(self, other: SimulatedArray) -> bool:
        """Whether two arrays have bytes in common."""
        return self._block is other._block and np.may_share_memory(self._layout, other._layout)

    def unusable(self, written: bool) -> str:
        """Why a copy cannot use this array, or write to it; empty if it can."""
        layout = self._layout
        if (layout.dtype is not BYTES and layout.dtype != BYTES) or layout.ndim != 1:
            return "not a contiguous row of bytes"
        return "read-only" if written and not layout.flags.writeable else ""

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
        return self._computed(_converted, self.shape, self.dtype, [self])

    def astype(self, dtype: Any) -> Self:
        """A new array with the items converted to another type, as C converts them; the host does not wait.

        Raises
        ------
        InvalidArgumentError
            If `dtype` is no type of numbers, or is real and the items are complex.
        SimulatedDeviceError, AllocationError
            As for `copy`.
        """
        expected = f"a type of numbers to which {self.dtype} can be converted"
        kind = _number_type(dtype, expected)
        if self.dtype.kind == "c" != kind.kind:
            raise InvalidArgumentError("dtype", dtype, expected)
        return self._computed(_converted, self.shape, kind, [self])

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
        self._write(_converted, [number_as(self.dtype, value)])

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
        if value.dtype != self.dtype:
            raise InvalidArgumentError("value", value, f"items of type {self.dtype}: astype() converts them")
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
            result = type(self)(self._space, block, block.content.view(dtype).reshape(shape))
            self._space.current_stream.put(partial(work, *items, out=result.lent()))
        return result

    def _write(self, work: Callable[..., object], operands: list[Any]) -> None:
        """Queue work that writes into this array; see `_computed`."""
        if any(self._is_mine(operand) and self.shares(operand) for operand in operands):
            work = partial(_with_copies, work, [])
        with self._space.entered():
            self._space.current_stream.put(partial(work, *_items_of(operands), out=self.lent()))

    def _is_mine(self, operand: object) -> bool:
        return isinstance(operand, SimulatedArray) and operand.belongs_to(self._space)

    def __bool__(self) -> bool:
        if self.size != 1:
            reason = "only one item has a truth value; ask the host, as in (x == y).get().all()"
            raise InvalidShapeError(self.shape, reason)
        return bool(self.get())

    # --- as a sequence

    def __len__(self) -> int:
        layout = self._layout
        if not layout.ndim:
            raise InvalidArgumentError("array", self, "an array with axes, because another one has no length")
        return len(layout)

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
        parts = _parts_of(key)
        if not all(map(_is_part, parts)):
            raise InvalidArgumentError("index", key, _INDEX)
        try:  # with an ellipsis NumPy returns a view even of a single item
            layout = self._layout[parts if any(part is Ellipsis for part in parts) else (*parts, ...)]
        except IndexError as error:
            raise InvalidIndexError("index", key, f"the array has the shape {self.shape}") from error
        except (TypeError, ValueError) as error:  # a slice without integers, or with step zero
            raise InvalidArgumentError("index", key, _INDEX) from error
        if not layout.flags.forc:
            reason = "its slices have to be contiguous, as PyOpenCL's kernels need them"
            advice = "slice it with step 1, along its first axes"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, f"{reason}; {advice}")
        return self._over(layout)

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
        items = "bytes" if self.dtype == BYTES else self.dtype.name
        kind = ", read-only" if self.read_only else ""
        extents = " x ".join(map(str, self.shape)) or "1"
        return f"<SimulatedArray {extents} {items} at {self.ptr:#x} on device {self.ordinal}{kind}>"


def _plain(data: object) -> Items | None:
    """An array of the host as one of NumPy's own class; None if it is no array, or some of its items are masked."""
    if not isinstance(data, np.ndarray):
        return None
    array = cast("Items", data)
    return None if is_masked(array) else np.asarray(array)


def _parts_of(key: object) -> tuple[Any, ...]:
    """One part for each axis, or less."""
    return tuple(cast("Any", key)) if isinstance(key, tuple) else (key,)


def _is_part(part: Any) -> bool:
    """Whether a part of an index means a view: no boolean, no array and no list."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return True
    try:
        index(part)
    except TypeError:
        return False
    return not isinstance(part, bool | np.bool_)


def _with_copies(work: Callable[..., object], copies: list[list[Any]], *items: Any, out: Any) -> None:
    """Do work that writes to its own operands; if it is interrupted it is done again, so it gets copies, made once."""
    if not copies:
        copies.append([item.copy() if isinstance(item, np.ndarray) else item for item in items])
    work(*copies[0], out=out)


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
