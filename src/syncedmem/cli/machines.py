"""The machine that a command line names, and what it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import InvalidArgumentError
from syncedmem.model.exports.declared import machine_named

if TYPE_CHECKING:
    from syncedmem.model import Machine
    from syncedmem.spec import Policy

__all__ = ["POLICY", "machine_and_policy"]

POLICY = "What that machine decides where the theory of fresh copies leaves a choice: FILE.py:NAME, a Policy."
"""What a help text says of a policy."""


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
