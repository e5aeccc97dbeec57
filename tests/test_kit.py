"""The conformance kit: what it passes, what it refuses, and what it says."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from benches import (
    ADOPT,
    GPU_ADOPT,
    GPU_READ,
    GPU_WRITE,
    PUSH,
    READ,
    RELEASE,
    WRITE,
    device_bench,
    devices,
    host_bench,
    port_bench,
)

from syncedmem.model import Call, Input, InvalidArgumentError, Mode, SyncedHead, space
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.host import cpu_allocator
from syncedmem.spec import (
    REQUIREMENTS,
    Bench,
    Coverage,
    Port,
    Trial,
    Violation,
    check_conformance,
    requirements_for,
    suite_names,
)
from syncedmem.spec.adoptions import unsuitable_host_buffers
from syncedmem.spec.checks import Refusable, everywhere, refused, started
from syncedmem.spec.contents import pattern
from syncedmem.spec.faults import FAULTS
from syncedmem.spec.ledger import InjectedFailure, Ledger, RecordingAllocator, StrayFree
from syncedmem.spec.lifetimes import adopted_buffers_live
from syncedmem.spec.oracle import Oracle, Wanted
from syncedmem.spec.shrinking import shrink
from syncedmem.spec.suites import Case, Fail, Stumble, Synchronize, run_case, shorter_case
from syncedmem.spec.walks import Walk, run_walk, search, shorter_walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# --- what passes


@pytest.mark.parametrize("allocator", devices(), ids=lambda allocator: str(allocator.device_type.name))
def test_the_runtime_meets_every_requirement_on_every_device(allocator: Any) -> None:
    """All suites pass, and every state, cell and transition was taken."""
    bench = replace(device_bench(), device=allocator, elsewhere=None)
    verdict = check_conformance(bench, steps=1500, seed=3)
    verdict.require()
    covered = verdict.coverage

    assert (17 * 9, 62, 558, 0) == (covered.cells, covered.states, covered.transitions, covered.missing)
    assert verdict.passed


def test_the_runtime_without_a_device_meets_every_requirement() -> None:
    verdict = check_conformance(host_bench(), steps=600)
    verdict.require()

    assert (24, 6, 48) == (verdict.coverage.cells, verdict.coverage.states, verdict.coverage.transitions)


@pytest.mark.parametrize("seed", range(3))
def test_a_seeded_scheduler_does_not_shake_the_runtime(seed: int) -> None:
    """Queued copies that happen at arbitrary moments change nothing that is seen."""
    bench = replace(device_bench(), device=SimulatedDeviceAllocator(seed=seed))

    check_conformance(bench, steps=400, seed=seed).require()


def test_the_port_without_a_fault_passes() -> None:
    """So what a fault is caught for is the fault."""
    check_conformance(port_bench(), steps=300).require()
    check_conformance(host_bench(Port), steps=100).require()


def test_a_bench_of_the_caffe_profile_is_not_asked_for_more() -> None:
    """A memory that keeps Caffe's rules and no others passes there, and not in the safe profile."""
    unsafe = FAULTS["WriteableReadView"].make
    verdict = check_conformance(replace(device_bench(unsafe), profile="caffe"), steps=300)

    assert verdict.passed
    assert "not checked" == verdict.status("R47-read-only-view")
    assert not check_conformance(device_bench(unsafe), suites=["cells"]).passed


@pytest.mark.parametrize("fault", ["WritesInFlight", "FreesInFlight", "AdoptsInFlight", "ReadsInFlight"])
def test_in_the_caffe_profile_waiting_for_a_push_is_the_callers_duty(fault: str) -> None:
    """As it is in Caffe, whose only caller waits; so a memory that does not is as good there."""
    careless = FAULTS[fault].make

    check_conformance(replace(device_bench(careless), profile="caffe"), steps=300).require()


def test_every_requirement_can_be_checked_on_some_bench() -> None:
    """And each bench leaves out exactly what it has no use for."""
    device, host = set(requirements_for(device_bench())), set(requirements_for(host_bench()))

    memories = {name for name, it in REQUIREMENTS.items() if it.kind == "memory"}

    assert memories == device | host
    assert {"R30-no-gpu"} == memories - device
    assert {"R51-device-check"} == set(requirements_for(device_bench())) - set(
        requirements_for(replace(device_bench(), check_device=False))
    )


