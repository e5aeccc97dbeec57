"""The result of learning: the machine, how far it can be trusted, and where it is not the declared one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS, InvalidArgumentError, tour
from syncedmem.model.suites import counter_sequences

from .asking import asked_port
from .comparison import compared
from .declared import alphabet, declared_machine
from .learner import check_installed, learned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..engine.supervisor import Limits
    from ..ports.targets import MakerTarget, ProgramTarget
    from .answers import Answer, Sight, Word
    from .asking import AskedPort
    from .comparison import Comparison, Difference
    from .learner import Learned
    from .mealy import Mealy

__all__ = ["DEEPEST", "Finding", "LearnReport", "LearnWanted", "learn", "learn_port"]

DEEPEST = 3
"""How many states more than the declared machine has a port may be said to have."""

_MOST = 4
"""Learning ends if the machine has this many times the states of the declared one."""

_WORDS = 8


@dataclass(frozen=True)
class LearnWanted:
    """How a port is learned.

    Attributes
    ----------
    level : str
        What is looked at: L0, L1 or L2; if empty, the highest of them that the port shows.
    edition : str
        The edition of the model; if empty, the port's own.
    states : int or None
        The tests are complete for ports with at most so many states; by default for as many as are declared.
    steps, seed : int
        The number of random inputs after these tests, and their seed.
    """

    level: str = ""
    edition: str = ""
    states: int | None = None
    steps: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Finding:
    """What is wrong, with a program that shows it.

    Attributes
    ----------
    name : str
        What it is about; also the name of its file.
    lines : tuple of str
        What was expected and what was seen.
    after : str
        What to call before.
    statements : tuple of str
        A program in Python that needs only this package, or requests for the port.
    """

    name: str
    lines: tuple[str, ...]
    after: str
    statements: tuple[str, ...]


@dataclass(frozen=True)
class LearnReport:
    """The result of learning a port.

    Attributes
    ----------
    name, edition : str
    sight : Sight
        What was seen of it.
    seed : int
    declared : int
        The number of states of the declared machine.
    learned : Learned
    comparison : Comparison
    findings : tuple of Finding
    """

    name: str
    edition: str
    sight: Sight
    seed: int
    declared: int
    learned: Learned
    comparison: Comparison
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether the machine was learned, and is the declared one."""
        return not self.learned.stopped and not self.comparison.differences

    @property
    def bound(self) -> str:
        """How far the result can be trusted, in a sentence."""
        found = self.learned
        if found.stopped:
            return f"The machine is not known, because {found.stopped}. Only what was asked is compared."
        return (
            f"The machine is right if the port has at most {found.bound} states: depth {found.depth} of the W-method. "
            "A port with more may be another machine."
        )

    @property
    def line(self) -> str:
        """The result in one line."""
        compared = self.comparison
        if self.passed:
            return (
                f"as declared: {self.edition}/{self.sight.level}, {compared.reached} of {compared.cells} cells, if the "
                f"port has at most {self.learned.bound} states"
            )
        if not compared.differences:
            return f"not learned: {self.learned.stopped}"
        names = [it.name for it in compared.first]
        more = f" and {len(names) - _WORDS} more" if len(names) > _WORDS else ""
        return (
            f"not as declared: {self.edition}/{self.sight.level}, {len(names)} of {compared.cells} cells differ: "
            f"{', '.join(names[:_WORDS])}{more}"
        )

    def as_json(self) -> dict[str, Any]:
        """The report as data."""
        found = self.learned
        return {
            "name": self.name,
            "edition": self.edition,
            "level": self.sight.level,
            "seen": str(self.sight),
            "seed": self.seed,
            "verdict": self.line,
            "passed": self.passed,
            "stopped": found.stopped or None,
            "interrupted": found.interrupted,
            "right_up_to_states": None if found.stopped else found.bound,
            "depth": None if found.stopped else found.depth,
            "declared_states": self.declared,
            "calls": found.calls,
            "memories": found.memories,
            "cells": self.comparison.cells,
            "cells_compared": self.comparison.reached,
            "differences": [_as_json(it, self.sight) for it in self.comparison.differences],
            "findings": [
                {"name": it.name, "lines": [*it.lines], "after": it.after, "statements": [*it.statements]}
                for it in self.findings
            ],
            "states": [] if found.stopped else self._states(),
        }

    def _states(self) -> list[dict[str, Any]]:
        machine = self.learned.machine
        return [
            {
                "access": [str(entry) for entry in access],
                "steps": {
                    str(entry): {**answer.parts(self.sight), "next": after} for entry, (answer, after) in row.items()
                },
            }
            for access, row in zip(machine.access, machine.steps, strict=True)
        ]


