"""What a blob adds to its memory and to arithmetic on vectors, as ratios and differences within one run.

Run with ``make bench``.  It asks three questions.  How much longer does an accessor of a blob take than that of its
memory?  Are ``update``, ``asum`` and ``sumsq`` of a blob as fast as the machine's own triad and reading, compared with
NumPy (and PyTorch, if it is installed)?  What does it cost to make a blob and to store it?
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from arithmetic import SIZE, best_times, extra_memory, machine, torch_jobs
from figures import options_of, publish
from hot_path import ROUNDS, compared, seconds

from syncedmem.model import NoDeviceError
from syncedmem.runtime import Blob, MemcpyKind, named_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from arithmetic import Job

LOOP = 10_000
STORED = 100_000_000
"""In bytes."""


def accessors() -> list[dict[str, Any]]:
    """Each accessor with nothing to do, compared with that of the memory, in nanoseconds."""
    rows: list[dict[str, Any]] = []
    for name in ("simulated", "opencl", "cuda"):
        try:
            blob = Blob((256,), device=named_device(name), checked=False)
        except NoDeviceError:
            continue
        memory = blob.data_memory
        for call in ("cpu_data", "gpu_data", "mutable_cpu_data", "mutable_gpu_data"):
            ours, theirs = getattr(blob, call), getattr(memory, call)
            ours()
            pairs = [(seconds(ours, LOOP), seconds(theirs, LOOP)) for _ in range(ROUNDS)]
            # The best time of each, because other users of the machine can only make it slower.
            added = (min(first for first, _ in pairs) - min(second for _, second in pairs)) * 1e9
            rows.append({"what": f"{call}() on {name}, added", "ns": added, "wanted": "<= 150 ns"})
    return rows


def arithmetic(rounds: int) -> list[dict[str, Any]]:
    """Update and norms of 2**26 float32 on the host."""
    blob = Blob((SIZE,), device=None)
    blob.data[...] = 1
    np.copyto(blob.mutable_cpu_diff(), np.random.default_rng(1).standard_normal(SIZE, dtype=np.float32))
    blob.scale_diff(1e-3)  # it is subtracted very often, and the data has to stay finite
    x, y, z = blob.cpu_diff(), blob.mutable_cpu_data(), np.zeros(SIZE, np.float32)
    ours: dict[str, Job] = {
        "update()": (blob.update, 12),
        "asum_diff()": (blob.asum_diff, 4),
        "sumsq_diff()": (blob.sumsq_diff, 4),
    }
    theirs: dict[str, Job] = {
        "y -= x": (lambda: np.subtract(y, x, out=y), 12),
        **torch_jobs(blob.mutable_cpu_diff(), y),
        "np.abs(x).sum()": (lambda: np.abs(x).sum(), 4),
        "np.linalg.norm(x)": (lambda: np.linalg.norm(x), 4),
    }
    with ThreadPoolExecutor() as pool:
        contenders = machine(pool, x, y, z)
        limits_of = {12: contenders["triad"], 4: contenders["read"]}
        times = best_times({**ours, **theirs, **limits_of[12], **limits_of[4]}, rounds)
    limits = {moved: min(times[name] for name in jobs) for moved, jobs in limits_of.items()}
    rows: list[dict[str, Any]] = []
    for name, (call, moved) in ours.items():
        ratios = {"the machine": limits[moved] / times[name]}
        ratios |= {other: times[other] / times[name] for other, (_, bytes_) in theirs.items() if bytes_ == moved}
        rows.append({"what": name, "ratios": ratios, "extra_bytes": extra_memory(call), "wanted": ">= 0.9, > 1"})
    return rows


def on_cuda(rounds: int) -> list[dict[str, Any]]:
    """The same on a GPU, compared with a copy within the device in the same run."""
    try:
        device = named_device("cuda")
    except NoDeviceError as error:
        return [{"what": "arithmetic on cuda", "left out": str(error)}]
    blob = Blob((SIZE,), device=device, checked=False)
    blob.mutable_gpu_data()
    blob.mutable_gpu_diff()
    first, second = blob.data_memory.mutable_gpu_data(), blob.diff_memory.mutable_gpu_data()
    jobs: dict[str, Job] = {
        "copy": (lambda: device.memcpy(first, second, first.nbytes, MemcpyKind.CUDA2CUDA), 8),
        "update()": (blob.update, 12),
        "asum_diff()": (blob.asum_diff, 4),
        "sumsq_diff()": (blob.sumsq_diff, 4),
    }
    times = best_times(jobs, rounds)
    speeds = {name: moved / times[name] for name, (_, moved) in jobs.items()}
    return [
        {"what": f"{name} on cuda", "ratios": {"copy": speeds[name] / speeds["copy"]}, "wanted": ">= 0.9"}
        for name in jobs
        if name != "copy"
    ]


def storing() -> list[dict[str, Any]]:
    """Into a message and back, compared with a copy of the numbers into new memory and back."""
    blob, back = Blob((STORED // 4,), device=None), Blob((STORED // 4,), device=None)
    blob.data = 1
    back.data = 0

    def message() -> None:
        back.from_proto(blob.to_proto())

    def wire() -> None:
        back.from_proto(blob.to_proto().SerializeToString())

    def copy() -> None:
        np.copyto(back.mutable_cpu_data(), blob.cpu_data().copy())

    return [
        _row("100 MB, to_proto and from_proto / memory copy", message, copy),
        _row("the same through the bytes of the message", wire, copy),
    ]


def making() -> dict[str, Any]:
    """What a blob costs that nobody uses."""
    device = named_device("simulated")
    return {
        "what": "Blob((2, 3))",
        "ns": seconds(lambda: Blob((2, 3), device=device, checked=False), 5_000) * 1e9,
        "wanted": "small",
    }


def _row(what: str, first: Callable[[], object], second: Callable[[], object]) -> dict[str, Any]:
    _, _, ratio = compared(first, second, 1)
    return {
        "what": what,
        "ratios": {"memory copy": ratio},
        "wanted": "the package copies 5 times: benchmarks/serialisation.py",
    }


def show(row: dict[str, Any]) -> str:
    """One line of the table."""
    parts = [f"{row['what']:48}"]
    if "ns" in row:
        parts.append(f"{row['ns']:8.0f} ns")
    if "extra_bytes" in row:
        parts.append(f"{row['extra_bytes'] >> 10:4} KiB extra")
    parts += [f"{ratio:5.2f} x {rival}" for rival, ratio in row.get("ratios", {}).items()]
    parts.append(f"wanted {row['wanted']}" if "wanted" in row else f"left out: {row['left out']}")
    return "  ".join(parts)


def main() -> None:
    """Measure, print, and write the figures where ``--json`` says."""
    parser = options_of(__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    rows = [*accessors(), making(), *arithmetic(options.rounds), *on_cuda(options.rounds), *storing()]
    publish(rows, show, options.json, ", 2**26 float32")


if __name__ == "__main__":
    main()
