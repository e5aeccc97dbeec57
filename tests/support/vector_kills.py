"""Measures which seeded bugs each suite of vectors refuses, and writes tests/mutants/vector_kills.json: ``make kills``.

A suite refuses a bug if one of its vectors does.  The file has a line for each bug.  Arguments are the bugs that are
measured again; without arguments all are.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).parents[1]))

from mutants.blob import BLOB_BUGS
from mutants.memory import MEMORY_BUGS
from subjects import device_subject, host_subject

from syncedmem.model import EDITIONS
from syncedmem.spec.engine.supervisor import processors
from syncedmem.spec.vectors import ALL_SUITES, SUITES, replay, vectors

if TYPE_CHECKING:
    from mutants.registry import SeededBug

    from syncedmem.spec import Subject

__all__ = ["BUGS", "FILE", "first_refusing", "known", "refused", "refusing_suites", "written"]

BUGS: dict[str, SeededBug] = {**MEMORY_BUGS, **BLOB_BUGS}
FILE = Path(__file__).parents[1] / "mutants" / "vector_kills.json"


def known() -> dict[str, list[str]]:
    """For each seeded bug the suites that refuse it, as ``"edition/suite"``, as they were measured."""
    found: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def refused(bug: SeededBug, subject: Subject, vector: dict[str, Any]) -> bool:
    """Whether a vector refuses a seeded bug."""
    wrong = replace(subject, name=bug.name, make=bug.make)
    try:
        return replay(wrong, vector) is not None
    except Exception:  # noqa: BLE001 -- a bug may prevent the making of a memory
        return True


@cache
def written(edition: str, suite: str) -> tuple[dict[str, Any], ...]:
    """The vectors of a suite as data."""
    return tuple(vector.as_json() for vector in vectors(suite, edition))


def first_refusing(bug: SeededBug, edition: str, suite: str) -> dict[str, Any] | None:
    """The first vector of a suite that refuses a bug; None if no vector does, or if it shows on other subjects."""
    kind = "cpu" if edition == "cpu_only" else "simulated"
    if bug.shows_on != ("no device" if kind == "cpu" else "device") or (suite in SUITES) != (bug.name in MEMORY_BUGS):
        return None
    gc.collect()  # some bugs count the live memories; those of the last suite must not count
    # With a device of its own: on a shared one, a write of one bug into freed memory is found while the next one runs.
    subject = (host_subject if kind == "cpu" else device_subject)(bug.make)
    return next((vector for vector in written(edition, suite) if refused(bug, subject, vector)), None)


def refusing_suites(name: str) -> list[str]:
    """The suites that refuse a bug."""
    pairs = ((edition, suite) for edition in EDITIONS for suite in ALL_SUITES)
    return ["/".join(pair) for pair in pairs if first_refusing(BUGS[name], *pair)]


def main(chosen: list[str]) -> None:
    """Measure, and write the result."""
    names = chosen or [*BUGS]
    for edition in EDITIONS:  # before the processes start, which then have them
        for suite in ALL_SUITES:
            written(edition, suite)
    gc.freeze()
    # A process has few bugs: what one leaves behind must not count for the next one.
    with get_context("fork").Pool(processors(), maxtasksperchild=4) as pool:
        found = (known() if chosen else {}) | dict(zip(names, pool.imap(refusing_suites, names), strict=True))
    lines = [f" {json.dumps(name)}: {json.dumps(found[name])}" for name in BUGS if name in found]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