def test_requirements_are_numbered_once_and_have_a_source() -> None:
    numbers = [name.partition("-")[0] for name in REQUIREMENTS]
    memories, blobs = (sorted(number for number in numbers if number.startswith(kind)) for kind in "RB")

    assert [f"R{k:02}" for k in range(1, len(memories) + 1)] == memories
    assert [f"B{k:02}" for k in range(1, len(blobs) + 1)] == blobs
    assert len(numbers) == len(memories) + len(blobs)
    assert all(it.text.endswith(".") and it.source for it in REQUIREMENTS.values())


# --- what it says


def test_a_word_is_not_shortened_to_one_that_breaks_something_else() -> None:
    """What is reported is what was found."""
    found = Violation("R11-head", "what the whole word is said to show", ("all of it",))
    bench = device_bench(FAULTS["SpoiltCopy"].make)

    assert found is shrink(bench, Case((GPU_WRITE, READ, READ)), found, run_case, shorter_case)


def test_a_failure_is_shortened_to_the_calls_that_show_it() -> None:
    """The script is Python, and nothing can be left out of it."""
    verdict = check_conformance(device_bench(FAULTS["FourthPushSkipped"].make), suites=["counters"])
    violation = verdict.violations[0]

    assert "R21-push" == violation.requirement
    assert 4 == sum("async_gpu_push" in line for line in violation.script)
    assert "memory = bench.make(5, host=host, device=device)" in violation.script
    assert not verdict.passed
    assert ("failed", "not checked") == (verdict.status("R21-push"), verdict.status("R01-lazy"))
    with pytest.raises(Violation, match="R21-push: saw nothing, expected push gpu"):
        verdict.require()


def test_shrinking_keeps_the_requirement() -> None:
    """A word that fails for another reason after a move was left out is not a shorter witness."""
    bench = device_bench(FAULTS["HeadBeforeCopy"].make)
    case = Case((READ, WRITE, GPU_READ, GPU_WRITE, Fail(READ, 1), READ))
    with pytest.raises(Violation) as caught:
        run_case(bench, case)
    shorter = shrink(bench, case, caught.value, run_case, shorter_case)

    assert caught.value.requirement == shorter.requirement == "R32-strong-guarantee"
    assert 3 >= sum("memory." in line for line in shorter.script)


def test_too_little_coverage_is_a_failure() -> None:
    """Passing every check that was made is not enough."""
    verdict = check_conformance(device_bench(), suites=["counters"])

    assert ([], False) == (verdict.violations, verdict.passed)
    with pytest.raises(Violation, match="transitions were not taken"):
        verdict.require()


def test_progress_is_told_of_every_case() -> None:
    seen: list[tuple[str, int]] = []
    check_conformance(host_bench(), suites=["tour"], progress=lambda name, cases: seen.append((name, cases)))

    assert [("tour", k + 1) for k in range(len(seen))] == seen
    assert seen


def test_the_suites_fit_the_bench() -> None:
    assert "flights" in suite_names(device_bench())
    assert "flights" not in suite_names(host_bench())
    assert not {"failures", "contracts", "flights"} & set(suite_names(replace(device_bench(), profile="caffe")))


def test_there_are_no_flights_without_a_device() -> None:
    """Asked for by name, the suite is empty."""
    assert 0 == check_conformance(host_bench(), suites=["flights"]).suites[0].cases


def test_a_push_that_fails_later_is_found_when_it_is_waited_for() -> None:
    """A memory that frees behind the recorder's back is caught by the device."""

    class Sneaky(Port):
        def push(self, pointer: Any, stream: Any) -> None:
            super().push(pointer, stream)
            self.device.inner.release(pointer)

    with pytest.raises(Violation, match="R42-in-flight-not-freed: the push failed"):
        run_case(device_bench(Sneaky), Case((WRITE, PUSH, Synchronize())))


def test_no_steps_means_no_walks() -> None:
    verdict = check_conformance(host_bench(), steps=0)

    assert (0, True) == (verdict.walks, verdict.passed)
    assert verdict.steps > 0


