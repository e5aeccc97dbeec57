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

from syncedmem.model.caffe import DEFAULT
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.exports.tables import html_table
from syncedmem.model.opening import AnyMachine, machine_of

from .material import explorer_material, explorer_vectors
from .trace import TraceText

__all__ = ["explorer_page"]

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class|const|function|let)", re.MULTILINE)
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_WIDTH = re.compile(r'viewBox="0 0 (\d+) ')
_FIRST = "app.js"


def explorer_page(
    opened: str | TraceText | None = None, *, edition: AnyMachine | None = None, theme_key: str = ""
) -> str:
    """A machine as a page, whole in one file.

    Parameters
    ----------
    opened : str or TraceText, optional
        A trace that the page opens with: a report of ``verify``, a replay of ``fuzz``, or the like.
    edition : str or Machine, optional
        A name from ``EDITIONS``, or any machine.  Without it, the edition that the trace is about, or Caffe's.
    theme_key : str
        For a page of a site with a switch for the theme: the key under which the site keeps ``light`` or ``dark`` in
        the browser's local storage.  Without it, the page has the theme of the reader's system.

    Returns
    -------
    str
        HTML that loads nothing: its own Content-Security-Policy forbids it to.

    Raises
    ------
    DeclarationError
        If there is no such edition, or if the machine is unsound.
    InvalidExportError
        If the machine has too many steps for a page.
    FileFormatError
        If the text is no trace of the machine.
    """
    trace = TraceText(opened) if isinstance(opened, str) else opened
    machine = machine_of(edition or (trace.machine() if trace else DEFAULT))
    material = explorer_material(machine, trace.walks(machine) if trace else ())
    suites = explorer_vectors(machine)
    drawing = diagram_svg(machine, at=machine.initial.name)
    wide = _WIDTH.search(drawing)
    parts = {
        "title": escape(machine.title or machine.name),
        "about": escape(machine.about),
        "style": _read("style.css"),
        "theme_key": escape(theme_key),
        "theme": _read("theme.js"),  # a script of its own, which runs before anything is painted
        "drawing": drawing,
        "wide": wide[1] if wide else "0",
        "table": html_table(machine),
        "script": "\n".join(_without_modules(_read(name)) for name in _in_order(_FIRST)),
        "material": _json(material).replace("<", "\\u003c"),
        "vectors": base64.b64encode(zlib.compress(_json(suites).encode(), level=9)).decode("ascii"),
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


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
