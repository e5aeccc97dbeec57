"""Learning a machine of a port: AALpy asks for words, and builds machines that agree with the answers.

A machine is tested until no test finds an error in it.  The tests are complete up to a number of states: a port with at
most so many states, that is another machine, fails one of them.  After these tests there are random words, for what is
hidden deeper; they give no guarantee.

AALpy is optional: only this module imports it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from syncedmem.model import MissingPackageError

from .answers import NOT_ASKED, Answer, Word
from .mealy import Mealy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from syncedmem.model import Input

    from .asking import AskedPort

__all__ = ["Inconsistent", "Learned", "check_installed", "learned"]

HANGS, DEATHS = 3, 400
"""After so many hangs, or after so many deaths of the port, learning ends."""

ANSWERS = 200
"""Learning ends if the port gives so many different answers: they are not finite, so there is no finite machine."""

LONG = 40
"""The length of a random word."""


@dataclass(frozen=True)
class Inconsistent:
    """A word that was answered in two ways.

    Attributes
    ----------
    word : tuple of Input
    first, later : Answer
        The answers to its last input.
    kept : bool
        Whether new processes always give one answer: then something outlives a memory.
    """

    word: Word
    first: Answer
    later: Answer
    kept: bool


@dataclass(frozen=True)
class Learned:
    """What was learned of a port.

    Attributes
    ----------
    machine : Mealy
        The learned machine; what was asked, as a tree, if learning ended before there was one.
    stopped : str
        Why learning ended before there was a machine; empty if there is one.
    inconsistent : Inconsistent or None
    depth : int
        For how many more states than the machine has the tests are complete.
    calls, memories : int
        How many calls were made, on how many memories.
    interrupted : bool
        Whether an interrupt (Ctrl-C) ended it.
    """

    machine: Mealy
    stopped: str
    inconsistent: Inconsistent | None
    depth: int
    calls: int
    memories: int
    interrupted: bool = False

    @property
    def bound(self) -> int:
        """The machine is right if the port has at most so many states."""
        return self.machine.size + self.depth


class _Stopped(Exception):
    """Learning cannot go on."""

    def __init__(self, reason: str, inconsistent: Inconsistent | None = None) -> None:
        super().__init__(reason)
        self.inconsistent = inconsistent


def check_installed() -> None:
    """Check that AALpy is there.

    Raises
    ------
    MissingPackageError
    """
    try:
        import_module("aalpy")
    except ModuleNotFoundError as error:
        raise MissingPackageError("learning a machine", "aalpy", "learn") from error


def learned(  # noqa: PLR0913 -- options
    port: AskedPort,
    alphabet: tuple[Input, ...],
    *,
    states: int,
    most: int,
    steps: int,
    seed: int,
    more: Callable[[Mealy], Iterable[Word]] = lambda _: (),
    progress: Callable[[str, int], None] | None = None,
) -> Learned:
    """Learn the machine of a port.

    Parameters
    ----------
    port : AskedPort
    alphabet : tuple of Input
    states : int
        The tests are complete for ports with at most so many states.
    most : int
        Learning ends if the machine has more states.
    steps : int
        The number of inputs of random words.
    seed : int
    more : callable, optional
        Gives more words to test a machine with, after those that are complete.
    progress : callable, optional
        Called with what is done now, and with the number of calls until now.

    Raises
    ------
    MissingPackageError
        If AALpy is not installed.
    """
    check_installed()
    run: Any = import_module("aalpy.learning_algs").run_KV
    walks = _random_words(alphabet, steps, seed)

    def others(machine: Mealy) -> Iterator[Word]:
        yield from more(machine)
        yield from walks

    teacher = Teacher(port, alphabet, states, most, others, progress)
    stopped, inconsistent, interrupted = "", None, False
    try:
        run([*alphabet], teacher, teacher, "mealy", cex_processing="rs", cache_and_non_det_check=False, print_level=0)
    except _Stopped as reason:
        stopped, inconsistent = str(reason), reason.inconsistent
    except KeyboardInterrupt:
        stopped, interrupted = "it was interrupted", True
    machine = teacher.observed() if stopped else teacher.machine
    depth = 0 if stopped else max(states - machine.size, 0)
    return Learned(machine, stopped, inconsistent, depth, teacher.num_steps, teacher.num_queries, interrupted)


def _random_words(alphabet: tuple[Input, ...], steps: int, seed: int) -> tuple[Word, ...]:
    """Long words without release."""
    chance, entries = random.Random(seed), [entry for entry in alphabet if not entry.ends]  # noqa: S311 -- tests
    return tuple(tuple(chance.choices(entries, k=LONG)) for _ in range(-(-steps // LONG)))


class _Node:
    """What was asked: the answer to each input here, and what was asked after it."""

    def __init__(self) -> None:
        self.steps: dict[Input, tuple[Answer, _Node]] = {}


class Teacher:
    """Answers words, each at most once from the port, and tests machines; AALpy's system and its oracle."""

    def __init__(  # noqa: PLR0913 -- as `learned`
        self,
        port: AskedPort,
        alphabet: tuple[Input, ...],
        states: int,
        most: int,
        others: Callable[[Mealy], Iterator[Word]],
        progress: Callable[[str, int], None] | None,
    ) -> None:
        self.num_queries: int = 0
        self.num_steps: int = 0
        self.num_cached_queries: int = 0
        self.machine: Mealy = Mealy(({},))
        self._port = port
        self._alphabet = alphabet
        self._states = states
        self._most = most
        self._others = others
        self._progress = progress
        self._tree = _Node()
        self._answers: set[Answer] = set()
        self._deaths = 0
        self._hangs = 0

    def query(self, word: Word) -> list[Answer]:
        """The answers to a word; the port is asked if they are not known."""
        known = self._known(word)
        if len(known) < len(word):
            self._ask(word)
            known = self._known(word)
        return known

    def find_cex(self, hypothesis: Any) -> Word | None:
        """A word that a machine answers otherwise than the port: one that was asked, a test, or a random one."""
        machine = self.machine = _machine_of(hypothesis, self._alphabet)
        if machine.size > self._most:
            raise _Stopped(f"it has more than {self._most} states")
        if self._progress is not None:
            self._progress(f"{machine.size} states", self.num_steps)
        words = self._words(machine)
        return next((wrong for word in words if (wrong := machine.first_wrong(word, self.query(word)))), None)

    def _words(self, machine: Mealy) -> Iterator[Word]:
        yield from self._asked(machine)
        yield from machine.tests(max(self._states - machine.size, 0))
        yield from self._others(machine)

    def _asked(self, machine: Mealy) -> Iterator[Word]:
        """The words of those that were asked which the machine answers otherwise, the shortest first."""
        waiting: list[tuple[_Node, int, Word]] = [(self._tree, 0, ())]
        for node, state, word in waiting:
            for entry, (answer, below) in node.steps.items():
                expected, after = machine.steps[state][entry]
                if answer != expected:
                    yield (*word, entry)
                waiting.append((below, after, (*word, entry)))

    def _known(self, word: Word) -> list[Answer]:
        """The answers that are known; after the end of the memory all of them are."""
        node, answers = self._tree, list[Answer]()
        for entry in word:
            if entry not in node.steps:
                return answers
            answer, node = node.steps[entry]
            answers.append(answer)
            if _ends(entry, answer):
                return answers + [NOT_ASKED] * (len(word) - len(answers))
        return answers

    def _ask(self, word: Word) -> None:
        """Ask the port, and keep the answers."""
        length = next((number for number, entry in enumerate(word, 1) if entry.ends), len(word))
        answers = self._port.ask(word[:length])
        self.num_queries += 1
        self.num_steps += len(answers)
        node = self._tree
        for number, (entry, answer) in enumerate(zip(word, answers, strict=False), 1):
            first, node = node.steps.setdefault(entry, (answer, _Node()))
            if first != answer:
                found = self._inconsistent(word[:number], first, answer)
                raise _Stopped("the same calls are answered in two ways", found)
        self._answers.update(answers)
        if len(self._answers) > ANSWERS:
            raise _Stopped(f"it gives more than {ANSWERS} different answers")
        self._count(answers[-1])
        if self._progress is not None:
            self._progress("", self.num_steps)

    def _count(self, last: Answer) -> None:
        self._deaths += bool(last.died)
        self._hangs += "without progress" in last.died
        if self._hangs >= HANGS or self._deaths >= DEATHS:
            times = f"{self._hangs} times without an answer" if self._hangs >= HANGS else f"{self._deaths} times"
            raise _Stopped(f"the port was ended {times}")

    def _inconsistent(self, word: Word, first: Answer, later: Answer) -> Inconsistent:
        """Ask again in new processes, to see whether it is chance or something that outlives a memory."""
        again: list[Answer] = []
        for _ in range(3):
            self._port.renew()
            again.append(self._port.ask(word)[-1])
        return Inconsistent(word, first, later, len({*again}) == 1)

    def observed(self) -> Mealy:
        """What was asked, as a machine of which answers are missing."""
        nodes = [self._tree]
        steps: list[dict[Input, tuple[Answer, int]]] = []
        for node in nodes:
            row: dict[Input, tuple[Answer, int]] = {}
            for entry, (answer, below) in node.steps.items():
                row[entry] = answer, len(nodes)
                nodes.append(below)
            steps.append(row)
        return Mealy(tuple(steps))


def _ends(entry: Input, answer: Answer) -> bool:
    """Whether nothing is asked after a call; also not after a release that was refused."""
    return bool(answer.died) or entry.ends


def _machine_of(hypothesis: Any, alphabet: tuple[Input, ...]) -> Mealy:
    """AALpy's machine: its states in breadth-first order."""
    numbers: dict[Any, int] = {hypothesis.initial_state: 0}
    states = [hypothesis.initial_state]
    steps: list[dict[Input, tuple[Answer, int]]] = []
    for state in states:
        for entry in alphabet:
            after = state.transitions[entry]
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
        steps.append({entry: (state.output_fun[entry], numbers[state.transitions[entry]]) for entry in alphabet})
    return Mealy(tuple(steps))
