"""The instruments of the kit: the trial, the oracle, the ledger, and what was covered."""

from __future__ import annotations

from typing import Any

import pytest
from benches import ADOPT, GPU_ADOPT, GPU_READ, PUSH, READ, RELEASE, WRITE, device_bench, host_bench

from syncedmem.model import Call, Input, Mode
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec import Coverage, Trial
from syncedmem.spec.engine.call_log import InjectedFailure, Ledger, RecordingAllocator, StrayFree
from syncedmem.spec.engine.contents import pattern
from syncedmem.spec.memory.oracle import Oracle, Wanted
from syncedmem.spec.memory.suites import Case, Fail, Synchronize, run_case

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
    import syncedmem.spec.memory.oracle as module

    known = {
        name for name, value in vars(module).items() if getattr(value, "__module__", "").startswith("syncedmem.model")
    }

    assert {"Mode", "SyncedHead"} == known


# --- the ledger, and coverage


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
