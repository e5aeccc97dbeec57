"""How near vector operations come to the speed of the memory, as ratios within one run.

Run with ``make bench``.  The machine's own speed is measured beside ours: *triad* is the best that NumPy
does with two streams in and one out, *read* the best with one stream in; each with one thread and with one for every
processor.  In every round everything is run once, in an order that changes; a ratio is that of the best times, because
others who use the machine only ever make it slower.
"""

from __future__ import annotations

import os
import random
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from figures import options_of, publish

from syncedmem.runtime import CPUDeviceAllocator, arithmetic_of

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1 << 26
ROUNDS = 25
PIECE = 1 << 20

Job = tuple["Callable[[], object]", int]
"""What is run, and how many bytes it must move for each element."""


def everywhere(pool: ThreadPoolExecutor, threads: int, piece: Callable[[slice], object]) -> Callable[[], object]:
    """A job done in pieces, by so many threads."""
    slices = [slice(start, start + PIECE) for start in range(0, SIZE, PIECE)]

    def some(number: int) -> None:
        for part in slices[number::threads]:
            piece(part)

    return lambda: list(pool.map(some, range(threads)))


def machine(pool: ThreadPoolExecutor, x: Any, y: Any, z: Any) -> tuple[dict[str, Job], dict[str, Job]]:
    """The contenders for the speed of this machine: of a triad, and of reading."""
    threads = len(os.sched_getaffinity(0))
    dots = x.reshape(-1, 4096)
    triads: dict[str, Job] = {
        "np.add(x, y, out=z)": (lambda: np.add(x, y, out=z), 12),
        f"the same, {threads} threads": (everywhere(pool, threads, lambda s: np.add(x[s], y[s], out=z[s])), 12),
        f"np.add(x, y, out=y), {threads} threads": (
            everywhere(pool, threads, lambda s: np.add(x[s], y[s], out=y[s])),
            12,
        ),
    }
    reads: dict[str, Job] = {
        "np.max(x)": (lambda: np.max(x), 4),
        f"the same, {threads} threads": (everywhere(pool, threads, lambda s: np.max(x[s])), 4),
        f"np.vecdot(x, x), {threads} threads": (
            everywhere(pool, threads, lambda s: np.vecdot(*[dots[s.start // 4096 : s.stop // 4096]] * 2)),
            4,
        ),
    }
    return triads, reads


def best_times(jobs: dict[str, Job], rounds: int) -> dict[str, float]:
    """The best time of each job."""
    times = dict.fromkeys(jobs, float("inf"))
    order, shuffle = list(jobs), random.Random(1).shuffle  # noqa: S311 -- an order, not a secret
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            start = time.perf_counter()
            jobs[name][0]()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def torch_jobs(x: Any, y: Any) -> dict[str, Job]:
    """What PyTorch does on the same memory, where it is installed."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return {}
    first, second = torch.from_numpy(x), torch.from_numpy(y)
    return {"torch y.sub_(x)": (lambda: second.sub_(first), 12)}


def extra_memory(call: Callable[[], object]) -> int:
    """The most bytes that a call held at once."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measured(rounds: int) -> list[dict[str, Any]]:
    """All rows: ours, against what each is to be compared with."""
    # y is subtracted from forever; x is small beside it, so that it stays finite.
    x = np.random.default_rng(1).standard_normal(SIZE, dtype=np.float32) * np.float32(1e-3)
    y, z = np.ones_like(x), np.zeros_like(x)
    vectors = arithmetic_of(CPUDeviceAllocator())
    ours: dict[str, Job] = {
        "axpy(-1, x, y)": (lambda: vectors.axpy(-1.0, x, y), 12),
        "axpy(0.5, x, y)": (lambda: vectors.axpy(0.5, x, y), 12),
        "asum(x)": (lambda: vectors.asum(x), 4),
        "sumsq(x)": (lambda: vectors.sumsq(x), 4),
    }
    theirs: dict[str, Job] = {
        "y -= x": (lambda: np.subtract(y, x, out=y), 12),
        **torch_jobs(x, y),
        "np.abs(x).sum()": (lambda: np.abs(x).sum(), 4),
        "np.linalg.norm(x)": (lambda: np.linalg.norm(x), 4),
    }
    with ThreadPoolExecutor() as pool:
        triads, reads = machine(pool, x, y, z)
        jobs = {
            **ours,
            **theirs,
            **{f"triad: {n}": j for n, j in triads.items()},
            **{f"read: {n}": j for n, j in reads.items()},
        }
        times = best_times(jobs, rounds)
    triad = min(times[f"triad: {name}"] for name in triads)
    read = min(times[f"read: {name}"] for name in reads)
    rows: list[dict[str, Any]] = []
    for name, (call, nbytes) in ours.items():
        rivals = {"triad" if nbytes == 12 else "read": triad if nbytes == 12 else read}  # noqa: PLR2004 -- as above
        rivals |= {other: times[other] for other, (_, moved) in theirs.items() if moved == nbytes}
        ratios = {rival: took / times[name] for rival, took in rivals.items()}
        rows.append({"what": name, "ratios": ratios, "extra_bytes": extra_memory(call)})
    return rows + [{"what": name, "gb_per_s": SIZE * jobs[name][1] / times[name] / 1e9} for name in jobs]


def show(row: dict[str, Any]) -> str:
    """One line of the table."""
    if "gb_per_s" in row:
        return f"{row['what']:44}{row['gb_per_s']:8.1f} GB/s"
    ratios = "  ".join(f"{ratio:5.2f} x {rival}" for rival, ratio in row["ratios"].items())
    return f"{row['what']:16} {row['extra_bytes'] >> 10:4} KiB extra  {ratios}"


def main() -> None:
    """Measure, print, and write the figures where ``--json`` says."""
    parser = options_of(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    rows = measured(options.rounds)
    publish(rows, show, options.json, ", 2**26 float32")


if __name__ == "__main__":
    main()
