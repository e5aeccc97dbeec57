"""A trace that somebody wants to open with the page: whether it is one, before there is a page.

The scripts of the page read it.  Here its form is looked at, so that the command line can say in one line what is
wrong with a file; which edition and which failures it asks for is for the page to judge.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS, Call, Input, inputs
from syncedmem.model.errors import FileAccessError, FileFormatError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_trace"]

_KINDS = ("devices", "findings", "program", "steps", "header", "manifest")
"""What one of these is there for is a report, a replay, or a line of a file of vectors."""

_PROGRAM = re.compile(r"\.make\(|memory\w*\s*=|memory\w*\.")
_WANTED = "a report of verify, a replay of fuzz, a file of vectors, a program of the kit, or calls by name"


def read_trace(path: Path) -> str:
    """The text of a file that holds a trace of some form.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
        All that is in it.

    Raises
    ------
    FileAccessError
        If it cannot be read.
    FileFormatError
        If it is empty, no text, broken JSON, or nothing that a trace could be.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileAccessError(str(path), error.strerror or str(error), error.errno) from error
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(str(path), f"this is no text; wanted is {_WANTED}", error.start) from error
    if not text.strip():
        raise FileFormatError(str(path), f"the file is empty; wanted is {_WANTED}")
    if text.lstrip()[0] in "{[":
        _check_json(path, text)
    elif not _PROGRAM.search(text):
        _check_names(path, text)
    return text


def _check_json(path: Path, text: str) -> None:
    """A document, a list of them, or one a line."""
    found: list[Any]
    try:
        data: Any = json.loads(text)
        found = data if text.lstrip().startswith("[") else [data]
    except json.JSONDecodeError as error:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError:
            where = f"line {error.lineno}, column {error.colno}: {error.msg}"
            raise FileFormatError(str(path), f"this is broken JSON: {where}") from error
    if not found or not all(isinstance(it, dict) and any(kind in it for kind in _KINDS) for it in found):
        raise FileFormatError(str(path), f"this is JSON, but no trace; wanted is {_WANTED}")


def _check_names(path: Path, text: str) -> None:
    """Calls by name, with what separates them and what arms them as the page reads it."""
    known = {str(entry) for edition in EDITIONS for entry in inputs(edition, null=True)} | {str(Input(Call.RELEASE))}
    for word in re.split(r"[\s,;]+", text.strip(" \t\r\n,;")):
        name = word.removesuffix("()").partition("!")[0]
        if name not in known:
            raise FileFormatError(str(path), f"there is no call {name!r:.80}; wanted is {_WANTED}")
