"""Files of one blob, by the end of their name."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from syncedmem.model import FileFormatError, InvalidArgumentError

from .array_files import load_npy, load_npz, save_npy, save_npz
from .binaryproto import load_binaryproto, save_binaryproto
from .byte_source import StoredPath, checked_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .blob_schema import BlobContents

    _Kind = tuple[Callable[[StoredPath], BlobContents], Callable[[StoredPath, Any, Any], None]]

__all__ = ["load_arrays", "save_arrays"]


def _save_npy(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    if diff is not None:
        raise FileFormatError(checked_path(path), "a .npy file holds one array, and there is a diff; .npz holds both")
    save_npy(path, data)


_KINDS: dict[str, _Kind] = {
    ".npy": (load_npy, _save_npy),
    ".npz": (load_npz, save_npz),
    ".binaryproto": (load_binaryproto, save_binaryproto),
}


def load_arrays(path: StoredPath) -> BlobContents:
    """Read data and, if it is there, diff.

    Raises
    ------
    FileAccessError, FileFormatError
    InvalidArgumentError
        If the name ends in no kind that is known.
    """
    load, _ = _kind(path)
    return load(path)


def save_arrays(path: StoredPath, data: NDArray[Any], diff: NDArray[Any] | None) -> None:
    """Write data and, unless it is None, diff; raises what `load_arrays` raises."""
    _, save = _kind(path)
    save(path, data, diff)


def _kind(path: StoredPath) -> _Kind:
    kind = _KINDS.get(PurePath(checked_path(path)).suffix)
    if kind is None:
        raise InvalidArgumentError("path", path, f"a name that ends in {', '.join(_KINDS)}")
    return kind
