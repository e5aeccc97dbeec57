"""The machine on one Markdown page: the drawing, and the tables of every edition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caffe import DEFAULT, EDITIONS
from ..diagrams.drawing import Detail
from ..opening import machine_of
from .mermaid import mermaid
from .tables import markdown_table

if TYPE_CHECKING:
    from ..opening import AnyMachine

__all__ = ["markdown_page"]


def markdown_page(edition: AnyMachine = DEFAULT) -> str:
    """A page with the drawing and the tables of an edition, and the matrices of the others.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    machine = machine_of(edition)
    parts = [
        f"# The head machine, edition {machine}\n",
        "Made from the declaration by `syncedmem diagram --format page`; not written by hand.\n",
        f"```mermaid\n{mermaid(machine)}```\n",
        "## Heads and calls\n",
        markdown_table(machine),
        "## Configurations and calls\n",
        "A configuration is a head and, for host and device: `-` no pointer, `o` an owned one, `e` an external one.\n",
        markdown_table(machine, detail=Detail.CONFIGURATIONS),
    ]
    for other in EDITIONS:
        if other != machine.name:
            parts += [
                f"## Configurations and calls, edition {other}\n",
                markdown_table(other, detail=Detail.CONFIGURATIONS),
            ]
    return "\n".join(parts)
