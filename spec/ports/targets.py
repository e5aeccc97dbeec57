"""What a user names as a port: a program, a shared library, or a maker of memories in Python; and subjects of it.

A shared library with the C ABI of ``syncedmem_port.h`` is loaded by the harness, which is a program like any other.
"""

from __future__ import annotations

import importlib
import importlib.util
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import InvalidArgumentError, SyncedMemoryError
from syncedmem.model.caffe import CPU_ONLY, DEFAULT
from syncedmem.model.exports.declared import machine_named

from ..engine.subject import Subject
from ..memory.policy import Policy
from ..requirements import LEVELS
from .blob import RemoteBlob
from .memory import RemoteAllocator, RemoteMemory
from .process import Port, PortError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from syncedmem.model import Machine
    from syncedmem.model.opening import AnyMachine

    from ..engine.supervisor import Limits
    from ..requirements import Level, Profile

__all__ = ["MakerTarget", "ProgramTarget", "command_target", "library_target", "maker_of", "subject_of", "target"]


@dataclass(frozen=True)
class ProgramTarget:
    """A program that speaks the protocol of ports.

    Attributes
    ----------
    name : str
        What the user named.
    arguments : tuple of str
        The program and its arguments.
    """

    name: str
    arguments: tuple[str, ...]

    def connect(self, limits: Limits, edition: str) -> Port:
        """The program, which has said hello.

        Raises
        ------
        PortError
            If it cannot be started, or does not say hello, or is of another edition.
        """
        port = Port(self.arguments, name=self.name, edition=edition, limits=limits)
        with ExitStack() as stack:
            stack.enter_context(port)
            port.next_id()
            if edition and port.edition != edition:
                raise PortError(f"{self.name} is of the edition {port.edition}, not {edition}")
            stack.pop_all()
        return port


def subject_of(port: Port, name: str, profile: Profile, level: Level, *, blobs: bool = False) -> Subject:
    """The memories of a program, or its blobs, at a level that it can show."""
    port.renew()
    port.level = level
    device = RemoteAllocator(port, "gpu") if port.edition != CPU_ONLY.name else None
    host: Any = RemoteAllocator(port, "cpu")
    make: Any = RemoteBlob if blobs else RemoteMemory
    return Subject(name, make, host, cast("Any", device), profile, level=level, edition=port.edition, program=port)


@dataclass(frozen=True)
class MakerTarget:
    """A maker of memories in Python, or a `Subject`; it is imported where it is tested.

    Attributes
    ----------
    name : str
        ``module:maker``.
    allocators : tuple of callables
        Each makes an allocator: of the host, and of the device.
    machine, policy : str
        Of memories of another machine than Caffe's: what names them, ``FILE.py:NAME``, and for machines also
        ``FILE.json``.  Without a policy, memories are judged by the machine's table alone.
    """

    name: str
    allocators: tuple[Callable[[], Any], Callable[[], Any]]
    machine: str = ""
    policy: str = ""

    def top(self) -> Level:
        """The highest level at which it is tested: that of a `Subject`; of other makers everything is seen.

        Raises
        ------
        PortError
            As `subject`.
        """
        maker = maker_of(self.name)
        return maker.level if isinstance(maker, Subject) else LEVELS[-1]

    def subject(self, profile: Profile, level: Level, edition: str) -> Subject:
        """The memories that it makes.

        Raises
        ------
        PortError
            If it cannot be imported, or is not a maker.
        """
        maker, source = maker_of(self.name), self._source(profile, level, edition)
        host, device = self.allocators
        machine: AnyMachine = self._own_machine() if self.machine else edition
        policy = _policy_of(self.policy) if self.policy else None
        if isinstance(maker, Subject):
            options = {"edition": machine, "policy": policy} if self.machine else {"edition": machine or maker.edition}
            return replace(maker, profile=profile, level=level, source=maker.source or source, **options)
        there = device() if machine != CPU_ONLY.name else None
        of = machine or DEFAULT.name
        try:
            return Subject(
                self.name, maker, host(), there, profile, level=level, edition=of, policy=policy, source=source
            )
        except InvalidArgumentError as error:
            raise PortError(str(error)) from error

    def _own_machine(self) -> Machine:
        try:
            return machine_named(self.machine)
        except SyncedMemoryError as error:
            raise PortError(f"--machine {self.machine}: {error}") from error

    def _source(self, profile: Profile, level: Level, edition: str) -> str:
        """The statements that make the subject in a program; none if an allocator has no name to import it by."""
        names = [it.__qualname__ for it in self.allocators]
        if not all(map(str.isidentifier, names)):
            return ""
        imports = [f"from {it.__module__} import {name}" for it, name in zip(self.allocators, names, strict=True)]
        name, machine, policy = map(_anywhere, (self.name, self.machine, self.policy))
        own = f", {machine!r}, {policy!r}" if machine else ""
        target = f"MakerTarget({name!r}, ({', '.join(names)}){own})"
        subject = f"subject = {target}.subject({profile!r}, {level!r}, {edition!r})"
        return "\n".join((*imports, f"from {__name__} import MakerTarget", subject))


