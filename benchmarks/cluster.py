"""How much faster several processes take seeds than one, and what a seed costs when there are many workers.

The work of a seed is a run of the fuzzer that takes some seconds of a processor.  The cost of a seed is measured with
seeds that do nothing, on a cluster of 64 workers that are simulated: they are threads of this process, so the scheduler
and all of them share it, and a real cluster is cheaper.
"""

from __future__ import annotations

import logging
import os
import time
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from figures import options_of, publish

from syncedmem.spec.engine import cluster
from syncedmem.spec.engine.cluster import take_seeds
from syncedmem.spec.engine.seeds import SeedResult

WANTED = {"speed of 2 processes": 1.7, "seeds a second on 64 workers": 6.4}
"""At least.  64 workers have work all the time if seeds of 10 seconds come at this rate."""

POOL = "syncedmem.spec.mutants.allocator:Pool"
SEEDS, WORKERS, EMPTY_SEEDS = 8, 64, 2_000


def seconds_of(jobs: int, steps: int) -> float:
    """How long some seeds of the fuzzer take."""
    options = {"target": POOL, "steps": steps, "seconds": 600.0}
    start = time.perf_counter()
    spread = take_seeds("syncedmem.spec.fuzz.seeds:run_seed", options, range(SEEDS), jobs=jobs)
    took = time.perf_counter() - start
    if spread.answered != SEEDS:
        raise SystemExit("\n".join([spread.refused, *spread.failures]))
    return took


def nothing(function: str, options: object, seed: int) -> SeedResult:
    """A seed that takes no time, so that only what Dask and we do about it is left."""
    del function, options
    return SeedResult(seed, "answer", None, 1, 0.0, f"machine {seed % WORKERS}", (1, seed % WORKERS))


def rate_of_many_workers() -> float:
    """Seeds a second on many workers that are simulated."""
    library: Any = import_module("distributed")
    with (
        TemporaryDirectory() as folder,
        library.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            local_directory=folder,
        ) as found,
    ):
        setattr(cluster, "run_seed", nothing)  # noqa: B010 -- it is not exported
        start = time.perf_counter()
        spread = take_seeds("", None, range(EMPTY_SEEDS), jobs=1, scheduler=found.scheduler_address)
        took = time.perf_counter() - start
    if spread.answered != EMPTY_SEEDS:
        raise SystemExit("\n".join(spread.failures))
    return EMPTY_SEEDS / took


def main() -> None:
    """Measure, and print."""
    parser = options_of(__doc__)
    parser.add_argument("--steps", type=int, default=300_000, help="the steps of a seed")
    arguments = parser.parse_args()
    one, two = seconds_of(1, arguments.steps), seconds_of(2, arguments.steps)
    figures = {"speed of 2 processes": one / two, "seeds a second on 64 workers": rate_of_many_workers()}
    rows: list[dict[str, Any]] = [{"name": it, "figure": figures[it], "wanted": WANTED[it]} for it in figures]
    rows[0] |= {"seconds of 1": one, "seconds of 2": two}
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    publish(rows, lambda row: f"{row['name']}: {row['figure']:.1f} (wanted {row['wanted']})", arguments.json, load)


if __name__ == "__main__":
    main()
