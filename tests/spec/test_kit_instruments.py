"""The parts of the kit: the driver, the oracle, the call log and the coverage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import machines
import pytest
from subjects import ADOPT, GPU_ADOPT, GPU_READ, PUSH, READ, RELEASE, WRITE, device_subject, host_subject

from syncedmem.model import Call, Fact, Input, caffe
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec import Coverage, MemoryDriver, Violation
from syncedmem.spec.engine.call_log import CallLog, InjectedFailure, RecordingAllocator, StrayFree
from syncedmem.spec.engine.contents import pattern
from syncedmem.spec.memory.oracle import Oracle, Wanted
from syncedmem.spec.memory.policy import CAFFE
from syncedmem.spec.memory.suites import Case, Fail, Synchronize, run_case

PETSC = machines.POLICIES[machines.PETSC]

# --- the driver


def test_patterns_differ_everywhere() -> None:
    first, second = pattern(1, 1000), pattern(2, 1000)

    assert (1000, 1000) == (len(first), len(second))
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert first[:256] != first[256:512]


def test_a_wait_for_streams_is_part_of_a_sequence() -> None:
    driver = run_case(device_subject(), Case((WRITE, PUSH, Synchronize(), GPU_READ, Synchronize())))

    pushed = ["stream = subject.device.stream()", "memory.async_gpu_push(stream=stream)"]
    waited = "subject.device.record(stream).synchronize()"
    assert [*pushed, waited, "memory.gpu_data()", "memory.close()"] == driver.reproducer.lines[-5:]


def test_failing_moves_beyond_the_calls_are_made_plainly() -> None:
    """A sequence may ask that the fifth allocator call of a move fails, when there are fewer than five."""
    driver = run_case(device_subject(), Case((Fail(READ, 5),)))

    assert [READ, RELEASE] == [entry for _, entry in driver.visited]


def test_the_driver_takes_buffers_for_granted_only_where_there_is_a_device() -> None:
    """Without a device, adopting device memory and pushing are refused for every argument."""
    driver = MemoryDriver(host_subject(), 8)
    for entry in (GPU_ADOPT, PUSH, GPU_READ):
        driver.perform(entry)
    driver.perform(ADOPT)
    driver.finish()

    assert 5 == len(driver.visited)


def test_a_port_that_dies_when_a_call_is_made_again_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is about the port, and not about what a memory does after a failure."""
    driver = MemoryDriver(device_subject(), 8)
    perform = driver.perform

    def dying(entry: Input) -> None:
        raise driver.run.violation("P01-answers", f"{entry.call} killed it")

    monkeypatch.setattr(driver, "perform", dying)
    with pytest.raises(Violation, match="P01-answers"):
        driver.perform_failing(READ, 1)
    perform(RELEASE)


# --- the oracle


IN_CPU_MODE = {"mode": "CPU"}


def test_the_oracle_thinks_in_fresh_copies() -> None:
    """One round trip is compared with values written by hand."""
    expected = Oracle.new(CAFFE, 4).write("cpu", IN_CPU_MODE)
    up = expected.after.written("cpu", b"abcd").read("gpu", IN_CPU_MODE)
    adopted = up.after.adopt("cpu", b"wxyz")
    device = adopted.after.copy("gpu")

    assert (Wanted("allocate", "cpu"), Wanted("zero", "cpu")) == expected.calls
    assert (Wanted("allocate", "gpu"), Wanted("copy", "gpu", "cpu")) == up.calls
    assert b"abcd" == up.after.copy("gpu").content
    assert ((Wanted("free", "cpu"),), b"abcd", False) == (adopted.calls, device.content, device.fresh)
    assert (Wanted("free", "cpu"), Wanted("adopt", "cpu")) == adopted.steps


def test_the_oracle_of_a_memory_that_refuses_to_read_nothing() -> None:
    """Nothing is promised of a side that nobody has written; a write that replaces everything is allowed."""
    strict = Oracle.new(replace(PETSC, first_touch="refused"), 4)

    assert "untouched" == strict.read("host", {}).refused == strict.write("device", {}).refused
    written = strict.overwrite("device", {})
    assert not written.refused
    assert ((Wanted("allocate", "device"),), frozenset(("device",))) == (written.steps, written.after.fresh)
    assert "push" == strict.push("device", "host", {}).refused


