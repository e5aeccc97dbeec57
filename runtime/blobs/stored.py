"""`Stored`: blobs in Caffe's messages and in files, by the rules of ``schema`` (blob.cpp 410-555).

All that is read is checked, and all memory that is needed allocated, before any element is overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidShapeError
from syncedmem.model.files import write_whole

from ..allocators.pointers import as_flag
from ..files.blob_wire import planned
from ..files.kinds import file_kind
from ..files.proto import message_to_write, read_proto, shape_equals, write_proto
from ..files.schema import DTYPES
from .conversion import checked, fill
from .elements import check_viewable
from .pair import ScalarT
from .viewed import Viewed

if TYPE_CHECKING:
    from syncedmem.model.files import StoredPath

    from ..allocators.base import DeviceAllocator
    from ..files.schema import BlobContents
    from .blob import Blob

__all__ = ["Stored"]


class Stored(Viewed[ScalarT]):
    """Data and diff that can be written down and read back."""

    __slots__ = ()

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
        write_diff = as_flag(write_diff, "write_diff")
        if self._shape is None:
            raise InvalidShapeError((), "this blob was never given one, and a message cannot say so")
        if self.dtype not in DTYPES.values():
            raise InvalidArgumentError("dtype", self.dtype, "float32 or float64 for a blob in a message")
        message = message_to_write(proto)
        planned(self.shape, *self._stand_ins(write_diff))  # which refuses what is too long, before a head moves
        return write_proto(self.shape, self.cpu_data(), self.cpu_diff() if write_diff else None, message)

    def _stand_ins(self, write_diff: bool) -> tuple[Any, Any]:
        """Arrays that look like data and diff, if that is wanted, and have one element; no head moves for them."""
        check_viewable(self.shape, self.dtype)
        stand_in = np.broadcast_to(np.zeros((), self.dtype), self.shape)
        return stand_in, stand_in if write_diff else None

    def from_proto(self, proto: Any, reshape: bool = True) -> None:
        """Take shape, data and, if it is there, diff from a ``BlobProto`` or its bytes (blob.cpp 466).

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
        """Whether the blob has the shape of a ``BlobProto`` or its bytes (blob.cpp 410).

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
