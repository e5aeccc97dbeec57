"""Test vectors: they agree with the oracle, our memories pass them, wrong memories fail, and ports can read them."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from command_fixtures import run
from loops import some
from machines import DOOR, EXAMPLES, PETSC, POLICIES
from mutants.memory import MEMORY_BUGS
from subjects import device_subject, devices, host_subject

from syncedmem.model import EDITIONS, caffe, hsi_suite, space
from syncedmem.model.suites import counter_sequences, cycles, pair_tour
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.spec import ReferenceMemory, Subject, UnfitPolicyError
from syncedmem.spec.engine.contents import pattern
from syncedmem.spec.memory.policy import CAFFE
from syncedmem.spec.record.steps import content
from syncedmem.spec.vectors import (
    REFUSALS,
    SUITES,
    model_digest,
    programs,
    replay,
    vectors,
)
from syncedmem.spec.vectors.keys import schema
from syncedmem.spec.vectors.suites import VectorProgram
from syncedmem.spec.vectors.traces import checked_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model import Action, Machine
    from syncedmem.spec import Maker, Policy

ROOT = Path(__file__).parents[2]
SCHEMA: Any = json.loads((ROOT / "vectors" / "vector.schema.json").read_text(encoding="utf-8"))
VALIDATOR: Any = jsonschema.Draft202012Validator(SCHEMA)
EACH = [
    pytest.param(edition, suite, id=f"{edition}/{suite}", marks=[pytest.mark.deep] if suite == "hsi-extra" else [])
    for edition in EDITIONS
    for suite in SUITES
]
"""The suites; the largest has half of all vectors."""


def written(edition: str, suite: str) -> tuple[dict[str, Any], ...]:
    """The vectors of a suite, read from their lines; those of the largest suite are not kept."""
    return (read.__wrapped__ if suite == "hsi-extra" else read)(edition, suite)


@cache
def read(edition: str, suite: str) -> tuple[dict[str, Any], ...]:
    """The vectors of a suite, kept: together some 30 megabytes without the largest suite, which has twice as many."""
    return tuple(json.loads(vector.line()) for vector in vectors(suite, edition))


def subject(edition: str, make: Maker = SyncedMemory) -> Subject:
    return host_subject(make) if edition == "cpu_only" else device_subject(make)


def find(suite: str, **wanted: Any) -> dict[str, Any]:
    """Return a copy of the first Caffe vector that has a step with these values."""
    found = next(
        vector for vector in written("caffe", suite) if any(wanted.items() <= step.items() for step in vector["steps"])
    )
    copy: dict[str, Any] = json.loads(json.dumps(found))
    return copy


# --- the content of vectors


@pytest.mark.deep
def test_the_suites_have_the_size_that_is_known() -> None:
    """Counted in vectors and steps, for Caffe; the final release of a vector is a step."""
    found = {suite: [len(vector["steps"]) for vector in written("caffe", suite)] for suite in SUITES}

    assert {suite: (len(steps), sum(steps)) for suite, steps in found.items()} == {
        "cells": (558, 2655),
        "tour": (61, 790),
        "sizes": (305, 3950),
        "large": (8, 38),
        "several": (61, 5688),
        "pairs": (579, 8307),
        "hsi": (723, 3754),
        "hsi-extra": (6708, 41308),
        "counters": (60, 2085),
        "modes": (36, 204),
        "failures": (428, 2544),
        "aliases": (160, 1238),
        "zero": (61, 790),
    }


@pytest.mark.parametrize(("edition", "suite"), EACH)
def test_every_line_is_valid_and_has_a_name_of_its_own(edition: str, suite: str) -> None:
    found = written(edition, suite)
    few = found if len(found) < 200 else random.Random(0).sample(found, 200)  # noqa: S311 -- a sample

    assert [] == [error.message for vector in few for error in VALIDATOR.iter_errors(vector)]
    assert len({item["id"] for item in found}) == len(found)
    assert {model_digest(edition)} == {item["model"] for item in found}
    assert {"release"} == {item["steps"][-1]["call"] for item in found}


def test_every_refusal_is_explained_and_no_other_is_valid() -> None:
    """The schema has exactly the refusals of the list, each with its description."""
    said = SCHEMA["properties"]["steps"]["items"]["properties"]["refusal"]["oneOf"]
    used = {
        step.get("refusal") for edition in EDITIONS for vector in written(edition, "cells") for step in vector["steps"]
    }
    used |= {step.get("refusal") for vector in written("caffe", "aliases") for step in vector["steps"]}
    wrong = find("cells", refusal="null_data")
    wrong["steps"][-2]["refusal"], headless = "because", find("tour", call="cpu_data")
    headless["steps"][0]["head"] = "HEAD_AT_TPU"

    assert REFUSALS == {item["const"]: item["description"] for item in said}
    assert used == set(REFUSALS)
    assert [f"$.steps[{len(wrong['steps']) - 2}].refusal"] == [
        error.json_path for error in VALIDATOR.iter_errors(wrong)
    ]
    assert ["$.steps[0].head"] == [error.json_path for error in VALIDATOR.iter_errors(headless)]


def test_the_name_depends_on_what_is_done_alone() -> None:
    one, other, *_ = vectors("tour", "caffe")
    renamed = type(one)("pairs", one.program)

    assert renamed.id == one.id != other.id
    assert renamed.line() != one.line()
    assert isinstance(one.program, VectorProgram)
    assert one.id != type(one)("tour", one.program._replace(sizes=(5,))).id


def test_the_digests_of_the_editions_differ() -> None:
    assert len({model_digest(edition) for edition in EDITIONS}) == len(EDITIONS)


def test_failing_actions_are_counted() -> None:
    """Every allocator call of every transition fails in two vectors: one repeats the call, one releases the memory."""
    actions = [action for row in space(caffe.CAFFE).steps.values() for step in row.values() for action in step.actions]
    points = sum(not action.startswith("adopt") for action in actions)

    assert len(programs("failures", "caffe")) == 2 * points


# --- suites of the model


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_tour_of_pairs_takes_every_pair(edition: str) -> None:
    found = space(EDITIONS[edition])
    taken = [(state, entry, step.after) for state, row in found.steps.items() for entry, step in row.items()]
    pairs = {(state, entry, other) for state, entry, after in taken for other in found.steps[after]}
    assert len(pairs) > len(taken)
    for sequence in pair_tour(EDITIONS[edition]):
        state, last = found.start, None
        for entry in sequence:
            if last is not None:
                pairs.discard((*last, entry))
            last, state = (state, entry), found.steps[state][entry].after

    assert not pairs


def test_one_state_more_takes_longer_words() -> None:
    assert len(hsi_suite(caffe.CAFFE, 1)) == 6708
    assert 1 + max(map(len, hsi_suite(caffe.CAFFE))) == max(map(len, hsi_suite(caffe.CAFFE, 1)))


@pytest.mark.parametrize("edition", EDITIONS)
def test_cycles_are_repeated(edition: str) -> None:
    """Each cycle can be taken twice in a row without a refusal."""
    found = space(EDITIONS[edition])
    assert cycles(EDITIONS[edition])
    for cycle in cycles(EDITIONS[edition]):
        state = found.start
        for entry in cycle * 2:
            assert not found.steps[state][entry].refusal
            state = found.steps[state][entry].after
    assert counter_sequences(EDITIONS[edition], (3,)) == tuple(cycle * 3 for cycle in cycles(EDITIONS[edition]))


# --- replays


# Two vectors are about memories that share bytes, of which a checked one would tell.
@pytest.mark.parametrize("make", [partial(SyncedMemory, checked=False), ReferenceMemory], ids=["ours", "reference"])
@pytest.mark.parametrize(("edition", "suite"), EACH)
def test_our_memories_pass(edition: str, suite: str, make: Maker) -> None:
    there = subject(edition, make)
    found = written(edition, suite)
    few = found if len(found) < 1000 else random.Random(1).sample(found, 1000)  # noqa: S311 -- a sample

    assert [] == [vector["id"] for vector in few if replay(there, vector)]


@pytest.mark.parametrize("device", devices(), ids=lambda named: named.name)
def test_every_device_of_this_machine_passes_the_tour(device: Any) -> None:
    there = Subject("here", SyncedMemory, CPUDeviceAllocator(), device)

    assert [] == [vector["id"] for vector in written("caffe", "tour") if replay(there, vector)]


@pytest.mark.parametrize(
    ("suite", "step", "change", "requirement"),
    [
        ("tour", {"call": "gpu_data"}, {"head": "HEAD_AT_CPU"}, "R12-read-keeps"),
        ("tour", {"call": "cpu_data"}, {"flags": {"own_cpu_data": False}}, "R23-own-flags"),
        ("tour", {"call": "cpu_data"}, {"shows": 99}, "R10-same-bytes"),
        ("tour", {"call": "cpu_data"}, {"bytes": {"cpu": 99}}, "R10-same-bytes"),
        ("tour", {"call": "gpu_data"}, {"bytes": {"gpu": 99}}, "R10-same-bytes"),
        ("tour", {"call": "cpu_data"}, {"refusal": "no_gpu"}, "R30-no-gpu"),
        ("cells", {"refusal": "null_data"}, {"refusal": None}, "R14-adopt-host"),
        ("failures", {"fail": 1}, {"fail": 99}, "R32-strong-guarantee"),
        ("tour", {"call": "cpu_data", "head": "HEAD_AT_CPU"}, {"actions": ["free_cpu"]}, "R17-adopt-frees-owned"),
        ("modes", {"actions": ["allocate_cpu", "zero_cpu"]}, {"flags": {"own_cpu_data": True}}, ""),
    ],
)
def test_a_vector_that_says_otherwise_is_not_met(
    suite: str, step: dict[str, Any], change: dict[str, Any], requirement: str
) -> None:
    """Each field of a step is compared; a field that the step does not have is not."""
    vector = find(suite, **step)
    for item in vector["steps"]:
        if step.items() <= item.items():
            item.update(change)
    found = replay(subject("caffe"), vector)

    assert requirement == (found.requirement if found else "")


@pytest.mark.parametrize(
    ("bug", "suite", "requirement", "said"),
    [
        ("CopiesOnEveryRead", "hsi", "R09-no-needless-copy", ", expected nothing"),
        ("RoundedSize", "tour", "R04-exact-size", "8 bytes"),
        ("HalfCopied", "sizes", "R04-exact-size", "bytes, the size is "),
        ("ClearsHostTail", "tour", "R04-exact-size", "around the adopted buffer"),
        ("ClearsDeviceTail", "tour", "R04-exact-size", "around the adopted buffer"),
        ("ReturnsNothing", "tour", "R10-same-bytes", "returned nothing"),
        ("HostNeverFreed", "tour", "R27-release-frees-owned", "saw free gpu, expected free cpu, free gpu"),
    ],
)
def test_it_is_said_what_a_wrong_memory_does(bug: str, suite: str, requirement: str, said: str) -> None:
    there = subject("caffe", MEMORY_BUGS[bug].make)
    found = [difference for difference in (replay(there, vector) for vector in written("caffe", suite)) if difference]
    assert requirement in {item.requirement for item in found}
    assert any(said in item.message for item in found)


# --- any machine


class ForgetsToCopy(ReferenceMemory):
    """A memory that copies nothing."""

    def copy(self, action: Action, blocks: dict[str, Any], stream: Any) -> None:
        """Leave the bytes as they are."""


def subject_of_machine(machine: Machine, policy: Policy | None, make: Any = ReferenceMemory) -> Subject:
    """Return memories that perform a table, on allocators of their own for each side."""
    host, device = CPUDeviceAllocator(), SimulatedDeviceAllocator()
    on_device = {side: device for side in machine.sides if "device" in side}
    return Subject(
        "mine", partial(make, machine=machine), host, device, edition=machine, policy=policy, places=on_device
    )


JUDGED = [(example, None) for example in (DOOR, *EXAMPLES)] + [*POLICIES.items()]
"""Machines by their tables, and with policies."""


@pytest.mark.deep(quick=4)
@pytest.mark.parametrize(
    ("machine", "policy"), JUDGED, ids=lambda name: getattr(name, "name", "policy" if name else "table")
)
def test_any_machine_has_vectors_in_its_own_words(machine: Machine, policy: Policy | None) -> None:
    """They are valid, runs of the machine, and passed by a memory that performs its table, and by no other."""
    validator: Any = jsonschema.Draft202012Validator(schema(machine))
    suites = [[vector.as_json() for vector in vectors(name, machine, policy)] for name in SUITES if name != "hsi-extra"]
    some = [vector for suite in suites for vector in suite[:40]]
    copies = any(action.does == "copy" for action in machine.actions.values())
    right, wrong = (subject_of_machine(machine, policy, make) for make in (ReferenceMemory, ForgetsToCopy))

    assert some
    assert {machine.name} == {vector["edition"] for vector in some}
    assert [] == [error.message for vector in some for error in validator.iter_errors(vector)]
    assert len(some) == checked_lines([*enumerate(some, 1)], machine)
    assert [] == [str(difference) for vector in some if (difference := replay(right, vector))]
    assert copies == any(replay(wrong, vector) for vector in some)


def test_a_policy_that_does_not_fit_makes_no_vectors() -> None:
    with pytest.raises(UnfitPolicyError, match="the policy is for the sides cpu, gpu, and petsc has host, device"):
        next(vectors("tour", PETSC, CAFFE))
    zeroing = replace(POLICIES[PETSC], first_touch="zero")
    with pytest.raises(UnfitPolicyError, match="the machine petsc and its policy differ: VecGetArray"):
        next(vectors("tour", PETSC, zeroing))


# --- the command line


@pytest.mark.deep
def test_vectors_are_written_and_compared(tmp_path: Path) -> None:
    """A file that is changed or missing is named."""
    few = ("--suite", "cpu_only/tour, counters")
    assert "5 files" in run("vectors", "--out", str(tmp_path), *few).output
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json*")}
    counters = {f"{edition}/counters.jsonl" for edition in EDITIONS}
    assert {"vector.schema.json", "cpu_only/tour.jsonl", *counters} == files
    assert 0 == run("vectors", "--out", str(tmp_path), *few, "--check").exit_code
    (tmp_path / "early" / "counters.jsonl").write_bytes(b"\xff")  # not even text
    (tmp_path / "vector.schema.json").unlink()
    result = run("vectors", "--out", str(tmp_path), *few, "--check")
    assert 1 == result.exit_code
    named = [re.split(" is not up to date| does not exist", line)[0] for line in result.output.splitlines()]
    assert [tmp_path / "early" / "counters.jsonl", tmp_path / "vector.schema.json"] == sorted(map(Path, named))


@pytest.mark.deep
def test_the_committed_vectors_are_up_to_date() -> None:
    committed = sorted(str(path.relative_to(ROOT / "vectors"))[:-6] for path in (ROOT / "vectors").rglob("*.jsonl"))
    result = run(
        "vectors",
        "--out",
        str(ROOT / "vectors"),
        *(word for name in committed for word in ("--suite", name)),
        "--check",
    )

    assert committed
    assert (0, "") == (result.exit_code, result.output)


def test_an_unknown_suite_is_named(refused: Callable[..., str]) -> None:
    assert "caffe/detour" in refused("vectors", "--out", "x", "--suite", "caffe/detour")


def test_a_pattern_is_written_by_every_step() -> None:
    """So no two contents of a vector are equal."""
    for vector in some(written("caffe", "tour")):
        calls = [step for step in vector["steps"] if step["call"] != "set_mode"]
        arguments: list[dict[str, int]] = [call["argument"] for call in calls if "argument" in call]
        numbers = [int(call["write"]) for call in calls if "write" in call] + [
            argument["bytes"] for argument in arguments
        ]
        contents = [content(number, 1) for number in numbers]
        assert len(set(contents)) == len(contents) > 0
        assert content(0, 3) == bytes(3)
        assert content(2, 3) == pattern(2, 3)