def _anywhere(text: str) -> str:
    """What a text names, so that a program which names it runs in any folder."""
    place, colon, name = text.partition(":")
    return f"{Path(place).resolve()}{colon}{name}" if place.endswith((".py", ".json")) else text


def maker_of(text: str) -> Any:
    """The object that ``module:name`` or ``file.py:name`` names.

    Raises
    ------
    PortError
        If there is no such module or object, or if it cannot be called.
    """
    maker = _object_named(text)
    if not (callable(maker) or isinstance(maker, Subject)):
        raise PortError(f"{text} makes nothing: it is {maker!r}")
    return maker


def _policy_of(text: str) -> Policy:
    try:
        policy = _object_named(text)
    except PortError as error:
        raise PortError(f"--policy {text}: {error}") from error
    if not isinstance(policy, Policy):
        raise PortError(f"--policy {text} is no policy: it is {policy!r}")
    return policy


def _object_named(text: str) -> Any:
    place, _, name = text.partition(":")
    if not name:
        raise PortError(f"{place} is a Python file: say what in it is meant, {place}:NAME")
    folder = "" if not place.endswith(".py") else str(Path(place).resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        named: Any = _of_file(Path(place).resolve()) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:  # whatever the module raises while it is imported
        raise PortError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(named, part):
            raise PortError(f"{place} has no {name}")
        named = getattr(named, part)
    return named


def _of_file(path: Path) -> ModuleType:
    """The module in a file, whatever other module has its name: ``select.py`` is not the standard library's."""
    name = path.stem if path.stem not in sys.modules else f"{path.stem} of {path.parent}"
    for known in (sys.modules.get(path.stem), sys.modules.get(name)):
        if known is not None and getattr(known, "__file__", None) == str(path):
            return known
    place: Any = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[place.name] = importlib.util.module_from_spec(place)
    try:
        place.loader.exec_module(module)
    except BaseException:
        del sys.modules[place.name]
        raise
    return module


def command_target(command: str) -> ProgramTarget:
    """The program of a command line.

    Raises
    ------
    PortError
        If it is none.
    """
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


def target(text: str, allocators: tuple[Callable[[], Any], Callable[[], Any]]) -> ProgramTarget | MakerTarget:
    """What a text names: ``module:maker``, ``file.py:maker``, or the path of a shared library.

    Raises
    ------
    PortError
        If it is none of these.
    """
    if Path(text).suffix in (".so", ".dylib", ".dll") or ".so." in Path(text).name:
        if not Path(text).is_file():
            raise PortError(f"{text}: there is no such file")
        return library_target(text)
    place, colon, name = text.partition(":")
    if place.endswith(".py") or (place and colon and name):
        return MakerTarget(text, allocators)
    raise PortError(f"{text!r} is neither module:maker nor a shared library; a program is named with --command")
