"""What is done with vectors besides replaying them: the archive, vectors of violations, and those of blobs."""

from __future__ import annotations

import hashlib
import json
import tarfile
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from machines import DOOR, EXAMPLES, MSI, PETSC, POLICIES
from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob
from mutants.memory import MEMORY_BUGS
from subjects import device_subject, host_subject

from syncedmem.model import EDITIONS, Input, caffe
from syncedmem.runtime import Blob, CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec import ReferenceMemory, Subject, UnfitPolicyError, Violation, check_conformance, suite_names
from syncedmem.spec.memory.policy import CAFFE
from syncedmem.spec.memory.suites import Fail, Stumble, Synchronize
from syncedmem.spec.vectors import BLOB_REFUSALS, BLOB_SUITES, SUITES, archive, replay, suite_files, vector_of, vectors
from syncedmem.spec.vectors.keys import schema
from syncedmem.spec.vectors.traces import checked_lines

if TYPE_CHECKING:
    from syncedmem.model import Action, Machine
    from syncedmem.spec import Policy

# --- the archive


@pytest.mark.deep
def test_the_archive_has_every_file_and_is_the_same_each_time() -> None:
    name, content = archive("1.2.3")
    assert (name, content) == archive("1.2.3")
    assert name == "syncedmem-vectors-3-1.2.3.tar.gz"

    with tarfile.open(fileobj=BytesIO(content), mode="r:gz") as tar:
        found = {entry.name: (tar.extractfile(entry) or BytesIO()).read() for entry in tar}
        assert {(entry.mtime, entry.uid, entry.gid, entry.mode) for entry in tar} == {(0, 0, 0, 0o644)}
    folder = name.removesuffix(".tar.gz")
    assert found == {f"{folder}/{path}": text.encode() for path, text in suite_files()}
    manifest = json.loads(found[f"{folder}/manifest.json"])
    digests = {f"{folder}/{it['file']}": it["sha256"] for it in manifest["suites"]}
    assert digests == {path: hashlib.sha256(found[path]).hexdigest() for path in digests}
    assert set(found) - set(digests) == {f"{folder}/manifest.json", f"{folder}/vector.schema.json"}


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


JUDGED = [(it, None) for it in (DOOR, *EXAMPLES)] + [*POLICIES.items()]
"""Machines by their tables, and with policies."""


@pytest.mark.parametrize(("machine", "policy"), JUDGED, ids=lambda it: getattr(it, "name", "policy" if it else "table"))
def test_any_machine_has_vectors_in_its_own_words(machine: Machine, policy: Policy | None) -> None:
    """They are valid, runs of the machine, and passed by a memory that performs its table, and by no other."""
    validator: Any = jsonschema.Draft202012Validator(schema(machine))
    suites = [[it.as_json() for it in vectors(name, machine, policy)] for name in SUITES if name != "hsi-extra"]
    some = [it for suite in suites for it in suite[:40]]
    copies = any(action.does == "copy" for action in machine.actions.values())
    right, wrong = (subject_of_machine(machine, policy, make) for make in (ReferenceMemory, ForgetsToCopy))

    assert some
    assert {machine.name} == {it["edition"] for it in some}
    assert [] == [error.message for it in some for error in validator.iter_errors(it)]
    assert len(some) == checked_lines([*enumerate(some, 1)], machine)
    assert [] == [str(difference) for it in some if (difference := replay(right, it))]
    assert copies == any(replay(wrong, it) for it in some)


def test_a_policy_that_does_not_fit_makes_no_vectors() -> None:
    with pytest.raises(UnfitPolicyError, match="the policy is for the sides cpu, gpu, and petsc has host, device"):
        next(vectors("tour", PETSC, CAFFE))
    zeroing = replace(POLICIES[PETSC], first_touch="zero")
    with pytest.raises(UnfitPolicyError, match="the machine petsc and its policy differ: VecGetArray"):
        next(vectors("tour", PETSC, zeroing))


# --- violations


