"""What the page is told, as plain data: the machine, drawings of it, and traces to step through."""

from __future__ import annotations

import hashlib
import string
from typing import TYPE_CHECKING, Any

from syncedmem import __version__
from syncedmem.model import EDITIONS, Mode, hsi_suite, space, tour
from syncedmem.model.diamond import diamond_svg
from syncedmem.model.exports.document import machine_document
from syncedmem.spec.caffe_tests import CAFFE_TESTS, CAFFE_TESTS_FILE
from syncedmem.spec.fuzz.finding import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.suites import Word

__all__ = ["SIZES", "explorer_material", "vector_id"]

Json = dict[str, Any]

SIZES = (0, 4, 16, 64)
"""The sizes in bytes that the page offers; nothing of the machine depends on them."""

_DEFAULT_SIZE = 16
_ID_LENGTH = 12
_LETTERS = string.ascii_lowercase

_SUITES: dict[str, tuple[str, Callable[[str], tuple[Word, ...]]]] = {
    "tour": ("the transition tour", tour),
    "hsi": ("the HSI suite", hsi_suite),
}


def explorer_material(opened: str | None = None) -> Json:
    """Everything that the page is told.

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
        "mode": space().start.mode.name,
        "drawings": {name: diamond_svg(name) for name in EDITIONS},
        "sizes": {"offered": SIZES, "default": _DEFAULT_SIZE, "most": max(SIZES)},
        "suites": [_suite(edition, name) for edition in EDITIONS for name in _SUITES],
        "tests": [{"name": it.name, "size": it.size, "calls": [call.value for call in it.calls]} for it in CAFFE_TESTS],
        "testsFile": CAFFE_TESTS_FILE,
        "testsMode": Mode.CPU.name,
        "operations": OPERATIONS,
        "opened": opened,
    }


def vector_id(edition: str, word: Word) -> str:
    """The id of a word: the beginning of the hash of its edition and its inputs, so that it follows from them alone."""
    text = "\n".join((edition, *map(str, word)))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


def _suite(edition: str, name: str) -> Json:
    title, make = _SUITES[name]
    words = make(edition)
    letters = dict(zip(dict.fromkeys(entry for word in words for entry in word), _LETTERS, strict=False))
    return {
        "edition": edition,
        "name": name,
        "title": title,
        "letters": {letter: str(entry) for entry, letter in letters.items()},
        "ids": [vector_id(edition, word) for word in words],
        "words": ["".join(letters[entry] for entry in word) for word in words],
    }
