"""Where a corpus is: a folder, or a URL that fsspec opens.

fsspec is optional: only this module imports it.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from syncedmem.model import FileAccessError, MissingPackageError
from syncedmem.model.files import MOST_TEXT, read_text, refused, write_whole

from .finding import TargetError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Folder", "Remote", "Storage", "is_url", "storage"]

_URL = re.compile(r"[A-Za-z][\w+.-]*(::|://)")


class Storage(Protocol):
    """Small files with names."""

    def names(self) -> list[str]:
        """The names that end in ``.json``, sorted."""
        ...

    def where(self, name: str) -> str:
        """Where a file is, as errors show it."""
        ...

    def read(self, name: str, wanted: str) -> str:
        """The text of a file."""
        ...

    def add(self, name: str, content: bytes) -> None:
        """Write a file whole, unless there is one of this name."""
        ...


def is_url(place: str | Path) -> bool:
    """Whether it is a URL, and not the path of a folder."""
    return bool(_URL.match(str(place)))


def storage(place: str | Path) -> Storage:
    """The storage at a place.

    Raises
    ------
    FileAccessError
        If it cannot be read or made.
    MissingPackageError
        If it is a URL, and fsspec is not installed.
    TargetError
        If it is a URL that fsspec cannot open.
    """
    return Remote(str(place)) if is_url(place) else Folder(Path(place))


class Folder:
    """A folder, which is made if it is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise FileAccessError(str(folder), "it is not a directory", error.errno) from error
        except OSError as error:
            raise refused(str(folder), error) from error

    def names(self) -> list[str]:
        """The names that end in ``.json``, sorted."""
        try:
            return sorted(it.name for it in self._folder.glob("*.json"))
        except OSError as error:
            raise refused(str(self._folder), error) from error

    def where(self, name: str) -> str:
        """The path of a file."""
        return str(self._folder / name)

    def read(self, name: str, wanted: str) -> str:
        """The text of a file."""
        return read_text(self._folder / name, wanted)

    def add(self, name: str, content: bytes) -> None:
        """Write a file whole, unless there is one of this name."""
        path = self._folder / name
        if not path.exists():
            write_whole(path, lambda file: file.write(content))


class Remote:
    """A folder at a URL."""

    def __init__(self, url: str) -> None:
        try:
            library: Any = import_module("fsspec")
        except ModuleNotFoundError as error:
            raise MissingPackageError("a corpus at a URL", "fsspec", "cluster") from error
        self._url = url.rstrip("/")
        try:
            self._files, self._root = library.core.url_to_fs(self._url)
        except (ValueError, ImportError) as error:
            raise TargetError(f"{url} cannot be opened: {error}") from error
        self._tried(lambda: self._files.makedirs(self._root, exist_ok=True))

    def names(self) -> list[str]:
        """The names that end in ``.json``, sorted."""
        found: list[str] = self._tried(lambda: self._files.ls(self._root, detail=False, refresh=True))
        return sorted(name for it in found if (name := it.rsplit("/", 1)[-1]).endswith(".json"))

    def where(self, name: str) -> str:
        """The URL of a file."""
        return f"{self._url}/{name}"

    def read(self, name: str, wanted: str) -> str:
        """The text of a file."""
        del wanted
        content: bytes = self._tried(lambda: self._files.cat_file(self._path(name), end=MOST_TEXT))
        return content.decode(errors="replace")

    def add(self, name: str, content: bytes) -> None:
        """Write a file whole: a store of objects does so, and elsewhere it gets its name at the end."""
        path = self._path(name)
        if self._tried(lambda: self._files.exists(path)):
            return

        def write() -> None:
            with self._files.transaction, self._files.open(path, "wb") as file:
                file.write(content)

        self._tried(write)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _tried(self, call: Callable[[], Any]) -> Any:
        """What a call returns; each library below fsspec has its own errors.

        Raises
        ------
        FileAccessError
        """
        try:
            return call()
        except OSError as error:
            raise refused(self._url, error) from error
        except Exception as error:
            raise FileAccessError(self._url, " ".join(str(error).split()) or type(error).__name__) from error
