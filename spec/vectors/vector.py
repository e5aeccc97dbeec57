"""A vector: a program with its expected results, its name, and the seeded bugs that it refuses."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from syncedmem.model import Call, Input, inputs, space
from syncedmem.model.compiled import dispatch

from .blobs import BLOB_SUITES, BlobProgram, blob_programs, expected_blob_steps
from .expected import expected_steps
from .programs import SUITES, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .blobs import BlobSuite
    from .programs import Program, Suite

__all__ = ["ALL_SUITES", "FORMAT", "Vector", "canonical", "model_digest", "vectors"]

FORMAT = 2
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
    kills : tuple of str
        The names of the seeded bugs that it refuses.
    """

    suite: str
    program: Program | BlobProgram
    kills: tuple[str, ...] = ()

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
            "kills": list(self.kills),
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
    """A digest of the behaviour of an edition: every reachable state, every input, actions, refusals and flags."""
    table, release = dispatch(edition), Input(Call.RELEASE)
    told = [
        f"{state.packed} {state.mode.name} {entry}: {step.refusal} {[it.value for it in step.actions]} "
        f"{step.after.packed}"
        for state, row in space(edition).steps.items()
        for entry, step in row.items()
    ]
    ends = [(state.packed, table.cell(Call.RELEASE, state.packed)) for state in space(edition).steps]
    told += [
        f"{packed} {release}: {[it.value for it in cell.actions]} {list(cell.next)}" for packed, cell in ends if cell
    ]
    return digest("\n".join((*map(str, inputs(edition, null=True)), *told)))


def vectors(suite: str, edition: str, kills: tuple[tuple[str, ...], ...] | None = None) -> Iterator[Vector]:
    """The vectors of a suite.

    Parameters
    ----------
    suite : str
        A name from ``ALL_SUITES``.
    edition : str
    kills : tuple of tuple of str, optional
        For each vector, the bugs that it refuses.

    Raises
    ------
    KeyError
        If there is no such suite.
    """
    made: Callable[[str, str], Sequence[Program | BlobProgram]] = blob_programs if suite in BLOB_SUITES else programs
    found = made(suite, edition)
    for program, names in zip(found, kills or ((),) * len(found), strict=True):
        yield Vector(suite, program, names)
