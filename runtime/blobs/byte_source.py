"""Where stored bytes are read from: a buffer in memory, or a file that is never loaded as a whole.

Both are asked for bytes at a position, by readers that know how many there are.  A file is read with positioned
reads and is not mapped: a mapped file that somebody truncates ends the process, a short read is an error.
"""

from __future__ import annotations

import io
import math
import os
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from syncedmem.model import AllocationError, FileFormatError
from syncedmem.model.files import check_regular, checked_path, refused

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    from syncedmem.model.files import StoredPath

__all__ = [
    "ByteSource",
    "FileSource",
    "MemorySource",
    "empty",
]

_WINDOW = 8192
"""How much of a file is read at once while looking at its headers, in bytes."""


class ByteSource(Protocol):
    """Bytes with a name for errors; positions and lengths lie inside ``size``, which the reader sees to."""

    name: str
    size: int
    fields: int
    """How many fields of messages were looked at; ``wire_format`` counts them."""

    def at(self, position: int, length: int) -> bytes | memoryview:
        """A few bytes."""
        ...

    def values(self, position: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Many values, not copied if that can be: then the array is read-only."""
        ...

    def fill(self, position: int, out: NDArray[np.uint8]) -> None:
        """As many bytes as ``out`` has, into it."""
        ...


class MemorySource:
    """Bytes that are in memory already; `values` are views of them."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str) -> None:
        self.name = name
        self._view = memoryview(data).cast("B")
        self.size = len(self._view)
        self.fields = 0

    def at(self, position: int, length: int) -> memoryview:
        return self._view[position : position + length]

    def values(self, position: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        array = np.frombuffer(self._view, dtype, count, position)
        array.flags.writeable = False
        return array

    def fill(self, position: int, out: NDArray[np.uint8]) -> None:
        out[:] = np.frombuffer(self._view, np.uint8, len(out), position)


class FileSource:
    """A regular file, open while the source is; close it, or use it in a ``with`` block.

    Parameters
    ----------
    path
        Of the file.  A pipe or a device is refused: they have no size to check anything against.
    unchanged_since
        The ``stamp`` of an earlier source of the same file, which is refused if it is another one now.

    Raises
    ------
    FileAccessError
        The file cannot be opened, or is none.
    FileFormatError
        It has changed.
    """

    def __init__(self, path: StoredPath, unchanged_since: tuple[int, ...] | None = None) -> None:
        self.name = checked_path(path)
        try:
            check_regular(self.name, os.stat(path).st_mode)  # noqa: PTH116 -- a path may be bytes
            # A file object and no descriptor: wherever an interrupt comes, it closes itself.
            self._file = io.FileIO(path)
            status = os.fstat(self._file.fileno())
        except (OSError, ValueError) as error:  # ValueError: a null character
            raise refused(self.name, error) from error
        self.size = status.st_size
        self.stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if unchanged_since not in (None, self.stamp):
            self.close()
            raise FileFormatError(self.name, "it has changed since its structure was read")
        self.fields = 0
        self._base, self._window = 0, b""

    def at(self, position: int, length: int) -> bytes:
        start = position - self._base
        if not 0 <= start <= len(self._window) - length:
            window = np.empty(min(max(length, _WINDOW), self.size - position), np.uint8)
            self.fill(position, window)
            self._base, self._window, start = position, window.tobytes(), 0
        return self._window[start : start + length]

    def values(self, position: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        array = empty((count,), dtype)
        self.fill(position, array.view(np.uint8))
        return array

    def fill(self, position: int, out: NDArray[np.uint8]) -> None:
        left = out.data
        while left:
            try:
                got = os.preadv(self._file.fileno(), [left], position)
            except OSError as error:
                raise refused(self.name, error) from error
            if not got:
                raise FileFormatError(self.name, f"it ends here, and it had {self.size} bytes", position)
            left, position = left[got:], position + got

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array to read into.

    Raises
    ------
    AllocationError
        There is no room.
    """
    try:
        return np.empty(shape, dtype)
    except MemoryError as error:
        raise AllocationError("the host", math.prod(shape) * dtype.itemsize) from error
