"""Asking a port: words go in, answers come out.  The port is in a process of its own, and may end in any call."""

from __future__ import annotations

import signal
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..engine.supervisor import Death, limit_memory
from ..engine.violation import Violation
from ..ports.process import PortError
from ..ports.targets import MakerTarget, subject_of
from ..requirements import LEVELS
from .answers import Answer, Sight, WatchedMemory, Word

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from syncedmem.model import Input

    from ..engine.supervisor import Limits
    from ..ports.targets import ProgramTarget
    from ..requirements import Level

__all__ = ["HIGHEST", "AskedMaker", "AskedPort", "AskedProgram", "asked_port", "serve"]

HIGHEST: Level = "L2"
"""The highest level at which is learned: failures and pushes in flight are not among the inputs."""


class AskedPort(Protocol):
    """A port that answers words.

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

    def program(self, word: Word) -> tuple[str, ...]:
        """A word as a program: statements in Python, or the requests."""
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


class AskedProgram:
    """A program that speaks the protocol of ports; see `asked_port`."""

    def __init__(self, target: ProgramTarget, edition: str, level: str, limits: Limits) -> None:
        self._port = target.connect(limits, edition)
        with ExitStack() as stack:
            stack.callback(self._port.close)
            top = self._port.hello["level"]
            if level > top:
                raise PortError(f"{target.name} shows {top} at most, not {level}")
            self.name: str = self._port.hello["name"]
            self.edition: str = self._port.edition
            self._subject = subject_of(self._port, self.name, "caffe", _level(level or top))
            memory = WatchedMemory(self._subject)
            self.sight: Sight = memory.sight()
            memory.finish()
            stack.pop_all()

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory."""
        return [*self._answers(word)]

    def _answers(self, word: Word) -> Iterator[Answer]:
        try:
            memory = WatchedMemory(self._subject)
            for entry in word:
                yield memory.step(entry, self.sight)
            memory.finish()
        except Violation as found:
            yield _death(found)

    def renew(self) -> None:
        """Have the next word go to a new process."""
        self._port.renew()

    def program(self, word: Word) -> tuple[str, ...]:
        """The requests of a word."""
        try:
            memory = WatchedMemory(self._subject)
            for entry in word:
                memory.step(entry, self.sight)
        except Violation as found:
            return found.statements
        return memory.program()

    def close(self) -> None:
        """End the process."""
        self._port.close()


def _level(level: str) -> Level:
    return next(known for known in LEVELS if known == min(level, HIGHEST))


def _death(found: Violation) -> Answer:
    """The end of a program in a call, without what is different each time: its last words, the numbers of requests."""
    if found.requirement == "P01-answers":
        return Answer(died=found.message.partition(": ")[2].partition(";")[0])
    return Answer(died=f"{found.requirement}: the answer is not what the protocol wants")


class AskedMaker:
    """A maker of memories in Python, in a process of its own; see `asked_port`."""

    def __init__(self, target: MakerTarget, edition: str, level: str, limits: Limits) -> None:
        self._target = target
        self._wanted = edition, _level(level or HIGHEST)
        self._limits = limits
        self._stack = ExitStack()
        self._connection: Connection | None = None
        self.name: str
        self.edition: str
        self.sight: Sight
        self.name, self.edition, self.sight = self._started()

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory."""
        connection = self._running()
        connection.send((word, None, False))
        answers: list[Answer] = []
        for _ in word:
            reply = self._received(connection, self._limits.seconds)
            answers.append(reply if isinstance(reply, Answer) else self._ended(reply))
            if answers[-1].died:
                break
        return answers

    def renew(self) -> None:
        """Have the next word go to a new process."""
        self._connection = None
        self._stack.close()

    def program(self, word: Word) -> tuple[str, ...]:
        """The statements of a word; if it ends the process, its last call is not made for this."""
        return self._program(word, None) or self._program(word[:-1], word[-1])

    def _program(self, word: Word, planned: Input | None) -> tuple[str, ...]:
        """The statements of a word, and of an input after it that is not made; none if the process ends."""
        connection = self._running()
        connection.send((word, planned, True))
        for _ in word:
            if not isinstance(self._received(connection, self._limits.seconds), Answer):
                self.renew()
                return ()
        statements: tuple[str, ...] = self._received(connection, self._limits.seconds)
        return statements

    def close(self) -> None:
        """End the process."""
        self.renew()

    def _running(self) -> Connection:
        if self._connection is None:
            self._started()
        assert self._connection is not None  # noqa: S101 -- it was just started
        return self._connection

    def _started(self) -> tuple[str, str, Sight]:
        """Start the process; return what it is."""
        context: Any = get_context("spawn")
        connection, there = cast("tuple[Connection, Connection]", context.Pipe())
        self._connection = connection
        self._stack.callback(connection.close)
        self._process: Any = context.Process(target=serve, args=(there, self._target, *self._wanted), daemon=True)
        with there:
            self._process.start()
        self._stack.callback(self._process.join)
        self._stack.callback(self._process.kill)
        if self._limits.memory is not None:
            limit_memory(self._process.pid, self._limits.memory)
        found = self._received(connection, self._limits.first or self._limits.seconds)
        if isinstance(found, Death):
            self.close()
            raise PortError(f"{self._target.name}: the process {found.how}")
        if isinstance(found, Exception):
            self.close()
            raise found
        started: tuple[str, str, Sight] = found
        return started

    def _received(self, connection: Connection, seconds: float | None) -> Any:
        """The next message, or how the process ended."""
        if not connection.poll(seconds):
            return Death("hang", f"{seconds:g}")
        try:
            return connection.recv()
        except (EOFError, OSError):
            self._process.join(self._limits.seconds)
            return Death.of(self._process.exitcode)

    def _ended(self, reply: Death | Violation) -> Answer:
        """The answer of a process that has ended, or that could not make another memory."""
        self.renew()
        return Answer(died=f"the process {reply.how}" if isinstance(reply, Death) else reply.message)


def serve(there: Connection, target: MakerTarget, edition: str, level: Level) -> None:
    """Answer words in this process, until there are no more.

    Parameters
    ----------
    there : Connection
        Gets, for each word: the word, an input to plan only or None, and whether its program is wanted.
    target : MakerTarget
    edition : str
    level : str
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends us
    try:
        subject = target.subject("caffe", level, edition)
        memory = WatchedMemory(subject)
        sight = memory.sight()
        memory.finish()
    except (PortError, Violation) as error:
        there.send(error)
        return
    there.send((subject.name, subject.edition, sight))
    with suppress(EOFError):  # the parent has gone
        while True:
            word, planned, wanted = there.recv()
            try:
                memory = WatchedMemory(subject)
            except Violation as found:
                there.send(found)
                continue
            for entry in word:
                there.send(memory.step(entry, sight))
            if planned is not None:
                memory.plan(planned)
            if wanted:
                there.send(memory.program())
            memory.finish()
