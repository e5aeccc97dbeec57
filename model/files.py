"""Reading and writing of files, for every room: files are replaced whole or not at all, and JSON may be hostile.

The module is in the model because the runtime, the spec and the command line all need it, and they may not import
each other.  It needs only Python's standard library.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
import time
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Never

from .errors import AllocationError, FileAccessError, FileFormatError, InvalidArgumentError, SyncedMemoryError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MOST_TEXT",
    "StoredPath",
    "checked_path",
    "parsed_json",
    "read_bytes",
    "read_text",
    "refused",
    "size_of",
    "write_whole",
]

StoredPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""The types of a path."""

MOST_TEXT = 16 << 20
"""The most bytes of a text file that are read: our largest suite of vectors has 11 million."""

_PART = ".syncedmem-{}.part"
_PARTS = re.compile(_PART.format("[0-9a-f]{16}"))
_DAY = 24 * 60 * 60


def checked_path(path: StoredPath) -> str:
    """The path as a string, as errors show it."""
    try:
        return os.fsdecode(path)
    except TypeError as error:
        raise InvalidArgumentError("path", path, "a path: a str, bytes or os.PathLike") from error


def refused(name: str, error: OSError | ValueError) -> FileAccessError:
    """The system's error about a file as an error of our family."""
    if isinstance(error, IsADirectoryError):
        return FileAccessError(name, "it is a directory", error.errno)
    if isinstance(error, OSError):
        return FileAccessError(name, error.strerror or str(error), error.errno)
    return FileAccessError(name, str(error))


def _status(name: str, *, follow: bool = True) -> os.stat_result:
    """The status of a regular file; or of a link, if it is not to be followed."""
    try:
        status = Path(name).stat(follow_symlinks=follow)
    except (OSError, ValueError) as error:  # for example a loop of links; ValueError: a null character
        raise refused(name, error) from error
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise FileAccessError(name, f"it is {'a directory' if stat.S_ISDIR(status.st_mode) else 'not a regular file'}")
    return status


# --- writing


def write_whole(path: StoredPath, write: Callable[[IO[bytes]], object], *, follow: bool = True) -> None:
    """Put a new file in place of the file at a path, when all of it is on the disk.

    Until then the bytes are in a new file beside it.  Before its first byte the new file gets the permissions and, if
    the system allows it, the owner of the old file.  If anything is raised, the old file is still there, and the new
    file is removed.  If the process is killed, a call on a later day removes its new file.

    Parameters
    ----------
    path : str or os.PathLike
    write : callable
        ``write(file)`` writes the contents.
    follow : bool
        Whether a symbolic link stays one, and the new file is put where it leads; otherwise the new file is put in
        place of the link.

    Raises
    ------
    FileAccessError
        The file cannot be written, or the path is not that of a file.
    InvalidArgumentError
        It is not a path.
    """
    name = checked_path(path)
    old = _replaced(name, follow)
    target = Path(os.path.realpath(name)) if follow else Path(name)
    _sweep(target.parent)
    part = target.with_name(_PART.format(secrets.token_hex(8)))
    mode = 0o666 if old is None else 0o600
    try:
        # Not a file of `tempfile`: those are private, and nobody can ask which permissions a new file should have.
        with open(part, "xb", opener=partial(os.open, mode=mode)) as file:
            if old is not None:
                _make_alike(file, old)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and not isinstance(error, SyncedMemoryError):
            raise refused(name, error) from error
        raise
    _sync_folder(target.parent)


def _replaced(name: str, follow: bool) -> os.stat_result | None:
    """The status of the file that will be replaced; None if there is none, or a link that is not followed."""
    try:
        status = _status(name, follow=follow)
    except FileAccessError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return None if stat.S_ISLNK(status.st_mode) else status


