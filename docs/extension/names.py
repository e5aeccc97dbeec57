"""Public names: what a name in a docstring links to, and whether the reference has every name.

Sphinx does neither itself, because our names are public in another module than the one that defines them.  It searches
a name in the module that defines it, and its coverage builder skips names that a module has imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from sphinx.util.logging import getLogger
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.domains.python import PythonDomain
    from sphinx.environment import BuildEnvironment

__all__ = ["DOORS", "REFERENCE", "check", "resolve", "undocumented"]

DOORS = ("syncedmem", "syncedmem.model", "syncedmem.runtime", "syncedmem.spec")
REFERENCE = "reference/"


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: Element) -> Element | None:
    """Link a name in a docstring to the place where it is documented.

    Docstrings use the names of their module (`SyncedHead` for ``syncedmem.SyncedHead``), names of parameters, and names
    that are not public.  The last two stay text.  On a page that is written by hand, every name must exist.
    """
    if node.get("refdomain") != "py":
        return None
    wanted = node["reftarget"].rpartition(".")[2]
    documented = cast("PythonDomain", env.get_domain("py")).objects
    for name in (f"{door}.{wanted}" for door in DOORS):
        if name in documented:
            entry = documented[name]
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, name)
    return contnode if node["refdoc"].startswith(REFERENCE) else None


def check(_app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of every public name that is missing in the reference."""
    documented = cast("PythonDomain", env.get_domain("py")).objects
    for name in undocumented(documented):
        getLogger(__name__).warning("%s is public, but no page of the reference has it", name)


def undocumented(documented: Iterable[str]) -> list[str]:
    """The public names that are missing in the reference; a name belongs there once, under any of its modules."""
    there = {name.rpartition(".")[2] for name in documented if name.rpartition(".")[0] in DOORS}
    public = {f"{door}.{name}" for door in DOORS for name in import_module(door).__all__}
    return sorted(name for name in public if name.rpartition(".")[2] not in there | {"__version__"})
