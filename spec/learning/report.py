"""The result of learning: the machine, how far it can be trusted, and where it is not the declared one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import InvalidArgumentError, tour
from syncedmem.model.states import stepper
from syncedmem.model.suites import access_to, complete_words, counter_sequences, minimise

from .asking import asked_port
from .comparison import compared, declared_machine
from .learner import Teacher, check_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model import Machine

    from ..engine.supervisor import Limits
    from ..ports.targets import MakerTarget, ProgramTarget
    from .answers import Answer, Sight, Word
    from .asking import AskedPort
    from .comparison import AnswerDifference, Comparison
    from .learner import Inconsistent, Learned, LearnedRows

__all__ = ["DEEPEST", "LearnFinding", "LearnReport", "LearnWanted", "learn", "learn_port"]

DEEPEST = 3
"""How many states more than the declared machine has a port may be said to have."""

_MOST, _ANSWERS = 4, 200
"""Learning ends if the machine has this many times the states of the declared one, or of its different answers if these
are more than so many."""

_LONG = 40
"""The length of a random word."""

_NAMES = 8


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
        The tests are complete for ports with at most so many states; by default for as many as are learned.
    steps, seed : int
        The number of random inputs after these tests, and their seed.
    """

    level: str = ""
    edition: str = ""
    states: int | None = None
    steps: int = 0
    seed: int = 0


