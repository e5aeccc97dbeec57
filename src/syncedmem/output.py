"""Where commands write: a file or standard output, and one clear error where that does not work."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .model.errors import FileAccessError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["named", "place", "write"]


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


def write(path: Path | None, content: str | bytes) -> None:
    """Write a file, in a folder that is made where there is none; without a path, to standard output.

    Raises
    ------
    FileAccessError
        If the system does not let us; a folder that was made stays.
    """
    data = content.encode() if isinstance(content, str) else content
    with named("standard output" if path is None else str(path)):
        if path is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


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
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileAccessError(str(error.filename or source), error.strerror or str(error), error.errno) from error
