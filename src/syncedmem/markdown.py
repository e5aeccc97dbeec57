"""Diagrams and tables of the machine in Markdown, for MkDocs and everything else that is built on Python-Markdown.

In ``mkdocs.yml``::

    markdown_extensions:
      - syncedmem.markdown

In a page, a fenced block is replaced by the picture of an edition or of a machine of your own, or by its table, when
the page is built::

    ```syncedmem-diagram caffe
    trace: mutable_cpu_data gpu_data
    size: 4096
    caption: What a read on the device does.
    ```

    ```syncedmem-table machines/mine.py:NO_PUSH
    calls: cpu_data gpu_data
    ```

The option ``folder`` of the extension is the folder in which files of machines are looked for, by default the one in
which the program was started.  MkDocs can name others: ``folder: !relative`` is that of the page, and
``folder: !relative $docs_dir`` that of all pages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

from syncedmem.model.caffe import DEFAULT
from syncedmem.model.errors import InvalidExportError
from syncedmem.model.exports.declared import machine_named
from syncedmem.model.exports.formats import export
from syncedmem.model.exports.options import OPTIONS, export_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markdown import Markdown

__all__ = ["Blocks", "DiagramExtension", "makeExtension"]

_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*)")
"""The first line of any fenced block: one that shows how to write one of ours is left alone."""
_INFO = re.compile(r"syncedmem-(diagram|table)(?: +(\S+))?")
_BEFORE_FENCED_CODE = 27
"""The priority; that of other fenced blocks is 25."""


class Blocks(Preprocessor):
    """Replaces the blocks.

    Parameters
    ----------
    md : Markdown
    folder : str or os.PathLike
        Where the files of machines are.
    """

    def __init__(self, md: Markdown, folder: str | PathLike[str] = ".") -> None:
        super().__init__(md)
        self._folder = folder

    def run(self, lines: list[str]) -> list[str]:
        """The lines of a page with a placeholder for each block.

        Raises
        ------
        InvalidExportError
            If a block has an option that there is not, or a wrong value.
        DeclarationError, FileFormatError, FileAccessError
            If there is no such edition, or a file has no sound machine.
        """
        fences: dict[str, list[int]] = {}  # so that a page of nothing but beginnings is not searched once for each
        for number, line in enumerate(lines):
            fences.setdefault(line.rstrip(" "), []).append(number)
        result, number = list[str](), 0
        while number < len(lines):
            begin = _FENCE.fullmatch(lines[number])
            ends = fences.get(begin[1], []) if begin else []
            at = bisect_right(ends, number)
            end = ends[at] if at < len(ends) else number
            block = lines[number : end + 1]
            ours = _INFO.fullmatch(begin[2].strip()) if begin and end > number else None
            result += block if ours is None else self._block(ours, block[1:-1])
            number = end + 1
        return result

    def _block(self, ours: re.Match[str], lines: list[str]) -> list[str]:
        kind, edition = ours.groups(DEFAULT.name)
        given = _options(lines)
        caption = given.pop("caption", "")
        options = export_options(machine_named(edition, self._found), given)
        body = _picture(options) if kind == "diagram" else str(export("html", **options))
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        figure = f'<figure class="syncedmem-{kind}">{body}{below}</figure>'
        return ["", self.md.htmlStash.store(figure), ""]

    def _found(self, file: str) -> str:
        return str(Path(fspath(self._folder), file))  # asked for each file: that of MkDocs is another for each page


def _options(lines: list[str]) -> dict[str, str]:
    """The options of a block, ``name: value`` in each line."""
    options: dict[str, str] = {}
    for line in filter(str.strip, lines):
        name, colon, value = line.strip().lstrip(":").partition(":")
        if not colon or name not in (*OPTIONS, "caption"):
            raise InvalidExportError(f"{line.strip()!r} is no option of a block: {', '.join((*OPTIONS, 'caption'))}")
        options[name] = value.strip()
    return options


def _picture(options: Mapping[str, Any]) -> str:
    return str(export("svg", **options)).replace('role="img"', 'role="img" style="max-width:100%;height:auto"', 1)


class DiagramExtension(Extension):
    """The extension of Python-Markdown.

    Parameters
    ----------
    folder : str or os.PathLike
        Where the files of machines are.
    """

    def __init__(self, folder: str | PathLike[str] = ".") -> None:
        super().__init__()
        self._folder = folder

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 -- the name that Python-Markdown calls
        """Register it."""
        md.preprocessors.register(Blocks(md, self._folder), "syncedmem", _BEFORE_FENCED_CODE)


def makeExtension(**options: Any) -> DiagramExtension:  # noqa: N802, ANN401 -- the name that Python-Markdown calls
    """The extension, for ``markdown_extensions: [syncedmem.markdown]``."""
    return DiagramExtension(**options)
