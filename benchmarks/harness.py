"""What coverage finds: libFuzzer with a harness and the seeded engine, each on ten bugs behind several conditions.

Both have the oracle of the native driver.  The bugs are those of tests/support/conditional_bugs.c.  It needs a clang
that has libFuzzer, and takes about ten minutes for each seed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from figures import options_of, publish

from syncedmem.spec.fuzz import fuzz
from syncedmem.spec.fuzz.harness import harness_of

SOURCE = Path(__file__).parents[1] / "tests" / "support" / "conditional_bugs.c"
TARGET = f"{SOURCE}:pool_malloc,pool_free,reset=pool_reset"
BUGS = range(1, 11)
ENGINES = ("libFuzzer", "seeded engine")


def seconds_of_libfuzzer(program: Path, seed: int, seconds: int) -> float | None:
    """How long libFuzzer takes to the finding; None if it has none in that time."""
    options = ["-use_value_profile=1", "-max_len=512", f"-seed={seed}", f"-max_total_time={seconds}"]
    start = time.perf_counter()
    done = subprocess.run([program, *options], cwd=program.parent, capture_output=True, check=False)
    return time.perf_counter() - start if b"A01-distinct-pointers: " in done.stderr else None


def seconds_of_the_seeded_engine(bug: int, seed: int, seconds: int) -> float | None:
    """How long `fuzz` takes to the finding, which it shortens too; None if it has none with its defaults."""
    os.environ["CFLAGS"] = f"-DBUG={bug}"
    start = time.perf_counter()
    report = fuzz(TARGET, seed=seed, seconds=seconds, first=True)
    return time.perf_counter() - start if report.findings else None


def measured(bug: int, seeds: range, seconds: int, folder: Path) -> dict[str, Any]:
    """Both engines on one bug."""
    os.environ["CFLAGS"] = ""
    (folder / "harness.c").write_text(harness_of(TARGET, "harness.c").text, encoding="utf-8")
    program = folder / f"bug-{bug}"
    build = ["clang", "-g", "-O1", "-fsanitize=fuzzer", f"-DBUG={bug}", "harness.c", str(SOURCE), "-o", str(program)]
    subprocess.run(build, cwd=folder, check=True)
    return {
        "bug": bug,
        "libFuzzer": [seconds_of_libfuzzer(program, seed, seconds) for seed in seeds],
        "seeded engine": [seconds_of_the_seeded_engine(bug, seed, seconds) for seed in seeds],
    }


def shown(row: dict[str, Any]) -> str:
    """A line for a bug: how often each engine found it, and after how long."""
    parts: list[str] = []
    for engine in ENGINES:
        times = [it for it in row[engine] if it is not None]
        median = f", {statistics.median(times):.1f} s" if times else ""
        parts.append(f"{engine}: {len(times)} of {len(row[engine])}{median}")
    return f"bug {row['bug']:2}  " + "  ".join(f"{part:32}" for part in parts)


def main() -> None:
    """Measure, and print."""
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="the number of seeds for each bug")
    parser.add_argument("--seconds", type=int, default=60, help="the most time for each")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        seeds = range(1, arguments.seeds + 1)
        rows = [measured(bug, seeds, arguments.seconds, Path(folder)) for bug in BUGS]
    clang = subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    publish(rows, shown, arguments.json, load, {"clang": clang, "seconds": str(arguments.seconds)})


if __name__ == "__main__":
    main()
