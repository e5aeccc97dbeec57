"""The kit's walks over several memories: where they start, what they find, and how they are shortened."""

from __future__ import annotations

import unittest
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from machines import MSI, POLICIES
from mutants.memory import MEMORY_BUGS
from mutants.memory.handmade import HandmadeMemory
from subjects import GPU_READ, PUSH, READ, RELEASE, WRITE, device_subject, reference_subject

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.model import caffe
from syncedmem.spec import Coverage, MemoryDriver, ReferenceMemory, Subject, Violation, check_conformance, state_machine
from syncedmem.spec.engine.report import SuiteRun
from syncedmem.spec.engine.search import Generated
from syncedmem.spec.memory.suites import Stumble
from syncedmem.spec.memory.walks import Walk, run_walk, search, shortened
from syncedmem.spec.requirements import PROFILES, Level, Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.model import Machine


def watched(steps: int, seed: int, see: Callable[[tuple[MemoryDriver, ...]], object]) -> Generated:
    """Take walks of the reference, and see the drivers of each."""

    class Watching(SuiteRun):
        def add(self, *drivers: Any) -> None:
            see(drivers)

    suite = Watching("walks", Coverage(caffe.CAFFE))
    assert search(reference_subject(), suite, steps, seed) is None
    assert suite.generated is not None
    return suite.generated


@pytest.mark.deep
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("steps", [1, 60, 931])
def test_steps_are_steps(steps: int, profile: Profile) -> None:
    """As many generated moves are taken as are wanted, or more, in walks that all differ."""
    subject = replace(reference_subject(), profile=profile)
    generated = check_conformance(subject, suites=["walks"], steps=steps, seed=3).generated

    assert generated is not None
    assert steps <= generated.moves.total()
    assert 62 == len(generated.starts) <= generated.walks
    assert 5 * generated.walks <= generated.moves.total()
    kinds = {"call", "mode", "wait"} if profile == "caffe" else {"call", "mode", "wait", "failure", "stumble"}
    assert kinds == set(generated.moves)


@pytest.mark.deep
def test_the_same_seed_takes_the_same_walks_and_another_seed_takes_others() -> None:
    def walked(seed: int) -> list[tuple[str, ...]]:
        seen: list[tuple[str, ...]] = []
        watched(60, seed, lambda drivers: seen.append(tuple(drivers[0].reproducer.lines)))
        return seen

    first, again, other = walked(0), walked(0), walked(1)
    assert first == again
    assert 60 < len(set(first)) == len(first)
    assert not set(first) & set(other)


@pytest.mark.parametrize("machine", [caffe.CAFFE, MSI], ids=lambda it: it.name)
def test_the_state_machine_has_the_rules_of_the_machine(machine: Machine) -> None:
    """So a user of pytest gets a test of any memory: ``TestMine = state_machine(subject).TestCase``."""
    make = partial(ReferenceMemory, machine=machine)
    device = SimulatedDeviceAllocator() if machine is caffe.CAFFE else None
    subject = Subject("mine", make, CPUDeviceAllocator(), device, edition=machine, policy=POLICIES.get(machine))
    walking = state_machine(subject)
    rules = {it.function.__name__ for it in walking().rules}

    assert all(any(name.endswith(f"_{call}") for name in rules) for call in machine.calls)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(walking.TestCase).run(result)
    assert (1, []) == (result.testsRun, result.failures + result.errors)


def walked(subject: Subject) -> list[str]:
    """Run the test that `state_machine` makes, and return the texts of its failures."""
    walking = state_machine(subject)
    walking.TestCase.settings = settings(
        max_examples=200, stateful_step_count=12, derandomize=True, deadline=None, database=None
    )
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(walking.TestCase).run(result)
    return [text for _, text in result.failures + result.errors]


