"""The model agrees with what was observed in Caffe, and the comparison finds every seeded difference."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

import syncedmem.model.exploration as exploration_module
from syncedmem.model import (
    EFFECTS,
    TRANSITIONS,
    Action,
    Call,
    Declaration,
    Fact,
    HeadMachine,
    Refusal,
    SyncedHead,
    Transition,
    matrix,
    space,
)
from syncedmem.model.dispatch import compile_dispatch
from syncedmem.model.head import CAFFE_NAMES
from syncedmem.spec.evidence import (
    CAFFE_BLOBS_EXCEPT,
    CAFFE_BLOBS_VIOLATE,
    CAFFE_VECTORS_EXCEPT,
    CAFFE_VIOLATES,
)
from syncedmem.spec.evidence.comparison import compare_matrix, compare_model, compare_tutorial, evidence
from syncedmem.spec.requirements import requirements_of
from syncedmem.spec.vectors import vectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.dispatch import Dispatch
    from syncedmem.model.head import Effect

    Mutate = Callable[..., None]

ROOT = Path(__file__).parents[2]
U, C, G, S = SyncedHead
BOTH = ("oo", "oe", "eo", "ee")
# Imported by its full name, because the package's attribute `evidence` is a function.
evidence_module = import_module("syncedmem.spec.evidence.comparison")


def changed(identifier: str, **changes: Any) -> tuple[Transition, ...]:
    """Return the table with one row changed: the row that has this identifier in its first head."""
    rows = ["caffe" in row.editions and identifier == row.identifier(row.source[0]) for row in TRANSITIONS]
    assert sum(rows) == 1
    return tuple(replace(row, **changes) if it else row for row, it in zip(TRANSITIONS, rows, strict=True))


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Mutate:
    """Replace what the model is computed from: the table, the effects, or both."""

    def mutant(table: tuple[Transition, ...] = TRANSITIONS, effects: dict[Action, Effect] | None = None) -> None:
        monkeypatch.setitem(vars(CAFFE_NAMES), "effects", MappingProxyType(effects or EFFECTS))

        def compiled(edition: str = "caffe") -> Dispatch:
            return compile_dispatch(HeadMachine(Declaration.of(edition, table)))

        # The functions are used without their caches, which hold results for the declared table.
        for module, name, function in (
            (exploration_module, "dispatch", compiled),
            (evidence_module, "dispatch", compiled),
            (evidence_module, "space", space.__wrapped__),
            (evidence_module, "matrix", matrix.__wrapped__),
        ):
            monkeypatch.setattr(module, name, function)

    return mutant


def test_the_model_agrees_with_caffe() -> None:
    """They agree in every cell of the matrices, every state with the pinned flag and every step of the tutorial."""
    assert [] == compare_model()


def test_a_table_replaced_by_itself_agrees(mutate: Mutate) -> None:
    """So the differences in the tests below come from their changes, not from the replacement."""
    mutate()
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
    ("table", "problems"),
    [
        pytest.param(
            changed("cpu_data@UNINITIALIZED", actions=(Action.ZERO_CPU, Action.ALLOCATE_CPU)),
            [
                "caffe U:-- cpu_data: observed 'HA HZ -> C:o-', declared 'HZ HA -> C:o-'",
                "cpu_only U:-- cpu_data: observed 'HA HZ -> C:o-', declared 'HZ HA -> C:o-'",
            ],
            id="wrong order of actions",
        ),
        pytest.param(
            changed("async_gpu_push@HEAD_AT_CPU[has_gpu_pointer]", actions=()),
            [f"caffe C:{it} async_gpu_push: observed 'h2d* -> S:{it}', declared '-> S:{it}'" for it in sorted(BOTH)],
            id="missing action",
        ),
        pytest.param(
            changed("mutable_gpu_data@SYNCED", dest=S),
            [f"caffe S:{it} mutable_gpu_data: observed '-> G:{it}', declared '-> S:{it}'" for it in sorted(BOTH)],
            id="wrong head",
        ),
        pytest.param(
            (
                *changed("async_gpu_push@UNINITIALIZED", source=(U, G)),
                Transition(Call.ASYNC_GPU_PUSH, (S,), S, editions=("caffe",)),
            ),
            [f"caffe S:{it} async_gpu_push: observed 'refused', declared '-> S:{it}'" for it in sorted(BOTH)],
            id="refusal dropped",
        ),
        pytest.param(
            changed(
                "async_gpu_push@HEAD_AT_CPU[has_gpu_pointer]", dest=None, actions=(), refusal=Refusal.NOT_HEAD_AT_CPU
            ),
            [f"caffe C:{it} async_gpu_push: observed 'h2d* -> S:{it}', declared 'refused'" for it in sorted(BOTH)],
            id="refusal too many",
        ),
    ],
)
def test_a_wrong_row_is_found(mutate: Mutate, table: tuple[Transition, ...], problems: list[str]) -> None:
    """Exactly the wrong cells are named, each with the observed and the declared entry."""
    mutate(table)
    assert problems == [line for line in compare_model() if not line.startswith(("tutorial", "pinned"))]


def test_a_step_of_the_tutorial_is_found(mutate: Mutate) -> None:
    """If the copy before a write of the device is missing, the one step that needs it is reported."""
    mutate(changed("mutable_gpu_data@HEAD_AT_CPU[has_gpu_pointer]", actions=()))
    problem = "tutorial mutable_gpu_data: observed 'h2d' -> HEAD_AT_GPU, declared '' -> HEAD_AT_GPU"
    assert [problem] == [line for line in compare_model() if line.startswith("tutorial")]


def test_a_wrong_head_in_the_tutorial_is_found(mutate: Mutate) -> None:
    """The first difference names both heads; differences in later steps may follow it."""
    mutate(changed("mutable_gpu_data@SYNCED", dest=S))
    assert "tutorial mutable_gpu_data: observed '' -> HEAD_AT_GPU, declared '' -> SYNCED" == compare_tutorial()[0]


_OWN_BOTH = Fact.OWN_CPU_DATA | Fact.OWN_GPU_DATA


@pytest.mark.parametrize(
    ("action", "changes", "problems"),
    [
        pytest.param(
            Action.ALLOCATE_CPU,
            {"sets": Fact.CPU_POINTER | Fact.OWN_CPU_DATA | Fact.OWN_GPU_DATA},
            [f"caffe U:-- cpu_data: C:o- has the flags {_OWN_BOTH!r} | Fact.CPU_MALLOC_USE_CUDA"],
            id="flag without its pointer",
        ),
        pytest.param(
            Action.ADOPT_CPU,
            {"clears": Fact(0), "sets": Fact.CPU_POINTER | Fact.OWN_CPU_DATA},
            ["caffe U:-- set_cpu_data: observed '-> C:e-', declared '-> C:o-'"],
            id="adopted memory owned",
        ),
        pytest.param(
            Action.ALLOCATE_GPU,
            {"by_mode": Fact.CPU_MALLOC_USE_CUDA},
            ["pinned state G:-o/pinned: reachable but not observed"],
            id="state too many",
        ),
        pytest.param(
            Action.ALLOCATE_CPU,
            {"by_mode": Fact(0)},
            ["pinned state C:o-/pinned: observed but not reachable", "17 states in GPU mode, observed 24"],
            id="states too few",
        ),
        pytest.param(
            Action.ADOPT_CPU,
            {"clears": Fact.OWN_CPU_DATA | Fact.CPU_MALLOC_USE_CUDA},
            ["pinned state C:e-/stale flag: observed but not reachable", "17 states in GPU mode, observed 24"],
            id="flag not stale",
        ),
    ],
)
def test_a_wrong_effect_is_found(mutate: Mutate, action: Action, changes: dict[str, Fact], problems: list[str]) -> None:
    """A flag that is set or cleared wrongly shows in the cells, or in the states with the pinned flag."""
    mutate(effects={**EFFECTS, action: replace(EFFECTS[action], **changes)})
    assert set(problems) <= set(compare_model())


def test_what_is_missing_on_either_side_is_found() -> None:
    """One configuration is only declared, and another is only observed."""
    entries = dict(matrix("cpu_only"))
    external = next(state for state in entries if str(state) == "C:e-")
    moved = external._replace(head=S)
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


def test_the_page_has_the_vectors_that_the_blobs_of_caffe_do_not_pass() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| ([^|]*) \|$", _page(), re.MULTILINE)
    assert dict(rows) == CAFFE_VECTORS_EXCEPT
    safe = {
        (step["call"], edition)
        for edition in ("caffe", "cpu_only")
        for vector in vectors("blob-refusals", edition)
        if vector.as_json()["profile"] == "safe"
        for step in vector.as_json()["steps"]
        if step["refusal"]
    }
    assert safe == {(call, edition) for call in CAFFE_VECTORS_EXCEPT for edition in ("caffe", "cpu_only")}


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
