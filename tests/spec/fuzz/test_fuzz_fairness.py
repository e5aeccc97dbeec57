"""Right allocators that are unusual are told as what they are: an arena, a slow one, and one that was hardly tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from syncedmem.spec import Violation
from syncedmem.spec.fuzz import Capabilities, EngineError, FuzzWanted, HeapStep, Report, driver_of, fuzz

if TYPE_CHECKING:
    from pathlib import Path

ARENA = """
import ctypes, time

class Arena:
    \"\"\"Frees only the last block; a reset frees all.\"\"\"

    def __init__(self):
        self.chunks, self.at, self.left, self.last = [], 0, 0, 0

    def allocate(self, size):
        if size > 1 << 40:
            raise MemoryError
        size = -(-size // 16) * 16 or 16
        if size > self.left:
            self.chunks.append(ctypes.create_string_buffer(max(size, 1 << 14) + 16))
            self.at, self.left = -(-ctypes.addressof(self.chunks[-1]) // 16) * 16, max(size, 1 << 14)
        self.last, self.at, self.left = self.at, self.at + size, self.left - size
        return self.last

    def deallocate(self, pointer, size):
        if pointer == self.last:
            self.left, self.at, self.last = self.left + self.at - pointer, pointer, 0

    def reset(self):
        self.__init__()

class Keeps(Arena):
    \"\"\"A reset goes on in the memory that it has freed.\"\"\"

    def reset(self):
        self.chunks.clear()

class Leaks(Arena):
    \"\"\"A reset keeps all that it has, and begins with new memory.\"\"\"

    def reset(self):
        self.at = self.left = self.last = 0

class Slow:
    \"\"\"Some calls work for longer than the limit of a hang.\"\"\"

    calls = 0

    def allocate(self, size):
        Slow.calls += 1
        if size > 1 << 40:
            raise MemoryError
        if Slow.calls % 4001 == 4000:
            end = time.process_time() + 0.6
            while time.process_time() < end:
                pass
        buffer = ctypes.create_string_buffer(size or 1)
        self.live = getattr(self, "live", {})
        self.live[ctypes.addressof(buffer)] = buffer
        return ctypes.addressof(buffer)

    def deallocate(self, pointer):
        del self.live[pointer]

class Old(Slow):
    \"\"\"Hangs as soon as there have been many of it, so never at its first one.\"\"\"

    number = 0

    def __init__(self):
        Old.number += 1

    def allocate(self, size):
        Slow.calls = 0
        while Old.number > 20:
            self.idle()
        return super().allocate(size)

    def idle(self):
        time.sleep(1)

class Busy(Old):
    \"\"\"The same, and works all the time.\"\"\"

    def idle(self):
        pass

class Waits(Slow):
    \"\"\"Each call waits for something else.\"\"\"

    def allocate(self, size):
        time.sleep(0.01)
        Slow.calls = 0
        return super().allocate(size)
"""


@pytest.fixture(scope="module")
def arenas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("arenas") / "arenas.py"
    file.write_text(ARENA, encoding="utf-8")
    return file


@pytest.mark.deep
def test_an_arena_is_told_as_what_it_is_and_once(arenas: Path) -> None:
    report = fuzz(f"{arenas}:Arena", steps=20_000)

    assert [("A16-no-leaks", True)] == [(finding.requirement, finding.is_arena) for finding in report.findings]
    assert "--promise reuse=no" in report.findings[0].message
    assert (HeapStep("reuse", (64, 4096)),) == report.findings[0].program

    shown = report.replay(report.findings[0]).run()  # it is not among the promises of its own replay
    assert ({"reuse": "no"}, "no") == (report.wanted.promises, report.as_json()["capabilities"]["reuse"])
    assert shown is not None
    assert (True, report.findings[0].message) == (report.findings[0].elsewhere, shown.message)


@pytest.mark.deep
def test_an_arena_that_says_so_passes_and_its_resets_are_tried(arenas: Path) -> None:
    report = fuzz(f"{arenas}:Arena", steps=4_000, promises={"reuse": "no"})

    assert report.passed, [finding.message for finding in report.findings]
    assert report.checked["A07-free-accepts"]


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize(
    ("name", "requirements"), [("Keeps", {"A04-contents-kept", "A22-no-crash"}), ("Leaks", {"A16-no-leaks"})]
)
def test_a_reset_that_is_wrong_is_found(arenas: Path, name: str, requirements: set[str]) -> None:
    report = fuzz(f"{arenas}:{name}", steps=4_000, promises={"reuse": "no"}, seconds=60, first=True)

    assert report.findings
    assert {finding.requirement for finding in report.findings} <= requirements | {
        "A01-distinct-pointers",
        "A02-no-overlap",
    }


def test_what_was_served_before_a_reset_is_asked_for_again(arenas: Path) -> None:
    with driver_of(f"{arenas}:Arena", reuse="no") as driver:
        driver.allocate(0, 5000)
        assert driver.reset()
        assert not driver.blocks
    with driver_of(f"{arenas}:Arena") as driver:
        assert not driver.reset()


@pytest.mark.deep
def test_slow_is_not_wrong(arenas: Path) -> None:
    report = fuzz(f"{arenas}:Slow", steps=6_000, hang=0.4)

    assert ([], True) == ([finding.message for finding in report.findings], report.passed)
    assert any(note.startswith("slow: ") for note in report.notes)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["Old", "Busy"])
def test_what_hangs_only_in_an_old_process_is_not_slow(arenas: Path, name: str) -> None:
    """Its last round, taken alone, came to its end; so it was told as slow, and the run passed."""
    report = fuzz(f"{arenas}:{name}", steps=6_000, hang=0.4, first=True)

    assert [("A23-no-hang", False)] == [(finding.requirement, finding.repeats) for finding in report.findings]
    assert not report.notes


def test_a_slow_target_has_a_smaller_plan(arenas: Path) -> None:
    """It was "incomplete", and did not pass."""
    report = fuzz(f"{arenas}:Waits", seconds=2)

    assert report.passed, [finding.message for finding in report.findings]
    assert any(note.startswith("a smaller plan: ") for note in report.notes)
    assert 0 < report.planned < 2_000


def test_what_becomes_slow_later_has_a_smaller_plan_and_what_was_not_its_fault_is_incomplete() -> None:
    slow = Report(FuzzWanted("a:b", seconds=10), "", Capabilities(), protected=True, planned=1_000)
    slow.ran("fast", 1, 300, 9.5)

    assert (True, "300 operations, because each took 31.7 ms") == (slow.passed, slow.slow)

    stopped = Report(FuzzWanted("a:b", seconds=10), "", Capabilities(), protected=True, planned=1_000)
    stopped.ran("fast", 1, 300, 1.0)

    assert (False, "") == (stopped.passed, stopped.slow)
    assert "300 of 1,000 planned operations" in stopped.incomplete
    with pytest.raises(EngineError):
        stopped.require()


QUARANTINE = """
#include <malloc.h>
#include <stdlib.h>

/* What is freed waits until other blocks, or many bytes, were freed after it; each free looks for it there. */
#define MOST 4096
static void *waiting[MOST];
static size_t held;
static unsigned first, last;
static void let_go(void) {
    void *block = waiting[first++ % MOST];
    held -= malloc_usable_size(block);
#ifndef KEEPS
    free(block);
#endif
}
void *kept_malloc(size_t size) { return size > (size_t)1 << 40 ? NULL : malloc(size); }
void kept_free(void *block) {
    if (!block) return;
    for (int i = 0; i < 60; i++)
        for (unsigned at = first; at != last; at++) if (((void *volatile *)waiting)[at % MOST] == block) abort();
    if (last - first == MOST) let_go();
    waiting[last++ % MOST] = block;
    held += malloc_usable_size(block);
    while (held > 64 << 20) let_go();
}
"""


@pytest.mark.deep
@pytest.mark.parametrize("flags", ["", "-DKEEPS"])
def test_a_quarantine_that_becomes_slow_is_judged_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    """A cycle of small blocks took all of the time; what it keeps is measured until it is full."""
    monkeypatch.setenv("CFLAGS", flags)
    source = tmp_path / "quarantine.c"
    source.write_text(QUARANTINE, encoding="utf-8")
    report = fuzz(f"{source}:kept_malloc,kept_free", seconds=15)

    found = {finding.requirement for finding in report.findings}
    assert ({"A16-no-leaks"} if flags else set()) == found, [finding.message for finding in report.findings]
    assert report.passed is not bool(flags), report.incomplete


def test_what_contradicts_it_is_refused() -> None:
    with pytest.raises(Violation, match="A16"), driver_of("libc.so.6:malloc,free") as driver:
        driver.oracle.judge_arena()
