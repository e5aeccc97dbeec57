"""Blobs of a program: the right ones pass, wrong ones are refused, and so are answers that are no answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syncedmem.model.interface import BLOB_CALLS
from syncedmem.spec import Violation, check_blobs
from syncedmem.spec.blob.calls import CALLS
from syncedmem.spec.blob.claims import blob_requirements_for
from syncedmem.spec.blob.steps import GIVEN, BlobStep, Other, case_of, valued
from syncedmem.spec.blob.trial import blob_bench, run_case, shortened
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.conformance import Claim, conform_program
from syncedmem.spec.ports.protocol import PortError
from syncedmem.spec.ports.targets import ProgramTarget, subject_of
from syncedmem.spec.requirements import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.spec import Subject
    from syncedmem.spec.requirements import Level, Profile

pytestmark = pytest.mark.deep

PORT = Path(__file__).parents[2] / "support" / "blob_port.py"
MEMORIES = Path(__file__).parents[3] / "examples" / "ports" / "json" / "port.py"
LIMITS = Limits(seconds=60, memory=8 << 30)


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Return blobs of the port with this name, in this profile and at this level."""
    parameters: tuple[str, Profile, Level] = request.param
    name, profile, level = parameters
    with port(name).connect(LIMITS, "") as program:
        yield subject_of(program, name, profile, level)


def port(name: str = "") -> ProgramTarget:
    return ProgramTarget(name, (sys.executable, str(PORT), *filter(None, [name])))


def with_subject(name: str, profile: Profile = "safe", level: Level = "L4") -> pytest.MarkDecorator:
    return pytest.mark.parametrize("subject", [(name, profile, level)], indirect=True, ids=[name or "right"])


# --- the protocol


def test_every_call_of_the_table_is_a_call_of_the_protocol() -> None:
    """All but what the state says, and messages, which have no requests."""
    said = {"shape", "num_axes", "count", "capacity", "data_memory", "diff_memory"}
    asked = {name for call in CALLS for name in call.names if call.asked != "messages"}
    assert set(BLOB_CALLS) == asked - said


# --- the right port


@with_subject("", "safe")
def test_the_reference_passes_the_kit_through_the_protocol(subject: Subject) -> None:
    verdict = check_blobs(subject, steps=200, seed=3, suites=["rules", "tables", "failures", "walks"])
    verdict.require()
    assert (verdict.coverage.count, verdict.coverage.missing) == (144, 0)


SHAPE = (2, 3)


@pytest.mark.parametrize("subject", [("", "safe", level) for level in LEVELS], indirect=True, ids=LEVELS)
def test_every_rule_can_be_shown_through_the_protocol_at_every_level(subject: Subject) -> None:
    assert [] == check_blobs(subject, steps=0, suites=["rules"]).violations
    judged = blob_requirements_for(subject)
    assert {"B21-accessors", "P01-answers"} <= set(judged)
    assert "B66-own-memory" not in judged
    assert ("B57-failure-keeps-numbers" in judged) == (subject.level >= "L3")


@with_subject("")
def test_an_action_that_is_told_to_fail_fails(subject: Subject) -> None:
    written = BlobStep(0, "mutable_cpu_data")
    run_case(blob_bench(subject), case_of((SHAPE,), (written, BlobStep(0, "gpu_data", fail=2))))


@with_subject("cpu_only")
def test_without_a_device_memory_on_it_is_a_buffer_of_the_host(subject: Subject) -> None:
    """The port has to refuse it, not the kit."""
    case = case_of((SHAPE,), (BlobStep(0, "set_gpu_data", (GIVEN,)), BlobStep(0, "cpu_data")))
    assert run_case(blob_bench(subject), case).steps == 2


def test_the_command_finds_the_level_of_a_port() -> None:
    report = conform_program(port("caffe"), Claim("caffe", steps=0, blobs=True), LIMITS)
    assert report.line == "conforms to caffe/L4: 49 of 49 requirements, 144 of 144 cells"


def test_a_port_without_blobs_is_told_so() -> None:
    target = ProgramTarget("memories", (sys.executable, "-S", str(MEMORIES)))
    with pytest.raises(PortError, match="memories has no blobs"):
        conform_program(target, Claim("caffe", blobs=True), LIMITS)


# --- wrong ports


def found(subject: Subject, suite: str) -> set[str]:
    """What a suite finds, in one go."""
    return {
        violation.requirement for violation in check_blobs(subject, steps=0, suites=[suite], shorten=False).violations
    }


