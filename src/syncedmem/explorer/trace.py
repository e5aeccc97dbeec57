"""A trace that somebody wants to open with the page: whether it is one, before there is a page.

The scripts of the page read it.  Here its form is looked at, so that the command line can say in one line what is
wrong with a file; which edition and which failures it asks for is for the page to judge.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS
from syncedmem.model.errors import FileFormatError
from syncedmem.model.files import parsed_json, read_text
from syncedmem.model.states import stepper

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MOST_STEPS", "read_trace"]

MOST_STEPS = 10_000
"""The most steps that the page plays: programs of ``fuzz`` have up to 8192, and stepping on takes 0.3 s then."""

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
        If it is empty, no text, broken JSON, or nothing that a trace could be; if it is longer than
        `syncedmem.model.files.MOST_TEXT`, of which no more is read, or has more steps than `MOST_STEPS`.
    """
    text = read_text(path, _WANTED)
    if text.lstrip()[0] in "{[":
        steps = max(map(_steps, _documents(path, text)))
    elif _PROGRAM.search(text):
        steps = _lines(text)
    else:
        steps = _names(path, text)
    if steps > MOST_STEPS:
        raise FileFormatError(str(path), f"it has {steps:,} steps, and the page plays at most {MOST_STEPS:,}")
    return text


def _documents(path: Path, text: str) -> list[dict[str, Any]]:
    """What JSON holds: a document, a list of them, or one a line."""
    found = _parsed(path, text)
    if not found or not all(isinstance(it, dict) and any(kind in it for kind in _KINDS) for it in found):
        raise FileFormatError(str(path), f"it is JSON, but not a trace; expected {_WANTED}")
    return found


def _parsed(path: Path, text: str) -> list[Any]:
    try:
        data: Any = parsed_json(str(path), text)
    except FileFormatError as error:
        try:
            return [parsed_json(str(path), line) for line in text.splitlines() if line.strip()]
        except FileFormatError:
            raise error from None
    return data if text.lstrip().startswith("[") else [data]


def _steps(document: dict[str, Any]) -> int:
    """The steps of the longest trace in a document; what is of no known form has none."""
    violations = [it for device in _parts(document, "devices") for it in _parts(device, "violations")]
    traces = [_list(it, kind) for it in (document, *_parts(document, "findings")) for kind in ("steps", "program")]
    reproducers = [it.get("reproducer") for it in violations]
    return max([sum(map(_times, it)) for it in traces] + [_lines(it) for it in reproducers if isinstance(it, str)])


def _times(step: object) -> int:
    """The steps of an entry: of a loop of ``fuzz``, ``["repeat", times, steps]``, more than one."""
    loop: Any = step
    if not _is_a(list, step) or loop[:1] != ["repeat"]:
        return 1
    return loop[1] * len(loop[2]) if [type(it) for it in loop[1:3]] == [int, list] else 1


def _parts(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [it for it in _list(document, kind) if _is_a(dict, it)]


def _list(document: dict[str, Any], kind: str) -> list[Any]:
    found: list[Any] = document.get(kind, [])
    return found if _is_a(list, found) else []


def _is_a(kind: type, data: object) -> bool:
    return isinstance(data, kind)


def _lines(program: str) -> int:
    """The lines of a program, each of which makes one call at most."""
    return sum(bool(line.strip()) for line in program.splitlines())


def _names(path: Path, text: str) -> int:
    """How many calls by name there are, with what separates them and what arms them as the page reads it."""
    known = {str(entry) for machine in EDITIONS.values() for entry in stepper(machine).inputs(end=True)}
    words = re.split(r"[\s,;]+", text.strip(" \t\r\n,;"))
    for word in words:
        name = word.removesuffix("()").partition("!")[0]
        if name not in known:
            raise FileFormatError(str(path), f"there is no call {name!r:.80}; expected {_WANTED}")
    return len(words)
