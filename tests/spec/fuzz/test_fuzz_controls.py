"""Right allocators are never accused and never incomplete, and their wrong twins are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from controls.allocators import CONTROLS, PRELOADED, SOURCE, TWINS, preloaded_beside
from programs import program

from syncedmem.spec.engine.fork import in_fork
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.fuzz import fuzz
from syncedmem.spec.fuzz.cluster import fuzz_on_cluster

if TYPE_CHECKING:
    from collections.abc import Generator

    from controls.allocators import Control

    from syncedmem.spec.fuzz import Report


PLAN: dict[str, Any] = {"steps": 20_000, "seconds": 30, "first": True, "hang": 1}
"""What a twin is looked for with."""


def compiled(library: Path, *flags: str) -> Path:
    """Compile the controls, or their twins."""
    for source, made in ((SOURCE, library), (PRELOADED, preloaded_beside(library))):
        command: list[str | Path] = [
            program("cc"),
            "-shared",
            "-fPIC",
            "-O1",
            "-fno-builtin",
            *flags,
            "-o",
            made,
            source,
            "-lpthread",
        ]
        subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("right") / "controls.so")


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("twins") / f"{TWINS}.so", "-DTWIN", "-DWRAPS")


@pytest.mark.deep(quick=18)
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_a_right_allocator_is_not_accused(control: Control, right: Path) -> None:
    report = fuzz(control.target(right), steps=500, seconds=2, promises=control.promises)

    assert report.passed, [finding.message for finding in report.findings] or report.incomplete


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_a_right_allocator_is_not_accused_with_other_seeds(control: Control, seed: int, right: Path) -> None:
    """Many short plans have more first calls of a process, and more mixes, than a few long ones."""
    report = fuzz(control.target(right), seed=seed, steps=4_000, seconds=4, promises=control.promises)

    assert report.passed, [finding.message for finding in report.findings] or report.incomplete


@pytest.mark.deep
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_a_right_allocator_is_not_accused_in_a_long_run(control: Control, right: Path) -> None:
    report = fuzz(control.target(right), seed=1, steps=40_000, seconds=20, promises=control.promises)

    assert report.passed, [finding.message for finding in report.findings] or report.incomplete


@pytest.mark.deep
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_its_wrong_twin_is_refused_by_its_requirement(control: Control, twins: Path) -> None:
    report = fuzz(control.target(twins), promises=control.promises, **PLAN)

    assert {finding.requirement[:3] for finding in report.findings[:1]} & control.broken, report.as_json()["findings"]


# --- hardship: nobody right is accused of what the machine, or somebody else, does to the fuzzer

SAMPLE = [CONTROLS[name] for name in ("mutex", "cache", "wait", "page", "trim", "direct", "Asked", "Events")]

UNDER_HARDSHIP = """
import json, os, resource, signal, sys

target, promises, stops, limits = json.loads(sys.argv[2])
for name, limit in limits.items():
    resource.setrlimit(getattr(resource, name), (limit, limit))
if limits:  # a stack is made when a program begins
    code, again = sys.argv[1], json.dumps([target, promises, stops, {}])
    os.execv(sys.executable, [sys.executable, "-c", code, code, again])

from syncedmem.spec.fuzz import fuzz

def stop(generator, done, planned):
    global stops
    if stops and generator == "fast" and done:
        stops = False
        os.kill(os.getpid(), signal.SIGSTOP)

