"""`Blob`: an N-dimensional array of numbers and the gradients that belong to them (002, 003; Caffe's blob.hpp).

Data and diff are a `SyncedMemory` each, so a blob is on the host and on the device at once, and nothing is copied or
allocated before somebody looks.  ``pair`` has the two memories and their shape, ``viewed`` shows them as arrays,
``stored`` puts them into messages and files, and ``arithmetic`` computes with them.

Where Caffe would write past the end of something, or stop half-way, this class does not; docs/blobs.md lists every
difference.
"""

from __future__ import annotations

from copy import deepcopy
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, SupportsFloat, overload

import numpy as np

from syncedmem.model import BufferMismatchError, InvalidArgumentError, InvalidShapeError, SyncedHead

from ..allocators.pointers import as_flag
from ..devices.registry import resolve_device
from . import arithmetic
from .elements import Elements
from .foreign_arrays import ForeignArray
from .pair import Pair, ScalarT
from .shape import is_integer
from .shaped import Shaped
from .stored import Stored
from .viewed import Viewed

if TYPE_CHECKING:
    from ..allocators.base import DeviceAllocator
    from ..memory.synced_memory import SyncedMemory
    from .shape import Shape

__all__ = ["Blob"]

_BYTES = np.dtype(np.uint8)


class Blob(Stored[ScalarT]):
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

    __slots__ = ()

    @overload
    def __init__(
        self,
        shape: Any,
        dtype: type[ScalarT] | np.dtype[ScalarT],
        /,
        *,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
    ) -> None: ...
    @overload
    def __init__(
        self: Blob[np.float32],
        *shape: Any,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
    ) -> None: ...
    @overload
    def __init__(
        self,
        *shape: Any,
        dtype: type[ScalarT] | np.dtype[ScalarT],
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
    ) -> None: ...
    @overload
    def __init__(
        self: Blob[Any],
        *shape: Any,
        dtype: str,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
    ) -> None: ...
    def __init__(self, *shape: Any, dtype: Any = None, host: Any = None, device: Any = "auto") -> None:
        if len(shape) == 2 and dtype is None and not is_integer(shape[1]):  # noqa: PLR2004 -- Blob(shape, dtype)
            first, dtype = shape
            shape = (first,)
        super().__init__(shape, np.float32 if dtype is None else dtype, host, device)

    # --- copies and arithmetic

    def copy_from(self, source: Blob[ScalarT], copy_diff: bool = False, reshape: bool = False) -> None:
        """Copy the data of another blob, or its diff (blob.cpp 433).

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
        """Subtract the diff from the data, where the data is (003:76-102; blob.cpp 174).

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
        """The sum of the squares of the data: the square of its L2 norm, and not the L1 norm of 003:110."""
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

    # --- arrays of others, and copies

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
                theirs.adopted_by(blob)
            except BufferMismatchError:
                if copy is not None:
                    raise
            else:
                return blob
        theirs.copied_to(blob)
        return blob

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

    # --- what it is

    def __repr__(self) -> str:
        sides = f"data {_said(self.data_memory)}, diff {_said(self.diff_memory)}"
        return f"<Blob {self.shape_string} {self.dtype}, {sides}>"


for _layer in (Shaped, Pair, Viewed, Stored):
    for _name, _function in vars(_layer).items():
        if isinstance(_function, FunctionType):
            _function.__qualname__ = f"{Blob.__name__}.{_name}"  # users know no layers, and Python's errors show it


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
