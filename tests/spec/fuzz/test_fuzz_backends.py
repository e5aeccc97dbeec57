"""Real allocators pass the fuzzer, and the page about them lists all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from backends import BACKENDS, Backend
from bugs_in_c import IN_C
from fuzz_table import PAGE, aligned, page

from syncedmem.spec.fuzz import fuzz
from syncedmem.spec.mutants.allocator import ALLOCATOR_BUGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.fuzz import Report


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_real_allocator_passes(backend: Backend, report_backend: Callable[[str, Report], None]) -> None:
    """It is called from several threads too, if it allows that."""
    report = fuzz(
        backend.target(), promises=backend.promises, threads=backend.threads, steps=backend.steps, skip=backend.known
    )
    report_backend(backend.name, report)

    assert [] == [(it.requirement, it.message) for it in report.findings]
    assert report.operations >= backend.steps


def rows(title: str) -> list[str]:
    """Return the first column of a table of the page."""
    lines = PAGE.read_text(encoding="utf-8").partition(f"## {title}")[2].partition("\n## ")[0].splitlines()
    return [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")][2:]


def test_the_page_lists_every_backend_and_every_seeded_bug() -> None:
    """`make proof` writes the page: it must have been written from the present backends and bugs."""
    seeded = {*ALLOCATOR_BUGS, *(it.symbols.partition(",")[0] for it in IN_C)}

    assert [backend.name for backend in BACKENDS] == rows("Allocators that pass")
    assert sorted(seeded) == sorted(rows("Seeded bugs"))


def test_tables_are_aligned_and_sorted() -> None:
    text = page([["libc", 123456.0, 14, 10]], [["B", "A02", 7, 3, 0.1], ["A", "A02", 1, 1, 12.5]])

    assert "| libc | 123,456 | 14 | 10 |" in text
    assert text.index("| A | A02 | 1 | 1 | 12.5 |") < text.index("| B | A02 | 7 | 3 | 0.1 |")
    assert ["a   bb", "x   1", "yy  2"] == aligned(["a", "bb"], [["yy", 2], ["x", 1]])