def test_a_crash_of_the_subject_is_a_violation() -> None:
    """A memory that makes the kit stumble is refused, not the kit."""

    class Junk(Port):
        def gpu_data(self) -> Any:
            super().gpu_data()
            return 42

    class Unmakeable(Port):
        def set_up(self) -> None:
            raise OSError("no")

    class Stumbles(Port):
        @property
        def head(self) -> Any:
            raise ZeroDivisionError

        @head.setter
        def head(self, head: Any) -> None:
            del head

    junk = check_conformance(device_bench(Junk), suites=["cells"]).violations[0]
    unmakeable = check_conformance(device_bench(Unmakeable), suites=["cells", "sizes"]).violations

    assert "looking at the memory raised AttributeError" in junk.message
    assert {"R01-lazy", "R44-size-zero"} == {found.requirement for found in unmakeable}
    assert check_conformance(device_bench(Stumbles), suites=["contracts"]).violations


# --- contracts


def test_a_contract_is_made_in_every_state() -> None:
    """In all 62 of a memory with a device, and in all 6 of one without."""
    seen: list[object] = []
    for bench in (port_bench(), host_bench(Port)):
        trials = list(everywhere(lambda trial: seen.append(trial.state))(bench))
        assert all(trial.oracle.released for trial in trials)

    assert (62, 6) == (len(set(seen[:62])), len(set(seen[62:])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gpu_data", "R36-too-small-refused: the last call was not refused"),
        ("frees", "R36-too-small-refused: the last call was refused, but it called allocators"),
        ("turns", "R32-strong-guarantee: the last call was refused, and yet it changed something"),
        ("spoils", "R32-strong-guarantee: the last call was refused, and yet the cpu side holds 00"),
        ("refuses", ""),
    ],
)
def test_what_is_refused_must_be_refused_and_change_nothing(call: str, message: str) -> None:
    class Careless(Port):
        def frees(self) -> None:
            self.free_cpu()
            self.refuse("after all")

        def turns(self) -> None:
            self.own_cpu_data = False
            self.refuse("after all")

        def spoils(self) -> None:
            memoryview(self.cpu_ptr)[:] = bytes(self.size)
            self.refuse("after all")

        def refuses(self) -> None:
            self.refuse("at once")

    trial = started(device_bench(Careless), WRITE, size=1)
    attempt = partial(refused, trial, Refusable("R36-too-small-refused", f"memory.{call}()"))
    if not message:
        attempt()
        assert "with suppress(Exception): memory.refuses()" == trial.script.lines[-1]
        return
    with pytest.raises(Violation, match=message) as caught:
        attempt()

    assert f"memory.{call}()" == caught.value.script[-1]


def test_a_refusal_is_not_blamed_for_what_is_wrong_anyway() -> None:
    """Only what goes wrong after refused calls and not without them is their fault."""
    idle = everywhere(lambda _: None)
    with pytest.raises(Violation, match="R08-copy-up: saw"):
        list(idle(device_bench(FAULTS["CopiesUpOnlyOnce"].make)))
    with pytest.raises(Violation, match="R32-strong-guarantee: after calls that were refused"):
        list(unsuitable_host_buffers(device_bench(FAULTS["RefusalLosesStaleSide"].make)))


def test_host_memory_need_not_be_an_array() -> None:
    """Columns are tried only where there are arrays that have them."""

    class Plain:
        def empty(self, byte_size: int) -> Any:
            return bytearray(byte_size)

        def __getattr__(self, name: str) -> Any:
            return getattr(cpu_allocator(), name)

    plain: Any = Plain()

    assert list(unsuitable_host_buffers(replace(host_bench(), host=plain)))


def test_a_buffer_that_cannot_be_adopted_is_not_kept_alive() -> None:
    class Refuses(Port):
        def adopt_host(self, data: Any) -> Any:
            self.refuse(f"{type(data)} is none of ours")

    with pytest.raises(Violation, match="R40-kept-alive: set_cpu_data raised Refused"):
        list(adopted_buffers_live(host_bench(Refuses)))


def test_what_a_dropped_memory_does_wrong_has_a_name() -> None:
    """It may free too little, too early, or what is not its own."""

    class FreesAnything(Port):
        def __del__(self) -> None:
            with suppress(Exception):
                self.host.release(self.cpu_ptr)
            super().__del__()

    found = {
        make: check_conformance(device_bench(make), suites=["contracts"]).violations[0].requirement
        for make in (FreesAnything, FAULTS["FinaliserFreesInFlight"].make, FAULTS["NoFinaliser"].make)
    }

    assert ["R28-freed-once", "R42-in-flight-not-freed", "R55-dropped-freed"] == list(found.values())


# --- walks


