"""What is seen of a call, and a memory that is watched from outside while calls are made.

There are finitely many answers, because bytes are not among them.  A view shows the newest bytes, or zeros, or bytes
that were written earlier, or others.  Whoever calls writes new bytes whenever it may.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Input, Mode

from ..engine.contents import pattern, shown
from ..engine.reproducer import Reproducer
from ..engine.run import Run
from ..engine.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from syncedmem.model import Machine

    from ..engine.call_log import AllocatorCall
    from ..engine.subject import Subject
    from ..requirements import Level

__all__ = [
    "NEWEST",
    "NOT_ASKED",
    "PINNED",
    "SIZE",
    "Answer",
    "Sight",
    "WatchedMemory",
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
        memory = WatchedMemory(subject)
        for entry in word:
            tell(memory.step(entry, sight))
        program = memory.program()
        memory.finish()
    except Violation as found:  # without what is different each time: last words, the numbers of requests
        how = {"P01-answers": found.message.partition(": ")[2].partition(";")[0], "R01-lazy": found.message}
        tell(died(how.get(found.requirement, f"{found.requirement}: the answer is not what the protocol wants")))
        return [*found.statements]
    return program


def sight_of(subject: Subject) -> Sight:
    """What the memories of a subject show."""
    memory = WatchedMemory(subject)
    sight = memory.sight()
    memory.finish()
    return sight


class WatchedMemory:
    """A new memory of a subject, and what is seen of the calls on it.

    Parameters
    ----------
    subject : Subject

    Raises
    ------
    Violation
        If no memory can be made.
    """

    def __init__(self, subject: Subject) -> None:
        subject.mark()
        self._subject = subject
        self._run = Run(Reproducer(subject), ())
        self._mode = Mode.GPU
        self._number = 0
        self._written = [bytes(SIZE)]
        self._ended = False
        made = self._run.reproducer.call(f"subject.make({SIZE}{self._run.arguments})", self._mode, keep="memory")
        if made.raised is not None:
            message = f"making a memory of {SIZE} bytes raised {type(made.raised).__name__}: {made.raised}"
            raise self._run.violation("R01-lazy", message) from made.raised

    def sight(self) -> Sight:
        """What this memory shows."""
        flags = (flag.name for flag in self._subject.machine.flags)
        head = self._attribute("head") is not None
        return Sight(self._subject.level, head, tuple(it for it in flags if self._attribute(it) is not None))

    def step(self, entry: Input, sight: Sight) -> Answer:
        """Make a call, or change the mode.

        Raises
        ------
        Violation
            If the program that has the memory dies, or answers wrongly.
        """
        if entry.call is None:
            self._mode = Mode[entry.value]
            return ()
        log, reproducer = self._run.log, self._run.reproducer
        calls, strays = len(log.calls), len(log.stray)
        before, call, after = self._statements(entry)
        for line in before:
            reproducer.run(line)
        raised, view = reproducer.call(call, self._mode, keep="view" if entry.does == "write" else "")
        if raised is not None:
            reproducer.expect(raised)
        shows = self._shows(entry, view) if raised is None and self._run.sees_bytes else ""
        for line in after if raised is None else ():
            reproducer.run(line)
        self._ended = entry.ends and raised is None
        did = [_named(self._subject.machine, it) for it in log.calls[calls:]]
        did += [sentence.replace(" was asked to free ", " freed ") for _, sentence in log.stray[strays:]]
        head, flags = ("", []) if self._ended else self._state(sight)
        return sight.answer(did, refused=raised is not None, view=shows, head=head, flags=flags)

    def program(self) -> list[str]:
        """The calls until now as a program; the requests, if the subject is a program."""
        return [*self._run.reproducer.complete()]

    def finish(self) -> None:
        """Free the memory, if it is not released; whether that works is not asked here."""
        if not self._ended:
            with suppress(Exception):
                self._run.reproducer.call("memory.close()", self._mode)

    def _statements(self, entry: Input) -> tuple[list[str], str, list[str]]:
        """What the caller does before a call, the call, and what the caller does after it if it succeeds."""
        self._number += 1
        subject, side, method = self._subject, entry.side, "close" if entry.ends else str(entry.call)
        if entry.does == "push":
            stream, there = f"stream{self._number}", subject.device is not None
            made = f"{stream} = {'subject.device.stream' if there else 'object'}()"
            return (
                [made],
                f"memory.{method}(stream={stream})",
                [f"subject.device.record({stream}).synchronize()"] * there,
            )
        if entry.does != "adopt":
            return [], f"memory.{method}()", self._put(side, "view", 1) if entry.does == "write" else []
        if not entry.data:
            return [], f"memory.{method}(None)", []
        made = f"bytearray({SIZE})" if subject.on_host(side) else f"{subject.named(side)}.empty({SIZE})"
        buffer, made = f"buffer{self._number}", "object()" if subject.place(side) is None else made
        # It is written after it was adopted too, because the memory must use it, and not a copy.
        before = [f"{buffer} = {made}", *self._put(side, buffer, 1)]
        return before, f"memory.{method}({buffer})", self._put(side, buffer, 2)

    def _put(self, side: str, name: str, time: int) -> list[str]:
        """Write new bytes."""
        if not self._run.sees_bytes or self._subject.place(side) is None:
            return []
        return [f"put(subject, {name}, pattern({2 * self._number + time}, {SIZE}), {side!r})"]

    def _shows(self, entry: Input, view: Any) -> str:
        """What the returned view shows, before anybody writes to it."""
        found = self._compared(entry.side, view) if entry.does in ("read", "write") else ""
        if entry.does in ("write", "adopt"):
            self._written.append(pattern(2 * self._number + (2 if entry.does == "adopt" else 1), SIZE))
        return found

    def _compared(self, side: str, view: Any) -> str:
        if view is None:
            return "nothing"
        try:
            content = shown(self._subject, view, side)
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a view raises that cannot be read
            return f"nothing: reading it raised {type(error).__name__}"
        if len(content) != SIZE:
            return f"{len(content)} of {SIZE} bytes"
        if content == self._written[-1]:
            return NEWEST
        if not any(content):
            return "zeros"
        return "older bytes" if content in self._written else "other bytes"

    def _state(self, sight: Sight) -> tuple[str, list[str]]:
        """The head, and the flags that hold; a number is that of a head."""
        head, size = self._attribute("head"), self._attribute("size")
        name = getattr(head, "name", head)
        name = dict(enumerate(self._subject.machine.heads)).get(name, name) if isinstance(name, int) else name
        wrong = [] if size in (None, SIZE) else [f"size {size}"]
        return str(name), [*filter(self._attribute, sight.flags), *wrong]

    def _attribute(self, name: str) -> Any:
        return getattr(self._run.reproducer.names["memory"], name, None)


@cache
def _names(machine: Machine) -> Mapping[tuple[str, str], str]:
    """The actions of a machine, by what an allocator is called for."""
    return {("push" if it.queued else it.does, it.side): it.name for it in machine.actions.values()}


def _named(machine: Machine, call: AllocatorCall) -> str:
    """An allocator call by the machine's name of the action."""
    operation, side, size, pinned = call
    name = _names(machine).get((operation, side), f"{operation}_{side}")
    return name + PINNED * pinned + (f" ({size} of {SIZE} bytes)" if size != SIZE else "")
