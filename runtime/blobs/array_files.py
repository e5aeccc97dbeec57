"""Blobs in NumPy's own files: ``.npy`` for the data alone, ``.npz`` for data and diff.

NumPy reads and writes them, and nothing is ever unpickled.  Before it takes memory for the values, their number is
compared with the size of the file.
"""

from __future__ import annotations

import io
import math
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import FileFormatError
from syncedmem.model.errors import shown, words
from syncedmem.model.files import checked_path, refused, size_of, write_whole

from .contents import BlobContents, checked_array, checked_shape, empty
from .elements import OF_NUMPY

if TYPE_CHECKING:
    from collections.abc import Generator

    from numpy.typing import NDArray

    from syncedmem.model.files import StoredPath

__all__ = [
    "check_npy",
    "check_npz",
    "load_npy",
    "load_npz",
    "save_npy",
    "save_npz",
    "write_npy",
    "write_npz",
]

_TYPES = tuple(map(np.dtype, sorted(OF_NUMPY)))
_READERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_LONGEST_HEADER = 10_000
"""In bytes, what is read of a file for its header; NumPy's own limit."""
_MOST_AT_ONCE = 1 << 20
"""How many bytes of a file are read at once."""
_MOST_DEFLATED = 1032
"""How many bytes one byte of deflated data can become at most; a file that claims more is refused."""


def save_npy(path: StoredPath, data: NDArray[Any]) -> None:
    """Write the data of a blob, with its shape and type.

    Raises
    ------
    FileAccessError
        If the file cannot be written; an old file is still there.
    FileFormatError
        If no blob has that shape.
    InvalidArgumentError
        If it is no array of an element type of blobs.
    """
    check_npy(path, data)
    write_whole(path, lambda file: write_npy(file, data))


def check_npy(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None = None) -> None:
    """Refuse what `save_npy` refuses, except for a path that cannot be written; refuse a diff too."""
    if diff is not None:
        raise FileFormatError(checked_path(path), "a .npy file holds one array, and there is a diff; .npz holds both")
    _check_array("data", data, path)


def write_npy(file: IO[bytes], data: NDArray[Any], diff: NDArray[Any] | None = None) -> None:  # noqa: ARG001 -- as of every kind of file
    """Write data that was checked.  ``np.save`` does not tell why the system refuses a write, so it is not used."""
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(data))
    in_order = data.T if data.flags.f_contiguous and not data.flags.c_contiguous else data
    file.write(np.ascontiguousarray(in_order).reshape(-1).view(np.uint8).data)


def load_npy(path: StoredPath) -> BlobContents:
    """Read the data of a blob; such a file has no diff.

    Raises
    ------
    FileAccessError
        If the file cannot be read.
    FileFormatError
        If it is no ``.npy`` file of an element type of blobs, or has more or fewer bytes than its header says.
    """
    with _reading(path, "an .npy file") as (file, size):
        data = _array(file, size, checked_path(path))
    return BlobContents(data.shape, data, None)


def save_npz(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None = None) -> None:
    """Write data and diff of a blob, as the arrays ``data`` and ``diff`` of an archive.

    Raises
    ------
    FileAccessError
        If the file cannot be written; an old file is still there.
    FileFormatError
        If no blob has that shape, or ``diff`` has another one.
    InvalidArgumentError
        If an argument is no array of an element type of blobs.
    """
    check_npz(path, data, diff)
    write_whole(path, lambda file: write_npz(file, data, diff))


