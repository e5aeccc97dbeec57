"""Many seeds: each has a process of its own, counts once, and is taken again if its process or its worker is lost."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cluster_jobs
import pytest

from syncedmem.model import InvalidArgumentError, MissingPackageError
from syncedmem.spec.engine import cluster
from syncedmem.spec.engine.cluster import TRIES, Machine, Spread, take_seeds
from syncedmem.spec.engine.seeds import SeedLostError, SeedResult, end_running, run_seed, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = range(6)
ANY_PORT = "127.0.0.1:0"
PATIENCE = 240
"""Seconds; nothing here takes so long, also under load."""


@pytest.fixture(autouse=True, scope="module")
def processes_find_the_jobs() -> Iterator[None]:
    """Before there are workers, which have the environment that they begin with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(cluster_jobs.__file__).parent))
        yield


def result(
    seed: int, answer: object = None, *, kind: Any = "answer", machine: str = "a", worker: int = 1
) -> SeedResult:
    return SeedResult(seed, kind, answer, 10, 1.0, machine, (1, worker))


# --- the process of a seed


def asked(function: str, options: object = 0, *, close: bool = True) -> tuple[Any, ...] | None:
    """What the process of a seed answers, without a process; None if it sends nothing."""
    there, lifeline = os.pipe()
    answers, sent = os.pipe()
    os.write(lifeline, pickle.dumps((f"cluster_jobs:{function}", options, 3)))
    try:
        serve(there, sent)
        with os.fdopen(answers, "rb") as file:
            data = file.read()
        return pickle.loads(data) if data else None  # noqa: S301 -- our own
    finally:
        if close:
            os.close(lifeline)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("square", ("answer", 9, 7)),
        ("refused", ("refused", "7/3: No space left on device", 0)),
        ("failed", ("failed", "ZeroDivisionError: 7: 3 (cluster_jobs.py:26)", 0)),
    ],
)
def test_an_exception_is_an_answer_too(function: str, said: tuple[Any, ...]) -> None:
    assert said == asked(function, 7)


def test_a_job_ends_when_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there, lifeline = os.pipe()
    answers, sent = os.pipe()
    os.write(lifeline, pickle.dumps(("cluster_jobs:square", 0, 3)))
    interrupted: list[bool] = []

    def job(options: object, seed: int) -> None:
        del options, seed
        try:
            os.close(lifeline)
            threading.Event().wait(PATIENCE)
        except KeyboardInterrupt:
            interrupted.append(True)
            raise

    monkeypatch.setattr(cluster_jobs, "square", job)
    before = signal.getsignal(signal.SIGINT)
    serve(there, sent)

    assert [True] == interrupted
    assert before == signal.getsignal(signal.SIGINT)
    with os.fdopen(answers, "rb") as file:
        assert file.read() == b""


def test_a_seed_has_a_process_of_its_own() -> None:
    found = run_seed("cluster_jobs:square", 5, 4)

    assert ("answer", 16, 5, 4) == (found.kind, found.answer, found.operations, found.seed)
    assert os.getpid() == found.worker[0]


def test_a_process_without_an_answer_is_lost() -> None:
    with pytest.raises(SeedLostError, match="its process was ended by SIGKILL"):
        run_seed("cluster_jobs:ends", "always", cluster_jobs.LOST)


def test_a_process_that_cannot_take_its_job_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(SeedLostError, match="its process ended with status 1"):
        run_seed("cluster_jobs:square", "x" * (1 << 20), 0)


def test_what_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    for name in ("begun-1", "begun-2", "go"):
        os.mkfifo(tmp_path / name)
    lost: list[BaseException] = []

    def run() -> None:
        try:
            run_seed("cluster_jobs:meets", str(tmp_path), cluster_jobs.LOST)
        except SeedLostError as error:
            lost.append(error)

    waiting = threading.Thread(target=run, daemon=True)
    waiting.start()
    with (tmp_path / "begun-1").open(encoding="utf-8") as begun:
        assert os.getpid() == int(begun.readline())
        end_running()
        assert begun.read() == ""  # it has ended
    waiting.join(PATIENCE)

    assert [SeedLostError] == [type(it) for it in lost]


# --- what has become of the seeds


def test_a_seed_counts_once() -> None:
    spread = Spread(tuple(SEEDS))

    assert spread.add(result(1, "first"))
    assert not spread.add(result(1, "second"))
    assert ["first"] == spread.answers
    assert {"a": Machine(1, 10, {(1, 1)})} == spread.machines


def test_the_order_of_the_results_changes_nothing() -> None:
    results = [result(2, "c", machine="b"), result(0, "a"), result(1, "b", worker=2)]
    one, other = Spread((0, 1, 2)), Spread((0, 1, 2))
    for it in results:
        one.add(it)
    for it in reversed(results):
        other.add(it)

    assert ["a", "b", "c"] == one.answers == other.answers
    assert one.as_json() == other.as_json()
    assert one.line == "3 of 3 seeds on 2 machines, 3 at a time, 30 operations"


