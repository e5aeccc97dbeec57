"""Diagrams and tables between marks in pages of Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import (
    Call,
    DeclarationError,
    FileAccessError,
    FileFormatError,
    InvalidExportError,
    SyncedMemoryError,
)
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.exports.embedded import END, MARK, embedded
from syncedmem.model.exports.formats import export

PAGE = f"""# A machine

<!-- syncedmem-diagram caffe -->
{END}
Text.

<!-- syncedmem-table early
calls: cpu_data gpu_data
detail: heads
-->
what was here
{END}

```md
<!-- syncedmem-diagram nothing -->
```
"""
MSI = Path(__file__).parents[2] / "examples" / "machines" / "msi.py"


def test_what_is_between_marks_is_written_and_everything_else_stays() -> None:
    text, marks = embedded(PAGE, "page.md")

    assert marks == 2
    assert f"<!-- syncedmem-diagram caffe -->\n```mermaid\n{export('mermaid')!s}```\n{END}\nText.\n" in text
    table = export("markdown", edition="early", calls=(Call.CPU_DATA, Call.GPU_DATA), detail=Detail.HEADS)
    assert f"detail: heads\n-->\n\n{table!s}\n{END}\n" in text
    assert "what was here" not in text
    assert text.endswith("\n```md\n<!-- syncedmem-diagram nothing -->\n```\n")
    assert embedded(text, "page.md") == (text, 2)


def test_a_page_of_windows_stays_one() -> None:
    text, _ = embedded(PAGE.replace("\n", "\r\n"), "page.md")

    assert text == embedded(PAGE, "page.md")[0].replace("\n", "\r\n")


def test_a_page_may_end_with_its_mark() -> None:
    page = f"{MARK.replace('EDITION', 'caffe')}\n{END}"

    assert embedded(page, "page.md")[0].endswith(f"```\n{END}\n")


@pytest.mark.parametrize(("fence", "inside"), [("```", "~~~"), ("~~~~", "~~~"), ("````md", "```")])
def test_a_mark_in_a_block_of_code_is_left_alone(fence: str, inside: str) -> None:
    """A shorter or another fence does not close it."""
    page = f"{fence}\n{inside}\n<!-- syncedmem-diagram nothing -->\n{fence.removesuffix('md')}\n"
    text, marks = embedded(f"{page}<!-- syncedmem-diagram -->\n{END}\n", "page.md")

    assert marks == 1
    assert text.startswith(page)


@pytest.mark.parametrize(
    ("page", "kind", "message"),
    [
        ("", FileFormatError, f"page.md: it has no mark: write {MARK} and below it {END}"),
        (f"text\n{END}\n", FileFormatError, f"page.md: line 2 is no mark; one is {MARK}"),
        (
            "text\n\n<!-- syncedmem-diagram caffe -->\n",
            FileFormatError,
            f"page.md: the mark in line 3 has no end: write {END} below it",
        ),
        (
            f"<!-- syncedmem-diagram -->\n<!-- syncedmem-diagram -->\n{END}\n",
            FileFormatError,
            f"page.md: the mark in line 1 has no end: write {END} below it",
        ),
        (
            f"a\n<!-- syncedmem-x -->\n{END}\n",
            FileFormatError,
            "page.md: unknown mark syncedmem-x in line 2; there are",
        ),
        ("<!-- syncedmem-diagram caffe\n", FileFormatError, f"page.md: line 1 is no mark; one is {MARK}"),
        (f"<!-- syncedmem-diagram no -->\n{END}\n", DeclarationError, "unknown edition 'no'; there are caffe"),
        (
            f"<!-- syncedmem-diagram\nsize: 8\n-->\n{END}\n",
            InvalidExportError,
            "size needs trace",
        ),
        (
            f"<!-- syncedmem-diagram\ntrace: cpu_data\n-->\n{END}\n",
            InvalidExportError,
            "the format mermaid cannot show a trace",
        ),
        (f"<!-- syncedmem-diagram\nwide\n-->\n{END}\n", InvalidExportError, "'wide' is no option of a block: calls,"),
        (f"<!-- syncedmem-table no.json -->\n{END}\n", FileAccessError, "no.json: No such file or directory"),
    ],
)
def test_a_wrong_mark_is_refused(page: str, kind: type[SyncedMemoryError], message: str) -> None:
    with pytest.raises(kind) as refused:
        embedded(page, "page.md")
    assert str(refused.value).startswith(message)


# --- the command


def embed(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["embed", *words])
    return done.exit_code, done.output


def test_the_command_writes_pages_and_says_which_are_old(tmp_path: Path) -> None:
    """The file of a machine is looked for in the folder of the page."""
    (tmp_path / "msi.py").write_text(MSI.read_text(encoding="utf-8"), encoding="utf-8")
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text(f"<!-- syncedmem-diagram msi.py:LINE -->\n{END}\n", encoding="utf-8")
    other.write_text(PAGE, encoding="utf-8")

    assert embed(str(page)) == (0, f"{page}: 1 mark, written\n")
    assert "INVALID --> SHARED" in page.read_text(encoding="utf-8")
    assert embed("--check", str(page), str(other)) == (
        1,
        f"{page}: 1 mark, up to date\n{other}: 2 marks, not up to date\nwrite again: syncedmem embed {other}\n",
    )
    assert other.read_text(encoding="utf-8") == PAGE
    assert embed(str(page), str(other)) == (0, f"{page}: 1 mark, up to date\n{other}: 2 marks, written\n")
    assert embed("--check", str(other)) == (0, f"{other}: 2 marks, up to date\n")


def test_no_page_is_written_if_a_mark_is_wrong(tmp_path: Path) -> None:
    page, wrong = tmp_path / "page.md", tmp_path / "wrong.md"
    page.write_text(PAGE, encoding="utf-8")
    wrong.write_text(f"<!-- syncedmem-diagram no -->\n{END}\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["embed", str(page), str(wrong)])

    assert isinstance(done.exception, DeclarationError)
    assert page.read_text(encoding="utf-8") == PAGE
