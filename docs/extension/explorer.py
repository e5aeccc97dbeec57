"""The explorer as a file of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.explorer import explorer_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["FILE", "write"]

FILE = "_static/machine.html"


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the page that `syncedmem explore --out` writes, for docs/play.md to show."""
    if failure is None and app.builder.name == "html":
        (app.outdir / FILE).write_text(explorer_page(None), encoding="utf-8")
