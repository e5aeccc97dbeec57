"""Where the names in docstrings lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, cast

from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.domains.python import PythonDomain
    from sphinx.environment import BuildEnvironment

__all__ = ["REFERENCE", "keep_links_that_lead", "resolve"]

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


def keep_links_that_lead(app: Sphinx) -> Iterable[Never]:
    """Take from the pages of source what viewcode would link to a wrong name.

    It knows one public module for each file, and here a file may have names that are public at two doors.
    """
    documented = cast("PythonDomain", app.env.get_domain("py")).objects
    sources: dict[str, Any] = getattr(app.env, "_viewcode_modules", {})
    for _, _, used, module in filter(None, sources.values()):
        for name in [name for name in used if f"{module}.{name}" not in documented]:
            del used[name]
    return ()


def _method(node: pending_xref, wanted: str) -> str:
    """Of the class whose docstring it is."""
    return f"{node.get('py:module')}.{node.get('py:class')}.{wanted}"
