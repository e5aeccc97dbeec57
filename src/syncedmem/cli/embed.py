"""The command ``embed``."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import Annotated

import typer

from syncedmem.model.exports.embedded import END, MARK, embedded
from syncedmem.model.files import read_text

from .output import write

__all__ = ["embed"]


def embed(
    pages: Annotated[list[Path], typer.Argument(metavar="PAGE", help="Files of Markdown.")],
    *,
    check: Annotated[
        bool, typer.Option("--check", metavar="", help="Write nothing. Say which pages are not up to date.")
    ] = False,
) -> None:
    """Write diagrams and tables into pages of Markdown."""
    found = {page: _embedded(page) for page in pages}
    old = [page for page, (before, after, _) in found.items() if before != after]
    for page, (_, after, marks) in found.items():
        if page in old and not check:
            write(page, after)
        done = "up to date" if page not in old else "not up to date" if check else "written"
        typer.echo(f"{page}: {marks} {'mark' if marks == 1 else 'marks'}, {done}", err=check and page in old)
    if check and old:
        typer.echo(f"write again: syncedmem embed {' '.join(map(str, old))}", err=True)
        raise typer.Exit(1)


embed.__doc__ = f"""{embed.__doc__}

In a page, what is between two marks is replaced:
  {MARK}
  {END}

syncedmem-diagram is a diagram in Mermaid, syncedmem-table a table. EDITION may also be FILE.py:NAME or FILE.json, seen
from the folder of the page. Options can follow, one in each line: calls, detail and labels, as of the command diagram.
  <!-- syncedmem-table machine.py:MINE
  detail: heads
  -->
  {END}

Exit status:
  0  all are written, or with --check up to date
  1  with --check, a page is not up to date
  2  a page cannot be read or written, or a mark is wrong; then no page is written
"""


def _embedded(page: Path) -> tuple[str, str, int]:
    """The text of a page, its text with all marks written, and the number of marks."""
    text = read_text(page, "a page of Markdown")
    after, marks = embedded(text, str(page), lambda file: str(page.parent / file))
    return text, after, marks
