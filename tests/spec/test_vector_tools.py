"""What is done with vectors besides replaying them: the archive, vectors of violations, and those of blobs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from machines import DOOR, EXAMPLES, PETSC, POLICIES

from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec import ReferenceMemory, Subject, UnfitPolicyError
from syncedmem.spec.memory.policy import CAFFE
from syncedmem.spec.vectors import SUITES, replay, vectors
from syncedmem.spec.vectors.keys import schema
from syncedmem.spec.vectors.traces import checked_lines

if TYPE_CHECKING:
    from syncedmem.model import Action, Machine
    from syncedmem.spec import Policy

# --- any machine


class ForgetsToCopy(ReferenceMemory):
    """A memory that copies nothing."""

    def copy(self, action: Action, blocks: dict[str, Any], stream: Any) -> None:
        """Leave the bytes as they are."""


def subject_of_machine(machine: Machine, policy: Policy | None, make: Any = ReferenceMemory) -> Subject:
    """Return memories that perform a table, on allocators of their own for each side."""
    host, device = CPUDeviceAllocator(), SimulatedDeviceAllocator()
    on_device = {side: device for side in machine.sides if "device" in side}
    return Subject(
        "mine", partial(make, machine=machine), host, device, edition=machine, policy=policy, places=on_device
    )


JUDGED = [(it, None) for it in (DOOR, *EXAMPLES)] + [*POLICIES.items()]
"""Machines by their tables, and with policies."""


@pytest.mark.parametrize(("machine", "policy"), JUDGED, ids=lambda it: getattr(it, "name", "policy" if it else "table"))
def test_any_machine_has_vectors_in_its_own_words(machine: Machine, policy: Policy | None) -> None:
    """They are valid, runs of the machine, and passed by a memory that performs its table, and by no other."""
    validator: Any = jsonschema.Draft202012Validator(schema(machine))
    suites = [[it.as_json() for it in vectors(name, machine, policy)] for name in SUITES if name != "hsi-extra"]
    some = [it for suite in suites for it in suite[:40]]
    copies = any(action.does == "copy" for action in machine.actions.values())
    right, wrong = (subject_of_machine(machine, policy, make) for make in (ReferenceMemory, ForgetsToCopy))

    assert some
    assert {machine.name} == {it["edition"] for it in some}
    assert [] == [error.message for it in some for error in validator.iter_errors(it)]
    assert len(some) == checked_lines([*enumerate(some, 1)], machine)
    assert [] == [str(difference) for it in some if (difference := replay(right, it))]
    assert copies == any(replay(wrong, it) for it in some)


def test_a_policy_that_does_not_fit_makes_no_vectors() -> None:
    with pytest.raises(UnfitPolicyError, match="the policy is for the sides cpu, gpu, and petsc has host, device"):
        next(vectors("tour", PETSC, CAFFE))
    zeroing = replace(POLICIES[PETSC], first_touch="zero")
    with pytest.raises(UnfitPolicyError, match="the machine petsc and its policy differ: VecGetArray"):
        next(vectors("tour", PETSC, zeroing))
