"""The model agrees with what was observed in Caffe, and the comparison finds every seeded difference."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machines import changed, machine_with

from syncedmem.model import Action, Machine, Row, caffe, matrix
from syncedmem.spec.evidence import (
    CAFFE_BLOBS_EXCEPT,
    CAFFE_BLOBS_VIOLATE,
    CAFFE_VIOLATES,
)
from syncedmem.spec.evidence.comparison import compare_matrix, compare_model, evidence
from syncedmem.spec.requirements import requirements_of

ROOT = Path(__file__).parents[2]
U, C, G, S = caffe.CAFFE.heads
BOTH = ("oo", "oe", "eo", "ee")


def unless_tested(row: Row) -> tuple[str, ...]:
    """Return the actions of a row, or none if it has a condition."""
    return () if row.conditions else row.actions


WITHOUT_REFUSAL = [row for row in caffe.CAFFE.rows if row.refusal != "not_head_at_cpu"]


def test_the_model_agrees_with_caffe() -> None:
    """They agree in every cell of the matrices, every state with the pinned flag and every step of the tutorial."""
    assert [] == compare_model()


def test_the_evidence_has_the_size_it_says() -> None:
    """17 x 9 cells with 45 refusals and 31 states; 3 x 8 with 15 refusals without a GPU; nine calls of the tutorial."""
    found = evidence()
    for edition in ("caffe", "cpu_only"):
        cells = [cell for row in found[edition].values() for cell in row.values()]
        counts = found["counts"][edition]
        expected = (counts["configurations"], counts["cells"], counts["refusals"])
        assert expected == (len(found[edition]), len(cells), cells.count("refused"))
    assert {"configurations": 17, "cells": 153, "refusals": 45, "pinned_states": 31} == {
        name: count for name, count in found["counts"]["caffe"].items() if name != "always_gpu_states"
    }
    assert {"configurations": 3, "cells": 24, "refusals": 15} == found["counts"]["cpu_only"]
    assert len(set(found["pinned_states"])) == 31
    assert {name.partition("/")[0] for name in found["pinned_states"]} == set(found["caffe"])
    assert len(found["tutorial"]["steps"]) == 9


@pytest.mark.parametrize(
    ("machine", "problems"),
    [
        pytest.param(
            changed(caffe.CAFFE, "cpu_data", U, do=("zero_cpu", "allocate_cpu")),
            ["caffe U:-- cpu_data: observed 'HA HZ -> C:o-', declared 'HZ HA -> C:o-'"],
            id="wrong order of actions",
        ),
        pytest.param(
            changed(caffe.CAFFE, "async_gpu_push", C, do=unless_tested),
            [
                f"caffe C:{item} async_gpu_push: observed 'h2d* -> S:{item}', declared '-> S:{item}'"
                for item in sorted(BOTH)
            ],
            id="missing action",
        ),
        pytest.param(
            changed(caffe.CAFFE, "mutable_gpu_data", S, dest=S),
            [
                f"caffe S:{item} mutable_gpu_data: observed '-> G:{item}', declared '-> S:{item}'"
                for item in sorted(BOTH)
            ],
            id="wrong head",
        ),
        pytest.param(
            machine_with(
                caffe.CAFFE,
                [
                    *WITHOUT_REFUSAL,
                    Row("async_gpu_push", (U, G), refused="not_head_at_cpu"),
                    Row("async_gpu_push", S, S),
                ],
            ),
            [f"caffe S:{item} async_gpu_push: observed 'refused', declared '-> S:{item}'" for item in sorted(BOTH)],
            id="refusal dropped",
        ),
    ],
)
def test_a_wrong_row_is_found(machine: Machine, problems: list[str]) -> None:
    """Exactly the wrong cells are named, each with the observed and the declared entry."""
    assert problems == [line for line in compare_model(machine) if not line.startswith(("tutorial", "pinned"))]


def test_a_wrong_row_of_the_build_without_a_device_is_found() -> None:
    wrong = changed(caffe.CPU_ONLY, "cpu_data", U, do=("zero_cpu", "allocate_cpu"))
    problem = "cpu_only U:-- cpu_data: observed 'HA HZ -> C:o-', declared 'HZ HA -> C:o-'"
    assert [problem] == compare_model(without_device=wrong)


@pytest.mark.parametrize(
    ("call", "wrong", "problem"),
    [
        (C, {"do": unless_tested}, "observed 'h2d' -> HEAD_AT_GPU, declared '' -> HEAD_AT_GPU"),
        (S, {"dest": S}, "observed '' -> HEAD_AT_GPU, declared '' -> SYNCED"),
    ],
)
def test_a_wrong_step_of_the_tutorial_is_found(call: str, wrong: dict[str, Any], problem: str) -> None:
    """By the first difference; others in later steps may follow it."""
    found = compare_model(changed(caffe.CAFFE, "mutable_gpu_data", call, **wrong))
    assert f"tutorial mutable_gpu_data: {problem}" == next(item for item in found if item.startswith("tutorial"))


@pytest.mark.parametrize(
    ("action", "changes", "problems"),
    [
        pytest.param(
            caffe.ADOPT_CPU,
            {"clears": (), "sets": ("has_cpu_pointer", "own_cpu_data")},
            ["caffe U:-- set_cpu_data: observed '-> C:e-', declared '-> C:o-'"],
            id="adopted memory owned",
        ),
        pytest.param(
            caffe.ALLOCATE_GPU,
            {"by_setting": caffe.ALLOCATE_CPU.by_setting},
            ["pinned state G:-o/pinned: reachable but not observed"],
            id="state too many",
        ),
        pytest.param(
            caffe.ALLOCATE_CPU,
            {"by_setting": ()},
            ["pinned state C:o-/pinned: observed but not reachable", "17 states in GPU mode, observed 24"],
            id="states too few",
        ),
        pytest.param(
            caffe.ADOPT_CPU,
            {"clears": ("own_cpu_data", "cpu_malloc_use_cuda")},
            ["pinned state C:e-/stale flag: observed but not reachable", "17 states in GPU mode, observed 24"],
            id="flag not stale",
        ),
    ],
)
def test_a_wrong_effect_is_found(action: Action, changes: dict[str, Any], problems: list[str]) -> None:
    """A flag that is set or cleared wrongly shows in the cells, or in the states with the pinned flag."""
    wrong = machine_with(caffe.CAFFE, caffe.CAFFE.rows, replace(action, **changes))
    assert set(problems) <= set(compare_model(wrong))


def test_what_is_missing_on_either_side_is_found() -> None:
    """One configuration is only declared, and another is only observed."""
    entries = dict(matrix(caffe.CPU_ONLY))
    external = next(state for state in entries if str(state) == "C:e-")
    moved = external._replace(name="S:e-", head=S)
    entries[moved] = entries.pop(external)
    found = compare_matrix("cpu_only", entries)
    assert len(found) == 16
    assert "cpu_only C:e- cpu_data: observed '-> C:e-', declared 'nothing'" in found
    assert "cpu_only S:e- cpu_data: observed 'nothing', declared '-> C:e-'" in found


# --- Caffe itself; tests/caffe compares these lists with what the kit says


def test_the_page_has_what_caffe_violates() -> None:
    rows = re.findall(r"^\| ([PR]\d\d-\S+) \| (✗?) ?\| (✗?) ?\| (.*) \|$", _page(), re.MULTILINE)
    found = {edition: {row[0]: row[3] for row in rows if row[k]} for k, edition in enumerate(CAFFE_VIOLATES, 1)}
    assert found == CAFFE_VIOLATES


def test_the_page_has_what_the_blobs_of_caffe_violate() -> None:
    rows = re.findall(r"^\| `([BP]\d\d-\S+)` \| (✗?) ?\| (✗?) ?\| (.*) \|$", _page(), re.MULTILINE)
    found = {edition: {row[0]: row[3] for row in rows if row[k]} for k, edition in enumerate(CAFFE_BLOBS_VIOLATE, 1)}
    assert found == CAFFE_BLOBS_VIOLATE
    assert set(CAFFE_BLOBS_EXCEPT) < set(requirements_of("blob"))


def test_the_page_has_the_digests_of_the_files() -> None:
    rows = re.findall(r"^\| `(\S+)` \| `(\w+)…` \|$", _page(), re.MULTILINE)
    lines = (ROOT / "tests" / "caffe" / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert rows == [(path.partition("/")[2], digest[:16]) for digest, path in map(str.split, lines)]


def test_what_caffe_violates_is_promised_beyond_caffe() -> None:
    """None of these requirements is Caffe's own; one is that of a port, that it answers at all."""
    named = {name for found in CAFFE_VIOLATES.values() for name in found}
    profiles = {name: requirements_of("memory", "port")[name].profile for name in named}
    assert profiles.pop("P01-answers") == "caffe"
    assert set(profiles.values()) == {"safe"}


def _page() -> str:
    return (ROOT / "docs" / "caffe-itself.md").read_text(encoding="utf-8")
