"""Devices by name: which there are here, and why not."""

from __future__ import annotations

import sys
import threading
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from syncedmem.model import DeviceError, InvalidArgumentError, NoDeviceError
from syncedmem.runtime import (
    CPUDeviceAllocator,
    CPUDeviceAllocatorFactory,
    CUDADeviceAllocatorFactory,
    DeviceType,
    OpenCLDeviceAllocatorFactory,
    SimulatedDeviceAllocator,
    SimulatedDeviceAllocatorFactory,
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
    check_wish,
    report_of,
    resolve_device,
    resolve_host,
    sibling,
)

OWNERS = {"cupy": "cuda", "pyopencl": "opencl"}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered of other tests, nothing that these find out is kept, and nobody wishes for a device."""
    for name in ("_made", "_automatic"):
        monkeypatch.setattr(registry, name, cache(getattr(registry, name).__wrapped__))
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def replace(monkeypatch: pytest.MonkeyPatch, library: str, stand_in: Any) -> None:
    """Put something in the place of a library, or take it away with None, and forget who imported it."""
    owner = f"syncedmem.runtime.devices.{OWNERS[library]}"
    monkeypatch.setattr(devices, OWNERS[library], None, raising=False)
    # Set first, so that what a test imports is removed again.
    monkeypatch.setitem(sys.modules, owner, devices)
    monkeypatch.delitem(sys.modules, owner)
    monkeypatch.setitem(sys.modules, library, stand_in)
    monkeypatch.setitem(sys.modules, f"{library}.array", stand_in)


def cupy_with(count: int | None, compute_mode: int = 0) -> Any:
    """A CuPy that finds some GPUs of a compute mode, or no driver."""

    class CUDARuntimeError(RuntimeError):
        """As CuPy's."""

    def get_device_count() -> int:
        if count is None:
            raise CUDARuntimeError("cudaErrorInsufficientDriver: too old")
        return count

    def properties(_: int) -> dict[str, Any]:
        return {"name": b"Toy GPU", "totalGlobalMem": 3 << 30}

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
    """A PyOpenCL that finds some platforms, or fails to look for them."""

    class Error(Exception):
        """As PyOpenCL's."""

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
    """Asked for by a memory, by name, and by the list of devices; and again the second time."""
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


