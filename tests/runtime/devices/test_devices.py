"""Devices by name: which are available on this machine, and why others are not."""

from __future__ import annotations

import re
import sys
import threading
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from threads import run_in_threads

from syncedmem.model import DeviceError, InvalidArgumentError, Mode, NoDeviceError, using_mode
from syncedmem.model.errors import shown
from syncedmem.runtime import (
    Blob,
    CPUDeviceAllocator,
    DeviceType,
    SimulatedDeviceAllocator,
    StatisticsAllocator,
    SyncedMemory,
    devices,
    named_device,
    probe,
)
from syncedmem.runtime.devices import registry
from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.runtime.devices.registry import (
    DEVICE_NAMES,
    ENVIRONMENT,
    automatic_name,
    check_environment,
    report_of,
    resolve_device,
    resolve_host,
    shared_device,
    sibling,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OWNERS = {"cupy": "cuda", "pyopencl": "opencl"}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without cached devices, leave none for other tests, and unset the variable that names a device."""
    for name in ("_made", "_automatic"):
        monkeypatch.setattr(registry, name, cache(getattr(registry, name).__wrapped__))
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def replace(monkeypatch: pytest.MonkeyPatch, library: str, stand_in: Any) -> None:
    """Replace a library with a stand-in, or hide it with None, and forget the module that imported it."""
    owner = f"syncedmem.runtime.devices.{OWNERS[library]}"
    monkeypatch.setattr(devices, OWNERS[library], None, raising=False)
    # First set, then deleted, so that monkeypatch later removes the module that a test imports.
    monkeypatch.setitem(sys.modules, owner, devices)
    monkeypatch.delitem(sys.modules, owner)
    monkeypatch.setitem(sys.modules, library, stand_in)
    monkeypatch.setitem(sys.modules, f"{library}.array", stand_in)


def cupy_with(count: int | None, compute_mode: int = 0) -> Any:
    """Return a fake CuPy that finds GPUs with a compute mode, or no driver if the count is None."""

    class CUDARuntimeError(RuntimeError):
        """Stands for CuPy's error."""

    def get_device_count() -> int:
        if count is None:
            raise CUDARuntimeError("cudaErrorInsufficientDriver: too old")
        return count

    def properties(_: int) -> dict[str, Any]:
        return {"name": b"Toy GPU", "totalGlobalMem": 3 << 30, "multiProcessorCount": 1}

    def attribute(name: int, _: int) -> int:
        return compute_mode if name == calls.cudaDevAttrComputeMode else -1

    calls = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        cudaDevAttrComputeMode=20,
        deviceGetAttribute=attribute,
        getDeviceCount=get_device_count,
        getDeviceProperties=properties,
        runtimeGetVersion=lambda: 12090,
    )
    return SimpleNamespace(__version__="99.9", cuda=SimpleNamespace(runtime=calls, Event=object))


def pyopencl_with(platforms: list[Any] | None = None) -> Any:
    """Return a fake PyOpenCL that finds these platforms, or fails if they are None."""

    class Error(Exception):
        """Stands for PyOpenCL's error."""

    def get_platforms() -> list[Any]:
        if platforms is None:
            raise Error("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
        return platforms

    return SimpleNamespace(Error=Error, get_platforms=get_platforms)


WITHOUT: dict[str, tuple[str, Any, str]] = {
    "no CuPy": ("cupy", None, r"^CUDA needs CuPy, which is not installed: pip install 'cupy-cuda12x\[ctk\]' or "),
    "no driver": ("cupy", cupy_with(None), r"^CuPy 99\.9 is installed, but CUDA cannot be used: cudaErrorInsuff"),
    "no GPU": ("cupy", cupy_with(0), "^there is no CUDA device 0; there are 0"),
    "no PyOpenCL": ("pyopencl", None, r"^OpenCL needs PyOpenCL and a driver: pip install mako pyopencl"),
    "no platform": ("pyopencl", pyopencl_with(), "^PyOpenCL is installed, but OpenCL cannot be used: clGetPlat"),
    "no OpenCL device": ("pyopencl", pyopencl_with([]), "^there is no OpenCL device 0; there are 0"),
}


@pytest.mark.parametrize("missing", WITHOUT)
def test_a_device_that_is_not_here_says_what_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory, `named_device` and the list of devices all say it, also the second time; ``auto`` is another device."""
    library, stand_in, message = WITHOUT[missing]
    replace(monkeypatch, library, stand_in)
    name = OWNERS[library]
    for _ in range(2):
        with pytest.raises(NoDeviceError, match=message):
            SyncedMemory(4, device=name)
    with pytest.raises(NoDeviceError, match=message) as caught:
        named_device(name)

    report = next(report for report in probe() if report.name == name)
    assert (False, str(caught.value)) == (report.available, report.detail)
    assert library != "cupy" or named_device("auto") is named_device("simulated")


def test_where_pocl_cannot_write_its_device_is_missed_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PoCL says nothing: it is there, and has no device."""
    replace(monkeypatch, "pyopencl", pyopencl_with([]))
    for variable in ("POCL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))

    with pytest.raises(NoDeviceError, match=f"{tmp_path}.*set XDG_CACHE_HOME"):
        named_device("opencl")
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))
    with pytest.raises(NoDeviceError, match="there is no OpenCL device 0; there are 0"):
        named_device("opencl")


