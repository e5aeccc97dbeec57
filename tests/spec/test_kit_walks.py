"""The kit's walks over several memories: where they start, what they find, and how they are shortened."""

from __future__ import annotations

import gc
import unittest
import weakref
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from machines import MSI, POLICIES
from mutants.memory import MEMORY_BUGS
from mutants.memory.handmade import HandmadeMemory
from subjects import GPU_READ, PUSH, READ, RELEASE, WRITE, device_subject

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.model import caffe
from syncedmem.spec import Coverage, ReferenceMemory, Subject, Violation, check_conformance, state_machine
from syncedmem.spec.cases.walks import search
from syncedmem.spec.cases.writing import Writer
from syncedmem.spec.engine.report import SuiteRun
from syncedmem.spec.engine.search import Generated
from syncedmem.spec.engine.shrinking import shortest
from syncedmem.spec.kit.trial import Trial, bench_of, plainer, run_case
from syncedmem.spec.requirements import PROFILES, Level, Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model import Input, Machine
    from syncedmem.spec.record.steps import Case


def watched(steps: int, seed: int, see: Callable[[Trial], object]) -> Generated:
    """Take walks of the reference, and see the trial of each."""

    class Watching(SuiteRun):
        def add(self, *trials: Any) -> None:
            see(trials[0])

    suite, subject = Watching("walks", Coverage(caffe.CAFFE)), device_subject(ReferenceMemory)
    assert search(bench_of(subject), suite, steps, seed) is None
    assert suite.generated is not None
    return suite.generated


def case_of(sizes: tuple[int, ...], moves: tuple[tuple[int, Input], ...], **more: Any) -> Case:
    """Return the steps of moves of several memories."""
    writers = [Writer(caffe.CAFFE, size, number, safe=True) for number, size in enumerate(sizes)]
    steps = [writer.steps[0] for writer in writers]
    for number, entry in moves:
        steps += writers[number].written(entry, **more)
    return tuple(steps)


def found_in(subject: Subject, case: Case) -> Violation:
    """Return the violation of the shortest case that shows what a case does."""
    run = partial(run_case, bench_of(subject))
    with pytest.raises(Violation) as caught:
        run(case)
    return shortest(case, caught.value, run, simpler=plainer)


@pytest.mark.deep
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("steps", [1, 60, 931])
def test_steps_are_steps(steps: int, profile: Profile) -> None:
    """As many generated moves are taken as are wanted, or more, in walks that all differ."""
    subject = replace(device_subject(ReferenceMemory), profile=profile)
    generated = check_conformance(subject, suites=["walks"], steps=steps, seed=3).generated

    assert generated is not None
    assert steps <= generated.moves.total()
    assert 62 == len(generated.starts) <= generated.walks
    assert 5 * generated.walks <= generated.moves.total()
    kinds = {"call", "mode", "wait"} if profile == "caffe" else {"call", "mode", "wait", "failure"}
    assert kinds == set(generated.moves)


@pytest.mark.deep
def test_the_same_seed_takes_the_same_walks_and_another_seed_takes_others() -> None:
    def walked(seed: int) -> list[Case]:
        seen: list[Case] = []
        watched(60, seed, lambda trial: seen.append(tuple(trial.done)))
        return seen

    first, again, other = walked(0), walked(0), walked(1)
    assert first == again
    assert 60 < len(set(first)) == len(first)
    assert not set(first) & set(other)


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize("machine", [MSI, caffe.CAFFE], ids=lambda named: named.name)
def test_the_state_machine_has_the_rules_of_the_machine(machine: Machine) -> None:
    """So a user of pytest gets a test of any memory: ``TestMine = state_machine(subject).TestCase``."""
    make = partial(ReferenceMemory, machine=machine)
    device = SimulatedDeviceAllocator() if machine is caffe.CAFFE else None
    subject = Subject("mine", make, CPUDeviceAllocator(), device, edition=machine, policy=POLICIES.get(machine))
    walking = state_machine(subject)
    rules = {rule.function.__name__ for rule in walking().rules}

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
    found = found_in(device_subject(make), case_of((4097, 64, 5), moves))

    made = [statement for statement in found.statements if "subject.make(" in statement]
    assert ["memory = subject.make(100, host=host, device=device)"] == made


def test_nothing_can_be_left_out_of_a_walk() -> None:
    """Memories, moves and injected failures are left out if the violation does not need them."""
    push_again = ((0, WRITE), (0, PUSH))
    begun = ((0, READ), (0, GPU_READ), (1, WRITE), (1, READ))
    stumbled = [step for k in range(1, 8) for step in case_of((4,), ((0, WRITE),), fail=k, how="other")[1:]]
    before = case_of((4, 9, 3), (*begun, *push_again, (2, READ), *push_again))
    after = case_of((4, 9, 3), ((0, PUSH), *push_again, (1, RELEASE)))[3:]
    shortest = found_in(device_subject(MEMORY_BUGS["FourthPushSkipped"].make), (*before, *stumbled, *after))

    assert "R21-push" == shortest.requirement
    assert 8 == sum(".mutable_cpu_data()" in line or "async_gpu_push" in line for line in shortest.statements)
    assert not any("memory2" in line or "armed" in line or ".cpu_data" in line for line in shortest.statements)


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

    def fail(_: Trial) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        watched(100, 0, fail)


def test_released_memories_of_the_caffe_profile_are_left_alone() -> None:
    """Caffe says nothing about a destroyed object."""
    subject = replace(device_subject(ReferenceMemory), profile="caffe")
    trial = run_case(bench_of(subject), case_of((4,), ((0, RELEASE), (0, READ))))

    assert [RELEASE] == [entry for _, entry in trial.visited]


@pytest.mark.parametrize("make", [ReferenceMemory, MEMORY_BUGS["CopiesOnEveryRead"].make])
def test_nothing_that_was_tested_is_kept(make: Any) -> None:
    """Hypothesis keeps each class of walks as long as the process lives; a long run of pytest has many."""
    subject = device_subject(make)
    bench = bench_of(subject)
    suite, gone = SuiteRun("walks", Coverage(caffe.CAFFE), shorten=False), weakref.ref(bench.performer)
    found = search(bench, suite, 50, 0)
    assert (found is None) == (make is ReferenceMemory)

    del bench, suite, found
    gc.collect()
    assert gone() is None
