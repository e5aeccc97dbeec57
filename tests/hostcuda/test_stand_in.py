"""hostcuda itself: it does what CUDA does, as far as our tests need it.

These tests use CuPy directly, and no code of ours.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hostcuda_control import LAUNCH_FAILURE, UNKNOWN, hostcuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

cupy: Any = importlib.import_module("cupy")
cuda: Any = cupy.cuda
runtime: Any = cuda.runtime

SIZE = 4096
HOUR = 3_600_000_000
"""A lag in microseconds.  An operation that waits so long is not done when a test looks."""


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """An event that a stream can wait for. It is set at the end, so that nothing hangs."""
    event = threading.Event()
    yield event
    event.set()


def hold(stream: Any, gate: threading.Event) -> None:
    """Delay all operations that are queued from now on until the gate is opened."""
    stream.launch_host_func(gate.wait, 30)


def filled(value: int) -> Any:
    """Return equal bytes on the device, already written, because not all streams wait for the default stream."""
    array = cupy.full(SIZE, value, cupy.uint8)
    cuda.Stream.null.synchronize()
    return array


def pinned(value: int) -> Any:
    """Return equal bytes in page-locked memory."""
    array = np.frombuffer(cuda.alloc_pinned_memory(SIZE), np.uint8, SIZE)
    array[:] = value
    return array


def failing(error: int) -> Any:
    """Return a context that expects CuPy's exception for an error of CUDA."""
    return pytest.raises(runtime.CUDARuntimeError, check=lambda raised: raised.status == error)


# --- the name


def test_it_says_everywhere_that_it_is_no_gpu() -> None:
    """The name of each device and every error say so."""
    assert [hostcuda.NAME] * 2 == [runtime.getDeviceProperties(i)["name"].decode() for i in range(2)]
    for error in (2, 600, 700, 719, 999):
        assert hostcuda.NAME in str(runtime.CUDARuntimeError(error))
        assert hostcuda.NAME in str(cuda.driver.CUDADriverError(error))


def test_cuda_would_not_choose_it() -> None:
    assert 2 == runtime.deviceGetAttribute(runtime.cudaDevAttrComputeMode, 0)  # cudaComputeModeProhibited


# --- memory


def test_a_host_read_of_device_memory_faults() -> None:
    """The read ends the process that the test starts for it. The same read of page-locked memory works."""
    program = "import ctypes, cupy; print(ctypes.string_at(cupy.cuda.{}, 1)); print('read')"
    ends = {
        where: subprocess.run(
            [sys.executable, "-c", program.format(where)], capture_output=True, text=True, check=False, timeout=60
        )
        for where in ("alloc(64).ptr", "alloc_pinned_memory(64).ptr")
    }

    device, host = ends.values()
    assert (-11, "") == (device.returncode, device.stdout)  # SIGSEGV
    assert (0, True) == (host.returncode, host.stdout.endswith("read\n"))


def test_an_address_tells_where_it_is() -> None:
    with cuda.Device(1):
        array = filled(7)
    near = pinned(7)
    kinds = {
        name: runtime.pointerGetAttributes(address)
        for name, address in {"device": array.data.ptr, "pinned": near.ctypes.data, "pageable": id(near)}.items()
    }

    assert {"device": (2, 1), "pinned": (1, 0), "pageable": (0, -2)} == {
        name: (found.type, found.device) for name, found in kinds.items()
    }


def test_memory_is_counted_and_reused() -> None:
    free, total = runtime.memGetInfo()
    before = hostcuda.everything()
    blocks = [runtime.malloc(1000) for _ in range(4)]
    assert free - 4 * 1024 == runtime.memGetInfo()[0]
    runtime.free(blocks[1])
    assert blocks[1] == runtime.malloc(10)
    for block in blocks:
        runtime.free(block)

    assert (before, (free, total)) == (hostcuda.everything(), runtime.memGetInfo())
    with failing(1):
        runtime.free(blocks[0])  # for the second time
    with failing(1):
        runtime.freeHost(blocks[0])  # it is not page-locked memory


