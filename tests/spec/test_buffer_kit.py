"""The kit for buffers: our buffers pass on every device, and every seeded bug is refused under its requirement."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

import pytest
from mutants.buffer import BUFFER_BUGS, Over
from subjects import device_subject, devices, host_subject

from syncedmem.model import InvalidArgumentError
from syncedmem.runtime import Buffer
from syncedmem.spec import Violation
from syncedmem.spec.contracts import buffer_requirements_for, check_buffer, check_buffers
from syncedmem.spec.engine.checklist import run_checks
from syncedmem.spec.requirements import requirements_of
from syncedmem.verification import make_buffer_subject

if TYPE_CHECKING:
    from mutants.registry import SeededBug

NAMES = ("cpu", *(it.name.partition(":")[0] for it in devices()), "simulated-seeded")


@pytest.mark.parametrize("name", NAMES)
def test_our_buffers_pass(name: str) -> None:
    """Host memory has no streams, so nothing is required of them there."""
    found = check_buffers(make_buffer_subject(name, 0))

    assert [] == found.violations
    assert found.passed
    assert (len(requirements_of("buffer")) - (4 if name == "cpu" else 0)) == len(found.checked) == len(found.suites)


@pytest.mark.filterwarnings("ignore:.*leaked:ResourceWarning")
@pytest.mark.parametrize("bug", BUFFER_BUGS.values(), ids=BUFFER_BUGS)
def test_every_seeded_bug_is_refused(bug: SeededBug) -> None:
    """Other requirements may be broken too. Finalisers of wrong buffers may warn of leaks."""
    found = check_buffers(device_subject(partial(bug.make, Buffer)))
    gc.collect()

    assert bug.requirement in {violation.requirement for violation in found.violations}


def test_a_buffer_that_forwards_everything_passes() -> None:
    """So each seeded bug is refused for its one difference."""
    assert check_buffers(device_subject(partial(Over, Buffer))).passed


def test_every_requirement_has_a_bug() -> None:
    assert set(requirements_of("buffer")) == {bug.requirement for bug in BUFFER_BUGS.values()}
    assert all(bug.text.endswith(".") and bug.source for bug in BUFFER_BUGS.values())


def test_a_requirement_that_is_broken_leaves_the_others_checked() -> None:
    """The reproducer is a program, and the other requirements pass."""
    bug = BUFFER_BUGS["OnTheHostIfUnknown"]
    steps: list[tuple[str, int]] = []
    subject = replace(device_subject(partial(bug.make, Buffer)), source="subject = ...")

    def tell(stage: str, cases: int) -> None:
        steps.append((stage, cases))

    found = check_buffers(subject, progress=tell)
    (violation,) = found.violations

    assert not found.passed
    assert (bug.requirement, "failed") == found.verdict(violation.requirement)[:2]
    assert {"passed"} == {found.verdict(it).status for it in found.checked if it != bug.requirement}
    assert (
        "from syncedmem.spec.contracts import check_buffer",
        "subject = ...",
        f"check_buffer(subject, '{bug.requirement}')",
    ) == violation.statements
    assert {*requirements_of("buffer")} == {name for name, _ in steps}


def test_what_a_buffer_stumbles_over_is_a_violation() -> None:
    """Any error that a class of buffers raises is reported."""

    def broken(*_: Any, **__: Any) -> Any:
        raise LookupError("no buffers today")

    subject = replace(host_subject(), make=broken)
    with pytest.raises(Violation, match=r"^F01-zero-bytes: LookupError: no buffers today"):
        check_buffer(subject, "F01-zero-bytes")
    assert "F12-queued" not in buffer_requirements_for(subject)


def test_a_requirement_of_another_contract_is_refused() -> None:
    for requirement in ("F99-nothing", "D01-zero-bytes"):
        with pytest.raises(InvalidArgumentError, match="a requirement of this contract"):
            check_buffer(host_subject(), requirement)


def test_a_requirement_that_needs_a_device_is_skipped_without_one() -> None:
    with pytest.raises(SkipTest, match=r"^F12-queued: .* has no device"):
        check_buffer(host_subject(), "F12-queued")


def test_a_check_that_a_case_has_no_use_for_is_not_counted() -> None:
    """A violation stops the checks of its requirement, and what was not checked then is missing."""

    def skipped() -> None:
        raise SkipTest("it has none")

    def broken() -> None:
        raise Violation("F01-zero-bytes", "wrong")

    def unprinted(_requirement: str, _case: str) -> tuple[str, ...]:
        return ()

    checks = {"F01-zero-bytes": {"one": skipped, "two": lambda: None}, "F02-allocates": {"one": broken, "two": skipped}}
    found = run_checks("a subject", checks, unprinted)

    assert (1, 2) == (found.coverage.count, found.coverage.missing)
    assert [("F02-allocates", "one: wrong")] == [(it.requirement, it.message) for it in found.violations]
