"""`Elements`: the beginning of a `SyncedMemory`, seen as elements of a type, in a shape.

A blob has two of these, its data and its diff.  They add no state to the memory.  They only keep the typed view that
they made last, so the next one costs little more than the memory's own accessor.  How do they know that it is still
right?  While an accessor of a memory has nothing to do, the memory keeps a function ready that makes its views.
Whenever the memory's bytes are other bytes, it makes a new function; while there is something to do, none is ready.  So
if it still has the very same function, the typed view is right.  A view that is kept keeps its bytes alive until the
next call.
"""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import BufferMismatchError, InvalidArgumentError, InvalidShapeError

from ..allocators.pointers import address_of, writing
from ..allocators.views import device_viewer
from ..devices.host_buffers import foreign_array
from ..memory.tables import ACCESSORS, OWN_CPU, OWN_GPU, READ_CPU, READ_GPU, WRITE_CPU, WRITE_GPU

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..memory.side import Side
    from ..memory.sides import Sides
    from ..memory.synced_memory import SyncedMemory
    from ..memory.views import Lender
    from .shape import Shape

__all__ = ["OF_NUMPY", "OWNED", "TYPES", "Elements", "check_dtype", "check_viewable"]

OF_NUMPY = ("float32", "float64", "int32", "uint32", "float16", "int64", "uint8", "bool")
"""The element types of blobs that NumPy has: Caffe's (blob.cpp:556-558), and those that labels and pictures have."""

TYPES = (*OF_NUMPY, "bfloat16")
"""The element types of blobs."""

_KNOWN: dict[Any, np.dtype[Any]] = {form: np.dtype(form) for form in (np.float32, np.float64, np.int32)}
"""The usual ones, which are found at once."""

OWNED = OWN_CPU | OWN_GPU
"""The bits of both sides: those that a memory frees if it owns them."""

_READY = ("_read_cpu", "_write_cpu", "_read_gpu", "_write_gpu")


def check_dtype(dtype: object) -> np.dtype[Any]:
    """The element type that an argument names, after a check that blobs have it."""
    try:
        if (known := _KNOWN.get(cast("Any", dtype))) is not None:
            return known
        kind: np.dtype[Any] = np.dtype(cast("Any", dtype))
    except Exception:  # noqa: BLE001 -- whatever NumPy raises, it is no element type
        kind = np.dtype(object)
    if dtype is None or kind.name not in TYPES or not kind.isnative:
        expected = f"one of {', '.join(TYPES)} (which needs ml_dtypes: pip install ml_dtypes, and import it)"
        raise InvalidArgumentError("dtype", dtype, expected)
    return kind


def check_viewable(shape: Shape, dtype: np.dtype[Any]) -> None:
    """Check that an array without elements can have a shape: the product of its other extents may be too large."""
    limit, size = sys.maxsize, prod(filter(None, shape)) * dtype.itemsize
    if size > limit:
        reason = f"no array can have it: its other extents make {size} bytes, more than {limit}"
        raise InvalidShapeError(shape, reason)


