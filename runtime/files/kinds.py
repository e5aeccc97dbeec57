"""Files of one blob, by the end of their name."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import FileFormatError, InvalidArgumentError

from .array_files import load_npy, load_npz, save_npy, save_npz
from .binaryproto import load_binaryproto, save_binaryproto
from .byte_source import StoredPath, checked_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .schema import BlobContents

__all__ = ["FileKind", "file_kind"]


class FileKind(NamedTuple):
    """How files of a kind are read, and how they are written: the path, the data, and the diff or None."""

    load: Callable[[StoredPath], BlobContents]
    save: Callable[[StoredPath, NDArray[Any], NDArray[Any] | None], None]


def _save_npy(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    if diff is not None:
        raise FileFormatError(checked_path(path), "a .npy file holds one array, and there is a diff; .npz holds both")
    save_npy(path, data)


_KINDS = {
    ".npy": FileKind(load_npy, _save_npy),
    ".npz": FileKind(load_npz, save_npz),
    ".binaryproto": FileKind(load_binaryproto, save_binaryproto),
}


def file_kind(path: StoredPath) -> FileKind:
    """The kind of a file.

    Raises
    ------
    InvalidArgumentError
        If its name ends in no kind that is known.
    """
    kind = _KINDS.get(PurePath(checked_path(path)).suffix)
    if kind is None:
        raise InvalidArgumentError("path", path, f"a name that ends in {', '.join(_KINDS)}")
    return kind
