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
    """The picture that shows what a Mermaid diagram of ours says.

    Parameters
    ----------
    diagram : str
        As ``syncedmem diagram --format mermaid`` writes it, of any edition.

    Returns
    -------
    str
        SVG, to be put into a page.

    Raises
    ------
    ValueError
        If the model says no such thing, so the page is not up to date.
    """
    for edition in EDITIONS:
        if str(export("mermaid", edition=edition)).strip() == diagram.strip():
            return str(export("svg", edition=edition))
    raise ValueError(f"no edition is drawn so any more: {diagram.strip()[:60]!r}...; make generated")


class MachineDiagram(SphinxDirective):
    """A block of Mermaid, which GitHub draws by itself: here the model's picture of the same machine."""

    has_content = True

    def run(self) -> list[Node]:
        """Put the picture in place of the text.

        Raises
        ------
        docutils.utils.SystemMessage
            If the text is not the model's.
        """
        try:
            picture = picture_of("\n".join(self.content))
        except ValueError as outdated:
            raise self.error(str(outdated)) from outdated
        return [nodes.raw("", f'<figure class="machine">{picture}</figure>', format="html")]
