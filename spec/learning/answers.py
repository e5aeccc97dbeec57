"""What is seen of a call, and a memory that is watched from outside while calls are made.

There are finitely many answers, because bytes are not among them.  A view shows the newest bytes, or zeros, or bytes
that were written earlier, or others.  Whoever calls writes new bytes whenever it may.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Action, Input, Mode, SyncedHead, caffe

from ..engine.contents import pattern
from ..engine.reproducer import Reproducer
from ..engine.violation import Violation

if TYPE_CHECKING:
    from ..engine.call_log import AllocatorCall
    from ..engine.reproducer import Outcome
    from ..engine.subject import Subject

__all__ = ["FLAGS", "NEWEST", "NOT_ASKED", "SIZE", "Answer", "Sight", "WatchedMemory", "Word", "named"]

Word = tuple[Input, ...]
"""Calls and changes of mode, from a new memory on."""

SIZE = 5
"""The size of each memory in bytes."""

NEWEST = "the newest bytes"
PINNED = "page-locked"

FLAGS = tuple(flag.name for flag in caffe.CAFFE.flags)
"""The flags that a memory may show."""


class Sight(NamedTuple):
    """What is seen of a port; what it does not show is not compared.

    Attributes
    ----------
    level : str
        L0 without bytes and actions, L1 with bytes, L2 with actions.
    head : bool
        Whether it shows its head.
    flags : frozenset of str
        The flags that it shows.
    """

    level: str
    head: bool
    flags: frozenset[str]

    @property
    def bytes(self) -> bool:
        """Whether bytes are seen."""
        return self.level >= "L1"

    @property
    def actions(self) -> bool:
        """Whether actions are seen."""
        return self.level >= "L2"

    def __str__(self) -> str:
        seen = ["refusals"]
        seen += ["the head"] if self.head else []
        seen += [flag for flag in FLAGS if flag in self.flags]
        seen += ["which bytes a view shows"] if self.bytes else []
        seen += ["actions"] if self.actions else []
        return ", ".join(seen)


class Answer(NamedTuple):
    """What is seen of one call.

    Attributes
    ----------
    refused : bool
    did : tuple of str
        The actions, with the model's names; ", page-locked" or a wrong size after the name.
    shows : str
        What the returned view shows; empty if the call returns none.
    head : str
        The head afterwards; empty after the end.
    flags : tuple of str
        The flags that hold afterwards.
    died : str
        How the port ended in this call; empty if it did not.
    """

    refused: bool = False
    did: tuple[str, ...] = ()
    shows: str = ""
    head: str = ""
    flags: tuple[str, ...] = ()
    died: str = ""

    def parts(self, sight: Sight) -> dict[str, str]:
        """What there is to say, by what it is about."""
        if self.died:
            return {"the port": self.died}
        found = {"the call": "refused" if self.refused else "done"}
        if sight.actions:
            found["actions"] = ", ".join(name.replace(f", {PINNED}", f" ({PINNED})") for name in self.did) or "none"
        if self.shows:
            found["view"] = self.shows
        if self.head:
            found["head"] = self.head
        if self.head and sight.flags:
            found["flags"] = ", ".join(self.flags) or "none"
        return found


NOT_ASKED = Answer(died="not asked: the memory is gone")
"""The answer to everything after the end of a memory."""


def named(call: AllocatorCall) -> str:
    """An allocator call by the model's name of the action."""
    operation, side, size, pinned = call
    names = {"copy": f"copy_to_{side}", "push": f"copy_to_{side}_async", "clone": f"copy_{side}"}
    name = names.get(operation, f"{operation}_{side}")
    return name + f", {PINNED}" * pinned + (f", {size} of {SIZE} bytes" if size != SIZE else "")


