"""Files as every room reads and writes them: replaced as a whole or not at all, and JSON that anybody may have written.

It is here because the runtime, the spec and the command line all need it, and none of them may import the other.
Python's standard library is enough.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import stat
from contextlib import suppress
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Never

from .errors import AllocationError, FileAccessError, FileFormatError, InvalidArgumentError, SyncedMemoryError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MOST_TEXT",
    "StoredPath",
    "check_regular",
    "checked_path",
    "parsed_json",
    "read_bytes",
    "read_text",
    "refused",
    "size_of",
    "write_whole",
]

StoredPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""What a path may be given as."""

MOST_TEXT = 16 << 20
"""The longest text of a file that is read, in bytes: our largest suite of vectors has 11 million."""

_PART = ".syncedmem-{}.part"
_PARTS = re.compile(_PART.format("[0-9a-f]{16}"))


def checked_path(path: StoredPath) -> str:
    """A path as errors show it.

    Raises
    ------
    InvalidArgumentError
        It is no path.
    """
    try:
        return os.fsdecode(path)
    except TypeError as error:
        raise InvalidArgumentError("path", path, "a path: a str, bytes or os.PathLike") from error


def check_regular(name: str, mode: int) -> None:
    """Refuse what is no regular file, given the mode of it.

    Raises
    ------
    FileAccessError
        It is a directory, a pipe, a device...
    """
    if not stat.S_ISREG(mode):
        raise FileAccessError(name, f"it is {'a directory' if stat.S_ISDIR(mode) else 'no regular file'}")


def refused(name: str, error: OSError | ValueError) -> FileAccessError:
    """What the system says about a file, as an error of the family."""
    if isinstance(error, IsADirectoryError):
        return FileAccessError(name, "it is a directory", error.errno)
    if isinstance(error, OSError):
        return FileAccessError(name, error.strerror or str(error), error.errno)
    return FileAccessError(name, str(error))


# --- writing


def write_whole(path: StoredPath, write: Callable[[IO[bytes]], object]) -> None:
    """Put a new file in place of what is at a path, once all of it is on the disk.

    Until then the bytes are in a file beside it, which has the permissions and, where the system lets us, the owner of
    the old file before its first byte.  A link stays a link.  If anything is raised, the old file is still there and
    nothing is left beside it; what a killed process has left in the folder, the next call removes.

    Parameters
    ----------
    path : str or os.PathLike
    write : callable
        ``write(file)`` writes the contents.

    Raises
    ------
    FileAccessError
        The file cannot be written, or there is something else than a file at the path.
    InvalidArgumentError
        It is no path.
    """
    name = checked_path(path)
    old = _status(name)
    target = Path(os.path.realpath(name))
    _sweep(target.parent)
    part, file = target.with_name(_PART.format(secrets.token_hex(8))), None
    # No `with`: an interrupt may come before the first line of a context manager's __exit__.
    try:
        # Again if it is gone: another process found it before it was locked, and took it for left over.
        while file is None or not os.fstat(file.fileno()).st_nlink:
            file = open(part, "xb", opener=partial(os.open, mode=0o666 if old is None else 0o600))  # noqa: SIM115 -- see above
            _claim(file, old)
        write(file)
        file.flush()
        os.fsync(file.fileno())
        part.replace(target)
        file.close()
    except BaseException as error:
        if file is not None:
            with suppress(OSError):  # as before: the disk is full
                file.close()
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and not isinstance(error, SyncedMemoryError):
            raise refused(name, error) from error
        raise
    _sync_folder(target.parent)


def _status(name: str) -> os.stat_result | None:
    """What is known of a file that is to be replaced; nothing, if there is none."""
    try:
        status = Path(name).stat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # a loop of links, for one; ValueError: a null character
        raise refused(name, error) from error
    check_regular(name, status.st_mode)
    return status


