"""Our extensions of Sphinx: pictures, the explorer, help of commands, lists of names, names in docstrings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import command_line, explorer, names, pictures, public_names

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup"]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all extensions."""
    app.add_directive("command-line", command_line.CommandLine)
    app.add_directive("mermaid", pictures.MachineDiagram)
    app.add_directive("public-names", public_names.PublicNames)
    app.connect("missing-reference", names.resolve)
    app.connect("env-check-consistency", names.check)
    app.connect("build-finished", explorer.write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
