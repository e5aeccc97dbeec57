"""Two memories, two streams: each wrong wait is refused by the requirement of the call that should have waited."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from wrong_waits import KINDS

from syncedmem.spec import check_conformance
from syncedmem.spec.engine.report import Tolerance
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.targets import ProgramTarget, subject_of

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


def found(kind: str, call: str, suite: str) -> list[str]:
    """The requirements by which a port that waits wrongly is refused."""
    target = ProgramTarget("port", (sys.executable, str(SUPPORT / "wrong_waits.py"), kind, call))
    with target.connect(Limits(seconds=10), "") as port:
        subject = subject_of(port, "port", "safe", "L4")
        verdict = check_conformance(subject, steps=0, suites=[suite], shorten=False, tolerance=Tolerance(first=True))
    return [violation.requirement for violation in verdict.violations]


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_that_waits_wrongly_is_refused(kind: str) -> None:
    assert found(kind, "release", "streams") == [CALLS["release"]]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_waits_for_the_stream_of_another_memory_is_refused(call: str) -> None:
    assert found(ANOTHER, call, "streams") == [CALLS[call]]


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_one_memory_does_not_show_a_wait_for_the_stream_of_another(kind: str) -> None:
    """So a suite of two is needed."""
    assert bool(found(kind, "release", "flights")) == (kind in WRONG_WITHOUT_ANOTHER)
