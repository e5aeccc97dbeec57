"""Learning machines: what is learned, how far that can be trusted, and which cells are found to be wrong."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mutants.memory.handmade import HandmadeMemory
from mutants.registry import MEMORY_BUGS
from port_fixtures import LIMITS, wrong

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.model import InvalidArgumentError, SyncedHead
from syncedmem.spec import ReferenceMemory, Subject
from syncedmem.spec.learning import LearnReport, LearnWanted, learn, learn_subject
from syncedmem.spec.ports.protocol import PortError
from syncedmem.spec.ports.targets import MakerTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.spec.requirements import Level

importlib.import_module("mutants.memory")


def learned(make: Any, *, edition: str = "cpu_only", level: Level = "L2", **wanted: Any) -> LearnReport:
    device = None if edition == "cpu_only" else SimulatedDeviceAllocator()
    subject = Subject("here", make, CPUDeviceAllocator(), device, "caffe", level=level, edition=edition)
    return learn_subject(subject, LearnWanted(**wanted))


def broken(report: LearnReport) -> dict[str, str]:
    """Return the cells that differ, each with the number of the requirement."""
    return {cell: finding.requirement.partition("-")[0] for cell, finding in report.findings.items()}


def every(*calls: str, where: str, by: str) -> dict[str, str]:
    return {f"{call} in {word}": by for call in calls for word in where.split()}


# --- what is learned


@pytest.mark.parametrize("make", [ReferenceMemory, SyncedMemory])
@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_a_memory_without_a_device_is_the_declared_machine(make: Any, level: Level) -> None:
    report = learned(make, level=level, steps=200)

    assert report.passed, report.line
    assert (4, 4, 27, 27) == (report.states, report.right, report.judged, report.cells)


@pytest.mark.deep
@pytest.mark.parametrize("make", [ReferenceMemory, SyncedMemory])
def test_a_memory_with_a_device_is_the_declared_machine(make: Any) -> None:
    report = learned(make, edition="caffe", steps=2000)

    assert report.passed, report.line
    assert (35, 170, 170) == (report.states, report.judged, report.cells)


def test_a_memory_that_does_not_show_its_head_is_learned_by_its_other_answers() -> None:
    class Silent:
        def __init__(self, size: int, **allocators: Any) -> None:
            memory = self._memory = ReferenceMemory(size, **allocators)
            self.cpu_data, self.mutable_cpu_data, self.set_cpu_data = (
                memory.cpu_data,
                memory.mutable_cpu_data,
                memory.set_cpu_data,
            )
            self.gpu_data, self.mutable_gpu_data, self.set_gpu_data = (
                memory.gpu_data,
                memory.mutable_gpu_data,
                memory.set_gpu_data,
            )
            self.async_gpu_push, self.close = memory.async_gpu_push, memory.close

    report = learned(Silent)

    assert report.passed, report.line
    assert report.picture.startswith("<svg")


# --- what is found


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize(
    ("bug", "cells"),
    [
        ("CopiesUpOnlyOnce", every("gpu_data", "mutable_gpu_data", where="C:oo C:eo C:oe C:ee", by="R08")),
        ("ReadingMovesHead", every("gpu_data", where="C:o- C:e- C:oo C:eo C:oe C:ee", by="R12")),
        ("HostAdoptionLeaks", every("set_cpu_data", where="C:o- S:oo G:oo G:oe C:oo S:oe C:oe", by="R17")),
        ("CopyDownTakesOwnership", every("cpu_data", "mutable_cpu_data", where="G:eo G:ee", by="R23")),
    ],
)
def test_a_seeded_bug_is_found_in_its_cells(bug: str, cells: dict[str, str]) -> None:
    report = learned(MEMORY_BUGS[bug].make, edition="caffe")

    assert cells == broken(report)
    assert not report.passed
    assert "✗" in report.picture


def test_what_is_wrong_of_a_new_memory_is_no_cell() -> None:
    report = learned(MEMORY_BUGS["InitiallySynced"].make, edition="caffe")

    assert {"a new memory": "R02"} == broken(report)
    assert 0 == report.judged


def test_what_lies_behind_a_difference_is_not_judged() -> None:
    class Early(ReferenceMemory):
        @property
        def head(self) -> SyncedHead:
            return SyncedHead.UNINITIALIZED

    report = learned(Early)

    assert {"cpu_data in U:--", "mutable_cpu_data in U:--", "set_cpu_data in U:--"} == {*broken(report)}
    assert report.judged < report.cells


@pytest.mark.deep
def test_what_is_deeper_than_the_bound_is_not_found_and_the_bound_says_so() -> None:
    report = learned(MEMORY_BUGS["NinetiethCopyDownSkipped"].make, edition="caffe")

    assert (True, 35) == (report.passed, report.right)


class ThirdNull(HandmadeMemory):
    """After so many refused pointers nothing can be read: states that only their number tells apart."""

    nulls = 0
    most = 2

    def set_cpu_data(self, data: Any) -> None:
        if data is None and self.head is SyncedHead.UNINITIALIZED:
            self.nulls += 1
        super().set_cpu_data(data)

    def cpu_data(self) -> Any:
        if self.head is SyncedHead.UNINITIALIZED and self.nulls >= self.most:
            raise RuntimeError("nulls")
        return super().cpu_data()


@pytest.mark.parametrize(
    ("depth", "wanted", "found"), [(2, 0, False), (2, 1, True), pytest.param(3, 2, True, marks=pytest.mark.deep)]
)
def test_a_hidden_state_is_found_from_its_bound_on(depth: int, wanted: int, found: bool) -> None:
    report = learned(type("Hidden", (ThirdNull,), {"most": depth}), level="L0", extra=wanted)

    assert found == ("cpu_data in U:--" in broken(report)), report.line
    assert report.right == report.states + wanted


@pytest.mark.deep
def test_random_calls_may_find_what_is_deeper() -> None:
    report = learned(type("Hidden", (ThirdNull,), {"most": 2}), level="L0", steps=20_000, seed=1)

    assert "cpu_data in U:--" in broken(report)


def test_the_program_of_a_finding_shows_it() -> None:
    class Careless(HandmadeMemory):
        def set_cpu_data(self, data: Any) -> None:
            if data is not None:
                super().set_cpu_data(data)

    cell, first = next(iter(learned(Careless).findings.items()))

    assert ("set_cpu_data(NULL) in U:--", "R20-null-refused") == (cell, first.requirement)
    assert "memory.set_cpu_data(None)" == first.statements[-1]


# --- what has no machine


@pytest.mark.deep
def test_a_memory_without_an_end_of_states_is_given_up() -> None:
    class Counts(ReferenceMemory):
        looks = 0

        def cpu_data(self) -> Any:
            self.looks += 1
            return bytes(super().cpu_data()) + bytes(self.looks)

    report = learned(Counts, level="L1")

    assert "different answers" in report.stopped
    assert not report.passed


def test_two_answers_to_the_same_calls_are_no_machine() -> None:
    looks = 0

    class Keeps(ReferenceMemory):
        def cpu_data(self) -> Any:
            nonlocal looks
            looks += 1
            if looks > 20:
                raise RuntimeError("too often")
            return super().cpu_data()

    report = learned(Keeps)

    assert "cpu_data is answered in two ways" in report.stopped
    assert "cpu_data in C:o-" in broken(report)


# --- ports in processes of their own

MAKER = """
import os, time
from syncedmem.spec import ReferenceMemory

