"""The commands of a guide, one after the other in an empty folder, as a reader types them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from syncedmem.cli import app

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "document-your-own.md"


def blocks(language: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_command_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mask.py").write_text(blocks("python")[0], encoding="utf-8")
    Path("README.md").write_text(f"# Mine\n\n{blocks('markdown')[0]}", encoding="utf-8")
    commands = [line for block in blocks("console") for line in block.splitlines()]
    for command in commands:
        prompt, program, *arguments = shlex.split(command)
        assert (prompt, program) == ("$", "syncedmem")
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{command}: {done.output}"
        if "text" in arguments:
            assert "VecCUDAGetArrayWrite" in done.output

    assert "BOTH" in Path("README.md").read_text(encoding="utf-8").partition("```mermaid")[2]
    assert {"mask.svg", "mask.pdf", "table.tex", "trace.pdf"} <= {path.name for path in tmp_path.iterdir()}
    Path("mask.svg").write_text("<svg/>", encoding="utf-8")
    stale = CliRunner().invoke(app, ["diagram", "--machine", "mask.py:MASK", "-o", "mask.svg", "--check"])
    assert stale.exit_code == 1
    assert "mask.svg" in stale.output
