"""How close arithmetic comes to the speed of the memory, as ratios within one run.

Run with ``make bench``.  The machine's own speed is measured in the same run, with the fastest functions of NumPy:
*triad* has two streams in and one out, *scale* one in and one out, *read* one in, and *read two* two in.  Each is
measured with one thread and with one for every processor.  Each round runs everything once, in an order that changes.
A ratio is that of the best times, because other users of the machine can only make it slower.
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

from syncedmem.model import NoDeviceError
from syncedmem.runtime import CPUDeviceAllocator, arithmetic_of, named_device

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1 << 26
ROUNDS = 25
PIECE = 1 << 20

Job = tuple["Callable[[], object]", int]
"""A function to run, and how many bytes it has to move for each element."""


def everywhere(pool: ThreadPoolExecutor, threads: int, piece: Callable[[slice], object]) -> Callable[[], object]:
    """A job that is cut into pieces, for a number of threads."""
    slices = [slice(start, start + PIECE) for start in range(0, SIZE, PIECE)]

    def some(number: int) -> None:
        for part in slices[number::threads]:
            piece(part)

    return lambda: list(pool.map(some, range(threads)))


def machine(pool: ThreadPoolExecutor, x: Any, y: Any, z: Any) -> dict[str, dict[str, Job]]:
    """The functions that may show the speed of this machine, by the bytes that they move."""
    threads = len(os.sched_getaffinity(0))
    rows, others = x.reshape(-1, 4096), y.reshape(-1, 4096)
    one = np.float32(1)

    def part(table: Any, s: slice) -> Any:
        return table[s.start // 4096 : s.stop // 4096]

    def both(name: str, whole: Callable[[slice], object], moved: int) -> dict[str, Job]:
        return {
            name: (lambda: whole(slice(0, SIZE)), moved),
            f"{name}, {threads} threads": (everywhere(pool, threads, whole), moved),
        }

    return {
        "triad": {
            **both("np.add(x, y, out=z)", lambda s: np.add(x[s], y[s], out=z[s]), 12),
            **both("np.add(x, y, out=y)", lambda s: np.add(x[s], y[s], out=y[s]), 12),
        },
        "scale": both("np.multiply(z, 1, out=z)", lambda s: np.multiply(z[s], one, out=z[s]), 8),
        "read": {
            **both("np.max(x)", lambda s: np.max(x[s]), 4),
            **both("np.vecdot(x, x)", lambda s: np.vecdot(part(rows, s), part(rows, s)), 4),
        },
        "read two": both("np.vecdot(x, y)", lambda s: np.vecdot(part(rows, s), part(others, s)), 8),
    }


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
    """The same in PyTorch on the same memory, if it is installed."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return {}
    first, second = torch.from_numpy(x), torch.from_numpy(y)
    return {"torch y.sub_(x)": (lambda: second.sub_(first), 12)}


def opencl_jobs(x: Any, y: Any) -> dict[str, tuple[str, Job]]:
    """Ours on OpenCL, if it is here: with PoCL the host computes over mapped buffers."""
    try:
        device = named_device("opencl")
    except NoDeviceError:
        return {}
    arithmetic = arithmetic_of(device)
    first, second = (device.empty(item.nbytes).view(item.dtype) for item in (x, y))
    first.set(x)
    second.set(y)
    return {
        "opencl axpy": ("triad", (lambda: arithmetic.axpy(-1.0, first, second), 12)),
        "opencl asum": ("read", (lambda: arithmetic.asum(first), 4)),
    }


def extra_memory(call: Callable[[], object]) -> int:
    """The most bytes that a call held at once."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measured(rounds: int) -> list[dict[str, Any]]:
    """All rows: our functions, each with its ratios to the functions to compare with."""
    # x is subtracted from y very often; x is small compared with y, so that y stays finite.
    x = np.random.default_rng(1).standard_normal(SIZE, dtype=np.float32) * np.float32(1e-3)
    y, z = np.ones_like(x), np.zeros_like(x)
    host = arithmetic_of(CPUDeviceAllocator())
    ours: dict[str, tuple[str, Job]] = {
        "axpy(-1, x, y)": ("triad", (lambda: host.axpy(-1.0, x, y), 12)),
        "axpy(0.5, x, y)": ("triad", (lambda: host.axpy(0.5, x, y), 12)),
        "scal(0.999, z)": ("scale", (lambda: host.scal(0.999, z), 8)),
        "asum(x)": ("read", (lambda: host.asum(x), 4)),
        "sumsq(x)": ("read", (lambda: host.sumsq(x), 4)),
        "dot(x, y)": ("read two", (lambda: host.dot(x, y), 8)),
        **opencl_jobs(x, y),
    }
    theirs: dict[str, tuple[str, Job]] = {
        "y -= x": ("triad", (lambda: np.subtract(y, x, out=y), 12)),
        **{name: ("triad", job) for name, job in torch_jobs(x, y).items()},
        "np.abs(x).sum()": ("read", (lambda: np.abs(x).sum(), 4)),
        "np.linalg.norm(x)": ("read", (lambda: np.linalg.norm(x), 4)),
    }
    with ThreadPoolExecutor() as pool:
        contenders = machine(pool, x, y, z)
        jobs = {name: job for name, (_, job) in (ours | theirs).items()}
        jobs |= {f"{kind}: {name}": job for kind, found in contenders.items() for name, job in found.items()}
        times = best_times(jobs, rounds)
    best = {kind: min(times[f"{kind}: {name}"] for name in found) for kind, found in contenders.items()}
    rows: list[dict[str, Any]] = []
    for name, (kind, (call, _)) in ours.items():
        rivals = {kind: best[kind]} | {other: times[other] for other, (its, _) in theirs.items() if its == kind}
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
