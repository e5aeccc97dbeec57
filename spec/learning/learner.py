"""Learning a machine of a port: AALpy asks for words, and builds machines that agree with the answers.

A machine is tested until no test finds an error in it.  AALpy is optional: only this module imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import MissingPackageError

from .answers import NOT_ASKED, Answer, Word, has_died

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model import Input

    from .asking import AskedPort

__all__ = ["END", "Inconsistent", "Learned", "LearnedRows", "Teacher", "check_installed"]

HANGS, DEATHS = 3, 400
"""After so many hangs, or after so many deaths of the port, learning ends."""

LearnedRows = dict[int, dict["Input", tuple[Answer, int]]]
"""For each state and input the answer and the next state, from state 0 on; an input that is missing was not tried."""

END = -1
"""The state in which nothing is asked, because the memory is gone."""


class Inconsistent(NamedTuple):
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


class Learned(NamedTuple):
    """What was learned of a port.

    Attributes
    ----------
    machine : dict
        The learned machine; what was asked, as a tree, if learning ended before there was one.
    calls, memories : int
        How many calls were made, on how many memories.
    stopped : str
        Why learning ended before there was a machine; empty if there is one.
    inconsistent : Inconsistent or None
    interrupted : bool
        Whether an interrupt (Ctrl-C) ended it.
    """

    machine: LearnedRows
    calls: int
    memories: int
    stopped: str = ""
    inconsistent: Inconsistent | None = None
    interrupted: bool = False


class _Stopped(Exception):
    """Learning cannot go on: why, and the word that was answered in two ways, if that is why."""


def check_installed() -> None:
    """Check that AALpy is there.

    Raises
    ------
    MissingPackageError
    """
    try:
        import_module("aalpy")
    except Exception as error:
        raise MissingPackageError("learning a machine", "aalpy", "learn", error) from error


class Teacher:
    """Learns the machine of a port: answers words, each at most once from the port; AALpy's system and its oracle.

    Parameters
    ----------
    port : AskedPort
    alphabet : tuple of Input
    most : (int, int)
        Learning ends if the machine has more states, or the port more different answers: perhaps they are not finite.
    tests : callable
        The words with which a machine is tested.
    progress : callable
        Called with what is done now, and with the number of calls until now.
    """

    def __init__(
        self,
        port: AskedPort,
        alphabet: tuple[Input, ...],
        most: tuple[int, int],
        tests: Callable[[LearnedRows], Iterator[Word]],
        progress: Callable[[str, int], None],
    ) -> None:
        self.num_queries: int = 0
        self.num_steps: int = 0
        self.num_cached_queries: int = 0
        self.machine: LearnedRows = {}
        self.asked: LearnedRows = {0: {}, END: dict.fromkeys(alphabet, (NOT_ASKED, END))}  # a tree
        self._port = port
        self._alphabet = alphabet
        self._states, self._most = most
        self._tests = tests
        self._progress = progress
        self._answers: set[Answer] = set()
        self._deaths: list[Answer] = []

    def learn(self) -> Learned:
        """The machine, or what was asked until learning ended."""
        run: Any = import_module("aalpy.learning_algs").run_KV
        why: tuple[Any, ...] = ()
        try:
            run(
                [*self._alphabet],
                self,
                self,
                "mealy",
                cex_processing="rs",
                cache_and_non_det_check=False,
                print_level=0,
            )
        except _Stopped as stopped:
            why = stopped.args
        except KeyboardInterrupt:
            why = "it was interrupted", None, True
        return Learned(self.asked if why else self.machine, self.num_steps, self.num_queries, *why)

    def query(self, word: Word) -> list[Answer]:
        """The answers to a word; the port is asked if they are not known."""
        known = self._known(word)
        if len(known) < len(word):
            self._ask(word)
            known = self._known(word)
        return known

    def find_cex(self, hypothesis: Any) -> Word | None:
        """A word that a machine answers otherwise than the port: one that was asked, or a test."""
        machine = self.machine = self._machine_of(hypothesis)
        if len(machine) > self._states:
            raise _Stopped(f"it has more than {self._states} states")
        self._progress(f"{len(machine)} states", self.num_steps)
        if wrong := self._remembered(machine):
            return wrong
        return next((wrong for word in self._tests(machine) if (wrong := self._wrong(machine, word))), None)

    def _machine_of(self, hypothesis: Any) -> LearnedRows:
        """AALpy's machine; its states are in breadth-first order."""
        numbers: dict[Any, int] = {hypothesis.initial_state: 0}
        machine: LearnedRows = {}
        while len(machine) < len(numbers):
            state = [*numbers][len(machine)]
            after = [numbers.setdefault(state.transitions[entry], len(numbers)) for entry in self._alphabet]
            answers = (state.output_fun[entry] for entry in self._alphabet)
            machine[len(machine)] = dict(zip(self._alphabet, zip(answers, after, strict=True), strict=True))
        return machine

    def _wrong(self, machine: LearnedRows, word: Word) -> Word | None:
        """The shortest beginning of a word that a machine answers otherwise than the port."""
        state = 0
        for number, (entry, answer) in enumerate(zip(word, self.query(word), strict=True), 1):
            expected, state = machine[state][entry]
            if answer != expected:
                return word[:number]
        return None

    def _remembered(self, machine: LearnedRows) -> Word | None:
        """The shortest word of those that were asked which a machine answers otherwise."""
        waiting: list[tuple[int, int, Word]] = [(0, 0, ())]
        for node, state, word in waiting:
            for entry, (answer, below) in self.asked[node].items():
                expected, after = machine[state][entry]
                if answer != expected:
                    return (*word, entry)
                if below != END:
                    waiting.append((below, after, (*word, entry)))
        return None

    def _known(self, word: Word) -> list[Answer]:
        """The answers that are known; after the end of the memory all of them are."""
        node, answers = 0, list[Answer]()
        for entry in word:
            if entry not in self.asked[node]:
                break
            answer, node = self.asked[node][entry]
            answers.append(answer)
        return answers

    def _ask(self, word: Word) -> None:
        """Ask the port, and keep the answers; nothing is asked after a release, also if it was refused."""
        answers = self._port.ask(word[: next((k for k, entry in enumerate(word, 1) if entry.ends), None)])
        self.num_queries += 1
        self.num_steps += len(answers)
        node = 0
        for number, (entry, answer) in enumerate(zip(word, answers, strict=False), 1):
            row = self.asked[node]
            if entry not in row:
                row[entry] = answer, END if entry.ends or has_died(answer) else len(self.asked)
                self.asked.setdefault(row[entry][1], {})
            first, node = row[entry]
            if first != answer:
                again = self._again(word[:number])
                raise _Stopped(
                    "the same calls are answered in two ways", Inconsistent(word[:number], first, answer, again)
                )
        self._count(answers)
        self._progress("", self.num_steps)

    def _again(self, word: Word) -> bool:
        """Whether new processes answer a word in one way: then it is not chance, but something outlives a memory."""
        again = set[Answer]()
        for _ in range(3):
            self._port.renew()
            again.add(self._port.ask(word)[-1])
        return len(again) == 1

    def _count(self, answers: list[Answer]) -> None:
        """Stop if there are too many answers, hangs or deaths."""
        self._answers.update(answers)
        self._deaths += filter(has_died, answers)
        hangs, deaths = sum("without progress" in str(it) for it in self._deaths), len(self._deaths)
        if len(self._answers) > self._most:
            raise _Stopped(f"it gives more than {self._most} different answers")
        if hangs >= HANGS or deaths >= DEATHS:
            times = f"{hangs} times without an answer" if hangs >= HANGS else f"{deaths} times"
            raise _Stopped(f"the port was ended {times}")
