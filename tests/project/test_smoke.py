"""One quick look at each thing that only deep tests test in full, because it starts a compiler or another Python.

The Python blocks of README.md, which `make test` and the gate run too, are the fifth of them.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from exported import exported
from mutants.memory import MEMORY_BUGS
from programs import program
from subjects import device_subject
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.spec import check_conformance

ROOT = Path(__file__).parents[2]

ONE_ROW = """\
#include "machine.h"
int main(void) {
  unsigned facts = SMD_HAS_CPU_POINTER | SMD_OWN_CPU_DATA;
  const smd_row *row = smd_find(SMD_GPU_DATA, SMD_HEAD_AT_CPU, facts, 0);
  return row == 0 || row->dest != SMD_SYNCED;
}
"""

SAME_BLOCK = """\
static long block[8];
void *take(unsigned long size) { return size > sizeof block ? 0 : block; }
void give(void *pointer) { (void)pointer; }
"""

SUBJECT = """\
from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec import ReferenceMemory, Subject
from mutants.memory.copies import ReadingDownMovesHead
subject = Subject("mine", {}, CPUDeviceAllocator(), SimulatedDeviceAllocator())
"""


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_export_in_c_compiles_and_has_the_rows(tmp_path: Path) -> None:
    (tmp_path / "machine.h").write_text(exported("c"), encoding="utf-8")
    (tmp_path / "row.c").write_text(ONE_ROW, encoding="utf-8")
    compiled = run(program("gcc"), "-Wall", "-Wextra", "-Werror", "row.c", "-o", "row", folder=tmp_path)
    assert compiled.returncode == 0, compiled.stderr
    assert run(tmp_path / "row", folder=tmp_path).returncode == 0


def test_the_example_port_in_c_conforms(tmp_path: Path) -> None:
    program("cc")
    shutil.copytree(ROOT / "examples" / "ports", tmp_path / "ports", ignore=shutil.ignore_patterns("*.so", "machine.*"))
    folder = tmp_path / "ports" / "c"
    made = run(program("make"), f"SYNCEDMEM={shlex.quote(sys.executable)} -m syncedmem", folder=folder)
    assert made.returncode == 0, made.stderr
    options = ["--profile", "caffe", "--level", "L2", "--steps", "0", "--out", str(tmp_path / "report")]
    result = CliRunner().invoke(app, ["conform", str(folder / "libport.so"), *options])
    assert result.exit_code == 0, result.output
    assert "conforms to caffe/L2" in result.output


def test_the_fuzzer_finds_a_bug_in_a_library_in_c(tmp_path: Path) -> None:
    program("cc")
    (tmp_path / "pool.c").write_text(SAME_BLOCK, encoding="utf-8")
    options = ["--steps", "1000", "--out", str(tmp_path / "report")]
    result = CliRunner().invoke(app, ["fuzz", f"{tmp_path}/pool.c:take,give", *options])
    assert result.exit_code == 1, result.output
    assert "A01-distinct-pointers" in result.output


@pytest.mark.parametrize(("make", "head"), [("ReadingDownMovesHead", "HEAD_AT_CPU"), ("ReferenceMemory", "SYNCED")])
def test_a_reproducer_runs_as_a_file_in_a_fresh_process(make: str, head: str, tmp_path: Path) -> None:
    """What was found in a memory with a bug shows there again, and not in one without."""
    wrong = replace(device_subject(), make=MEMORY_BUGS["ReadingDownMovesHead"].make)
    (violation,) = [suite.violation for suite in check_conformance(wrong, steps=0, suites=["tour"]).suites]
    assert violation is not None
    file = tmp_path / "reproducer.py"
    file.write_text(f"{SUBJECT.format(make)}{violation.reproducer}\nprint(memory.head.name)\n", encoding="utf-8")
    done = run(sys.executable, file, folder=tmp_path)
    assert (done.stdout, done.stderr) == (f"{head}\n", "")
