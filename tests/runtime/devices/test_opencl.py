"""`OpenCLDeviceAllocator` on this machine's OpenCL, and machines where OpenCL or a part of it is missing.

The tests make such machines of every one: `failing_compiler` makes any compiler fail, and the loader of OpenCL looks
for drivers in a folder that only the test uses.
"""

from __future__ import annotations

import errno
import gc
import json
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from html import escape
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from simulated_blocks import ACROSS, DOWN, SIZE, UP, row
from subjects import failing
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import (
    AllocationError,
    InvalidArgumentError,
    NoArithmeticError,
    NoDeviceError,
    caffe,
)
from syncedmem.runtime import (
    DeviceType,
    MemcpyKind,
    SyncedMemory,
    arithmetic_of,
)
from syncedmem.runtime.allocators.pointers import address_of
from syncedmem.runtime.devices import compilers
from syncedmem.runtime.devices.host_arithmetic import HostArithmetic
from syncedmem.runtime.devices.opencl_kernels import KernelArithmetic
from syncedmem.spec import Conformance, Coverage, check_blobs
from syncedmem.verification import checks, make_blob_subject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

try:
    import syncedmem.runtime.devices.opencl as opencl_module

    opencl_module.OpenCLDeviceAllocator()
except NoDeviceError as error:
    pytest.skip(f"no OpenCL here: {error}", allow_module_level=True)

cl: Any = opencl_module.cl
cla: Any = opencl_module.cla


@pytest.fixture
def device() -> Any:
    """The first device, with a context that only this test uses."""
    return opencl_module.OpenCLDeviceAllocator()


@pytest.fixture
def gate(device: Any) -> Iterator[Any]:
    """An event that a queue can wait for; it is completed at the end, so that nothing hangs."""
    event = cl.UserEvent(device.context)
    yield event
    if event.command_execution_status > 0:
        event.set_status(cl.command_execution_status.COMPLETE)


def hold(queue: Any, gate: Any) -> None:
    """Hold the queue: work that is queued from now on runs only after the gate is opened."""
    cl.enqueue_barrier(queue, wait_for=[gate])
    queue.flush()


def let_go(gate: Any) -> None:
    """Open the gate."""
    gate.set_status(cl.command_execution_status.COMPLETE)


def opening(gate: Any) -> None:
    """Open the gate a little later, while the caller waits."""
    threading.Timer(0.1, let_go, (gate,)).start()


def filled(device: Any, value: int, size: int = SIZE) -> Any:
    """A block of device memory that holds one value."""
    block = device.allocate(size)
    block.set(row(value, size))
    return block


def test_the_device_is_named_by_its_driver(device: Any) -> None:
    found = device.context.devices[0]

    assert (DeviceType.OPENCL, "opencl:0") == (device.device_type, device.name)
    assert found.name in device.description
    assert found.platform.name in device.description


def test_a_device_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that the driver lists and that then fails."""
    with pytest.raises(NoDeviceError, match="999"):
        opencl_module.OpenCLDeviceAllocator(999)
    with pytest.raises(InvalidArgumentError) as refused:
        opencl_module.OpenCLDeviceAllocator("0")  # type: ignore[arg-type] # on purpose
    assert ("ordinal", "0") == (refused.value.argument, refused.value.value)
    monkeypatch.setattr(cl, "Context", failing(cl.Error, "DEVICE_NOT_AVAILABLE"))
    with pytest.raises(NoDeviceError, match="DEVICE_NOT_AVAILABLE"):
        opencl_module.OpenCLDeviceAllocator()


def test_other_memory_is_not_adopted(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyOpenCL's arrays can also be in shared virtual memory, but our copies are between buffers."""
    near, shared = device.empty(SIZE), device.empty(SIZE)
    monkeypatch.setattr(shared, "base_data", object())
    others = {
        "not a pyopencl.array.Array": near.base_data,
        "belongs to another OpenCL context": opencl_module.OpenCLDeviceAllocator().empty(SIZE),
        "not contiguous": cla.zeros(device.queue, (4, 4), np.uint8, order="F"),
        "not contiguous,?": device.empty(2 * SIZE)[::2],
        "lies in shared virtual memory": shared,
    }
    for reason, buffer in others.items():
        with pytest.raises(ValueError, match=reason):
            device.adopt(buffer, SIZE)


