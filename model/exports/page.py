"""The machine on one Markdown page: the drawing, and the tables of every edition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..head import DEFAULT_EDITION, EDITIONS
from .mermaid import mermaid
from .tables import markdown_matrix, markdown_table

if TYPE_CHECKING:
    from ..machine import AnyEdition

__all__ = ["markdown_page"]


def markdown_page(edition: AnyEdition = DEFAULT_EDITION) -> str:
    """A page with the drawing and the tables of an edition, and the matrices of the others.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    parts = [
        f"# The head machine, edition {edition}\n",
        "Made from the declaration by `syncedmem diagram --format page`; not written by hand.\n",
        f"```mermaid\n{mermaid(edition)}```\n",
        "## Heads and calls\n",
        markdown_table(edition),
        "## Configurations and calls\n",
        "A configuration is a head and, for host and device: `-` no pointer, `o` an owned one, `e` an external one.\n",
        markdown_matrix(edition),
    ]
    for other in EDITIONS:
        if other != str(edition):
            parts += [f"## Configurations and calls, edition {other}\n", markdown_matrix(other)]
    return "\n".join(parts)