def _as_json(found: Difference, sight: Sight) -> dict[str, Any]:
    return {
        "configuration": str(found.cell[0]),
        "call": str(found.cell[1]),
        "after": [str(entry) for entry in found.word[:-1]],
        "declared": found.declared.parts(sight),
        "learned": found.learned.parts(sight),
        "differences_before": found.behind,
    }


def learn(
    target: ProgramTarget | MakerTarget,
    wanted: LearnWanted,
    limits: Limits,
    *,
    progress: Callable[[str, int], None] | None = None,
) -> LearnReport:
    """Learn the machine of a port, and compare it with the declared one.

    Parameters
    ----------
    target : ProgramTarget or MakerTarget
    wanted : LearnWanted
    limits : Limits
        For each answer of the port, and for its memory.
    progress : callable, optional
        Called with what is done now, and with the number of calls until now.

    Raises
    ------
    MissingPackageError
        If AALpy is not installed.
    PortError
        If the port cannot be asked, is of another edition, or does not show the level.
    InvalidArgumentError
        If the tests for so many states would not end.
    Violation
        If the port cannot make a memory.
    """
    check_installed()
    port = asked_port(target, wanted.edition, wanted.level, limits)
    try:
        return learn_port(port, wanted, progress=progress)
    finally:
        port.close()


def learn_port(
    port: AskedPort, wanted: LearnWanted, *, progress: Callable[[str, int], None] | None = None
) -> LearnReport:
    """Learn the machine of a port that runs; see `learn`."""
    declared = declared_machine(port.edition, port.sight)
    distinct = declared.machine.distinct
    states = distinct if wanted.states is None else wanted.states
    if not 0 < states <= distinct + DEEPEST:
        expected = f"between 1 and {distinct + DEEPEST}, because {distinct} are declared"
        raise InvalidArgumentError("--states", states, expected)
    entries = alphabet(port.edition)

    def more(machine: Mealy) -> Iterator[Word]:
        """Each cell, long words that look for counters, and each difference: the port is asked, not the machine."""
        yield from ((*word, entry) for word in declared.machine.access for entry in entries)
        yield from tour(EDITIONS[port.edition])
        yield from counter_sequences(EDITIONS[port.edition])
        yield from (it.word for it in compared(machine, declared).differences)

    found = learned(
        port,
        entries,
        more=more,
        states=states,
        most=_MOST * distinct,
        steps=wanted.steps,
        seed=wanted.seed,
        progress=progress,
    )
    comparison = compared(found.machine, declared)
    if found.interrupted:
        port.renew()  # its last answer was not read
    findings = tuple(_finding(port, it) for it in comparison.differences)
    if found.inconsistent is not None:
        findings = (_two_ways(port, found), *findings)
    return LearnReport(port.name, port.edition, port.sight, wanted.seed, distinct, found, comparison, findings)


def _finding(port: AskedPort, found: Difference) -> Finding:
    others = f" (it comes after {found.behind} other difference{'s' * (found.behind > 1)})" if found.behind else ""
    lines = (*_described(found.declared, found.learned, port.sight),)
    return Finding(found.name, lines, _listed(found.word[:-1]) + others, port.program(found.word))


def _described(declared: Answer, seen: Answer, sight: Sight) -> list[str]:
    """Two answers, as far as they differ."""
    expected, found = declared.parts(sight), seen.parts(sight)
    about = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
    return [f"declared: {_said(expected, about)}", f"learned:  {_said(found, about)}"]


def _said(parts: Mapping[str, str], about: list[str]) -> str:
    return "; ".join(f"{name}: {parts[name]}" for name in about if name in parts) or "–"


def _listed(word: Word) -> str:
    return ", ".join(map(str, word)) or "a new memory"


def _two_ways(port: AskedPort, found: Learned) -> Finding:
    twice = found.inconsistent
    assert twice is not None  # noqa: S101 -- it is asked for only then
    first, later = _described(twice.first, twice.later, port.sight)
    why = (
        "a new process always gives one answer, so something outlives a memory, such as a static variable"
        if twice.kept
        else "new processes give different answers too, so it is chance, time, or memory that was never written"
    )
    return Finding(
        f"{twice.word[-1]} is answered in two ways",
        (
            first.replace("declared:", "first:   "),
            later.replace("learned: ", "later:   "),
            f"because:  {why}",
        ),
        _listed(twice.word[:-1]),
        port.program(twice.word),
    )
