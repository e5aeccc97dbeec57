"""Where commands write: a file or standard output, and one clear error where that does not work.

A file that a command writes has the `SIGN`.  One without it is replaced only with ``--force``: `refuse_others` is the
one rule.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from syncedmem.model.errors import FileAccessError, InvalidArgumentError
from syncedmem.model.files import SIGN, write_whole

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = [
    "as_text",
    "check_place",
    "check_places",
    "check_report",
    "file_place",
    "is_other",
    "name_standard_output",
    "named",
    "place",
    "printable",
    "read_bytes",
    "refuse_others",
    "signed",
    "write",
    "write_over",
    "write_report",
    "write_reports",
]

STANDARD_OUTPUT = "standard output"
_LONGEST_LINE = 2_000
"""In characters; a line of a text that may be somebody else's is cut there."""
_READ = 1 << 10
"""So many bytes at the beginning of a file are looked at."""
_END = 1 << 16
"""So many at the end of a PDF: behind its properties is the table of its parts."""

_SIGNED: Mapping[str, str] = {
    **dict.fromkeys(("svg", "html", "xml"), "{first}\n<!-- {sign} -->\n"),
    **dict.fromkeys(("h", "pml"), "/* {sign} */\n{first}\n"),
    **dict.fromkeys(("dot", "hpp", "rs"), "// {sign}\n{first}\n"),
    "cfg": "\\* {sign}\n{first}\n",
    # JSON has no comments; this is the key that JSON Schema has for them.
    "json": '{first}\n  "$comment": "{sign}",\n',
    "md": "<!-- {sign} -->\n\n{first}\n",
    "mmd": "{first}\n%% {sign}\n",
    "puml": "{first}\n' {sign}\n",
    "tex": "% {sign}\n{first}\n",
    "tla": "{first}\n\\* {sign}\n",
    "txt": "{sign}\n{first}\n",
}
"""Where the sign stands, by the extension of a format: beside its first line, in a comment.

Pictures in pixels and for print, and vectors, have it from where they are made.  Files of findings have none: they
replace nothing, and what a port reads may have no line that is no request.
"""


def place(option: str, text: str, kind: str) -> Path:
    """The path that an option names."""
    if not text:
        raise InvalidArgumentError(option, text, f"the path of a {kind}")
    return Path(text)


def file_place(text: str) -> Path | None:
    """The file that ``--out`` names; None for ``-``, which is standard output."""
    return None if text == "-" else place("--out", text, "file")


def check_place(path: Path, *, force: bool, within: Path | None = None) -> None:
    """Refuse a path now that `write_over` would refuse later, after work that would be lost.  Nothing is made.

    Parameters
    ----------
    path : Path
    force, within
        As for `refuse_others`.
    """
    with named(str(path)):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        refuse_others(path, force=force, within=within)
        if _is_special(path):
            return
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    try:
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:  # which names a file that nobody asked for
        raise FileAccessError(str(path.parent), error.strerror or str(error), error.errno) from error


def refuse_others(path: Path, *, force: bool, within: Path | None = None) -> None:
    """Refuse to replace what no command has made: a file that somebody wrote, and a symbolic link.

    What is no file, such as a pipe or a device, is not replaced by `write`, and so it is not refused.  Nor is a name
    that the system has for an open file, such as ``/dev/stdout``, for being a link.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file and a link are replaced all the same; what a link leads to stays.
    within : Path, optional
        The folder that was named, if ``path`` was not: below it no folder may be a link, whatever ``force`` says.
    """
    below = path.parents[: path.parents.index(within)] if within in path.parents else ()
    if linked := next((str(folder) for folder in below if folder.is_symlink()), ""):
        raise FileAccessError(linked, "it is a symbolic link, and none is followed below the folder that is named")
    if force or _is_special(path):
        return
    if path.is_symlink() and not _is_open(path):
        raise FileAccessError(str(path), "it is a symbolic link, which is not followed; --force replaces the link")
    if is_other(path):
        raise FileAccessError(
            str(path),
            f"it is there without the sign {SIGN!r}, so somebody else may have written it; --force replaces it",
        )


