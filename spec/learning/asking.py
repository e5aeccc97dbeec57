"""Asking a port: words go in, answers come out.  The port is in a process of its own, and may end in any call."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any, Protocol

from ..engine.supervisor import Child, Death
from ..engine.violation import Violation
from ..ports.process import PortError
from ..ports.targets import MakerTarget, subject_of
from .answers import Answer, Sight, WatchedMemory, Word, answers, died, statements

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from ..engine.subject import Subject
    from ..engine.supervisor import Limits, Progress
    from ..ports.targets import ProgramTarget
    from ..requirements import Level

__all__ = ["AskedMaker", "AskedPort", "AskedProgram", "asked_port", "serve"]

_PAUSE = 0.05


class AskedPort(Protocol):
    """A port that answers words, on new memories of one process.

    Attributes
    ----------
    name, edition : str
    sight : Sight
    """

    name: str
    edition: str
    sight: Sight

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory; after an answer that says how the port ended, there is no other."""
        ...

    def renew(self) -> None:
        """Have the next word go to a new process."""
        ...

    def program(self, word: Word, *, refused: bool) -> tuple[str, ...]:
        """A word, whose last call is refused or not, as a program: statements in Python, or the requests."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


def asked_port(target: ProgramTarget | MakerTarget, edition: str, level: str, limits: Limits) -> AskedPort:
    """Start a port.

    Raises
    ------
    PortError
        If it cannot be started, is of another edition, or does not show the level.
    Violation
        If it cannot make a memory.
    """
    if isinstance(target, MakerTarget):
        return AskedMaker(target, edition, level, limits)
    return AskedProgram(target, edition, level, limits)


def _level(name: str, level: str, top: Level) -> Level:
    """The level that is wanted: at most L2, because failures and pushes in flight are not among the inputs."""
    if level > top:
        raise PortError(f"{name} shows {top} at most, not {level}")
    wanted: Any = level or top
    return min(wanted, "L2")


def _sight(subject: Subject) -> Sight:
    memory = WatchedMemory(subject)
    sight = memory.sight()
    memory.finish()
    return sight


class AskedProgram:
    """A program that speaks the protocol of ports; see `asked_port`."""

    def __init__(self, target: ProgramTarget, edition: str, level: str, limits: Limits) -> None:
        port = self._port = target.connect(limits, edition)
        with ExitStack() as stack:
            stack.callback(port.close)
            self.name: str = port.hello["name"]
            self.edition: str = port.edition
            self._subject = subject_of(port, self.name, "caffe", _level(target.name, level, port.hello["level"]))
            self.sight: Sight = _sight(self._subject)
            stack.pop_all()

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory."""
        return [*answers(self._subject, self.sight, word)]

    def renew(self) -> None:
        """Have the next word go to a new process."""
        self._port.renew()

    def program(self, word: Word, *, refused: bool) -> tuple[str, ...]:  # noqa: ARG002 -- requests do not say that
        """The requests of a word; the memory is not released afterwards."""
        made = answers(self._subject, self.sight, word)
        for _ in zip(word, made, strict=False):
            pass
        return self._port.requests()

    def close(self) -> None:
        """End the process."""
        self._port.close()


class AskedMaker:
    """A maker of memories in Python, in a process of its own; see `asked_port`."""

    def __init__(self, target: MakerTarget, edition: str, level: str, limits: Limits) -> None:
        self.name: str = target.name
        self._wanted = target, edition, level
        self._limits = limits
        self._stack = ExitStack()
        self._here: Connection | None = None
        self._moves = 0
        self.edition: str
        self.sight: Sight
        self.edition, self.sight = self._start()

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory."""
        found: list[Answer] = []
        self._send(word, None)
        while isinstance(reply := self._receive(), tuple):
            found.append(reply)
        if isinstance(reply, Death):  # perhaps only when the memory was released, which nobody asked about
            self.renew()
            found += [died(f"the process {reply.how}")] * (len(found) < len(word))
        return found

    def renew(self) -> None:
        """Have the next word go to a new process."""
        self._here = None
        self._stack.close()

    def program(self, word: Word, *, refused: bool) -> tuple[str, ...]:
        """The statements of a word, whose last call is not made for this; none if the process ends all the same."""
        self._send(word, refused)
        reply = self._receive()
        return () if isinstance(reply, Death) else reply

    def close(self) -> None:
        """End the process."""
        self.renew()

    def _start(self) -> tuple[str, Sight]:
        """Start the process; return what it is."""
        self._here, there = Pipe()
        self._stack.callback(self._here.close)
        with there:
            child = Child[Any](serve, (*self._wanted, there), limits=self._limits, moved=lambda: self._moves)
        self._child = self._stack.enter_context(child)
        found = self._receive()
        if isinstance(found, tuple):
            return found
        self.renew()
        raise PortError(f"{self.name}: the process {found.how}") if isinstance(found, Death) else found

    def _send(self, word: Word, refused: bool | None) -> None:
        if self._here is None:
            self._start()
        assert self._here is not None  # noqa: S101 -- it was just started
        self._moves += 1
        self._here.send((word, refused))

    def _receive(self) -> Any:
        """The next message, or how the process ended."""
        assert self._here is not None  # noqa: S101 -- nothing is received before the start
        try:
            while not self._here.poll(_PAUSE):
                # A process that has ended has closed its end, behind its last answers.
                if self._child.listen(0) and getattr(self._child.answer, "kind", "") == "hang":
                    return self._child.answer
            self._moves += 1
            return self._here.recv()
        except (EOFError, OSError):
            while not self._child.listen(_PAUSE):
                pass
            return self._child.answer


def serve(argument: tuple[MakerTarget, str, str, Connection], *, progress: Progress) -> None:  # noqa: ARG001 -- a job has it
    """Answer words until there are no more: the job of the other process.

    Each request is a word; and None, or whether its last call is refused, if its program is wanted.  The answers to a
    word end with None.
    """
    target, edition, wanted, there = argument
    try:
        subject = target.subject("caffe", _level(target.name, wanted, target.top()), edition)
        sight = _sight(subject)
    except (PortError, Violation) as error:
        there.send(error)
        return
    there.send((subject.edition, sight))
    with suppress(EOFError):  # the parent has gone
        while True:
            word, refused = there.recv()
            if refused is None:
                for answer in answers(subject, sight, word):
                    there.send(answer)
                there.send(None)
            else:
                there.send(statements(subject, sight, word, refused=refused))
