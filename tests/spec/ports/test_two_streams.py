"""Two memories, two streams: each wrong wait is refused by the requirement of the call that should have waited."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from wrong_waits import KINDS

from syncedmem.spec import check_conformance
from syncedmem.spec.engine.report import Tolerance
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.targets import ProgramTarget, subject_of

if TYPE_CHECKING:
    from syncedmem.spec import Violation

SUPPORT = Path(__file__).parents[2] / "support"
ANOTHER = "the stream of another memory"
WRONG_WITHOUT_ANOTHER = {"a stream that nobody uses", "the default stream", "none", "too early", "after the free"}
CALLS = {
    "release": "R42-in-flight-not-freed",
    "drop": "R42-in-flight-not-freed",
    "set_cpu_data": "R42-in-flight-not-freed",
    "set_gpu_data": "R42-in-flight-not-freed",
    "mutable_cpu_data": "R41-in-flight-not-written",
    "gpu_data": "R43-in-flight-read",
    "mutable_gpu_data": "R43-in-flight-read",
}
"""The calls that must wait, each with the requirement that it breaks if it does not."""


def found(kind: str, call: str, suite: str, *, shorten: bool = False) -> list[Violation]:
    """What is found of a port that waits wrongly."""
    target = ProgramTarget("port", (sys.executable, str(SUPPORT / "wrong_waits.py"), kind, call))
    with target.connect(Limits(seconds=10), "") as port:
        subject = subject_of(port, "port", "safe", "L4")
        verdict = check_conformance(subject, steps=0, suites=[suite], shorten=shorten, tolerance=Tolerance(first=True))
    return verdict.violations


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_that_waits_wrongly_is_refused(kind: str) -> None:
    assert [CALLS["release"]] == [violation.requirement for violation in found(kind, "release", "streams")]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_waits_for_the_stream_of_another_memory_is_refused(call: str) -> None:
    assert [CALLS[call]] == [violation.requirement for violation in found(ANOTHER, call, "streams")]


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_one_memory_does_not_show_a_wait_for_the_stream_of_another(kind: str) -> None:
    """So a suite of two is needed."""
    assert bool(found(kind, "release", "flights")) == (kind in WRONG_WITHOUT_ANOTHER)


def test_the_shortest_program_pushes_two_memories_on_two_streams() -> None:
    (violation,) = found(ANOTHER, "release", "streams", shorten=True)
    requests = [json.loads(line) for line in violation.statements]

    assert ["hello", *["new", "mutable_cpu_data"] * 2, *["async_gpu_push"] * 2, "release"] == [
        request["op"] for request in requests
    ]
    assert {1, 2} == {request["stream"] for request in requests if "stream" in request}
