"""The proofs hold for the machines, each sentence fails for a wrong machine, and other checkers count the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from machines import POLICIES, THIRD, changed, machine_with

from syncedmem.model import caffe
from syncedmem.model.declaration import Action, Machine, Row
from syncedmem.model.states import space
from syncedmem.spec.memory import policy
from syncedmem.spec.proofs import (
    REFINEMENTS,
    SENTENCES,
    compare,
    find_fewer_copies,
    find_unlike_steps,
    summarise,
)
from syncedmem.verification import verify_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.proofs import PolicyDifference

KNOWN = {**{caffe.EDITIONS[name]: policy for name, policy in policy.POLICIES.items()}, **POLICIES}


@pytest.mark.parametrize("machine", KNOWN, ids=lambda machine: f"{machine}-{len(machine.sides)}")
def test_a_table_does_what_the_oracle_expects(machine: Machine) -> None:
    found = compare(machine, KNOWN[machine])

    assert () == found.differences
    assert found.states >= len(space(machine).steps)
    assert found.steps > found.states


@pytest.mark.deep(quick=2)
@pytest.mark.parametrize(("contents", "states"), [(2, 186), (3, 374), (4, 626), (16, 8642)])
def test_the_count_is_that_of_other_checkers(contents: int, states: int) -> None:
    """SPIN, Rumur and a TLA+ checker found the same numbers, each from its own model."""
    found = compare(caffe.CAFFE, policy.CAFFE, contents)

    assert (states, ()) == (found.states, found.differences)


@pytest.mark.parametrize(
    "machine", [item for item in KNOWN if item is not THIRD], ids=lambda machine: f"{machine}-{len(machine.sides)}"
)
def test_the_copies_are_the_fewest(machine: Machine) -> None:
    assert find_fewer_copies(machine, KNOWN[machine]) is None


def test_a_memory_that_forgets_what_is_fresh_copies_more() -> None:
    """Its heads cannot say that all three sides are fresh."""
    assert ("gpu_data", "prv_data", "gpu_data") == find_fewer_copies(THIRD, KNOWN[THIRD])


# --- wrong machines


def acting(call: str, head: str, *actions: str) -> Machine:
    return changed(caffe.CAFFE, call, head, do=actions)


def leading(call: str, head: str, dest: str) -> Machine:
    return changed(caffe.CAFFE, call, head, dest=dest)


def affecting(action: Action, **effects: Any) -> Machine:
    return machine_with(caffe.CAFFE, caffe.CAFFE.rows, replace(action, **effects))


def besides(action: str) -> Callable[[Row], tuple[str, ...]]:
    return lambda row: tuple(item for item in row.actions if item != action)


def zeroing_too(row: Row) -> tuple[str, ...]:
    return (*row.actions[:-1], "zero_cpu", row.actions[-1])


U, C, G, S = caffe.CAFFE.heads

WRONG: dict[str, tuple[str, Machine, str]] = {
    "adopting leaves a new memory UNINITIALIZED": (
        "freshness",
        leading("set_cpu_data", U, U),
        "fresh: none; the policy says fresh: cpu",
    ),
    "the first read leads to SYNCED (Caffe 7149de51c)": ("newest", leading("cpu_data", U, S), "SYNCED, and gpu holds"),
    "a write on the host does not make the device stale": ("freshness", leading("mutable_cpu_data", S, S), ""),
    "allocating sets the flag but not the pointer": (
        "pointers",
        affecting(caffe.ALLOCATE_GPU, sets=("own_gpu_data",)),
        "has_gpu_pointer is False",
    ),
    "allocating does not set the ownership flag": (
        "ownership",
        affecting(caffe.ALLOCATE_GPU, sets=("has_gpu_pointer",)),
        "own_gpu_data is False",
    ),
    "each allocation on the device decides the kind of host memory again": (
        "pinning",
        affecting(caffe.ALLOCATE_GPU, by_setting=caffe.ALLOCATE_CPU.by_setting),
        "cpu_malloc_use_cuda is True",
    ),
    "reading on the host does not copy down": (
        "views",
        changed(caffe.CAFFE, "cpu_data", G, do=besides("copy_to_cpu")),
        "the view shows other bytes",
    ),
    "adopting frees memory of the caller": (
        "actions",
        acting("set_cpu_data", C, "free_cpu", "adopt_cpu"),
        "free cpu, adopt cpu",
    ),
    "the destructor does not free the device side": (
        "actions",
        changed(caffe.CAFFE, "release", S, do=besides("free_gpu")),
        "free cpu, free gpu",
    ),
    "host memory is zeroed before a copy overwrites it": (
        "actions",
        changed(caffe.CAFFE, "cpu_data", G, do=zeroing_too),
        "zero cpu, copy gpu to cpu",
    ),
    "a push copies at once": ("actions", changed(caffe.CAFFE, "async_gpu_push", C, do=("copy_to_gpu",)), "push"),
    "a push that has nothing to do is no error": (
        "refusals",
        machine_with(
            caffe.CAFFE,
            [*(row for row in caffe.CAFFE.rows if row.refusal != "not_head_at_cpu"), Row("async_gpu_push", (U, G, S))],
        ),
        "not_head_at_cpu",
    ),
    "a read is refused": (
        "refusals",
        machine_with(
            caffe.CAFFE,
            [
                *(row for row in caffe.CAFFE.rows if row.call != "cpu_data"),
                Row("cpu_data", (U, C, G, S), refused="null_data"),
            ],
        ),
        "not refused",
    ),
    "writing on the device copies up although both sides are fresh (HOOMD)": (
        "copies",
        acting("mutable_gpu_data", S, "copy_to_gpu"),
        "",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_machine_breaks_a_sentence(name: str) -> None:
    """It is told with a shortest sequence, of at most four calls, the state, and what must be."""
    sentence, machine, said = WRONG[name]
    if sentence == "copies":
        assert find_fewer_copies(machine, policy.CAFFE)
    found = {difference.sentence: difference for difference in compare(machine, policy.CAFFE).differences}
    difference: PolicyDifference = found["actions" if sentence == "copies" else sentence]

    assert 1 <= len(difference.sequence) <= 4
    assert said in str(difference)
    assert difference.sequence[-1] in str(difference)


def test_every_sentence_has_a_wrong_machine() -> None:
    assert {*SENTENCES, "copies"} == {sentence for sentence, _, _ in WRONG.values()}
    assert all(text.endswith(".") for text in SENTENCES.values())


# --- machines compared with each other


@pytest.mark.parametrize(("finer", "coarser"), REFINEMENTS, ids=str)
def test_an_edition_refines_another(finer: Machine, coarser: Machine) -> None:
    assert [] == find_unlike_steps(finer, coarser)


@pytest.mark.parametrize(("coarser", "finer"), REFINEMENTS, ids=str)
def test_not_the_other_way_round(coarser: Machine, finer: Machine) -> None:
    problems = find_unlike_steps(finer, coarser)

    assert any("has no such call" in problem or caffe.NO_GPU.name in problem for problem in problems)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (acting("cpu_data", U, "allocate_cpu"), "cpu_data in U:--: early allocate_cpu, zero_cpu, then HEAD_AT_CPU"),
        (leading("gpu_data", C, G), "then HEAD_AT_GPU"),
        (affecting(caffe.ALLOCATE_CPU, sets=("has_cpu_pointer",)), "with has_cpu_pointer, own_cpu_data, wrong"),
    ],
)
def test_a_refinement_with_another_action_head_or_flag_is_refused(wrong: Machine, said: str) -> None:
    assert any(said in problem for problem in find_unlike_steps(caffe.EARLY, wrong))


# --- the verdict


def test_the_summary_counts_and_finds_nothing() -> None:
    found = summarise()

    assert ({"caffe": 88, "early": 32, "cpu_only": 8}, []) == (found.states, found.problems)
    assert len(SENTENCES) + 1 == found.sentences


def test_the_summary_tells_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The problems of the model name a sequence of calls and a pair of editions."""
    wrong = acting("mutable_gpu_data", S, "copy_to_gpu")
    monkeypatch.setattr("syncedmem.spec.proofs.summary.EDITIONS", {"caffe": wrong})
    monkeypatch.setattr("syncedmem.spec.proofs.summary.REFINEMENTS", ((caffe.EARLY, wrong),))
    problems = verify_model().problems

    assert any(problem.startswith("caffe: mutable_gpu_data in SYNCED with") for problem in problems)
    assert any(problem.startswith("caffe: fewer copies are enough for") for problem in problems)
    assert any(problem.startswith("mutable_gpu_data in S:oo: early nothing") for problem in problems)
