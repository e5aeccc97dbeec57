"""The port that a command line names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

__all__ = ["port_target"]


def port_target(text: str | None, command: str | None) -> ProgramTarget | MakerTarget:
    """The port: a target, or a command, and not both.

    Raises
    ------
    PortError
        If it is no port.
    """
    from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
    from syncedmem.spec.ports.process import PortError
    from syncedmem.spec.ports.targets import command_target, target

    if (text is None) == (command is None):
        raise PortError("name one port: TARGET, or --command")
    if command is not None:
        return command_target(command)
    return target(str(text), (CPUDeviceAllocator, SimulatedDeviceAllocator))
