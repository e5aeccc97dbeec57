"""Forks: POSIX allows no allocator in a child of a process with threads, so only who promises more is asked for it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, NoReturn

import pytest
from programs import program

from syncedmem.spec import Violation
from syncedmem.spec.fuzz import HeapStep, driver_of, fuzz
from syncedmem.spec.fuzz.jobs import perform
from syncedmem.spec.fuzz.journal import Journal
from syncedmem.spec.fuzz.recognition import TargetSource

if TYPE_CHECKING:
    from pathlib import Path

    from syncedmem.spec.fuzz import Report

ALLOCATORS = """
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
#ifdef HANDLES
__attribute__((constructor)) static void begin(void) { pthread_atfork(lock, unlock, unlock); }
#endif

void *plain_malloc(size_t size) { lock(); void *block = malloc(size); unlock(); return block; }
void plain_free(void *block) { lock(); free(block); unlock(); }

#define ROOM (1 << 20)
static _Alignas(16) char room[ROOM];
static size_t used;
void *arena_malloc(size_t size) {
    void *block = NULL;
    lock();
    size = size > ROOM ? ROOM + 1 : size ? (size + 15) & ~(size_t)15 : 16;
    if (size <= ROOM - used) block = room + used, used += size;
    unlock();
    return block;
}
void arena_free(void *block) { (void)block; }
void arena_reset(void) { lock(); used = 0; unlock(); }
"""

PLAIN, ARENA = "plain_malloc,plain_free", "arena_malloc,arena_free,reset=arena_reset"
PROMISED = {"fork_safe": "yes"}
FORKS = HeapStep("fork", (100,))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "forked.c"
    program("cc")
    file.write_text(ALLOCATORS, encoding="utf-8")
    return file


def verdict(report: Report) -> tuple[str, str]:
    """Return the verdict on the requirement about forks, and its reason."""
    found = report.verdict("A27-survives-fork")
    return found.status, found.detail


def test_a_plain_mutex_is_right(source: Path) -> None:
    report = fuzz(f"{source}:{PLAIN}", steps=2_000)

    assert report.passed, [finding.message for finding in report.findings]
    assert ("not checked", "fork_safe is not promised") == verdict(report)


def test_a_plain_mutex_that_promises_forks_is_refused(source: Path) -> None:
    """Each time: while this thread was one of Python, it was between two calls at most forks."""
    for _ in range(3):
        with pytest.raises(Violation, match="A27"), driver_of(f"{source}:{PLAIN}", fork_safe="yes") as driver:
            driver.perform(FORKS)


@pytest.mark.parametrize("symbols", [PLAIN, ARENA])
def test_who_handles_forks_is_told_of_the_promise_and_keeps_it(
    source: Path, symbols: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLAGS", "-DHANDLES")
    with driver_of(f"{source}:{symbols}", fork_safe="yes") as driver:
        assert driver.perform(FORKS)
        assert [] == driver.notes
        assert 1 == driver.oracle.checked["A27-survives-fork"]
        assert driver.allocate(0, 1000)  # an arena is not full after it

    assert TargetSource(f"{source}:{symbols}").handles_forks
    report = fuzz(f"{source}:{symbols}", steps=2_000)
    status, reason = verdict(report)

    assert ("not checked", True) == (status, "--promise fork_safe=yes" in reason)


@pytest.mark.deep
def test_an_arena_that_promises_forks_takes_all_its_steps(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread beside the forks filled it, and it came to a fiftieth of its operations."""
    monkeypatch.setenv("CFLAGS", "-DHANDLES")
    report = fuzz(f"{source}:{ARENA}", steps=20_000, promises=PROMISED)

    assert report.passed, [finding.message for finding in report.findings]
    assert "passed" == verdict(report)[0]
    assert report.done("fast").steps >= 20_000


def test_forks_that_the_system_refuses_say_nothing_of_the_target(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> NoReturn:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(os, "fork", refuse)
    job = {"job": "program", "promises": PROMISED, "program": [FORKS.as_json()]}
    outcome = perform(TargetSource(f"{source}:{PLAIN}"), job, Journal())

    assert outcome.finding is None
    assert ["Cannot allocate memory" in note for note in outcome.notes] == [True]
