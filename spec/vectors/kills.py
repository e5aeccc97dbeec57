"""Which seeded bugs each vector refuses: measured, kept, and looked up.

Measuring puts every bug to every vector and takes minutes, so the result is kept in ``kills.json``: the names of the
bugs, every set of them that some vector refuses as a number in base 16 (a bit for each bug), and for each suite
the set of each vector in turn.  A suite's digest is kept with it, so that a changed suite is not mistaken for this one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS

from ..mutants.memory import MEMORY_BUGS
from .programs import SUITES
from .replay import replay
from .vector import digest, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..engine.subject import Subject
    from ..mutants.registry import SeededBug
    from .vector import Vector

__all__ = ["Kills", "StaleKillsError", "measure", "refused"]


class StaleKillsError(ValueError):
    """The kills that are kept were measured for other vectors."""


@dataclass(frozen=True)
class Kills:
    """What was measured.

    Attributes
    ----------
    bugs : tuple of str
        The names, in the order of the bits.
    sets : tuple of int
    suites : dict
        For ``"edition/suite"`` the digest of its names, and for each vector the number of its set.
    """

    bugs: tuple[str, ...]
    sets: tuple[int, ...]
    suites: dict[str, tuple[str, tuple[int, ...]]]

    @classmethod
    def known(cls) -> Kills:
        """Those that are kept."""
        data = json.loads(files("syncedmem.spec.vectors").joinpath("kills.json").read_text(encoding="utf-8"))
        suites = {name: (it["digest"], tuple(it["vectors"])) for name, it in data["suites"].items()}
        return cls(tuple(data["seeded_bugs"]), tuple(int(it, 16) for it in data["sets"]), suites)

    def as_text(self) -> str:
        """What is kept, a line for each suite."""
        suites = ",\n".join(
            f'  "{name}": {json.dumps({"digest": of, "vectors": numbers}, separators=(",", ":"))}'
            for name, (of, numbers) in self.suites.items()
        )
        names, sets = json.dumps(self.bugs), json.dumps([f"{it:x}" for it in self.sets])
        return f'{{\n "seeded_bugs": {names},\n "sets": {sets},\n "suites": {{\n{suites}\n }}\n}}\n'

    def of(self, edition: str, suite: str) -> tuple[tuple[str, ...], ...]:
        """For each vector of a suite the names of the bugs that it refuses.

        Raises
        ------
        StaleKillsError
            If the suite is not the one that was measured.
        """
        found = [*vectors(suite, edition)]
        known, numbers = self.suites.get(f"{edition}/{suite}", ("", ()))
        if known != _names_of(found):
            raise StaleKillsError(f"the kills of {edition}/{suite} were measured for other vectors: measure them again")
        return tuple(self._names(self.sets[number]) for number in numbers)

    def _names(self, bits: int) -> tuple[str, ...]:
        return tuple(name for k, name in enumerate(self.bugs) if bits >> k & 1)


def _names_of(found: Iterable[Vector]) -> str:
    return digest(" ".join(vector.id for vector in found))


def refused(bug: SeededBug, subject: Subject, vector: dict[str, Any]) -> bool:
    """Whether a vector refuses a seeded bug, or finds it wasteful."""
    wrong = replace(subject, name=bug.name, make=bug.make)
    try:
        return replay(wrong, vector).result != "passed"
    except Exception:  # noqa: BLE001 -- a bug may keep a memory from being made
        return True


def measure(
    device: Callable[[], Subject],
    no_device: Callable[[], Subject],
    *,
    only: Iterable[str] = SUITES,
    progress: Callable[[str], None] = lambda _: None,
) -> Kills:
    """Put every seeded bug to every vector.

    Parameters
    ----------
    device, no_device : callable
        Make subjects; their makers are replaced by the bugs'.
    only : iterable of str
        Names of suites.
    progress : callable
        Told of each suite as it starts.
    """
    subjects = {"device": device(), "no device": no_device()}
    sets: dict[int, int] = {}
    suites: dict[str, tuple[str, tuple[int, ...]]] = {}
    for edition in EDITIONS:
        kind = "no device" if edition == "cpu_only" else "device"
        for suite in only:
            progress(f"{edition}/{suite}")
            found = [*vectors(suite, edition)]
            numbers = tuple(sets.setdefault(bits, len(sets)) for bits in _bits(found, subjects[kind], kind))
            suites[f"{edition}/{suite}"] = (_names_of(found), numbers)
    return Kills(tuple(MEMORY_BUGS), tuple(sets), suites)


def _bits(found: Iterable[Vector], subject: Subject, kind: str) -> Iterator[int]:
    for vector in found:
        data = vector.as_json()
        bugs = ((k, bug) for k, bug in enumerate(MEMORY_BUGS.values()) if bug.shows_on == kind)
        yield sum(1 << k for k, bug in bugs if refused(bug, subject, data))
