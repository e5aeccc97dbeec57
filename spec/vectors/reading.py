"""Reads files of vectors, and says in one line what is wrong with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import FileFormatError
from syncedmem.model.files import parsed_json, read_text

from .keys import BLOB_STEP, LINE, MEMORY_STEP
from .replay import is_of_blobs
from .vector import FORMAT

if TYPE_CHECKING:
    from pathlib import Path

    from .keys import Key

__all__ = ["holds_vectors", "json_lines", "read_vectors"]


def json_lines(path: Path, wanted: str) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a file of JSON lines, with the numbers of their lines.

    Raises
    ------
    FileAccessError
        If it cannot be read.
    FileFormatError
        If a line is no JSON object.
    """
    found: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(read_text(path, wanted).splitlines(), 1):
        if line.strip():
            data: Any = parsed_json(f"{path}, line {number}", line)
            if not isinstance(data, dict):
                raise FileFormatError(f"{path}, line {number}", f"it is no JSON object; wanted is {wanted}")
            found.append((number, cast("dict[str, Any]", data)))
    return found


def holds_vectors(path: Path) -> bool:
    """Whether the first line of a file begins a vector; whether the file can be read does not matter."""
    try:
        with path.open(encoding="utf-8") as file:
            return '"steps":[' in file.readline()
    except (OSError, ValueError):
        return False


def read_vectors(path: Path) -> list[dict[str, Any]]:
    """The vectors of a file, each checked.

    Raises
    ------
    FileAccessError
        If it cannot be read.
    FileFormatError
        If a line is no vector of this format.
    """
    found: list[dict[str, Any]] = []
    for number, data in json_lines(path, "a file of vectors"):
        problem = _wrong(data)
        if problem:
            raise FileFormatError(f"{path}, line {number}", f"it is no vector: {problem}")
        found.append(data)
    return found


def _wrong(data: dict[str, Any]) -> str:
    """What is wrong with a vector, or an empty text."""
    if data.get("format") != FORMAT:
        return f"its format is {data.get('format')!r}, not {FORMAT}"
    if problem := _keys(data, LINE, "it"):
        return problem
    kind, keys, made = ("blob", BLOB_STEP, "shapes") if is_of_blobs(data) else ("memory", MEMORY_STEP, "sizes")
    things, steps = (data.get(name) for name in (made, "steps"))
    if not isinstance(things, list) or not things or (kind == "blob" and "type" not in data):
        return "it does not say what is made"
    if not isinstance(steps, list) or not steps:
        return "it has no steps"
    count = len(cast("list[object]", things))
    problems = (_step(step, keys, k, kind, count) for k, step in enumerate(cast("list[object]", steps)))
    return next(filter(None, problems), "")


def _step(step: Any, keys: tuple[Key, ...], k: int, which: str, count: int) -> str:
    if not isinstance(step, dict):
        return f"step {k} is no object"
    known = cast("dict[str, Any]", step)
    if problem := _keys(known, keys, f"step {k}"):
        return problem
    if known["call"] not in keys[0].schema["enum"]:
        return f"step {k} has no call {known['call']!r}"
    number: Any = known.get(which, 0)
    return "" if type(number) is int and 0 <= number < count else f"step {k} has no {which} {number!r}"


def _keys(data: dict[str, Any], keys: tuple[Key, ...], what: str) -> str:
    missing = [key.name for key in keys if key.required and key.name not in data]
    other = [name for name in data if name not in {key.name for key in keys}]
    if missing:
        return f"{what} has no {missing[0]!r}"
    return f"{what} has a key {other[0]!r}, which is unknown" if other else ""
