"""Files that are one `BlobProto`; Caffe writes them for the mean of a data set: ``mean.binaryproto``."""

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
    """Write a blob of the shape of ``data`` so that Caffe's own programs can read it.

    Raises
    ------
    MissingPackageError
        If the protobuf package is not installed.
    FileAccessError
        If the file cannot be written; an old file is still there.
    FileFormatError
        If no blob has that shape, ``diff`` does not have as many values, or a message cannot hold so many.
    InvalidArgumentError
        If an argument is no array of float32 or float64.
    AllocationError
        If there is no room.
    """
    check_binaryproto(path, data, diff)
    write_whole(path, lambda file: write_binaryproto(file, data, diff))


def check_binaryproto(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:  # noqa: ARG001 -- as of every kind of file
    """Refuse what `save_binaryproto` refuses, except for the path."""
    check_blob(getattr(data, "shape", ()), data, diff)


def write_binaryproto(file: IO[bytes], data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    """Write arrays that were checked."""
    file.write(encoded(data.shape, data, diff))


def load_binaryproto(path: StoredPath) -> BlobContents:
    """Read a blob; all of it is checked before any array is made.

    Raises
    ------
    MissingPackageError
        If the protobuf package is not installed.
    FileAccessError
        If the file cannot be read.
    FileFormatError
        If it is no `BlobProto`, or describes no possible blob.
    AllocationError
        If there is no room.
    """
    name = checked_path(path)
    return contents_of(parsed("BlobProto", read_bytes(path, MOST_BYTES), name), name)
