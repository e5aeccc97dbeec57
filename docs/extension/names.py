"""Where the names in docstrings lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.domains.python import PythonDomain
    from sphinx.environment import BuildEnvironment

__all__ = ["REFERENCE", "resolve"]

REFERENCE = "reference/"


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: Element) -> Element | None:
    """Lead a name that is used in a docstring to where it is documented.

    Docstrings use names as their module has them (`SyncedHead` for ``syncedmem.SyncedHead``), and names of parameters
    and of what is not public; the last two stay text.  On pages that are written by hand a name has to be there.
    """
    if node.get("refdomain") != "py":
        return None
    wanted = node["reftarget"].rpartition(".")[2]
    documented = cast("PythonDomain", env.get_domain("py")).objects
    for name in (f"syncedmem.{wanted}", f"syncedmem.model.{wanted}", f"syncedmem.runtime.{wanted}",
                 f"syncedmem.spec.{wanted}", _method(node, wanted)):  # fmt: skip
        if name in documented:
            entry = documented[name]
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, name)
    return contnode if node["refdoc"].startswith(REFERENCE) else None


def _method(node: pending_xref, wanted: str) -> str:
    """Of the class whose docstring it is."""
    return f"{node.get('py:module')}.{node.get('py:class')}.{wanted}"
