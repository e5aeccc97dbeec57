"""Measures what docs/fuzzing-proof.md says: real allocators, and every seeded bug with many seeds.

``python tests/support/fuzz_proof.py`` writes fuzz_proof.json beside it.  What was measured is kept in build/proof as it
comes, and is not measured again until the fuzzer, an allocator of its kit or this program changes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import pytest
from backends import BACKENDS
from bugs_in_c import IN_C
from deep_bugs import DEEP, STEPS
from mutants.allocator import ALLOCATOR_BUGS
from mutants_path import share_mutants
from out_of_reach import OUT_OF_REACH

from syncedmem.model.defaults import FUZZ
from syncedmem.spec.fuzz import fuzz

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["RESULT", "SEEDS", "Bug", "bugs", "main", "summary"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "syncedmem"
RESULT = HERE / "fuzz_proof.json"
KEPT = ROOT / "build" / "proof"
SEEDS = 20
_LONG = 600.0
"""The limit of a search in seconds, for a machine that has other work."""
_FAULTY = HERE / "faulty_allocators.c"
_PACKAGES = {"RMM": "rmm-cu12", "PyOpenCL": "pyopencl", "cuda.core": "cuda-core", "UMF": "umf"}
"""The packages of backends, by the first word of their names."""
_DEBIAN = {
    "glibc": "libc6",
    "jemalloc": "libjemalloc2",
    "mimalloc": "libmimalloc2.0",
    "tcmalloc": "libtcmalloc-minimal4",
}
"""Those of the system, where it is a Debian."""
Row = dict[str, Any]


class Bug(NamedTuple):
    """A seeded bug, and how it is looked for."""

    name: str
    target: str
    requirement: str
    promises: dict[str, str]
    threads: int


class Job(NamedTuple):
    """One measurement: of a backend, of a bug with a seed, or of a bug that is out of reach."""

    kind: str
    name: str
    seed: int = 0


@cache
def bugs() -> dict[str, Bug]:
    """Every seeded bug, in Python and in C, by name."""
    written = [Bug(it.name, it.target, it.requirement, it.promises, it.threads) for it in ALLOCATOR_BUGS.values()]
    compiled = [
        Bug(
            it.symbols.partition(",")[0],
            f"{_library()}:{it.symbols}?abi={it.abi}",
            it.requirement,
            it.promises,
            it.threads,
        )
        for it in IN_C
    ]
    return {it.name: it for it in (*written, *compiled)}


def _library() -> Path:
    """The place of the faulty allocators that are written in C."""
    return KEPT / "libfaulty.so"


def measured(job: Job) -> Row:
    """Measure once."""
    row: Row = dict(job._asdict())
    begun = time.perf_counter()
    try:
        return row | _MEASURE[job.kind](job) | {"seconds": round(time.perf_counter() - begun, 2)}
    except pytest.skip.Exception as reason:
        return row | {"skipped": str(reason)}


def _of_backend(job: Job) -> Row:
    """A run with the defaults of the command."""
    backend = next(it for it in BACKENDS if it.name == job.name)
    report = fuzz(backend.target(), promises=backend.promises, threads=backend.threads, skip=backend.known)
    statuses = [verdict.status for verdict in report.verdicts()]
    return {
        "version": _version(job.name),
        "operations": report.operations,
        "passed": statuses.count("passed"),
        "unchecked": statuses.count("not checked"),
        "findings": [it.requirement for it in report.findings],
        "errors": report.errors,
        "known": backend.known,
    }


def _version(name: str) -> str:
    """The package of a backend and its version; empty for an allocator of ours."""
    first = name.partition(" ")[0]
    if first in _PACKAGES:
        return f"{_PACKAGES[first]} {metadata.version(_PACKAGES[first])}"
    if first in _DEBIAN and shutil.which("dpkg-query"):
        asked = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}", _DEBIAN[first]]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    return ""


def _of_bug(job: Job) -> Row:
    bug = bugs()[job.name]
    hang = 1 if bug.requirement == "A23-no-hang" else FUZZ.hang
    limits = partial(fuzz, seed=job.seed, seconds=_LONG, hang=hang, first=True)
    before = 0
    for steps in (DEEP.get(bug.name, STEPS), FUZZ.steps):  # a short run first, because most bugs need no more
        report = limits(bug.target, steps=steps, promises=bug.promises, threads=bug.threads)
        if report.findings:
            finding = report.findings[0]
            lines = len(report.replay(finding).python().splitlines())
            return {"found": finding.requirement, "operations": before + finding.operations, "lines": lines}
        before += report.operations
    return {"found": "", "operations": before, "lines": 0}


def _out_of_reach(job: Job) -> Row:
    report = fuzz(f"{HERE / 'out_of_reach.py'}:{job.name}", promises={"alignment": "64"})
    return {"operations": report.operations, "findings": [it.requirement for it in report.findings]}


_MEASURE = {"backend": _of_backend, "bug": _of_bug, "out of reach": _out_of_reach}


def jobs(seeds: int) -> list[Job]:
    """All that is measured."""
    backends = [Job("backend", it.name) for it in BACKENDS]
    beyond = [Job("out of reach", name) for name in OUT_OF_REACH]
    return [*backends, *beyond, *(Job("bug", name, seed) for seed in range(seeds) for name in bugs())]


def measure(wanted: Sequence[Job], kept: Path, processes: int) -> list[Row]:
    """Measure what is not in a file yet, and add it there."""
    rows = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []
    done = {Job(it["kind"], it["name"], it["seed"]) for it in rows}
    left = [it for it in wanted if it not in done]
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool, kept.open("a", encoding="utf-8") as file:
        for number, future in enumerate(as_completed([pool.submit(measured, it) for it in left]), 1):
            rows.append(future.result())
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            sys.stderr.write(f"\r{number} of {len(left)}, {rows[-1]['name'][:40]:40}")
    sys.stderr.write("\n")
    chosen = set(wanted)
    return [it for it in rows if Job(it["kind"], it["name"], it["seed"]) in chosen]


def summary(rows: Iterable[Row]) -> Row:
    """The figures of the page, from single measurements."""
    rows = list(rows)
    backends = {it["name"]: it for it in rows if it["kind"] == "backend"}
    beyond = [it for it in rows if it["kind"] == "out of reach"]
    found = {name: [it for it in rows if it["kind"] == "bug" and it["name"] == name] for name in bugs()}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "backends": [backends[it.name] for it in BACKENDS if it.name in backends],
        "out of reach": [it | {"text": OUT_OF_REACH[it["name"]].__doc__} for it in beyond],
        "bugs": [_of_seeds(bugs()[name], seeds) for name, seeds in found.items() if seeds],
    }


def _of_seeds(bug: Bug, rows: Sequence[Row]) -> Row:
    found = [it for it in rows if it["found"]]
    row: Row = {"name": bug.name, "requirement": bug.requirement, "seeds": len(rows), "found": len(found)}
    others = Counter(it["found"] for it in found if it["found"] != bug.requirement)
    row["others"] = dict(sorted(others.items()))
    for figure in ("operations", "seconds", "lines"):
        values = [it[figure] for it in found] or [0]
        row[figure] = [statistics.median(values), max(values)]
    return row


def _digest() -> str:
    """The digest of all that the figures come from."""
    programs = ("backends", "deep_bugs", "bugs_in_c", "out_of_reach", "fuzz_proof")
    sources = [*(HERE / f"{it}.py" for it in programs), _FAULTY, PACKAGE / "model" / "defaults.py"]
    for folder in (PACKAGE / "spec" / "fuzz", PACKAGE / "spec" / "engine", HERE.parent / "mutants" / "allocator"):
        sources += sorted(it for it in folder.rglob("*") if it.suffix in {".py", ".c", ".h"})
    return sha256(b"".join(it.read_bytes() for it in sources)).hexdigest()[:12]


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the result; status 1 if a bug escaped, or an allocator did not pass."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds for each seeded bug")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--out", type=Path, default=RESULT, help="the file for the figures")
    chosen = parser.parse_args(arguments)
    share_mutants()
    KEPT.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", _library(), _FAULTY, "-lpthread"], check=True)
    rows = measure(jobs(chosen.seeds), KEPT / f"{_digest()}.jsonl", chosen.processes)
    result = summary(rows)
    chosen.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    escaped = [it["name"] for it in result["bugs"] if it["found"] < it["seeds"]]
    found = [it["name"] for it in result["out of reach"] if it["findings"]]
    failed = [it["name"] for it in result["backends"] if it.get("findings") or it.get("errors")]
    told = (("escaped at least once", escaped), ("found, and so not out of reach", found), ("did not pass", failed))
    for what, names in told:
        sys.stderr.write(f"{what}: {', '.join(names)}\n" if names else "")
    return int(bool(escaped or found or failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
