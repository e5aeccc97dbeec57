"""What a command line names: a machine, and what it decides; a port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import InvalidArgumentError
from syncedmem.model.exports.declared import machine_named

if TYPE_CHECKING:
    from syncedmem.model import Machine
    from syncedmem.spec import Policy
    from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

__all__ = ["POLICY", "machine_and_policy", "named_port"]

POLICY = "What that machine decides where the theory of fresh copies leaves a choice: FILE.py:NAME, a Policy."
"""What a help text says of a policy."""


def named_port(
    text: str | None, command: str | None, machine: str | None = None, policy: str | None = None
) -> ProgramTarget | MakerTarget:
    """The port that a command line names, and its machine; makers in Python get our allocators."""
    from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
    from syncedmem.spec.ports.targets import OwnMachine, port_target

    return port_target(
        text, command, OwnMachine(machine or "", policy or ""), (CPUDeviceAllocator, SimulatedDeviceAllocator)
    )


def machine_and_policy(option: str, machine: str | None, policy: str | None) -> tuple[Machine | None, Policy | None]:
    """The machine that an option names, and its policy.

    Raises
    ------
    InvalidArgumentError
        If there is a policy, but no machine.
    DeclarationError, FileAccessError, FileFormatError
        As by `machine_named` and `policy_named`.
    """
    from syncedmem.spec.memory.policy import policy_named

    if machine is None:
        if policy is not None:
            raise InvalidArgumentError("--policy", policy, f"left out, or for a machine that {option} names")
        return None, None
    return machine_named(machine), policy_named(policy) if policy else None