def test_with_a_gpu_auto_is_cuda_and_says_which_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver describes the GPU; there is no second one."""
    replace(monkeypatch, "cupy", cupy_with(1))
    found = named_device("auto")
    report = next(report for report in probe() if report.name == "cuda")

    assert (DeviceType.CUDA, "cuda:0") == (found.device_type, found.name)
    assert (True, "Toy GPU (3072 MiB, CuPy 99.9)") == (report.available, report.detail)
    assert "cuda" == automatic_name()
    assert sibling(found) is None


@pytest.mark.parametrize("mode", ["default", "exclusive", "prohibited", "exclusive process"])
def test_auto_leaves_a_gpu_alone_whose_compute_mode_is_prohibited(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """By its name you still get it. The modes here are in the order of CUDA's numbers."""
    modes = ["default", "exclusive", "prohibited", "exclusive process"]
    replace(monkeypatch, "cupy", cupy_with(1, modes.index(mode)))

    assert named_device("auto") is named_device("simulated" if mode == "prohibited" else "cuda")
    assert DeviceType.CUDA is named_device("cuda").device_type


def install(monkeypatch: pytest.MonkeyPatch, name: str) -> SimulatedDeviceAllocator:
    """Register a simulated device under a name."""
    allocator = SimulatedDeviceAllocator(1)
    makers = registry._MAKERS  # pyright: ignore[reportPrivateUsage] -- the table that names are looked up in
    monkeypatch.setitem(makers, name, lambda _: (allocator, "installed"))
    return allocator


def test_the_environment_decides_about_auto_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explicit name comes first; a change is noticed; an empty value or `auto` has no effect."""
    cuda, opencl = install(monkeypatch, "cuda"), install(monkeypatch, "opencl")
    found: list[Any] = []
    for value in ("opencl", "simulated", "auto", ""):
        monkeypatch.setenv(ENVIRONMENT, value)
        found.append(named_device("auto"))
        assert named_device("opencl") is opencl

    assert [opencl, named_device("simulated"), cuda, cuda] == found


def test_a_named_device_that_is_missing_has_no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable, then says what is missing."""
    replace(monkeypatch, "cupy", None)
    monkeypatch.setenv(ENVIRONMENT, "cuda")
    uses: list[Callable[[], object]] = [lambda: named_device("auto"), lambda: SyncedMemory(4)]
    for use in uses:
        with pytest.raises(NoDeviceError, match=r"^SYNCEDMEM_DEVICE='cuda': CUDA needs CuPy"):
            use()


def test_the_environment_may_name_the_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """``auto`` then means no device, and `named_device` gives that of the host; other names mean the same as before."""
    monkeypatch.setenv(ENVIRONMENT, "cpu")
    with SyncedMemory(4) as memory, pytest.raises(NoDeviceError):
        memory.gpu_data()

    assert named_device("auto") is cpu_allocator()
    assert (None, "cpu") == (resolve_device("auto"), automatic_name())
    assert resolve_device("simulated") is named_device("simulated")


