"""One HTML file out of a template, a style sheet, scripts and data.

The scripts are JavaScript modules that import each other by name.  In the file they are one module: every module comes
after those that it imports, without its imports and exports.  So no two of them may declare the same name, which a
browser refuses to run.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from html import escape
from importlib.resources import files
from typing import Any

from .material import explorer_material, explorer_vectors

__all__ = ["explorer_page"]

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class|const|function|let)", re.MULTILINE)
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_FIRST = "app.js"


def explorer_page(opened: str | None = None, *, theme_key: str = "") -> str:
    """The machine as a page, whole in one file.

    Parameters
    ----------
    opened : str, optional
        The text of a trace that the page opens with.
    theme_key : str
        For a page of a site with a switch for the theme: the key under which the site keeps ``light`` or ``dark`` in
        the browser's local storage.  Without it, the page has the theme of the reader's system.

    Returns
    -------
    str
        HTML that loads nothing: its own Content-Security-Policy forbids it to.
    """
    parts = {
        "style": _read("style.css"),
        "theme_key": escape(theme_key),
        "theme": _read("theme.js"),  # a script of its own, which runs before anything is painted
        "script": "\n".join(_without_modules(_read(name)) for name in _in_order(_FIRST)),
        "material": _packed(explorer_material(opened)),
        "vectors": _packed(explorer_vectors()),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _read("page.html"))


def _read(name: str) -> str:
    return files("syncedmem.explorer").joinpath(name).read_text(encoding="utf-8")


def _in_order(name: str, seen: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A module after all that it imports, each once."""
    for imported in _IMPORT.findall(_read(name)):
        if imported not in seen:
            seen = _in_order(imported, seen)
    return (*seen, name)


def _without_modules(source: str) -> str:
    return _EXPORT.sub("", _IMPORT.sub("", source))


def _packed(data: dict[str, Any] | list[dict[str, Any]]) -> str:
    """JSON, compressed and then in letters that can stand in any element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), level=9)).decode("ascii")
