"""The machine that a person names: an edition of ours, a file in JSON, or a machine in a Python file."""

from __future__ import annotations

import runpy
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from ..caffe import EDITIONS
from ..declaration import Machine
from ..errors import DeclarationError, listed, said
from ..files import read_text
from ..opening import machine_of
from .reading import read_machine

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["MACHINE", "machine_named", "object_in"]

ObjectT = TypeVar("ObjectT")

MACHINE = (
    "FILE.py:NAME for a Machine in a Python file, which is run (FILE.py is enough if it has one); "
    "FILE.json for one that was exported."
)
"""What a help text says of machines that are not ours."""


def machine_named(text: str, find: Callable[[str], str] = str) -> Machine:
    """The machine that a text names, checked.

    Parameters
    ----------
    text : str
        The name of an edition, ``FILE.py:NAME``, ``FILE.py`` with one machine, ``FILE.json``, or ``FILE.json:NAME``
        for a file with several editions.
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
        machine = read_machine(find(place), name if colon else None)
    elif place.endswith(".py"):
        machine = object_in(find(place), name, Machine)
    elif text in EDITIONS:
        machine = EDITIONS[text]
    else:
        raise DeclarationError(
            f"unknown machine {text!r}; there are {', '.join(EDITIONS)}, and FILE.py:NAME and FILE.json for "
            "other machines"
        )
    return machine_of(machine)


def object_in(place: str, name: str, kind: type[ObjectT]) -> ObjectT:
    """The object with this name in a Python file, which is run; without a name, the only one of its kind.

    Raises
    ------
    DeclarationError
        If the file cannot be run, or has no such object of this kind.
    FileAccessError
        If it cannot be read.
    """
    word = kind.__name__.lower()
    read_text(place, f"a {word} in Python")  # so that a missing file is an error of the system
    try:
        names = runpy.run_path(place, run_name="syncedmem_declared")
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise DeclarationError(f"{place} cannot be run: {said(error)}".partition("\n")[0]) from error
    known = sorted(name for name, value in names.items() if isinstance(value, kind) and value not in EDITIONS.values())
    if not name and len({id(names[name]) for name in known}) == 1:
        name = known[0]
    if not name:
        raise DeclarationError(
            f"{place} is a Python file: say which {word} in it is meant, {place}:NAME; "
            f"it has {listed(known) if known else f'no {word} at all'}"
        )
    if name not in names:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"it has {listed(known) if known else f'no {word} at all'}"
        raise DeclarationError(f"{place} has no {name}; {hint}")
    named = names[name]
    if not isinstance(named, kind):
        raise DeclarationError(f"{place}:{name} is no {kind.__name__} but of type {type(named).__name__}")
    return named
