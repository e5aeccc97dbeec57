"""How long it takes to write all test vectors, to replay them on our memory, and to prove the model.

Run with ``make bench``.  Writing the vectors should take at most ten seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS
from syncedmem.spec.proofs import summarise
from syncedmem.spec.vectors import SUITES, replay, vectors, write
from syncedmem.verification import make_subject

if TYPE_CHECKING:
    from collections.abc import Callable

WANTED = {"vectors written": 10.0}


def written() -> None:
    """Write every file."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))


def replayed() -> None:
    """Replay every vector on our own memory, with the simulated device or without a device."""
    for edition in EDITIONS:
        subject = make_subject("cpu" if edition == "cpu_only" else "simulated", 0)
        for suite in SUITES:
            for vector in vectors(suite, edition):
                if replay(subject, vector.as_json()) is not None:
                    raise SystemExit(f"{vector.id} is not met")


def proved() -> None:
    """Prove every invariant of every edition."""
    summarise()


JOBS: dict[str, Callable[[], None]] = {
    "vectors written": written,
    "vectors made and replayed": replayed,
    "model proved": proved,
}


def main() -> None:
    """Measure each once, with empty caches, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    figures: dict[str, float] = {}
    for name, job in JOBS.items():
        start = time.perf_counter()
        job()
        figures[name] = round(time.perf_counter() - start, 2)
        wanted = f" (wanted {WANTED[name]:.0f})" if name in WANTED else ""
        print(f"{name}: {figures[name]:.2f} s{wanted}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"python": sys.version, "figures": figures}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