def test_a_part_of_a_buffer_overlaps_it(device: Any) -> None:
    """A sub-buffer is a separate object over some of the same bytes, with its own offset."""
    align = device.queue.device.mem_base_addr_align // 8
    block = device.allocate(4 * align)
    part = cla.Array(device.queue, (align,), np.uint8, data=block.base_data.get_sub_region(align, 2 * align))

    assert device.overlaps(part, block)
    assert device.overlaps(part, block[2 * align - 1 : 2 * align])
    assert not device.overlaps(part, block[2 * align :])
    assert not device.overlaps(part, block[:align])
    device.release(block)


def test_two_sub_buffers_at_the_same_place_are_the_same_operand(device: Any) -> None:
    align = device.queue.device.mem_base_addr_align // 8
    block = device.allocate(4 * align)
    x, y = (
        cla.Array(device.queue, (align // 4,), np.float32, data=block.base_data.get_sub_region(align, align))
        for _ in range(2)
    )
    whole = block[align : 2 * align].view(np.float32)
    whole.set(np.ones(align // 4, np.float32))
    for other in (y, whole):
        arithmetic_of(device).axpy(1, x, other)
        arithmetic_of(device).copy(x, other)

    assert [4] * (align // 4) == whole.get().tolist()
    device.release(block)


def test_an_array_without_bytes_has_no_address(device: Any) -> None:
    """PyOpenCL gives it no buffer."""
    assert 0 == address_of(cla.Array(device.queue, (0,), np.uint8))


# --- streams that are held back by a gate


def test_later_work_of_the_own_queue_comes_after_an_event(device: Any, gate: Any) -> None:
    """The host is not blocked."""
    block, stream = filled(device, 9), device.stream()
    hold(stream, gate)
    device.memcpy(row(7), block, SIZE, UP, stream)
    device.order_after(device.record(stream))
    copy = device.empty(SIZE)
    done = cl.enqueue_copy(device.queue, copy.base_data, block.base_data, byte_count=SIZE)
    device.queue.flush()
    assert done.command_execution_status != cl.command_execution_status.COMPLETE
    let_go(gate)

    assert [7] * SIZE == copy.get().tolist()


@pytest.mark.parametrize("entered", [False, True], ids=["own", "entered"])
def test_a_push_comes_after_what_the_current_queue_has(device: Any, gate: Any, entered: bool) -> None:
    """So does a fill.  Work there reads the old bytes, and the host is not blocked."""
    with SyncedMemory(SIZE, device=device) as memory, device.on(device.stream()) if entered else nullcontext():
        memory.mutable_cpu_data()[:] = 7
        old, found, stream = memory.gpu_data(), device.empty(SIZE), device.stream()
        zeroed = filled(device, 7)
        hold(device.current_stream(), gate)
        device.memcpy(old, found, SIZE, ACROSS, device.current_stream())
        device.memset_zero(zeroed, SIZE, stream)
        filling = device.record(stream)
        memory.mutable_cpu_data()[:] = 9
        memory.async_gpu_push(stream=stream)
        pushed = device.record(stream)
        assert (False, False) == (filling.done, pushed.done)
        let_go(gate)
        pushed.synchronize()

        assert ([7] * SIZE, [0] * SIZE) == (found.get().tolist(), zeroed.get().tolist())
        assert [9] * SIZE == memory.gpu_data().get().tolist()


def test_a_with_block_makes_a_queue_current_in_its_thread(device: Any) -> None:
    """Arrays that are shown there are on the queue, and arithmetic uses it."""
    queue, block = device.stream(), filled(device, 1)
    with device.on(queue) as entered, ThreadPoolExecutor(1) as others:
        inside = device.viewer(block)(), device.empty(4), device.empty(0)
        elsewhere = others.submit(device.current_stream).result()
        assert (queue, queue) == (entered, device.current_stream())
    after = device.viewer(block)()

    assert [queue] * 3 == [array.queue for array in inside]
    assert [device.queue] * 3 == [elsewhere, device.current_stream(), after.queue]
    with pytest.raises(InvalidArgumentError, match="stream must be a command queue of opencl:0"), device.on("queue"):
        pass


def test_arithmetic_comes_after_what_the_current_queue_has(device: Any, gate: Any) -> None:
    """Work of the allocator's own queue, which is held, is not waited for where another queue is current."""
    numbers, queue = device.empty(16).view(np.float32), device.stream()
    numbers.set(np.arange(4, dtype=np.float32))
    hold(device.queue, gate)
    with device.on(queue):
        assert 6 == arithmetic_of(device).asum(numbers)

    cl.enqueue_fill_buffer(device.queue, numbers.base_data, np.float32(3), 0, 16)
    opening(gate)
    assert 12 == arithmetic_of(device).asum(numbers)


def test_a_copy_on_the_host_comes_after_what_its_stream_holds(device: Any, gate: Any) -> None:
    """Here the stream holds a copy from the device into the source."""
    block, stream, near, dest = filled(device, 7), device.stream(), row(0), row(0)
    hold(stream, gate)
    device.memcpy(block, near, SIZE, DOWN, stream)
    opening(gate)
    device.memcpy(near, dest, SIZE, MemcpyKind.CPU2CPU, stream)

    assert [7] * SIZE == dest.tolist()


def test_whoever_waits_for_the_device_waits_for_a_fill(device: Any, gate: Any) -> None:
    block, stream = filled(device, 7), device.stream()
    hold(stream, gate)
    device.memset_zero(block, SIZE, stream)
    opening(gate)
    device.memcpy(None, None, 0, UP, need_sync=True)
    found = row(0)
    device.memcpy(block, found, SIZE, DOWN)

    assert [0] * SIZE == found.tolist()


def test_copies_that_are_over_are_not_kept(device: Any, gate: Any) -> None:
    """Copies in flight are kept, with their host memory."""
    block, stream = filled(device, 9), device.stream()
    hold(stream, gate)
    for _ in range(3):
        device.memcpy(row(7), block, SIZE, UP, stream)
    assert len(device._queued) == 3
    let_go(gate)
    stream.finish()
    device.memcpy(row(7), block, SIZE, UP, stream)

    assert len(device._queued) == 1


def test_an_event_after_a_failure_is_over_and_says_so(gate: Any) -> None:
    """A failed event is never complete, so a wait must also end at a failure."""
    event: Any = opencl_module._QueueEvent(gate, lambda: None)  # pyright: ignore[reportPrivateUsage] -- made by hand, so that it can fail
    assert not event.done
    gate.set_status(-5)

    assert event.done
    with pytest.raises(cl.Error):
        event.synchronize()


def test_a_size_that_the_device_never_has_room_for_is_refused(device: Any) -> None:
    """Also by NVIDIA's driver, which takes memory when a buffer is first used, and makes a buffer of any size."""
    most = device.queue.device.global_mem_size
    with pytest.raises(AllocationError) as refused:
        device.allocate(most + 1)

    assert ("opencl:0", most + 1) == (refused.value.where, refused.value.byte_size)


@pytest.mark.parametrize("error", [cl.MemoryError, OverflowError])
def test_a_size_that_the_driver_refuses_is_an_allocation_error(
    device: Any, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Because the rest of the device is in use, or because the size is no number of its own.  Later it has room."""
    with monkeypatch.context() as patch:
        patch.setattr(cl, "Buffer", failing(error, "no more"))
        with pytest.raises(AllocationError) as refused:
            device.allocate(SIZE)

    assert ("opencl:0", SIZE, 0) == (refused.value.where, refused.value.byte_size, device.live_blocks)
    assert [7] * SIZE == filled(device, 7).get().tolist()


def test_an_allocator_that_computed_goes_without_a_collector() -> None:
    device = opencl_module.OpenCLDeviceAllocator()
    x = device.empty(16).view(np.float32)
    arithmetic_of(device).scal(0.0, x)
    gone = weakref.ref(device)
    gc.disable()
    try:
        del device
        assert gone() is None
    finally:
        gc.enable()


def test_a_view_of_fresh_memory_is_refused_in_a_child_of_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the view would wait for ever. This test does not fork; it sets the state that a child would have."""
    device = opencl_module.OpenCLDeviceAllocator()
    with SyncedMemory(8, device=device) as memory:
        memory.gpu_data()
        with monkeypatch.context() as child:
            child.setattr(device._home, "lost", True)  # pyright: ignore[reportPrivateUsage] -- only a child sets it
            with pytest.raises(NoDeviceError, match="does not survive a fork"):
                memory.gpu_data()
        assert memory.gpu_data().get().tolist() == [0] * 8


# --- kernels, for which the compiler must work


verdict = opencl_module.OpenCLDeviceAllocator().compiler


def not_here(_: object) -> bool:
    """In place of the question whether an OpenCL device is the processor."""
    return False


@pytest.mark.skipif(not verdict.works, reason=f"the compiler of OpenCL fails here: {verdict.reason}")
def test_a_device_without_doubles_computes_in_floats(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it has no arithmetic on doubles, and computes sums in float."""
    monkeypatch.setattr(cl.Device, "double_fp_config", 0)
    vectors = KernelArithmetic(device.name, device.current_stream, cl)
    x = device.empty(4000).view(np.float32)
    x.set(np.full(1000, 0.5, np.float32))
    vectors.axpy(2.0, x, x)

    assert vectors.asum(x) == 1500
    assert vectors.sumsq(x) == 2250
    with pytest.raises(
        NoArithmeticError, match=r"scal is not for elements of type float64; it is for float16, .*, float32$"
    ):
        vectors.scal(2.0, device.empty(16).view(np.float64))


@pytest.mark.skipif(not verdict.works, reason=f"the compiler of OpenCL fails here: {verdict.reason}")
def test_a_kernel_that_an_interrupt_meets_when_it_is_queued_is_waited_for(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote to the array after the call had ended."""
    monkeypatch.setattr("syncedmem.runtime.devices.opencl.is_processor", not_here)
    arithmetic: Any = arithmetic_of(device)
    x = device.empty(64 << 20).view(np.float32)
    arithmetic.scal(0.0, x)
    kernel, events = arithmetic._kernel, list[Any]()

    def interrupted(name: str, dtype: Any) -> Any:
        def launch(*arguments: Any, **named: Any) -> Any:
            events.append(kernel(name, dtype)(*arguments, **named))
            raise KeyboardInterrupt

        return launch

    monkeypatch.setattr(arithmetic, "_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        arithmetic.scal(2.0, x)

    assert [cl.command_execution_status.COMPLETE] == [event.command_execution_status for event in events]


# --- devices whose compiler fails, and machines without a driver


@pytest.fixture(params=["as it is", "fails"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device's own compiler, and one that fails."""
    found: str = request.param
    if found == "fails":
        monkeypatch.setattr("syncedmem.runtime.devices.opencl.compiler_of", failing_compiler)
    return found


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> str:
    """The reason why the compiler fails."""
    monkeypatch.setattr("syncedmem.runtime.devices.opencl.compiler_of", failing_compiler)
    return failing_compiler().reason


def failing_compiler(*_: object) -> compilers.Compiler:
    """In place of trying the compiler of a device."""
    return compilers.Compiler(works=False, reason="no such processor")


def test_devices_says_what_a_device_without_a_compiler_can_do(no_compiler: str) -> None:
    limits = f"memory only: its compiler fails ({no_compiler}); the host computes"
    shown = CliRunner().invoke(app, "devices", env={"COLUMNS": "300"})
    narrow = CliRunner().invoke(app, "devices", env={"COLUMNS": "80"}).output
    found = {row["name"]: row for row in json.loads(CliRunner().invoke(app, "devices --json").stdout)}["opencl"]

    assert (0, True, False) == (shown.exit_code, f"yes, {limits}" in shown.output, "…" in narrow)
    reported = tuple(found[name] for name in ("available", "compiler", "compiler_error", "arithmetic"))
    assert (True, False, no_compiler, "host") == reported


def test_a_compiler_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, program = opencl_module.OpenCLDeviceAllocator().compiler, cl.Program
    tried: list[object] = []

    def counted(*arguments: Any) -> Any:
        tried.append(arguments)
        return program(*arguments)

    monkeypatch.setattr(cl, "Program", counted)
    assert (verdict, []) == (opencl_module.OpenCLDeviceAllocator().compiler, tried)


class Driver:
    """The parts of PyOpenCL that `compiler_of` needs; a test can make each of them fail."""

    class Error(Exception):
        """The driver's error."""

    CompilerWarning = UserWarning
    mem_flags = SimpleNamespace(WRITE_ONLY=1)
    program_build_info = SimpleNamespace(LOG=2)
    log: str | None = None
    refusal = ""
    folder = True
    wrote = 42

    def Context(self, devices: list[Any]) -> Any:  # noqa: N802 -- PyOpenCL's names
        return devices

    def CommandQueue(self, context: Any) -> Any:  # noqa: N802
        return context

    def Buffer(self, *_: Any) -> Any:  # noqa: N802
        return None

    def Program(self, *_: Any) -> Any:  # noqa: N802
        return self

    def build(self) -> None:
        if self.refusal:
            raise self.Error(self.refusal)

    def get_build_info(self, *_: Any) -> str:
        if self.log is None:
            raise self.Error("no log")
        return self.log

    def answer(self, *_: Any) -> None:
        if not self.folder:
            raise PermissionError(errno.EACCES, "Permission denied", "/home/.cache")

    def enqueue_copy(self, _: Any, to: Any, __: Any) -> None:
        to[0] = self.wrote


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ({}, (True, "")),
        ({"wrote": 0}, (False, "a kernel that had to write 42 wrote 0")),
        ({"refusal": "no build\nfor reasons"}, (False, "no build")),
        ({"refusal": "no build", "log": " \n error: no such target\nmore"}, (False, "no such target")),
        ({"refusal": "no build", "log": "error: a/b.cl:2:2: no such word"}, (False, "no such word")),
        ({"refusal": "no build", "log": "\n"}, (False, "no build")),
        ({"folder": False}, (False, "[Errno 13] Permission denied: '/home/.cache'")),
    ],
)
def test_a_verdict_has_the_first_line_of_the_reason(broken: dict[str, Any], found: tuple[bool, str]) -> None:
    driver = Driver()
    vars(driver).update(broken)

    assert found == compilers.compiler_of(None, driver)


def test_without_mako_there_are_no_reductions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_spec", {"mako": None}.get)
    works, reason = compilers.compiler_of(None, Driver())

    assert not works
    assert "the package mako" in reason


@pytest.mark.deep
@pytest.mark.usefixtures("no_compiler")
def test_blobs_conform_without_a_compiler() -> None:
    """Only arithmetic needs one; the test of `syncedmem verify` checks all with the device's own compiler."""
    check_blobs(make_blob_subject("opencl", 0), steps=200).require()


@pytest.mark.usefixtures("compiler")
def test_the_bytes_of_arithmetic_come_back_to_the_host() -> None:
    """Results that the host writes into a mapped buffer are in the buffer after it is unmapped."""
    with SyncedMemory(4096, device="opencl") as memory:
        memory.mutable_cpu_data().view(np.float32)[:] = np.arange(1024)
        arithmetic_of(memory.device).scal(2.0, memory.mutable_gpu_data().view(np.float32))
        assert (2 * np.arange(1024)).tolist() == memory.cpu_data().view(np.float32).tolist()


@pytest.mark.usefixtures("no_compiler")
def test_nothing_stays_mapped_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    device = opencl_module.OpenCLDeviceAllocator()
    x = device.empty(64).view(np.float32)
    x.set(np.ones(16, np.float32))

    monkeypatch.setattr(HostArithmetic, "asum", failing(KeyboardInterrupt))
    mapped: list[Any] = []
    take = cl.enqueue_map_buffer

    def kept(*arguments: Any) -> Any:
        mapped.append(take(*arguments))
        return mapped[-1]

    monkeypatch.setattr(cl, "enqueue_map_buffer", kept)
    with pytest.raises(KeyboardInterrupt):
        arithmetic_of(device).asum(x)
    for area, _ in mapped:
        with pytest.raises(cl.LogicError):
            area.base.release(device.queue)
    assert 1 == len(mapped)


@pytest.mark.deep
def test_verify_and_its_report_say_what_a_device_without_a_compiler_can_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_compiler: str
) -> None:
    def checked(*_: object, **__: object) -> Conformance[Coverage]:
        return Conformance("opencl", (), Coverage(caffe.CAFFE), 0.0, ())

    monkeypatch.setattr("syncedmem.spec.engine.supervisor.processors", lambda: 1)
    monkeypatch.setattr(checks, "check_conformance", checked)
    monkeypatch.setattr(checks, "check_blobs", checked)
    options = ("verify", "--device", "opencl", "--out", str(tmp_path))
    printed = CliRunner().invoke(app, options, env={"COLUMNS": "200"}).output
    limits = json.loads((tmp_path / "report.json").read_text())["devices"][0]["limits"]

    assert f"memory only: its compiler fails ({no_compiler}); the host computes" == limits
    assert f"opencl: {limits}" in printed
    assert f"{escape(limits)}" in (tmp_path / "index.html").read_text()


MISSING = "PyOpenCL is installed, but OpenCL cannot be used: "


def elsewhere(drivers: Path, *arguments: str) -> Any:
    """Run the command line as on a machine that has only the drivers of this folder."""
    folder = drivers / ".libs"  # PyOpenCL's wheel looks for drivers here too, besides the folders of the system
    program = f"""
import os, sys
import pyopencl
os.environ.update(PYOPENCL_HOME={str(drivers)!r}, OCL_ICD_VENDORS={str(folder)!r})
sys.argv[1:] = {list(arguments)!r}
from syncedmem.cli import main
main()
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.deep
@pytest.mark.parametrize("driver", [None, "libmissing.so", "pocl.icd"], ids=["none", "missing", "no library"])
def test_a_machine_without_a_driver_says_what_is_missing(driver: str | None, tmp_path: Path) -> None:
    """There is no driver, as without PoCL; or the library of a driver is missing, or is not a library."""
    folder = tmp_path / ".libs"
    folder.mkdir()
    if driver is not None:
        (folder / "pocl.icd").write_text(str(folder / driver))

    listed = json.loads(elsewhere(tmp_path, "devices", "--json").stdout)

    assert {row["name"]: row for row in listed}["opencl"]["detail"].startswith(MISSING)


@pytest.mark.deep
def test_a_machine_without_a_driver_verifies_the_rest(tmp_path: Path) -> None:
    names = ("--device", "cpu", "--device", "opencl")
    options = ("--steps", "10", "--out", str(tmp_path / "report"))
    done = elsewhere(tmp_path, "verify", *names, *options)

    assert 1 == done.returncode, "a device that was named is missing"
    assert "incomplete" in done.stdout
    assert f"opencl: {MISSING}" in done.stdout
    assert "cpu     passed" in done.stdout
