"""Makers in Python that end, crash or hang: the finding has the shortest program, and what was found before is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.conformance import Claim, PortReport
from syncedmem.spec.ports.makers import conform_maker
from syncedmem.spec.ports.protocol import PortError
from syncedmem.spec.ports.targets import MakerTarget

if TYPE_CHECKING:
    from pathlib import Path

ALLOCATORS = (CPUDeviceAllocator, SimulatedDeviceAllocator)
REFERENCE = MakerTarget("syncedmem.spec:ReferenceMemory", ALLOCATORS)
LIMITS = Limits(seconds=120)
ENDS = """
import os, time
from syncedmem import Blob
from syncedmem.spec import ReferenceMemory

class Ends(ReferenceMemory):
    def async_gpu_push(self, *, stream):
        super().async_gpu_push(stream=stream)
        os.abort()

class Hangs(ReferenceMemory):
    def mutable_cpu_data(self):
        time.sleep(600)

class LooksAway(Ends):
    def cpu_data(self):
        super().cpu_data()

class EndsBlobs(Blob):
    def update(self):
        if self.shape == (2, 3):
            os.abort()
        super().update()

class CountsMemories(ReferenceMemory):
    made = 0
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        CountsMemories.made += 1
        if CountsMemories.made == 20:
            os._exit(7)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "ends.py").write_text(ENDS, encoding="utf-8")
    return tmp_path / "ends.py"


@pytest.mark.deep
def test_a_maker_that_ends_its_process_has_the_shortest_program(file: Path) -> None:
    report = conform_maker(MakerTarget(f"{file}:Ends", ALLOCATORS), Claim("safe", "L2"), LIMITS)

    assert "does not conform to safe: P01-answers" == report.line
    (violation,) = report.violations
    assert violation.message == (
        "memory.async_gpu_push(stream=stream1): the process was ended by SIGABRT, in the suite cells"
    )
    assert [line for line in violation.statements if "memory." in line] == [
        "host_view = memory.cpu_data()",
        "memory.async_gpu_push(stream=stream1)",
    ]
    assert 'failures="1"' in report.as_junit()


@pytest.mark.deep
def test_a_maker_of_blobs_that_ends_its_process_has_the_shortest_program(file: Path) -> None:
    report = conform_maker(MakerTarget(f"{file}:EndsBlobs", ALLOCATORS), Claim("safe", "L4", blobs=True), LIMITS)

    (violation,) = report.violations
    assert violation.message == "blob.update(): the process was ended by SIGABRT, in the suite rules"
    assert [line for line in violation.statements if line.startswith(("blob", "view"))] == [
        "blob = subject.make((2, 3), dtype='int32', host=host, device=device)",
        "blob.update()",
    ]


@pytest.mark.deep
def test_what_was_found_before_it_ended_is_kept(file: Path) -> None:
    reports: list[PortReport] = []
    target = MakerTarget(f"{file}:LooksAway", ALLOCATORS)
    report = conform_maker(target, Claim("safe", "L2", keep_going=True), LIMITS, on_change=reports.append)

    assert [violation.requirement for violation in report.unfinished][-1] == "P01-answers"
    assert len(report.unfinished) > 1
    assert [len(report.unfinished) for report in reports] == list(range(1, len(report.unfinished)))


@pytest.mark.deep
def test_what_the_statements_alone_do_not_end_is_said(file: Path) -> None:
    report = conform_maker(MakerTarget(f"{file}:CountsMemories", ALLOCATORS), Claim("safe", "L0"), LIMITS)

    (violation,) = report.violations
    assert "the process ended with status 7, in the suite cells (these statements alone did not end it again)" in (
        violation.message
    )
    assert violation.statements


@pytest.mark.deep
def test_a_maker_that_conforms_is_reported_as_it_is_tested() -> None:
    reports: list[PortReport] = []
    stages: list[str] = []
    report = conform_maker(
        REFERENCE,
        Claim("caffe", "L0"),
        LIMITS,
        on_change=reports.append,
        progress=lambda stage, _: stages.append(stage),
    )

    assert report.passed
    assert reports[-1].line == report.line
    assert {"L0: cells", "L0: walks"} <= set(stages)


def test_what_cannot_be_tested_is_said(tmp_path: Path) -> None:
    with pytest.raises(PortError, match="has no nothing"):
        conform_maker(MakerTarget("syncedmem.spec:nothing", ALLOCATORS), Claim("caffe", "L0"), LIMITS)
    with pytest.raises(PortError, match="blobs are tested at L4, not at L0"):
        conform_maker(REFERENCE, Claim("caffe", "L0", blobs=True), LIMITS)
    (tmp_path / "early.py").write_text("import os\nos._exit(5)\n", encoding="utf-8")
    report = conform_maker(MakerTarget(f"{tmp_path / 'early.py'}:maker", ALLOCATORS), Claim("caffe", "L0"), LIMITS)
    assert report.violations[0].message == "the process ended with status 5, before anything was called"


@pytest.mark.deep
def test_a_hang_is_one_however_long_it_was(file: Path) -> None:
    report = conform_maker(MakerTarget(f"{file}:Hangs", ALLOCATORS), Claim("safe", "L0"), Limits(seconds=2, first=120))

    (violation,) = report.violations
    assert "memory.mutable_cpu_data(): the process was ended after 2 seconds" in violation.message
    assert "alone did not end it" not in violation.message
    assert [line for line in violation.statements if "memory." in line] == ["host_view = memory.mutable_cpu_data()"]