def test_walks_start_from_every_state() -> None:
    """The first memory of some walk starts in each of the 62 states, and walks take 10 to 20 steps."""
    covered = Coverage("caffe")
    lengths: set[int] = set()

    def note(trials: list[Trial]) -> None:
        covered.add(trials[0])
        lengths.add(len(trials))

    assert search(port_bench(), 1200, 0, note) is None
    assert len(space().steps) == covered.states
    assert lengths == {1, 2, 3}


def test_the_same_seed_takes_the_same_walks() -> None:
    def walked(seed: int) -> list[int]:
        seen: list[int] = []
        search(port_bench(), 1200, seed, lambda trials: seen.append(sum(len(t.visited) for t in trials)))
        return seen

    assert walked(5) == walked(5)
    assert walked(5) != walked(6)


def test_a_failing_walk_is_shrunk_and_numbered() -> None:
    """Hypothesis finds and shrinks it; the second memory of a walk is called memory2."""
    verdict = check_conformance(device_bench(FAULTS["HostWriteUnnoticed"].make), suites=["walks"])
    walk = Walk((4, 9), ((), (WRITE,)), ((1, READ), (0, WRITE), (1, RELEASE)))
    trials = run_walk(port_bench(), walk)

    assert "R13-write-makes-stale" == verdict.violations[0].requirement
    assert [4, 9] == [trial.size for trial in trials]
    broken = device_bench(FAULTS["HostNeverFreed"].make)
    with pytest.raises(Violation) as caught:
        run_walk(broken, walk)
    assert "view = memory2.mutable_cpu_data()" in caught.value.script


def test_nothing_can_be_left_out_of_a_walk() -> None:
    """Neither a memory, nor a step to a start, nor a move; a move that need not fail does not."""
    bench = device_bench(FAULTS["FourthPushSkipped"].make)
    push_again = ((0, WRITE), (0, PUSH))
    walk = Walk(
        (4, 9, 3),
        ((READ, GPU_READ), (WRITE,), ()),
        ((1, READ), *push_again, (2, READ), *push_again, (0, Stumble(WRITE)), (0, PUSH), *push_again, (1, RELEASE)),
    )
    with pytest.raises(Violation) as caught:
        run_walk(bench, walk)
    shortest = shrink(bench, walk, caught.value, run_walk, shorter_walk)

    assert "R21-push" == shortest.requirement
    assert 8 == sum(".mutable_cpu_data()" in line or "async_gpu_push" in line for line in shortest.script)
    assert not any("memory2" in line or "armed" in line or ".cpu_data" in line for line in shortest.script)


def test_a_walk_of_one_memory_keeps_it() -> None:
    walk = Walk((4,), ((WRITE,),), ((0, READ),))

    assert [[], [Walk((4,), ((),), ((0, READ),))], [Walk((4,), ((WRITE,),), ())], None] == [
        None if (shorter := shorter_walk(walk, position)) is None else list(shorter) for position in range(4)
    ]


def test_any_letter_of_any_start_can_be_left_out() -> None:
    walk = Walk((4, 9), ((WRITE,), (READ, GPU_READ)), ())

    assert [((), (READ, GPU_READ)), ((WRITE,), (GPU_READ,)), ((WRITE,), (READ,))] == [
        shorter.starts for position in (2, 3, 4) for shorter in shorter_walk(walk, position) or ()
    ]


@pytest.mark.parametrize("profile", ["Safe", "", None, 1])
def test_an_unknown_profile_is_refused(profile: Any) -> None:
    """It would be a weaker test that passes."""
    with pytest.raises(InvalidArgumentError, match="profile must be one of caffe, safe, got"):
        replace(device_bench(), profile=profile)


@pytest.mark.parametrize("steps", [-1, "a", 1.5, None, True])
def test_what_is_no_number_of_steps_is_refused(steps: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="steps must be an integer, 0 or more, got"):
        check_conformance(device_bench(), steps=steps)


class Foreign(Enum):
    """Somebody else's heads."""

    UNINITIALIZED = "u"
    HEAD_AT_CPU = "c"
    HEAD_AT_GPU = "g"
    SYNCED = "s"


def headed(shown: Callable[[SyncedHead], object]) -> Any:
    """A memory that shows its head in some form."""

    class Headed:
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            self._port = Port(*arguments, **keywords)

        @property
        def head(self) -> object:
            return shown(self._port.head)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._port, name)

    return Headed