def test_a_copy_outside_of_a_block_is_refused() -> None:
    """The copy goes over the end, starts behind the end, names the wrong side, or uses a freed block."""
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
        runtime.memset(block, 0, 1)


def test_a_pageable_source_is_read_before_the_call_returns(gate: threading.Event) -> None:
    """A page-locked source is read when the stream runs the copy."""
    found: dict[str, int] = {}
    for name, host in {"pageable": np.full(SIZE, 7, np.uint8), "pinned": pinned(7)}.items():
        gate.clear()
        stream, array = cuda.Stream(non_blocking=True), filled(0)
        hold(stream, gate)
        runtime.memcpyAsync(array.data.ptr, host.ctypes.data, SIZE, runtime.memcpyHostToDevice, stream.ptr)
        host[:] = 9
        gate.set()
        stream.synchronize()
        found[name] = int(array.get()[0])

    assert {"pageable": 7, "pinned": 9} == found


def test_a_copy_between_two_devices() -> None:
    near = filled(7)
    with cuda.Device(1):
        far = filled(0)
        far.data.copy_from_device(near.data, SIZE)
        assert [7] * SIZE == far.get().tolist()
    with failing(101):
        runtime.memcpyPeer(far.data.ptr, 0, near.data.ptr, 0, SIZE)


# --- streams


def after(first: Any, second: Any, gate: threading.Event) -> bool:
    """Return whether work on the second stream waits for work that is queued on the first stream."""
    source, dest = filled(7), filled(0)
    hold(first, gate)
    with second:
        dest.data.copy_from_device_async(source.data, SIZE)
        queued = cuda.Event(disable_timing=True)
        queued.record()
    waits = not queued.done
    gate.set()
    queued.synchronize()
    assert [7] * SIZE == dest.get().tolist()
    return waits


def default() -> Any:
    return cuda.Stream.null


def blocking() -> Any:
    return cuda.Stream()


def non_blocking() -> Any:
    return cuda.Stream(non_blocking=True)


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (default, blocking, True),
        (blocking, default, True),
        (blocking, blocking, False),
        (default, non_blocking, False),
        (non_blocking, default, False),
        (non_blocking, blocking, False),
    ],
)
def test_the_default_stream_and_blocking_streams_wait_for_each_other(
    gate: threading.Event, first: Callable[[], Any], second: Callable[[], Any], waits: bool
) -> None:
    """Other streams wait only for events.  The lag is off, because with a lag everything waits."""
    with hostcuda.lag(0):
        assert waits is after(first(), second(), gate)


def test_a_stream_waits_for_an_event_of_another(gate: threading.Event) -> None:
    first, second = non_blocking(), non_blocking()
    hold(first, gate)
    event = cuda.Event(disable_timing=True)
    event.record(first)
    second.wait_event(event)
    assert (False, False) == (event.done, second.done)
    gate.set()
    second.synchronize()

    assert (True, True) == (event.done, second.done)


def test_a_lag_delays_what_is_queued_and_nothing_else() -> None:
    """The test needs no clock: with a lag of an hour the copy is not done, and without a lag it is done at once."""
    source, dest, stream = filled(7), filled(0), non_blocking()
    host = pinned(0)
    with hostcuda.lag(HOUR):
        dest.data.copy_from_device_async(source.data, SIZE, stream)
        runtime.memcpyAsync(host.ctypes.data, dest.data.ptr, SIZE, runtime.memcpyDeviceToHost, stream.ptr)
        assert (False, 0) == (stream.done, host[0])
        assert 1 <= hostcuda.live("threads")
    with hostcuda.lag(0):
        stream.synchronize()

    assert (True, 7) == (stream.done, host[0])