class LearnFinding(NamedTuple):
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
    name : str
    machine : Machine
        The declared one.
    sight : Sight
        What was seen of it.
    wanted : LearnWanted
    declared : int
        The number of states of the declared machine.
    learned : Learned
    comparison : Comparison
    findings : tuple of LearnFinding
    """

    name: str
    machine: Machine
    sight: Sight
    wanted: LearnWanted
    declared: int
    learned: Learned
    comparison: Comparison
    findings: tuple[LearnFinding, ...]

    @property
    def size(self) -> int:
        """The number of learned states."""
        return len(self.learned.machine)

    @property
    def passed(self) -> bool:
        """Whether the machine was learned, and is the declared one."""
        return not self.learned.stopped and not self.comparison.differences

    @property
    def right(self) -> int:
        """The machine is right if the port has at most so many states."""
        return max(self.wanted.states or 0, self.size)

    @property
    def bound(self) -> str:
        """How far the result can be trusted, in a sentence."""
        if self.learned.stopped:
            return f"The machine is not known, because {self.learned.stopped}. Only what was asked is compared."
        depth = f"depth {self.right - self.size} of the W-method"
        return (
            f"The machine is right if the port has at most {self.right} states: {depth}. "
            "A port with more may be another machine."
        )

    @property
    def line(self) -> str:
        """The result in one line."""
        cells, about = self.comparison.cells, f"{self.machine.name}/{self.sight.level}"
        if self.passed:
            known = f"{self.comparison.reached} of {cells} cells, if the port has at most {self.right} states"
            return f"as declared: {about}, {known}"
        names = [it.name for it in self.comparison.differences if not it.behind]
        if not names:
            return f"not learned: {self.learned.stopped}"
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        return f"not as declared: {about}, {len(names)} of {cells} cells differ: {', '.join(names[:_NAMES])}{more}"

    def as_json(self) -> dict[str, Any]:
        """The report as data."""
        found, known = self.learned, not self.learned.stopped
        return {
            "name": self.name,
            "edition": self.machine.name,
            "level": self.sight.level,
            "seen": str(self.sight),
            "seed": self.wanted.seed,
            "verdict": self.line,
            "passed": self.passed,
            "stopped": found.stopped or None,
            "interrupted": found.interrupted,
            "right_up_to_states": self.right if known else None,
            "depth": self.right - self.size if known else None,
            "declared_states": self.declared,
            "calls": found.calls,
            "memories": found.memories,
            "cells": self.comparison.cells,
            "cells_compared": self.comparison.reached,
            "differences": [_as_json(it) for it in self.comparison.differences],
            "findings": [it._asdict() for it in self.findings],
            "states": _states(found.machine) if known else [],
        }


def _as_json(found: AnswerDifference) -> dict[str, Any]:
    return {
        "configuration": str(found.configuration),
        "call": str(found.word[-1]),
        "after": [*map(str, found.word[:-1])],
        "declared": dict(found.declared),
        "learned": dict(found.learned),
        "differences_before": found.behind,
    }


def _states(machine: LearnedRows) -> list[dict[str, Any]]:
    """The states of a machine: a shortest way to each, and the answers in it."""
    return [
        {
            "access": [*map(str, access)],
            "steps": {str(entry): {**dict(answer), "next": after} for entry, (answer, after) in machine[state].items()},
        }
        for state, access in access_to(machine).items()
    ]


def _to_nobody(_: str, __: int) -> None:
    """Tell nobody."""


def learn(
    target: ProgramTarget | MakerTarget,
    wanted: LearnWanted,
    limits: Limits,
    *,
    progress: Callable[[str, int], None] = _to_nobody,
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
    check_installed()  # before anything is started
    port = asked_port(target, wanted.edition, wanted.level, limits)
    try:
        return learn_port(port, wanted, progress=progress)
    finally:
        port.close()


def learn_port(
    port: AskedPort, wanted: LearnWanted, *, progress: Callable[[str, int], None] = _to_nobody
) -> LearnReport:
    """Learn the machine of a port that runs; see `learn`."""
    machine = port.machine
    declared, entries = declared_machine(machine, port.sight), stepper(machine).inputs(end=True)
    distinct = len(minimise(declared).access)
    if wanted.states is not None and not 0 < wanted.states <= distinct + DEEPEST:
        expected = f"between 1 and {distinct + DEEPEST}, because {distinct} are declared"
        raise InvalidArgumentError("--states", wanted.states, expected)
    different = {answer for row in declared.values() for answer, _ in row.values()}
    chance, lasting = random.Random(wanted.seed), [it for it in entries if not it.ends]  # noqa: S311 -- tests
    random_words = [tuple(chance.choices(lasting, k=_LONG)) for _ in range(-(-wanted.steps // _LONG))]

    def tests(found: LearnedRows) -> Iterator[Word]:
        """Words that are complete for so many states; and then each cell, long words, and each difference."""
        yield from complete_words(minimise(found), max((wanted.states or 0) - len(found), 0))
        yield from ((*word, entry) for word in access_to(declared).values() for entry in entries)
        yield from (*tour(machine), *counter_sequences(machine))
        yield from (it.word for it in compared(machine, declared, found).differences)
        yield from random_words

    most = _MOST * distinct, max(_MOST * len(different), _ANSWERS)
    found = Teacher(port, entries, most, tests, progress).learn()
    comparison = compared(machine, declared, found.machine)
    if found.interrupted:
        port.renew()  # its last answer was not read
    findings = [_finding(port, it) for it in comparison.differences]
    if found.inconsistent is not None:
        findings.insert(0, _two_ways(port, found.inconsistent))
    return LearnReport(port.name, machine, port.sight, wanted, distinct, found, comparison, tuple(findings))


def _finding(port: AskedPort, found: AnswerDifference) -> LearnFinding:
    others = f" (it comes after {found.behind} other difference{'s' * (found.behind > 1)})" if found.behind else ""
    answers = {"declared": found.declared, "learned": found.learned}
    return _shown(port, found.name, found.word, answers, after=others)


def _two_ways(port: AskedPort, twice: Inconsistent) -> LearnFinding:
    why = (
        "a new process always gives one answer, so something outlives a memory, such as a static variable"
        if twice.kept
        else "new processes give different answers too, so it is chance, time, or memory that was never written"
    )
    answers = {"first": twice.first, "later": twice.later}
    return _shown(port, f"{twice.word[-1]} is answered in two ways", twice.word, answers, f"because:  {why}")


def _shown(
    port: AskedPort, name: str, word: Word, answers: dict[str, Answer], *lines: str, after: str = ""
) -> LearnFinding:
    """Two answers to the last input of a word, as far as they differ, and the program that shows the second one."""
    one, other = answers.values()
    port.ask(word)
    contrasted = (
        "; ".join(f"{about}: {said}" for about, said in answer if (about, said) not in against) or "–"
        for answer, against in ((one, other), (other, one))
    )
    told = (f"{f'{who}:':<10}{text}" for who, text in zip(answers, contrasted, strict=True))
    before = ", ".join(map(str, word[:-1])) or "a new memory"
    return LearnFinding(name, (*told, *lines), before + after, tuple(port.program))
