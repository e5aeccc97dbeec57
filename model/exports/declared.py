"""The machine that a person names: an edition of ours, a file in JSON, or a declaration in a Python file."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING

from ..compiled import head_machine
from ..errors import DeclarationError, said, words
from ..files import read_text
from ..head import EDITIONS
from ..machine import Declaration
from .reading import read_declaration

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine import AnyEdition

__all__ = ["MACHINE", "machine_named"]

MACHINE = "FILE.py:NAME for a Declaration in a Python file, which is run; FILE.json for one that was exported."
"""What a help text says of machines that are not ours."""


def machine_named(text: str, find: Callable[[str], str] = str) -> AnyEdition:
    """The machine that a text names, checked.

    Parameters
    ----------
    text : str
        The name of an edition, ``FILE.py:NAME``, ``FILE.json``, or ``FILE.json:NAME`` for a file with several editions.
    find : callable
        Takes the file as it is written, and returns its path.  It is called only if the text names a file.

    Raises
    ------
    DeclarationError
        If it names no machine, or an unsound one.
    FileFormatError, FileAccessError
        If a file cannot be read, or is no machine.
    """
    place, colon, name = text.rpartition(":") if ".json:" in text or ".py:" in text else (text, "", "")
    if place.endswith(".json"):
        found: AnyEdition = read_declaration(find(place), name if colon else None)
    elif place.endswith(".py"):
        found = _of_python(find(place), name)
    elif text in EDITIONS:
        found = text
    else:
        raise DeclarationError(
            f"unknown edition {text!r}; there are {', '.join(EDITIONS)}, and FILE.py:NAME and FILE.json for "
            "other machines"
        )
    head_machine(found)
    return found


def _of_python(place: str, name: str) -> Declaration:
    if not name:
        raise DeclarationError(f"{place} is a Python file: say which declaration in it is meant, {place}:NAME")
    read_text(place, "a Declaration in Python")  # so that a missing file is an error of the system, and not of the file
    try:
        names = runpy.run_path(place, run_name="syncedmem_declared")
    except DeclarationError as error:
        raise DeclarationError(f"{place}: {words(error)}") from error
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise DeclarationError(f"{place} cannot be run: {said(error)}".partition("\n")[0]) from error
    if name not in names:
        raise DeclarationError(f"{place} has no {name}")
    found = names[name]
    if not isinstance(found, Declaration):
        raise DeclarationError(f"{place}:{name} is no Declaration but of type {type(found).__name__}")
    return found
