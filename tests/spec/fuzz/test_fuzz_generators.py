"""The fuzzer's generators, in this process: what they catch, what they let pass, and which arguments control them."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test
from mutants.allocator import ALLOCATOR_BUGS, CachingPool, Pool
from mutants.allocator.placement import PutBackTwice
from promises import ALL

from syncedmem import SimulatedDeviceAllocator
from syncedmem.spec import Violation
from syncedmem.spec.fuzz import (
    AllocatorMachine,
    Driver,
    HeapStep,
    TargetSource,
    allocator_machine,
    fuzz,
)
from syncedmem.spec.fuzz.campaign import Stage, campaign
from syncedmem.spec.fuzz.jobs import perform
from syncedmem.spec.fuzz.journal import Journal
from syncedmem.spec.fuzz.residence import MOST_TOUCHED, may_reserve

if TYPE_CHECKING:
    from mutants.registry import SeededBug

INLINE = [ALLOCATOR_BUGS[name] for name in ("OneByteShort", "NoLocks")]


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize("bug", INLINE, ids=lambda item: item.name)
def test_a_bug_is_caught_in_this_process_too(bug: SeededBug) -> None:
    """An object has no name by which a worker process could find it, so it is tested in this process."""
    # The number of steps ends the run. With the default time limit, a busy machine could end it too early.
    report = fuzz(bug.make, promises=bug.promises, threads=bug.threads, steps=20_000, seconds=600, first=True)

    assert [bug.requirement] == [finding.requirement for finding in report.findings]
    with pytest.raises(Violation, match=bug.requirement):
        report.require()


@pytest.mark.deep
@pytest.mark.parametrize("make", [Pool, CachingPool])
def test_a_correct_pool_passes_every_generator(make: type) -> None:
    promises = ALL if make is Pool else {"zero_size": "null", "double_free": "detect", "thread_safe": "yes"}
    report = fuzz(make, promises=promises, threads=3, steps=20_000)
    report.require()

    assert ["fast", "threads"] == [suite.name for suite in report.suites]
    assert all(suite.rate > 0 for suite in report.suites)
    unchecked = {verdict.requirement for verdict in report.verdicts() if verdict.status == "not checked"}
    in_this_process = {"A08-size-known", "A22-no-crash", "A23-no-hang", "A25-no-starvation"}
    assert make is not Pool or unchecked <= in_this_process | {"A26-c-contracts", "A27-survives-fork"}


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize("name", ["OneByteShort", "CopiesBackwards", "AsksTheWrongStream"])
def test_the_machine_finds_bugs(name: str) -> None:
    bug = ALLOCATOR_BUGS[name]
    machine: Any = allocator_machine(bug.make, bug.promises)

    assert issubclass(machine, AllocatorMachine)
    with pytest.raises(Violation, match=bug.requirement):
        run_state_machine_as_test(seed(1)(machine), settings=settings(machine.TestCase.settings, max_examples=300))


def test_the_same_seed_takes_the_same_steps() -> None:
    def taken(seed: int) -> tuple[HeapStep, ...]:
        journal = Journal()
        source = TargetSource(Pool())
        campaign(source, source.open().capabilities, journal, Stage(4_000), seed=seed, seconds=60)
        return journal.steps()

    assert taken(3) == taken(3)
    assert taken(3) != taken(4)


def test_what_the_memory_of_the_process_allows_does_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*, may: bool) -> list[HeapStep]:
        def may_reserve(driver: object, number: int) -> bool:
            return may and bool(driver) and number >= 0

        monkeypatch.setattr("syncedmem.spec.fuzz.rounds.may_reserve", may_reserve)
        journal = Journal()
        source = TargetSource(Pool())
        campaign(source, source.open().capabilities, journal, Stage(8_000), seed=0, seconds=60)
        return list(journal.steps())

    def giant(step: HeapStep) -> bool:
        return step.operation in {"allocate", "resize"} and step.numbers[1] > 1 << 25

    every, fewer = taken(may=True)[:7_000], taken(may=False)
    kept = [step for step in every if not giant(step)]

    assert any(map(giant, every))
    assert kept == [step for step in fewer if not giant(step)][: len(kept)]


class _Zeroed:
    """Writes zeros to all of a block, and lends what is freed again."""

    def __init__(self) -> None:
        self.idle: list[mmap.mmap] = []
        self.live: dict[int, mmap.mmap] = {}

    def allocate(self, size: int) -> int:
        fits = (pages for pages in self.idle if len(pages) >= size)
        pages = next(fits, None) or mmap.mmap(-1, size + mmap.PAGESIZE)
        self.idle = [other for other in self.idle if other is not pages]
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        ctypes.memset(address, 0, size)
        self.live[address] = pages
        return address

    def deallocate(self, address: int, size: int) -> None:
        assert size <= len(self.live[address])
        self.idle.append(self.live.pop(address))


@pytest.mark.parametrize("lent_before", [False, True])
def test_an_allocator_that_writes_to_all_of_its_blocks_is_asked_for_no_giants(*, lent_before: bool) -> None:
    """A block that has been lent before does not make the process larger when all of it is written again."""
    target = TargetSource(_Zeroed).open()
    driver = Driver(target, target.capabilities)
    if lent_before:
        driver.allocate(0, MOST_TOUCHED)
        driver.free(0)

    assert not may_reserve(driver, 1)


def test_an_allocator_that_leaves_its_blocks_untouched_may_be_asked_for_giants() -> None:
    target = TargetSource("libc.so.6:malloc,free").open()

    assert may_reserve(Driver(target, target.capabilities), 1)


@pytest.mark.deep
def test_an_operation_is_counted_by_the_plan() -> None:
    """What an earlier stage had no time for was left out, so that the same seed said another number each time."""
    bug = ALLOCATOR_BUGS["GrowsOld"]
    first, other = (
        fuzz(bug.target, promises=bug.promises, seconds=seconds, first=True).findings[0].operations
        for seconds in (20, 26)
    )

    assert first == other


def test_memory_behind_get_and_set_is_checked() -> None:
    report = fuzz(SimulatedDeviceAllocator, steps=1_000)
    report.require()

    assert report.checked["A04-contents-kept"]


def test_a_finding_that_could_not_be_made_short_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: Any, job: Any, journal: Any) -> Any:
        if job["job"] == "shorten":
            raise KeyError("shorten")
        return perform(source, job, journal)

    monkeypatch.setattr("syncedmem.spec.fuzz.jobs.perform", broken)
    report = fuzz(PutBackTwice, steps=2_000, first=True)

    assert [("A01-distinct-pointers", False)] == [(finding.requirement, finding.shrunk) for finding in report.findings]
    assert "KeyError: 'shorten'" in report.errors[0]
