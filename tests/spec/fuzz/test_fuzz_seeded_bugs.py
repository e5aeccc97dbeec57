"""Every seeded bug of an allocator is caught, every time, within a bounded number of steps."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from bugs_in_c import IN_C, BugInC
from mutants.allocator import ALLOCATOR_BUGS

from syncedmem.spec.fuzz import Finding, driver_of, fuzz
from syncedmem.spec.fuzz.loops import folded
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mutants.registry import SeededBug

    Refuse = Callable[[str, str, str], None]

STEPS = 20_000
"""The steps within which each other bug is caught; that takes seconds."""

DEEP = {"FailsAtVeryManyBlocks": 500_000, "GrowsOld": 500_000}
"""The steps within which these are caught: half of them are those of one old process."""

SECONDS = 600.0
"""The limit in seconds, for a machine that has other work."""


LOOPS = {
    "FailsAtVeryManyBlocks": r"repeat 65537 with i: allocate\(i, 1\)",
    "GrowsOld": r"repeat 25001: allocate\(0, (\d+)\); allocate\(1, \1\); free\(0\); free\(1\)",
}
"""The seeded bugs that show only after very many calls, each with the loop, of any size, that its program becomes."""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the faulty allocators that are written in C."""
    from pathlib import Path

    source = Path(__file__).parents[2] / "support" / "faulty_allocators.c"
    made = tmp_path_factory.mktemp("faulty") / "libfaulty.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-lpthread"], check=True)
    return made


def catch(name: str, target: object, requirement: str, promises: Mapping[str, str], threads: int) -> Finding:
    """Fuzz a target, and check that the first finding is the seeded bug."""
    # A seeded hang shows within a second. For other bugs, a busy machine must not look like a hang.
    hang = 1 if requirement == "A23-no-hang" else 10
    steps = DEEP.get(name, STEPS)
    report = fuzz(target, promises=promises, threads=threads, steps=steps, seconds=SECONDS, hang=hang, first=True)

    assert report.findings, f"{name} should break {requirement}, and nothing was found"
    finding = report.findings[0]
    assert requirement == finding.requirement, finding.message
    assert len(report.replay(finding).python().splitlines()) <= 10
    # These are its steps, and not the whole run again; only what needs threads has no steps.
    assert report.replay(finding).shows_steps is (requirement != "A20-threads")
    assert len(folded(finding.program)) <= 10
    return finding


@pytest.mark.deep
@pytest.mark.parametrize(
    "bug", [bug for bug in ALLOCATOR_BUGS.values() if bug.name not in LOOPS], ids=lambda item: item.name
)
def test_the_fuzzer_catches(bug: SeededBug, refuse: Refuse) -> None:
    """It names the broken requirement."""
    finding = catch(bug.name, bug.target, bug.requirement, bug.promises, bug.threads)
    refuse("allocators", bug.name, finding.requirement)


@pytest.mark.deep
@pytest.mark.parametrize("name", LOOPS)
def test_the_fuzzer_catches_what_takes_very_many_calls_and_shows_a_loop(name: str, refuse: Refuse) -> None:
    """Its program has a hundred thousand steps, and can be tried only a few times."""
    bug = ALLOCATOR_BUGS[name]
    finding = catch(name, bug.target, bug.requirement, bug.promises, bug.threads)
    refuse("allocators", bug.name, finding.requirement)

    (loop,) = folded(finding.program)
    assert re.fullmatch(LOOPS[name], str(loop))


@pytest.mark.deep
@pytest.mark.parametrize("bug", IN_C, ids=lambda item: item.symbols.partition(",")[0])
def test_the_fuzzer_catches_in_c(bug: BugInC, library: Path, refuse: Refuse) -> None:
    """A function in C may end the process, or never return."""
    target = f"{library}:{bug.symbols}?abi={bug.abi}"
    name = bug.symbols.partition(",")[0]
    finding = catch(name, target, bug.requirement, bug.promises, bug.threads)
    refuse("allocators in C", name, finding.requirement)


def test_there_are_many_bugs_and_one_for_every_requirement() -> None:
    seeded = {bug.requirement for bug in ALLOCATOR_BUGS.values()} | {item.requirement for item in IN_C}

    assert len(ALLOCATOR_BUGS) + len(IN_C) >= 25
    assert set(requirements_of("allocator")) == seeded


@pytest.mark.deep
@pytest.mark.parametrize(
    ("symbols", "abi"),
    [
        ("good_nep49_malloc,good_nep49_free,good_nep49_calloc,good_nep49_realloc", "nep49"),
        ("good_nep49_malloc,good_nep49_free", "nep49"),
        ("good_torch_malloc,good_torch_free", "torch"),
        ("good_cupy_malloc,good_cupy_free", "cupy"),
        ("moving_malloc,moving_free,moving_calloc", "malloc"),
    ],
)
def test_every_c_convention_is_driven(library: Path, symbols: str, abi: str) -> None:
    target = f"{library}:{symbols}?abi={abi}"
    with driver_of(target) as driver:
        driver.allocate(0, 100)
        driver.resize(0, 1000)
        driver.calloc(1, 100)
    report = fuzz(target, steps=10_000)

    assert [] == [(finding.requirement, finding.message) for finding in report.findings]
    assert {"A04-contents-kept": "passed"} == {
        verdict.requirement: verdict.status
        for verdict in report.verdicts()
        if verdict.requirement == "A04-contents-kept"
    }