def declared_name(action: Action, *, pinned: bool) -> str:
    """An action of the declaration, as `named` names it."""
    return action.name + f", {PINNED}" * (pinned and action in (caffe.ALLOCATE_CPU, caffe.FREE_CPU))


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
        self._reproducer = Reproducer(subject)
        self._mode = Mode.GPU
        self._number = 0
        self._written = [bytes(SIZE)]
        self._ended = False
        self._reproducer.run("log, host, device = recorded(subject)")
        self._log = self._reproducer.names["log"]
        made = self._reproducer.call(f"subject.make({SIZE}, host=host, device=device)", self._mode, keep="memory")
        if made.raised is not None:
            message = f"making a memory of {SIZE} bytes raised {type(made.raised).__name__}: {made.raised}"
            raise Violation("R01-lazy", message, self._reproducer.complete()) from made.raised

    def sight(self) -> Sight:
        """What this memory shows."""
        flags = (flag.name for flag in self._subject.machine.flags)
        shown = frozenset(flag for flag in flags if self._attribute(flag) is not None)
        return Sight(self._subject.level, self._attribute("head") is not None, shown)

    def step(self, entry: Input, sight: Sight) -> Answer:
        """Make a call, or change the mode.

        Raises
        ------
        Violation
            If the program that has the memory dies, or answers wrongly.
        """
        if entry.call is None:
            self._mode = Mode[entry.value]
            return Answer()
        calls, strays = len(self._log.calls), len(self._log.stray)
        before, call, after = self._statements(entry)
        for line in before:
            self._reproducer.run(line)
        outcome = self._reproducer.call(call, self._mode, keep="view" if entry.does == "write" else "")
        if outcome.raised is not None:
            self._reproducer.expect(outcome.raised)
        shows = self._shows(entry, outcome, sight)
        for line in after if outcome.raised is None else ():
            self._reproducer.run(line)
        self._ended = entry.ends and outcome.raised is None
        did = self._did(calls, strays) if sight.actions else ()
        return Answer(outcome.raised is not None, did, shows, *(("", ()) if self._ended else self._state(sight)))

    def plan(self, entry: Input) -> None:
        """Note the statements of a call that ended the process, which can therefore not be made here."""
        before, call, _ = self._statements(entry)
        for line in (*before, *([f"set_mode(Mode.{self._mode.name})"] * (self._mode is not Mode.GPU)), call):
            self._reproducer.note(line)

    def finish(self) -> None:
        """Free the memory, if it is not released; whether that works is not asked here."""
        if not self._ended:
            with suppress(Exception):
                self._reproducer.call("memory.close()", self._mode)

    def program(self) -> tuple[str, ...]:
        """The calls as a program; the requests, if the subject is a program."""
        return self._reproducer.complete()

    # --- making a call

    def _statements(self, entry: Input) -> tuple[list[str], str, list[str]]:
        """What the caller does before a call, the call, and what the caller does after it if it succeeds."""
        self._number += 1
        method = "close" if entry.ends else str(entry.call)
        if entry.does == "push":
            stream = f"stream{self._number}"
            there = self._subject.device is not None
            made = [f"{stream} = subject.device.stream()" if there else f"{stream} = object()"]
            wait = [f"subject.device.record({stream}).synchronize()"] if there else []
            return made, f"memory.{method}(stream={stream})", wait
        if entry.does == "adopt":
            if not entry.data:
                return [], f"memory.{method}(None)", []
            buffer = f"buffer{self._number}"
            return self._buffer(entry.side, buffer), f"memory.{method}({buffer})", self._write(entry.side, buffer, 2)
        return [], f"memory.{method}()", self._write(entry.side, "view", 1) if entry.does == "write" else []

    def _buffer(self, side: str, name: str) -> list[str]:
        """A buffer of the caller, with bytes in it."""
        if side == "cpu" and self._subject.program is None:
            return [f"{name} = bytearray({self._pattern(1)})"]
        if side == "gpu" and self._subject.device is None:
            return [f"{name} = object()"]
        owner = "host" if side == "cpu" else "device"
        return [f"{name} = subject.{owner}.empty({SIZE})", f"put(subject, {name}, {self._pattern(1)})"]

    def _write(self, side: str, name: str, time: int) -> list[str]:
        """Write new bytes; also into a buffer that was adopted, because the memory must use it, and not a copy."""
        if self._subject.level < "L1" or (side == "gpu" and self._subject.device is None):
            return []
        if side == "cpu" and self._subject.program is None:
            return [f"memoryview({name}).cast('B')[:{SIZE}] = {self._pattern(time)}"]
        return [f"put(subject, {name}, {self._pattern(time)})"]

    def _pattern(self, time: int) -> str:
        return f"pattern({2 * self._number + time}, {SIZE})"

    # --- what is seen

    def _did(self, calls: int, strays: int) -> tuple[str, ...]:
        done = [named(call) for call in self._log.calls[calls:]]
        wrong = [sentence.replace(" was asked to free ", " freed ") for _, sentence in self._log.stray[strays:]]
        return (*done, *wrong)

    def _shows(self, entry: Input, outcome: Outcome, sight: Sight) -> str:
        """What the returned view shows, before anybody writes to it."""
        if outcome.raised is not None or not sight.bytes or entry.call is None:
            return ""
        number, found = 2 * self._number, ""
        if entry.does in ("read", "write"):
            found = self._compared(self._content(entry.side, outcome.value))
        if entry.does in ("write", "adopt"):
            self._written.append(pattern(number + (2 if entry.does == "adopt" else 1), SIZE))
        return found

    def _content(self, side: str, view: Any) -> bytes | str:
        if view is None:
            return "nothing"
        try:
            here = side == "cpu" and self._subject.program is None
            return bytes(memoryview(view if here else view.get()).cast("B"))
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a view raises that cannot be read
            return f"nothing: reading it raised {type(error).__name__}"

    def _compared(self, content: bytes | str) -> str:
        if isinstance(content, str):
            return content
        if len(content) != SIZE:
            return f"{len(content)} of {SIZE} bytes"
        if content == self._written[-1]:
            return NEWEST
        if not any(content):
            return "zeros"
        return "older bytes" if content in self._written else "other bytes"

    def _state(self, sight: Sight) -> tuple[str, tuple[str, ...]]:
        """The head and the flags that hold."""
        head = _name(self._attribute("head")) if sight.head else ""
        flags = {name: self._attribute(name) for name in FLAGS if name in sight.flags}
        size = self._attribute("size")
        wrong = [] if size in (None, SIZE) else [f"size {size}"]
        return head, (*(name for name, value in flags.items() if value), *wrong)

    def _attribute(self, name: str) -> Any:
        return getattr(self._reproducer.names["memory"], name, None)


def _name(head: object) -> str:
    """The name of a head, however the port says it."""
    if isinstance(head, int) and not isinstance(head, SyncedHead):
        return next((it.name for it in SyncedHead if it.value == head), str(head))
    return str(getattr(head, "name", head))
