"""What a user names as a port: a program, a shared library, or a maker of memories in Python; and subjects of it.

A shared library with the C ABI of ``syncedmem_port.h`` is loaded by the harness, which is a program like any other.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from syncedmem.model import InvalidArgumentError, SyncedMemoryError
from syncedmem.model.caffe import CPU_ONLY, DEFAULT
from syncedmem.model.exports.declared import machine_named
from syncedmem.model.interface import DeviceType

from ..engine.imports import module_at
from ..engine.subject import Subject
from ..memory.policy import policy_named
from ..requirements import LEVELS
from .process import Port
from .protocol import PortError

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.opening import AnyMachine

    from ..engine.supervisor import Limits
    from ..memory.policy import Policy
    from ..requirements import Level, Profile

__all__ = [
    "MakerTarget",
    "OwnMachine",
    "ProgramTarget",
    "command_target",
    "library_target",
    "maker_of",
    "port_target",
    "subject_of",
    "target",
]


@dataclass(frozen=True)
class OwnMachine:
    """What names another machine than Caffe's, and its policy; nothing if both are empty.

    Attributes
    ----------
    machine : str
        ``FILE.py:NAME`` or ``FILE.json``.
    policy : str
        ``FILE.py:NAME``.  Without one, memories are judged by the machine's table alone.
    """

    machine: str = ""
    policy: str = ""

    def machine_or(self, edition: str) -> AnyMachine:
        """The machine, or an edition if there is none."""
        if not self.machine:
            return edition
        try:
            return machine_named(self.machine)
        except SyncedMemoryError as error:
            raise PortError(f"--machine {self.machine}: {error}") from error

    def chosen_policy(self) -> Policy | None:
        """The policy; None if there is none."""
        try:
            return policy_named(self.policy) if self.policy else None
        except SyncedMemoryError as error:
            raise PortError(f"--policy {self.policy}: {error}") from error


_CAFFE = OwnMachine()


@dataclass(frozen=True)
class ProgramTarget:
    """A program that speaks the protocol of ports.

    Attributes
    ----------
    name : str
        What the user named.
    arguments : tuple of str
        The program and its arguments.
    own : OwnMachine
        Its machine, if that is not Caffe's.
    """

    ending: ClassVar[str] = ".jsonl"
    """That of the file of what shows a finding: requests."""

    name: str
    arguments: tuple[str, ...]
    own: OwnMachine = _CAFFE

    @property
    def as_written(self) -> str:
        """As a command line has it."""
        of_command = tuple(shlex.split(self.name)) == self.arguments
        return f"{'--command ' if of_command else ''}{shlex.quote(self.name)}"

    def running(self, file: Path) -> str:
        """The command that sends it the requests of a file."""
        return f"{shlex.join(self.arguments)} < {shlex.quote(str(file))}"

    def connect(self, limits: Limits, edition: str) -> Port:
        """The program, which has said hello."""
        port = Port(self.arguments, name=self.name, edition=self.own.machine_or(edition), limits=limits)
        with ExitStack() as stack:
            stack.enter_context(port)
            port.next_id()
            if port.machine is not None and port.edition != port.machine.name:
                raise PortError(f"{self.name} is of the machine {port.edition}, not {port.machine.name}")
            if edition and port.edition != edition:
                raise PortError(f"{self.name} is of the edition {port.edition}, not {edition}")
            stack.pop_all()
        return port


@dataclass(frozen=True)
class _There:
    """Where a program has the memory of a side; nobody here allocates any."""

    side: str

    @property
    def device_type(self) -> DeviceType:
        """Only the name of a side says that it is host memory."""
        return DeviceType.CPU if self.side in ("cpu", "host") else DeviceType.UNKNOWN


def _made_there(*_: object, **__: object) -> Any:
    """Refuse to make an object of Python: what a program has is made by requests."""
    raise PortError("memories of a program are no objects of Python: see syncedmem.spec.subjects.programs")


def subject_of(port: Port, name: str, profile: Profile, level: Level, *, policy: Policy | None = None) -> Subject:
    """What a program has, memories and perhaps blobs, at a level that it can show."""
    port.renew()
    port.level = level
    places: dict[str, Any] = {side: _There(side) for side in port.protocol.machine.sides}
    options: dict[str, Any] = {"level": level, "program": port}
    if port.machine is None:
        device = places["gpu"] if port.edition != CPU_ONLY.name else None
        return Subject(name, _made_there, places["cpu"], device, profile, edition=port.edition, **options)
    if not places:
        raise PortError(f"the machine {port.machine.name} has no sides, so its memories hold nothing")
    host, device = next(iter(places.values())), next(reversed(places.values()))
    options |= {"edition": port.machine, "policy": policy, "places": places}
    try:
        return Subject(name, _made_there, host, device, profile, **options)
    except InvalidArgumentError as error:
        raise PortError(str(error)) from error


@dataclass(frozen=True)
class MakerTarget:
    """A maker of memories in Python, or a `Subject`; it is imported where it is tested.

    Attributes
    ----------
    name : str
        ``module:maker``.
    allocators : tuple of callables
        Each makes an allocator: of the host, and of the device.
    own : OwnMachine
        Their machine, if that is not Caffe's.
    """

    ending: ClassVar[str] = ".py"

    name: str
    allocators: tuple[Callable[[], Any], Callable[[], Any]]
    own: OwnMachine = _CAFFE

    @property
    def as_written(self) -> str:
        """As a command line has it."""
        return shlex.quote(self.name)

    @staticmethod
    def running(file: Path) -> str:
        """The command that runs the program of a file."""
        return f"python {shlex.quote(str(file))}"

    def top(self) -> Level:
        """The highest level at which it is tested: that of a `Subject`; of other makers everything is seen."""
        maker = maker_of(self.name)
        return maker.level if isinstance(maker, Subject) else LEVELS[-1]

    def subject(self, profile: Profile, level: Level, edition: str) -> Subject:
        """The memories that it makes."""
        maker, source = maker_of(self.name), self._source(profile, level, edition)
        host, device = self.allocators
        machine, policy = self.own.machine_or(edition), self.own.chosen_policy()
        if isinstance(maker, Subject):
            own = self.own.machine != ""
            options = {"edition": machine, "policy": policy} if own else {"edition": machine or maker.edition}
            return replace(maker, profile=profile, level=level, source=maker.source or source, **options)
        there = device() if machine != CPU_ONLY.name else None
        of = machine or DEFAULT.name
        try:
            return Subject(
                self.name, maker, host(), there, profile, level=level, edition=of, policy=policy, source=source
            )
        except InvalidArgumentError as error:
            raise PortError(str(error)) from error

    def _source(self, profile: Profile, level: Level, edition: str) -> str:
        """The statements that make the subject in a program; none if an allocator has no name to import it by."""
        names = [allocator.__qualname__ for allocator in self.allocators]
        if not all(map(str.isidentifier, names)):
            return ""
        imports = [f"from {make.__module__} import {name}" for make, name in zip(self.allocators, names, strict=True)]
        name, machine, policy = map(_anywhere, (self.name, self.own.machine, self.own.policy))
        own = f", OwnMachine({machine!r}, {policy!r})" if machine else ""
        target = f"MakerTarget({name!r}, ({', '.join(names)}){own})"
        subject = f"subject = {target}.subject({profile!r}, {level!r}, {edition!r})"
        return "\n".join((*imports, f"from {__name__} import MakerTarget{', OwnMachine' * bool(own)}", subject))


def _anywhere(text: str) -> str:
    """What a text names, so that a program which names it runs in any folder."""
    place, colon, name = text.partition(":")
    return f"{Path(place).resolve()}{colon}{name}" if place.endswith((".py", ".json")) else text


def maker_of(text: str) -> Any:
    """The object that ``module:name`` or ``file.py:name`` names."""
    place, _, name = text.partition(":")
    if not name:
        raise PortError(f"{place} is a Python file: say what in it is meant, {place}:NAME")
    try:
        module = module_at(place)
    except Exception as error:  # whatever the module raises while it is imported
        raise PortError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    try:
        maker = attrgetter(name)(module)
    except AttributeError:
        raise PortError(f"{place} has no {name}") from None
    if not (callable(maker) or isinstance(maker, Subject)):
        raise PortError(f"{text} makes nothing: it is {maker!r}")
    return maker


def command_target(command: str) -> ProgramTarget:
    """The program of a command line."""
    try:
        arguments = tuple(shlex.split(command))
    except ValueError as error:
        raise PortError(f"{command!r} is no command: {error}") from error
    if not arguments:
        raise PortError("the command is empty")
    return ProgramTarget(command, arguments)


def library_target(path: str) -> ProgramTarget:
    """The harness, which tests the shared library at a path."""
    harness = Path(__file__).with_name("harness")
    return ProgramTarget(path, (sys.executable, "-I", "-S", str(harness), str(Path(path).resolve())))


def port_target(
    text: str | None,
    command: str | None,
    own: OwnMachine,
    allocators: tuple[Callable[[], Any], Callable[[], Any]],
) -> ProgramTarget | MakerTarget:
    """The port of a command line: a target, or a command, and not both; perhaps of another machine than Caffe's."""
    if (text is None) == (command is None):
        raise PortError("name one port: TARGET, or --command")
    if own.policy and not own.machine:
        raise PortError(f"--policy {own.policy} says what a machine decides: name that too, with --machine")
    port = target(str(text), allocators) if command is None else command_target(command)
    if own.machine and command is None and isinstance(port, ProgramTarget):
        raise PortError("--machine is not for shared libraries: their C ABI has the calls of Caffe's machine")
    return replace(port, own=own)


def target(text: str, allocators: tuple[Callable[[], Any], Callable[[], Any]]) -> ProgramTarget | MakerTarget:
    """What a text names: ``module:maker``, ``file.py:maker``, or the path of a shared library."""
    if Path(text).suffix in (".so", ".dylib", ".dll") or ".so." in Path(text).name:
        if not Path(text).is_file():
            raise PortError(f"{text}: there is no such file")
        return library_target(text)
    place, colon, name = text.partition(":")
    if place.endswith(".py") or (place and colon and name):
        return MakerTarget(text, allocators)
    if Path(text).suffix in (".c", ".cc", ".cpp", ".cu", ".rs"):
        raise PortError(f"{text} is a source: compile it to a shared library first, as docs/port-abi.md says")
    raise PortError(f"{text!r} is neither module:maker nor a shared library; a program is named with --command")