@pytest.mark.parametrize(
    ("bug", "profile", "level", "said"),
    [
        ("HostWriteUnnoticed", "caffe", "L0", "R13-write-makes-stale: the head is SYNCED, expected HEAD_AT_CPU"),
        pytest.param("FailureLeaks", "safe", "L3", "R33-failure-leaks-nothing", marks=pytest.mark.deep),
        ("FailureLeaks", "safe", "L2", ""),
        ("FailureLeaks", "caffe", "L4", ""),
    ],
)
def test_the_state_machine_fails_with_the_requirement_and_the_reproducer(
    bug: str, profile: Profile, level: Level, said: str
) -> None:
    """Calls are made to fail only where the profile and the level say what holds then."""
    failures = walked(replace(device_subject(MEMORY_BUGS[bug].make), profile=profile, level=level))

    assert bool(said) == bool(failures)
    assert all(said in text and "memory = subject.make(" in text for text in failures)


def test_walks_that_do_not_start_everywhere_fail_the_verdict() -> None:
    generated = Generated(2, 2, 1, Counter(call=2), Counter({0: 1}))

    assert "generated walks started in only 1 of 2 states" == generated.shortfall
    assert {"asked": 2, "walks": 1, "moves": {"call": 2}, "starts": 1} == generated.as_json()


def test_sizes_are_shrunk_too() -> None:
    """Down to the smallest size that shows the bug; the size of another memory does not matter."""

    def make(size: int, **options: Any) -> Any:
        return (MEMORY_BUGS["CopiesUpOnlyOnce"].make if size >= 100 else ReferenceMemory)(size, **options)

    moves = tuple((number, move) for move in (WRITE, GPU_READ, WRITE, GPU_READ) for number in (0, 1))
    walk, subject = Walk((4097, 64, 5), moves), device_subject(make)
    with pytest.raises(Violation) as caught:
        run_walk(subject, walk)
    found = shortened(subject, walk, caught.value)

    made = [it for it in found.statements if "subject.make(" in it]
    assert ["memory = subject.make(100, host=host, device=device)"] == made


def test_nothing_can_be_left_out_of_a_walk() -> None:
    """Memories, moves and injected failures are left out if the violation does not need them."""
    subject = device_subject(MEMORY_BUGS["FourthPushSkipped"].make)
    push_again = ((0, WRITE), (0, PUSH))
    begun = ((0, READ), (0, GPU_READ), (1, WRITE), (1, READ))
    rest = (*push_again, (2, READ), *push_again, (0, Stumble(WRITE)), (0, PUSH), *push_again, (1, RELEASE))
    walk = Walk((4, 9, 3), (*begun, *rest))
    with pytest.raises(Violation) as caught:
        run_walk(subject, walk)
    shortest = shortened(subject, walk, caught.value)

    assert "R21-push" == shortest.requirement
    assert 8 == sum(".mutable_cpu_data()" in line or "async_gpu_push" in line for line in shortest.statements)
    assert not any("memory2" in line or "armed" in line or ".cpu_data" in line for line in shortest.statements)


def test_a_memory_to_which_nothing_is_done_is_not_made() -> None:
    """So removing the last move of a memory removes the memory; the others keep their sizes."""
    drivers = run_walk(reference_subject(), Walk((4, 9), ((1, WRITE),)))

    assert [9] == [driver.size for driver in drivers]
    assert () == run_walk(reference_subject(), Walk((4,), ()))


def test_a_failure_that_does_not_repeat_is_still_a_failure() -> None:
    """Hypothesis calls it flaky; the kit reports what it saw."""

    class Once(HandmadeMemory):
        failed = False

        def zero_cpu(self, pointer: Any, pinned: bool) -> None:
            if type(self).failed or not self.size:
                super().zero_cpu(pointer, pinned)
            type(self).failed = True

    (found,) = check_conformance(device_subject(Once), suites=["walks"], steps=600).violations

    assert "R05-zeroed-first" == found.requirement


@pytest.mark.deep
def test_an_error_of_the_kit_itself_is_not_a_verdict() -> None:
    """If the observer of a walk raises, its exception is raised."""

    def fail(_: Sequence[MemoryDriver]) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        watched(100, 0, fail)


def test_released_memories_of_the_caffe_profile_are_left_alone() -> None:
    """Caffe says nothing about a destroyed object."""
    subject = replace(reference_subject(), profile="caffe")
    (driver,) = run_walk(subject, Walk((4,), ((0, RELEASE), (0, READ))))

    assert [RELEASE] == [entry for _, entry in driver.visited]
