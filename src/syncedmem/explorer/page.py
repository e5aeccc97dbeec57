"""One HTML file out of a template, a style sheet, scripts and data."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files

from syncedmem import __version__
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.exports.tables import html_table
from syncedmem.model.opening import AnyMachine, machine_of

from .material import explorer_material

__all__ = ["SCRIPTS", "explorer_page"]

SCRIPTS = ("element.js", "machine.js", "said.js", "matrix.js", "quiz.js", "app.js")
"""In the page they are one script, in this order: each can use the names of those before it."""

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_WIDTH = re.compile(r'viewBox="0 0 (\d+) ')


def explorer_page(edition: AnyMachine = DEFAULT, *, theme_key: str = "") -> str:
    """A machine as a page, whole in one file.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
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
    """
    machine = machine_of(edition)
    material = json.dumps(explorer_material(machine), ensure_ascii=False, separators=(",", ":"))
    drawing = diagram_svg(machine, at=machine.initial.name)
    wide = _WIDTH.search(drawing)
    about = [machine.about, machine.cite and f"Source: {machine.cite}", f"syncedmem {__version__}"]
    parts = {
        "title": escape(machine.title or machine.name),
        "about": escape("".join(f"{text}. " for text in about if text)),
        "style": _read("style.css"),
        "theme_key": escape(theme_key),
        "theme": _read("theme.js"),  # a script of its own, which runs before anything is painted
        "drawing": drawing,
        "wide": wide[1] if wide else "0",
        "table": html_table(machine),
        "material": material.replace("<", "\\u003c"),
        "script": "\n".join(map(_read, SCRIPTS)),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _read("page.html"))


def _read(name: str) -> str:
    return files("syncedmem.explorer").joinpath(name).read_text(encoding="utf-8")
