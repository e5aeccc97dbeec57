"""``make gpu``: what only a machine with an NVIDIA GPU can show, a line for each step, and one file with the results.

It needs no environment of the repository: ``PYTHONPATH=src python tests/support/on_gpu.py`` uses the Python that runs
it, which has to have CuPy and pytest.
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


def run(name: str, command: list[str]) -> dict[str, object]:
    """Run a step; return whether it passed, how long it took, and the last line that it printed."""
    log, begun = OUT / f"{name}.log", time.monotonic()
    with log.open("wb") as out:
        try:
            subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, timeout=LIMIT, check=True)
        except subprocess.SubprocessError:
            passed = False
        else:
            passed = True
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
    return {"passed": passed, "seconds": round(time.monotonic() - begun), "last_line": lines[-1].strip()}


def main() -> int:
    """Run the steps, and return how many have failed."""
    OUT.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, object]] = {}
    for name, command in steps().items():
        results[name] = result = run(name, command)
        how = "passed" if result["passed"] else "failed"
        print(f"{name:10} {how} in {result['seconds']} s: {result['last_line']}", flush=True)
    file, figures = OUT / "results.json", OUT / "benchmark.json"
    measured: object = json.loads(figures.read_text(encoding="utf-8")) if figures.is_file() else {}
    file.write_text(json.dumps({"steps": results, "figures": measured}, indent=2) + "\n", encoding="utf-8")
    print(f"written: {file.relative_to(ROOT)}, and a log of each step beside it")
    return sum(not result["passed"] for result in results.values())


if __name__ == "__main__":
    sys.exit(main())
