"""Two devices: memory is on its own device, whichever is current, and the current device does not change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hostcuda_control import hostcuda
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import Mode, NoDeviceError, WrongDeviceError, caffe, using_mode
from syncedmem.runtime import Blob, Buffer, MemcpyKind, SyncedMemory, named_device, probe
from syncedmem.runtime.devices.cuda import CUDADeviceAllocator, cupy
from syncedmem.runtime.devices.registry import shared_device
from syncedmem.spec import Conformance, Coverage
from syncedmem.verification import checks

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 4096


@pytest.fixture(params=[(0, 1), (1, 0)], ids=["0 while 1 is current", "1 while 0 is current"])
def device(request: pytest.FixtureRequest) -> Any:
    """Return a device that is not the current one."""
    ordinal, current = request.param
    with cupy.cuda.Device(current):
        yield CUDADeviceAllocator(ordinal)
        assert current == cupy.cuda.runtime.getDevice()


def row(value: int) -> Any:
    return np.full(SIZE, value, np.uint8)


def device_of(array: Any) -> int:
    """Return the device that CUDA reports for the address."""
    return int(cupy.cuda.runtime.pointerGetAttributes(array.data.ptr).device)


def test_every_call_of_a_memory_works_on_its_device(device: Any) -> None:
    current = device.current_ordinal()
    with using_mode(Mode.GPU), SyncedMemory(SIZE, device=device) as memory:
        memory.mutable_cpu_data()[:] = 7
        assert device.ordinal == device_of(memory.gpu_data())
        memory.mutable_gpu_data().set(row(8))
        assert {8} == set(memory.cpu_data().tolist())
        memory.mutable_cpu_data()[:] = 9
        stream = device.stream()
        memory.async_gpu_push(stream=stream)
        stream.synchronize()
        assert {9} == set(memory.gpu_data().get().tolist())
        mine = device.empty(SIZE)
        mine.set(row(5))
        memory.set_gpu_data(mine)
        view: Any = memory.gpu_data()
        assert ({5}, mine.data.ptr) == (set(memory.cpu_data().tolist()), view.data.ptr)
        assert current == device.current_ordinal()

    assert (0, current) == (device.live_blocks, device.current_ordinal())


def test_a_check_of_the_device_refuses_every_call(device: Any) -> None:
    memory = SyncedMemory(SIZE, device=device, check_device=True)
    for call in (memory.cpu_data, memory.gpu_data, memory.mutable_cpu_data, memory.mutable_gpu_data):
        with pytest.raises(WrongDeviceError):
            call()
    with device.using():
        assert device.ordinal == device_of(memory.gpu_data())


def test_a_blob_computes_on_its_device(device: Any) -> None:
    blob = Blob((4,), np.float32, device=device)
    blob.data, blob.diff = [4, 4, 4, 4], [1, 2, 3, 4]
    view = blob.mutable_gpu_data()
    blob.update()
    blob.scale_data(2)

    assert ([6, 4, 2, 0], device.ordinal) == (view.get().tolist(), device_of(view))
    assert (12, 10) == (blob.asum_data(), blob.asum_diff())


def test_a_buffer_copies_from_the_other_device(device: Any) -> None:
    other = CUDADeviceAllocator(1 - device.ordinal)
    with Buffer(SIZE, device) as here, Buffer(SIZE, other) as there:
        device.memcpy(row(7), here.ptr, SIZE, MemcpyKind.CPU2CUDA)
        there.copy_from(here)
        ptr: Any = there.ptr
        assert ({7}, other.ordinal) == (set(ptr.get().tolist()), device_of(ptr))


def test_each_ordinal_has_one_shared_device() -> None:
    assert [0, 1] == [shared_device("cuda", ordinal).ordinal for ordinal in (0, 1)]
    assert shared_device("cuda", 0) is named_device("cuda")
    with pytest.raises(NoDeviceError, match="there is no CUDA device 2; there are 2"):
        shared_device("cuda", 2)


# --- its name


def test_it_is_named_for_what_it_is_wherever_a_device_is_named() -> None:
    (report,) = (report for report in probe() if report.name == "cuda")

    assert (True, True) == (report.available, report.detail.startswith(f"{hostcuda.NAME} ("))
    assert CUDADeviceAllocator(1).description.startswith(hostcuda.NAME)


def test_auto_never_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program has to name it."""
    for value in ("", "auto"):
        monkeypatch.setenv("SYNCEDMEM_DEVICE", value)
        assert named_device("simulated") is named_device("auto") is SyncedMemory(SIZE).device
    monkeypatch.setenv("SYNCEDMEM_DEVICE", "cuda")
    assert named_device("cuda") is named_device("auto")


@pytest.mark.deep
def test_a_report_of_what_was_checked_says_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal, the page and the JSON report say so. Nothing is checked in this test."""

    def checked(*_: object, **__: object) -> Conformance[Coverage]:
        return Conformance("cuda", (), Coverage(caffe.CAFFE), 0.0, ())

    monkeypatch.setattr("syncedmem.spec.engine.supervisor.processors", lambda: 1)
    monkeypatch.setattr(checks, "check_conformance", checked)
    monkeypatch.setattr(checks, "check_blobs", checked)
    options = ("verify", "--device", "cuda", "--out", str(tmp_path))
    printed = CliRunner().invoke(app, options, env={"COLUMNS": "200"}).output
    (device,) = json.loads((tmp_path / "report.json").read_text())["devices"]

    assert device["detail"].startswith(f"{hostcuda.NAME} (")
    assert f"cuda: {hostcuda.NAME} (" in printed
    assert f"{hostcuda.NAME} (" in (tmp_path / "index.html").read_text()
