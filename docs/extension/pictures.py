"""Pictures of the machine, drawn by the model while the site is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from syncedmem.model import EDITIONS
from syncedmem.model.exports.formats import export

if TYPE_CHECKING:
    from docutils.nodes import Node

__all__ = ["MachineDiagram", "picture_of"]


def picture_of(diagram: str) -> str:
    """The picture of the machine that a Mermaid diagram of ours shows.

    Parameters
    ----------
    diagram : str
        A diagram that ``syncedmem diagram --format mermaid`` has written, of any edition.

    Returns
    -------
    str
        SVG, to be put into a page.

    Raises
    ------
    ValueError
        If no edition has such a diagram, so the page is not up to date.
    """
    for edition in EDITIONS:
        if str(export("mermaid", edition=edition)).strip() == diagram.strip():
            return str(export("svg", edition=edition))
    raise ValueError(f"no edition has this diagram any more: {diagram.strip()[:60]!r}...; make generated")


class MachineDiagram(SphinxDirective):
    """A block of Mermaid.  GitHub draws it itself; here it becomes the model's picture of the same machine."""

    has_content = True

    def run(self) -> list[Node]:
        """Put the picture in place of the text.

        Raises
        ------
        docutils.utils.SystemMessage
            If no edition has such a diagram.
        """
        try:
            picture = picture_of("\n".join(self.content))
        except ValueError as outdated:
            raise self.error(str(outdated)) from outdated
        return [nodes.raw("", f'<figure class="machine">{picture}</figure>', format="html")]
