"""`Elements`: the beginning of a `SyncedMemory`, seen as elements of a type in a shape.

A blob has two of these, its data and its diff.  They add no state to the memory: they look at it, and remember how they
looked, so that looking again costs little more than the memory's own accessor.  What is remembered is the maker of
views that the memory had ready (``memory``).  A memory makes new ones whenever it looks at other bytes, and has none
ready while there is something to do, so the very same maker is the sign that a view made before is still right.  A view
that is remembered keeps its bytes until the elements are looked at again.
"""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import BufferMismatchError, Fact, InvalidArgumentError, InvalidShapeError

from ..allocators.pointers import address_of
from ..memory.synced_memory import ACCESSORS, READ_CPU, READ_GPU, WRITE_CPU, WRITE_GPU

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model import Call

    from ..memory.synced_memory import SyncedMemory
    from .shape import Shape

__all__ = ["OWNED", "TYPES", "Elements", "check_dtype", "check_viewable"]

TYPES = ("float32", "float64", "int32", "uint32", "float16", "bfloat16")
"""The element types of blobs: Caffe's (blob.cpp:556-558), and two small ones."""

OWNED = Fact.OWN_CPU_DATA | Fact.OWN_GPU_DATA
"""Both sides that a memory may have to free."""

_READY = ("_read_cpu", "_write_cpu", "_read_gpu", "_write_gpu")


def check_dtype(dtype: object) -> np.dtype[Any]:
    """A type of elements that blobs have.

    Raises
    ------
    InvalidArgumentError
    """
    try:
        found: np.dtype[Any] = np.dtype(cast("Any", dtype))
    except Exception:  # noqa: BLE001 -- whatever NumPy makes of it, it is none
        found = np.dtype(object)
    if dtype is None or found.name not in TYPES or not found.isnative:
        expected = f"one of {', '.join(TYPES)} (which needs ml_dtypes: pip install ml_dtypes, and import it)"
        raise InvalidArgumentError("dtype", dtype, expected)
    return found


def check_viewable(shape: Shape, dtype: np.dtype[Any]) -> None:
    """Refuse to look at a shape of no elements whose other extents are too large for an array of any.

    Raises
    ------
    InvalidShapeError
    """
    limit, size = sys.maxsize, prod(filter(None, shape)) * dtype.itemsize
    if size > limit:
        reason = f"there are no arrays of it: its other extents make {size} bytes, more than {limit}"
        raise InvalidShapeError(shape, reason)


