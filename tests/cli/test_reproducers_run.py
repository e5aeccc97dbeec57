"""Every program that a command writes or prints runs as it stands: as a file, in a fresh process."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from command_fixtures import run
from programs import program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deep

WRONG = '''
from syncedmem import SyncedHead, SyncedMemory

class Mine(SyncedMemory):
    """Says SYNCED where only the device is fresh."""

    @property
    def head(self):
        return SyncedHead.SYNCED if super().head is SyncedHead.HEAD_AT_GPU else super().head
'''
SAME_BLOCK = """
static long block[8];
void *take(unsigned long size) { return size > sizeof block ? 0 : block; }
void give(void *pointer) { (void)pointer; }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user, with a wrong memory and a wrong allocator; it is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "pool.c").write_text(SAME_BLOCK, encoding="utf-8")
    return tmp_path


def printed(*arguments: str) -> str:
    """The output of a command that finds something."""
    result = run(*arguments, "--out", "out")
    assert result.exit_code == 1, result.output
    return result.output


def outcome(file: Path) -> tuple[int, str]:
    """The exit status of a program, and what it says is wrong."""
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [("conform", "--level", "L1"), ("learn", "--extra", "1")])
def test_the_programs_in_files_run(arguments: tuple[str, ...], folder: Path) -> None:
    command, *options = arguments
    printed(command, "wrong.py:Mine", *options)
    files = sorted((folder / "out").glob("*.py"))[:5]
    assert files
    assert {file.name: (0, "") for file in files} == {file.name: outcome(file) for file in files}


def test_the_programs_that_conform_prints_run(folder: Path) -> None:
    output = printed("conform", "wrong.py:Mine", "--level", "L1")
    programs = re.findall(r"^Shortest program, seed 0:\n\n(.*?)\n\n", output, re.MULTILINE | re.DOTALL)
    assert programs
    for number, text in enumerate(programs):
        (folder / f"{number}.py").write_text(text, encoding="utf-8")
        assert outcome(folder / f"{number}.py") == (0, "")


def test_the_program_that_fuzz_prints_runs_and_shows_the_finding(folder: Path) -> None:
    program("cc")
    output = printed("fuzz", "./pool.c:take,give", "--steps", "1000")
    (text,) = re.findall(r"^(from syncedmem\.spec\.fuzz import .*?)\n\n", output, re.MULTILINE | re.DOTALL)
    (folder / "program.py").write_text(text, encoding="utf-8")
    status, message = outcome(folder / "program.py")
    assert status == 1
    assert "A01-distinct-pointers: " in message
