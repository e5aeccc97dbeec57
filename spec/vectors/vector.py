"""A vector: a program with its expected results, and its name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from syncedmem.model import space
from syncedmem.model.opening import machine_of
from syncedmem.model.states import stepper

from ..memory.agreement import check_fit
from ..memory.policy import mute_calls
from ..record.world import World
from .operations import expected, operation
from .suites import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import State
    from syncedmem.model.opening import AnyMachine

    from ..memory.policy import Policy
    from .suites import VectorProgram

__all__ = ["FORMAT", "Vector", "canonical", "model_digest", "vectors"]

FORMAT = 3
"""The version of the format; it changes when a valid vector becomes invalid."""

_DIGITS = 16


@dataclass(frozen=True)
class Vector:
    """One vector.

    Attributes
    ----------
    suite : str
    program : VectorProgram
    policy : Policy or None
        That of the machine, if it is no edition of Caffe's.
    """

    suite: str
    program: VectorProgram
    policy: Policy | None = None

    @property
    def id(self) -> str:
        """The hash of the program without the expected results; it stays when those are corrected."""
        machine, sizes, steps, _ = self.program
        done = [operation(machine, step) for step in steps]
        program = {"edition": machine.name, "sizes": sizes, "operations": done}
        return digest(json.dumps(program, sort_keys=True, separators=(",", ":")))

    def as_json(self) -> dict[str, Any]:
        """The vector as data, as docs/vectors.md defines it."""
        return {
            "format": FORMAT,
            "id": self.id,
            "suite": self.suite,
            "edition": self.program.machine.name,
            "profile": self.program.profile,
            "model": model_digest(self.program.machine),
            "sizes": list(self.program.sizes),
            "steps": [*expected(self._new(), self.program.operations)],
        }

    def _new(self) -> World:
        """The world in which the memories are new."""
        world = World.of(self.program.machine, self.policy, safe=True)
        for step in self.program.made:
            _, world = world.with_new(step)
        return world

    def line(self) -> str:
        """The vector as one line of JSON, the same bytes each time."""
        return canonical(self.as_json())


def canonical(data: object) -> str:
    """JSON without spaces, with keys in the order of docs/vectors.md."""
    return json.dumps(data, separators=(",", ":"))


def digest(text: str) -> str:
    """The first digits of a SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


@cache
def model_digest(edition: AnyMachine) -> str:
    """A digest of what a machine does: every reachable state, every input, actions, refusals and facts."""
    machine = machine_of(edition)
    table = stepper(machine)
    inputs = table.inputs(end=True)
    lines = [
        f"{_spelled(state)} {entry}: {step.refusal} {list(step.actions)} {_spelled(step.after)}"
        for state in space(machine).steps
        for entry in inputs
        if (step := table.step(state, entry))
    ]
    return digest("\n".join((*map(str, inputs), *lines)))


def _spelled(state: State) -> str:
    return " ".join((state.head, *sorted(state.facts), *state.settings))


def vectors(suite: str, edition: AnyMachine, policy: Policy | None = None) -> Iterator[Vector]:
    """The vectors of a suite.

    Parameters
    ----------
    suite : str
        A name from ``SUITES``.
    edition : str or Machine
    policy : Policy, optional
        What such a machine decides where the theory of fresh copies leaves a choice.  Without one, what is expected
        follows from its table.

    Raises
    ------
    KeyError
        If there is no such suite.
    UnfitPolicyError
        If the policy says something else than the table of the machine.
    """
    machine = machine_of(edition)
    if policy is not None:
        check_fit(machine, policy)
    mute = mute_calls(machine, policy)
    for program in programs(suite, machine):
        kept = tuple(operation for operation in program.operations if operation.name not in mute)
        # Without a call there may be another number of actions, of which one has to fail.
        if kept == program.operations or not any(step.fail for step in kept):
            yield Vector(suite, program._replace(operations=kept), policy)
