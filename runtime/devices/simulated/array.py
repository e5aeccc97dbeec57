"""`SimulatedArray`: the arrays of the simulated device."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from syncedmem.model import InvalidArgumentError, InvalidPointerError, InvalidShapeError, NotCopyableError

from ...allocators.pointers import as_integer, is_masked, no_room
from .operators import OPERATORS, Outcome, compute, number

if TYPE_CHECKING:
    from collections.abc import Callable

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


class SimulatedArray(NDArrayOperatorsMixin):
    """Memory of a simulated device: contiguous items that only `get` and `set` can reach.

    Allocators return rows of bytes, ``uint8``.  `view` gives the bytes another type, and `reshape` another shape.
    Methods accept only arguments that ``cupy.ndarray`` and ``pyopencl.array.Array`` both accept.  Like
    ``cupy.ndarray``, an array refuses to become a NumPy array by accident.

    ``==``, ``!=``, ``<``, ``<=``, ``>`` and ``>=`` compare item by item, with a number or an array of this device, as
    CuPy does it: the result is a new array of ``bool`` on the device, and the work is queued on the current stream.  So
    arrays have no hash, and only an array of one item has a truth value.  To ask whether two names are the same array,
    use ``is``; to ask whether two arrays show the same bytes, use `shares`.

    An array does not keep its memory alive.  After the memory is freed, `get` and `set` raise `SimulatedDeviceError`.
    Arrays of real devices would show old bytes.
    """

    __slots__ = ("__weakref__", "_block", "_dtype", "_nbytes", "_offset", "_read_only", "_shape", "_space")

    def __init__(  # noqa: PLR0913 -- where the bytes are, and which array they form
        self,
        space: DeviceSpace,
        block: Block,
        offset: int,
        nbytes: int,
        dtype: np.dtype[Any] = BYTES,
        read_only: bool = False,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self._space = space
        self._block = block
        self._offset = offset
        self._nbytes = nbytes
        self._dtype = dtype
        self._read_only = read_only
        self._shape = (nbytes // dtype.itemsize,) if shape is None else shape

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
        if self._read_only:
            reason = "this view is read-only; mutable_gpu_data() gives a writeable one"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, reason)
        source = self._source(data)
        if stream is not None:
            self._space.check_stream(stream)
        with self._space.entered():
            self._space.now(stream, lambda: np.copyto(self.raw(self._nbytes), source))

    def _source(self, data: object) -> HostArray:
        """The bytes of the argument of `set`, after a check.

        CuPy refuses another type or shape, PyOpenCL an array that is not contiguous, and both an object that is no
        array.
        """
        expected = f"a C-contiguous numpy.ndarray of shape {self.shape} and type {self._dtype}, without a mask"
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
        return self._over(
            self._offset, self._nbytes, kind, self._shape if kind.itemsize == self._dtype.itemsize else None
        )

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
            If the new shape has more or fewer items.
        """
        given: Any = shape[0] if len(shape) == 1 and hasattr(shape[0], "__iter__") else shape
        extents = [as_integer(extent, "shape", "integers, or a sequence of them") for extent in given]
        if extents.count(-1) == 1:
            known = -prod(extents)
            extents[extents.index(-1)] = self.size // known if known else 0
        if min(extents, default=0) < 0 or prod(extents) != self.size:
            raise InvalidShapeError(tuple(given), f"there are {self.size} items")
        return self._over(self._offset, self._nbytes, self._dtype, tuple(extents))

    def _over(self, offset: int, nbytes: int, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> Self:
        """Another array object over all or some of these bytes."""
        return type(self)(self._space, self._block, offset, nbytes, dtype, self._read_only, shape)

    def _kind(self, dtype: Any) -> np.dtype[Any]:
        """The type that the argument of `view` names, after a check."""
        expected = f"a type of numbers, of which {self._nbytes} bytes are a whole number"
        try:
            kind: np.dtype[Any] = np.dtype(dtype)
        except Exception as error:
            raise InvalidArgumentError("dtype", dtype, expected) from error
        numbers = kind.kind in _NUMBERS or kind.name in _NUMBERS_OF_OTHERS
        row = self.ndim == 1 or kind.itemsize == self._dtype.itemsize
        if not numbers or self._nbytes % kind.itemsize or not row:
            raise InvalidArgumentError("dtype", dtype, expected)
        return kind

    def viewer(self) -> Callable[[], Self]:
        """A function that does what `view` does without a type, and is quick to call."""
        # Arguments are passed by position, because names take longer.
        where = self._space, self._block, self._offset, self._nbytes
        return partial(type(self), *where, self._dtype, self._read_only, self._shape)

    def as_read_only(self) -> Self:
        """A new array object over the same bytes, through which nothing can be written."""
        return type(self)(self._space, self._block, self._offset, self._nbytes, self._dtype, True, self._shape)

    def raw(self, nbytes: int) -> HostArray:
        """The first bytes, as host memory; for the device, not for its users."""
        return self._block.bytes(self._offset, nbytes)

    def items(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The items themselves, as host memory; for the device, not for its users."""
        items: np.ndarray[Any, np.dtype[Any]] = self.raw(self._nbytes).view(self._dtype).reshape(self._shape)
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

    # --- operators

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Self:
        """The result of an operator, or of NumPy's function for it, as a new array; the host does not wait.

        Raises
        ------
        InvalidArgumentError
            If it is no comparison; or if an operand is neither a number nor an array of this device.
        InvalidShapeError
            If the shapes do not fit together.
        SimulatedDeviceError
            If the memory of an operand was freed.
        AllocationError
            If there is no room for the result.  After any of these errors nothing is queued.
        """
        where = f"simulated:{self.ordinal}"
        if function not in OPERATORS or method != "__call__" or options:
            raise InvalidArgumentError("operation", function, f"a comparison of arrays of {where}; compute with get()")
        expected = f"a number or an array of {where}; the host compares what get() returns"
        operands = [it if self._is_mine(it) else number(function, it, expected) for it in inputs]
        with self._space.entered():
            outcome = Outcome(function, operands)
            items = [it.lent() if isinstance(it, SimulatedArray) else it for it in operands]
            try:
                block = self._space.new_block(outcome.nbytes)
            except (MemoryError, ValueError) as error:  # ValueError: the size is too large for NumPy
                raise no_room(where, outcome.nbytes, error) from error
            result = type(self)(self._space, block, 0, outcome.nbytes, outcome.dtype, False, outcome.shape)
            self._space.current_stream.put(partial(compute, function, items, result.lent()))
        return result

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

    def __getitem__(self, key: slice) -> Self:
        if not isinstance(key, slice):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("index", key, "a slice; .get() returns items, which can be indexed")
        length = len(self)
        try:
            start, stop, step = key.indices(length)
        except (TypeError, ValueError) as error:  # no integers, or the step is zero
            raise InvalidArgumentError("index", key, "a slice of integers, with step 1") from error
        if step != 1:
            reason = f"its slices have to be contiguous; slice it with step 1, not {step}"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, reason)
        extents = (max(stop - start, 0), *self._shape[1:])
        each = prod(extents[1:]) * self._dtype.itemsize
        return self._over(self._offset + start * each, extents[0] * each, self._dtype, extents)

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise InvalidArgumentError("array", self, "host memory, as .get() returns it, and not memory of a device")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise NotCopyableError(type(self).__name__, "copy get() instead")

    def __repr__(self) -> str:
        items = "bytes" if self._dtype == BYTES else self._dtype.name
        kind = ", read-only" if self._read_only else ""
        extents = " x ".join(map(str, self._shape)) or "1"
        return f"<SimulatedArray {extents} {items} at {self.ptr:#x} on device {self.ordinal}{kind}>"