def _claim(file: IO[bytes], old: os.stat_result | None) -> None:
    """Lock a new file for as long as it is open, and make it as private as the old one."""
    with suppress(OSError):  # where files cannot be locked, none is swept away either
        fcntl.flock(file, fcntl.LOCK_EX)
    if old is not None:
        with suppress(OSError):  # whoever is not root cannot give files away
            os.fchown(file.fileno(), -1, old.st_gid)
            os.fchown(file.fileno(), old.st_uid, -1)
        os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def _sweep(folder: Path) -> None:
    """Remove what killed processes have left in a folder: new files that nobody has locked.

    What cannot be looked at stays.
    """
    with suppress(OSError):
        for name in filter(_PARTS.fullmatch, os.listdir(folder)):  # noqa: PTH208 -- half the time, and a folder may be full
            part = folder / name
            with suppress(OSError, FileAccessError):
                check_regular(name, part.lstat().st_mode)
                with part.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    part.unlink()


def _sync_folder(folder: Path) -> None:
    """Write down that the new file is there; where a folder cannot be synced, the system does so in its own time."""
    opened: list[int] = []
    with suppress(OSError):
        try:
            # Calls of C alone, so that no interrupt comes while a descriptor is open and in no list.
            opened.extend(map(os.open, [folder], [os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC]))
            os.fsync(opened[0])
            _close(opened)
        except BaseException:
            _close(opened)
            raise


def _close(opened: list[int]) -> None:
    """Close a descriptor, if there is one in the list, and take it out."""
    any(map(os.close, map(methodcaller("pop"), [opened] if opened else [])))


# --- reading what somebody names


def read_bytes(path: StoredPath, most: int) -> bytes:
    """All of a regular file; a pipe or a device is refused, because it has no size.

    Parameters
    ----------
    path : str or os.PathLike
    most : int
        How many bytes it may have; of a longer file nothing is read.

    Raises
    ------
    FileAccessError
        It cannot be read.
    FileFormatError
        It is longer, or becomes shorter while it is read.
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
        raise FileFormatError(name, f"it ends at byte {len(content):,}, and it had {size:,}")
    return content


def size_of(path: StoredPath) -> int:
    """The size of a regular file, in bytes.

    Raises
    ------
    FileAccessError
        It is none, or cannot be looked at.
    """
    name = checked_path(path)
    try:
        status = Path(name).stat()
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise refused(name, error) from error
    check_regular(name, status.st_mode)
    return status.st_size


def read_text(path: StoredPath, wanted: str) -> str:
    """The text in a file.

    A pipe that has a writer is read to its end; without one it is as good as empty, and is not waited for.

    Parameters
    ----------
    path : str or os.PathLike
    wanted : str
        What the text should be, for errors.

    Raises
    ------
    FileAccessError
        It cannot be read.
    FileFormatError
        It is empty, no text, or longer than `MOST_TEXT`, of which no more is read.
    """
    name = checked_path(path)
    try:
        # Not to be blocked by a pipe that nobody writes to.
        with open(path, "rb", opener=lambda it, flags: os.open(it, flags | os.O_NONBLOCK)) as file:
            os.set_blocking(file.fileno(), True)
            content = file.read(MOST_TEXT + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise refused(name, error) from error
    if len(content) > MOST_TEXT:
        raise FileFormatError(name, f"it has more than {MOST_TEXT:,} bytes; wanted is {wanted}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(name, f"this is no text; wanted is {wanted}", error.start) from error
    if not text.strip():
        raise FileFormatError(name, f"the file is empty; wanted is {wanted}")
    return text


def parsed_json(source: str, text: str) -> Any:  # noqa: ANN401 -- JSON may be anything
    """What JSON says, if it is JSON and says it once.

    Raises
    ------
    FileFormatError
        It is broken, nested too deeply, has a number that is none or that Python does not read, or one name twice in
        an object.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise FileFormatError(source, f"this is broken JSON: {reason}") from error
    except RecursionError as error:
        raise FileFormatError(source, "this is broken JSON: it is nested too deeply") from error
    except ValueError as error:  # ours from below, or a number with more digits than Python reads
        raise FileFormatError(source, f"this is broken JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"it says {shown(name)} twice")
        found[name] = value
    return found


def _no_number(name: str) -> Never:
    raise ValueError(f"{name} is no number")
