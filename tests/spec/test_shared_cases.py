"""After the profile caffe, the profile safe runs only what was not run, and misses nothing of what it finds alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from controls.memories import MEMORIES
from mutants.memory import MEMORY_BUGS
from mutants.selftest import wrong_subject
from subjects import device_subject, subject_for

from syncedmem.spec import REQUIREMENTS, Violation, check_conformance
from syncedmem.spec.engine.report import Tolerance
from syncedmem.spec.kit.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutants.registry import SeededBug

    from syncedmem.spec import Subject

BEYOND = {name: bug for name, bug in MEMORY_BUGS.items() if REQUIREMENTS[bug.requirement].profile == "safe"}


def test_what_is_excepted_is_not_told_from_the_run_before() -> None:
    requirement = "R35-own-buffer-refused"
    shared = Shared(found={requirement: Violation(requirement, "seen before")})
    tolerance = Tolerance((requirement,))
    found = check_conformance(device_subject(), steps=0, suites=("several",), shared=shared, tolerance=tolerance)

    assert found.violations == []
    assert tolerance.met == {requirement}


def of_caffe(*, twin: bool) -> Subject:
    """Memories of Caffe's machine, which has pushes."""
    assert not twin
    return device_subject()


@pytest.mark.deep(quick=2)
@pytest.mark.parametrize("bug", BEYOND.values(), ids=BEYOND)
def test_what_only_safe_refuses_is_found_after_caffe(bug: SeededBug) -> None:
    shared, subject = Shared(), wrong_subject(bug, subject_for(bug))
    first = check_conformance(replace(subject, profile="caffe"), steps=20, shared=shared, shorten=False)
    tolerance = Tolerance(keep_going=True)
    found = check_conformance(
        replace(subject, profile="safe"), steps=200, shared=shared, tolerance=tolerance, shorten=False
    )

    assert bug.requirement in {violation.requirement for violation in (*first.violations, *found.violations)}


@pytest.mark.parametrize("make", [MEMORIES["evicts_and_frees"].make, pytest.param(of_caffe, marks=pytest.mark.deep)])
def test_a_case_is_run_once(make: Callable[..., Subject]) -> None:
    shared, subject = Shared(), make(twin=False)
    first = check_conformance(replace(subject, profile="caffe"), steps=0, shared=shared)
    after = check_conformance(replace(subject, profile="safe"), steps=0, shared=shared)
    alone = check_conformance(replace(subject, profile="safe"), steps=0)

    assert first.violations == after.violations == alone.violations == []
    assert after.coverage.taken >= alone.coverage.taken
    assert after.steps + first.steps < 1.25 * alone.steps