@pytest.mark.parametrize("device", ["cpu", None, named_device("cpu")])
def test_the_host_alone_has_a_name(device: Any) -> None:
    """It is ``cpu``, as ``devices`` lists it, and means the same as None: no device."""
    for made in (SyncedMemory(4, device=device), Blob((1,), device=device), Blob.from_array([1.0], device=device)):
        assert made.device is None
    assert named_device("cpu") is cpu_allocator()


def test_the_simulated_device_has_a_name_with_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seeds are two devices; the same one is shared."""
    first: Any = named_device("simulated-seeded")

    assert (DeviceType.SIMULATED, False) == (first.device_type, first.defers)
    assert first is named_device("simulated-seeded:0") is not named_device("simulated-seeded:7")
    monkeypatch.setenv(ENVIRONMENT, "simulated-seeded:7")
    assert SyncedMemory(4).device is named_device("simulated-seeded:7")


@pytest.mark.parametrize("name", ["simulated:1", "opencl:0", "simulated:01", "cuda:3"])
def test_a_number_says_which_device_of_a_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form is that of error messages; memories, blobs, the environment and reports accept it."""
    replace(monkeypatch, "cupy", cupy_with(4))
    kind, _, number = name.partition(":")
    if kind == "opencl" and not report_of("opencl").available:
        pytest.skip("there is no opencl here")
    device = named_device(name)
    monkeypatch.setenv(ENVIRONMENT, name)

    assert (f"{kind}:{int(number)}", int(number)) == (device.name, device.ordinal)
    assert shared_device(kind, int(number)) is device is named_device("auto")
    assert {device} == {SyncedMemory(4, device=name).device, SyncedMemory(4).device, Blob(device=name).device}
    assert (name, True) == (report_of(name).name, report_of(name).available)
    assert automatic_name() == (device.name if int(number) else kind)


NO_NAMES: list[str] = [
    *("", "gpu", "CUDA", "auto ", "auto:0", "cpu:0", ":1", "gpu:1", "simulated:4"),
    *(f"simulated:{number}" for number in ("", "x", "-1", "+1", " 1", "1.0", "1:1", "0x1", "²", "\u0661")),
    *(f"simulated-seeded:{number}" for number in ("", "x", "-1", "9" * 5000)),
]


@pytest.mark.parametrize("name", NO_NAMES, ids=lambda name: name[:30])
def test_a_name_of_no_device_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the environment, where an empty name says nothing, and a device need not be on this machine."""
    uses: list[Callable[[], object]] = [lambda: named_device(name), lambda: SyncedMemory(4, device=name)]
    for use in uses:
        with pytest.raises(NoDeviceError):
            use()
    monkeypatch.setenv(ENVIRONMENT, name)
    if name in ("", "simulated:4"):
        check_environment()
    else:
        with pytest.raises(NoDeviceError, match=f"^{re.escape(f'{ENVIRONMENT}={shown(name)}: ')}") as caught:
            check_environment()
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", [[], None, 0, b"cuda"])
def test_what_is_no_name_is_refused(name: Any) -> None:
    """A value that cannot be hashed is refused too."""
    with pytest.raises(InvalidArgumentError) as caught:
        named_device(name)

    assert ("name", name) == (caught.value.argument, caught.value.value)


@pytest.mark.parametrize("value", [None, "", "auto", "cpu", "cuda:7", *DEVICE_NAMES])
def test_the_environment_may_name_any_known_device(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """The device need not be available on this machine."""
    replace(monkeypatch, "cupy", None)
    if value is not None:
        monkeypatch.setenv(ENVIRONMENT, value)
    check_environment()
    with pytest.raises(NoDeviceError):
        named_device("cuda")


@pytest.mark.parametrize("compiles", [True, False])
def test_without_nvrtc_cuda_has_no_arithmetic(monkeypatch: pytest.MonkeyPatch, compiles: bool) -> None:
    """Its report says so, because the host does not compute for it."""
    toy = cupy_with(1)
    if compiles:
        toy.cuda.nvrtc = SimpleNamespace(getVersion=lambda: (12, 9))
    replace(monkeypatch, "cupy", toy)
    report = report_of("cuda")

    assert (compiles, "device" if compiles else None) == (report.compiler, report.arithmetic)
    assert compiles or report.limits.startswith("memory only: its compiler fails (")
    assert compiles is not report.limits.endswith("); no arithmetic")


def test_a_device_without_an_allocator_of_pinned_memory_is_an_error_of_the_family() -> None:
    """The error comes when the memory is made, and the error of the device is its cause."""

    class Odd(SimulatedDeviceAllocator):
        def pinned_host(self) -> Any:
            raise OSError(12, "no pages")

    with pytest.raises(DeviceError, match=r"pinned_host failed on simulated:0: OSError: .*no pages") as caught:
        SyncedMemory(4, device=Odd())

    assert isinstance(caught.value.__cause__, OSError)


def test_the_list_of_devices_is_complete_and_says_what_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "cuda")
    reports = probe()

    assert ["cpu", *DEVICE_NAMES] == [report.name for report in reports]
    assert {"cpu": True, "simulated": True, "cuda": True}.items() <= {r.name: r.available for r in reports}.items()
    assert {"cpu": "host", "simulated": "device"}.items() <= {r.name: r.arithmetic for r in reports}.items()
    assert reports[-1].detail == "installed"


class Wrapper:
    """A user's allocator around one of ours, without our base class."""

    def __init__(self, inner: Any, without: str = "") -> None:
        self.inner = inner
        self.without = without

    def __getattr__(self, name: str) -> Any:
        if name == self.without:
            raise AttributeError(name)
        return getattr(self.inner, name)


