"""The help of every command, taken from the program itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

from syncedmem.cli import app

if TYPE_CHECKING:
    from docutils.nodes import Node

__all__ = ["CommandLine", "helps"]

WIDTH = "88"


def helps() -> dict[str, str]:
    """The help of each command, by its name."""
    shell = CliRunner(env={"COLUMNS": WIDTH, "NO_COLOR": "1", "TERM": "dumb"})
    group = typer.main.get_command(app)
    return {name: shell.invoke(app, [name, "--help"], prog_name="syncedmem").output for name in group.commands}  # type: ignore[attr-defined]


class CommandLine(SphinxDirective):
    """A directive that makes a section for every command."""

    def run(self) -> list[Node]:
        """Put the sections in place of the directive."""
        sections: list[Node] = []
        for name, text in helps().items():
            section = nodes.section(ids=[f"command-{name}"], names=[name])
            section += nodes.title("", f"syncedmem {name}")
            section += nodes.literal_block(text, text.strip(), language="text")
            sections.append(section)
        return sections
