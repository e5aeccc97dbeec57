"""Right allocators are never accused and never incomplete, and their wrong twins are refused."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from controls.allocators import CONTROLS, PRELOADED, SOURCE, TWINS, preloaded_beside
from programs import program

from syncedmem.spec.fuzz import fuzz

if TYPE_CHECKING:
    from pathlib import Path

    from controls.allocators import Control


def compiled(library: Path, *flags: str) -> Path:
    """Compile the controls, or their twins."""
    for source, made in ((SOURCE, library), (PRELOADED, preloaded_beside(library))):
        command = [program("cc"), "-shared", "-fPIC", "-O1", "-fno-builtin", *flags, "-o", made, source, "-lpthread"]
        subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("right") / "controls.so")


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("twins") / f"{TWINS}.so", "-DTWIN", "-DWRAPS")


@pytest.mark.deep(quick=22)
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_a_right_allocator_is_not_accused(control: Control, right: Path) -> None:
    report = fuzz(control.target(right), steps=500, seconds=2, promises=control.promises)

    assert report.passed, [finding.message for finding in report.findings] or report.incomplete


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_a_right_allocator_is_not_accused_with_other_seeds(control: Control, seed: int, right: Path) -> None:
    """Many short plans have more first calls of a process, and more mixes, than a few long ones."""
    report = fuzz(control.target(right), seed=seed, steps=4_000, seconds=4, promises=control.promises)

    assert report.passed, [finding.message for finding in report.findings] or report.incomplete


@pytest.mark.deep
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_a_right_allocator_is_not_accused_in_a_long_run(control: Control, right: Path) -> None:
    report = fuzz(control.target(right), seed=1, steps=40_000, seconds=20, promises=control.promises)

    assert report.passed, [finding.message for finding in report.findings] or report.incomplete


@pytest.mark.deep
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_its_wrong_twin_is_refused_by_its_requirement(control: Control, twins: Path) -> None:
    report = fuzz(control.target(twins), steps=20_000, seconds=30, promises=control.promises, first=True, hang=1)

    assert {finding.requirement[:3] for finding in report.findings[:1]} & control.broken, report.as_json()["findings"]
