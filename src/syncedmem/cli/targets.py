"""The port that a command line names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

__all__ = ["port_target"]


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
