"""A directive that documents every public name of a module that lists its names: the errors, and the adaptors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils.nodes import Node

__all__ = ["PublicNames", "described"]


def described(module: str) -> str:
    """The directives of Sphinx's autodoc for all names of a module, under the names that users import."""
    found = import_module(module)
    kinds = {name: "exception" if issubclass(getattr(found, name), Exception) else "class" for name in found.__all__}
    return "\n".join(f".. auto{kind}:: syncedmem.{name}\n   :members:\n" for name, kind in kinds.items())


class PublicNames(SphinxDirective):
    """A directive that documents all names of a module; its argument is the module."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Put the entries in place of the directive."""
        return self.parse_text_to_nodes(described(self.arguments[0]))
