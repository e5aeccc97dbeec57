"""The control group is never accused, and each of its twins is refused by the requirement of the freedom."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from controls.memories import MEMORIES
from controls.ports import PORTS

from syncedmem.spec import check_conformance, suite_names
from syncedmem.spec.engine.report import Tolerance
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.conformance import Claim, PortReport, conform_program
from syncedmem.spec.ports.targets import ProgramTarget, subject_of
from syncedmem.spec.requirements import PROFILES

if TYPE_CHECKING:
    from controls.registry import Control

    from syncedmem.spec.engine.report import Conformance
    from syncedmem.spec.memory.coverage import Coverage
    from syncedmem.spec.requirements import Profile

PROGRAM = Path(__file__).parents[1] / "controls" / "ports.py"


SEEDS = 20
QUICK = ("tour", "lent", "several")
"""The suites that judge a right port in the gate; all of them do in deep."""


def program(control: Control, *, twin: bool) -> ProgramTarget:
    """A port, or its twin."""
    return ProgramTarget(control.name, (sys.executable, str(PROGRAM), control.name, *(["twin"] if twin else [])))


def verdict(control: Control, *, twin: bool, seed: int = 0) -> PortReport:
    """The verdict on a port at its level, or on its twin."""
    claim = Claim(control.profile, control.level, seed=seed, first=twin, shorten=False)
    return conform_program(program(control, twin=twin), claim, Limits(seconds=2, first=10))


def quick(control: Control, *, twin: bool) -> Conformance[Coverage]:
    """What the suites of the gate say of a port, or of its twin."""
    with program(control, twin=twin).connect(Limits(seconds=10), "") as port:
        subject = subject_of(port, control.name, control.profile, control.level)
        return check_conformance(subject, steps=1, suites=control.suites or QUICK, shorten=False)


@pytest.mark.parametrize("control", PORTS.values(), ids=PORTS)
def test_a_right_port_is_not_accused(control: Control) -> None:
    found = quick(control, twin=False)
    assert found.violations == []
    assert found.steps > 100


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("control", PORTS.values(), ids=PORTS)
def test_a_right_port_conforms_with_every_seed(control: Control, seed: int) -> None:
    report = verdict(control, twin=False, seed=seed)
    assert report.passed, report.line


@pytest.mark.parametrize("control", PORTS.values(), ids=PORTS)
def test_its_twin_is_refused(control: Control) -> None:
    if control.suites:  # those are to find it, so nothing else need run before them
        assert control.refuses in {found.requirement for found in quick(control, twin=True).violations}
        return
    report = verdict(control, twin=True)
    assert control.refuses in {found.requirement for found in report.violations}, report.line


@pytest.mark.parametrize("control", MEMORIES.values(), ids=MEMORIES)
def test_a_right_memory_is_not_accused(control: Control) -> None:
    subject = replace(control.make(twin=False), level=control.level or "L4")
    suites = [name for name in suite_names(subject) if not subject.is_caffe or name in QUICK]
    found = check_conformance(subject, steps=20, suites=suites, shorten=False)
    assert found.violations == []
    assert found.steps > 10


@pytest.mark.deep
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("control", MEMORIES.values(), ids=MEMORIES)
def test_a_right_memory_conforms_to_both_profiles(control: Control, profile: Profile) -> None:
    subject = replace(control.make(twin=False), profile=profile, level=control.level or "L4")
    assert check_conformance(subject, shorten=False).passed


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("control", MEMORIES.values(), ids=MEMORIES)
def test_a_right_memory_is_not_accused_with_any_seed(control: Control, seed: int) -> None:
    subject = replace(control.make(twin=False), profile="safe", level=control.level or "L4")
    found = check_conformance(subject, steps=300, seed=seed, suites=("walks",), shorten=False)
    assert found.violations == []


@pytest.mark.parametrize("control", MEMORIES.values(), ids=MEMORIES)
def test_the_twin_of_a_memory_is_refused(control: Control) -> None:
    subject = replace(control.make(twin=True), level=control.level or "L4")
    found = check_conformance(subject, steps=20, tolerance=Tolerance(first=True), shorten=False)
    assert control.refuses in {violation.requirement for violation in found.violations}, found.violations
