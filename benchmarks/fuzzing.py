"""How fast the fuzzer is with its oracle: operations a second, on allocators that take little time themselves.

The baseline of an allocator in Python is a simple loop over it alone: the difference is the work of the fuzzer itself.
All is measured in time of a processor, which does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import runpy
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from mutants.allocator import Pool

from syncedmem.spec.fuzz.campaign import campaign, stages
from syncedmem.spec.fuzz.jobs import Isolated
from syncedmem.spec.fuzz.journal import Journal
from syncedmem.spec.fuzz.mask import Mask
from syncedmem.spec.fuzz.native_driver.running import NativeDriver
from syncedmem.spec.fuzz.recognition import TargetSource

EXAMPLE = Path(__file__).parent.parent / "examples" / "rmm_pool.py"
ROUNDS, STEPS = 5, 300_000
NATIVE, NATIVE_STEPS = "malloc and free, native driver", 2_000_000
WANTED = {"pure Python pool": 150_000, "RMM pool over a callback": 200_000, NATIVE: 5_000_000}


def rmm_pool() -> Any:
    """The pool of examples/rmm_pool.py; None if RMM is not installed."""
    try:
        rmm: Any = importlib.import_module("rmm")
    except ImportError:
        return None
    rmm.set_logging_level(rmm.level_enum.off)  # it logs every refusal, and there are thousands
    return _example()["pool"]()


@cache
def _example() -> dict[str, Any]:
    """The names of the example, which must stay alive: RMM's pools call its functions even while both are collected."""
    return runpy.run_path(str(EXAMPLE))


def rate_of_the_fuzzer(target: object, seed: int) -> float:
    """Operations a second of the fast generator.  RMM's pools meet some requests for too much, which is known."""
    mask = Mask() if target is Pool else Mask(without=frozenset({"request_too_much"}))
    source = TargetSource(target)
    record, done = source.open().capabilities.with_promises({"alignment": "64"}), 0
    start = time.process_time()
    for stage in stages(STEPS):
        outcome = campaign(source, record, Journal(), stage, seed=seed, seconds=600, mask=mask)
        if outcome.finding is not None:
            raise outcome.finding.violation("")
        done += outcome.operations
    return done / (time.process_time() - start)


def rate_alone(allocator: Any) -> float:
    """Calls a second of the allocator in a simple loop: 64 blocks, each given back in turn."""
    live: list[tuple[Any, int]] = []
    start = time.process_time()
    for step in range(STEPS // 2):
        size = 16 + (step * 37 & 1023)
        live.append((allocator.allocate(size), size))
        if len(live) > 64:  # noqa: PLR2004 -- the number in the docstring
            allocator.deallocate(*live.pop(0))
    return STEPS / (time.process_time() - start)


def native_rate(seed: int) -> float:
    """Operations a second of the native driver on the C library's allocator."""
    target = "libc.so.6:malloc,free,calloc,realloc"
    with Isolated(target, 5.0) as place:
        source = TargetSource(target)
        driver = NativeDriver.of(place, source.open().capabilities, source.parts)
        if driver is None:
            raise SystemExit(f"{target} has no native driver")
        outcomes = list(driver.outcomes(seed=seed, steps=NATIVE_STEPS, seconds=60))
        steps, seconds = sum(outcome.operations for outcome in outcomes), sum(outcome.busy for outcome in outcomes)
        return float(steps / seconds)


def measure() -> dict[str, dict[str, float]]:
    """The best figures of some rounds; the two measurements alternate."""
    targets: dict[str, Any] = {"pure Python pool": Pool, "RMM pool over a callback": rmm_pool}
    figures: dict[str, dict[str, float]] = {}
    for seed in range(ROUNDS):
        for name, make in targets.items():
            allocator = make()
            if allocator is None:
                continue
            gc.collect()
            best = figures.setdefault(name, {"alone": 0.0, "fuzzed": 0.0})
            best["alone"] = max(best["alone"], rate_alone(allocator))
            best["fuzzed"] = max(best["fuzzed"], rate_of_the_fuzzer(make if make is Pool else make(), seed))
        best = figures.setdefault(NATIVE, {"fuzzed": 0.0})
        best["fuzzed"] = max(best["fuzzed"], native_rate(seed))
    return figures


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    figures = measure()
    for name, rates in figures.items():
        share = f", {rates['fuzzed'] / rates['alone']:.2f} of a bare loop" if "alone" in rates else ""
        print(f"{name}: {rates['fuzzed']:,.0f} operations a second (wanted {WANTED[name]:,}){share}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"python": sys.version, "figures": figures}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
