"""``make gpu``: what only a machine with an NVIDIA GPU can show, a line for each step, and one file with the results.

It needs no environment of the repository: ``PYTHONPATH=src python tests/support/gpu.py`` uses the Python that runs it,
which has to have CuPy and pytest.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "gpu"
LIMIT = 240
"""Seconds after which a step has failed: all of them together are meant to take less than eight minutes."""

def steps() -> dict[str, list[str]]:
    """The commands, by what they show."""
    python = sys.executable
    processes = str(min(os.cpu_count() or 1, 8))  # each has a context on the GPU
    pytest = [python, "-m", "pytest", "-q", "-p", "no:benchmark", "-n", processes, "--dist", "worksteal"]
    folders = ["tests/runtime", "tests/spec", "tests/hostcuda"]
    found = {
        "tests": [*pytest, "-m", "not deep", "-k", "cuda", *folders],
        "verify": [python, "-m", "syncedmem", "verify", "--device", "cuda", "--out", str(OUT / "verify")],
        "benchmark": [python, "benchmarks/gpu.py", "--json", str(OUT / "benchmark.json")],
    }
    if shutil.which("c++") and (compiler := shutil.which("nvcc")):
        found["port"] = ["sh", "-c", _port(python, Path(compiler).parents[1])]
    return found


def _port(python: str, cuda: Path) -> str:
    """A command that builds the C++ port with CUDA's own memory, and has the kit judge it."""
    ports, command = OUT / "ports", f"{python} -m syncedmem"
    make = f"make --silent -C {ports}/cpp cuda CUDA={cuda} 'SYNCEDMEM={command}' CXXFLAGS=-O1"
    judge = f"{command} conform {ports}/cpp/libport_cuda.so --profile safe --out {OUT}/conform"
    return f"rm -rf {ports} && cp -r examples/ports {ports} && {make} && {judge}"


def main() -> int:
    """Run the steps, and return how many have failed."""
    OUT.mkdir(parents=True, exist_ok=True)
    results: dict[str, object] = {}
    failed = 0
    for name, command in steps().items():
        log, begun = OUT / f"{name}.log", time.monotonic()
        with log.open("wb") as out:
            try:
                status = subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, timeout=LIMIT, check=False).returncode
            except subprocess.TimeoutExpired:
                status = -1
        seconds = time.monotonic() - begun
        lines = log.read_text(errors="replace").strip().splitlines() or [""]
        print(f"{name:10} {'failed' if status else 'passed'} in {seconds:.0f} s: {lines[-1].strip()}", flush=True)
        results[name] = {"passed": not status, "seconds": round(seconds, 1), "last_line": lines[-1].strip()}
        failed += bool(status)
    figures = OUT / "benchmark.json"
    results["figures"] = json.loads(figures.read_text(encoding="utf-8")) if figures.is_file() else None
    (OUT / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"written: {OUT.relative_to(ROOT)}/results.json, and a log of each step beside it")
    return failed


if __name__ == "__main__":
    sys.exit(main())
