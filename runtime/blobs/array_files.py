"""Blobs in NumPy's own files: ``.npy`` for the data alone, ``.npz`` for data and diff.

A header is compared with the size of the file before memory is taken; NumPy takes the memory first.  Nothing is ever
unpickled.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import FileFormatError
from syncedmem.model.errors import shown, words
from syncedmem.model.files import checked_path, refused, size_of, write_whole

from .contents import BlobContents, checked_array, checked_shape, empty

if TYPE_CHECKING:
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

_TYPES = tuple(map(np.dtype, ("float16", "float32", "float64", "int32", "uint32")))
_DESCRIPTIONS = {f"{order}{dtype.str[1:]}": np.dtype(f"{order}{dtype.str[1:]}") for dtype in _TYPES for order in "<>"}
_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}
"""How many bytes store the length of the header, by version of the format."""
_LONGEST_HEADER = 10_000
"""The longest header in bytes; NumPy's own limit."""
_ENTRY = re.compile(
    r""" *["'](descr|fortran_order|shape)["'] *: *(["'][^"']*["']|True|False|\([0-9, ]*\)) *(?:,|(?=\}))"""
)
_MOST_AT_ONCE = 1 << 20
"""How many bytes of a file are read at once.  The directory of an archive may not have more."""
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
    with _Pieces(path) as file:
        data = _array(file, file.size, file.shown)
    return BlobContents(data.shape, data, None)


def save_npz(
    path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None = None, *, compressed: bool = False
) -> None:
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
    write_whole(path, lambda file: write_npz(file, data, diff, compressed=compressed))


def check_npz(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    """Refuse what `save_npz` refuses, except for a path that cannot be written."""
    for name, array in _named(data, diff).items():
        _check_array(name, array, path)
    if diff is not None and diff.shape != data.shape:
        raise _different(path, data, diff)


def write_npz(file: IO[bytes], data: NDArray[Any], diff: NDArray[Any] | None, *, compressed: bool = False) -> None:
    """Write arrays that were checked."""
    save: Any = np.savez_compressed if compressed else np.savez
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
    with _Pieces(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
                data = _member(archive, "data.npy", file)
                diff = _member(archive, "diff.npy", file) if "diff.npy" in names else None
        except (FileFormatError, MemoryError):
            raise
        except Exception as error:  # for a damaged archive zipfile raises nearly anything
            raise FileFormatError(file.shown, f"it cannot be read as an .npz file: {words(error)}") from error
    if diff is not None and diff.shape != data.shape:
        raise _different(path, data, diff)
    return BlobContents(data.shape, data, diff)


class _Pieces(io.FileIO):
    """A regular file that is only read in small pieces, whatever lengths the file itself contains."""

    def __init__(self, path: StoredPath) -> None:
        self.shown = checked_path(path)
        self.size = size_of(path)
        try:
            super().__init__(path)
        except OSError as error:
            raise refused(self.shown, error) from error

    def readinto(self, buffer: Any) -> int:
        try:
            return super().readinto(buffer) or 0
        except OSError as error:
            raise refused(self.shown, error) from error

    def read(self, size: int | None = -1) -> bytes:
        left = max(self.size - self.tell(), 0)
        length = left if size is None or size < 0 else min(size, left)
        if length > _MOST_AT_ONCE:
            raise FileFormatError(self.shown, f"its directory has {length} bytes", self.tell())
        piece = bytearray(length)
        return bytes(piece[: self.readinto(piece)])


def _member(archive: zipfile.ZipFile, name: str, file: _Pieces) -> NDArray[Any]:
    """One array of an archive."""
    if name not in archive.namelist():
        raise FileFormatError(file.shown, f"there is no {name} in it")
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FileFormatError(file.shown, f"{name} is compressed in a way that NumPy does not use", info.header_offset)
    if info.compress_size > file.size or info.file_size > _MOST_DEFLATED * (info.compress_size + 1):
        reason = f"{name} cannot have {info.file_size} bytes in {info.compress_size}"
        raise FileFormatError(file.shown, reason, info.header_offset)
    with archive.open(info) as member:
        return _array(cast("io.BufferedIOBase", member), info.file_size, f"{file.shown}: {name}")


def _array(file: io.RawIOBase | io.BufferedIOBase, size: int, name: str) -> NDArray[Any]:
    """The array in a ``.npy`` file of `size` bytes."""
    shape, fortran_order, dtype, start = _header(file, name)
    axes = checked_shape(shape, name)
    wanted = math.prod(axes) * dtype.itemsize
    if size - start != wanted:
        reason = f"{wanted} bytes of values must follow, for {dtype.name} of shape {shape}, but {size - start} do"
        raise FileFormatError(name, reason, start)
    values = empty((math.prod(axes),), dtype)
    out = values.view(np.uint8).data
    at = 0
    while at < len(out):
        got = file.readinto(out[at : at + _MOST_AT_ONCE])
        if not got:
            raise FileFormatError(name, "it is cut short", start + at)
        at += got
    array = values.reshape(axes, order="F" if fortran_order else "C")
    return np.asarray(array, dtype.newbyteorder("="), order="C")


def _header(file: io.RawIOBase | io.BufferedIOBase, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, order, element type, and the position where the values start.

    NumPy is not used, because it evaluates the header as a Python literal.
    """
    begin = _exactly(file, len(_MAGIC) + 2, name, 0)
    width = _LENGTH_BYTES.get(begin[len(_MAGIC)])
    if not begin.startswith(_MAGIC) or width is None:
        raise FileFormatError(name, "it is no .npy file of version 1, 2 or 3", 0)
    length = int.from_bytes(_exactly(file, width, name, len(begin)), "little")
    start = len(begin) + width
    if length > _LONGEST_HEADER:
        raise FileFormatError(name, f"its header has {length} bytes", len(begin))
    text = _exactly(file, length, name, start).decode("latin-1")
    entries = _entries(text)
    try:
        parts = entries["shape"].strip("()").split(",")
        shape = tuple(map(int, parts if parts[-1].strip() else parts[:-1]))
        fortran_order = {"True": True, "False": False}[entries["fortran_order"]]
        description = entries["descr"][1:-1]
    except (KeyError, ValueError) as error:
        raise FileFormatError(name, f"its header describes no blob: {shown(text.strip())}", start) from error
    dtype = _DESCRIPTIONS.get(description)
    if dtype is None:
        types = ", ".join(map(str, _TYPES))
        reason = (
            f"its elements are {shown(description)}, and files of blobs have {types}; load it with NumPy to convert it"
        )
        raise FileFormatError(name, reason, start)
    return shape, fortran_order, dtype, start + length


def _entries(header: str) -> dict[str, str]:
    """The values of a header, by key; empty if it is not written as Python writes such a dictionary."""
    entries: dict[str, str] = {}
    at = 1
    while match := _ENTRY.match(header, at):
        entries[match[1]] = match[2]
        at = match.end()
    return entries if header[:1] + header[at:].strip() == "{}" else {}


def _exactly(file: io.RawIOBase | io.BufferedIOBase, length: int, name: str, position: int) -> bytes:
    piece = file.read(length) or b""
    if len(piece) < length:
        raise FileFormatError(name, "it is cut short", position + len(piece))
    return piece


def _check_array(name: str, array: object, path: StoredPath) -> None:
    checked_shape(checked_array(name, array, _TYPES).shape, checked_path(path))


def _different(path: StoredPath, data: NDArray[Any], diff: NDArray[Any]) -> FileFormatError:
    return FileFormatError(checked_path(path), f"data has shape {data.shape}, and diff has shape {diff.shape}")
