"""The kit judges memories of any machine, over any number of sides: the reference of each passes, wrong ones do not."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from machines import DOOR, MSI, MSI_OF_TWO, PETSC, POLICIES, TCP, THIRD, changed

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.model import EDITIONS, InvalidArgumentError, Machine
from syncedmem.model.declaration import Action, Call, Row, Setting
from syncedmem.spec import Policy, ReferenceMemory, Subject, check_conformance, state_machine
from syncedmem.spec.engine.violation import UnfitPolicyError
from syncedmem.spec.memory.claims import not_judged

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = (PETSC, MSI, MSI_OF_TWO, THIRD)


def subject(machine: Machine, make: Callable[..., Any] = ReferenceMemory, **options: Any) -> Subject:
    """Memories of a machine; its device side, if it has one, is on a simulated device."""
    options = {"policy": POLICIES.get(machine)} | options
    made = partial(make, machine=options.pop("table", machine))
    return Subject(machine.name, made, CPUDeviceAllocator(), SimulatedDeviceAllocator(), edition=machine, **options)


@pytest.mark.parametrize("machine", OURS, ids=lambda machine: f"{machine.name}-{len(machine.sides)}")
def test_the_reference_performs_the_table_of_any_machine(machine: Machine) -> None:
    verdict = check_conformance(subject(machine), steps=100)

    verdict.require()
    assert 0 == verdict.coverage.missing
    assert len(machine.heads) == len({state.head for state, _ in verdict.coverage.taken})


@pytest.mark.parametrize(
    "name", [name if name == "cpu_only" else pytest.param(name, marks=pytest.mark.deep) for name in EDITIONS]
)
def test_the_reference_performs_the_table_of_every_edition(name: str) -> None:
    device = None if name == "cpu_only" else SimulatedDeviceAllocator()
    make = partial(ReferenceMemory, machine=EDITIONS[name])
    verdict = check_conformance(Subject(name, make, CPUDeviceAllocator(), device, edition=name), steps=100)

    verdict.require()
    assert 0 == verdict.coverage.missing


@pytest.mark.deep(quick=4)
@pytest.mark.parametrize("machine", [DOOR, TCP, *OURS], ids=lambda machine: f"{machine.name}-{len(machine.sides)}")
def test_without_a_policy_the_table_alone_judges(machine: Machine) -> None:
    """Then calls that mean nothing are made too, and their heads are compared."""
    judged = subject(machine, policy=None)
    verdict = check_conformance(judged, steps=100)

    assert judged.by_table
    verdict.require()
    assert 0 == verdict.coverage.missing


def test_a_door_that_opens_by_itself_is_refused_by_its_table() -> None:
    wrong = subject(DOOR, policy=None, table=changed(DOOR, "close", "OPEN", dest="OPEN"))
    found = check_conformance(wrong, steps=0).violations[0]

    assert ("R11-head", "the head is OPEN, expected SHUT") == (found.requirement, found.message)


# --- wrong memories of other machines


class CopiesNothing(ReferenceMemory):
    def copy(self, action: Any, blocks: Any, stream: Any) -> None: ...


class AllocatesAtOnce(ReferenceMemory):
    def __init__(self, size: int, **options: Any) -> None:
        super().__init__(size, **options)
        side = self.machine.sides[0]
        self.kept = self.allocate(side, self.state)


class KeepsAfterFailure(ReferenceMemory):
    def free(self, block: Any) -> None: ...


class FarFromTruth(ReferenceMemory):
    @property
    def head(self) -> str:
        return "ELSEWHERE"


@pytest.mark.parametrize(
    ("machine", "make", "requirement"),
    [
        (THIRD, CopiesNothing, "R08-copy-up"),
        (MSI, CopiesNothing, "R07-copy-down"),
        (PETSC, AllocatesAtOnce, "R01-lazy"),
        (THIRD, KeepsAfterFailure, "R33-failure-leaks-nothing"),
        (MSI, FarFromTruth, "R02-uninitialized"),
    ],
)
def test_a_wrong_memory_of_another_machine_is_refused(
    machine: Machine, make: Callable[..., Any], requirement: str
) -> None:
    assert requirement in {
        violation.requirement for violation in check_conformance(subject(machine, make), steps=0).violations
    }


@pytest.mark.parametrize(
    ("machine", "call", "head", "parts", "requirement"),
    [
        (THIRD, "prv_data", "HEAD_AT_CPU", {"dest": "HEAD_AT_PRV"}, "R12-read-keeps"),
        (THIRD, "mutable_prv_data", "SYNCED_PRV", {"dest": "SYNCED_PRV"}, "R13-write-makes-stale"),
        (MSI, "evict_a", "M_a", {"do": ()}, "R07-copy-down"),
        (MSI, "write_b", "M_a", {"do": "fetch_b"}, "R07-copy-down"),
        (PETSC, "VecGetArray", "BOTH", {"dest": "BOTH"}, "R13-write-makes-stale"),
    ],
)
def test_a_memory_with_a_wrong_row_is_refused(
    machine: Machine, call: str, head: str, parts: dict[str, Any], requirement: str
) -> None:
    wrong = subject(machine, table=changed(machine, call, head, **parts))

    assert requirement in {violation.requirement for violation in check_conformance(wrong, steps=0).violations}


def test_what_a_machine_cannot_break_is_not_judged() -> None:
    why = not_judged(subject(MSI))

    assert "the machine msi has no call that adopts" == why["R18-external-not-freed"]
    assert "the machine msi has no call that pushes" == why["R21-push"]
    assert "R10-same-bytes" not in why


def test_a_memory_of_another_machine_needs_no_allocators_below_level_2() -> None:
    class Kept:
        """A host side and a device side in plain bytes; the host side is there from the beginning."""

        def __init__(self, size: int, machine: Machine, **allocators: Any) -> None:
            del machine, allocators
            self.bytes, self.head = bytearray(size), "UNALLOCATED"

        def VecGetArray(self) -> memoryview:  # noqa: N802 -- PETSc's
            self.head = "CPU"
            return memoryview(self.bytes)

    machine = Machine(
        "one",
        [Row("VecGetArray", ["UNALLOCATED", "CPU"], "CPU")],
        sides=PETSC.sides,
        heads=dict.fromkeys(["UNALLOCATED"], ()) | {"CPU": "host"},
        calls=[PETSC.calls["VecGetArray"]],
    )
    check_conformance(subject(machine, Kept, policy=POLICIES[PETSC], level="L1", profile="caffe"), steps=50).require()


UNFIT: list[tuple[Machine, dict[str, Any], str]] = [
    (MSI, {"born_fresh": frozenset()}, "a new memory in I: the table says I, so fresh: mem"),
    (MSI, {"routes": {}}, "read_b in M_a (after write_a): the table says copy a to mem, copy mem"),
    (PETSC, {"lazy": frozenset()}, "in UNALLOCATED: the table says array is False"),
    (MSI, {"home": ""}, "fit the machine msi: home must be a side to which the bytes of an evicted a go, got ''"),
    (PETSC, {"pinned": {"host": ("mode", "GPU")}}, "(it has none), got ('mode', 'GPU')"),
]


@pytest.mark.parametrize(("machine", "wrong", "said"), UNFIT)
def test_a_policy_that_differs_from_the_table_is_not_the_memorys_fault(
    machine: Machine, wrong: dict[str, Any], said: str
) -> None:
    unfit = subject(machine, policy=replace(POLICIES[machine], **wrong), level="L1")

    for check in (check_conformance, state_machine):
        with pytest.raises(UnfitPolicyError, match=re.escape(said)):
            check(unfit)


def test_a_policy_may_list_the_sides_in_another_order() -> None:
    turned = replace(POLICIES[MSI_OF_TWO], sides=MSI_OF_TWO.sides[::-1])

    check_conformance(subject(MSI_OF_TWO, policy=turned, level="L1"), steps=0).require()


def test_a_release_may_fail_half_way_where_no_head_says_what_is_left() -> None:
    """Then nobody looks at the head."""
    words: dict[str, Any] = {kind: [*getattr(MSI_OF_TWO, kind).values()] for kind in ("heads", "calls", "actions")}
    words["calls"].append(Call("end", "release"))
    words["actions"] += [Action(f"free_{side}", "free", side) for side in MSI_OF_TWO.sides]
    end = Row("end", list(MSI_OF_TWO.heads), do=[f"free_{side}" for side in MSI_OF_TWO.sides])
    ending = Machine("ending", [*MSI_OF_TWO.rows, end], sides=MSI_OF_TWO.sides, **words)

    check_conformance(subject(ending, policy=POLICIES[MSI_OF_TWO]), steps=50).require()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"first_touch": "zeros"}, "first_touch must be one of zero, undefined, refused, got 'zeros'"),
        ({"lazy": "mem"}, "lazy must be a set of the sides mem, a, b, c, got 'mem'"),
        ({"born_fresh": frozenset(["men"])}, "born_fresh must be a set of the sides mem, a, b, c, got 'men'"),
        ({"home": "moon"}, "home must be a set of the sides mem, a, b, c, got 'moon'"),
    ],
)
def test_a_policy_is_checked_when_it_is_made(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Policy(MSI.sides, **wrong)


def test_a_subject_of_another_machine_is_checked_when_it_is_made() -> None:
    with pytest.raises(InvalidArgumentError, match="edition must be a machine, whose policy it is, got"):
        Subject("petsc", ReferenceMemory, CPUDeviceAllocator(), None, policy=POLICIES[PETSC])
    with pytest.raises(InvalidArgumentError, match="a policy for the sides mem, a, b, c of msi, got"):
        subject(MSI, policy=POLICIES[THIRD])
    with pytest.raises(InvalidArgumentError, match="a policy for the sides mem, a, b, c of msi, got 'PETSC'"):
        subject(MSI, policy="PETSC")
    with pytest.raises(InvalidArgumentError, match="policy must be a Policy, got <Machine msi"):
        check_conformance(subject(MSI, policy=MSI))
    with pytest.raises(
        InvalidArgumentError, match="edition must be one of caffe, early, cpu_only, or a machine, got Pol"
    ):
        Subject("msi", ReferenceMemory, CPUDeviceAllocator(), None, edition=POLICIES[MSI])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="one of the sides mem, a, b, c, got 'moon'"):
        subject(MSI, places={"moon": CPUDeviceAllocator()})
    words: dict[str, Any] = {kind: getattr(MSI, kind).values() for kind in ("heads", "calls", "actions")}
    cached = Machine("cached", MSI.rows, sides=MSI.sides, settings=[Setting("cache", ("on", "off"))], **words)
    with pytest.raises(InvalidArgumentError, match="a function that changes cache"):
        subject(cached, policy=POLICIES[MSI])


def test_every_memory_begins_with_the_settings_that_its_machine_begins_with() -> None:
    """What ran before may have left them otherwise."""
    rows = [Row("look", ["A", "B"], "A"), Row("fill", ["A", "B"], "B")]
    machine = Machine("cached", rows, settings=[Setting("cache", ("on", "off"))])
    now, begun = {"cache": "off"}, set[str]()

    class Cached:
        def __init__(self, _: int) -> None:
            begun.add(now["cache"])
            self.head = "A"

        def look(self) -> None:
            self.head = "A"

        def fill(self) -> None:
            self.head = "B"

    made: Any = Cached
    of = Subject("cached", made, CPUDeviceAllocator(), None, edition=machine, setting=now.__setitem__)
    assert check_conformance(of, steps=30).passed
    assert begun == {"on"}
