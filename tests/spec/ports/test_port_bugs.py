"""The seeded bugs of ports that are programs: each breaks its requirement, and the kit names it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from mutants.port import PORT_BUGS, RightPort
from wrong_port import PORT

from syncedmem.model import Input, caffe
from syncedmem.spec import Violation
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.memory import contracts
from syncedmem.spec.memory.suites import Case, Fail, run_case
from syncedmem.spec.ports.protocol import PortError
from syncedmem.spec.ports.targets import ProgramTarget, subject_of
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from mutants.registry import SeededBug

pytestmark = pytest.mark.deep

RIGHT = (sys.executable, "-S", str(PORT))
PUSH = Case((Input(caffe.CPU_DATA), Input(caffe.ASYNC_GPU_PUSH), Fail(Input(caffe.SET_CPU_DATA), 1)))
READ = Case((Input(caffe.MUTABLE_CPU_DATA), Input(caffe.GPU_DATA), Input(caffe.CPU_DATA)))


def command_of(name: str) -> tuple[str, ...]:
    """Return the command of a port with this bug."""
    return sys.executable, "-c", f"from mutants.port import main; main({[name, *RIGHT]!r})"


@pytest.mark.parametrize("bug", PORT_BUGS.values(), ids=PORT_BUGS)
def test_a_wrong_port_is_refused_for_the_right_reason(bug: SeededBug) -> None:
    command = command_of(bug.name)
    limits = Limits(seconds=2 if bug.name.startswith("Hangs") else 60, first=60)
    with ProgramTarget(bug.name, command).connect(limits, "") as port:
        subject = subject_of(port, bug.name, "safe", "L3")
        found = list[Violation]()
        for case in (READ, PUSH):
            try:
                run_case(subject, case)
            except Violation as violation:
                found.append(violation)
        if bug.requirement == "P04-dropped-freed":
            with pytest.raises(Violation) as dropped:
                list(contracts.dropped(subject))
            found.append(dropped.value)

    assert {bug.requirement} == {it.requirement for it in found}
    assert all(it.statements for it in found)


def test_every_requirement_of_ports_has_one() -> None:
    assert {bug.requirement for bug in PORT_BUGS.values()} == set(requirements_of("port"))
    assert all(bug.text and issubclass(bug.make, RightPort) for bug in PORT_BUGS.values())


def test_a_bug_must_be_known() -> None:
    with pytest.raises(PortError, match="does not say hello"):
        ProgramTarget("none", command_of("NoBug")).connect(Limits(seconds=60, first=60), "")
