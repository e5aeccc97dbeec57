"""The parts of the kit: cases, the oracle and the call log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import machines
import pytest
from subjects import GPU_READ, PUSH, WRITE, device_subject

from syncedmem.model import Call, caffe
from syncedmem.runtime import CPUDeviceAllocator
from syncedmem.spec.cases.writing import Writer
from syncedmem.spec.engine.call_log import CallLog, InjectedFailure, RecordingAllocator
from syncedmem.spec.kit.trial import bench_of, run_case
from syncedmem.spec.memory.oracle import Oracle, Wanted

PETSC = machines.POLICIES[machines.PETSC]

# --- cases


def test_a_wait_for_streams_is_part_of_a_sequence() -> None:
    bench = bench_of(device_subject())
    run_case(bench, Writer(caffe.CAFFE, safe=True).add(WRITE, PUSH).wait().add(GPU_READ).done())

    pushed = ["stream1 = subject.device.stream()", "memory.async_gpu_push(stream=stream1)"]
    waited = "subject.device.record(stream1).synchronize()"
    assert [*pushed, waited, "device_view = memory.gpu_data()", "memory.close()", waited] == [
        *bench.performer.program()[-6:]
    ]


# --- the oracle


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


def test_the_oracle_never_reads_the_table() -> None:
    """From the model it imports an error, and nothing that knows a transition."""
    import syncedmem.spec.memory.oracle as module

    known = {
        name for name, value in vars(module).items() if getattr(value, "__module__", "").startswith("syncedmem.model")
    }

    assert set() == {name for name in known if name not in {"InvalidArgumentError", "annotations"}}


# --- the log


def test_the_kth_call_fails_and_the_next_does_not() -> None:
    """A partial failure first overwrites half of the destination."""
    log = CallLog()
    allocator = RecordingAllocator(CPUDeviceAllocator(), log, "cpu")
    ptr: Any = allocator.allocate(8)
    ptr[:] = 1
    failure = pytest.raises(InjectedFailure, match="memset_zero on cpu:0 was told to fail")

    with failure, log.moves.armed(1, partial=True):
        allocator.memset_zero(ptr, 8)

    assert [0] * 4 + [1] * 4 == ptr.tolist()
    allocator.memset_zero(ptr, 8)
    assert [0] * 8 == ptr.tolist()
