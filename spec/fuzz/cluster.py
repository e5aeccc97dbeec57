"""Runs of the fuzzer on many processes and machines: one job for each seed, dealt out by Dask.

A job is `fuzz` with a seed of its own.  While it runs it sends its report whenever that changes, and at the end it
returns it.  Reports are joined by the key of a finding; the one with the shortest program stays.  Dask deals the job of
a worker that is lost to another one.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from syncedmem.model import MissingPackageError
from syncedmem.model.defaults import FUZZ
from syncedmem.model.errors import said

from ..engine.imports import safe_starts
from .finding import EngineError, TargetError
from .kit import fuzz
from .recognition import TargetSource
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from .finding import Finding

__all__ = ["fuzz_on_cluster", "joined"]

_PAUSE = 0.2
_SECONDS = 20.0
"""The time in which a scheduler has to answer."""
_MOST_JOBS = 10_000


def fuzz_on_cluster(  # noqa: PLR0913 -- all options are given by keyword
    target: object,
    *,
    jobs: int = 0,
    scheduler: str | None = None,
    seed: int = FUZZ.seed,
    on_progress: Callable[[str, int, int], None] | None = None,
    on_change: Callable[[Report], None] | None = None,
    **options: Any,
) -> Report:
    """Search for bugs in an allocator with many seeds at the same time.

    Parameters
    ----------
    target : str
        As for `fuzz`; a file must be in the same place on each machine.  An object is refused, because it has no name.
    jobs : int
        The number of runs; their seeds follow each other.  If 0, as many as the scheduler has workers.
    scheduler : str or None
        The address of a scheduler of Dask, as ``tcp://HOST:PORT``; if None, the processes are here.
    seed : int
        The first seed.
    on_progress, on_change : callable or None
        As for `fuzz`, with the runs that have ended, and with the joined report.
    **options
        As for `fuzz`, for each run.

    Returns
    -------
    Report
        The joined report.

    Raises
    ------
    TargetError
        If the target has no name, if a number is out of range, or if there is no scheduler at the address.
    EngineError
        If a run fails, or if workers are lost again and again.
    MissingPackageError
    """
    if not isinstance(target, str):
        raise TargetError(f"{TargetSource(target).name} is an object: name it, so that other processes can find it")
    if not 0 <= jobs <= _MOST_JOBS or (scheduler is None and not jobs):
        raise TargetError(f"jobs must be from 1 to {_MOST_JOBS:,}, got {jobs}")
    with _client(jobs, scheduler) as client:
        seeds = range(seed, seed + (jobs or len(client.scheduler_info(n_workers=-1)["workers"])))
        if not seeds:
            raise TargetError(f"the scheduler at {scheduler} has no workers")
        return _take(client, seeds, target, options, on_progress or (lambda _, __, ___: None), on_change or id)


@contextmanager
def _client(jobs: int, scheduler: str | None) -> Generator[Any]:
    """A client of a cluster on this machine, which ends with it, or of one that is there."""
    try:
        distributed: Any = import_module("distributed")
    except Exception as error:
        raise MissingPackageError("fuzzing with many processes", "distributed", "cluster", error) from error
    if scheduler is None:
        with (
            safe_starts(),
            distributed.LocalCluster(
                n_workers=jobs, threads_per_worker=1, dashboard_address=":0", silence_logs=50
            ) as own,
            distributed.Client(own) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=_SECONDS)
    except (OSError, ValueError) as error:
        raise TargetError(f"there is no scheduler at {scheduler}: {said(error)}") from error
    with client:
        yield client


def _take(  # noqa: PLR0913 -- what a run is made of
    client: Any,
    seeds: Sequence[int],
    target: str,
    options: dict[str, Any],
    on_progress: Callable[[str, int, int], None],
    on_change: Callable[[Report], object],
) -> Report:
    """Have all runs made; whatever happens, they end with this."""
    distributed: Any = import_module("distributed")
    topic, reports = f"syncedmem-{uuid4().hex}", dict[int, Report]()
    arrived: SimpleQueue[tuple[object, bytes]] = SimpleQueue()  # reports of runs that go on, from another thread
    stop = distributed.Event(topic, client=client)
    client.subscribe_topic(topic, arrived.put)
    pending = {
        seed: client.submit(_run, target, seed, topic, options, pure=False, key=f"{topic}-{seed}") for seed in seeds
    }
    try:
        while pending:
            ended, changed = [item for item, future in pending.items() if future.done()], False
            # A message and the result of a run come on two ways, so one that comes after the result is older than it.
            while not arrived.empty():
                seed, report = pickle.loads(arrived.get()[1])  # noqa: S301 -- from a worker of ours
                if seed in pending:
                    reports[seed], changed = report, True
            for seed in ended:
                reports[seed] = _result_of(pending.pop(seed))
            if ended or changed:
                on_change(joined(reports.values()))
            on_progress("runs", len(seeds) - len(pending), len(seeds))
            time.sleep(_PAUSE)
    finally:
        stop.set()
        client.cancel(list(pending.values()))
    return joined(reports.values())


class _StoppedError(Exception):
    """Nobody waits for a run any more; an interrupt would end its worker too, which may be somebody else's."""


def _result_of(future: Any) -> Report:
    """The report of a run."""
    try:
        report: Report = future.result()
    except (TargetError, EngineError):
        raise
    except Exception as error:
        raise EngineError(f"a run of the cluster failed: {said(error)}") from error
    return report


def _run(target: str, seed: int, topic: str, options: dict[str, Any]) -> Report:
    """The job of a worker: a run with one seed, which ends when nobody waits for it any more."""
    distributed: Any = import_module("distributed")
    worker = distributed.get_worker()
    stop, own = distributed.Event(topic), threading.get_ident()

    def tell(report: Report) -> None:
        worker.log_event(topic, pickle.dumps((seed, report)))

    def look(*_: object) -> None:
        if threading.get_ident() == own and stop.is_set():  # a thread of its own tells the progress too
            raise _StoppedError

    return fuzz(target, seed=seed, on_change=tell, on_progress=look, **options)


def joined(reports: Iterable[Report]) -> Report:
    """One report of several: of findings with the same key the shortest, counted together."""
    every = sorted(reports, key=lambda report: report.wanted.seed)
    findings: dict[str, Finding] = {}
    for report in every:
        for found in report.violating:
            finding = replace(found, seed=report.wanted.seed)
            other = findings.get(finding.key)
            best = finding if other is None else min(other, finding, key=lambda item: item.effort)
            findings[finding.key] = replace(best, times=finding.times + (other.times if other else 0))
    # One may have found an arena.
    promises = {name: text for report in every for name, text in report.wanted.promises.items()}
    whole = replace(
        every[0],
        wanted=replace(every[0].wanted, promises=promises),
        capabilities=every[0].capabilities.with_promises(promises),
        violating=list(findings.values()),
        suites=[],
        checked=sum((report.checked for report in every), Counter[str]()),
        lost=any(report.lost for report in every),
        errors=list(dict.fromkeys(text for report in every for text in report.errors)),
        notes=list(dict.fromkeys(text for report in every for text in report.notes)),
        planned=sum(report.planned for report in every),
    )
    for suite in (suite for report in every for suite in report.suites):
        whole.ran(suite.name, suite.cases, suite.steps, suite.seconds)
    return whole
