"""Links inside the site, and public names: what is missing is a warning, and so an error."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib import import_module
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from sphinx.util.logging import getLogger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sphinx.application import Sphinx
    from sphinx.domains.python import PythonDomain

__all__ = ["broken", "check", "undocumented"]

DOORS = ("syncedmem", "syncedmem.model", "syncedmem.runtime", "syncedmem.spec")
STATIC = "_static"  # what the theme brings, templates among it; the explorer there is one file without links
_LOADS = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src"}


def check(app: Sphinx, failure: Exception | None) -> None:
    """Warn of every link of the finished site that leads nowhere, and of every public name without a place."""
    if failure is not None or app.builder.name != "html":
        return
    logger = getLogger(__name__)
    for page, link in broken(app.outdir):
        logger.warning("%s links to %s, which is not there", page, link)
    documented = cast("PythonDomain", app.env.get_domain("py")).objects
    for name in undocumented(documented):
        logger.warning("%s is public and in no page of the reference", name)


def undocumented(documented: Iterable[str]) -> list[str]:
    """The public names that the reference leaves out; each belongs there once, under any of its doors."""
    there = {name.rpartition(".")[2] for name in documented if name.rpartition(".")[0] in DOORS}
    public = {f"{door}.{name}" for door in DOORS for name in import_module(door).__all__}
    return sorted(name for name in public if name.rpartition(".")[2] not in there | {"__version__"})


def broken(site: Path) -> Iterator[tuple[str, str]]:
    """Every link to a file or a place of the site that it does not have, with the page that has it.

    Parameters
    ----------
    site : pathlib.Path
        The folder of the finished site.
    """
    pages = {path: _Page.of(path) for path in sorted(site.rglob("*.html")) if STATIC not in path.parts}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not link:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].places):
                yield str(path.relative_to(site)), link


class _Page(HTMLParser):
    """The links of a page, and the places that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = {"top"}

    @classmethod
    def of(cls, path: Path) -> _Page:
        page = cls()
        page.feed(path.read_text(encoding="utf-8"))
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if place := found.get("id") or found.get("name"):
            self.places.add(place)
        if link := found.get(_LOADS.get(tag, "")):
            self.links.add(link)
