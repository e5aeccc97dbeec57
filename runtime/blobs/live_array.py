"""`LiveArray`: the type of ``blob.data`` and ``blob.diff``: a NumPy array that tells its memory when it is written to.

In pycaffe this attribute is ``mutable_cpu_data()`` each time (_caffe.cpp:475).  So just looking at a blob makes its
device side stale.  And after a blob grows, an array that was kept writes into the old memory.  Here NumPy takes the
array for read-only.  Assignments to items and in-place operators ask the memory for its host side to write, and the
device side becomes stale only then.

An array that is kept cannot follow what happens to its memory, and NumPy does not report when an array is read.  But a
write is noticed.  It is refused if the array is out of date: the device has newer numbers, the memory has other bytes,
or the blob has another memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from syncedmem.model import InvalidPointerError, InvalidShapeError, SyncedHead

from ..allocators.rehearsal import rehearse
from .conversion import check_unmasked, converted

if TYPE_CHECKING:
    from collections.abc import Callable
    from weakref import ref

    from ..memory.synced_memory import SyncedMemory
    from .elements import Elements

    Array = np.ndarray[Any, np.dtype[Any]]

__all__ = ["LiveArray", "assign", "is_foreign", "is_of_elements", "live", "rehearse_in_full", "rehearse_of_elements"]


class Holder(Protocol):
    """The blob from whose memories the arrays are taken."""

    @property
    def data_memory(self) -> SyncedMemory: ...
    @property
    def diff_memory(self) -> SyncedMemory: ...


def _checking(name: str) -> Any:
    """A method of arrays that writes; the array of a memory refuses it."""

    def method(self: LiveArray, *arguments: Any, **options: Any) -> Any:
        if not self.flags.writeable:
            raise self._unwriteable(name)  # pyright: ignore[reportPrivateUsage] -- a method of that class
        return getattr(np.ndarray, name)(self, *arguments, **options)

    method.__name__, method.__doc__ = name, getattr(np.ndarray, name).__doc__
    return method


class LiveArray(np.ndarray[Any, np.dtype[Any]]):
    """The elements on a memory's host side, or a part of them.

    Results of computations with it are ordinary arrays, and so are copies of it.  Other ways to write, such as ``fill``
    or ``numpy.copyto``, are refused with an `InvalidPointerError` that says what to do instead.
    """

    memory: SyncedMemory | None = None
    """The memory whose host side this is; None for a copy."""

    blob: ref[Holder] | None = None
    """A weak reference to the blob from which the array was taken; None for a copy."""

    ready: object = None
    """The function that the memory had ready for reading when this was taken whole; None for a part."""

    def __array_finalize__(self, source: object) -> None:
        if not (self.flags.owndata or self.flags.writeable):  # a copy does not belong to the memory
            self.memory = getattr(source, "memory", None)
            self.blob = getattr(source, "blob", None)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.flags.writeable:
            super().__setitem__(key, value)
            return
        here: Any = _plain(self)[key]  # this and the next line refuse before any head moves
        fitting = value if _is_usual(value, self.dtype) else _fitting(value, np.shape(here), self.dtype)
        self.to_write()[key] = fitting

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out: Any = options.get("out")
        if ufunc in _SURE and method == "__call__" and out is not None and self._fits(inputs, options):
            operation: Any = ufunc
            operation(*map(_plain, inputs), out=_target(self))
            return self
        if any(map(is_foreign, (*inputs, *(out or ())))):
            return NotImplemented
        arrays = [_plain(operand) for operand in inputs]
        operation = getattr(ufunc, method)
        written = inputs[:1] if method == "at" else out or ()
        if any(isinstance(index, LiveArray) for index in written):
            for operand in inputs:
                check_unmasked(operand)
        if method == "at":
            target, indices, *others = arrays
            with np.errstate(all="ignore"):
                operation(np.array(target[indices]), ..., *others)  # a rehearsal: NumPy raises before a head moves
            arrays[0] = _target(inputs[0])
        elif out is not None:
            of_elements = is_of_elements(ufunc, method, arrays, options)
            (rehearse_of_elements if of_elements else rehearse_in_full)(operation, arrays, options)
            options["out"] = tuple(map(_target, out))
        result = operation(*arrays, **options)
        # An operator in place has to return the array itself, which `blob.data -= step` then assigns.
        if out is None:
            return result
        results = result if len(out) > 1 else (result,)
        given = tuple(new if old is None else old for old, new in zip(out, results, strict=True))
        return given if len(out) > 1 else given[0]

    def _fits(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> bool:
        """Whether an operation of `_SURE` writes to this array, and has nothing that NumPy could refuse."""
        if len(options) != 1 or options["out"][0] is not self:
            return False
        dtype, shape = self.dtype, self.shape
        for operand in inputs:
            if type(operand) is np.ndarray or type(operand) is LiveArray:
                if operand.dtype != dtype or operand.shape != shape:
                    return False
            elif not _is_usual(operand, dtype):
                return False
        return dtype in _USUAL

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """What NumPy's functions do, of which some write: ``copyto``, ``put``, ``take`` with ``out``."""
        try:
            return super().__array_function__(function, types, arguments, options)
        except ValueError as error:
            first = next(iter((*arguments, *options.values())), None)  # most functions that write have it first
            if "read-only" not in str(error) or (first is not self and options.get("out") is not self):
                raise
            raise self._unwriteable(f"numpy.{function.__name__}") from None

    if not TYPE_CHECKING:  # a checker knows them from the base class
        fill = _checking("fill")
        partition = _checking("partition")
        put = _checking("put")
        setfield = _checking("setfield")
        sort = _checking("sort")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _plain(self).__reduce_ex__(protocol)

    def to_write(self) -> Array:
        """The same elements, to write; the device side is stale after this call.

        Raises
        ------
        InvalidPointerError
            If the memory has other bytes now, or the device newer ones, or the blob has another memory.
        AllocationError, DeviceError, ClosedMemoryError
            As for `SyncedMemory.mutable_cpu_data`.
        """
        memory: Any = self.memory
        if not self.size:
            return np.empty(self.shape, self.dtype)
        start = self.check_writeable()
        return np.ndarray(self.shape, self.dtype, memory.mutable_cpu_data(), start, self.strides)

    def check_writeable(self) -> int:
        """The position of the elements in the memory's present host side, in bytes; no head moves."""
        if self.flags.writeable or not self.size:
            return 0
        memory: Any = self.memory
        memory._open("blob.data")  # noqa: SLF001 -- raises if the memory is closed
        owner = None if self.blob is None else self.blob()
        if owner is not None and memory is not owner.data_memory and memory is not owner.diff_memory:
            raise self._outdated("its blob has another memory by now")
        if self.ready is not None and memory._read_cpu is self.ready:  # noqa: SLF001 -- as `Elements` does it
            return 0
        if memory.head is SyncedHead.HEAD_AT_GPU:
            raise self._outdated("the device has newer numbers by now")
        here = memory._sides.cpu.ptr  # noqa: SLF001 -- the accessor would bring it up to date
        start: int = self.ctypes.data - (0 if here is None else here.ctypes.data)
        try:
            np.ndarray(self.shape, self.dtype, b"" if here is None else here, start, self.strides)
        except (TypeError, ValueError, OverflowError):  # the elements are outside of the present buffer
            raise self._outdated("its memory has other bytes by now") from None
        return start

    def _unwriteable(self, name: str) -> InvalidPointerError:
        way = "assign to it, as in blob.data[...] = x, or write to blob.mutable_cpu_data() or mutable_cpu_diff()"
        return InvalidPointerError(name, self, f"it is read-only, so that no write goes unnoticed; {way}")

    def _outdated(self, reason: str) -> InvalidPointerError:
        return InvalidPointerError("the host", self, f"{reason}; take blob.data or blob.diff again")


