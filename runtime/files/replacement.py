"""Files that are written as a whole, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .byte_source import StoredPath, check_regular, checked_path, refused

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["replacing"]


@contextmanager
def replacing(path: StoredPath) -> Generator[IO[bytes]]:
    """A new file beside the path, which takes its place at the end of the ``with`` block.

    If the block raises, or anything else does, what was at the path is still there and nothing is left beside it.  A
    link stays a link, and the new file has the permissions of the old one.

    Raises
    ------
    FileAccessError
        The file cannot be written, or there is something else than a file at the path.
    InvalidArgumentError
        It is no path.
    """
    name = checked_path(path)
    try:
        target = Path(os.path.realpath(name))
        mode = target.stat().st_mode if target.exists() else None
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise refused(name, error) from error
    if mode is not None:
        check_regular(name, mode)
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
        if mode is not None:
            part.chmod(stat.S_IMODE(mode))
        part.replace(target)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            raise refused(name, error) from error
        raise
