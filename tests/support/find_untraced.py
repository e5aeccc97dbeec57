"""Finds the tests that need not be traced, and writes the list of them: ``make untraced``.

It reads which lines and branches each test took, and how long it ran.  The tests that are left are needed: without one
of them some line or branch would be taken by no test.  If the list leaves out too much, ``make coverage`` shows it.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Hashable
from contextlib import closing
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from coverage import Coverage
from coverage.python import PythonFileReporter
from listed_tests import UNTRACED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

__all__ = ["needed", "seconds_of", "spared", "taken"]

_LONG = 0.3
"""Tests that take fewer seconds are always traced: so the list is short, and changes less."""

_OF_TIME = ("tests/spec/test_supervisor.py", "tests/spec/test_cluster.py")
"""The lines that these tests take are taken by others too, but only if a process happens to be slow or quick enough."""


def taken(data: Path) -> dict[str, set[Hashable]]:
    """Return the lines and branches that each test takes, from a file of coverage with a context for each test.

    What is taken without any test, by an import, is left out.
    """
    with closing(sqlite3.connect(data)) as database:
        names = dict(database.execute("select id, context from context"))
        wanted = {file: branches(path) for file, path in database.execute("select id, path from file")}
        steps = [*database.execute("select context_id, file_id, fromno, tono from arc")]
    found = defaultdict[str, set[Hashable]](set)
    for context, file, line, following in steps:
        name = names[context].rpartition("|")[0]  # without "|run" and the like
        found[name] |= {(file, line), (file, following)}
        if (line, following) in wanted[file]:
            found[name].add((file, line, following))
    free = found.pop("", set())
    return {name: elements - free for name, elements in found.items()}


def branches(path: str) -> set[tuple[int, int]]:
    """Return the branches of a file: each line after which there are several, with each of these."""
    reporter = PythonFileReporter(path, Coverage(data_file=None))
    lines = {line for line, exits in reporter.exit_counts().items() if exits > 1} - reporter.no_branch_lines()
    return {(line, following) for line, following in reporter.arcs() if line in lines}


def needed(taken: Mapping[str, AbstractSet[Hashable]], seconds: Mapping[str, float]) -> set[str]:
    """Return some tests that together take all that all tests take, in little time.

    The next test is always the one that takes most that is new in a second; then those go that others make needless.
    """
    left = set[Hashable]().union(*taken.values())
    cost = {name: seconds.get(name, 0) + 0.1 for name in taken}  # each test takes some time
    heap = [(-len(elements) / cost[name], name) for name, elements in taken.items()]
    heapify(heap)
    chosen: list[str] = []
    while left:
        _, name = heappop(heap)
        gain = -len(taken[name] & left) / cost[name]
        if gain and heap and gain > heap[0][0]:  # others have taken some of it
            heappush(heap, (gain, name))
        elif gain:
            chosen.append(name)
            left -= taken[name]
    times = Counter(element for name in chosen for element in taken[name])
    for name in sorted(chosen, key=cost.__getitem__, reverse=True):
        if all(times[element] > 1 for element in taken[name]):
            chosen.remove(name)
            times.subtract(taken[name])
    return {*chosen}


def spared(taken: Mapping[str, AbstractSet[Hashable]], seconds: Mapping[str, float]) -> list[str]:
    """Return the tests that need not be traced, in order."""
    keep = needed(taken, seconds)
    long = {name for name, took in seconds.items() if took >= _LONG and not name.startswith(_OF_TIME)}
    return sorted(name for name in long if name in taken and name not in keep)


def seconds_of(report: Path) -> dict[str, float]:
    """Return how long each test took, from a report in JUnit's format."""
    cases = ET.parse(report).iter("testcase")  # noqa: S314 -- pytest wrote it
    return {f"{_path_of(it.get('classname', ''))}::{it.get('name')}": float(it.get("time", 0)) for it in cases}


def _path_of(dotted: str) -> str:
    """The file of a module, and the class if its tests are those of one."""
    module, _, last = dotted.rpartition(".")
    if last.startswith("Test"):
        return f"{module.replace('.', '/')}.py::{last}"
    return f"{dotted.replace('.', '/')}.py"


def main(data: str, report: str) -> None:
    """Write the list."""
    seconds, of = seconds_of(Path(report)), taken(Path(data))
    names = spared(of, seconds)
    UNTRACED.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    saved = sum(map(seconds.__getitem__, names))
    whole = sum(seconds.values())
    print(f"{len(names)} of {len(seconds)} tests are not traced; they took {saved:.0f} of {whole:.0f} s.")


if __name__ == "__main__":
    main(*sys.argv[1:])
