"""The port that a command line names."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

__all__ = ["as_written", "port_target", "program_file", "running"]


def port_target(
    text: str | None, command: str | None, machine: str | None = None, policy: str | None = None
) -> ProgramTarget | MakerTarget:
    """The port: a target, or a command, and not both; a maker in Python may be of another machine than Caffe's.

    Raises
    ------
    PortError
        If it is no port.
    """
    from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
    from syncedmem.spec.ports.protocol import PortError
    from syncedmem.spec.ports.targets import OwnMachine, ProgramTarget, command_target, target

    if (text is None) == (command is None):
        raise PortError("name one port: TARGET, or --command")
    if policy is not None and machine is None:
        raise PortError(f"--policy {policy} says what a machine decides: name that too, with --machine")
    found = (
        command_target(command)
        if command is not None
        else target(str(text), (CPUDeviceAllocator, SimulatedDeviceAllocator))
    )
    if machine is None:
        return found
    if isinstance(found, ProgramTarget) and command is None:
        raise PortError("--machine is not for shared libraries: their C ABI has the calls of Caffe's machine")
    return replace(found, own=OwnMachine(machine, policy or ""))


def as_written(target: ProgramTarget | MakerTarget) -> str:
    """The target, as a command line has it."""
    arguments = getattr(target, "arguments", None)
    of_command = arguments is not None and tuple(shlex.split(target.name)) == arguments
    return f"{'--command ' if of_command else ''}{shlex.quote(target.name)}"


def program_file(name: str, statements: Sequence[str]) -> str:
    """The name of the file of a program: of requests, or of statements of Python."""
    ending = "jsonl" if statements and statements[0].startswith('{"id"') else "py"
    return f"{name}.{ending}"


def running(target: ProgramTarget | MakerTarget, program: Path) -> str:
    """The command that runs a program, as a shell reads it."""
    path = shlex.quote(str(program))
    return f"python {path}" if program.suffix == ".py" else f"{shlex.join(getattr(target, 'arguments', ()))} < {path}"
