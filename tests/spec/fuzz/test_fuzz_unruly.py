"""Targets that do what they like with their process: it is told apart from a crash and a hang, and never invented."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from syncedmem.spec.fuzz import EngineError, fuzz
from syncedmem.spec.fuzz.jobs import Isolated

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deep

START = """
import os, signal, time
from mutants.allocator import Pool

class Unruly(Pool):
    calls = 0
    def allocate(self, size, alignment=64, stream=None):
        Unruly.calls += 1
        if Unruly.calls == 20:
            self.act()
        return super().allocate(size, alignment, stream)
    def act(self):
"""

FORKS_AND_LEAVES_A_CHILD = "if not os.fork(): time.sleep(30); os._exit(0)"


def target(tmp_path: Path, act: str) -> str:
    file = tmp_path / "unruly.py"
    file.write_text(f"{START}        {act}\n", encoding="utf-8")
    return f"{file}:Unruly"


def test_what_writes_into_every_file_of_its_process_is_no_bug_of_an_allocator(tmp_path: Path) -> None:
    """What else it may do with its process is tried in test_fork.py."""
    writes = "[os.write(it, b'x') for it in range(1, 60) if os.access(f'/proc/self/fd/{it}', os.W_OK)]"
    act = f"\n            try: {writes}\n            except OSError: pass"
    report = fuzz(target(tmp_path, act), steps=500, hang=20)

    assert ([], []) == ([finding.message for finding in report.findings], report.errors)


def test_a_crash_is_one_although_a_child_stays(tmp_path: Path) -> None:
    """It was once reported as a hang, because the child kept the pipe open."""
    act = f"\n            {FORKS_AND_LEAVES_A_CHILD}\n            os.abort()"
    report = fuzz(target(tmp_path, act), steps=500, hang=20, first=True)

    assert ["A22-no-crash"] == [finding.requirement for finding in report.findings]
    assert "SIGABRT" in report.findings[0].message
    assert len(report.replay(report.findings[0]).python().splitlines()) <= 10


def test_who_ends_the_process_that_watches_is_an_error_of_nobody(tmp_path: Path) -> None:
    report = fuzz(target(tmp_path, "os.kill(os.getppid(), signal.SIGKILL)"), steps=500, hang=20)

    assert [] == report.findings
    assert "the process that watches the target was ended by SIGKILL, twice in the same job" in report.errors[0]
    assert not report.passed
    with pytest.raises(EngineError, match="ended by SIGKILL"):
        report.require()
    assert report.errors == report.as_json()["errors"]


def test_a_kill_from_outside_is_no_crash(tmp_path: Path) -> None:
    """It does not come again, and a crash does.  The first process only looks how long a call takes."""
    mark = tmp_path / "mark"
    act = (
        f"\n            with open({str(mark)!r}, 'a') as file: file.write('+')"
        f"\n            if os.path.getsize({str(mark)!r}) == 2: os.kill(os.getpid(), 9)"
    )
    report = fuzz(target(tmp_path, act), steps=500, hang=20)

    assert [] == report.findings
    assert "SIGKILL" in report.errors[0]
    assert "something outside has ended the process" in report.errors[0]


def test_a_kill_from_outside_is_none_of_threads_either(tmp_path: Path) -> None:
    """Nobody can take their steps again, so it was once a bug of theirs."""
    mark, file = tmp_path / "mark", tmp_path / "killed.py"
    file.write_text(
        "import os, threading\nfrom mutants.allocator import Pool\nclass Killed(Pool):\n"
        "    def allocate(self, size, alignment=64, stream=None):\n"
        f"        if threading.current_thread() is not threading.main_thread() and not os.path.exists({str(mark)!r}):\n"
        f"            open({str(mark)!r}, 'w').close(); os.kill(os.getpid(), 9)\n"
        "        return super().allocate(size, alignment, stream)\n",
        encoding="utf-8",
    )
    report = fuzz(f"{file}:Killed", steps=2_000, threads=2, promises={"thread_safe": "yes"}, hang=20)

    assert [] == report.findings
    assert ["SIGKILL" in error for error in report.errors] == [True]
    assert "threads" in [suite.name for suite in report.suites]


def test_a_failure_of_ours_in_the_worker_is_said() -> None:
    with (
        Isolated("mutants.allocator:Pool", 20.0) as place,
        pytest.raises(EngineError, match=r"the fuzzer itself has failed, .*: KeyError: 'fly'"),
    ):
        place.perform({"job": "fly", "promises": {}})


LEGAL = """
#include <stdlib.h>
static long k;
void *refusing(size_t n) { return ++k % 7 ? malloc(n ? n : 1) : 0; }
void *no_calloc(size_t n, size_t m) { return n && m ? 0 : 0; }
void *no_realloc(void *p, size_t n) { return p && n ? 0 : 0; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("legal")
    (folder / "legal.c").write_text(LEGAL, encoding="utf-8")
    made = folder / "liblegal.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, folder / "legal.c"], check=True)
    return made


@pytest.mark.parametrize("seed", range(5))
def test_who_refuses_at_random_is_legal(seed: int, library: Path) -> None:
    """Hypothesis once failed on it, and the process that it ended in was a crash of the target."""
    report = fuzz(f"{library}:refusing,free", seed=seed, steps=2_000, hang=60)

    assert ([], []) == ([finding.message for finding in report.findings], report.errors)


def test_a_function_that_always_refuses_is_named(library: Path) -> None:
    report = fuzz(f"{library}:refusing,free,no_calloc,no_realloc", steps=10_000, hang=60)
    details = [report.verdict(name).detail for name in ("A13-zeroed", "A14-resize-keeps")]

    assert details[0].startswith("its calloc refused every time, of ")
    assert details[1].startswith("its realloc refused every time, of ")
    report.checked.clear()
    assert "its calloc was not called" == report.verdict("A13-zeroed").detail
