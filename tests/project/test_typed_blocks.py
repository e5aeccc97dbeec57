"""The type check of blocks in pages: what it checks, and which errors it finds. `make types` runs it on README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typed_blocks
from typed_blocks import ROOT, blocks, judged, main

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """# A page

```python
x = 1
```

```
no Python
```

```python
y: int = "no"
```
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace build/typed and the top of the repository with a temporary folder."""
    monkeypatch.setattr(typed_blocks, "FOLDER", tmp_path / "typed")
    monkeypatch.setattr(typed_blocks, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    return tmp_path


def test_every_block_is_a_module_with_the_lines_of_the_page(folder: Path) -> None:
    found = blocks(folder / "page.md")

    assert {"page_4": "x = 1\n", "page_12": 'y: int = "no"\n'} == {name: it.lstrip("\n") for name, it in found.items()}
    assert 'y: int = "no"' == found["page_12"].splitlines()[11] == PAGE.splitlines()[11]


def test_the_readme_has_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_blocks, "ROOT", ROOT)
    assert len(blocks(ROOT / "README.md")) > 5
    assert 1 == len(blocks(ROOT / "src" / "README.md"))


MYPY = r"^(?:\./)?(\w+)\.py:\d+: error: .*$"
COMPLAINT = "wrong_on_purpose.py:3: error: no such attribute\n"


def test_what_is_wrong_on_purpose_is_no_complaint() -> None:
    assert [] == judged("mypy", f"{COMPLAINT}Found 1 error", MYPY)


def test_a_checker_that_does_not_see_what_is_wrong_on_purpose_is_refused() -> None:
    assert ["mypy does not complain of what is wrong on purpose:\nSuccess"] == judged("mypy", "Success", MYPY)


def said(*command: str) -> str:
    """Return the output of the checkers for that page."""
    if command[0] == "mypy":
        return f"page_12.py:12: error: Incompatible types\n{COMPLAINT}"
    where = "  /somewhere/typed/{}.py:{}:1 - error: {} (rule)\n"
    return where.format("page_12", 12, "not assignable") + where.format("wrong_on_purpose", 3, "no attribute")


def test_a_wrong_block_is_a_complaint_of_both(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == main([str(folder / "page.md")], said)

    assert [
        "mypy: page_12.py:12: error: Incompatible types",
        "pyright: /somewhere/typed/page_12.py:12:1 - error: not assignable (rule)",
    ] == capsys.readouterr().out.splitlines()
    assert {"page_4.py", "page_12.py", "wrong_on_purpose.py", "pyrightconfig.json"} == {
        path.name for path in (folder / "typed").iterdir()
    }


def test_right_blocks_are_accepted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def nothing_but_seeded(*command: str) -> str:
        return "".join(line for line in said(*command).splitlines(keepends=True) if "page" not in line)

    assert 0 == main([str(folder / "page.md")], nothing_but_seeded)
    assert f"mypy and pyright accept 2 blocks of {folder / 'page.md'}\n" == capsys.readouterr().out
