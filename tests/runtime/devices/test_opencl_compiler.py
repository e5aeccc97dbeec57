"""Devices whose compiler fails, and machines where OpenCL or a part of it is missing.

The tests make both on every machine: `COMPILER_VARIABLE` makes any compiler fail, and the loader of OpenCL looks for
drivers in a folder that only the test uses.
"""

from __future__ import annotations

import json
import subprocess
import sys
from html import escape
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import failing
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import InvalidArgumentError, NoDeviceError, caffe
from syncedmem.runtime import SyncedMemory, arithmetic_of
from syncedmem.runtime.devices import compilers
from syncedmem.runtime.devices.compilers import COMPILER_VARIABLE
from syncedmem.runtime.devices.host_arithmetic import HostArithmetic
from syncedmem.runtime.devices.opencl_arithmetic import MappedArithmetic
from syncedmem.spec import Conformance, Coverage, check_blobs
from syncedmem.verification import checks, make_blob_subject

if TYPE_CHECKING:
    from pathlib import Path

try:
    import syncedmem.runtime.devices.opencl as opencl_module

    opencl_module.OpenCLDeviceAllocator()
except NoDeviceError as error:
    pytest.skip(f"no OpenCL here: {error}", allow_module_level=True)

cl: Any = opencl_module.cl


@pytest.fixture(params=["as it is", "fails"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device's own compiler, and one that fails."""
    found: str = request.param
    monkeypatch.setenv(COMPILER_VARIABLE, "fails" if found == "fails" else "")
    return found


def test_the_switch_makes_any_compiler_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    device = opencl_module.OpenCLDeviceAllocator()
    monkeypatch.setenv(COMPILER_VARIABLE, "fails")

    assert (False, "SYNCEDMEM_OPENCL_COMPILER=fails") == device.compiler
    assert isinstance(arithmetic_of(device), MappedArithmetic)


WRONG = "SYNCEDMEM_OPENCL_COMPILER must be 'fails' or unset, got 'broken'"


def test_the_switch_has_one_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other value is refused when it is read; memory does not read it; an empty value means unset."""
    monkeypatch.setenv(COMPILER_VARIABLE, "broken")
    device = opencl_module.OpenCLDeviceAllocator()
    with SyncedMemory(4, device=device) as memory:
        memory.mutable_cpu_data()[:] = 7
        assert [7] * 4 == memory.gpu_data().get().tolist()
    with pytest.raises(InvalidArgumentError, match=f"^{WRONG}$"):
        arithmetic_of(device)
    monkeypatch.setenv(COMPILER_VARIABLE, "")

    assert arithmetic_of(device) is device.arithmetic()


FAILS = "SYNCEDMEM_OPENCL_COMPILER=fails"


@pytest.mark.parametrize(
    ("value", "limits", "reported"),
    [
        ("broken", f"memory only: {WRONG}; no arithmetic", (True, None, WRONG, None)),
        ("fails", f"memory only: its compiler fails ({FAILS}); the host computes", (True, False, FAILS, "host")),
    ],
)
def test_devices_says_what_a_device_without_a_compiler_can_do(
    monkeypatch: pytest.MonkeyPatch, value: str, limits: str, reported: tuple[Any, ...]
) -> None:
    """The command lists all devices even if the switch is wrong."""
    monkeypatch.setenv(COMPILER_VARIABLE, value)
    shown = CliRunner().invoke(app, "devices", env={"COLUMNS": "300"})
    narrow = CliRunner().invoke(app, "devices", env={"COLUMNS": "80"}).output
    found = {row["name"]: row for row in json.loads(CliRunner().invoke(app, "devices --json").stdout)}["opencl"]

    assert (0, True, False) == (shown.exit_code, f"yes, {limits}" in shown.output, "…" in narrow)
    assert reported == tuple(found[it] for it in ("available", "compiler", "compiler_error", "arithmetic"))


def test_a_compiler_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMPILER_VARIABLE, raising=False)
    verdict, program = opencl_module.OpenCLDeviceAllocator().compiler, cl.Program
    tried: list[object] = []

    def counted(*arguments: Any) -> Any:
        tried.append(arguments)
        return program(*arguments)

    monkeypatch.setattr(cl, "Program", counted)
    assert (verdict, []) == (opencl_module.OpenCLDeviceAllocator().compiler, tried)


class Driver:
    """The parts of PyOpenCL that `try_compiler` needs; a test can make each of them fail."""

    class Error(Exception):
        """The driver's error."""

    CompilerWarning = UserWarning
    mem_flags = SimpleNamespace(WRITE_ONLY=1)
    program_build_info = SimpleNamespace(LOG=2)
    log: str | None = None
    refusal = ""
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

    def answer(self, *_: Any) -> None: ...

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
    ],
)
def test_a_verdict_has_the_first_line_of_the_reason(broken: dict[str, Any], found: tuple[bool, str]) -> None:
    driver = Driver()
    vars(driver).update(broken)

    assert found == compilers.try_compiler(None, driver)


def test_without_mako_there_are_no_reductions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_spec", {"mako": None}.get)
    works, reason = compilers.try_compiler(None, Driver())

    assert not works
    assert "the package mako" in reason


@pytest.mark.deep
def test_blobs_conform_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only arithmetic needs one; the test of `syncedmem verify` checks all with the device's own compiler."""
    monkeypatch.setenv(COMPILER_VARIABLE, "fails")
    check_blobs(make_blob_subject("opencl", 0), steps=200).require()


@pytest.mark.usefixtures("compiler")
def test_the_bytes_of_arithmetic_come_back_to_the_host() -> None:
    """Results that the host writes into a mapped buffer are in the buffer after it is unmapped."""
    with SyncedMemory(4096, device="opencl") as memory:
        memory.mutable_cpu_data().view(np.float32)[:] = np.arange(1024)
        arithmetic_of(memory.device).scal(2.0, memory.mutable_gpu_data().view(np.float32))
        assert (2 * np.arange(1024)).tolist() == memory.cpu_data().view(np.float32).tolist()


def test_nothing_stays_mapped_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPILER_VARIABLE, "fails")
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPILER_VARIABLE, "fails")

    def checked(*_: object, **__: object) -> Conformance[Coverage]:
        return Conformance("opencl", (), Coverage(caffe.CAFFE), 0.0, ())

    monkeypatch.setattr(checks, "check_conformance", checked)
    monkeypatch.setattr(checks, "check_blobs", checked)
    options = ("verify", "--device", "opencl", "--processes", "1", "--out", str(tmp_path))
    printed = CliRunner().invoke(app, options, env={"COLUMNS": "200"}).output
    limits = json.loads((tmp_path / "report.json").read_text())["devices"][0]["limits"]

    assert "memory only: its compiler fails (SYNCEDMEM_OPENCL_COMPILER=fails); the host computes" == limits
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
    options = ("--steps", "10", "--processes", "1", "--out", str(tmp_path / "report"))
    done = elsewhere(tmp_path, "verify", *names, *options)

    assert 1 == done.returncode, "a device that was named is missing"
    assert "incomplete" in done.stdout
    assert f"opencl: {MISSING}" in done.stdout
    assert "cpu     passed" in done.stdout
