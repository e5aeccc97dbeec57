"""What the page is told, as plain data: the machine, drawings of it, and traces to step through."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from syncedmem import __version__
from syncedmem.model import Action, Call, Input, Mode, space
from syncedmem.model.diagrams.diamond import diamond_svg
from syncedmem.model.exports.document import machine_document
from syncedmem.model.files import MOST_TEXT
from syncedmem.model.vocabulary import Host, code_of, done_of, title_of
from syncedmem.spec.evidence.caffe_tests import CAFFE_TESTS, CAFFE_TESTS_FILE
from syncedmem.spec.fuzz.finding import OPERATIONS
from syncedmem.spec.vectors import SUITES, vectors
from syncedmem.spec.vectors.programs import LOOK, OWN, SET_MODE, WRITE_BUFFER

from .machines import editions_of
from .trace import MOST_STEPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from syncedmem.model.machine import AnyEdition
    from syncedmem.spec.vectors.programs import Operation

__all__ = ["MOST_SIZE", "SIZES", "calls_of", "explorer_material", "explorer_vectors"]

Json = dict[str, Any]

SIZES = (0, 4, 16, 64)
"""The sizes in bytes that the page offers; nothing of the machine depends on them."""

MOST_SIZE = 8192
"""The size in bytes of the largest memory of a trace: the page shows each byte."""

_DEFAULT_SIZE = 16
_DIGITS = 9  # of an id: they tell all vectors apart, which a test checks, and the page has to stay small
_LETTERS = string.ascii_letters + string.digits


def explorer_material(opened: str | None = None, edition: AnyEdition | None = None) -> Json:
    """Everything that the page is told, but for the vectors.

    Parameters
    ----------
    opened : str, optional
        The text of a trace that the page opens with: a report of ``verify``, a replay of ``fuzz``, or the like.
    edition : str or Declaration, optional
        As `editions_of` takes it.

    Returns
    -------
    dict
        Plain data, ready for JSON.
    """
    machines = editions_of(edition)
    document = machine_document(*machines)
    for it in document["editions"]:
        del it["cells"]  # the page finds out by itself, from the transitions
    return {
        "version": __version__,
        "machine": document,
        "words": _words(),
        "mode": space(machines[0]).start.mode.name,
        "drawings": {str(it): diamond_svg(it) for it in machines},
        "sizes": {"offered": SIZES, "default": _DEFAULT_SIZE, "most": max(SIZES)},
        "most": {"bytes": MOST_TEXT, "steps": MOST_STEPS, "size": MOST_SIZE},
        "tests": [{"name": it.name, "size": it.size, "calls": [call.value for call in it.calls]} for it in CAFFE_TESTS],
        "testsFile": CAFFE_TESTS_FILE,
        "testsMode": Mode.CPU.name,
        "operations": OPERATIONS,
        "opened": opened,
    }


def _words() -> Json:
    """The words of the vocabulary for what the document has names for."""
    return {
        "sides": {place.value: title_of(place) for place in Host},
        "done": {action.value: done_of(action) for action in Action},
        "codes": {action.value: code_of(action) for action in Action},
    }


def explorer_vectors(edition: AnyEdition | None = None) -> list[Json]:
    """Every suite of our editions with its vectors; apart from the rest, because the page can open without them.

    Parameters
    ----------
    edition : str or Declaration, optional
        As `editions_of` takes it.  For a machine of somebody's own there are no vectors.

    Returns
    -------
    list of dict
        Plain data, ready for JSON.
    """
    return [_suite(it, name) for it in editions_of(edition) if isinstance(it, str) for name in SUITES]


def calls_of(operations: Iterable[Operation]) -> tuple[str, ...]:
    """The operations of a vector that are inputs of the machine, by name; of several memories, those of the first.

    Handing in a memory's own pointer is none, because it is this project that refuses it; nor is what a caller writes
    into a buffer, nor a look.  A call of which an allocator call is to fail has its number behind ``!``.
    """
    return tuple(_name(it) for it in operations if _is_input(it))


def _is_input(operation: Operation) -> bool:
    skipped = operation["call"] in (WRITE_BUFFER, LOOK) or "memory" in operation
    return not skipped and operation.get("argument") != OWN


def _name(operation: Operation) -> str:
    name = operation["call"]
    if name == SET_MODE:
        return str(Input(None, mode=Mode[operation["argument"]]))
    data = operation.get("argument", ()) is not None
    fails = f"!{operation['fail']}" if "fail" in operation else ""
    return f"{Input(Call(name), data=data)}{fails}"


def _suite(edition: str, name: str) -> Json:
    """A suite with its vectors spelled, a letter for each call."""
    found = list(vectors(name, edition))
    words = [calls_of(vector.program.operations) for vector in found]
    sizes = [vector.program.made["sizes"][0] for vector in found]
    letters = dict(zip(dict.fromkeys(call for word in words for call in word), _LETTERS, strict=False))
    return {
        "edition": edition,
        "name": name,
        "text": SUITES[name].text,
        "sizes": sizes if len(set(sizes)) > 1 else sizes[:1],  # of each vector, or of all
        "letters": {letter: call for call, letter in letters.items()},
        "ids": " ".join(vector.id[:_DIGITS] for vector in found),
        "words": " ".join("".join(letters[call] for call in word) for word in words),
    }
