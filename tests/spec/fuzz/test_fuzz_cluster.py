"""Runs of the fuzzer on many processes: joined, survived, interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.spec.engine.fork import in_fork
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.fuzz import HeapStep, Report, TargetError, fuzz
from syncedmem.spec.fuzz.cluster import fuzz_on_cluster, joined

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("distributed", reason="distributed is not installed: pip install distributed")

WRONG = f"{Path(__file__).parents[3] / 'examples' / 'wrong_allocators.py'}:PutBackTwice"


def apart(job: Callable[[], Any], folder: Path) -> Any:
    """What a job answers in a process of its own: Dask leaves threads and variables in one that has had a cluster."""
    return in_fork(job, folder / "answer", Limits())


def test_reports_are_joined_by_the_shortest_program() -> None:
    one = fuzz(WRONG, steps=2_000, first=True)
    (finding,) = one.violating
    longer = replace(finding, program=(*finding.program, HeapStep("allocate", (9, 8, 0, 0))), times=3)
    other = replace(one, wanted=replace(one.wanted, seed=7), violating=[longer], notes=["slow"], errors=[])
    both = joined([other, one])

    assert [(finding.program, 0, 4)] == [(item.program, item.seed, item.times) for item in both.violating]
    assert 2 * one.operations == both.operations
    assert 2 * one.checked["A16-no-leaks"] == both.checked["A16-no-leaks"]
    assert (["slow"], 2 * one.planned) == (both.notes, both.planned)
    assert 0 == both.replay(both.findings[0]).wanted.seed


def lose_a_worker() -> dict[str, object]:
    distributed: Any = import_module("distributed")
    lost: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = list(client.run(os.getpid).values())

        def lose_one(report: Report) -> None:
            assert report.wanted.target == WRONG
            if not lost:
                lost.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        report = fuzz_on_cluster(WRONG, jobs=4, scheduler=cluster.scheduler_address, steps=4_000, on_change=lose_one)

    requirements = [finding.requirement for finding in report.findings]
    return {"lost": len(lost), "planned": report.planned, "requirements": requirements, "errors": report.errors}


@pytest.mark.deep
def test_the_seeds_of_a_lost_worker_are_dealt_again(tmp_path: Path) -> None:
    answer = apart(lose_a_worker, tmp_path)

    assert (1, 4 * 4_000, []) == (answer["lost"], answer["planned"], answer["errors"])
    assert "A01-distinct-pointers" in answer["requirements"]


def interrupt_all() -> list[str]:
    found: list[Report] = []

    def interrupt(*_: object) -> None:
        if found and found[-1].findings:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fuzz_on_cluster(WRONG, jobs=2, seconds=600, steps=1 << 30, on_change=found.append, on_progress=interrupt)

    return [finding.requirement for finding in found[-1].findings]


@pytest.mark.deep
def test_an_interrupt_ends_all_runs_and_what_was_found_stays(tmp_path: Path) -> None:
    assert "A01-distinct-pointers" in apart(interrupt_all, tmp_path)


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        *((WRONG, {"jobs": jobs}, "jobs must be") for jobs in (-1, 0, 10_001)),
        (object(), {"jobs": 1}, "is an object"),
    ],
)
def test_what_cannot_be_run_on_a_cluster_is_refused(target: object, options: dict[str, Any], said: str) -> None:
    with pytest.raises(TargetError, match=said):
        fuzz_on_cluster(target, **options)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        *((WRONG, ("--scheduler", address), address) for address in ("tcp://127.0.0.1:1", "nonsense://x")),
        ("no_such.py:Pool", ("--jobs", "1"), "no_such"),
    ],
)
def test_what_cannot_be_reached_is_one_line(target: str, options: tuple[str, str], said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "syncedmem", "fuzz", target, *options]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    *_, last = run.stderr.splitlines()
    assert (2, "", "syncedmem: ") == (run.returncode, run.stdout, last[:11])
    assert said in last