class Ends(ReferenceMemory):
    def mutable_cpu_data(self):
        os._exit(3)

class Hangs(ReferenceMemory):
    def mutable_cpu_data(self):
        time.sleep(600)

def dead(size, *, host, device):
    os._exit(4)

def broken(size, *, host, device):
    raise RuntimeError(size)

def few(size):
    return size
"""


@pytest.fixture
def maker(tmp_path: Path) -> Callable[[str], MakerTarget]:
    """Return a function that makes a target of a maker of the module above."""
    (tmp_path / "makers_to_learn.py").write_text(MAKER, encoding="utf-8")

    def target(name: str) -> MakerTarget:
        return MakerTarget(f"{tmp_path / 'makers_to_learn.py'}:{name}", (CPUDeviceAllocator, SimulatedDeviceAllocator))

    return target


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "how", "last"),
    [
        ("Ends", "ended with status 3", "host_view = memory.mutable_cpu_data()"),
        ("Hangs", "without progress", "host_view = memory.mutable_cpu_data()"),
        ("dead", "ended with status 4", "memory = subject.make(5, host=host, device=device)"),
        ("broken", "no memory can be made", "memory = subject.make(5, host=host, device=device)"),
    ],
)
def test_a_maker_that_does_not_live_is_told_with_its_program(
    name: str, how: str, last: str, maker: Callable[[str], MakerTarget]
) -> None:
    report = learn(maker(name), LearnWanted(edition="cpu_only"), replace(LIMITS, seconds=2, memory=1 << 33))

    assert how in report.stopped
    assert last == next(iter(report.findings.values())).statements[-1]


@pytest.mark.parametrize(("name", "level"), [("nothing", ""), ("few", ""), ("Ends", "L9")])
def test_a_maker_that_cannot_be_asked(name: str, level: str, maker: Callable[[str], MakerTarget]) -> None:
    with pytest.raises(PortError, match=name if level == "" else level):
        learn(maker(name), LearnWanted(level, edition="cpu_only"), LIMITS)


@pytest.mark.deep
@pytest.mark.parametrize(("way", "requirement"), [("crash", "P01"), ("garbage", "P02")])
def test_a_program_that_dies_answers_that(way: str, requirement: str) -> None:
    report = learn(wrong(way), LearnWanted(level="L0"), LIMITS)

    assert {requirement} == {*broken(report).values()}
    assert {"gpu_data"} == {cell.partition(" ")[0] for cell in report.findings}
    assert '"op": "gpu_data"' in next(iter(report.findings.values())).statements[-1]


@pytest.mark.deep
def test_a_program_that_hangs_is_not_asked_for_ever() -> None:
    report = learn(wrong("hang"), LearnWanted(), replace(LIMITS, seconds=1))

    assert "not answered" in report.stopped
    assert {"P01"} == {*broken(report).values()}


@pytest.mark.parametrize("extra", [-1, 4, 10**9])
def test_a_bound_that_cannot_be_tested_is_refused(extra: int) -> None:
    with pytest.raises(InvalidArgumentError, match=str(extra)):
        learn(wrong("right"), LearnWanted(extra=extra), LIMITS)