class Elements:
    """The first elements of a memory.

    Parameters
    ----------
    memory : SyncedMemory
        It has at least as many bytes; it may be shared with others.
    dtype : numpy.dtype
    shape : tuple of int

    Attributes
    ----------
    count : int
        The number of elements.
    nbytes : int
        The number of bytes of these elements; the memory may have more.
    apart : tuple or None
        What the last subtraction from these elements has found: the sides of both memories, the side on which it was,
        and that they do not overlap.
    """

    __slots__ = ("_inside", "_looks", "_parts", "apart", "count", "dtype", "memory", "nbytes", "shape")

    def __init__(self, memory: SyncedMemory, dtype: np.dtype[Any], shape: Shape) -> None:
        self.memory: SyncedMemory = memory
        self._inside: Any = memory  # the same object, for access to its private attributes
        self.dtype: np.dtype[Any] = dtype
        self.shape: Shape = shape
        self.count: int = prod(shape)
        self.nbytes: int = self.count * dtype.itemsize
        # For each accessor: the function that the memory had ready at the last call, and ours over the same bytes.
        # They are one tuple, so that no thread sees one without the other.
        self._looks: list[tuple[object, Callable[[], Any]]] = [(None, _nothing)] * len(ACCESSORS)
        self._parts: list[Lender | None] = [None] * len(ACCESSORS)  # in checked mode, whose functions these are
        self.apart: tuple[Side, Side, Side, Side, bool] | None = None

    def reshaped(self, shape: Shape) -> Elements:
        """The same memory in another shape."""
        return Elements(self.memory, self.dtype, shape)

    @property
    def shared(self) -> bool:
        """Whether several blobs have used the memory: then none of them may close it."""
        return bool(self._inside._shared)  # noqa: SLF001 -- the runtime may; users do not need it

    def share(self) -> None:
        """Say that another blob uses the memory."""
        self._inside._shared = True  # noqa: SLF001 -- as above

    @property
    def ready(self) -> object:
        """The function that the memory had ready when these were read last; None if it had none."""
        return self._looks[READ_CPU][0]

    def is_idle(self, accessor: int) -> bool:
        """Whether an accessor of the memory, by its number, has nothing to do but to make a view."""
        return getattr(self._inside, _READY[accessor]) is not None

    @property
    def sides(self) -> Sides:
        """The two sides of the memory, for who must not move its head."""
        sides: Sides = self._inside._sides  # noqa: SLF001 -- the runtime may; users do not need it
        return sides

    # --- the four accessors; if one has nothing to do, it costs one comparison

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
        """Call the memory's accessor, and store how to make the next view while the accessor has nothing to do.

        Raises
        ------
        InvalidShapeError
            If there are no elements, and no array can have the shape; no head has moved.
        """
        memory = self._inside
        if not self.count:
            check_viewable(self.shape, self.dtype)
        with memory._lock:  # noqa: SLF001 -- so that no other call comes between these lines
            raw = getattr(memory, ACCESSORS[accessor])()
            ready = getattr(memory, _READY[accessor])
            typed = self.flat(raw).reshape(self.shape)
            viewer: Callable[[], Any] = typed.view
            if accessor >= READ_GPU:
                viewer = device_viewer(memory.device, typed, checked=memory.checked)
            elif accessor == WRITE_CPU:
                viewer = writing(self.sides.cpu.ptr, viewer)
            view = viewer()
            self._looks[accessor] = self._kept(accessor, raw, viewer) if memory.checked else (ready, viewer)
            if accessor == WRITE_CPU:
                memory._lend_instead(raw, view)  # noqa: SLF001 -- ours is the view that the caller has
        return view

    def _kept(self, accessor: int, raw: Any, viewer: Callable[[], Any]) -> tuple[object, Callable[[], Any]]:
        """What `_looks` may keep for a checked memory, which counts views; what makes a part of them counts as none."""
        side: Any = self.sides.gpu if accessor >= READ_GPU else self.sides.cpu
        lender = side.views.writer if accessor & 1 else side.views.reader
        ready = getattr(self._inside, _READY[accessor])
        if not lender.counts:
            return ready, viewer
        if ready is None or not self.count:
            return None, _nothing
        if ready is self._looks[accessor][0]:
            return self._looks[accessor]
        self._parts[accessor] = part = lender.part(raw, self.dtype, self.shape)
        return ready, part.make

    def flat(self, raw: Any) -> Any:
        """The elements in a row, from an array of the memory's bytes."""
        return (raw if len(raw) == self.nbytes else raw[: self.nbytes]).view(self.dtype)

    # --- adoption

    def adopt(self, name: str, call: str, buffer: Any) -> None:
        """Make a buffer one side of the memory; errors call it `name`.

        The element type of the buffer has to be this one or of a single byte, and its address a multiple of the size of
        an element.  As many elements in several axes have to be in the same axes.  The memory checks everything else.
        """
        self._check_elements(name, buffer)
        memory = self._inside
        memory._alone(call, memory._adopt, call, buffer, name)  # noqa: SLF001 -- refusals name the blob's own call

    def owns_bytes_of(self, other: Elements, own: int = OWNED) -> bool:
        """Whether other elements lie in memory that this memory would free, on the sides whose bits are in `own`."""
        return bool(self._inside._owns_bytes_of(other.memory, own))  # noqa: SLF001 -- the runtime may; users do not need it

    def _check_elements(self, call: str, buffer: Any) -> None:
        given, buffer = buffer, _of_numpy(buffer)
        dtype = _dtype_of(buffer)
        if dtype is None:
            return
        if dtype.itemsize > 1 and dtype != self.dtype:
            raise BufferMismatchError(call, given, f"its elements are {dtype}, and {self.dtype} are needed")
        shape = tuple(getattr(buffer, "shape", None) or ())
        if dtype == self.dtype and len(shape) > 1 and prod(shape) == self.count and not _fit(shape, self.shape):
            reason = f"its shape is {shape}, and {self.shape} is needed, or a single axis"
            raise BufferMismatchError(call, given, reason)
        if self.count and _address(buffer) % self.dtype.itemsize:
            reason = f"it does not start at a multiple of {self.dtype.itemsize} bytes, as {self.dtype} must"
            raise BufferMismatchError(call, given, reason)


def _fit(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes differ at most in axes of length one."""
    return [n for n in shape if n != 1] == [n for n in other if n != 1]


def _of_numpy(buffer: Any) -> Any:
    """An array of another library on the host as NumPy sees it; anything else as it is."""
    given: object = buffer
    if isinstance(given, np.ndarray) or not hasattr(given, "__dlpack__"):
        return buffer
    try:
        return foreign_array(buffer)
    except ValueError:
        return buffer


def _dtype_of(buffer: Any) -> np.dtype[Any] | None:
    """The element type of an array or a buffer; None if it is neither, or NumPy does not know its type."""
    try:
        kind: np.dtype[Any] = np.dtype(
            buffer.dtype if hasattr(buffer, "dtype") else np.asarray(memoryview(buffer)).dtype
        )
    except (TypeError, ValueError, BufferError):
        # Types of PyTorch are none of NumPy's; of memory on a GPU the interface says what they are.
        interface: dict[str, Any] | None = getattr(buffer, "__cuda_array_interface__", None)
        return None if interface is None else np.dtype(interface["typestr"])
    return kind


def _address(buffer: Any) -> int:
    """The address of a buffer, on its device."""
    return address_of(buffer if hasattr(buffer, "dtype") else np.asarray(memoryview(buffer)))


def _nothing() -> None:
    """A placeholder for a function that is not known yet."""
