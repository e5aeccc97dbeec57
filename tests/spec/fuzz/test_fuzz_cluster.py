"""Runs of the fuzzer on many processes: joined, survived, interrupted."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from syncedmem.spec.fuzz import HeapStep, Report, TargetError, fuzz
from syncedmem.spec.fuzz import cluster as many
from syncedmem.spec.fuzz.cluster import fuzz_on_cluster, joined

pytest.importorskip("distributed", reason="distributed is not installed: pip install distributed")

WRONG = f"{Path(__file__).parents[3] / 'examples' / 'wrong_allocators.py'}:PutBackTwice"


def test_reports_are_joined_by_the_shortest_program() -> None:
    one = fuzz(WRONG, steps=2_000, first=True)
    (finding,) = one.violating
    longer = replace(finding, program=(*finding.program, HeapStep("allocate", (9, 8, 0, 0))), times=3)
    other = replace(one, wanted=replace(one.wanted, seed=7), violating=[longer], notes=["slow"], errors=[])
    both = joined([other, one])

    assert [(finding.program, 0, 4)] == [(it.program, it.seed, it.times) for it in both.violating]
    assert 2 * one.operations == both.operations
    assert 2 * one.checked["A16-no-leaks"] == both.checked["A16-no-leaks"]
    assert (["slow"], 2 * one.planned) == (both.notes, both.planned)
    assert 0 == both.replay(both.findings[0]).wanted.seed


@pytest.mark.deep
def test_the_seeds_of_a_lost_worker_are_dealt_again() -> None:
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

    assert lost
    assert 4 * min(4_000, 45_000) == report.planned
    assert "A01-distinct-pointers" in [it.requirement for it in report.findings]
    assert not report.errors


@pytest.mark.deep
def test_an_interrupt_ends_all_runs_and_what_was_found_stays() -> None:
    found: list[Report] = []

    def interrupt(*_: object) -> None:
        if found and found[-1].findings:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fuzz_on_cluster(WRONG, jobs=2, seconds=600, steps=1 << 30, on_change=found.append, on_progress=interrupt)

    assert "A01-distinct-pointers" in [it.requirement for it in found[-1].findings]


@pytest.mark.parametrize("jobs", [-1, 0, 10_001])
def test_numbers_out_of_range_are_refused(jobs: int) -> None:
    with pytest.raises(TargetError, match="jobs must be"):
        fuzz_on_cluster(WRONG, jobs=jobs)


def test_an_object_without_a_name_is_refused() -> None:
    with pytest.raises(TargetError, match="is an object"):
        fuzz_on_cluster(object(), jobs=1)


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(TargetError, match=address):
            fuzz_on_cluster(WRONG, scheduler=address)


def test_a_target_that_is_refused_is_refused_once() -> None:
    with pytest.raises(TargetError, match="no_such"):
        fuzz_on_cluster("no_such.py:Pool", jobs=1)