def test_a_lag_ends_when_the_program_waits_and_not_before() -> None:
    """What the program waits for is done at once, with all that it comes after. Other work still has its lag."""
    first, second, other = non_blocking(), non_blocking(), non_blocking()
    source, dest, unrelated, seen = filled(7), filled(0), filled(0), pinned(0)
    with hostcuda.lag(HOUR):
        unrelated.data.copy_from_device_async(source.data, SIZE, other)
        dest.data.copy_from_device_async(source.data, SIZE, first)
        second.wait_event(first.record())
        runtime.memcpyAsync(seen.ctypes.data, dest.data.ptr, SIZE, runtime.memcpyDeviceToHost, second.ptr)
        assert (False, False, 0) == (first.done, second.done, seen[0])
        second.synchronize()
        assert (True, True, 7, False) == (first.done, second.done, seen[0], other.done)
        first.synchronize()  # nothing is left to wait for
        runtime.deviceSynchronize()

        assert (True, {7}) == (other.done, set(unrelated.get().tolist()))


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "forgotten"])
def test_what_forgets_to_wait_is_seen_with_a_lag(ordered: bool) -> None:
    """A copy that waits for its own end only, and not for the copy before it on another stream, reads old bytes."""
    stream, source, dest = non_blocking(), filled(7), filled(0)
    with hostcuda.lag(HOUR):
        dest.data.copy_from_device_async(source.data, SIZE, stream)
        if ordered:
            default().wait_event(stream.record())

        assert {7 if ordered else 0} == set(dest.get().tolist())


def test_threads_and_streams_are_given_back() -> None:
    """A stream has a thread while it has work. A stream that is dropped finishes its work first."""
    before = hostcuda.everything()
    source, dest = filled(7), filled(0)
    with hostcuda.lag(HOUR):
        for _ in range(200):
            dest.data.copy_from_device_async(source.data, SIZE, non_blocking())
        assert 200 <= hostcuda.live("threads")
    with hostcuda.lag(0):
        runtime.deviceSynchronize()
        while hostcuda.live("threads"):  # the threads end after their last operation
            threading.Event().wait(0.001)
    assert [7] * SIZE == dest.get().tolist()
    del source, dest

    assert before == hostcuda.everything()


def test_a_host_function_must_not_call_cuda() -> None:
    found: list[object] = []

    def call(_: object) -> None:
        try:
            runtime.getDevice()
        except runtime.CUDARuntimeError as error:
            found.append(error.status)

    stream = non_blocking()
    stream.launch_host_func(call, None)
    stream.synchronize()

    assert [800] == found  # cudaErrorNotPermitted


