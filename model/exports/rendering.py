"""Formats that are written as templates for Jinja2: each is a file in ``templates``.

A template looks like its format.  ``${...}`` is a value, because braces alone mean something in most formats, and
``{% ... %}`` is a statement.  A statement on a line of its own leaves no line.  A template gets its data through
the names in `SOURCES`; the user's options are ``edition``, ``calls`` and ``detail``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from ..compiled import head_machine
from ..diagrams.drawing import drawing
from ..head import EDITIONS, Call, Refusal, SyncedHead
from ..interface import BLOB_CALLS
from ..machine import DATA
from ..mode import Mode
from .document import machine_document
from .formal import formal_model

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..diagrams.drawing import Detail
    from ..opening import AnyMachine

__all__ = ["FOLDER", "SOURCES", "rendered", "templates"]

FOLDER = Path(__file__).parent / "templates"

SOURCES: Mapping[str, Any] = MappingProxyType(
    {
        "machine_document": machine_document,
        "head_machine": head_machine,
        "HAS_DATA": DATA,
        "drawing": drawing,
        "formal_model": formal_model,
        "EDITIONS": EDITIONS,
        "SyncedHead": SyncedHead,
        "Call": Call,
        "Refusal": Refusal,
        "Mode": Mode,
        "BLOB_CALLS": BLOB_CALLS,
    }
)
"""The sources of a template: the JSON document, its rows as numbers, the diagram, the machine over variables, and the
declarations themselves."""


def rendered(template: str, edition: AnyMachine, calls: Collection[str], detail: Detail | None) -> str:
    """The text that a template makes of an edition.

    Parameters
    ----------
    template : str
        A file of `FOLDER`.
    edition : str, Machine or Declaration
        A name from ``EDITIONS``, or any machine.
    calls : collection of str
        Show only these calls; if empty, all calls.
    detail : Detail or None
        None for formats that have no details.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    return templates().get_template(template).render(edition=edition, calls=calls, detail=detail)


@cache
def templates() -> Environment:
    """The templates, loaded by Jinja2."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["scxml.jinja"], default=False),
        variable_start_string="${",
        variable_end_string="}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= SOURCES
    return made
