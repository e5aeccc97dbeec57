"""Public names: where docstrings that use them lead, and whether each has a place in the reference.

Sphinx does neither by itself, because our names are public in another module than the one that defines them: it looks
for a name where its module documents it, and its coverage builder passes over what a module has imported.
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
    """Lead a name that is used in a docstring to where it is documented.

    Docstrings use names as their module has them (`SyncedHead` for ``syncedmem.SyncedHead``), and names of parameters
    and of what is not public; the last two stay text.  On pages that are written by hand a name has to be there.
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
    """Warn of every public name that the reference leaves out."""
    documented = cast("PythonDomain", env.get_domain("py")).objects
    for name in undocumented(documented):
        getLogger(__name__).warning("%s is public and in no page of the reference", name)


def undocumented(documented: Iterable[str]) -> list[str]:
    """The public names that the reference leaves out; each belongs there once, under any of its doors."""
    there = {name.rpartition(".")[2] for name in documented if name.rpartition(".")[0] in DOORS}
    public = {f"{door}.{name}" for door in DOORS for name in import_module(door).__all__}
    return sorted(name for name in public if name.rpartition(".")[2] not in there | {"__version__"})