@pytest.mark.parametrize("form", ["itself", "foreign", "name", "value"])
def test_a_head_may_be_a_name_or_a_number(form: str) -> None:
    """A port has an enumeration of its own."""

    def shown(head: SyncedHead) -> object:
        return {"itself": head, "foreign": Foreign[head.name], "name": head.name, "value": head.value}[form]

    assert check_conformance(device_bench(headed(shown)), suites=["cells"]).violations == []


@pytest.mark.parametrize("shown", ["SYNCED", 7, None, Foreign.SYNCED])
def test_a_wrong_head_is_wrong_in_any_form(shown: object) -> None:
    found = check_conformance(device_bench(headed(lambda _: shown)), suites=["cells"]).violations[0]

    assert "R02-uninitialized" == found.requirement
    assert f"the head is {shown!r}, expected UNINITIALIZED" == found.message


def test_a_subject_that_ends_the_process_does_not() -> None:
    """It is a call that raised."""

    class Exits(Port):
        def gpu_data(self) -> Any:
            raise SystemExit(3)

    found = check_conformance(device_bench(Exits), suites=["cells"]).violations[0]

    assert "gpu_data raised SystemExit: 3" in found.message


def test_a_neighbour_that_changes_is_noticed() -> None:
    fault = FAULTS["ZeroesItsNeighbour"].make
    with pytest.raises(Violation, match="R53-independent"):
        run_walk(device_bench(fault), Walk((4, 4), ((WRITE,), (WRITE,)), ((0, READ), (1, READ))))


def test_a_failure_that_does_not_repeat_is_still_a_failure() -> None:
    """Hypothesis calls it flaky; the kit reports what it saw."""

    class Once(Port):
        failed = False

        def zero_cpu(self, pointer: Any, pinned: bool) -> None:
            if type(self).failed or not self.size:
                super().zero_cpu(pointer, pinned)
            type(self).failed = True

    found = search(device_bench(Once), 3000, 0, lambda _: None)

    assert found is not None
    assert "R05-zeroed-first" == found.requirement


def test_an_error_of_the_kit_itself_is_not_a_verdict() -> None:
    """Whoever watches may fail, and then that is what is raised."""

    def fail(_: Sequence[Trial]) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        search(port_bench(), 100, 0, fail)


def test_released_memories_of_the_caffe_profile_are_left_alone() -> None:
    """Caffe says nothing about a destroyed object."""
    bench = replace(port_bench(), profile="caffe")
    trials = run_walk(bench, Walk((4,), ((),), ((0, RELEASE), (0, READ))))

    assert [RELEASE] == [entry for _, entry in trials[0].visited]


# --- the trial


def test_patterns_differ_everywhere() -> None:
    first, second = pattern(1, 1000), pattern(2, 1000)

    assert (1000, 1000) == (len(first), len(second))
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert first[:256] != first[256:512]


def test_a_wait_for_streams_is_part_of_a_word() -> None:
    trial = run_case(device_bench(), Case((WRITE, PUSH, Synchronize(), GPU_READ, Synchronize())))

    pushed = ["stream = bench.device.stream()", "memory.async_gpu_push(stream=stream)"]
    waited = "bench.device.record(stream).synchronize()"
    assert [*pushed, waited, "memory.gpu_data()", "memory.close()"] == trial.script.lines[-5:]


def test_failing_moves_beyond_the_calls_are_made_plainly() -> None:
    """A word may ask for the failure of a call that is never made."""
    trial = run_case(device_bench(), Case((Fail(READ, 5),)))

    assert [READ, RELEASE] == [entry for _, entry in trial.visited]


def test_the_trial_takes_buffers_for_granted_only_where_there_is_a_device() -> None:
    """Without one, adopting device memory and pushing are refused whatever is handed in."""
    trial = Trial(host_bench(), 8)
    for entry in (GPU_ADOPT, PUSH, GPU_READ):
        trial.perform(entry)
    trial.perform(ADOPT)
    trial.finish()

    assert 5 == len(trial.visited)


# --- the oracle


def test_the_oracle_thinks_in_fresh_copies() -> None:
    """One round trip, by hand."""
    calls, after = Oracle(4).write("cpu", Mode.CPU)[1:]
    up, synced = after.written("cpu", b"abcd").read("gpu", Mode.CPU)[1:]
    adopted = synced.adopt("cpu", b"wxyz")

    assert (Wanted("allocate", "cpu"), Wanted("zero", "cpu")) == calls
    assert (Wanted("allocate", "gpu"), Wanted("copy", "gpu")) == up
    assert b"abcd" == synced.gpu.content
    assert ((Wanted("free", "cpu"),), b"abcd", False) == (
        adopted.calls,
        adopted.after.gpu.content,
        adopted.after.gpu.fresh,
    )