@pytest.mark.parametrize("missing", ["no CuPy", "no driver", "no GPU"])
def test_without_cuda_auto_is_simulated(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library, stand_in, _ = WITHOUT[missing]
    replace(monkeypatch, library, stand_in)

    assert named_device("auto") is named_device("simulated")


def test_with_a_gpu_auto_is_cuda_and_says_which_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU is the driver's; another one there is not."""
    replace(monkeypatch, "cupy", cupy_with(1))
    found = named_device("auto")
    report = next(report for report in probe() if report.name == "cuda")

    assert (DeviceType.CUDA, "cuda:0") == (found.device_type, found.name)
    assert (True, "Toy GPU (3072 MiB, CuPy 99.9)") == (report.available, report.detail)
    assert "cuda" == automatic_name()
    assert sibling(found) is None


@pytest.mark.parametrize("mode", ["default", "exclusive", "prohibited", "exclusive process"])
def test_auto_leaves_a_gpu_alone_whose_compute_mode_is_prohibited(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """By name it is there all the same, and its numbers are CUDA's, in this order."""
    modes = ["default", "exclusive", "prohibited", "exclusive process"]
    replace(monkeypatch, "cupy", cupy_with(1, modes.index(mode)))

    assert named_device("auto") is named_device("simulated" if mode == "prohibited" else "cuda")
    assert DeviceType.CUDA is named_device("cuda").device_type


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> SimulatedDeviceAllocator:
    """Have a device under a name."""
    allocator = SimulatedDeviceAllocator(1)
    makers = registry._MAKERS  # pyright: ignore[reportPrivateUsage] -- the table that names are looked up in
    monkeypatch.setitem(makers, name, lambda _: (allocator, "planted"))
    return allocator


def test_auto_is_what_goes_by_the_name_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = plant(monkeypatch, "cuda")

    assert named_device("auto") is planted
    assert SyncedMemory(4).device is planted


def test_the_environment_decides_about_auto_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name goes before it; a change is noticed; no wish, or for auto, is none."""
    cuda, opencl = plant(monkeypatch, "cuda"), plant(monkeypatch, "opencl")
    found: list[Any] = []
    for wish in ("opencl", "simulated", "auto", ""):
        monkeypatch.setenv(ENVIRONMENT, wish)
        found.append(named_device("auto"))
        assert named_device("opencl") is opencl

    assert [opencl, named_device("simulated"), cuda, cuda] == found


def test_a_wish_that_cannot_be_granted_is_no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable, then says what is missing."""
    replace(monkeypatch, "cupy", None)
    monkeypatch.setenv(ENVIRONMENT, "cuda")
    with pytest.raises(NoDeviceError, match=r"^SYNCEDMEM_DEVICE=cuda: CUDA needs CuPy"):
        named_device("auto")
    monkeypatch.setenv(ENVIRONMENT, "gpu")
    with pytest.raises(
        NoDeviceError,
        match=r"^SYNCEDMEM_DEVICE=gpu: unknown device 'gpu'; there are auto, simulated, opencl, cuda, and cpu for no ",
    ):
        SyncedMemory(4)


def test_a_wish_for_the_host_alone_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    """``auto`` is then None, which a name cannot be; other names are what they were."""
    monkeypatch.setenv(ENVIRONMENT, "cpu")
    with SyncedMemory(4) as memory, pytest.raises(NoDeviceError):
        memory.gpu_data()
    with pytest.raises(NoDeviceError, match=r"^SYNCEDMEM_DEVICE=cpu: there is no device to name"):
        named_device("auto")

    assert (None, "cpu") == (resolve_device("auto"), automatic_name())
    assert resolve_device("simulated") is named_device("simulated")


@pytest.mark.parametrize("wish", [None, "", "auto", "cpu", *DEVICE_NAMES])
def test_a_wish_for_what_has_a_name_is_none_to_refuse(monkeypatch: pytest.MonkeyPatch, wish: str | None) -> None:
    """Whether it is here or not."""
    replace(monkeypatch, "cupy", None)
    if wish is not None:
        monkeypatch.setenv(ENVIRONMENT, wish)
    check_wish()
    monkeypatch.setenv(ENVIRONMENT, "gpu")
    with pytest.raises(NoDeviceError, match=r"^SYNCEDMEM_DEVICE=gpu: unknown device 'gpu'"):
        check_wish()


@pytest.mark.parametrize("compiles", [True, False])
def test_without_nvrtc_cuda_has_no_arithmetic(monkeypatch: pytest.MonkeyPatch, compiles: bool) -> None:
    """And its report says so: nothing computes there for it."""
    toy = cupy_with(1)
    if compiles:
        toy.cuda.nvrtc = SimpleNamespace(getVersion=lambda: (12, 9))
    replace(monkeypatch, "cupy", toy)
    report = report_of("cuda")

    assert (compiles, "device" if compiles else None) == (report.compiler, report.arithmetic)
    assert compiles or report.limits.startswith("memory only: its compiler fails (")
    assert compiles is not report.limits.endswith("); no arithmetic")


def test_the_report_says_what_computes() -> None:
    assert {"cpu": "host", "simulated": "device"}.items() <= {it.name: it.arithmetic for it in probe()}.items()


@pytest.mark.parametrize("name", ["", "cpu", "CUDA", "auto "])
def test_an_unknown_name_is_no_device(name: str) -> None:
    with pytest.raises(NoDeviceError, match=f"unknown device '{name}'; there are auto, {', '.join(DEVICE_NAMES)}, and"):
        named_device(name)


@pytest.mark.parametrize("name", [[], None, 0, b"cuda"])
def test_what_is_no_name_is_refused(name: Any) -> None:
    """Also what cannot be looked up at all."""
    with pytest.raises(InvalidArgumentError, match="name must be the name of a device, got ") as caught:
        named_device(name)

    assert caught.value.value is name


def test_a_device_without_an_allocator_of_pinned_memory_is_an_error_of_the_family() -> None:
    """Found when the memory is made; what the device raised is chained."""

    class Odd(SimulatedDeviceAllocator):
        def pinned_host(self) -> Any:
            raise OSError(12, "no pages")

    with pytest.raises(DeviceError, match=r"pinned_host failed on simulated:0: OSError: .*no pages") as caught:
        SyncedMemory(4, device=Odd())

    assert isinstance(caught.value.__cause__, OSError)


def test_a_name_is_one_allocator_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a thread that asks while it is being made."""
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(named_device("cuda")))

    def make(_: int) -> tuple[SimulatedDeviceAllocator, str]:
        if not other.ident:
            other.start()
            other.join(0.2)  # it waits for us, so this runs out
        return SimulatedDeviceAllocator(1), "planted"

    makers = registry._MAKERS  # pyright: ignore[reportPrivateUsage] -- the table that names are looked up in
    monkeypatch.setitem(makers, "cuda", make)
    found.append(named_device("cuda"))
    other.join(10)

    assert (2, 1) == (len(found), len(set(found)))


def test_the_list_of_devices_is_complete_and_says_what_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "cuda")
    reports = probe()

    assert ["cpu", *DEVICE_NAMES] == [report.name for report in reports]
    assert {"cpu": True, "simulated": True, "cuda": True}.items() <= {r.name: r.available for r in reports}.items()
    assert reports[-1].detail == "planted"


class Wrapper:
    """Somebody's allocator around one of ours, without our base class."""

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
    assert cpu_allocator() is resolve_host(None)
    devices_and_hosts: tuple[list[object], list[object]] = (
        [device, Wrapper(device)],
        [host, Wrapper(host), device.pinned_host()],
    )
    for resolve, allocators in zip((resolve_device, resolve_host), devices_and_hosts, strict=True):
        for allocator in allocators:
            assert resolve(allocator) is allocator
    with SyncedMemory(4, device=Wrapper(device), host=Wrapper(host)) as memory:  # type: ignore[arg-type] # wrappers
        memory.mutable_cpu_data()[:] = 7
        assert [7] * 4 == memory.gpu_data().get().tolist()


@pytest.mark.parametrize("name", ["allocate", "memcpy", "record", "pinned_host", "empty", "check_stream"])
def test_what_lacks_a_call_is_no_device(name: str) -> None:
    """Found when the memory is made, not when the call is needed."""
    with pytest.raises(InvalidArgumentError, match="device must be an allocator, a device name, or None, got"):
        resolve_device(Wrapper(SimulatedDeviceAllocator(), name))


@pytest.mark.parametrize("name", ["allocate", "release", "memset_zero", "adopt", "overlaps"])
def test_what_lacks_a_call_is_no_host(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="host must be an allocator, or None, got"):
        resolve_host(Wrapper(CPUDeviceAllocator(), name))


@pytest.mark.parametrize("other", [7, object(), SimulatedDeviceAllocator, b"cuda"])
def test_what_is_no_allocator_is_refused(other: Any) -> None:
    """A class of allocators is none."""
    for resolve in (resolve_device, resolve_host):
        with pytest.raises(InvalidArgumentError, match="must be an allocator"):
            resolve(other)


def test_host_memory_is_no_device_and_device_memory_no_host() -> None:
    with pytest.raises(InvalidArgumentError, match=r"device must be .*, for the device side"):
        resolve_device(CPUDeviceAllocator())
    with pytest.raises(InvalidArgumentError, match=r"host must be .*, for the host side"):
        resolve_host(SimulatedDeviceAllocator())


def test_a_sibling_is_on_the_next_device_if_there_is_one() -> None:
    found = sibling(SimulatedDeviceAllocator(2))

    assert isinstance(found, SimulatedDeviceAllocator)
    assert found.ordinal == 3
    assert sibling(found) is None


FACTORIES: dict[str, Any] = {
    "cuda": CUDADeviceAllocatorFactory,
    "opencl": OpenCLDeviceAllocatorFactory,
    "simulated": SimulatedDeviceAllocatorFactory,
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_and_a_name_are_one_allocator(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """One for each device, whichever is asked first."""
    made: list[int] = []

    def make(ordinal: int) -> tuple[SimulatedDeviceAllocator, str]:
        made.append(ordinal)
        return SimulatedDeviceAllocator(ordinal), "planted"

    makers = registry._MAKERS  # pyright: ignore[reportPrivateUsage] -- the table that names are looked up in
    monkeypatch.setitem(makers, name, make)
    factory = FACTORIES[name]
    found = [factory.get_instance(), factory.get_instance(0), named_device(name), SyncedMemory(4, device=name).device]
    other = [factory.get_instance(1), factory.get_instance(ordinal=1), sibling(SimulatedDeviceAllocator())]

    assert ({found[0]}, {other[0]}) == (set(found), set(other[:2]))
    assert ([0, 1], name != "simulated" or other[2] is other[1]) == (made, True)


def test_the_factory_of_host_memory_gives_what_everything_shares() -> None:
    assert CPUDeviceAllocatorFactory.get_instance() is cpu_allocator() is resolve_host(None)


@pytest.mark.parametrize(("ordinal", "error"), [(9, NoDeviceError), (-1, NoDeviceError), ("0", InvalidArgumentError)])
def test_a_factory_makes_only_devices_that_are_here(ordinal: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"there is no simulated device|ordinal must be the number of a device"):
        SimulatedDeviceAllocatorFactory.get_instance(ordinal)


def test_a_factory_asked_by_many_threads_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """KuiperLLama's may make two."""
    found: list[Any] = []
    start = threading.Barrier(8)

    def make(ordinal: int) -> tuple[SimulatedDeviceAllocator, str]:
        threading.Event().wait(0.01)
        return SimulatedDeviceAllocator(ordinal), "slow"

    def ask() -> None:
        start.wait(10)
        found.append(SimulatedDeviceAllocatorFactory.get_instance(2))

    makers = registry._MAKERS  # pyright: ignore[reportPrivateUsage] -- the table that names are looked up in
    monkeypatch.setitem(makers, "simulated", make)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert (8, 1) == (len(found), len(set(found)))
