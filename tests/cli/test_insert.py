"""``syncedmem diagram --insert``: diagrams in a page are kept current; and ``-o`` replaces no page by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_fixtures import run

from syncedmem.cli.output import signed
from syncedmem.model.exports.blocks import END, MARK
from syncedmem.model.exports.formats import export, tla_config

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

PAGE = f"""# Mine

{MARK}
{END}

Between.

<!-- syncedmem: diagram --format markdown --edition early --calls "cpu_data gpu_data" -->
old
{END}

```markdown
{MARK}
{END}
```

The end.
"""


@pytest.fixture
def readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with two diagrams; its folder is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text(PAGE, encoding="utf-8")
    return tmp_path / "README.md"


def diagram(*arguments: str) -> Result:
    return run("diagram", *arguments)


def test_the_blocks_are_written_and_the_rest_is_kept(readme: Path) -> None:
    assert diagram("--insert", "README.md").exit_code == 0
    text = readme.read_text(encoding="utf-8")
    mermaid = str(export("mermaid", edition="caffe"))
    assert f"# Mine\n\n{MARK}\n\n```mermaid\n{mermaid}```\n\n{END}\n\nBetween.\n" in text
    assert "old" not in text
    assert "| mutable_cpu_data |" not in text
    assert "\n| call | UNINITIALIZED |" in text
    assert text.endswith(f"```markdown\n{MARK}\n{END}\n```\n\nThe end.\n")


def test_a_second_time_changes_nothing_and_check_says_what_is_stale(readme: Path) -> None:
    assert diagram("--insert", "README.md", "--check").exit_code == 1
    assert readme.read_text(encoding="utf-8") == PAGE
    diagram("--insert", "README.md")
    text = readme.read_text(encoding="utf-8")
    assert diagram("--insert", "README.md", "--check").exit_code == 0
    assert diagram("--insert", "README.md").exit_code == 0
    assert readme.read_text(encoding="utf-8") == text
    readme.write_text(text.replace("SYNCED", "OTHER", 1), encoding="utf-8")
    stale = diagram("--insert", "README.md", "--check")
    assert stale.exit_code == 1
    assert stale.output == "README.md is not up to date: write it again without --check\n"


def test_lines_of_windows_stay_so(readme: Path) -> None:
    readme.write_bytes(PAGE.replace("\n", "\r\n").encode())
    assert diagram("--insert", "README.md").exit_code == 0
    content = readme.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n") > PAGE.count("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Nothing\n", "README.md has no mark; write two lines where the diagram should be"),
        (f"{MARK}\nno end\n", f"README.md, line 1: this mark needs a line {END} after it"),
        (f"{MARK}\n{MARK}\n{END}\n", "README.md, line 1: this mark needs a line"),
        (f"\n{MARK.replace('mermaid', 'mermade')}\n{END}\n", "line 2: unknown format 'mermade' (did"),
        (f"{MARK.replace('--format', '--formal')}\n{END}\n", "line 1: unknown option '--formal'"),
        (f"{MARK.replace('mermaid', '')}\n{END}\n", "line 1: --format needs a value"),
        (f"{MARK.replace('mermaid', 'svg')}\n{END}\n", "line 1: svg is a picture, which a page shows from a file"),
        (f"{MARK.replace('mermaid', 'png')}\n{END}\n", "line 1: png "),
        (f"{MARK.replace('mermaid', chr(34))}\n{END}\n", "No closing quotation"),
        (f"{MARK.replace('--format mermaid', '--calls fly')}\n{END}\n", "line 1: unknown call 'fly'"),
        (f"{MARK.replace('--format mermaid', '--edition late')}\n{END}\n", "line 1: unknown machine 'late'"),
        (f"{MARK}\n{END}\n{MARK.replace('diagram', 'diagrm')}\n", "README.md, line 3: this is no mark"),
        (f"{MARK.replace('syncedmem:', 'syncedmem')}\n{END}\n", "README.md, line 1: this is no mark"),
        (f"text\n{END}\n", "README.md, line 2: this is no mark, or an end without a beginning"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_the_page_is_kept(text: str, message: str, readme: Path) -> None:
    readme.write_text(text, encoding="utf-8")
    result = diagram("--insert", "README.md")
    assert message in str(result.exception)
    assert readme.read_text(encoding="utf-8") == text


def test_of_two_pages_none_is_written_if_one_is_wrong(readme: Path) -> None:
    (readme.parent / "other.md").write_text("nothing", encoding="utf-8")
    assert diagram("--insert", "README.md", "--insert", "other.md").exit_code != 0
    assert readme.read_text(encoding="utf-8") == PAGE


def test_options_stand_in_the_marks(readme: Path) -> None:
    result = diagram("--insert", "README.md", "--format", "dot")
    assert "with --insert the marks have the options, so --format cannot be given" in str(result.exception)
    assert readme.read_text(encoding="utf-8") == PAGE


# --- -o


def test_a_module_of_tla_has_its_configuration_beside_it(tmp_path: Path) -> None:
    file, config = tmp_path / "m.tla", tmp_path / "m.cfg"
    assert diagram("-o", str(file)).exit_code == 0
    module, configuration = signed(str(export("tla")), "tla"), signed(tla_config(), "cfg")
    assert (module, configuration) == (file.read_bytes(), config.read_bytes())
    assert diagram("-o", str(file), "--check").exit_code == 0

    config.write_text("mine\n", encoding="utf-8")
    assert f"{config} is not up to date: it is another kind of file" in diagram("-o", str(file), "--check").stderr
    refused = diagram("-o", str(file), "--edition", "early")
    assert f"{config}: it is there without the sign" in str(refused.exception)
    assert module == file.read_bytes()
    assert diagram("-o", str(file), "--force").exit_code == 0
    assert configuration == config.read_bytes()


def test_an_unknown_format_is_refused_in_a_mark(readme: Path) -> None:
    page = f"{MARK.replace('mermaid', 'rst')}\n{END}\n"
    readme.write_text(page, encoding="utf-8")

    assert "README.md, line 1: unknown format 'rst'" in str(diagram("--insert", "README.md").exception)
    assert readme.read_text(encoding="utf-8") == page


def test_a_check_does_not_advise_what_is_refused(readme: Path) -> None:
    result = diagram("--format", "markdown", "-o", "README.md", "--check")
    assert (1, "README.md is not up to date: it is another kind of file, which only --force replaces\n") == (
        result.exit_code,
        result.stderr,
    )
    assert readme.read_text(encoding="utf-8") == PAGE
