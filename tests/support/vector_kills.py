"""Measures which seeded bugs each test vector refuses, and writes spec/vectors/kills.json: ``make kills``.

``--kept`` names a folder for the measurements of each bug, so that only what has changed is measured again.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).parents[1]))

from mutants.measurement import measure

from syncedmem.spec.engine.supervisor import processors
from syncedmem.spec.vectors import ALL_SUITES
from syncedmem.verification import make_subject

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

ROOT = Path(__file__).parents[2]


def said(name: str) -> None:
    """Say which bug is measured now."""
    sys.stderr.write(f"{name}\n")


def main(arguments: Sequence[str]) -> None:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "spec" / "vectors", help="the folder for kills.json")
    parser.add_argument("--kept", type=Path, help="the folder for the measurements of each bug")
    parser.add_argument("--processes", type=int, default=processors(), help="processes at a time")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="measure these suites only (default: all)")
    chosen = parser.parse_args(arguments)
    if unknown := sorted({*chosen.suites} - {*ALL_SUITES}):
        parser.error(f"no suite is called {', '.join(unknown)}; there are {', '.join(ALL_SUITES)}")
    found = measure(
        partial(make_subject, "simulated", 0),
        partial(make_subject, "cpu", 0),
        only=chosen.suites or ALL_SUITES,
        kept=chosen.kept,
        processes=chosen.processes,
        progress=said,
    )
    (chosen.out / "kills.json").write_text(found.as_text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
