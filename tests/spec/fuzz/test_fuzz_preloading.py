"""Libraries for preloading: beside the malloc of the process they call that one, and are not accused of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from programs import program

from syncedmem.spec.fuzz import fuzz
from syncedmem.spec.fuzz.recognition import TargetSource

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = """
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Aborts for a block that is not its own, as Electric Fence does; calloc and realloc call malloc by its name. */
struct head { uint64_t mark; size_t size; };
static struct head *idle[48];
static char *at, *end;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
__attribute__((constructor)) static void begin(void) { pthread_atfork(lock, unlock, unlock); }

static int power_of(size_t size) {
    int power = 5;
    while ((size_t)1 << power < size + sizeof(struct head)) power++;
    return power;
}

static struct head *new_block(size_t whole) {
    if ((size_t)(end - at) < whole) {
        size_t room = whole > 1 << 20 ? whole : 1 << 20;
        char *more = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more == MAP_FAILED) return NULL;
        at = more, end = more + room;
    }
    at += whole;
    return (struct head *)(at - whole);
}

void *malloc(size_t size) {
    if (size > (size_t)1 << 40) return NULL;
    int power = power_of(size);
    lock();
    struct head *head = idle[power];
    if (head) idle[power] = *(struct head **)(head + 1);
    else head = new_block((size_t)1 << power);
    unlock();
    if (!head) return NULL;
    *head = (struct head){0x600D, size};
    return head + 1;
}

void free(void *block) {
    struct head *head = (struct head *)block - 1;
    if (!block) return;
    if (head->mark != 0x600D) abort();
#ifdef ABORTS
    if (head->size % 100 == 52) abort();
#endif
    head->mark = 0;
    lock();
    *(struct head **)block = idle[power_of(head->size)];
    idle[power_of(head->size)] = head;
    unlock();
}

void *calloc(size_t count, size_t size) {
    size_t whole = count * size;
#ifndef WRAPS
    if (__builtin_mul_overflow(count, size, &whole)) return NULL;
#endif
    void *block = malloc(whole);
    return block ? memset(block, 0, whole) : NULL;
}

void *realloc(void *block, size_t size) {
    void *larger = malloc(size);
    if (!block || !larger) return larger;
    size_t before = ((struct head *)block - 1)->size;
    memcpy(larger, block, before < size ? before : size);
    free(block);
    return larger;
}
"""


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [("", set[str]()), ("WRAPS", {"A06-out-of-memory"}), ("ABORTS", {"A22-no-crash"})],
    ids=["right", "wraps", "aborts"],
)
def test_a_library_for_preloading_is_judged_as_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, broken: set[str]
) -> None:
    """One that aborts cannot be preloaded, because Python ends with it."""
    monkeypatch.setenv("CFLAGS", f"-fno-builtin {f'-D{wrong}' * bool(wrong)}")
    source = tmp_path / "preloaded.c"
    program("cc")
    source.write_text(LIBRARY, encoding="utf-8")
    target = f"{source}:malloc,free,calloc,realloc"

    assert TargetSource(target).preload
    report = fuzz(target, steps=4_000, first=True)

    assert broken == {finding.requirement for finding in report.findings}, [item.message for item in report.findings]
    assert report.passed is not bool(broken)
    assert broken or any("defines malloc" in note for note in report.notes)


def test_who_is_no_malloc_of_its_own_is_not_meant_for_preloading() -> None:
    assert "" == TargetSource("libc.so.6:malloc,free").preload
    assert "" == TargetSource("syncedmem:CPUDeviceAllocator").preload
