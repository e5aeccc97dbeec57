"""`Blob`: an N-dimensional array of numbers and the gradients that belong to them (002, 003; Caffe's blob.hpp).

Data and diff are a `SyncedMemory` each, so a blob is on the host and on the device at once, and nothing is copied or
allocated before somebody looks.  ``pair`` has the two memories and their shape, ``arithmetic`` what is computed.

Where Caffe would write past the end of something, or stop half-way, this class does not; docs/blobs.md lists every
difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsFloat, overload

import numpy as np

from syncedmem.model import InvalidShapeError

from . import arithmetic
from .blob_proto import read_proto, shape_equals, write_proto
from .pair import Pair, ScalarT, shape_in

if TYPE_CHECKING:
    from .allocator import DeviceAllocator
    from .blob_schema import BlobContents
    from .elements import Elements
    from .memory import SyncedMemory

    Device = DeviceAllocator | str | None

__all__ = ["Blob"]


class Blob(Pair[ScalarT]):
    """An array of numbers with gradients, on the host and on a device.

    ``Blob()`` has no axes and no elements, ``Blob(())`` no axes and one element, as in Caffe.

    Calls on one blob are not serialised, as those on a `SyncedMemory` are: threads that share one, and reshape, adopt
    or compute, have to take turns.

    Parameters
    ----------
    *shape : int, or one sequence of int
        A sequence of up to 32 extents, or an object with ``dim`` such as a ``BlobShape``; or four numbers: num,
        channels, height, width; nothing for an empty blob.
    dtype : numpy.dtype or type
        ``float32``, ``float64``, ``int32``, ``uint32``, ``float16`` or, with the package ``ml_dtypes``, ``bfloat16``.
        It may also follow the sequence, without its name.
    host, device : DeviceAllocator, str or None
        As for `SyncedMemory`.

    Raises
    ------
    InvalidShapeError, InvalidArgumentError, NoDeviceError
    """

    __slots__ = ()

    @overload
    def __init__(
        self: Blob[np.float32], *shape: Any, host: DeviceAllocator | None = None, device: Device = "auto"
    ) -> None: ...
    @overload
    def __init__(
        self,
        *shape: Any,
        dtype: type[ScalarT] | np.dtype[ScalarT],
        host: DeviceAllocator | None = None,
        device: Device = "auto",
    ) -> None: ...
    @overload
    def __init__(
        self: Blob[Any], *shape: Any, dtype: str, host: DeviceAllocator | None = None, device: Device = "auto"
    ) -> None: ...
    def __init__(self, *shape: Any, dtype: Any = None, host: Any = None, device: Any = "auto") -> None:
        if len(shape) == 2 and not hasattr(shape[0], "__index__") and dtype is None:  # noqa: PLR2004 -- Blob(shape, dtype)
            first, dtype = shape
            shape = (first,)
        super().__init__(shape_in(shape) if shape else None, np.float32 if dtype is None else dtype, host, device)

    # --- elements

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
            If `source` is no blob, or of another type; nothing has changed.
        AllocationError, DeviceError
            The blob has its old shape and memory; sides of both blobs may have been brought up to date.
        """
        self._check_same_type("source", source)
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
        """Subtract the diff from the data, where the data is (003:52-86; blob.cpp 174).

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
        """The sum of the squares of the data: the square of its L2 norm, and not the L1 norm of 003:92."""
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

    # --- messages

    def to_proto(self, write_diff: bool = False, proto: Any = None) -> Any:
        """The blob as a ``BlobProto``; brings the host side up to date (blob.cpp 519).

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
        if self._shape is None:
            raise InvalidShapeError((), "this blob was never given one, and a message cannot say so")
        return write_proto(self.shape, self.cpu_data(), self.cpu_diff() if write_diff else None, proto)

    def from_proto(self, proto: Any, reshape: bool = True) -> None:
        """Take shape, data and, if it is there, diff from a ``BlobProto`` or its bytes (blob.cpp 466).

        Numbers are converted to the blob's type.  A message without a diff leaves the diff as it is.

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
        AllocationError, DeviceError
            In every case shape and elements are as they were.
        """
        contents = read_proto(proto)
        if not reshape and (self._shape is None or not shape_equals(self._shape, proto)):
            reason = f"this blob has the shape {self.shape_string}, and reshape was not asked for"
            raise InvalidShapeError(contents.shape, reason)
        self._fill(contents if reshape else contents._replace(shape=self.shape))

    def shape_equals(self, proto: Any) -> bool:
        """Whether the blob has the shape of a ``BlobProto`` or its bytes (blob.cpp 410).

        The four old fields, if the message has any of them, are compared from the last axis backwards.
        """
        return shape_equals(self.shape, proto)

    def _fill(self, contents: BlobContents) -> None:
        """Take over what was read, on the host."""
        fitted = self._fitted(contents.shape)
        pairs = [(it, values) for it, values in zip(fitted, contents[1:], strict=True) if values is not None]
        for elements, _ in pairs:
            elements.mutable_cpu_data()  # all that can fail, before any element is overwritten
        for elements, values in pairs:
            with np.errstate(all="ignore"):
                np.copyto(elements.mutable_cpu_data(), values.reshape(contents.shape), casting="unsafe")
        self._take(contents.shape, fitted)

    # --- what it is

    def __repr__(self) -> str:
        sides = f"data {_said(self.data_memory)}, diff {_said(self.diff_memory)}"
        return f"<Blob {self.shape_string} {self.dtype}, {sides}>"


def _said(memory: SyncedMemory) -> str:
    """A memory in a few words, without the brackets."""
    return f"[{repr(memory).removeprefix('<SyncedMemory ').removesuffix('>')}]"
