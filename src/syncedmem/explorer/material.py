"""What the page is told, as plain data: the machine, drawings of it, and traces to step through."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from syncedmem import __version__
from syncedmem.model import EDITIONS, Input, Mode, caffe
from syncedmem.model.diagrams.diamond import diamond_svg
from syncedmem.model.exports.document import machine_document
from syncedmem.model.files import MOST_TEXT
from syncedmem.spec.evidence.caffe_tests import CAFFE_TESTS, CAFFE_TESTS_FILE
from syncedmem.spec.fuzz.finding import OPERATIONS
from syncedmem.spec.vectors import SUITES, vectors
from syncedmem.spec.vectors.programs import LOOK, OWN, SET_MODE, WRITE_BUFFER

from .trace import MOST_STEPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from syncedmem.spec.vectors.programs import Operation

__all__ = ["MOST_SIZE", "SIZES", "calls_of", "explorer_material", "explorer_vectors"]

Json = dict[str, Any]

SIZES = (0, 4, 16, 64)
"""The sizes in bytes that the page offers; nothing of the machine depends on them."""

MOST_SIZE = 8192
"""The size in bytes of the largest memory of a trace: the page shows each byte."""

_DEFAULT_SIZE = 16
_DIGITS = 12  # of an id: as many as tell all vectors apart with certainty enough, in a page that has to stay small
_LETTERS = string.ascii_letters + string.digits


def explorer_material(opened: str | None = None) -> Json:
    """Everything that the page is told, but for the vectors.

    Parameters
    ----------
    opened : str, optional
        The text of a trace that the page opens with: a report of ``verify``, a replay of ``fuzz``, or the like.

    Returns
    -------
    dict
        Plain data, ready for JSON.
    """
    machine = machine_document()
    for edition in machine["editions"]:
        del edition["cells"]  # the page finds out by itself, from the transitions
    return {
        "version": __version__,
        "machine": machine,
        "mode": caffe.MODE.initial,
        "drawings": {name: diamond_svg(name) for name in EDITIONS},
        "sizes": {"offered": SIZES, "default": _DEFAULT_SIZE, "most": max(SIZES)},
        "most": {"bytes": MOST_TEXT, "steps": MOST_STEPS, "size": MOST_SIZE},
        "tests": [{"name": it.name, "size": it.size, "calls": [call.name for call in it.calls]} for it in CAFFE_TESTS],
        "testsFile": CAFFE_TESTS_FILE,
        "testsMode": Mode.CPU.name,
        "operations": OPERATIONS,
        "opened": opened,
    }


def explorer_vectors() -> list[Json]:
    """Every suite of every edition with its vectors; apart from the rest, because the page can open without them.

    A suite of memories that are too large for the page is left out.

    Returns
    -------
    list of dict
        Plain data, ready for JSON.
    """
    suites = (_suite(edition, name) for edition in EDITIONS for name in SUITES)
    return [suite for suite in suites if max(suite["sizes"], default=0) <= MOST_SIZE]


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
        return str(Input(setting=caffe.MODE.name, value=operation["argument"]))
    data = operation.get("argument", ()) is not None
    fails = f"!{operation['fail']}" if "fail" in operation else ""
    return f"{Input(caffe.EVERYTHING.calls[name], data)}{fails}"


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
