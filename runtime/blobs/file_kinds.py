"""The kinds of files that hold one blob, by the end of the file's name."""

from __future__ import annotations

from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import InvalidArgumentError
from syncedmem.model.files import StoredPath, checked_path

from .array_files import check_npy, check_npz, load_npy, load_npz, write_npy, write_npz
from .binaryproto import check_binaryproto, load_binaryproto, write_binaryproto

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .contents import BlobContents

__all__ = ["FileKind", "file_kind"]


class FileKind(NamedTuple):
    """The functions of a kind of files: how to load it, how to check what is to be written, and how to write it.

    ``check`` gets the path, the data, and the diff or None; the arrays have at least the right shape and type.
    ``write`` gets the open file and the real arrays.
    """

    load: Callable[[StoredPath], BlobContents]
    check: Callable[[StoredPath, NDArray[Any], NDArray[Any] | None], None]
    write: Callable[[IO[bytes], NDArray[Any], NDArray[Any] | None], None]


_KINDS = {
    ".npy": FileKind(load_npy, check_npy, write_npy),
    ".npz": FileKind(load_npz, check_npz, write_npz),
    ".binaryproto": FileKind(load_binaryproto, check_binaryproto, write_binaryproto),
}


def file_kind(path: StoredPath) -> FileKind:
    """The kind of a file."""
    suffix = PurePath(checked_path(path)).suffix
    kind = _KINDS.get(suffix)
    if kind is None:
        many = " (load_caffemodel reads the many blobs of a .caffemodel)" if suffix == ".caffemodel" else ""
        raise InvalidArgumentError("path", path, f"a name that ends in {', '.join(_KINDS)}{many}")
    return kind