def test_the_oracle_never_reads_the_table() -> None:
    """It imports the words of the model, SyncedHead and Mode, and nothing that knows a transition."""
    import syncedmem.spec.oracle as module

    known = {
        name for name, value in vars(module).items() if getattr(value, "__module__", "").startswith("syncedmem.model")
    }

    assert {"Mode", "SyncedHead"} == known


# --- the instruments


def ledger_of(side: str = "cpu") -> tuple[Ledger, RecordingAllocator]:
    """A ledger and an allocator that writes into it."""
    ledger = Ledger()
    inner: Any = CPUDeviceAllocator() if side == "cpu" else SimulatedDeviceAllocator()
    return ledger, RecordingAllocator(inner, ledger, "cpu" if side == "cpu" else "gpu")


def test_the_ledger_knows_what_is_out() -> None:
    ledger, allocator = ledger_of()
    ptr = allocator.allocate(8)
    allocator.memset_zero(ptr, 8)
    owned = ledger.owned("cpu")
    allocator.release(ptr)

    assert [ptr] == owned
    assert ["allocate", "zero", "free"] == [entry.operation for entry in ledger.entries]
    assert {} == ledger.live


@pytest.mark.parametrize("kind", ["stray", "twice", "nothing", "external", "pinned"])
def test_stray_frees_are_refused_and_remembered(kind: str) -> None:
    """Even if the memory under test hides the error."""
    ledger, allocator = ledger_of("gpu")
    pointer: Any = allocator.inner.empty(8)
    if kind == "nothing":
        pointer = None
    elif kind == "external":
        pointer = allocator.adopt(pointer, 8)
    elif kind == "twice":
        pointer = allocator.allocate(8)
        allocator.release(pointer)
    elif kind == "pinned":
        pinned = allocator.pinned_host()
        pointer, allocator = pinned.allocate(8), RecordingAllocator(CPUDeviceAllocator(), ledger, "cpu")

    with pytest.raises(StrayFree, match="was asked to free"):
        allocator.release(pointer)

    expected = kind if kind in ("external", "pinned") else "stray"
    assert [expected] == [found for found, _ in ledger.stray]


def test_the_kth_call_fails_and_the_next_does_not() -> None:
    """A half-way failure has spoilt half of the destination first."""
    ledger, allocator = ledger_of()
    ptr = allocator.allocate(8)
    ptr[:] = 1
    failure = pytest.raises(InjectedFailure, match="memset_zero on cpu:0 was told to fail")

    with failure, ledger.moves.armed(1, partial=True):
        allocator.memset_zero(ptr, 8)

    assert [0] * 4 + [1] * 4 == ptr.tolist()
    allocator.memset_zero(ptr, 8)
    assert [0] * 8 == ptr.tolist()


def test_allocating_nothing_is_noted_and_not_live() -> None:
    ledger, allocator = ledger_of()

    assert allocator.allocate(0) is None
    assert (1, 0) == (len(ledger.entries), len(ledger.live))


def test_coverage_counts_what_was_taken() -> None:
    trial = Trial(device_bench(), 8)
    trial.perform(READ)
    trial.perform(Input(None, mode=Mode.CPU))
    trial.perform(Input(Call.SET_CPU_DATA, data=False))
    trial.finish()
    covered = Coverage("caffe")
    covered.add(trial)

    assert (2, 2, 556) == (covered.cells, covered.transitions, covered.missing)
    assert {
        "cpu_data@UNINITIALIZED",
        "set_cpu_data@HEAD_AT_CPU[!has_data]",
        "release@HEAD_AT_CPU[own_cpu_data,!own_gpu_data]",
    } == covered.identifiers()


def test_the_kit_is_pointed_at_any_maker() -> None:
    """A function will do."""

    def make(size: int, *, host: Any, device: Any) -> SyncedMemory:
        return SyncedMemory(size, host=host, device=device)

    bench = Bench("a function", make, CPUDeviceAllocator(), SimulatedDeviceAllocator())

    assert check_conformance(bench, steps=0).passed
