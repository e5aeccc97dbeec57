"""The proofs: they hold for the model, each invariant fails for its mutant, and other checkers find as many states."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from syncedmem.model import EDITIONS, Action, Call, MissingPackageError, space
from syncedmem.model.dispatch import state_of
from syncedmem.model.exploration import State, inputs
from syncedmem.model.mode import Mode
from syncedmem.spec.proofs import (
    INVARIANTS,
    MUTANTS,
    REFINEMENTS,
    Mutant,
    System,
    available,
    explore_contents,
    explore_schedules,
    prove,
    refinement_breaches,
    summarise,
)
from syncedmem.spec.proofs.exploration import Versions, steps_from
from syncedmem.spec.proofs.invariants import Plain
from syncedmem.verification import verify_model

if TYPE_CHECKING:
    from syncedmem.spec.proofs.states import State as ProofState

NEEDS_Z3 = pytest.mark.skipif(not available(), reason="z3-solver is not installed: pip install z3-solver")


@pytest.mark.deep(quick=2)
@pytest.mark.parametrize(("contents", "states"), [(2, 186), (3, 374), (4, 626), (16, 8642)])
def test_the_count_is_that_of_other_checkers(contents: int, states: int) -> None:
    """SPIN, Rumur and a TLA+ checker found the same numbers, each from its own model."""
    explored = explore_contents(System.of("caffe"), contents)

    assert states == len(explored.states)
    assert () == explored.breaches


@pytest.mark.parametrize("edition", EDITIONS)
def test_what_is_explored_is_the_compiled_table(edition: str) -> None:
    """Without contents, the states and actions are those of the model's state space."""
    found, system = space(edition), System.of(edition)
    explored = {packed(it): it for it in explore_contents(system, 1).states}

    assert set(found.steps) == set(explored)
    for state, row in found.steps.items():
        taken = {
            (step.row.call, step.row.actions, packed(step.after))
            for step in steps_from(system, explored[state], Versions(1), Plain())
            if step.row.call is not Call.RELEASE
        }
        assert taken == {(e.call, s.actions, s.after) for e, s in row.items() if e.call and not s.refusal}


def packed(found: ProofState) -> State:
    """Convert a state of the proofs to a state of the model."""
    facts = sum(1 << number for number, fact in enumerate(found.facts) if fact)
    return State(state_of(found.head, facts), Mode.GPU if found.mode else Mode.CPU)


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_copies_are_the_fewest(edition: str) -> None:
    assert explore_schedules(System.of(edition)) is None


@NEEDS_Z3
@pytest.mark.parametrize("edition", EDITIONS)
def test_the_invariants_are_inductive(edition: str) -> None:
    proof = prove(System.of(edition))

    assert () == proof.refuted
    assert proof.questions > len(System.of(edition).rows)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda it: it.name)
def test_exploration_refuses_a_mutant(mutant: Mutant) -> None:
    """It breaks the invariant that it was made for, after at most four calls."""
    breaches = [*explore_contents(mutant.system, 3).breaches, *filter(None, [explore_schedules(mutant.system)])]
    sequences = {it.invariant: it.sequence for it in breaches}

    assert mutant.breaks in sequences
    assert 1 <= len(sequences[mutant.breaks]) <= 4


@NEEDS_Z3
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda it: it.name)
def test_induction_refuses_a_mutant(mutant: Mutant) -> None:
    """The refutation names a row, and values for the symbols."""
    found = [it for it in prove(mutant.system).refuted if it.invariant == mutant.breaks]

    assert found
    assert all("@" in it.where and it.state for it in found)


def test_every_invariant_has_a_mutant() -> None:
    """The mutant breaks it. The text of every invariant is a sentence."""
    assert set(INVARIANTS) == {mutant.breaks for mutant in MUTANTS}
    assert all(text.endswith(".") for text in INVARIANTS.values())


def test_a_proof_without_z3_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.spec.proofs.induction.available", lambda: False)
    with pytest.raises(MissingPackageError, match=r"z3-solver: pip install z3-solver"):
        prove(System.of("caffe"))


@pytest.mark.parametrize(("finer", "coarser"), REFINEMENTS)
def test_an_edition_refines_another(finer: str, coarser: str) -> None:
    assert [] == refinement_breaches(finer, coarser)


@pytest.mark.parametrize(("finer", "coarser"), [("caffe", "early"), ("early", "cpu_only"), ("caffe", "cpu_only")])
def test_not_the_other_way_round(finer: str, coarser: str) -> None:
    assert any("None" in problem for problem in refinement_breaches(finer, coarser))


def test_a_refinement_with_another_action_or_another_head_is_refused() -> None:
    found, system = space(), System.of("caffe")
    start = found.start
    entry = inputs("early")[0]
    step = found.steps[start][entry]
    elsewhere = found.steps[start][inputs("early")[2]].after
    assert system.edition.name == "caffe"
    for wrong, said in (
        (step._replace(actions=(Action.ALLOCATE_CPU,)), "cpu_data in U:--"),
        (step._replace(after=elsewhere), "HEAD_AT_GPU"),
    ):
        follower = found._replace(steps={**found.steps, start: {**found.steps[start], entry: wrong}})
        assert any(said in problem for problem in refinement_breaches("early", "caffe", follower))


def test_the_summary_counts_and_finds_nothing() -> None:
    found = summarise()

    assert [] == found.problems
    assert {"caffe": 626, "early": 170, "cpu_only": 18} == found.states
    assert len(INVARIANTS) == found.invariants


@NEEDS_Z3
def test_the_summary_says_how_much_z3_was_asked() -> None:
    assert "201 questions answered by z3" == summarise().induction


def test_the_summary_says_that_z3_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.spec.proofs.summary.available", lambda: False)

    assert "not checked, z3-solver is not installed" == summarise().induction


def test_the_summary_tells_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The problems of the model name a sequence of calls, a row, and a pair of editions."""
    wrong = next(it for it in MUTANTS if it.breaks == "handed_out_is_the_newest").system

    def wrongly(name: str) -> System:
        return replace(wrong, edition=EDITIONS[name])

    monkeypatch.setattr("syncedmem.spec.proofs.summary.System.of", wrongly)
    monkeypatch.setattr("syncedmem.spec.proofs.summary.REFINEMENTS", (("caffe", "early"),))
    problems = verify_model().problems

    assert "caffe: handed_out_is_the_newest is broken by gpu_data mutable_cpu_data mutable_gpu_data" in problems
    assert any("is not inductive at mutable_gpu_data@HEAD_AT_CPU" in it for it in problems) == available()
    assert any(it.startswith("set_gpu_data in U:--: caffe") for it in problems)


@pytest.mark.deep
def test_the_model_is_verified_with_its_proofs() -> None:
    verdict = verify_model()

    assert verdict.counts["proved_states"] == 814
    assert verdict.counts["invariants"] == len(INVARIANTS)
    assert verdict.induction == summarise().induction
