"""What an import loads, which import-linter does not see."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "cupy", "hypothesis", "pyopencl"}


def loaded_by(statement: str) -> set[str]:
    """Return the names in ``sys.modules`` after a statement in a new interpreter."""
    command = [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.deep
def test_importing_the_model_loads_no_heavy_library() -> None:
    assert not HEAVY & loaded_by("import syncedmem.model")


@pytest.mark.deep
def test_templates_alone_load_their_engine() -> None:
    assert "jinja2" not in loaded_by("from syncedmem.model.exports.formats import export; export('xstate')")
    assert "jinja2" in loaded_by("from syncedmem.model.exports.formats import export; export('c')")


RUNNING = (
    "from syncedmem import *; from syncedmem.spec import Subject, check_blobs, check_conformance; "
    "subject = Subject('mine', SyncedMemory, CPUDeviceAllocator(), SimulatedDeviceAllocator()); "
    "check_conformance(subject, steps=0, suites=['cells']).require(); "
    "check_blobs(Subject('mine', Blob, subject.host, subject.device), steps=0, suites=['tables']).require(); "
    "from syncedmem.spec.fuzz import fuzz; fuzz(CPUDeviceAllocator, steps=500).require()"
)


@pytest.mark.deep
@pytest.mark.parametrize("statement", ["import syncedmem.spec, syncedmem.spec.fuzz", RUNNING], ids=["imported", "run"])
def test_the_package_loads_no_seeded_bugs(statement: str) -> None:
    loaded = loaded_by(statement)

    assert "syncedmem.spec.conformance" in loaded
    assert not {name for name in loaded if name.partition(".")[0] == "mutants"}