WRONG: dict[str, tuple[Level, str, str]] = {
    "ShapeWithCommas": ("L0", "rules", "B09-shape-string"),
    "ScalesOnHost": ("L0", "tables", "B36-scale-side"),
    "ShareCopies": ("L0", "types", "B26-share-object"),
    "UpdateAdds": ("L1", "tables", "B28-update-numbers"),
    "ElementAsFloat": ("L1", "rules", "B18-element"),
    "EagerData": ("L2", "tables", "B02-lazy"),
    "Hoards": ("L2", "types", "B60-nothing-left"),
}


@pytest.mark.parametrize("bug", WRONG)
def test_a_wrong_blob_is_refused_at_the_level_that_shows_it(bug: str) -> None:
    level, suite, requirement = WRONG[bug]
    with port(bug).connect(LIMITS, "") as program:
        assert found(subject_of(program, bug, "safe", level), suite) == {requirement}


def test_a_blob_that_loses_numbers_when_an_action_fails_is_refused() -> None:
    copied = BlobStep(0, "copy_from", (Other(1),), (("reshape", True),), fail=1)
    written = (BlobStep(n, "mutable_cpu_data") for n in (0, 1))
    case = case_of((SHAPE, (3, 4)), (*written, copied))
    with port("FailedCopyReshapes").connect(LIMITS, "") as program, pytest.raises(Violation) as caught:
        run_case(blob_bench(subject_of(program, "copy", "safe", "L3")), case)
    assert caught.value.requirement == "B57-failure-keeps-numbers"


WAYS: dict[str, tuple[str, str]] = {
    "no block": ("P02-one-answer", "is an action of a blob without 'block'"),
    "no size": ("P02-one-answer", "is an action of a blob without 'size'"),
    "no shape": ("P02-one-answer", "the last answer about a blob has no 'shape'"),
    "no value": ("P02-one-answer", "the last answer has no 'value'"),
    "no view": ("B21-accessors", "mutable_cpu_data returned no view"),
    "no side": ("B21-accessors", "the cpu side, which is fresh, is not shown"),
    "no capacity": ("B46-capacity", "the capacity is None, but 6 elements fit"),
    "no failure": ("P03-fails-when-told", "action 1, allocate cpu, was told to fail, and the port did it"),
    "stray free": ("B60-nothing-left", "was asked to free memory that is not allocated"),
    "buffer freed": ("B60-nothing-left", "was asked to free external memory"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_answer_about_a_blob_is_a_finding(way: str) -> None:
    requirement, message = WAYS[way]
    last = BlobStep(0, "cpu_diff", fail=1) if way == "no failure" else BlobStep(0, "asum_data")
    case = case_of((SHAPE,), (BlobStep(0, "mutable_cpu_data"), last, BlobStep(0, "reshape", ((4, 4),))))
    with port(way).connect(LIMITS, "") as program, pytest.raises(Violation) as caught:
        run_case(blob_bench(subject_of(program, way, "safe", "L4")), case)
    assert caught.value.requirement == requirement
    assert message in caught.value.message
    assert json.loads(caught.value.statements[0])["op"] == "hello"


def test_what_is_found_is_shortened_in_new_processes() -> None:
    """A step with an expectation of its own keeps the shape that it was written for."""
    steps = (
        BlobStep(0, "mutable_cpu_data"),
        valued("B13-legacy-names", 2, "num"),
        BlobStep(0, "reshape", ((3, 2),)),
        valued("B13-legacy-names", 3, "num"),
        valued("B09-shape-string", "3 2 (6)", "shape_string"),
    )
    case = case_of((SHAPE, SHAPE), steps)
    with port("ShapeWithCommas").connect(LIMITS, "") as program:
        subject = subject_of(program, "commas", "safe", "L4")
        bench = blob_bench(subject)
        with pytest.raises(Violation) as caught:
            run_case(bench, case)
        shorter = shortened(bench, case, caught.value)
    assert shorter.requirement == "B09-shape-string"
    called = [json.loads(line).get("call") for line in shorter.statements]
    assert [item for item in called if item] == ["reshape", "shape_string"]


def test_a_port_may_have_adopted_or_waited() -> None:
    """These actions call no allocator."""
    with port("talkative").connect(LIMITS, "") as program:
        bench = blob_bench(subject_of(program, "talkative", "safe", "L4"))
        adopted = (BlobStep(0, "mutable_cpu_data"), BlobStep(0, "set_cpu_data", (GIVEN,)))
        run_case(bench, case_of((SHAPE,), adopted))
