"""Finds the tests that take long, and writes the list of them: ``make long``."""

from __future__ import annotations

import sys
from pathlib import Path

from find_untraced import seconds_of
from listed_tests import LONG

__all__ = ["long_ones"]

_SECONDS = 1.0
"""On two processors.  What is left takes about eight minutes there."""


def long_ones(seconds: dict[str, float]) -> list[str]:
    """Return the names of the tests that took so long, in order."""
    return sorted(name for name, took in seconds.items() if took >= _SECONDS)


if __name__ == "__main__":
    times = seconds_of(Path(sys.argv[1]))
    names = long_ones(times)
    LONG.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    spared = sum(map(times.__getitem__, names))
    print(f"{len(names)} tests of {len(times)} take {spared:.0f} of {sum(times.values()):.0f} s")
