"""What is seen of a call, and a memory that is watched from outside while calls are made.

There are finitely many answers, because bytes are not among them.  A view shows the newest bytes, or zeros, or bytes
that were written earlier, or others.  Whoever calls writes new bytes whenever it may.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Input

from ..engine.call_log import action_of
from ..engine.violation import Violation
from ..record.steps import Buffer, Step, content
from ..subjects.objects import UNREADABLE
from ..subjects.performer import performer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..engine.subject import Subject
    from ..record.observation import Action, Observation
    from ..requirements import Level

__all__ = [
    "NEWEST",
    "NOT_ASKED",
    "PINNED",
    "SIZE",
    "UNDEFINED",
    "Answer",
    "Sight",
    "Word",
    "answered",
    "died",
    "has_died",
    "sight_of",
]

Word = tuple[Input, ...]
"""Calls and changes of mode, from a new memory on."""

Answer = tuple[tuple[str, str], ...]
"""What is seen of one call: what it is about, and what is said about that."""

SIZE = 5
"""The size of each memory in bytes."""

NEWEST = "the newest bytes"
UNDEFINED = "any bytes"
PINNED = " (page-locked)"


def died(how: str) -> Answer:
    """The answer of a port that has ended."""
    return (("the port", how),)


def has_died(answer: Answer) -> bool:
    """Whether the port has ended."""
    return "the port" in dict(answer)


NOT_ASKED = died("not asked: the memory is gone")
"""The answer to everything after the end of a memory."""


class Sight(NamedTuple):
    """What is seen of a port; what it does not show is not compared.

    Attributes
    ----------
    level : str
        L0 without bytes and actions, L1 with bytes, L2 with actions.
    head : bool
        Whether it shows its head.
    flags : tuple of str
        The flags that it shows.
    """

    level: Level
    head: bool
    flags: tuple[str, ...]

    def __str__(self) -> str:
        levels = {"L1": "which bytes a view shows", "L2": "actions"}
        seen = [text for level, text in levels.items() if level <= self.level]
        return ", ".join(["refusals", *["the head"] * self.head, *self.flags, *seen])

    def answer(
        self, did: Iterable[str], *, refused: bool = False, view: str = "", head: str = "", flags: Iterable[str] = ()
    ) -> Answer:
        """What is seen of a call that did these actions; without a head the memory is gone."""
        found = {"the call": "refused" if refused else "done"}
        if self.level >= "L2":
            found["actions"] = ", ".join(did) or "none"
        if view and self.level >= "L1":
            found["view"] = view
        if head:
            found |= {"head": head} if self.head else {}
            found |= {"flags": ", ".join(flags) or "none"} if self.flags else {}
        return tuple(found.items())


def answered(subject: Subject, sight: Sight, word: Word, tell: Callable[[Answer], object]) -> list[str]:
    """Have a new memory answer a word, tell each answer, and return the program; after a death there is no answer."""
    try:
        memory = _WatchedMemory(subject)
        for entry in word:
            tell(memory.step(entry, sight))
        program = [*memory.program]
        memory.finish()
    except Violation as found:  # without what is different each time: last words, the numbers of requests
        how = {"P01-answers": found.message.partition(": ")[2].partition(";")[0], "R01-lazy": found.message}
        tell(died(how.get(found.requirement, f"{found.requirement}: the answer is not what the protocol wants")))
        return [*found.statements]
    return program


def sight_of(subject: Subject) -> Sight:
    """What the memories of a subject show.

    Raises
    ------
    Violation
        If no memory can be made.
    """
    memory = _WatchedMemory(subject)
    seen = tuple(flag.name for flag in subject.machine.flags if flag.name in memory.made.flags)
    sight = Sight(subject.level, memory.made.head is not None, seen)
    memory.finish()
    return sight


class _WatchedMemory:
    """A new memory of a subject, and what is seen of the calls on it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._performer = performer_of(subject)
        self._performer.begin()
        self._settings = {it.name: it.initial for it in subject.machine.settings.values()}
        self._number = 0
        self._written = [bytes(SIZE)]
        self._kinds: dict[str, bool] = {}
        self._ended = False
        self.made: Observation = self._do(Step("new", size=SIZE))
        if self.made.refused:
            raise self._performer.violation("R01-lazy", f"making a memory of {SIZE} bytes raised {self.made.refused}")

    def _do(self, step: Step) -> Observation:
        return self._performer.perform(step, self._settings, (), ())

    @property
    def program(self) -> tuple[str, ...]:
        """The requests, or the statements, until now."""
        return self._performer.program()

    def step(self, entry: Input, sight: Sight) -> Answer:
        """Make a call, or change a setting; a program that has the memory may die, or answer wrongly."""
        call = entry.call
        if call is None:
            self._do(Step("set", name=entry.setting, value=entry.value))
            self._settings[entry.setting] = entry.value
            return ()
        self._number += 2  # the contents of an adopted buffer, and of what its owner writes then
        adopts = call.does == "adopt" and entry.data
        lent = Buffer(f"{call.side}{self._number}", call.side, self._number) if adopts else None
        write = self._number + 1 if call.writes else None
        seen = self._do(Step("call", 0, call.name, lent, write, stream=self._number if call.queues else 0))
        refused = bool(seen.refused)
        if call.queues and not refused:
            self._do(Step("wait", quiet=True))
        shows = self._compared(seen) if call.does in ("read", "write") and not refused else ""
        if lent is not None and not refused and call.side in self._subject.sides:
            self._do(Step("write", argument=lent, write=self._number + 1, quiet=True))
        if not refused and self._subject.level >= "L1" and (call.writes or adopts):
            self._written.append(content(self._number + 1, SIZE))
        self._ended = call.ends and not refused
        did = [*map(self._named, seen.actions or ()), *(_freed(it) for number, it in seen.wrong if number in _FREES)]
        head, flags = ("", []) if self._ended else self._state(seen, sight)
        return sight.answer(did, refused=refused, view=shows, head=head, flags=flags)

    def finish(self) -> None:
        """Free the memory, if it is not released; whether that works is not asked here."""
        ending = next((it.name for it in self._subject.machine.calls.values() if it.ends), "")
        with suppress(Exception):
            if not self._ended and ending:
                self._do(Step("call", 0, ending, quiet=True))

    def _compared(self, seen: Observation) -> str:
        """What a view shows, by what was written until now."""
        if self._subject.level < "L1":
            return ""
        if seen.view is None:
            return next((f"nothing: {it}" for number, it in seen.wrong if number == UNREADABLE), "nothing")
        shown: bytes = seen.view
        if len(shown) != SIZE:
            return f"{len(shown)} of {SIZE} bytes"
        if shown == self._written[-1]:
            return NEWEST
        known = "zeros" if not any(shown) else "older bytes" if shown in self._written else "other bytes"
        if known == "other bytes" and len(self._written) == 1:  # nobody has written: the memory holds these from now on
            self._written.append(shown)
        return known

    def _state(self, seen: Observation, sight: Sight) -> tuple[str, list[str]]:
        """The head, and the flags that hold."""
        text = str(seen.head)
        wrong = [] if seen.size in (None, SIZE) else [f"size {seen.size}"]
        flags = [name for name in sight.flags if seen.flags.get(name)]
        return text if text.isprintable() else repr(text), [*flags, *wrong]

    def _named(self, action: Action) -> str:
        """What was done, by the machine's name of the action; what is freed is of the kind that was allocated."""
        if action.does == "allocate":
            self._kinds[action.side] = bool(action.pinned)
        pinned = self._kinds.get(action.side, False) if action.does in ("allocate", "free") else False
        odd = f" ({action.size} of {SIZE} bytes)" if action.size not in (None, SIZE) else ""
        return action_of(self._subject.machine, action.does, action.side, action.source) + PINNED * pinned + odd


_FREES = frozenset({"R18-external-not-freed", "R25-pinned-frozen", "R28-freed-once"})
"""The requirements of wrong frees."""


def _freed(sentence: str) -> str:
    return sentence.replace(" was asked to free ", " freed ")