def test_a_child_process_must_not_go_on_with_it() -> None:
    """A forked child gets an error, as with CUDA."""
    program = (
        "import os, cupy\n"
        "cupy.cuda.runtime.getDevice()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    try: cupy.cuda.runtime.getDevice()\n"
        "    except cupy.cuda.runtime.CUDARuntimeError as error: os._exit(error.status)\n"
        "    os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert "3\n" == done.stdout  # cudaErrorInitializationError


# --- failures


def test_the_call_that_is_told_to_fails_and_no_other() -> None:
    with hostcuda.failing(2, UNKNOWN, "cudaGetDevice"), hostcuda.recorded() as names:
        runtime.getDevice()
        runtime.setDevice(0)
        with failing(UNKNOWN):
            runtime.getDevice()
        runtime.getDevice()

    assert ["cudaGetDevice", "cudaSetDevice", "cudaGetDevice", "cudaGetDevice"] == names


def test_after_an_operation_that_fails_every_call_does() -> None:
    """The failed operation does nothing, and every call returns its error until the device has recovered."""
    array, stream = filled(7), non_blocking()
    with hostcuda.failing_operation(1):
        array.data.memset_async(0, SIZE, stream)
        for call in (runtime.deviceSynchronize, runtime.getDevice, lambda: runtime.malloc(1)):
            with failing(LAUNCH_FAILURE):
                call()
    assert [7] * SIZE == array.get().tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [("HOSTCUDA_DEVICES", "9"), ("HOSTCUDA_DEVICES", "two"), ("HOSTCUDA_MIB", "0"), ("HOSTCUDA_LAG", "1x")],
)
def test_a_setting_that_makes_no_sense_ends_the_program(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    command = [sys.executable, "-c", "import cupy; print(cupy.cuda.runtime.getDeviceCount())"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (2, "") == (done.returncode, done.stdout)
    assert f"hostcuda: {name} must be a number from " in done.stderr
    assert done.stderr.endswith(f"got {value}\n")


def test_what_cuda_has_and_this_has_not_says_so() -> None:
    with failing(801):
        runtime.mallocManaged(64)


# --- kernels


def test_kernels_compute_with_barriers_and_without() -> None:
    """The kernels have many blocks, and the lengths of the arrays are no multiples of the block size."""
    numbers = np.arange(100_003)
    array = cupy.asarray(numbers)

    assert (numbers * 3 + 1).tolist() == (array * 3 + 1).get().tolist()
    assert int(numbers.sum()) == int(array.sum())
    assert numbers[::-7].max() == int(array[::-7].max())


def test_halves_are_converted_as_numpy_does() -> None:
    """Every half is converted to a float. Halves, values between two halves, extremes and NaN are converted back."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = halves.astype(np.float32)
    assert np.array_equal(wide, cupy.asarray(halves).astype(cupy.float32).get(), equal_nan=True)

    with np.errstate(all="ignore"):
        middles = (wide[:-1] + wide[1:]) / 2
        beside = np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(-np.inf))
        floats = np.concatenate([wide, middles, *beside, np.array([1e-30, -1e-30, 1e30, np.inf, np.nan], np.float32)])
        expected = floats.astype(np.float16)
    found = cupy.asarray(floats).astype(cupy.float16).get()
    assert np.array_equal(expected, found, equal_nan=True)
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(expected[numbers]), np.signbit(found[numbers]))


def test_a_kernel_that_does_not_compile_says_why() -> None:
    kernel = cupy.RawKernel('extern "C" __global__ void wrong() { int x = nothing_of_that_name; }', "wrong")
    with pytest.raises(cuda.compiler.CompileException, match="nothing_of_that_name"):
        kernel((1,), (1,), ())


def test_a_kernel_takes_its_arguments_when_it_is_launched(gate: threading.Event) -> None:
    """The kernel then waits for its turn in the stream. The host cannot read device memory before or after it."""
    source = 'extern "C" __global__ void fill(char *to, int value) { to[blockIdx.x * 64 + threadIdx.x] = value; }'
    kernel = cupy.RawKernel(source, "fill")
    array, stream = filled(0), non_blocking()
    hold(stream, gate)
    with stream:
        kernel((SIZE // 64,), (64,), (array, np.int32(7)))
    assert not stream.done
    gate.set()
    stream.synchronize()

    assert [7] * SIZE == array.get().tolist()


def test_kernels_are_kept_and_no_temporary_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process uses the kernel of the first, without a compiler.  The source is new in each run of the test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    program = (
        "import cupy, os, sys\n"
        "if sys.argv[2] == 'nothing': os.environ['PATH'] = ''\n"
        "kernel = cupy.ElementwiseKernel('int64 x', 'int64 y', f'y = x + {sys.argv[1]}', 'syncedmem_kept')\n"
        "print(int(kernel(cupy.arange(2))[1]))\n"
    )
    number = str(np.random.default_rng().integers(1 << 40))
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program, number, path], capture_output=True, text=True, check=True, timeout=120
        ).stdout
        for path in ("compiler", "nothing")
    ]

    assert [f"{int(number) + 1}\n"] * 2 == outputs
    assert [] == list(tmp_path.iterdir())
