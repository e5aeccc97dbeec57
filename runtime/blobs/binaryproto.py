"""Files that are one `BlobProto`, as Caffe writes them for the mean of a data set: ``mean.binaryproto``."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from syncedmem.model.files import write_whole

from .blob_wire import encoded, planned, stored_blob
from .byte_source import FileSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from syncedmem.model.files import StoredPath

    from .contents import BlobContents

__all__ = ["check_binaryproto", "load_binaryproto", "save_binaryproto", "write_binaryproto"]


def save_binaryproto(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None = None) -> None:
    """Write a blob of the shape of ``data`` as Caffe's own programs read it.

    Raises
    ------
    FileAccessError
        The file cannot be written; what was there before is still there.
    FileFormatError
        No blob has that shape, ``diff`` does not have as many values, or there are more than protobuf can hold.
    InvalidArgumentError
        An array is none, or not of float32 or float64.
    """
    check_binaryproto(path, data, diff)
    write_whole(path, lambda file: write_binaryproto(file, data, diff))


def check_binaryproto(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:  # noqa: ARG001 -- as of every kind of file
    """Refuse what `save_binaryproto` refuses, except for the path."""
    planned(getattr(data, "shape", ()), data, diff)


def write_binaryproto(file: IO[bytes], data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    """Write what was checked."""
    file.write(encoded(data.shape, data, diff).data)


def load_binaryproto(path: StoredPath) -> BlobContents:
    """Read a blob; all of it is checked before any array is made.

    Raises
    ------
    FileAccessError
        The file cannot be read.
    FileFormatError
        It is no `BlobProto`, or no blob can be what it says.
    """
    with FileSource(path) as source:
        return stored_blob(source, 0, source.size).contents(source)
