"""Where hostcuda has to be as strict as CUDA: were it not, wrong code of ours would pass, and no other test see it.

These tests use CuPy directly, and no code of ours.  What is right in it is seen by all other tests over it.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hostcuda_control import LAUNCH_FAILURE, hostcuda

if TYPE_CHECKING:
    import threading


cupy: Any = importlib.import_module("cupy")
cuda: Any = cupy.cuda
runtime: Any = cuda.runtime

SIZE = 4096
HOUR = 3_600_000_000
"""A lag in microseconds.  An operation that waits so long is not done when a test looks."""


def filled(value: int) -> Any:
    """Return equal bytes on the device, already written, because not all streams wait for the default stream."""
    array = cupy.full(SIZE, value, cupy.uint8)
    cuda.Stream.null.synchronize()
    return array


def failing(error: int) -> Any:
    """Return a context that expects CuPy's exception for an error of CUDA."""
    return pytest.raises(runtime.CUDARuntimeError, check=lambda raised: raised.status == error)


def test_a_host_read_of_device_memory_faults() -> None:
    """The read ends the process that the test starts for it."""
    program = "import ctypes, cupy; found = cupy.cuda.alloc(64).ptr; print('here'); ctypes.string_at(found, 1)"
    done = subprocess.run([sys.executable, "-uc", program], capture_output=True, text=True, check=False, timeout=60)

    assert (-11, True) == (done.returncode, done.stdout.endswith("here\n"))  # SIGSEGV


def test_a_copy_outside_of_a_block_is_refused() -> None:
    """It goes over the end, starts behind the end, names the wrong side, or uses a freed block, which is free once."""
    block, host = runtime.malloc(1000), np.zeros(SIZE, np.uint8)
    down, across = runtime.memcpyDeviceToHost, runtime.memcpyHostToHost
    for address, size, kind in [(block, 1001, down), (block + 1000, 1, down), (block, 1, across)]:
        with failing(1):
            runtime.memcpy(host.ctypes.data, address, size, kind)
    runtime.memcpy(host.ctypes.data, block, 1000, down)
    runtime.free(block)
    with failing(1):
        runtime.memcpy(host.ctypes.data, block, 1, down)
    with failing(1):
        runtime.free(block)


def test_a_page_locked_source_is_read_when_the_stream_runs_the_copy(gate: threading.Event) -> None:
    """Pageable memory is read before the call returns."""
    locked = np.frombuffer(cuda.alloc_pinned_memory(SIZE), np.uint8, SIZE)
    for host, expected in ((np.empty(SIZE, np.uint8), 7), (locked, 9)):
        gate.clear()
        stream, array = cuda.Stream(non_blocking=True), filled(0)
        host[:] = 7
        stream.launch_host_func(gate.wait, 30)
        runtime.memcpyAsync(array.data.ptr, host.ctypes.data, SIZE, runtime.memcpyHostToDevice, stream.ptr)
        host[:] = 9
        gate.set()
        stream.synchronize()
        assert {expected} == set(array.get().tolist())


STREAMS = {
    "default": lambda: cuda.Stream.null,
    "blocking": cuda.Stream,
    "non-blocking": lambda: cuda.Stream(non_blocking=True),
}
WAITS = {("default", "blocking"), ("blocking", "default")}


@pytest.mark.parametrize(("first", "second"), [*product(STREAMS, STREAMS)][1:])
def test_only_the_default_stream_and_blocking_streams_wait_for_each_other(
    gate: threading.Event, first: str, second: str
) -> None:
    """Other streams wait only for events.  The lag is off, because with a lag everything waits."""
    with hostcuda.lag(0):
        before, after = STREAMS[first](), STREAMS[second]()
        before.launch_host_func(gate.wait, 30)
        queued = after.record(cuda.Event(disable_timing=True))
        waits, end = (first, second) in WAITS, time.monotonic() + 10
        while not (waits or queued.done) and time.monotonic() < end:  # the thread of the stream may be slow to start
            time.sleep(0.001)
        assert queued.done is not waits
        gate.set()
        queued.synchronize()


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "forgotten"])
def test_what_forgets_to_wait_is_seen_with_a_lag(ordered: bool) -> None:
    """A copy that waits for its own end only, and not for the copy before it on another stream, reads old bytes."""
    stream, source, dest = STREAMS["non-blocking"](), filled(7), filled(0)
    with hostcuda.lag(HOUR):
        dest.data.copy_from_device_async(source.data, SIZE, stream)
        if ordered:
            cuda.Stream.null.wait_event(stream.record())

        assert {7 if ordered else 0} == set(dest.get().tolist())


def test_after_an_operation_that_fails_every_call_does() -> None:
    """The failed operation does nothing, and every call returns its error until the device has recovered."""
    array, stream = filled(7), STREAMS["non-blocking"]()
    with hostcuda.failing_operation(1):
        array.data.memset_async(0, SIZE, stream)
        for call in (runtime.deviceSynchronize, runtime.getDevice, lambda: runtime.malloc(1)):
            with failing(LAUNCH_FAILURE):
                call()
    assert {7} == set(array.get().tolist())
