"""More than one finding: what is skipped, known and left out so that it hides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mutants.allocator import ALLOCATOR_BUGS

from syncedmem.model import FileAccessError
from syncedmem.spec import Violation
from syncedmem.spec.fuzz import HeapStep, TargetError, driver_of, fuzz
from syncedmem.spec.fuzz.mask import read_known, requirement_named

if TYPE_CHECKING:
    from pathlib import Path

TWELVE = (
    "DropsAlignment",
    "OneByteShort",
    "WritesBehindItsEnd",
    "OverflowsOnTooMuch",
    "ZeroIsSomebodyElses",
    "CallocInWords",
    "LeavesADevice",
    "CopiesBackwards",
    "PeakIsNow",
    "EndsTheProcess",
    "WaitsForItself",
    "CannotBeClosed",
)
"""Seeded bugs in different steps of the pool, so that a class can have two of them: each with the one after it."""


@pytest.fixture
def both(tmp_path: Path) -> Any:
    """Make a target that has two seeded bugs."""

    def make(one: str, other: str) -> str:
        classes = [ALLOCATOR_BUGS[name].make for name in (one, other)]
        file = tmp_path / "both.py"
        imports = "".join(f"from {kind.__module__} import {kind.__name__}\n" for kind in classes)
        file.write_text(f"{imports}class Both({one}, {other}):\n    pass\n", encoding="utf-8")
        return f"{file}:Both"

    return make


@pytest.mark.deep
@pytest.mark.parametrize(("one", "other"), list(zip(TWELVE, [*TWELVE[1:], TWELVE[0]], strict=True)))
def test_of_two_bugs_both_are_reported(one: str, other: str, both: Any) -> None:
    """A crash or a hang costs its round; what was found is left out of every second job.

    Contents may change because blocks overlap, so of these two one is listed under the other.
    """
    wanted = {ALLOCATOR_BUGS[name].requirement for name in (one, other)}
    promises = ALLOCATOR_BUGS[one].promises | ALLOCATOR_BUGS[other].promises
    hang = 0.5 if "WaitsForItself" in (one, other) else 5  # of which there are many in a run
    report = fuzz(both(one, other), promises=promises, steps=20_000, seconds=600, hang=hang)

    assert wanted <= {consequence.requirement for consequence in report.with_consequences}, [
        finding.key for finding in report.findings
    ]
    assert len(report.findings) >= 2 or wanted == {"A02-no-overlap", "A04-contents-kept"}
    assert not report.errors


def test_a_skipped_requirement_is_left_unjudged() -> None:
    bug = ALLOCATOR_BUGS["PeakIsNow"]
    report = fuzz(bug.make, steps=2_000, skip=["A17"])
    verdict = report.verdict("A17-statistics")

    assert ("not checked", "it was to be skipped") == (verdict.status, verdict.detail)
    assert report.passed
    assert report.as_json()["skipped"] == ["A17-statistics"]
    with pytest.raises(TargetError, match="there is no requirement 'A99' of allocators"):
        requirement_named("A99")


@pytest.mark.deep
def test_a_crash_may_be_skipped(tmp_path: Path) -> None:
    file = tmp_path / "dies.py"
    file.write_text(
        "import os\nfrom mutants.allocator import Pool\n"
        "class Dies(Pool):\n    def realloc(self, pointer, size):\n        os.abort()\n",
        encoding="utf-8",
    )

    assert fuzz(f"{file}:Dies", steps=500, skip=["A22"]).passed


@pytest.mark.deep
def test_a_known_finding_is_no_failure(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    findings = fuzz(ALLOCATOR_BUGS["PeakIsNow"].make, steps=2_000).findings
    keys = {each.key for finding in findings for each in (finding, *finding.consequences)}
    lines = "".join(f"{key}  # until March\n" for key in keys)
    file.write_text(f"# ours\n\n{lines}A24-closes\n", encoding="utf-8")
    report = fuzz(ALLOCATOR_BUGS["PeakIsNow"].make, steps=2_000, known=file)
    verdict = report.verdict("A17-statistics")
    found = {finding.key: finding.known for finding in report.findings}

    assert dict.fromkeys((finding.key for finding in findings), "until March") == found
    assert report.unseen == ["A24-closes"]
    assert ("not checked", True) == (verdict.status, verdict.detail.startswith("known, until March: ")), found
    assert report.passed
    report.require()
    file.write_text("A17-statistics\n", encoding="utf-8")
    again = fuzz(ALLOCATOR_BUGS["PeakIsNow"].make, steps=2_000, known=file)
    assert again.passed
    assert again.verdict("A17-statistics").detail.startswith("known: ")


def test_a_known_finding_is_not_the_first_one(tmp_path: Path) -> None:
    """The run once ended there, and passed."""
    file = tmp_path / "known.txt"
    file.write_text("A17  # ours\n", encoding="utf-8")
    report = fuzz(ALLOCATOR_BUGS["PeakIsNow"].make, steps=2_000, first=True, known=file)

    assert ["A17-statistics"] == [finding.requirement for finding in report.findings]
    assert 2 * report.done("fast").steps >= report.planned


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A99  # why", "line 1: there is no requirement 'A99'"),
        ("A01\nA01-distinct-pointers:fly", "line 2: there is no operation 'fly'"),
    ],
)
def test_a_list_of_known_findings_is_read_first(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(TargetError, match=said):
        read_known(file)
    with pytest.raises(FileAccessError):
        read_known(tmp_path / "none")


def test_an_oracle_goes_on_after_what_is_left_unjudged() -> None:
    bug = ALLOCATOR_BUGS["DropsAlignment"].make
    with driver_of(bug(), skip=["A03-aligned"], alignment="64") as driver:
        for number in range(40):
            assert driver.allocate(number, 8, 4096)
    program = tuple(HeapStep("allocate", (number, 8, 4096, 0)) for number in range(40))
    with pytest.raises(Violation, match="A03-aligned"), driver_of(bug(), skip=["A17"], alignment="64") as driver:
        driver.run(program)


def test_a_round_ends_where_nothing_more_can_be_judged() -> None:
    """After two blocks at one place the shadow heap would be wrong."""
    report = fuzz(ALLOCATOR_BUGS["WrapsAround"].make, steps=3_000, skip=["A01", "A02"])

    assert "A01-distinct-pointers" not in {finding.requirement for finding in report.findings}
