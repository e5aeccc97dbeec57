"""Asking a port: words go in, answers come out.  The port is in a process of its own, and may end in any call."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import EDITIONS
from syncedmem.model.opening import machine_of

from ..engine.supervisor import Child, Death
from ..engine.violation import UnfitError, Violation
from ..ports.makers import StepJournal, program_again
from ..ports.protocol import PortError
from ..ports.targets import MakerTarget, subject_of
from .answers import Answer, Sight, Word, answered, died, sight_of

if TYPE_CHECKING:
    from syncedmem.model import Machine

    from ..engine.subject import Subject
    from ..engine.supervisor import Limits, Reporter
    from ..ports.targets import ProgramTarget
    from ..requirements import Level

__all__ = ["AskedMaker", "AskedPort", "AskedSubject", "asked_port", "serve"]

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
    with ExitStack() as stack:
        port = stack.enter_context(target.connect(limits, edition))
        shown = _level(target.name, level, port.hello["level"])
        asked = AskedSubject(subject_of(port, port.hello["name"], "caffe", shown))
        stack.pop_all()
    return asked


def _level(name: str, level: str, top: Level) -> Level:
    """The level that is wanted: at most L2, because failures and pushes in flight are not among the inputs."""
    if level > top:
        raise PortError(f"{name} shows {top} at most, not {level}")
    wanted: Any = level or top
    return min(wanted, "L2")


class AskedSubject:
    """A subject that is asked from this process, such as a program that speaks the protocol of ports.

    Parameters
    ----------
    subject : Subject

    Attributes
    ----------
    name : str
    machine : Machine
        The machine that it is said to be.
    sight : Sight
        What it shows.
    program : list of str
        The requests, or the statements, of the word that it answered last.
    """

    def __init__(self, subject: Subject) -> None:
        self.name: str = subject.name
        self.machine: Machine = subject.machine
        self.program: list[str] = []
        self._subject = subject
        self.sight: Sight = sight_of(subject)

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory; after one that says how the port ended, there is no other."""
        answers: list[Answer] = []
        self.program = answered(self._subject, self.sight, word, answers.append)
        return answers

    def renew(self) -> None:
        """Have the next word go to a new process, if it is a program."""
        if self._subject.program is not None:
            self._subject.program.renew()

    def close(self) -> None:
        """End the process, if it is a program."""
        self.renew()


class AskedMaker:
    """A maker of memories in Python that is asked in a process of its own.

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
        self._folder = TemporaryDirectory(prefix="syncedmem-")
        self._wanted = target, edition, level, Path(self._folder.name) / "journal"
        self._limits = limits
        self._child: Child[Any] | None = None
        self._answers: list[Answer] = []
        hello = self._exchange(())
        if not isinstance(hello, tuple):
            self.close()
            raise PortError(f"{self.name}: the process {hello.how}") if isinstance(hello, Death) else hello
        named, sight = cast("tuple[str, Sight]", hello)
        self.sight: Sight = sight
        self.machine: Machine = self._machine(named)

    def ask(self, word: Word) -> list[Answer]:
        """The answers of a new memory; after one that says how the port ended, there is no other."""
        self.program = self._exchange(word)
        answers = [*self._answers]
        if isinstance(self.program, Death):  # perhaps only when the memory was released, which nobody asked about
            target, edition, _, journal = self._wanted
            answers += [died(f"the process {self.program.how}")] * (len(answers) < len(word))
            subject = target.subject("caffe", self.sight.level, edition)
            self.program = [*program_again(subject, StepJournal.read(journal))]
            self.renew()
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
        target, edition, *_ = self._wanted
        if target.own.machine or named in EDITIONS:
            return machine_of(target.own.machine_or(edition or named))
        self.close()
        raise PortError(f"{self.name} is of the machine {named}: say where that is, with --machine FILE.py:NAME")

    def _exchange(self, word: Word) -> Any:
        """What `serve` returns for a word, or how the process ended."""
        self._answers.clear()
        argument = *self._wanted, word
        if self._child is None:
            self._child = Child(serve, argument, limits=self._limits, on_message=self._answers.append)
        else:
            self._child.again(argument)
        while not self._child.listen(_PAUSE):
            pass
        return self._child.answer


def serve(
    argument: tuple[MakerTarget, str, str, Path, Word], *, progress: Reporter
) -> tuple[str, Sight] | list[str] | PortError | Violation:
    """Send the answers to a word, and return its program; without a word, the machine's name and what is seen."""
    *wanted, word = argument
    try:
        subject, sight = _opened(*wanted)
    except (PortError, UnfitError, Violation) as error:
        return PortError(str(error)) if isinstance(error, UnfitError) else error
    progress("asked", 0)  # what was imported until now may take longer than an answer
    return answered(subject, sight, word, progress.send) if word else (subject.machine.name, sight)


@lru_cache(maxsize=1)
def _opened(target: MakerTarget, edition: str, level: str, journal: Path) -> tuple[Subject, Sight]:
    """The subject of a target in this process, and what it shows."""
    subject = target.subject("caffe", _level(target.name, level, target.top()), edition)
    subject = replace(subject, journal=StepJournal(journal).note)
    return subject, sight_of(subject)


AskedPort = AskedSubject | AskedMaker
"""A port that answers words, on new memories of one process."""
