"""docs/blobs.md: every test that the page names exists, and the example runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "blobs.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+)`", PAGE)))


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 10


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_the_page_names_is_there(name: str) -> None:
    modules = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "runtime" / "blobs").glob("*.py")]

    assert any(f"def {name}(" in text for text in modules)


def test_the_example_shows_a_head_after_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The example is one step of gradient descent, and itself asserts that the numbers are right."""
    runpy.run_path(str(ROOT / "examples" / "sgd_step.py"), run_name="__main__")
    lines = [re.findall(r"(?:data|diff) (\w+)", line)[-2:] for line in capsys.readouterr().out.splitlines()]

    assert [
        ["UNINITIALIZED", "UNINITIALIZED"],
        ["HEAD_AT_CPU", "UNINITIALIZED"],
        ["SYNCED", "UNINITIALIZED"],
        ["SYNCED", "HEAD_AT_GPU"],
        ["SYNCED", "HEAD_AT_GPU"],
        ["HEAD_AT_GPU", "HEAD_AT_GPU"],
        ["HEAD_AT_GPU", "HEAD_AT_GPU"],
        ["SYNCED", "HEAD_AT_GPU"],
    ] == lines
