"""Formats that are written as templates for Jinja2: each is a file in ``templates``.

A template looks like its format.  ``${...}`` is a value, because braces alone mean something in most formats, and
``{% ... %}`` is a statement.  A statement on a line of its own leaves no line.  A template gets its data through
the names in `SOURCES`; the user's options are ``edition``, ``calls``, ``detail`` and ``rightwards``.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..caffe import CAFFE, EDITIONS, MODE, REFUSALS
from ..diagrams.drawing import BRACKETS, Direction, drawing
from ..interface import BLOB_CALLS
from ..opening import machine_of
from ..spelling import identifier
from ..states import stepper
from .code_names import code_names
from .document import CONTENTS, VERSION
from .formal import formal_model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..declaration import Machine
    from ..diagrams.drawing import Detail
    from ..moves import Effect
    from ..opening import AnyMachine

__all__ = ["FOLDER", "SOURCES", "rendered", "templates"]

FOLDER = Path(__file__).parent / "templates"


class Code(NamedTuple):
    """A machine as numbers: each fact is a bit, and each condition on an argument another one.

    A row fires if ``found & required == required`` and ``found & excluded == 0``, for the masks of its conditions.  The
    facts afterwards are ``facts & kept | sets``, with a pair of masks for each combination of settings.

    Attributes
    ----------
    machine : Machine
    words : Machine
        The words in the order of their numbers: those of this machine, and of others that have the same numbers.
    bits : dict of str to int
        Facts and conditions on arguments.
    data : int
        The bits that are set for a call with its argument.
    rows : tuple of Effect
    renamed : tuple of (str, str)
        See `code_names`.
    """

    machine: Machine
    words: Machine
    bits: dict[str, int]
    data: int
    rows: tuple[Effect, ...]
    renamed: tuple[tuple[str, str], ...]

    @property
    def prefix(self) -> str:
        """What is before all names: that of the machine; of Caffe's editions, which have the same numbers, ``smd``."""
        return "smd" if self.words is CAFFE.numbered_as else identifier(self.machine.name).lower()

    @property
    def contents(self) -> tuple[str, ...]:
        """What can be in the side of an action afterwards."""
        actions = self.words.actions.values()
        return tuple(dict.fromkeys(CONTENTS[action.does] for action in actions if action.does in CONTENTS))

    @property
    def adopts(self) -> bool:
        """Whether a call adopts a buffer, so that one of the memory's own can be refused."""
        return any(call.does == "adopt" for call in self.words.calls.values())

    @property
    def ends(self) -> bool:
        """Whether a call ends the memory."""
        return any(call.ends for call in self.words.calls.values())

    def said(self, prefix: str = "") -> list[str]:
        """Where the caller says what it decides with each call; `prefix` is before the names of bits."""
        calls: dict[str, list[str]] = {}
        for call in self.machine.calls.values():
            if call.takes:
                calls.setdefault(call.takes, []).append(call.name)
        given = [
            f"has_data says whether the caller gives {call} with {', '.join(some)}." for call, some in calls.items()
        ]
        bits = [
            f"The caller decides {name} with each call, and sets or clears the bit {prefix}{name.upper()} of facts."
            for name in stepper(self.machine).free
        ]
        return [*(given or ["has_data is looked at by no row."]), *bits]

    def mask(self, names: Iterable[str]) -> int:
        """The bits of some facts."""
        return sum({self.bits[name] for name in names})

    @property
    def combinations(self) -> list[dict[str, str]]:
        """The settings with all their values."""
        settings = self.machine.settings
        return [
            dict(zip(settings, values, strict=True))
            for values in product(*(setting.values for setting in settings.values()))
        ]

    def kept(self, row: Effect) -> list[int]:
        """The facts that are true after a row if all were before, for each combination of settings."""
        return [self.mask(row.facts_after(frozenset(self.machine.facts), settings)) for settings in self.combinations]

    def sets(self, row: Effect) -> list[int]:
        """The facts that are true after a row if none was before, for each combination of settings."""
        return [self.mask(row.facts_after(frozenset(), settings)) for settings in self.combinations]


def coded(edition: AnyMachine) -> Code:
    """A machine as numbers, with names in code."""
    machine, renamed = code_names(machine_of(edition))
    words = machine.numbered_as
    arguments = dict.fromkeys(call.takes for call in words.calls.values() if call.takes)
    bits = {name: 1 << number for number, name in enumerate([*words.facts, *arguments])}
    data = sum(bits[name] for name in arguments)
    return Code(machine, words, bits, data, stepper(machine).effects, renamed)


SOURCES: Mapping[str, Any] = MappingProxyType(
    {
        "machine_of": machine_of,
        "coded": coded,
        "identifier": identifier,
        "brackets": BRACKETS,
        "drawing": drawing,
        "formal_model": formal_model,
        "VERSION": VERSION,
        "CONTENTS": CONTENTS,
        "EDITIONS": EDITIONS,
        "CAFFE": CAFFE,
        "MODE": MODE,
        "REFUSALS": REFUSALS,
        "BLOB_CALLS": BLOB_CALLS,
    }
)
"""The sources of a template: the machine and its rows as numbers, the diagram, the machine over variables, and the
words of all editions."""


def rendered(
    template: str,
    edition: AnyMachine,
    calls: Collection[str] = (),
    detail: Detail | None = None,
    direction: Direction | None = None,
) -> str:
    """The text that a template makes of an edition.

    Parameters
    ----------
    template : str
        A file of `FOLDER`.
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str
        Show only these calls; if empty, all calls.
    detail : Detail or None
        None for formats that have no details.
    direction : Direction, optional
    """
    return (
        templates()
        .get_template(template)
        .render(edition=edition, calls=calls, detail=detail, rightwards=direction is Direction.RIGHT)
    )


@cache
def templates() -> Environment:
    """The templates, loaded by Jinja2."""
    environment = Environment(  # noqa: S701 -- no template is a page of HTML
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        variable_start_string="${",
        variable_end_string="}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= SOURCES
    environment.filters["creole"] = _creole
    environment.filters["comment"] = _comment
    environment.filters["literal"] = _literal
    return environment


def _creole(text: str) -> str:
    """A text whose letters mean nothing to PlantUML."""
    letters = r"[^\w .,()/+!\[\]:\'=✗-]|__|--|//"
    return re.sub(letters, lambda found: "".join(f"<U+{ord(character):04X}>" for character in found[0]), text)


def _comment(text: str) -> str:
    """A text in a comment of one line, which it cannot end."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *")


def _literal(text: str) -> str:
    """A text between quotes, in C and in Rust."""
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
