"""The seeded bugs that each vector refuses, as ``make kills`` has measured them.

The bugs are no part of the package (tests/mutants), and measuring takes minutes, so the result is stored in
``kills.json``: the names of the bugs; every set of bugs that some vector refuses, as a number in base 16 (a bit for
each bug); and for each suite the set of each vector.  A digest of each suite is stored too, so that a changed suite is
noticed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from .vector import digest, vectors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .vector import Vector

__all__ = ["Kills", "StaleKillsError"]


class StaleKillsError(ValueError):
    """The stored kills were measured for other vectors."""


@dataclass(frozen=True)
class Kills:
    """The result of the measurement.

    Attributes
    ----------
    bugs : tuple of str
        The names of the bugs, in the order of the bits.
    sets : tuple of int
    suites : dict
        For ``"edition/suite"`` the digest of its names, and the number of the set of each vector.
    """

    bugs: tuple[str, ...]
    sets: tuple[int, ...]
    suites: dict[str, tuple[str, tuple[int, ...]]]

    @classmethod
    def known(cls) -> Kills:
        """The stored kills."""
        data = json.loads(files("syncedmem.spec.vectors").joinpath("kills.json").read_text(encoding="utf-8"))
        suites = {name: (it["digest"], tuple(it["vectors"])) for name, it in data["suites"].items()}
        return cls(tuple(data["seeded_bugs"]), tuple(int(it, 16) for it in data["sets"]), suites)

    def as_text(self) -> str:
        """The text that is stored, a line for each suite."""
        suites = ",\n".join(
            f'  "{name}": {json.dumps({"digest": of, "vectors": numbers}, separators=(",", ":"))}'
            for name, (of, numbers) in self.suites.items()
        )
        names, sets = json.dumps(self.bugs), json.dumps([f"{it:x}" for it in self.sets])
        return f'{{\n "seeded_bugs": {names},\n "sets": {sets},\n "suites": {{\n{suites}\n }}\n}}\n'

    def of(self, edition: str, suite: str) -> tuple[tuple[str, ...], ...]:
        """For each vector of a suite, the names of the bugs that it refuses.

        Raises
        ------
        StaleKillsError
            If the suite has changed since the measurement.
        """
        found = [*vectors(suite, edition)]
        known, numbers = self.suites.get(f"{edition}/{suite}", ("", ()))
        if known != names_of(found):
            raise StaleKillsError(f"the kills of {edition}/{suite} were measured for other vectors: measure them again")
        return tuple(self._names(self.sets[number]) for number in numbers)

    def _names(self, bits: int) -> tuple[str, ...]:
        return tuple(name for k, name in enumerate(self.bugs) if bits >> k & 1)


def names_of(found: Iterable[Vector]) -> str:
    """A digest of the names of vectors, in their order."""
    return digest(" ".join(vector.id for vector in found))
