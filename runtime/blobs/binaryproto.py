"""Files that are one `BlobProto`, as Caffe writes them for the mean of a data set: ``mean.binaryproto``."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from syncedmem.model.files import checked_path, read_bytes, write_whole

from .messages import MOST_BYTES, check_blob, contents_of, encoded, parsed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from syncedmem.model.files import StoredPath

    from .contents import BlobContents

__all__ = ["check_binaryproto", "load_binaryproto", "save_binaryproto", "write_binaryproto"]


def save_binaryproto(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None = None) -> None:
    """Write a blob of the shape of ``data`` as Caffe's own programs read it.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    FileAccessError
        The file cannot be written; what was there before is still there.
    FileFormatError
        No blob has that shape, ``diff`` does not have as many values, or there are more than protobuf can hold.
    InvalidArgumentError
        An array is none, or not of float32 or float64.
    AllocationError
    """
    check_binaryproto(path, data, diff)
    write_whole(path, lambda file: write_binaryproto(file, data, diff))


def check_binaryproto(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:  # noqa: ARG001 -- as of every kind of file
    """Refuse what `save_binaryproto` refuses, except for the path."""
    check_blob(getattr(data, "shape", ()), data, diff)


def write_binaryproto(file: IO[bytes], data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    """Write what was checked."""
    file.write(encoded(data.shape, data, diff))


def load_binaryproto(path: StoredPath) -> BlobContents:
    """Read a blob; all of it is checked before any array is made.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    FileAccessError
        The file cannot be read.
    FileFormatError
        It is no `BlobProto`, or no blob can be what it says.
    AllocationError
    """
    name = checked_path(path)
    return contents_of(parsed("BlobProto", read_bytes(path, MOST_BYTES), name), name)
