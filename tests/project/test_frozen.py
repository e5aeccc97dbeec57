"""The seeded bugs are those that were frozen, each with its requirement; ``make frozen`` runs them."""

from __future__ import annotations

import json

from bugs_in_c import IN_C
from frozen import FROZEN
from mutants.allocator import ALLOCATOR_BUGS
from mutants.blob import BLOB_BUGS
from mutants.device_allocator import DEVICE_ALLOCATOR_BUGS
from mutants.memory import MEMORY_BUGS
from mutants.port import PORT_BUGS as WRONG_PORTS
from port_bugs import PORT_BUGS


def test_no_seeded_bug_is_lost_and_none_changes_its_requirement() -> None:
    kept = json.loads(FROZEN.read_text(encoding="utf-8"))
    in_cpp = kept.pop("ports in C++")

    assert {name: requirement.partition("-")[0] for name, requirement in in_cpp.items()} == {
        bug.name: bug.found for bug in PORT_BUGS
    }
    assert kept == {
        "memories": {bug.name: bug.requirement for bug in MEMORY_BUGS.values()},
        "blobs": {bug.name: bug.requirement for bug in BLOB_BUGS.values()},
        "allocators": {bug.name: bug.requirement for bug in ALLOCATOR_BUGS.values()},
        "allocators in C": {bug.symbols.partition(",")[0]: bug.requirement for bug in IN_C},
        "device allocators": {bug.name: bug.requirement for bug in DEVICE_ALLOCATOR_BUGS.values()},
        "ports": {bug.name: bug.requirement for bug in WRONG_PORTS.values()},
    }
