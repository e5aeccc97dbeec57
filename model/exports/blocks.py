"""Diagrams and tables inside of pages of Markdown, between two marks.

.. code-block:: markdown

    <!-- syncedmem: diagram --format mermaid --edition early -->
    <!-- syncedmem: end -->

What is between the marks is written again by `fill_blocks`; the first mark has the options.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ..caffe import DEFAULT
from ..errors import DeclarationError, InvalidExportError
from .declared import machine_named
from .formats import FORMATS, export
from .options import OPTIONS, export_options

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["END", "MARK", "fill_blocks"]

MARK = "<!-- syncedmem: diagram --format mermaid -->"
"""A first mark."""

END = "<!-- syncedmem: end -->"

_MARK = re.compile(r"<!-- syncedmem: diagram\b(?P<options>.*?)-->\s*")
_OPTIONS = ("format", "machine", "edition", *OPTIONS)
_LANGUAGES = {"mermaid": "mermaid", "dot": "dot", "plantuml": "plantuml"}
_PLAIN = ("html", "markdown")
"""Formats that a page of Markdown shows as they are."""


def fill_blocks(text: str, source: str, find: Callable[[str], str] = str) -> str:
    """Write the blocks of a page again.

    Parameters
    ----------
    text : str
        The page.
    source : str
        Its name, for errors.
    find : callable
        Takes the file of a machine as a mark names it, and returns its path.

    Returns
    -------
    str
        The page; what is outside of the marks is as it was.

    Raises
    ------
    InvalidExportError
        If there is no mark, a mark has no end, or its options are wrong; the message has the number of its line.
    DeclarationError, FileFormatError, FileAccessError
        See `syncedmem.model.exports.declared.machine_named`.
    """
    lines, result, number = text.splitlines(keepends=True), list[str](), 0
    newline = "\r\n" if "\r\n" in text else "\n"
    fence, marks = "", 0
    while number < len(lines):
        line = lines[number]
        result.append(line)
        number += 1
        if opened := re.match(r" {0,3}(```+|~~~+)", line):  # marks in a block of code are shown, and not filled
            fence = "" if fence and line.strip().startswith(fence) else fence or opened[1]
        if fence:
            continue
        if not (mark := _MARK.fullmatch(line)):
            if line.lstrip().startswith("<!-- syncedmem"):
                raise InvalidExportError(
                    f"{source}, line {number}: this is no mark, or an end without a beginning; a mark is {MARK}"
                )
            continue
        end = next((k for k in range(number, len(lines)) if lines[k].strip() == END), None)
        if end is None or any(_MARK.fullmatch(line) for line in lines[number:end]):
            raise InvalidExportError(f"{source}, line {number}: this mark needs a line {END} after it")
        try:
            block = _block(mark["options"], find)
        except InvalidExportError as error:
            raise InvalidExportError(f"{source}, line {number}: {error}") from error
        except DeclarationError as error:
            raise DeclarationError(f"{source}, line {number}: {error}") from error
        result += [newline, block.replace("\n", newline), newline, lines[end]]
        number, marks = end + 1, marks + 1
    if not marks:
        raise InvalidExportError(f"{source} has no mark; write two lines where the diagram should be: {MARK} and {END}")
    return "".join(result)


def _block(words: str, find: Callable[[str], str]) -> str:
    """The lines between two marks."""
    given = _given(words)
    name = given.pop("format", "mermaid")
    machine = machine_named(given.pop("machine", DEFAULT.name), find)
    content = export(name, **export_options(machine, given))
    if isinstance(content, bytes) or name == "svg":
        raise InvalidExportError(f"{name} is a picture, which a page shows from a file: syncedmem diagram -o FILE")
    content = content.rstrip("\n") + "\n"
    language = _LANGUAGES.get(name, FORMATS[name].extension)
    return content if name in _PLAIN else f"```{language}\n{content}```\n"


def _given(words: str) -> dict[str, str]:
    """The options of a mark, by name."""
    try:
        split = shlex.split(words)
    except ValueError as error:
        raise InvalidExportError(f"{words.strip()}: {error}") from error
    given: dict[str, str] = {}
    for option, value in zip(split[::2], [*split[1::2], None], strict=False):
        name = option.removeprefix("--")
        if name not in _OPTIONS or name == option:
            raise InvalidExportError.unknown("option", option, [f"--{option}" for option in _OPTIONS])
        if value is None:
            raise InvalidExportError(f"{option} needs a value")
        given["machine" if name == "edition" else name] = value
    return given