def test_what_a_memory_gets_for_its_arguments() -> None:
    """Names and None are looked up; allocators and wrappers of them are taken as they are."""
    device, host = SimulatedDeviceAllocator(), CPUDeviceAllocator()

    assert (None, named_device("simulated")) == (resolve_device(None), resolve_device("simulated"))
    assert cpu_allocator() is cpu_allocator() is resolve_host(None)
    devices_and_hosts: tuple[list[object], list[object]] = (
        [device, Wrapper(device)],
        [host, Wrapper(host), device.pinned_host()],
    )
    resolvers: tuple[Callable[[object], object], ...] = (resolve_device, resolve_host)
    for resolve, allocators in zip(resolvers, devices_and_hosts, strict=True):
        for allocator in allocators:
            assert resolve(allocator) is allocator
    here: Any = Wrapper(host)
    there: Any = Wrapper(device)
    with SyncedMemory(4, device=there, host=here, pinned=here) as memory:
        memory.mutable_cpu_data()[:] = 7
        assert [7] * 4 == memory.gpu_data().get().tolist()


LACKING: dict[str, tuple[str, ...]] = {
    "device": ("allocate", "memcpy", "record", "pinned_host", "empty", "check_stream"),
    "host": ("allocate", "release", "memset_zero", "adopt", "overlaps"),
}


WRONG_ALLOCATORS: list[tuple[str, Any]] = [
    *(("device", Wrapper(SimulatedDeviceAllocator(), name)) for name in LACKING["device"]),
    *(("host", Wrapper(CPUDeviceAllocator(), name)) for name in LACKING["host"]),
    *((side, other) for side in LACKING for other in (7, object(), SimulatedDeviceAllocator, b"cuda")),
    ("device", CPUDeviceAllocator()),
    ("host", SimulatedDeviceAllocator()),
]
"""What lacks a call, what is no allocator, as a class is none, and memory of the other side."""


@pytest.mark.parametrize(("side", "wrong"), WRONG_ALLOCATORS)
def test_what_is_no_allocator_of_a_side_is_refused(side: str, wrong: Any) -> None:
    """It is refused when the memory is made, not when a missing call is needed."""
    resolve: Callable[[object], object] = resolve_device if side == "device" else resolve_host
    with pytest.raises(InvalidArgumentError) as refused:
        resolve(wrong)

    assert (side, wrong) == (refused.value.argument, refused.value.value)


