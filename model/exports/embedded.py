"""Diagrams and tables between two marks in a file of Markdown, for places like GitHub that show what is committed.

A mark is a comment, which nobody sees.  Its first line says what is wanted, as a block of `syncedmem.markdown` does::

    <!-- syncedmem-diagram machines/mine.py:NO_PUSH
    detail: guards
    -->
    What is written here.
    <!-- syncedmem-end -->

Marks inside of fenced blocks are left alone: they show how to write one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ..errors import FileFormatError
from ..head import DEFAULT_EDITION
from .declared import machine_named
from .formats import export
from .options import block_options, export_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["END", "MARK", "embedded"]

END = "<!-- syncedmem-end -->"
MARK = "<!-- syncedmem-diagram EDITION -->"

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_BEGIN = re.compile(r"<!-- syncedmem-(\w+)(?:[ \t]+(\S+?))?[ \t]*(?:\n((?:(?!-->)[^\n]*\n)*))?-->[ \t]*\n")
_KINDS = {"diagram": "mermaid", "table": "markdown"}
"""The kinds of marks, each with its format."""


class _Part(NamedTuple):
    """A piece of a file: a line of text, or a mark with everything up to its end.

    Attributes
    ----------
    text : str
    line : int
        Its first line, counted from one.
    mark : re.Match or None
    """

    text: str
    line: int
    mark: re.Match[str] | None


def embedded(text: str, source: str, find: Callable[[str], str] = str) -> tuple[str, int]:
    """A page with everything between its marks written anew, and the number of marks.

    Parameters
    ----------
    text : str
        The page.
    source : str
        The name of the page in errors.
    find : callable
        Takes the file of a machine as it is written in a mark, and returns its path.

    Raises
    ------
    FileFormatError
        If there is no mark, if one has no end or is inside of another, or if its kind is unknown.
    InvalidExportError
        If a mark has an option that its format does not have, or a wrong value.
    DeclarationError, FileAccessError
        If a mark names no machine.
    """
    parts, marks = list[str](), 0
    newline = "\r\n" if "\r\n" in text else "\n"
    for part in _parts(text.replace("\r\n", "\n"), source):
        if part.mark is None:
            parts.append(part.text)
            continue
        parts.append(f"{part.mark[0]}{_written(part.mark, source, part.line, find)}{END}\n")
        marks += 1
    if not marks:
        raise FileFormatError(source, f"it has no mark: write {MARK} and below it {END}")
    return "".join(parts).replace("\n", newline), marks


def _parts(text: str, source: str) -> Iterator[_Part]:
    """The pieces of a page: its marks, and every other line."""
    fence, at, line = "", 0, 1
    while at < len(text):
        stop = text.find("\n", at) + 1 or len(text)
        opened, mark = _FENCE.match(text, at, stop), None
        if not fence and text.startswith("<!-- syncedmem-", at):
            mark = _BEGIN.match(text, at)
            stop = _end_of(text, mark, source, line)
        elif opened and not fence:
            fence = opened[1]
        elif opened and opened[1].startswith(fence):
            fence = ""
        yield _Part(text[at:stop], line, mark)
        line += text.count("\n", at, stop)
        at = stop


def _end_of(text: str, begun: re.Match[str] | None, source: str, line: int) -> int:
    """Where a mark that begins in this line is over."""
    if begun is None or begun[1] == "end":
        raise FileFormatError(source, f"line {line} is no mark; one is {MARK}")
    end = re.compile(f"^{re.escape(END)}[ \t]*$\n?", re.MULTILINE).search(text, begun.end())
    inside = re.compile(r"^<!-- syncedmem-(?!end)", re.MULTILINE).search(text, begun.end())
    if end is None or (inside is not None and inside.start() < end.start()):
        raise FileFormatError(source, f"the mark in line {line} has no end: write {END} below it")
    return end.end()


def _written(mark: re.Match[str], source: str, line: int, find: Callable[[str], str]) -> str:
    kind, edition, options = mark.groups("")
    if kind not in _KINDS:
        raise FileFormatError(source, f"unknown mark syncedmem-{kind} in line {line}; there are {', '.join(_KINDS)}")
    chosen = export_options(machine_named(edition or DEFAULT_EDITION, find), block_options(options))
    text = str(export(_KINDS[kind], **chosen))
    return f"```mermaid\n{text}```\n" if kind == "diagram" else f"\n{text}\n"