def live(elements: Elements, blob: ref[Holder]) -> LiveArray:
    """The elements of a blob, for reading, and for assignments."""
    array: LiveArray = elements.cpu_data().view(LiveArray)
    array.memory, array.blob, array.ready = elements.memory, blob, elements.ready
    return array


def assign(elements: Elements, values: object) -> None:
    """Assign values to all elements, broadcast as NumPy does it.

    Raises
    ------
    InvalidShapeError
        If the values do not fit; nothing has changed.
    InvalidArgumentError, InvalidValueError
        If they are no numbers, or the elements cannot hold them; nothing has changed.
    """
    if isinstance(values, LiveArray) and _are(values, elements):
        return
    fitting = _fitting(values, elements.shape, elements.dtype)
    elements.mutable_cpu_data()[...] = fitting


def _are(array: LiveArray, elements: Elements) -> bool:
    """Whether an array is the elements themselves, as it is after ``blob.data -= step``."""
    here = elements.cpu_data()
    if array.ready is not None and array.ready is elements.ready and array.shape == elements.shape:
        return True
    return all(getattr(array, name) == getattr(here, name) for name in ("shape", "dtype", "strides")) and bool(
        array.ctypes.data == here.ctypes.data
    )


def _plain(array: Any) -> Any:
    return array.view(np.ndarray) if isinstance(array, LiveArray) else array


