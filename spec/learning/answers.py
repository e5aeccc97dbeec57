"""What is seen of a call, and a memory that is watched from outside while calls are made.

There are finitely many answers, because bytes are not among them.  A view shows the newest bytes, or zeros, or bytes
that were written earlier, or others.  Whoever calls writes new bytes whenever it may.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Input

from ..engine.call_log import action_of
from ..engine.contents import pattern, shown
from ..engine.heads import head_name
from ..engine.violation import Violation
from ..memory.driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from syncedmem.model import Machine

    from ..engine.call_log import AllocatorCall
    from ..engine.subject import Subject
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
        program = [*memory.driver.reproducer.complete()]
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
    flags = (flag.name for flag in subject.machine.flags)
    seen = tuple(flag for flag in flags if memory.attribute(flag) is not None)
    sight = Sight(subject.level, memory.attribute("head") is not None, seen)
    memory.finish()
    return sight


class _WatchedMemory:
    """A new memory of a subject, and what is seen of the calls on it; the kit's driver makes them."""

    def __init__(self, subject: Subject) -> None:
        subject.mark()
        self.driver = MemoryDriver(subject, SIZE, judged=())
        self.driver.number = -1  # the number of a buffer is never a multiple of 3, so no buffer is longer
        self._written = [bytes(SIZE)]
        self._ended = False

    def attribute(self, name: str) -> Any:
        """An attribute of the memory; None if it has none."""
        return getattr(self.driver.memory, name, None)

    def step(self, entry: Input, sight: Sight) -> Answer:
        """Make a call, or change the mode; a program that has the memory may die, or answer wrongly."""
        driver = self.driver
        if entry.call is None:
            driver.perform(entry)
            return ()
        driver.number += 2
        strays = len(driver.log.stray)
        _, calls, argument, raised, view = driver.attempt(entry)
        shows = ""
        if raised is not None:
            driver.reproducer.expect(raised)
        elif driver.run.sees_bytes:
            shows = self._compared(entry.side, view) if entry.does in ("read", "write") else ""
        driver.number += 1
        if raised is None and driver.run.sees_bytes:
            self._write(entry, argument)
        self._ended = entry.ends and raised is None
        did = [_named(driver.subject.machine, it) for it in driver.log.calls[calls:]]
        did += [sentence.replace(" was asked to free ", " freed ") for _, sentence in driver.log.stray[strays:]]
        head, flags = ("", []) if self._ended else self._state(sight)
        return sight.answer(did, refused=raised is not None, view=shows, head=head, flags=flags)

    def finish(self) -> None:
        """Free the memory, if it is not released; whether that works is not asked here."""
        with suppress(Exception):
            if not self._ended:
                self.driver.end()

    def _write(self, entry: Input, argument: str) -> None:
        """Write new bytes; into a buffer that was adopted too, because the memory must use it, and not a copy."""
        writes = entry.writes
        if writes or (entry.does == "adopt" and entry.data):
            self._written.append(pattern(self.driver.number, SIZE))
            if self.driver.subject.place(entry.side) is not None:
                self.driver.write(entry.side, "view" if writes else argument)

    def _compared(self, side: str, view: Any) -> str:
        if view is None:
            return "nothing"
        try:
            content = shown(self.driver.subject, view, side)
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a view raises that cannot be read
            return f"nothing: reading it raised {type(error).__name__}"
        if len(content) != SIZE:
            return f"{len(content)} of {SIZE} bytes"
        if content == self._written[-1]:
            return NEWEST
        known = "zeros" if not any(content) else "older bytes" if content in self._written else "other bytes"
        if known == "other bytes" and len(self._written) == 1:  # nobody has written: the memory holds these from now on
            self._written.append(content)
        return known

    def _state(self, sight: Sight) -> tuple[str, list[str]]:
        """The head, and the flags that hold."""
        text, size = head_name(self.driver.subject.machine, self.attribute("head")), self.attribute("size")
        wrong = [] if size in (None, SIZE) else [f"size {size}"]
        return text if text.isprintable() else repr(text), [*filter(self.attribute, sight.flags), *wrong]


def _named(machine: Machine, call: AllocatorCall) -> str:
    """An allocator call by the machine's name of the action."""
    operation, side, size, pinned, source = call
    odd = f" ({size} of {SIZE} bytes)" if size != SIZE else ""
    return action_of(machine, operation, side, source) + PINNED * pinned + odd
