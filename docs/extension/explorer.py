"""The explorer as a file of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.explorer import explorer_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["FILE", "THEME_KEY", "write"]

FILE = "_static/machine.html"
THEME_KEY = "mode"
"""Where the theme of the site keeps what the reader chose with its switch."""


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the page of `syncedmem explore`, which here follows the switch of the site, for docs/play.md to show."""
    if failure is None and app.builder.name == "html":
        (app.outdir / FILE).write_text(explorer_page(theme_key=THEME_KEY), encoding="utf-8")