report = fuzz(target, steps=4_000, seconds=8, promises=promises, on_progress=stop)
print([finding.message for finding in report.findings], report.incomplete, report.errors, report.notes)
sys.exit(not report.passed)
"""


@contextmanager
def begun(
    control: Control, library: Path, limits: dict[str, int], *, stops: bool = False
) -> Generator[subprocess.Popen[str]]:
    """A run in a process of its own, with limits of the system."""
    asked = json.dumps([control.target(library), control.promises, stops, limits])
    command = [sys.executable, "-c", UNDER_HARDSHIP, UNDER_HARDSHIP, asked]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with run:
        try:
            yield run
        finally:
            run.kill()


@pytest.mark.deep
@pytest.mark.parametrize("control", SAMPLE, ids=lambda control: control.name)
def test_a_right_allocator_is_not_accused_on_a_machine_that_is_busy(control: Control, right: Path) -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 2)]
    try:
        with begun(control, right, {}) as run:
            said, _ = run.communicate()
    finally:
        for process in busy:
            with process:
                process.kill()

    assert not run.returncode, said


@pytest.mark.deep
@pytest.mark.parametrize("control", SAMPLE, ids=lambda control: control.name)
def test_a_right_allocator_is_not_accused_if_the_fuzzer_was_stopped_for_a_while(control: Control, right: Path) -> None:
    with begun(control, right, {}, stops=True) as run:
        stopped = os.waitid(os.P_PID, run.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        time.sleep(2)
        run.send_signal(signal.SIGCONT)
        said, _ = run.communicate()

    assert stopped is not None
    assert os.CLD_STOPPED == stopped.si_code, said
    assert not run.returncode, said


@pytest.mark.deep
@pytest.mark.parametrize(("limit", "most"), [("RLIMIT_STACK", 256 << 10), ("RLIMIT_AS", 2 << 30)])
@pytest.mark.parametrize("control", SAMPLE, ids=lambda control: control.name)
def test_a_right_allocator_is_not_accused_where_there_is_little(
    control: Control, limit: str, most: int, right: Path
) -> None:
    """A stack of 256 KiB, or an address space of 2 GiB."""
    with begun(control, right, {limit: most}) as run:
        said, _ = run.communicate()

    assert not run.returncode, said


@pytest.mark.deep
@pytest.mark.parametrize("control", SAMPLE, ids=lambda control: control.name)
def test_a_right_allocator_is_not_accused_where_few_processes_may_be(control: Control, right: Path) -> None:
    """The processes and threads that this user has by now, and sixteen more."""
    if not os.geteuid():
        pytest.skip("root may have any number of processes")
    user, threads = os.getuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            threads += len([*(process / "task").iterdir()]) if process.stat().st_uid == user else 0
    with begun(control, right, {"RLIMIT_NPROC": threads + 16}) as run:
        said, _ = run.communicate()

    assert not run.returncode, said


# --- many runs


def first_of(report: Report) -> list[list[int | str]]:
    """What was found first, by each seed, and after how many operations."""
    seeds = [report.wanted.seed if item.seed is None else item.seed for item in report.findings]
    return [[seed, item.requirement, item.operations] for seed, item in zip(seeds, report.findings, strict=True)]


@pytest.mark.deep
@pytest.mark.parametrize("name", ["shard", "bitmap", "RefusedOnce"])
def test_runs_beside_each_other_find_what_each_finds_alone_and_at_the_same_operation(
    name: str, twins: Path, tmp_path: Path
) -> None:
    if find_spec("distributed") is None:  # it is not imported in this process, where it would stay
        pytest.skip("distributed is not installed: pip install distributed")
    control, seeds = CONTROLS[name], (3, 4)
    target = control.target(twins)

    def on_cluster() -> list[list[list[int | str]]]:
        runs = [fuzz_on_cluster(target, jobs=jobs, seed=3, promises=control.promises, **PLAN) for jobs in (1, 2)]
        return [first_of(report) for report in runs]

    alone = [first for seed in seeds for first in first_of(fuzz(target, seed=seed, promises=control.promises, **PLAN))]
    # In a process of its own: Dask leaves threads and variables in one that has had a cluster.
    beside: Any = in_fork(on_cluster, tmp_path / "answer", Limits())

    one, two = beside
    assert [3, 4] == [seed for seed, _, _ in alone]
    assert alone[:1] == one
    assert two  # of what both have found, only the shorter one stays
    assert all(first in alone for first in two), (alone, two)
