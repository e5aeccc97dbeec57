"""The machine that ``--edition`` names: an edition of ours, a file in JSON, or a declaration in a Python file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS, DeclarationError, head_machine
from syncedmem.model.errors import said
from syncedmem.model.exports.reading import read_declaration
from syncedmem.model.machine import Declaration

from .output import named

if TYPE_CHECKING:
    from syncedmem.model.machine import AnyEdition

__all__ = ["MACHINE", "machine_named"]

MACHINE = "FILE.py:NAME for a Declaration in a Python file, which is run; FILE.json for one that was exported."
"""What a help text says of machines that are not ours."""


def machine_named(text: str) -> AnyEdition:
    """The machine that a text names, checked.

    Parameters
    ----------
    text : str
        The name of an edition, ``FILE.py:NAME``, ``FILE.json``, or ``FILE.json:NAME`` for a file with several editions.

    Raises
    ------
    DeclarationError
        If it names no machine, or an unsound one.
    FileFormatError, FileAccessError
        If a file cannot be read, or is no machine.
    """
    place, colon, name = text.rpartition(":") if ".json:" in text or ".py:" in text else (text, "", "")
    if place.endswith(".json"):
        found: AnyEdition = read_declaration(place, name if colon else None)
    elif place.endswith(".py"):
        found = _of_python(place, name)
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
    with named(place):
        Path(place).read_bytes()  # so that a missing file is an error of the system, and not of the import
    spec: Any = importlib.util.spec_from_file_location("syncedmem_declared", place)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise DeclarationError(f"{place} cannot be run: {said(error)}".partition("\n")[0]) from error
    if not hasattr(module, name):
        raise DeclarationError(f"{place} has no {name}")
    found = getattr(module, name)
    if not isinstance(found, Declaration):
        raise DeclarationError(f"{place}:{name} is no Declaration but of type {type(found).__name__}")
    return found