def check_npz(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    """Refuse what `save_npz` refuses, except for a path that cannot be written."""
    for name, array in _named(data, diff).items():
        _check_array(name, array, path)
    if diff is not None and diff.shape != data.shape:
        raise _different(path, data, diff)


def write_npz(file: IO[bytes], data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    """Write arrays that were checked."""
    save: Any = np.savez
    save(file, **_named(data, diff))


def _named(data: NDArray[Any], diff: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    return {"data": data} if diff is None else {"data": data, "diff": diff}


def load_npz(path: StoredPath) -> BlobContents:
    """Read data and, if there is one, diff; other arrays in the archive are ignored.

    Raises
    ------
    FileAccessError
        If the file cannot be read.
    FileFormatError
        If it is no archive, has no ``data``, or its arrays have other types or different shapes, or are damaged.
    """
    with _reading(path, "an .npz file") as (file, size), zipfile.ZipFile(file) as archive:
        data = _member(archive, "data.npy", size, checked_path(path))
        diff = _member(archive, "diff.npy", size, checked_path(path)) if "diff.npy" in archive.namelist() else None
    if diff is not None and diff.shape != data.shape:
        raise _different(path, data, diff)
    return BlobContents(data.shape, data, diff)


@contextmanager
def _reading(path: StoredPath, what: str) -> Generator[tuple[IO[bytes], int]]:
    """A regular file, open, and its size in bytes; whatever is wrong with its contents is a `FileFormatError`."""
    name, size = checked_path(path), size_of(path)
    try:
        with Path(name).open("rb") as file:
            yield file, size
    except OSError as error:
        raise refused(name, error) from error
    except (FileFormatError, MemoryError):
        raise
    except Exception as error:  # for a damaged archive zipfile raises nearly anything
        raise FileFormatError(name, f"it cannot be read as {what}: {words(error)}") from error


def _member(archive: zipfile.ZipFile, name: str, size: int, source: str) -> NDArray[Any]:
    """One array of an archive of `size` bytes."""
    if name not in archive.namelist():
        raise FileFormatError(source, f"there is no {name} in it")
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FileFormatError(source, f"{name} is compressed in a way that NumPy does not use", info.header_offset)
    if info.compress_size > size or info.file_size > _MOST_DEFLATED * (info.compress_size + 1):
        reason = f"{name} cannot have {info.file_size} bytes in {info.compress_size}"
        raise FileFormatError(source, reason, info.header_offset)
    with archive.open(info) as member:
        return _array(member, info.file_size, f"{source}: {name}")


def _array(file: IO[bytes], size: int, source: str) -> NDArray[Any]:
    """The array in a ``.npy`` file of `size` bytes."""
    head = io.BytesIO(file.read(_LONGEST_HEADER))  # NumPy would take as much memory as the file says the header has
    try:
        shape, fortran_order, dtype = _READERS[np.lib.format.read_magic(head)](head)
    except Exception as error:  # MemoryError and RecursionError too, which Python's parser raises
        raise FileFormatError(source, f"it is no .npy file of version 1 or 2: {words(error)}", 0) from error
    file.seek(head.tell())
    if dtype.newbyteorder("=") not in _TYPES:
        types = ", ".join(map(str, _TYPES))
        reason = (
            f"its elements are {shown(dtype.str)}, and files of blobs have {types}; load it with NumPy to convert it"
        )
        raise FileFormatError(source, reason, file.tell())
    axes = checked_shape(shape, source)
    wanted = math.prod(axes) * dtype.itemsize
    if size - file.tell() != wanted:
        reason = f"{wanted} bytes of values must follow, for {dtype.name} of shape {shape}, but {size - file.tell()} do"
        raise FileFormatError(source, reason, file.tell())
    values = empty((math.prod(axes),), dtype)
    out = values.view(np.uint8).data
    for start in range(0, wanted, _MOST_AT_ONCE):
        piece = file.read(min(_MOST_AT_ONCE, wanted - start))
        if len(piece) < min(_MOST_AT_ONCE, wanted - start):
            raise FileFormatError(source, "it is cut short", file.tell())
        out[start : start + len(piece)] = piece
    array = values.reshape(axes, order="F" if fortran_order else "C")
    return np.asarray(array, dtype.newbyteorder("="), order="C")


def _check_array(name: str, array: object, path: StoredPath) -> None:
    checked_shape(checked_array(name, array, _TYPES).shape, checked_path(path))


def _different(path: StoredPath, data: NDArray[Any], diff: NDArray[Any]) -> FileFormatError:
    return FileFormatError(checked_path(path), f"data has shape {data.shape}, and diff has shape {diff.shape}")