@pytest.mark.parametrize(
    ("bug", "calls"),
    [
        ("CopiesUpOnlyOnce", ["mutable_cpu_data", "gpu_data", "release"]),
        ("FreesExternalHost", ["set_cpu_data", "set_cpu_data", "release"]),
        ("FailureLeaks", ["cpu_data", "release"]),
        ("StuckAfterFailure", ["cpu_data", "release"]),
    ],
)
def test_a_violation_is_a_vector(bug: str, calls: list[str]) -> None:
    """It is short, valid, and fails for the memory that has the violation, and for no other."""
    subject = replace(device_subject(MEMORY_BUGS[bug].make), name=bug)
    suites = (check_conformance(subject, steps=0, suites=[name]) for name in suite_names(subject))
    violation = next(violation for suite in suites for violation in suite.violations)
    vector = vector_of(violation, subject)
    assert vector is not None
    data = json.loads(vector.line())

    validator: Any = jsonschema.Draft202012Validator(schema())
    validator.validate(data)
    assert data["suite"] == "found"
    assert set(calls) <= {step["call"] for step in data["steps"]}
    assert len(data["steps"]) <= 8
    assert replay(subject, data) is not None
    assert replay(device_subject(), data) is None


@pytest.mark.parametrize("machine", [PETSC, MSI], ids=str)
@pytest.mark.parametrize("by_policy", [False, True])
def test_a_violation_of_another_machine_is_a_vector(machine: Machine, by_policy: bool) -> None:
    policy = POLICIES[machine] if by_policy else None
    subject = subject_of_machine(machine, policy, ForgetsToCopy)
    violation = check_conformance(subject, steps=0, suites=["cells"]).violations[0]
    vector = vector_of(violation, subject)

    assert vector is not None
    data = json.loads(vector.line())
    validator: Any = jsonschema.Draft202012Validator(schema(machine))
    validator.validate(data)
    assert replay(subject, data) is not None
    assert replay(subject_of_machine(machine, policy), data) is None


def walk(*moves: tuple[int, object], sizes: tuple[int, ...] = (4, 5)) -> Violation:
    violation = Violation("R10-same-bytes", "something")
    violation.played = sizes, moves
    return violation


