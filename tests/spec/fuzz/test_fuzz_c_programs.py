"""The program of a finding in C: it compiles without us, and shows what the fuzzer has found."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from syncedmem.spec.fuzz import Finding, HeapStep, fuzz
from syncedmem.spec.fuzz.c_program import c_program
from syncedmem.spec.fuzz.recognition import TargetSource

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no cc here: make system-deps")

RIGHT = f"{Path(__file__).parents[2] / 'support' / 'conventions.c'}:good_*"
WRONG = """
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
void *my_malloc(size_t size) { return malloc(size); }
void my_free(void *place) { free(place); }
void *my_realloc(void *place, size_t size) {
    size_t old = malloc_usable_size(place);
    void *new = realloc(place, size);
    if (new && size && size < old / 2) memmove(new, (char *)new + 1, size - 1);
    return new;
}
"""

STEPS = (
    HeapStep("allocate", (0, 100, 0, 0)),
    HeapStep("allocate", (1, 100, 256, 0)),
    HeapStep("calloc", (2, 64)),
    HeapStep("use_all", (1,)),
    HeapStep("resize", (1, 5000)),
    *(HeapStep("allocate", (number, 24, 0, 0)) for number in range(3, 9)),
    HeapStep("check", (0,)),
    HeapStep("request_too_much", ((1 << 64) - 1, 64)),
    HeapStep("resize_too_much", (0, (1 << 64) - 1)),
    HeapStep("cycle", (64, 100, 0)),
    HeapStep("cycle", (64, 100, 1)),
    HeapStep("cycle", (64, 100, 4)),
    HeapStep("free", (0, 0)),
    HeapStep("free", (1, 0)),
)


def ran(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile a program as its first lines say, and run it."""
    (folder / "found.c").write_text(text, encoding="utf-8")
    command = re.search(r"   cc -g found\.c (.*) -o try && \./try", text)
    assert command is not None
    compiled = ["cc", "-g", "found.c", *command[1].split(), "-o", "try"]
    subprocess.run(compiled, cwd=folder, check=True, capture_output=True)
    return subprocess.run(["./try"], cwd=folder, check=False, capture_output=True, text=True)


def test_a_right_allocator_does_all_steps(tmp_path: Path) -> None:
    program = c_program(Finding("A04-contents-kept", "x */ y", STEPS), RIGHT, TargetSource(RIGHT).parts, "found.c")

    assert program is not None
    assert "take(1, good_aligned_alloc(256, 256), 100, 256);" in program.calls
    run = ran(program.text, tmp_path)
    assert (0, True) == (run.returncode, "no block was wrong" in run.stdout), run.stdout


def test_what_was_found_is_shown(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text(WRONG, encoding="utf-8")
    report = fuzz(f"{tmp_path / 'wrong.c'}:my_*", steps=20_000, first=True)
    program = report.c_program(report.findings[0], "found.c")

    assert program is not None
    run = ran(program.text, tmp_path)
    assert 1 == run.returncode
    assert "its bytes have changed" in run.stdout


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("mine.py:Pool", {}),  # no functions in C
        ("./lib.so:pool_*?abi=resource", {"make": "pool_make", "allocate": "pool_allocate"}),  # an object
        ("./lib.so:take,put", {"malloc": "take", "free": "put"}),  # no realloc
    ],
)
def test_what_has_no_form_in_c_is_not_written(target: str, parts: dict[str, str]) -> None:
    assert c_program(Finding("A04-contents-kept", "", STEPS), target, parts, "found.c") is None


def test_a_program_that_does_not_repeat_is_not_written() -> None:
    finding = Finding("A22-no-crash", "", STEPS, repeats=False)

    assert c_program(finding, RIGHT, TargetSource(RIGHT).parts, "found.c") is None