class Elements:
    """The first elements of a memory.

    Parameters
    ----------
    memory : SyncedMemory
        Of at least as many bytes; it may be shared with others.
    dtype : numpy.dtype
    shape : tuple of int

    Attributes
    ----------
    count : int
        Elements.
    nbytes : int
        Bytes of these elements; the memory may have more.
    """

    __slots__ = ("_inside", "_looks", "count", "dtype", "memory", "nbytes", "shape")

    def __init__(self, memory: SyncedMemory, dtype: np.dtype[Any], shape: Shape) -> None:
        self.memory: SyncedMemory = memory
        self._inside: Any = memory  # the same, for what only this room may know of it
        self.dtype: np.dtype[Any] = dtype
        self.shape: Shape = shape
        self.count: int = prod(shape)
        self.nbytes: int = self.count * dtype.itemsize
        # For each accessor: the memory's own maker of views when it was last asked, and ours over the same bytes.  In
        # one place, so that no thread sees one without the other.
        self._looks: list[tuple[object, Callable[[], Any]]] = [(None, _nothing)] * len(ACCESSORS)

    def reshaped(self, shape: Shape) -> Elements:
        """The same memory in another shape."""
        return Elements(self.memory, self.dtype, shape)

    # --- the four accessors; one that has nothing to do is one comparison

    def cpu_data(self) -> Any:
        """The host side to read: a read-only NumPy array."""
        known, viewer = self._looks[READ_CPU]
        if known is not None and self._inside._read_cpu is known:  # noqa: SLF001 -- the room's own hot path
            return viewer()
        return self._look(READ_CPU)

    def mutable_cpu_data(self) -> Any:
        """The host side to write."""
        known, viewer = self._looks[WRITE_CPU]
        if known is not None and self._inside._write_cpu is known:  # noqa: SLF001 -- as above
            return viewer()
        return self._look(WRITE_CPU)

    def gpu_data(self) -> Any:
        """The device side to read, as an array of the device's own kind."""
        known, viewer = self._looks[READ_GPU]
        if known is not None and self._inside._read_gpu is known:  # noqa: SLF001 -- as above
            return viewer()
        return self._look(READ_GPU)

    def mutable_gpu_data(self) -> Any:
        """The device side to write."""
        known, viewer = self._looks[WRITE_GPU]
        if known is not None and self._inside._write_gpu is known:  # noqa: SLF001 -- as above
            return viewer()
        return self._look(WRITE_GPU)

    def _look(self, accessor: int) -> Any:
        """Call the memory's accessor, and remember how to look again while it has nothing to do.

        Raises
        ------
        InvalidShapeError
            If there are no elements, and no arrays of that shape; no head has moved.
        """
        memory = self._inside
        if not self.count:
            check_viewable(self.shape, self.dtype)
        with memory._lock:  # noqa: SLF001 -- what it hands out and what it has ready must be of one moment
            typed = self.flat(getattr(memory, ACCESSORS[accessor])()).reshape(self.shape)
            ready = getattr(memory, _READY[accessor])
        viewer = typed.view if accessor < READ_GPU else memory.device.viewer(typed)
        self._looks[accessor] = ready, viewer
        return viewer()

    def flat(self, raw: Any) -> Any:
        """The elements in a row, of an array of the memory's bytes."""
        return (raw if len(raw) == self.nbytes else raw[: self.nbytes]).view(self.dtype)

    # --- adoption

    def adopt(self, name: str, call: Call, buffer: Any) -> None:
        """Make a buffer a side of the memory; errors call it `name`.

        Elements of another type are refused, and such as do not start where one can; what has no type is bytes.  Size,
        kind and the rest are the memory's to check.

        Raises
        ------
        BufferMismatchError, NoDeviceError, ReleaseError
            Nothing has changed.
        """
        self._check_elements(name, buffer)
        memory = self._inside
        memory._alone(name, memory._call, call.value, buffer, name)  # noqa: SLF001 -- its calls have names of their own

    def lends(self, borrower: Elements, own: Fact = OWNED) -> bool:
        """Whether other elements lie in what this memory would free, on the sides that `own` names."""
        return bool(self._inside._lends(borrower.memory, own))  # noqa: SLF001 -- users have no use for it

    def _check_elements(self, call: str, buffer: Any) -> None:
        dtype = _dtype_of(buffer)
        if dtype is None:
            return
        if dtype.itemsize > 1 and dtype != self.dtype:
            raise BufferMismatchError(call, buffer, f"its elements are {dtype}, and {self.dtype} are needed")
        if self.count and _address(buffer) % self.dtype.itemsize:
            reason = f"it does not start at a multiple of {self.dtype.itemsize} bytes, as {self.dtype} must"
            raise BufferMismatchError(call, buffer, reason)


def _dtype_of(buffer: Any) -> np.dtype[Any] | None:
    """The type of the elements of an array or of another buffer; None of what is neither, or has none that is known."""
    try:
        return np.dtype(buffer.dtype if hasattr(buffer, "dtype") else np.asarray(memoryview(buffer)).dtype)
    except (TypeError, ValueError, BufferError):
        return None


def _address(buffer: Any) -> int:
    """Where a buffer starts, as its device counts."""
    return address_of(buffer if hasattr(buffer, "dtype") else np.asarray(memoryview(buffer)))


def _nothing() -> None:
    """In place of a maker that is not known yet."""