def test_the_oracle_knows_no_call_that_means_nothing() -> None:
    with pytest.raises(TypeError, match=r"call must be one that means something to an oracle, got 'ring'"):
        Oracle.new(PETSC, 4).expect(Call("ring"), {})


def test_an_oracle_is_asked_for_facts_by_their_meaning() -> None:
    """It knows nothing of the side of nobody, or of what is in flight."""
    oracle = Oracle.new(CAFFE, 4).read("cpu", {"mode": "GPU"}).after
    asked = [Fact("a", "pointer", "cpu"), Fact("b", "owned", "gpu"), Fact("c", "pinned", "cpu")]

    assert [True, False, True] == [oracle.holds(fact) for fact in asked]
    assert oracle.holds(Fact("d", "pointer", "moon")) is oracle.holds(Fact("e", "dirty", "cpu")) is None


def test_the_oracle_never_reads_the_table() -> None:
    """From the model it imports an error, and nothing that knows a transition."""
    import syncedmem.spec.memory.oracle as module

    known = {
        name for name, value in vars(module).items() if getattr(value, "__module__", "").startswith("syncedmem.model")
    }

    assert set() == {name for name in known if name not in {"InvalidArgumentError", "annotations"}}


# --- the log, and coverage


def log_of(side: str = "cpu") -> tuple[CallLog, RecordingAllocator]:
    """Return a log, and an allocator that records its calls there."""
    log = CallLog()
    inner: Any = CPUDeviceAllocator() if side == "cpu" else SimulatedDeviceAllocator()
    return log, RecordingAllocator(inner, log, "cpu" if side == "cpu" else "gpu")


def test_the_log_knows_what_is_allocated() -> None:
    log, allocator = log_of()
    ptr = allocator.allocate(8)
    allocator.memset_zero(ptr, 8)
    owned = log.owned("cpu")
    allocator.release(ptr)

    assert [ptr] == owned
    assert ["allocate", "zero", "free"] == [entry.operation for entry in log.calls]
    assert {} == log.live


@pytest.mark.parametrize("kind", ["stray", "twice", "nothing", "external", "pinned"])
def test_stray_frees_are_refused_and_remembered(kind: str) -> None:
    """The log keeps them even if the memory under test hides the error."""
    log, allocator = log_of("gpu")
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
        pointer, allocator = pinned.allocate(8), RecordingAllocator(CPUDeviceAllocator(), log, "cpu")

    with pytest.raises(StrayFree, match="was asked to free"):
        allocator.release(pointer)

    expected = kind if kind in ("external", "pinned") else "stray"
    assert [expected] == [found for found, _ in log.stray]


def test_the_kth_call_fails_and_the_next_does_not() -> None:
    """A partial failure first overwrites half of the destination."""
    log, allocator = log_of()
    ptr = allocator.allocate(8)
    ptr[:] = 1
    failure = pytest.raises(InjectedFailure, match="memset_zero on cpu:0 was told to fail")

    with failure, log.moves.armed(1, partial=True):
        allocator.memset_zero(ptr, 8)

    assert [0] * 4 + [1] * 4 == ptr.tolist()
    allocator.memset_zero(ptr, 8)
    assert [0] * 8 == ptr.tolist()


def test_allocating_nothing_is_noted_and_not_live() -> None:
    log, allocator = log_of()

    assert allocator.allocate(0) is None
    assert (1, 0) == (len(log.calls), len(log.live))


def test_coverage_counts_what_was_taken() -> None:
    driver = MemoryDriver(device_subject(), 8)
    driver.perform(READ)
    driver.perform(Input(setting="mode", value="CPU"))
    driver.perform(Input(caffe.SET_CPU_DATA, data=False))
    driver.finish()
    covered = Coverage(caffe.CAFFE)
    covered.add(driver)

    assert (2, 2, 556) == (covered.cells, covered.transitions, covered.missing)
    assert {
        "cpu_data@UNINITIALIZED",
        "set_cpu_data@HEAD_AT_CPU[!has_data]",
        "release@HEAD_AT_CPU[own_cpu_data,!own_gpu_data]",
    } == covered.identifiers()
