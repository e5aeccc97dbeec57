"""Asking a port: words go in, answers come out.  The port is in a process of its own, and may end in any call."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import EDITIONS
from syncedmem.model.opening import machine_of

from ..engine.reproducer import program_of
from ..engine.supervisor import Child, Death
from ..engine.violation import UnfitError, Violation
from ..ports.makers import Journal
from ..ports.protocol import PortError
from ..ports.targets import MakerTarget, subject_of
from .answers import Answer, Sight, Word, answered, died, sight_of

if TYPE_CHECKING:
    from syncedmem.model import Machine

    from ..engine.supervisor import Limits, Reporter
    from ..ports.targets import ProgramTarget
    from ..requirements import Level

__all__ = ["AskedMaker", "AskedPort", "AskedProgram", "asked_port", "serve"]

_PAUSE = 0.05


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


class AskedProgram:
    """A program that speaks the protocol of ports; see `asked_port`.

    Attributes
    ----------
    name : str
    machine : Machine
        The machine that it is said to be.
    sight : Sight
        What it shows.
    program : list of str
        The requests of the word that it answered last.
    """

    def __init__(self, target: ProgramTarget, edition: str, level: str, limits: Limits) -> None:
        port = self._port = target.connect(limits, edition)
        self.program: list[str] = []
        with ExitStack() as stack:
            stack.callback(port.renew)
            self.name: str = port.hello["name"]
            self._subject = subject_of(port, self.name, "caffe", _level(target.name, level, port.hello["level"]))
            self.machine: Machine = self._subject.machine
            self.sight: Sight = sight_of(self._subject)
            stack.pop_all()

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory; after one that says how the port ended, there is no other."""
        found: list[Answer] = []
        self.program = answered(self._subject, self.sight, word, found.append)
        return found

    def renew(self) -> None:
        """Have the next word go to a new process."""
        self._port.renew()

    def close(self) -> None:
        """End the process."""
        self._port.renew()


class AskedMaker:
    """A maker of memories in Python, in a process of its own; see `asked_port`.

    Attributes
    ----------
    name : str
    machine : Machine
        The machine that it is said to be.
    sight : Sight
        What it shows.
    program : list of str
        The statements of the word that it answered last.
    """

    def __init__(self, target: MakerTarget, edition: str, level: str, limits: Limits) -> None:
        self.name: str = target.name
        self.program: list[str] = []
        self._wanted = target, edition, level
        self._limits = limits
        self._folder = TemporaryDirectory(prefix="syncedmem-")
        self._child: Child[PortError | Violation | None] | None = None
        self._messages: deque[Any] = deque()
        self.sight: Sight
        named, self.sight = self._start()
        self.machine: Machine = self._machine(named)

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory; after one that says how the port ended, there is no other."""
        if self._child is None:
            self._start()
        assert self._child is not None  # noqa: S101 -- it was just started
        self._child.send(word)
        answers: list[Answer] = []
        while isinstance(message := self._receive(), tuple):
            answers.append(cast("Answer", message))
        if isinstance(message, Death):  # perhaps only when the memory was released, which nobody asked about
            more, lines = Journal.read(self._journal)
            self.renew()
            answers += [died(f"the process {message.how}")] * (len(answers) < len(word))
            target, edition, _ = self._wanted
            message = [*program_of(lines, target.subject("caffe", self.sight.level, edition), more)]
        self.program = message
        return answers

    def renew(self) -> None:
        """Have the next word go to a new process."""
        if self._child is not None:
            with self._child:
                self._child = None

    def close(self) -> None:
        """End the process."""
        self.renew()
        self._folder.cleanup()

    def _machine(self, named: str) -> Machine:
        """The machine with a name, which cannot be sent from the other process."""
        target, edition, _ = self._wanted
        if target.own.machine or named in EDITIONS:
            return machine_of(target.own.machine_or(edition or named))
        self.close()
        raise PortError(f"{self.name} is of the machine {named}: say where that is, with --machine FILE.py:NAME")

    @property
    def _journal(self) -> Path:
        return Path(self._folder.name) / "journal"

    def _start(self) -> tuple[str, Sight]:
        """Start the process; return what it is."""
        self._messages.clear()
        argument = *self._wanted, self._journal
        self._child = Child(serve, argument, limits=self._limits, on_message=self._messages.append)
        message = self._receive()
        if isinstance(message, tuple):
            return cast("tuple[str, Sight]", message)
        self.close()
        raise PortError(f"{self.name}: the process {message.how}") if isinstance(message, Death) else message

    def _receive(self) -> Any:
        """The next message; if there is none, what the process answered, or how it ended."""
        assert self._child is not None  # noqa: S101 -- nothing is received before the start
        while not self._messages:
            if self._child.listen(_PAUSE):
                return self._child.answer
        return self._messages.popleft()


def serve(argument: tuple[MakerTarget, str, str, Path], *, progress: Reporter) -> PortError | Violation | None:
    """Answer words until there are no more: the job of the other process.  After the answers comes the program."""
    target, edition, wanted, path = argument
    journal = Journal(path)
    try:
        subject = target.subject("caffe", _level(target.name, wanted, target.top()), edition)
        subject = replace(subject, journal=journal.note)
        sight = sight_of(subject)
    except (PortError, UnfitError, Violation) as error:
        return PortError(str(error)) if isinstance(error, UnfitError) else error
    progress.send((subject.machine.name, sight))
    with suppress(EOFError):  # the parent has gone
        while True:
            progress.send(answered(subject, sight, progress.receive(), progress.send))
    return None


AskedPort = AskedProgram | AskedMaker
"""A port that answers words, on new memories of one process."""