@pytest.mark.parametrize("mode", Mode)
def test_host_memory_comes_from_where_the_caller_says(mode: Mode) -> None:
    """In GPU mode it comes from `pinned`; in CPU mode, or without a device, from `host`; never from the device."""
    device = SimulatedDeviceAllocator()
    host, pinned = StatisticsAllocator(CPUDeviceAllocator()), StatisticsAllocator(CPUDeviceAllocator())
    with using_mode(mode):
        SyncedMemory(24, host=host, pinned=pinned, device=device).cpu_data()
        SyncedMemory(8, host=host, device=None).cpu_data()
        SyncedMemory(8, host=host, pinned=pinned, device="cpu").cpu_data()

    expected = (16, 24) if mode is Mode.GPU else (40, 0)
    assert expected == (host.statistics.total_bytes, pinned.statistics.total_bytes)


def test_a_host_that_would_not_be_used_is_refused() -> None:
    """A `host` needs a `pinned` beside it, or GPU mode would not use it; the shared allocator needs none."""
    device = SimulatedDeviceAllocator()
    host = StatisticsAllocator(CPUDeviceAllocator())
    with pytest.raises(
        InvalidArgumentError, match=r"^pinned must be an allocator, because .* from simulated:0 instead"
    ):
        SyncedMemory(24, host=host, device=device)
    with pytest.raises(InvalidArgumentError, match=r"^pinned must be an allocator, or None, for the host side: "):
        SyncedMemory(24, pinned=device, device=device)
    for memory in (
        SyncedMemory(24, host=host, pinned=host, device=device),
        SyncedMemory(24, host=host, pinned=device.pinned_host(), device=device),
        SyncedMemory(24, host=cpu_allocator(), device=device),
    ):
        memory.cpu_data()

    assert 24 == host.statistics.total_bytes


def test_where_there_is_no_page_locked_memory_host_memory_comes_from_the_host() -> None:
    """OpenCL devices are like this: they name the shared host allocator for page-locked memory."""

    class Plain(SimulatedDeviceAllocator):
        def pinned_host(self) -> Any:
            return cpu_allocator()

    host = StatisticsAllocator(CPUDeviceAllocator())
    SyncedMemory(24, host=host, device=Plain()).cpu_data()

    assert 24 == host.statistics.total_bytes


def test_a_sibling_is_on_the_next_device_if_there_is_one() -> None:
    found = sibling(SimulatedDeviceAllocator(2))

    assert isinstance(found, SimulatedDeviceAllocator)
    assert found.ordinal == 3
    assert sibling(found) is None


@pytest.mark.parametrize("name", ["cuda", "opencl", "simulated"])
def test_a_name_is_always_the_same_allocator(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """There is one allocator for each device, however it is asked for."""
    made: list[int] = []

    def make(ordinal: int) -> tuple[SimulatedDeviceAllocator, str]:
        made.append(ordinal)
        return SimulatedDeviceAllocator(ordinal), "installed"

    makers = registry._MAKERS  # pyright: ignore[reportPrivateUsage] -- the table that names are looked up in
    monkeypatch.setitem(makers, name, make)
    first, again, of_memory = named_device(name), named_device(f"{name}:0"), SyncedMemory(4, device=name).device
    second = named_device(f"{name}:1")

    assert first is again is of_memory
    assert second is not first
    assert name != "simulated" or sibling(SimulatedDeviceAllocator()) is second
    assert [0, 1] == made


def test_a_device_that_many_threads_ask_for_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """KuiperLLama's factory may make two."""
    found: list[Any] = []
    start = threading.Barrier(8)

    def make(ordinal: int) -> tuple[SimulatedDeviceAllocator, str]:
        threading.Event().wait(0.01)
        return SimulatedDeviceAllocator(ordinal), "slow"

    def ask() -> None:
        start.wait(10)
        found.append(named_device("simulated:2"))

    makers = registry._MAKERS  # pyright: ignore[reportPrivateUsage] -- the table that names are looked up in
    monkeypatch.setitem(makers, "simulated", make)
    run_in_threads(*[ask] * 8)

    assert (8, 1) == (len(found), len(set(found)))
