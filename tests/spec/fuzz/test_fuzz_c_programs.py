"""The program of a finding in C: it compiles without us, and shows what the fuzzer has found."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from syncedmem.spec.fuzz import Finding, HeapStep, fuzz
from syncedmem.spec.fuzz.c_program import c_program
from syncedmem.spec.fuzz.recognition import TargetSource

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no cc here: make system-deps")

MINE = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
struct head { void *base; size_t size; };
static void *at(size_t alignment, size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    char *base = malloc(size + alignment + sizeof(struct head));
    if (!base) return NULL;
    char *place = (char *)(((uintptr_t)base + sizeof(struct head) + alignment - 1) & ~(uintptr_t)(alignment - 1));
    ((struct head *)place)[-1] = (struct head){base, size};
    return place;
}
void *my_malloc(size_t size) { return at(16, size); }
void *my_aligned_alloc(size_t alignment, size_t size) { return at(alignment < 16 ? 16 : alignment, size); }
void *my_calloc(size_t count, size_t size) {
    void *place = size && count > SIZE_MAX / size ? NULL : my_malloc(count * size);
    return place ? memset(place, 0, count * size) : NULL;
}
void my_free(void *place) { if (place) free(((struct head *)place)[-1].base); }
size_t my_malloc_usable_size(void *place) { return place ? ((struct head *)place)[-1].size : 0; }
void *my_realloc(void *place, size_t size) {
    void *new = my_malloc(size);
    if (!place || !new) return new;
    struct head head = ((struct head *)place)[-1];
#ifdef WRONG
    memcpy(new, (char *)place + 1, head.size < size ? head.size : size);
#else
    memcpy(new, place, head.size < size ? head.size : size);
#endif
    my_free(place);
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


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    source = tmp_path / "mine.c"
    source.write_text(MINE, encoding="utf-8")
    return source


def ran(text: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Compile a program as its first lines say, and run it."""
    (folder / "found.c").write_text(text, encoding="utf-8")
    command = re.search(r"   cc -g found\.c (.*) -o try && \./try", text)
    assert command is not None
    compiled = ["cc", "-g", *flags, "found.c", *command[1].split(), "-o", "try"]
    subprocess.run(compiled, cwd=folder, check=True, capture_output=True)
    return subprocess.run(["./try"], cwd=folder, check=False, capture_output=True, text=True)


def test_a_right_allocator_does_all_steps(mine: Path) -> None:
    target = f"{mine}:my_*"
    program = c_program(Finding("A04-contents-kept", "x */ y", STEPS), target, TargetSource(target).parts, "found.c")

    assert program is not None
    assert "take(1, my_aligned_alloc(256, 256), 100, 256);" in program.calls
    run = ran(program.text, mine.parent)
    assert (0, True) == (run.returncode, "no block was wrong" in run.stdout), run.stdout


def test_what_was_found_is_shown(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-DWRONG")
    report = fuzz(f"{mine}:my_*", steps=20_000, first=True)
    program = report.c_program(report.findings[0], "found.c")

    assert program is not None
    run = ran(program.text, mine.parent, "-DWRONG")
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


def test_a_program_that_does_not_repeat_is_not_written(mine: Path) -> None:
    target = f"{mine}:my_*"
    finding = Finding("A22-no-crash", "", STEPS, repeats=False)

    assert c_program(finding, target, TargetSource(target).parts, "found.c") is None


ARENA = """
#include <stddef.h>
#include <stdlib.h>
static char room[1 << 16] __attribute__((aligned(16)));
static size_t used, begun;
void begin(void) { used = 0; begun = 1; }
void *carve(size_t size) {
    if (!begun) abort();
    size = (size + 15) & ~(size_t)15;
    return size > sizeof room - used ? NULL : room + (used += size) - size;
}
void give(void *place) { (void)place; }
"""


@pytest.mark.deep
def test_a_reset_is_called_first_and_takes_all_blocks_back(tmp_path: Path) -> None:
    """The program knew blocks that were gone, and said that new ones had bytes of them."""
    source = tmp_path / "arena.c"
    source.write_text(ARENA, encoding="utf-8")
    target = f"{source}:carve,give,reset=begin"
    blocks = [HeapStep("allocate", (number, 100, 0, 0)) for number in range(3)]
    steps = (*blocks, HeapStep("reset", ()), HeapStep("allocate", (3, 300, 0, 0)))
    program = c_program(Finding("A04-contents-kept", "", steps), target, TargetSource(target).parts, "found.c")

    assert program is not None
    run = ran(program.text, tmp_path)
    assert 0 == run.returncode, run


@pytest.mark.parametrize("options", ["?abi=torch", "?ABI=torch", "?Abi=torch&build=make"])
def test_a_program_calls_as_the_target_is_called(options: str) -> None:
    """The name of the option may be written in any case, and was then taken for none."""
    finding, parts = Finding("A04-contents-kept", "", STEPS[:1]), {"malloc": "take", "free": "put"}
    program = c_program(finding, f"./lib.so:take,put{options}", parts, "found.c")

    assert program is not None
    assert ("take(0, take(100, 0, 0), 100, 0);",) == program.calls
