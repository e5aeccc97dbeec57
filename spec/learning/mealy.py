"""A machine of answers: in each state each input has an answer and leads to a state.

The tests of a bound are the HSI method, which is the W-method with fewer sequences and the same guarantee.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from .answers import NOT_ASKED, Answer, Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Input

__all__ = ["Mealy"]


@dataclass(frozen=True)
class Mealy:
    """A machine of answers; state 0 is that of a new memory.

    Attributes
    ----------
    steps : tuple of dict
        ``steps[state][input]`` is the answer, and the next state.  An input that is missing was not tried.
    """

    steps: tuple[dict[Input, tuple[Answer, int]], ...]

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.steps)

    def is_end(self, state: int) -> bool:
        """Whether nothing is asked in a state: the memory is gone."""
        return all(step == (NOT_ASKED, state) for step in self.steps[state].values())

    def first_wrong(self, word: Word, answers: list[Answer]) -> Word | None:
        """The shortest beginning of a word that is answered otherwise here."""
        state = 0
        for number, (entry, answer) in enumerate(zip(word, answers, strict=True), 1):
            expected, state = self.steps[state][entry]
            if answer != expected:
                return word[:number]
        return None

    @cached_property
    def access(self) -> tuple[Word, ...]:
        """A shortest word to each state that is reachable."""
        found: dict[int, Word] = {0: ()}
        waiting = deque([0])
        while waiting:
            state = waiting.popleft()
            for entry, (_, after) in self.steps[state].items():
                if after not in found:
                    found[after] = (*found[state], entry)
                    waiting.append(after)
        return tuple(found[state] for state in sorted(found))

    @cached_property
    def separating(self) -> dict[tuple[int, int], Word]:
        """A shortest word on which two states differ, for each pair that has one; the first state is the smaller."""
        found: dict[tuple[int, int], Word] = {}
        pairs = list(combinations(range(self.size), 2))
        while True:
            new = {pair: word for pair in pairs if pair not in found and (word := self._tell_apart(*pair, found))}
            if not new:
                return found
            found |= new

    def _tell_apart(self, one: int, other: int, known: dict[tuple[int, int], Word]) -> Word:
        """A word on which two states differ: one input, or one input and a known word."""
        first, second = self.steps[one], self.steps[other]
        longer: Word = ()
        for entry, (answer, after) in first.items():
            if answer != second[entry][0]:
                return (entry,)
            ends = (after, second[entry][1])
            rest = known.get((min(ends), max(ends)))
            if rest is not None and not longer:
                longer = (entry, *rest)
        return longer

    @property
    def distinct(self) -> int:
        """The number of states that behave differently."""
        pairs = combinations(range(self.size), 2)
        return self.size - len({other for one, other in pairs if (one, other) not in self.separating})

    def tests(self, depth: int) -> Iterator[Word]:
        """Words of which one is answered otherwise by any other machine with up to `depth` states more.

        The shorter beginnings come first.
        """
        identifiers = [
            [*dict.fromkeys(word for pair, word in self.separating.items() if state in pair)]
            for state in range(self.size)
        ]
        reached = [(word, state) for state, word in enumerate(self.access)]
        for _ in range(depth + 2):
            for word, state in reached:
                yield word
                yield from ((*word, *rest) for rest in identifiers[state] if not self.is_end(state))
            reached = [
                ((*word, entry), after)
                for word, state in reached
                if not self.is_end(state)
                for entry, (_, after) in self.steps[state].items()
            ]
