"""One bug is one finding, and what may follow from it is listed under it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mutants.allocator import ALLOCATOR_BUGS
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.spec.fuzz import Capabilities, Finding, FuzzWanted, HeapStep, Report, fuzz
from syncedmem.spec.fuzz.causes import group_by_cause
from syncedmem.spec.fuzz.finding import NEVER_REUSES

if TYPE_CHECKING:
    from pathlib import Path

    from mutants.registry import SeededBug

SEVERAL = ("CountsRefusals", "WritesBehindItsEnd", "StarvesOneClass", "TrustsSizes")
"""Seeded bugs that break several requirements, or one requirement in several kinds of steps."""
SHORTEST = {"StarvesOneClass": "A18-limit"}
"""What a shorter program breaks than the one that breaks the bug's own requirement."""


@pytest.mark.deep
@pytest.mark.parametrize("bug", [ALLOCATOR_BUGS[name] for name in SEVERAL], ids=lambda bug: bug.name)
def test_one_bug_is_one_finding_with_its_consequences(bug: SeededBug) -> None:
    report = fuzz(bug.target, promises=bug.promises, steps=20_000, seconds=60)
    (found,) = report.findings

    assert SHORTEST.get(bug.name, bug.requirement) == found.requirement
    assert found.consequences
    assert bug.requirement in {found.requirement, *(consequence.requirement for consequence in found.consequences)}
    failed = {verdict.requirement for verdict in report.verdicts() if verdict.status == "failed"}
    assert {found.requirement, *(consequence.requirement for consequence in found.consequences)} == failed


def finding(requirement: str, *operations: str, message: str = "", **fields: Any) -> Finding:
    """Return a finding whose program has these operations."""
    numbers = {"allocate": (0, 8, 0, 0), "resize": (0, 9), "calloc": (1, 8), "cycle": (64, 9, 1)}
    program = tuple(HeapStep(operation, numbers.get(operation, (0,))) for operation in operations)
    return Finding(requirement, message, program, **fields)


@pytest.mark.parametrize(
    ("first", "second", "requirements"),
    [
        # What needs more operations is the consequence, whichever came first.
        (finding("A04-contents-kept", "allocate"), finding("A14-resize-keeps", "allocate", "resize"), ["A04"]),
        (finding("A14-resize-keeps", "allocate", "resize"), finding("A04-contents-kept", "allocate"), ["A04"]),
        # Requirements that cause each other: the first one is the finding.
        (finding("A17-statistics", "cycle"), finding("A16-no-leaks", "allocate", "resize"), ["A17"]),
        # A call in which the process ends or hangs has one bug.
        (finding("A23-no-hang", "calloc", "resize"), finding("A22-no-crash", "allocate", "resize"), ["A23"]),
        (finding("A23-no-hang", "allocate", "resize"), finding("A22-no-crash", "allocate"), ["A22", "A23"]),
        # Other operations, or a requirement that nothing else breaks, are another bug.
        (finding("A04-contents-kept", "calloc"), finding("A14-resize-keeps", "allocate", "resize"), ["A04", "A14"]),
        (finding("A03-aligned", "allocate"), finding("A04-contents-kept", "allocate", "resize"), ["A03", "A04"]),
        # It was seen only with the other one left unjudged.
        (
            finding("A06-out-of-memory", "allocate"),
            finding("A02-no-overlap", "allocate", after=("A06-out-of-memory",)),
            ["A06"],
        ),
        (
            finding("A04-contents-kept", "allocate", after=("A08-size-known",)),
            finding("A08-size-known", "allocate"),
            ["A08"],
        ),
        (
            finding("A03-aligned", "allocate"),
            finding("A22-no-crash", "allocate", after=("A03-aligned",)),
            ["A03", "A22"],
        ),
        # A crash that did not repeat, after damage; and what several threads break as one does.
        (finding("A04-contents-kept", "allocate"), finding("A22-no-crash", "calloc", repeats=False), ["A04"]),
        (finding("A20-threads", message="A01: x"), finding("A01-distinct-pointers", "allocate"), ["A01"]),
        # What has no program comes after what has one, and of several programs the shortest is first.
        (finding("A20-threads", message="A23: x"), finding("A17-statistics", "allocate"), ["A17", "A20"]),
        (finding("A22-no-crash", "calloc", repeats=False), finding("A17-statistics", "resize"), ["A17", "A22"]),
        (finding("A17-statistics", "calloc", "resize"), finding("A03-aligned", "allocate"), ["A03", "A17"]),
        (finding("A16-no-leaks", message=NEVER_REUSES), finding("A03-aligned", "allocate"), ["A03", "A16"]),
    ],
)  # fmt: skip
def test_what_may_follow_from_the_same_bug(first: Finding, second: Finding, requirements: list[str]) -> None:
    groups = group_by_cause([first, second])

    assert requirements == [group.requirement[:3] for group in groups]
    assert 2 - len(requirements) == sum(len(group.consequences) for group in groups)


@pytest.mark.deep
def test_a_report_lists_consequences_under_their_finding(tmp_path: Path) -> None:
    """In the text, in JSON, in JUnit, and as a file to replay each; on standard output is nothing but the JSON."""
    target = ALLOCATOR_BUGS["WritesBehindItsEnd"].target
    words = ["fuzz", target, "--steps", "20000", "--out", str(tmp_path), "--junit", str(tmp_path / "junit.xml")]
    run = CliRunner().invoke(app, [*words, "--json", "-"])
    (cause,) = json.loads(run.stdout)["findings"]
    (file,) = tmp_path.glob("A14-resize-keeps.json")

    assert ["A14-resize-keeps", "A15-copies"] == [item["requirement"] for item in cause["consequences"]]
    assert "with driver_of(" in cause["python"]
    assert "This may follow from the same bug. Mend A04-contents-kept first, and run again:" in run.stderr
    for name in ("A04-contents-kept", "A14-resize-keeps"):
        assert f"replay {tmp_path / name}.json {target}" in run.stderr
    assert 3 == (tmp_path / "junit.xml").read_text(encoding="utf-8").count("<failure")
    assert 1 == CliRunner().invoke(app, ["replay", str(file), target]).exit_code


def test_findings_are_grouped_once_for_all_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were grouped anew for each requirement, twice."""
    calls = list[int]()

    def counted(findings: list[Finding]) -> list[Finding]:
        calls.append(len(findings))
        return group_by_cause(findings)

    monkeypatch.setattr("syncedmem.spec.fuzz.report.group_by_cause", counted)
    found = [Finding("A17-statistics", "wrong", (HeapStep("compare", ()),))]
    Report(FuzzWanted("a:b"), "", Capabilities(), protected=True, violating=found).verdicts()

    assert [1] == calls


@pytest.mark.parametrize("reason", [None, "reported"])
def test_what_may_follow_from_another_finding_is_in_the_verdict(reason: str | None) -> None:
    """It was once "not checked", and passed where its cause was known."""
    cause = Finding("A17-statistics", "wrong", (HeapStep("compare", ()),), known=reason)
    other = finding("A16-no-leaks", "allocate", "compare")
    report = Report(FuzzWanted("a:b"), "", Capabilities(), protected=True, violating=[cause, other])

    assert [["A16-no-leaks"]] == [[item.requirement for item in found.consequences] for found in report.findings]
    assert "failed" == report.verdict("A16-no-leaks").status
    assert ("failed" if reason is None else "not checked") == report.verdict("A17-statistics").status
    assert not report.passed