def test_each_kind_of_move_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode is said before the call that it is for, because a vector has one mode, and the kit one for each memory."""
    read, adopt, end = Input(caffe.CPU_DATA), Input(caffe.SET_CPU_DATA), Input(caffe.RELEASE)
    moves = (
        (0, Input(setting="mode", value="CPU")),
        (0, Stumble(read)),
        (1, adopt),
        (1, Synchronize()),
        (0, end),
        (0, read),
        (1, Input(caffe.SET_CPU_DATA, data=False)),
    )

    def different(*_: object) -> str:
        return "a difference"

    monkeypatch.setattr("syncedmem.spec.vectors.of_violations.replay", different)
    vector = vector_of(walk(*moves), device_subject())
    assert vector is not None
    assert [(it["call"], it.get("memory", 0)) for it in vector.program.operations] == [
        ("set_mode", 0),
        ("cpu_data", 0),
        ("set_mode", 0),
        ("set_cpu_data", 1),
        ("write_buffer", 1),
        ("release", 0),
        ("set_cpu_data", 1),
        ("release", 1),
    ]


def test_a_failure_is_said_if_there_is_an_action_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """After it the call is made again, unless the move says otherwise."""

    def different(*_: object) -> str:
        return "a difference"

    monkeypatch.setattr("syncedmem.spec.vectors.of_violations.replay", different)
    read = Input(caffe.CPU_DATA)
    vector = vector_of(walk((0, Fail(read, 3)), sizes=(4,)), device_subject())
    assert vector is not None
    assert [it.get("fail") for it in vector.program.operations] == [None, None]
    vector = vector_of(walk((0, Fail(read, 2, again=False)), (0, Fail(read, 1)), sizes=(4,)), device_subject())
    assert vector is not None
    assert [it.get("fail") for it in vector.program.operations] == [2, 1, None, None]


def test_what_a_vector_cannot_say_is_none() -> None:
    assert vector_of(Violation("R55-dropped-freed", "of no calls"), device_subject()) is None
    assert vector_of(walk((0, Input(caffe.CPU_DATA))), device_subject()) is None


# --- blobs


def blob_vectors(edition: str, suite: str) -> list[dict[str, Any]]:
    return [json.loads(vector.line()) for vector in vectors(suite, edition)]


def subject_of(edition: str, make: Any) -> Any:
    return host_subject(make) if edition == "cpu_only" else device_subject(make)


@pytest.mark.parametrize("suite", BLOB_SUITES)
@pytest.mark.parametrize("edition", ["caffe", "cpu_only"])
@pytest.mark.parametrize("make", [Blob, HandmadeBlob])
def test_our_blobs_pass(make: Any, edition: str, suite: str) -> None:
    found = blob_vectors(edition, suite)
    validator: Any = jsonschema.Draft202012Validator(schema())

    assert [] == [it["id"] for it in found if replay(subject_of(edition, make), it)]
    assert [] == [error.message for it in found for error in validator.iter_errors(it)]
    assert len({it["id"] for it in found}) == len(found)


def test_there_are_as_many_cells_as_caffe_was_observed_in() -> None:
    assert {(edition, suite): len(blob_vectors(edition, suite)) for edition in EDITIONS for suite in BLOB_SUITES} == {
        ("caffe", "blob-cells"): 144,
        ("caffe", "blob-refusals"): 96,
        ("early", "blob-cells"): 0,
        ("early", "blob-refusals"): 0,
        ("cpu_only", "blob-cells"): 48,
        ("cpu_only", "blob-refusals"): 54,
    }


def test_every_refusal_of_a_blob_has_a_vector() -> None:
    found = [*blob_vectors("caffe", "blob-refusals"), *blob_vectors("cpu_only", "blob-refusals")]
    found += blob_vectors("caffe", "blob-cells")
    assert {step["refusal"] for it in found for step in it["steps"] if step.get("refusal")} == set(BLOB_REFUSALS)


@pytest.mark.parametrize(
    ("bug", "suite", "said"),
    [
        ("UpdateAdds", "blob-cells", "update: expected ["),
        ("ScalesOnHost", "blob-cells", "scale_data: expected the head HEAD_AT_GPU of data of blob 0, seen HEAD_AT_CPU"),
        ("SharesAnyCount", "blob-refusals", "share_data: expected the refusal other_count, seen an answer"),
        ("SumsqIsL1", "blob-cells", "sumsq_data: expected "),
        ("NormAllocates", "blob-cells", "asum_data: expected no action, seen allocate_cpu, zero_cpu"),
    ],
)
def test_wrong_blobs_do_not_pass(bug: str, suite: str, said: str) -> None:
    subject = device_subject(BLOB_BUGS[bug].make)
    found = [str(difference) for it in blob_vectors("caffe", suite) if (difference := replay(subject, it))]
    assert any(said in it for it in found), found[:3]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("shows",), [9.5] * 6, "expected the view [9.5, 9.5, 9.5, 9.5, 9.5, 9.5], seen [0.0, 0.0, "),
        (("blobs", 0, "shape"), [3, 2], "expected blob 0 of the shape [3, 2], seen [2, 3]"),
        (("blobs", 0, "data", "cpu"), [1], "expected [1] on the cpu side of data of blob 0, seen ["),
    ],
)
def test_each_field_of_a_step_of_blobs_is_compared(place: tuple[Any, ...], value: Any, said: str) -> None:
    vector = next(it for it in blob_vectors("caffe", "blob-cells") if it["steps"][1]["call"] == "mutable_cpu_data")
    *outer, last = place
    there: Any = vector["steps"][1]
    for key in outer:
        there = there[key]
    there[last] = value
    assert said in str(replay(device_subject(Blob), vector))


def test_what_is_left_of_blobs_is_a_leak() -> None:
    kept: list[Any] = []

    class Kept(HandmadeBlob):
        def set_up(self) -> None:
            kept.append(self)

    vector = next(it for it in blob_vectors("caffe", "blob-cells") if len(it["steps"]) > 4)
    assert "expected nothing left after release, seen 1 allocations" in str(replay(device_subject(Kept), vector))


def test_blobs_that_cannot_be_looked_at_fail() -> None:
    class Headless(HandmadeBlob):
        @property
        def shape(self) -> tuple[int, ...]:
            raise RuntimeError("no shape")

    vector = blob_vectors("caffe", "blob-cells")[-1]
    assert "expected blobs that can be looked at, seen RuntimeError" in str(replay(device_subject(Headless), vector))