def _is_special(path: Path) -> bool:
    """Whether there is something that is written to as it is, and never replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


_OPEN = re.compile(r"/dev/(stdin|stdout|stderr|fd/\d+)|/proc/(self|thread-self|\d+)(/task/\d+)?/fd/\d+")


def _is_open(path: Path) -> bool:
    """Whether it is a name by which the system has an open file; such a name is a link only for the system."""
    return bool(_OPEN.fullmatch(os.path.abspath(path)))  # noqa: PTH100 -- Path.resolve would follow it


def write(path: Path | None, content: str | bytes, *, follow: bool = True) -> None:
    """Write a file as a whole, in a folder that is made where there is none; without a path, to standard output.

    Parameters
    ----------
    path : Path or None
        What is there and is no file, such as a pipe or a device, is written to as it is.
    content : str or bytes
    follow : bool
        Whether the file is put where a symbolic link leads, as for a page that is edited; otherwise in its place.

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
            if _is_special(path):
                path.write_bytes(data)
            else:
                write_whole(path, lambda file: file.write(data), follow=follow or _is_open(path))


class _Report(Protocol):
    """What a command found out, in both formats."""

    def as_json(self) -> dict[str, Any]: ...

    def as_junit(self) -> str: ...


def check_places(json_path: str | None, junit: str | None, out: Path, *, force: bool) -> None:
    """Refuse places of reports that cannot be written to, before anything is tested.

    Raises
    ------
    InvalidArgumentError
        If both would go to one place.
    FileAccessError
    """
    if json_path is not None and json_path == junit:
        raise InvalidArgumentError("--junit", junit, "another place than that of --json")
    check_report("--json", json_path, force=force)
    check_report("--junit", junit, force=force)
    check_place(out / "report.json", force=force, within=out)


def check_report(option: str, where: str | None, *, force: bool) -> None:
    """Refuse a place for a report, as `check_place` does; without one, and for ``-``, there is nothing to refuse."""
    if where not in (None, "-"):
        check_place(place(option, str(where), "file"), force=force)


def write_reports(report: _Report, json_path: str | None, junit: str | None, *, force: bool) -> list[FileAccessError]:
    """Write the reports that were asked for; return why one could not be written."""
    errors: list[FileAccessError] = []
    texts = {json_path: (as_text(report.as_json()), "json"), junit: (report.as_junit(), "xml")}
    for where, (text, extension) in texts.items():
        try:
            write_report(where, text, extension, force=force)
        except FileAccessError as error:
            errors.append(error)
    return errors


def write_report(where: str | None, text: str, extension: str = "json", *, force: bool) -> None:
    """Write a report where it was asked for, which ``-`` is for standard output; without a place, nowhere."""
    if where == "-":
        write(None, text)
    elif where is not None:
        write_over({Path(where): signed(text, extension)}, force=force)


def as_text(data: dict[str, Any]) -> str:
    """A report as the text of a file."""
    return json.dumps(data, indent=2) + "\n"


def write_over(files: Mapping[Path, bytes], *, force: bool, within: Path | None = None) -> None:
    """Write all of some files, or none if one of them is refused by `refuse_others`, which has the parameters."""
    for path in files:
        with named(str(path)):
            refuse_others(path, force=force, within=within)
    for path, data in files.items():
        write(path, data, follow=False)


def signed(text: str, extension: str) -> bytes:
    """The contents of a file of this extension: the text with the sign."""
    first, rest = text.split("\n", 1)
    return (_SIGNED[extension].format(first=first, sign=SIGN) + rest).encode()


def is_other(path: Path) -> bool:
    """Whether there is a file that is not empty, and has no sign where signs stand.

    That is in the first two lines, so that a page may speak of the sign further down; in a PNG near the beginning, and
    in a PDF at the end, among the properties.
    """
    if not path.is_file():
        return False
    sign = SIGN.encode()
    with named(str(path)), path.open("rb") as file:
        begin = file.read(_READ)
        if begin.startswith(b"%PDF-"):
            file.seek(max(file.seek(0, os.SEEK_END) - _END, 0))
            return b"/Creator (%b)" % sign not in file.read()
        if begin.startswith(b"\x89PNG"):
            return b"tEXtComment\0%b" % sign not in begin
        lines = begin.split(b"\n", 2)[:2]
        return bool(begin.strip() or file.read(1)) and not any(sign in line for line in lines)


def printable(text: str, *, in_one_line: bool) -> str:
    """A text that may have words of somebody else's file, for a terminal: no line is endless, and nothing is obeyed."""
    if in_one_line:
        text = text.replace("\n", r"\n")
    return "\n".join(
        "".join(map(_shown, line[:_LONGEST_LINE])) + "..." * (len(line) > _LONGEST_LINE) for line in text.split("\n")
    )


def _shown(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def read_bytes(path: Path) -> bytes:
    """What is in a file."""
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
