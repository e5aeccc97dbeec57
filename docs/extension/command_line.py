"""The reference of the command line, taken from the program itself."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import typer
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from syncedmem.cli import app

if TYPE_CHECKING:
    from docutils.nodes import Node

__all__ = ["CommandLine", "commands", "options", "records"]

_AS_IT_IS = "\b"
"""The first line of a paragraph in a help text whose lines are not to be joined."""
_TYPE = re.compile(r" <[^>]+>$")
"""What Typer adds to arguments that have a name of their own."""
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")


def commands() -> dict[str, Any]:
    """Return all commands by their names."""
    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = group.commands
    return found


def records(name: str, command: Any) -> list[tuple[list[str], str, str]]:  # noqa: ANN401 -- as `_section`
    """Return what a command takes: the names of each, as they are typed with its value, and what the help says."""
    context = typer.Context(command, info_name=f"syncedmem {name}")
    found = [(parameter, parameter.get_help_record(context)) for parameter in command.params]
    return [
        ([opt for opt in parameter.opts if opt.startswith("-")], _TYPE.sub("", typed), text)
        for parameter, (typed, text) in ((parameter, record) for parameter, record in found if record is not None)
    ]


def options(name: str) -> list[str]:
    """Return the long options of a command."""
    return [option for names, *_ in records(name, commands()[name]) for option in names if option.startswith("--")]


def _prose(text: str) -> nodes.paragraph:
    """Return a paragraph; options are code, because their hyphens would become dashes."""
    parts = _OPTION.split(" ".join(text.split()))
    return nodes.paragraph(
        "", "", *(nodes.literal("", part) if _OPTION.match(part) else nodes.Text(part) for part in parts)
    )


def _table(text: str) -> list[Node]:
    """Return what stands under a title: words, each with its text, or with endings of files and its text; or code."""
    lines = text.removeprefix(_AS_IT_IS).strip("\n").split("\n")
    title, below = [line for line in lines if line[0] != " "], [line for line in lines if line[0] == " "]
    edge = min(len(line) - len(line.lstrip()) for line in below)
    rows: list[str] = []
    for line in below:
        if line[edge] == " " and rows:  # it goes on
            rows[-1] += f" {line.strip()}"
        else:
            rows.append(line.strip())
    cells = [re.split(r"\s{2,}", row) for row in rows]
    if any(len(cell) == 1 for cell in cells):
        return [_prose(" ".join(title)), nodes.literal_block("", inspect.cleandoc("\n".join(below)), language="text")]
    found = nodes.definition_list()
    for word, *endings, meaning in cells:
        term = nodes.term("", "", nodes.literal("", word), *(nodes.Text(f" {ending}") for ending in endings))
        found += nodes.definition_list_item("", term, nodes.definition("", _prose(meaning)))
    return [_prose(" ".join(title)), found]


class CommandLine(SphinxDirective):
    """A directive that makes a section for every command."""

    def run(self) -> list[Node]:
        """Put the sections in place of the directive."""
        return [self._section(name, command) for name, command in commands().items()]

    def _section(self, name: str, command: Any) -> nodes.section:  # noqa: ANN401 -- Typer has types of its own for these
        program = f"syncedmem {name}"
        section = nodes.section(ids=[f"command-{name}"], names=[name])
        section += nodes.title("", program)
        pieces = command.collect_usage_pieces(typer.Context(command, info_name=program))
        section += nodes.literal_block(
            "", " ".join([program, *(piece.strip("{}") for piece in pieces)]), language="text"
        )
        for text in inspect.cleandoc(command.help or "").split("\n\n"):
            section += _table(text) if text.startswith(_AS_IT_IS) else [_prose(text)]
        section += [self._option(program, *record) for record in records(name, command)]
        return section

    def _option(self, program: str, names: list[str], typed: str, text: str) -> addnodes.desc:
        """What the program takes, as Sphinx shows an option: it has an address, and the search finds it."""
        place = nodes.make_id(f"{program} {typed}")
        signature = addnodes.desc_signature("", "", addnodes.desc_name("", typed), ids=[place])
        for name in names:
            self.env.domains.standard_domain.add_program_option(program, name, self.env.docname, place)
        content = addnodes.desc_content("", _prose(text))
        return addnodes.desc("", signature, content, domain="std", objtype="option", desctype="option")
