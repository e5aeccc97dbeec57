"""Where commands write: a file or standard output, and one clear error where that does not work."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from syncedmem.model.errors import FileAccessError, InvalidArgumentError, InvalidExportError
from syncedmem.model.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = [
    "check_place",
    "check_places",
    "file_place",
    "is_other",
    "name_standard_output",
    "named",
    "place",
    "read_bytes",
    "write",
    "write_over",
    "write_reports",
]

STANDARD_OUTPUT = "standard output"
_BEGIN = 16
"""So many bytes at the beginning are enough to know a file of a format again."""


def place(option: str, text: str, kind: str) -> Path:
    """The path that an option names.

    Raises
    ------
    InvalidArgumentError
        If it names none: an empty path would be the current folder.
    """
    if not text:
        raise InvalidArgumentError(option, text, f"the path of a {kind}")
    return Path(text)


def file_place(text: str) -> Path | None:
    """The file that ``--out`` names; None for ``-``, which is standard output.

    Raises
    ------
    InvalidArgumentError
        See `place`.
    """
    return None if text == "-" else place("--out", text, "file")


def check_place(path: Path) -> None:
    """Refuse a path now that `write` would refuse later, after work that would be lost.  Nothing is made.

    Raises
    ------
    FileAccessError
    """
    with named(str(path)):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not path.is_file():
            return
        folder = next(it for it in path.absolute().parents if it.exists())
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        with tempfile.TemporaryFile(dir=folder):
            return


def write(path: Path | None, content: str | bytes) -> None:
    """Write a file as a whole, in a folder that is made where there is none; without a path, to standard output.

    Parameters
    ----------
    path : Path or None
        What is there and is no file, such as a pipe or a device, is written to as it is.
    content : str or bytes

    Raises
    ------
    FileAccessError
        If the system does not let us, or standard output is closed; a folder that was made stays.
    """
    data = content.encode() if isinstance(content, str) else content
    with named(STANDARD_OUTPUT if path is None else str(path)):
        if path is None:
            _write_out(data)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file() and not path.is_dir():
                path.write_bytes(data)
            else:
                write_whole(path, lambda file: file.write(data))


class _Report(Protocol):
    """What a command found out, in both formats."""

    def as_json(self) -> dict[str, Any]: ...

    def as_junit(self) -> str: ...


def check_places(json_path: str | None, junit: str | None, out: Path) -> None:
    """Refuse places of reports that cannot be written to, before anything is tested.

    Raises
    ------
    InvalidArgumentError
        If both would go to one place.
    FileAccessError
    """
    if json_path is not None and json_path == junit:
        raise InvalidArgumentError("--junit", junit, "another place than that of --json")
    for text in (json_path, junit, str(out / "report.json")):
        if text not in (None, "-"):
            check_place(Path(str(text)))


def write_reports(report: _Report, json_path: str | None, junit: str | None) -> list[FileAccessError]:
    """Write the reports that were asked for; return why one could not be written."""
    errors: list[FileAccessError] = []
    texts = {json_path: json.dumps(report.as_json(), indent=2) + "\n", junit: report.as_junit()}
    for where, text in texts.items():
        try:
            if where is not None:
                write(None if where == "-" else Path(where), text)
        except FileAccessError as error:
            errors.append(error)
    return errors


def write_over(files: Mapping[Path, bytes], *, force: bool) -> None:
    """Write all of some files, or none if one would replace a file that somebody wrote by hand.

    Raises
    ------
    InvalidExportError
        If one would, without ``force``.
    FileAccessError
        See `write`.
    """
    for path, data in files.items():
        if not force and is_other(path, data):
            raise InvalidExportError(
                f"{path} is there, and does not begin like the file that would replace it; --force replaces it, and "
                "diagram --insert writes into a page of Markdown"
            )
    for path, data in files.items():
        write(path, data)


def is_other(path: Path, data: bytes) -> bool:
    """Whether there is a file that does not begin like what it would be replaced by."""
    there = read_bytes(path) if path.is_file() else b""
    return bool(there.strip()) and not there.startswith(data[:_BEGIN])


def read_bytes(path: Path) -> bytes:
    """What is in a file.

    Raises
    ------
    FileAccessError
    """
    with named(str(path)):
        return path.read_bytes()


def _write_out(data: bytes) -> None:
    stream: Any = sys.stdout
    if stream is None:  # as Python has it where descriptor 1 is closed
        raise OSError(errno.EBADF, "it is closed")
    stream.buffer.write(data)
    stream.buffer.flush()


def name_standard_output() -> None:
    """Let every error of standard output say its name from now on, whoever writes there."""
    stream: Any = sys.stdout
    if stream is not None:
        sys.stdout = cast("TextIO", _Named(stream))


class _Named:
    """A stream for text, the errors of which say that they are of standard output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with named(STANDARD_OUTPUT):
            return self._stream.write(text)

    def flush(self) -> None:
        with named(STANDARD_OUTPUT):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def named(source: str) -> Generator[None]:
    """Say of a system's error what it is about: of a full disk, for one, the system does not say it itself.

    Raises
    ------
    FileAccessError
        In place of any ``OSError``, but for a reader who has gone: that is no error of ours.
    """
    try:
        yield
    except (BrokenPipeError, FileAccessError):
        raise
    except OSError as error:
        raise FileAccessError(str(error.filename or source), error.strerror or str(error), error.errno) from error
