"""Texts of a megabyte, each the worst for a pattern that reads it: the work does not grow with their square."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import markdown
import pytest

from syncedmem.markdown import Blocks
from syncedmem.model import InvalidExportError, Machine, Row
from syncedmem.model.exports.blocks import END, MARK, fill_blocks
from syncedmem.model.exports.document import machine_document
from syncedmem.spec.fuzz.native import LibraryAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG = 1 << 20
_HANGS = 60
"""Seconds; any of these takes less than two."""


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """End what would take hours."""

    def end(*_: object) -> NoReturn:
        pytest.fail("it hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(_HANGS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def repeated(part: str) -> str:
    return part * (LONG // len(part))


@pytest.mark.parametrize("part", ["```a\n", "~~~a\n", "~", "```\n~~~\n", "``` \n~~~~\n", " "])
def test_a_page_of_beginnings_is_read(part: str) -> None:
    """Nothing closes these blocks, so they are left alone."""
    lines = repeated(part).split("\n")

    assert lines == Blocks(markdown.Markdown()).run(lines)


@pytest.mark.parametrize("part", ["a", "_", "a.", "a.b", "1:", "a.b:1-"])
def test_a_citation_without_places_is_read(part: str) -> None:
    machine = Machine("m", [Row("go", "A", cite=f"{repeated(part)}!")])

    assert repeated(part) in str(machine_document(machine))


@pytest.mark.parametrize("part", [".so", ".so:", ".dylib?", ":"])
def test_a_target_that_is_no_library_is_none(part: str) -> None:
    assert LibraryAddress.parse(f"{repeated(part)}?") is None


@pytest.mark.parametrize("part", ["-->", "--> ", "<!-- syncedmem: diagram", "```a\n", f"{MARK}\n", f"{END}\n", "\n"])
def test_a_page_without_a_block_is_refused(part: str) -> None:
    refused: Callable[[str], str] = partial(fill_blocks, source="page")
    with pytest.raises(InvalidExportError, match="page"):
        refused(f"{repeated(part)}!")