def _make_alike(file: IO[bytes], old: os.stat_result) -> None:
    """Give a new file the permissions of the old one and, if the system lets us, its owner."""
    with suppress(OSError):  # only root can give files away
        os.fchown(file.fileno(), -1, old.st_gid)
        os.fchown(file.fileno(), old.st_uid, -1)
    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def _sweep(folder: Path) -> None:
    """Remove new files that killed processes left in a folder: those to which nobody has written for a day."""
    with suppress(OSError):
        for name in filter(_PARTS.fullmatch, os.listdir(folder)):  # noqa: PTH208 -- half the time, and a folder may be full
            with suppress(OSError):
                status = (folder / name).lstat()
                if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _DAY:
                    (folder / name).unlink()


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name is on the disk; if that is not possible, the system does it later."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


# --- reading files that the user names


def read_bytes(path: StoredPath, most: int) -> bytes:
    """All of a regular file; a pipe or a device is refused, because it has no size.

    Parameters
    ----------
    path : str or os.PathLike
    most : int
        The most bytes that it may have; a longer file is not read at all.

    Raises
    ------
    FileAccessError
        It cannot be read.
    FileFormatError
        It is too long, or becomes shorter while it is read.
    AllocationError
        There is no room for it.
    """
    name, size = checked_path(path), size_of(path)
    if size > most:
        raise FileFormatError(name, f"it has {size:,} bytes, and at most {most:,} are read")
    try:
        with Path(name).open("rb") as file:
            content = file.read(size)
    except OSError as error:
        raise refused(name, error) from error
    except MemoryError as error:
        raise AllocationError("the host", size) from error
    if len(content) != size:
        raise FileFormatError(name, f"it ends at byte {len(content):,}, but it had {size:,} bytes")
    return content


def size_of(path: StoredPath) -> int:
    """The size of a regular file, in bytes."""
    return _status(checked_path(path)).st_size


def read_text(path: StoredPath, wanted: str) -> str:
    """The text in a file.

    A pipe is read to its end if it has a writer.  A pipe without a writer counts as empty; nothing waits for one.

    Parameters
    ----------
    path : str or os.PathLike
    wanted : str
        What the text should be; errors show it.

    Raises
    ------
    FileAccessError
        It cannot be read.
    FileFormatError
        It is empty, not text, or longer than `MOST_TEXT` (then the rest is not read).
    """
    name = checked_path(path)
    try:
        # Do not block on a pipe that has no writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            os.set_blocking(file.fileno(), True)
            content = file.read(MOST_TEXT + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise refused(name, error) from error
    if len(content) > MOST_TEXT:
        raise FileFormatError(name, f"it has more than {MOST_TEXT:,} bytes; expected {wanted}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(name, f"it is not text; expected {wanted}", error.start) from error
    if not text.strip():
        raise FileFormatError(name, f"the file is empty; expected {wanted}")
    return text


def parsed_json(source: str, text: str) -> Any:  # noqa: ANN401 -- JSON may be anything
    """The value of a JSON text, in which no object has the same name twice.

    Raises
    ------
    FileFormatError
        It is broken, nested too deeply, has a number that does not exist or that Python cannot read, or has a name
        twice in an object.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise FileFormatError(source, f"this is broken JSON: {reason}") from error
    except RecursionError as error:
        reason = f"it is nested too deeply: {_depth(text):,} levels"
        raise FileFormatError(source, f"this is broken JSON: {reason}") from error
    except ValueError as error:  # from `_once` or `_no_number` below, or a number with too many digits for Python
        raise FileFormatError(source, f"this is broken JSON: {error}") from error


_BESIDE_NESTING = re.compile(r'"(?:\\.|[^"\\])*"|[^\[\]{}"]+', re.DOTALL)


def _depth(text: str) -> int:
    """How deeply a JSON text is nested."""
    return max(accumulate(1 if bracket in "[{" else -1 for bracket in _BESIDE_NESTING.sub("", text)), default=0)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"the name {shown(name)} occurs twice in an object")
        values[name] = value
    return values


def _no_number(name: str) -> Never:
    raise ValueError(f"{name} is not a number")