def test_what_has_no_result_is_said() -> None:
    spread = Spread((0, 1, 2), lost={2: "gone"}, again=1)
    spread.add(result(0, "broken", kind="failed"))
    spread.add(result(1, "no such target", kind="refused"))

    assert [] == spread.answers
    assert ["seed 0 has no result: broken", "seed 2 has no result: gone"] == spread.failures
    assert spread.refused == "no such target"
    assert spread.line.endswith("; 1 seed taken again")
    spread.lost[5] = "gone"
    assert ["seed 0 has no result: broken", "2 seeds, 2 to 5, have no result: gone"] == spread.failures


# --- on this machine


def test_all_seeds_run_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of one of them is ended once.  The scheduler knows few of them at a time."""
    monkeypatch.setattr(cluster, "WINDOW", 2)
    seen: list[int] = []
    spread = take_seeds(
        "cluster_jobs:ends", str(tmp_path), SEEDS, jobs=2, on_result=lambda it: seen.append(len(it.results))
    )

    assert list(SEEDS) == spread.answers
    assert [1, 2, 3, 4, 5, 6] == seen
    assert 1 == spread.again
    assert 2 == cluster_jobs.times(tmp_path, cluster_jobs.LOST)
    assert not spread.failures


def test_a_seed_that_is_always_lost_loses_nothing_else() -> None:
    spread = take_seeds("cluster_jobs:ends", "always", range(3), jobs=2)

    assert [0, 2] == spread.answers
    assert ["seed 1 has no result: its process was ended by SIGKILL"] == spread.failures
    assert TRIES - 1 == spread.again


def test_a_refusal_ends_the_run() -> None:
    spread = take_seeds("cluster_jobs:refused", "disk", range(50), jobs=1)

    assert spread.refused.endswith("No space left on device")
    assert len(spread.results) == 1


def test_without_dask_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(MissingPackageError, match="needs the package distributed: pip install distributed fsspec"):
        take_seeds("cluster_jobs:square", 0, SEEDS, jobs=1)


# --- on a cluster


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A cluster of two processes."""
    library = import_module("distributed")
    with library.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=ANY_PORT, silence_logs=logging.CRITICAL
    ) as found:
        yield found


def test_nothing_is_lost_and_nothing_counts_twice_when_a_worker_is_killed(tmp_path: Path, workers: Any) -> None:
    """The worker is killed while it waits for a seed, whose process ends with it."""
    for name in ("begun-1", "begun-2", "go"):
        os.mkfifo(tmp_path / name)
    seen: list[str] = []

    def play() -> None:
        with (tmp_path / "begun-1").open(encoding="utf-8") as begun:
            os.kill(int(begun.readline()), signal.SIGKILL)
            seen.append(begun.read())  # its end: the process of the seed has ended
        with (tmp_path / "begun-2").open(encoding="utf-8") as begun:
            seen.append(begun.readline())
            (tmp_path / "go").write_text("go", encoding="utf-8")

    threading.Thread(target=play, daemon=True).start()  # if nobody begins, it waits, and the test fails
    spread = take_seeds("cluster_jobs:meets", str(tmp_path), SEEDS, jobs=1, scheduler=workers.scheduler_address)

    assert seen[0] == ""
    assert seen[1] != ""
    assert list(SEEDS) == spread.answers
    assert not spread.failures
    assert 2 == cluster_jobs.times(tmp_path, cluster_jobs.LOST)
    assert spread.as_json()["done"] == len(SEEDS)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "foo://x", ""])
def test_a_wrong_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ADDRESS_SECONDS", 0.2)

    with pytest.raises(InvalidArgumentError, match="scheduler must be the address of a Dask scheduler"):
        take_seeds("cluster_jobs:square", 0, SEEDS, jobs=1, scheduler=address)


def test_a_scheduler_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ADDRESS_SECONDS", 1)
    library = import_module("distributed")
    with (
        library.LocalCluster(n_workers=0, dashboard_address=ANY_PORT, silence_logs=logging.CRITICAL) as empty,
        pytest.raises(InvalidArgumentError, match="a Dask scheduler that has a worker"),
    ):
        take_seeds("cluster_jobs:square", 0, SEEDS, jobs=1, scheduler=empty.scheduler_address)


def test_workers_of_another_version_are_refused(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs on the workers says what they have."""
    assert cluster.here() == cluster.WANTED
    monkeypatch.setattr(cluster, "WANTED", "9.9")

    with pytest.raises(InvalidArgumentError, match=r"whose workers have syncedmem 9\.9, not "):
        take_seeds("cluster_jobs:square", 0, SEEDS, jobs=1, scheduler=workers.scheduler_address)


def test_workers_without_syncedmem_are_refused(workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("def here(): return ''", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(cluster, "here", import_module("only_here").here)

    with pytest.raises(InvalidArgumentError, match=r"whose workers have syncedmem .* .*No module named"):
        take_seeds("cluster_jobs:square", 0, SEEDS, jobs=1, scheduler=workers.scheduler_address)


def test_without_the_scheduler_what_there_is_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ADDRESS_SECONDS", 1)
    library = import_module("distributed")
    with library.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=ANY_PORT, silence_logs=logging.CRITICAL
    ) as found:
        spread = take_seeds(
            "cluster_jobs:square",
            0,
            range(3),
            jobs=1,
            scheduler=found.scheduler_address,
            on_result=lambda it: None if it.lost else found.close(),
        )

    assert len(spread.answers) == 1
    assert {"the scheduler was lost"} == set(spread.lost.values())
    assert len(spread.lost) == 2