def _target(array: Any) -> Any:
    """The array that is written when somebody writes to `array`."""
    if isinstance(array, LiveArray) and not array.flags.writeable:
        return array.to_write()
    return _plain(array)


_SURE = frozenset({np.add, np.subtract, np.multiply, np.divide})
"""The operations that NumPy does for all numbers of a usual type."""

_USUAL = {np.dtype(np.float32): 3e38, np.dtype(np.float64): 1e300}
"""The usual types of elements, and numbers up to which NumPy assigns one of Python without a warning."""


def _is_usual(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether NumPy assigns a value as `_fitting` would: a finite number of Python, and no array."""
    return type(value) in (float, int) and abs(value) < _USUAL.get(dtype, 0)


def _fitting(values: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Values, after a check that NumPy could assign them to elements of that shape, and that these can hold them."""
    array = converted(values, dtype)
    given = array.shape
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    try:
        np.broadcast_to(array, shape)
    except ValueError:
        raise InvalidShapeError(given, f"values of this shape do not fit into {shape}") from None
    return array


# --- operations of NumPy: what it refuses it refuses before a head moves


def is_foreign(operand: object) -> bool:
    """Whether NumPy has to ask this operand how to compute with it: a blob, or an array of a device."""
    return hasattr(operand, "__array_ufunc__") and not isinstance(operand, np.ndarray | np.generic)


def is_of_elements(ufunc: np.ufunc, method: str, inputs: list[Any], options: dict[str, Any]) -> bool:
    """Whether an operation can be refused only because of types and shapes, and computes each element by itself."""
    if method != "__call__" or ufunc.signature is not None or "where" in options:
        return False
    # Powers of integers are refused by their values.
    return ufunc is not np.power or any(np.asarray(operand).dtype.kind not in "biu" for operand in inputs)


def rehearse_of_elements(operation: Any, inputs: list[Any], options: dict[str, Any]) -> None:
    """Try an operation of elements on arrays without elements: NumPy checks the types, and computes nothing."""
    targets = _checked_targets(options)
    shape = np.broadcast_shapes(*map(_shape_of, (*inputs, *targets)))
    for target in targets:
        if target.shape != shape:
            raise InvalidShapeError(shape, f"results of this shape do not fit into {target.shape}")
    rehearse(operation, *inputs, **_with_targets(options, lambda target: np.empty(0, target.dtype)))


def _shape_of(operand: Any) -> tuple[int, ...]:
    """As NumPy's function, which an array of a memory would answer itself."""
    shape: tuple[int, ...] = operand.shape if hasattr(operand, "shape") else np.shape(operand)
    return shape


def rehearse_in_full(operation: Any, inputs: list[Any], options: dict[str, Any]) -> None:
    """Try an operation of another kind, such as a sum along an axis, with copies of the arrays that it writes."""
    _checked_targets(options)
    with np.errstate(all="ignore"):
        operation(*inputs, **_with_targets(options, np.array))


def _with_targets(options: dict[str, Any], stand_in: Callable[[Any], Array]) -> dict[str, Any]:
    """The options of an operation, with stand-ins for the arrays that it writes."""
    if "out" not in options:
        return options
    return options | {"out": tuple(None if target is None else stand_in(target) for target in options["out"])}


def _checked_targets(options: dict[str, Any]) -> list[Any]:
    """The arrays that an operation writes, after a check that it may."""
    targets = [target for target in options.get("out", ()) if target is not None]
    for target in targets:
        if isinstance(target, LiveArray):
            target.check_writeable()
        elif not target.flags.writeable:
            raise InvalidPointerError("the host", target, "it is read-only")
    return targets
