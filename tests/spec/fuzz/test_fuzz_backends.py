"""Real allocators pass the fuzzer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from backends import BACKENDS, Backend
from fuzz_table import aligned
from sampling import sampled

from syncedmem.spec.fuzz import fuzz

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.fuzz import Report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take a third of them, which the seed of the run chooses; ``make bugs`` and ``make proof`` take all."""
    if "backend" in metafunc.fixturenames:
        chosen = sampled(metafunc.config, ((it.name, it) for it in BACKENDS), of=3)
        metafunc.parametrize("backend", chosen, ids=lambda backend: backend.name)


@pytest.mark.no_cover
def test_a_real_allocator_passes(backend: Backend, report_backend: Callable[[str, Report], None]) -> None:
    """It is called from several threads too, if it allows that."""
    report = fuzz(
        backend.target(), promises=backend.promises, threads=backend.threads, steps=backend.steps, skip=backend.known
    )
    report_backend(backend.name, report)

    assert [] == [(it.requirement, it.message) for it in report.findings]
    assert report.operations >= backend.steps


def test_tables_are_aligned_and_sorted() -> None:
    assert ["a   bb", "x   1", "yy  2"] == aligned(["a", "bb"], [["yy", 2], ["x", 1]])
