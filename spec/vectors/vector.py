"""A vector: a program with its expected results, and its name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS, space
from syncedmem.model.states import stepper

from .blobs import BLOB_SUITES, BlobProgram, blob_programs, expected_blob_steps
from .expected import expected_steps
from .programs import SUITES, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from syncedmem.model import State

    from .blobs import BlobSuite
    from .programs import Program, Suite

__all__ = ["ALL_SUITES", "FORMAT", "Vector", "canonical", "model_digest", "vectors"]

FORMAT = 3
"""The version of the format; it changes when a valid vector becomes invalid."""

ALL_SUITES: Mapping[str, Suite | BlobSuite] = {**SUITES, **BLOB_SUITES}
"""Every suite by name: those of memories, and those of blobs."""

_DIGITS = 16


@dataclass(frozen=True)
class Vector:
    """One vector.

    Attributes
    ----------
    suite : str
    program : Program or BlobProgram
    """

    suite: str
    program: Program | BlobProgram

    @property
    def id(self) -> str:
        """The hash of the program without the expected results; it stays when those are corrected."""
        done = {"edition": self.program.edition, **self.program.made, "operations": self.program.operations}
        return digest(json.dumps(done, sort_keys=True, separators=(",", ":")))

    def as_json(self) -> dict[str, Any]:
        """The vector as data, as docs/vectors.md defines it."""
        return {
            "format": FORMAT,
            "id": self.id,
            "suite": self.suite,
            "edition": self.program.edition,
            "profile": self.program.profile,
            "model": model_digest(self.program.edition),
            **self.program.made,
            "steps": self._steps(),
        }

    def _steps(self) -> list[dict[str, Any]]:
        if isinstance(self.program, BlobProgram):
            return expected_blob_steps(self.program)
        return expected_steps(self.program)

    def line(self) -> str:
        """The vector as one line of JSON, the same bytes each time."""
        return canonical(self.as_json())


def canonical(data: object) -> str:
    """JSON without spaces, with keys in the order of docs/vectors.md."""
    return json.dumps(data, separators=(",", ":"))


def digest(text: str) -> str:
    """The first digits of a SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


@cache
def model_digest(edition: str) -> str:
    """A digest of the behaviour of an edition: every reachable state, every input, actions, refusals and facts."""
    table = stepper(EDITIONS[edition])
    inputs = table.inputs(end=True)
    told = [
        f"{_told(state)} {entry}: {step.refusal} {list(step.actions)} {_told(step.after)}"
        for state in space(EDITIONS[edition]).steps
        for entry in inputs
        if (step := table.step(state, entry))
    ]
    return digest("\n".join((*map(str, inputs), *told)))


def _told(state: State) -> str:
    return " ".join((state.head, *sorted(state.facts), *state.settings))


def vectors(suite: str, edition: str) -> Iterator[Vector]:
    """The vectors of a suite.

    Parameters
    ----------
    suite : str
        A name from ``ALL_SUITES``.
    edition : str

    Raises
    ------
    KeyError
        If there is no such suite.
    """
    made: Callable[[str, str], Sequence[Program | BlobProgram]] = blob_programs if suite in BLOB_SUITES else programs
    yield from (Vector(suite, program) for program in made(suite, edition))
