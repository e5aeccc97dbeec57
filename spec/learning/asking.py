"""Asking a port: words go in, answers come out.  The port is in a process of its own, and may end in any call."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from ..engine.reproducer import program_of
from ..engine.supervisor import Child, Death
from ..engine.violation import UnfitError, Violation
from ..ports.makers import Journal
from ..ports.process import PortError
from ..ports.targets import MakerTarget, subject_of
from .answers import Answer, Sight, Word, answered, died, sight_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from ..engine.supervisor import Limits, Progress
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
    name, edition : str
    sight : Sight
        What it shows.
    program : list of str
        The requests of the word that it answered last.
    """

    def __init__(self, target: ProgramTarget, edition: str, level: str, limits: Limits) -> None:
        port = self._port = target.connect(limits, edition)
        self.program: list[str] = []
        with ExitStack() as stack:
            stack.callback(port.close)
            self.name: str = port.hello["name"]
            self.edition: str = port.edition
            self._subject = subject_of(port, self.name, "caffe", _level(target.name, level, port.hello["level"]))
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
        self._port.close()


class AskedMaker:
    """A maker of memories in Python, in a process of its own; see `asked_port`.

    Attributes
    ----------
    name, edition : str
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
        self._process = ExitStack()
        self._here: Connection | None = None
        self._moves = 0
        self.edition: str
        self.sight: Sight
        self.edition, self.sight = self._start()

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory; after one that says how the port ended, there is no other."""
        if self._here is None:
            self._start()
        assert self._here is not None  # noqa: S101 -- it was just started
        self._here.send(word)
        self._moves += 1
        found: list[Answer] = []
        while isinstance(reply := self._receive(), tuple):
            found.append(cast("Answer", reply))
        if isinstance(reply, Death):  # perhaps only when the memory was released, which nobody asked about
            more, lines = Journal.read(self._journal)
            self.renew()
            found += [died(f"the process {reply.how}")] * (len(found) < len(word))
            target, _, _ = self._wanted
            reply = [*program_of(lines, target.subject("caffe", self.sight.level, self.edition), more)]
        self.program = reply
        return found

    def renew(self) -> None:
        """Have the next word go to a new process."""
        self._here = None
        self._process.close()

    def close(self) -> None:
        """End the process."""
        self.renew()
        self._folder.cleanup()

    @property
    def _journal(self) -> Path:
        return Path(self._folder.name) / "journal"

    def _start(self) -> tuple[str, Sight]:
        """Start the process; return what it is."""
        self._here, there = Pipe()
        self._process.callback(self._here.close)
        with there:
            argument = *self._wanted, there, self._journal
            child = Child[Any](serve, argument, limits=self._limits, moved=lambda: self._moves)
        self._child = self._process.enter_context(child)
        found = self._receive()
        if isinstance(found, tuple):
            return cast("tuple[str, Sight]", found)
        self.close()
        raise PortError(f"{self.name}: the process {found.how}") if isinstance(found, Death) else found

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


def serve(argument: tuple[MakerTarget, str, str, Connection, Path], *, progress: Progress) -> None:  # noqa: ARG001 -- a job has it
    """Answer words until there are no more: the job of the other process.  After the answers comes the program."""
    target, edition, wanted, there, path = argument
    journal = Journal(path)
    try:
        subject = target.subject("caffe", _level(target.name, wanted, target.top()), edition)
        subject = replace(subject, journal=journal.note)
        sight = sight_of(subject)
    except (PortError, UnfitError, Violation) as error:
        there.send(PortError(str(error)) if isinstance(error, UnfitError) else error)
        return
    there.send((subject.edition, sight))
    with suppress(EOFError):  # the parent has gone
        while True:
            there.send(answered(subject, sight, there.recv(), there.send))


AskedPort = AskedProgram | AskedMaker
"""A port that answers words, on new memories of one process."""
