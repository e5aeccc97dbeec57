"""Reads files of vectors, and says in one line what is wrong with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import FileFormatError
from syncedmem.model.files import MOST_TEXT, parsed_json, read_text

from ..engine.fields import by_name, fault, short
from .keys import line_of, memory_step, wrong_sizes
from .vector import FORMAT

if TYPE_CHECKING:
    from pathlib import Path

    from syncedmem.model import Machine

    from ..engine.fields import Field

__all__ = ["holds_requests", "holds_vectors", "json_lines", "read_vectors"]


def json_lines(path: Path, wanted: str) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a file of JSON lines, with the numbers of their lines.

    Raises
    ------
    FileAccessError
        If it cannot be read.
    FileFormatError
        If a line is no JSON object.
    """
    objects: list[tuple[int, dict[str, Any]]] = []
    for number, text in enumerate(read_text(path, wanted).splitlines(), 1):
        if text.strip():
            data: Any = parsed_json(f"{path}, line {number}", text)
            if not isinstance(data, dict):
                raise FileFormatError(f"{path}, line {number}", f"it is no JSON object; wanted is {wanted}")
            objects.append((number, cast("dict[str, Any]", data)))
    return objects


def holds_vectors(path: Path) -> bool:
    """Whether the first line of a file begins a vector; whether the file can be read does not matter."""
    return '"steps":[' in _first_line(path)


def holds_requests(path: Path) -> bool:
    """The same for a request to a port."""
    return '"op": "' in _first_line(path)


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline(MOST_TEXT)  # a device may have no end
    except (OSError, ValueError):
        return ""


def read_vectors(path: Path, machine: Machine | None = None) -> list[dict[str, Any]]:
    """The vectors of a file, each checked; without a machine, those of Caffe's editions.

    Raises
    ------
    FileAccessError
        If it cannot be read.
    FileFormatError
        If a line is no vector of this format.
    """
    vectors: list[dict[str, Any]] = []
    keys, step = by_name(*line_of(machine)), by_name(*memory_step(machine))
    for number, data in json_lines(path, "a file of vectors"):
        if problem := _problem_of(data, keys, step):
            raise FileFormatError(f"{path}, line {number}", f"it is no vector: {problem}")
        vectors.append(data)
    return vectors


def _problem_of(data: dict[str, Any], keys: dict[str, Field], step_keys: dict[str, Field]) -> str:
    """What is wrong with a vector, or an empty text."""
    if data.get("format") != FORMAT:
        return f"its format is {short(data.get('format'))}, not {FORMAT}"
    if sentence := fault(data, keys):
        return f"it {sentence}"
    if sentence := wrong_sizes(data["sizes"]):
        return f"it has a wrong 'sizes': {short(data['sizes'])} {sentence}"
    for k, step in enumerate(data["steps"]):
        if sentence := fault(step, step_keys):
            return f"step {k} {sentence}"
        if step.get("memory", 0) >= len(data["sizes"]):
            return f"step {k} has no memory {step['memory']}"
    return ""
