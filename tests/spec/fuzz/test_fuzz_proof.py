"""The page about what the fuzzer was run against: its figures, and that nothing is missing there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import fuzz_proof
import pytest
from backends import BACKENDS
from fuzz_proof import Job, Row, bugs, jobs, measure, measured, summary
from out_of_reach import OUT_OF_REACH

if TYPE_CHECKING:
    from pathlib import Path

COMMITTED: Row = json.loads(fuzz_proof.RESULT.read_text(encoding="utf-8"))


def test_every_allocator_and_every_bug_was_measured() -> None:
    """`make proof` has to be run again when there are others."""
    assert [it.name for it in BACKENDS] == [it["name"] for it in COMMITTED["backends"]]
    assert sorted(bugs()) == sorted(it["name"] for it in COMMITTED["bugs"])
    assert sorted(OUT_OF_REACH) == sorted(it["name"] for it in COMMITTED["out of reach"])


def test_no_bug_escaped_and_every_allocator_passed() -> None:
    assert [] == [it["name"] for it in COMMITTED["bugs"] if it["found"] != it["seeds"]]
    assert [] == [it["name"] for it in COMMITTED["backends"] if it.get("findings") or it.get("errors")]
    assert [] == [it["name"] for it in COMMITTED["out of reach"] if it["findings"]]


@pytest.mark.deep
def test_a_bug_is_measured_with_its_seed() -> None:
    assert {"found": "A01-distinct-pointers", "lines": 6, "seed": 3}.items() <= measured(
        Job("bug", "PutBackTwice", 3)
    ).items()


def test_an_allocator_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def skipped(*_: object, **__: object) -> None:
        pytest.skip("no OpenCL here")

    monkeypatch.setattr(fuzz_proof, "fuzz", skipped)

    assert {"skipped": "no OpenCL here"}.items() <= measured(Job("backend", BACKENDS[0].name)).items()


def test_the_figures_are_medians_and_worst_cases() -> None:
    found = [("A01-distinct-pointers", operations, 5) for operations in (10, 1000, 20)]
    rows = [
        {
            "kind": "bug",
            "name": "PutBackTwice",
            "seed": seed,
            "found": found,
            "operations": n,
            "lines": lines,
            "seconds": 1,
        }
        for seed, (found, n, lines) in enumerate([*found, ("A22-no-crash", 15, 1), ("", 7, 0)])
    ]

    bug = summary(rows)["bugs"][0]

    assert {"seeds": 5, "found": 4, "others": {"A22-no-crash": 1}, "operations": [17.5, 1000]}.items() <= bug.items()


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    old = {"kind": "bug", "name": "PutBackTwice", "seed": 0, "found": "", "operations": 7, "lines": 0, "seconds": 0}
    kept.write_text(json.dumps(old) + "\n", encoding="utf-8")

    assert [old] == measure([Job("bug", "PutBackTwice", 0)], kept, 1)
    assert 20 * len(bugs()) + len(BACKENDS) + len(OUT_OF_REACH) == len(jobs(20))
