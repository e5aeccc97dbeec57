"""Sources are public files and lines: each cited file is known, and has the cited lines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from syncedmem.model.caffe import EDITIONS, EVERYTHING

ROOT = Path(__file__).parents[2]

LENGTHS = {"syncedmem.cpp": 185, "syncedmem.hpp": 95, "blob.cpp": 560, "blob.hpp": 282}
"""The number of the last line that is not empty, at the commit of Caffe that docs/design.md names."""

SEED = re.compile(r"\b00[0-4](?::\d|_[0-9a-f]{16}\b)")
THIS = "tests/docs/test_citations.py"
ABOUT_SEEDS = {"docs/errata.md", "spec/errata/registry.py", "tests/spec/test_errata.py", THIS}

CITATION = re.compile(r"\b(\w+\.[ch]pp):(\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")


def texts() -> dict[str, str]:
    """Return every text file under version control that is not a link."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    found: dict[str, str] = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            found[name] = path.read_text(encoding="utf-8", errors="ignore")
    return found


def beyond(text: str) -> list[str]:
    """Return the citations of lines that their file does not have. Files without a known length are ignored."""
    wrong: list[str] = []
    for file, places in CITATION.findall(text):
        for place in places.split(", ") if file in LENGTHS else ():
            first, _, last = place.partition("-")
            if not 1 <= int(first) <= int(last or first) <= LENGTHS[file]:
                wrong.append(f"{file}:{place}")
    return wrong


def test_only_the_errata_cite_the_texts_that_this_was_built_from() -> None:
    citing = {name for name, text in texts().items() if SEED.search(text)}

    assert ABOUT_SEEDS >= citing >= ABOUT_SEEDS - {THIS}


def test_what_cites_such_a_text_is_recognised() -> None:
    cited = ("(000:64)", "004:52-63, malloc", "`000_d041a33c8185e2ad.txt`")
    assert all(SEED.search(text) for text in cited)
    assert not any(SEED.search(text) for text in ("1,000: many", "2.000", "syncedmem.cpp:100"))


def test_citations_are_of_lines_that_there_are() -> None:
    found = {name: beyond(text) for name, text in texts().items() if name != THIS and CITATION.search(text)}

    assert len(found) > 10
    assert {} == {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize("text", ["syncedmem.cpp:186", "blob.hpp:12, 283", "blob.cpp:0", "syncedmem.hpp:34-19"])
def test_a_line_that_there_is_not_is_found(text: str) -> None:
    assert 1 == len(beyond(text))


def test_every_row_cites_lines_of_a_known_file() -> None:
    places = r"\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*"
    form = re.compile(rf"(?:{'|'.join(map(re.escape, LENGTHS))}):{places}")
    assert [] == [row.cite for row in EVERYTHING.rows if not all(form.fullmatch(it) for it in row.cite.split("; "))]
    assert all(any(file in edition.cite for file in LENGTHS) for edition in EDITIONS.values())
