"""Real allocators as targets of the fuzzer: the C libraries, the pools of other packages, and ours."""

from __future__ import annotations

import ctypes.util
import importlib
import os
import runpy
import tempfile
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem import (
    CPUDeviceAllocator,
    GuardingAllocator,
    LimitingAllocator,
    NoDeviceError,
    PoolAllocator,
    StatisticsAllocator,
    TrackingAllocator,
    named_device,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BACKENDS", "Backend"]

_STEPS = 20_000
_EXAMPLE = Path(__file__).parents[2] / "examples" / "rmm_pool.py"
_OURS = {"zero_size": "null", "foreign_free": "detect", "double_free": "detect"}


@dataclass(frozen=True)
class Backend:
    """An allocator that has to pass the fuzzer.

    Attributes
    ----------
    name : str
        Its name in the table.
    target : callable
        Returns the target for the fuzzer, or skips the test with the reason.
    promises : dict of str to str
    threads, steps : int
    known : dict of str to str
        Requirements that it is known to break, and how.
    """

    name: str
    target: Callable[[], object]
    promises: dict[str, str] = field(default_factory=dict[str, str])
    threads: int = 1
    steps: int = _STEPS
    known: dict[str, str] = field(default_factory=dict[str, str])


def _library(name: str, functions: str = "*") -> Callable[[], str]:
    """A shared library of the system: all of its functions that the fuzzer knows, as the guide names them."""

    def target() -> str:
        found = ctypes.util.find_library(name)
        if found is None:
            pytest.skip(f"lib{name} is not installed: make system-deps")
        return f"{found}:{functions}"

    return target


def _umf() -> str:
    """The example over libumf, which pip puts beside Python, with its headers."""
    try:
        files = metadata.files("umf") or []
    except metadata.PackageNotFoundError:
        pytest.skip("libumf is not installed: pip install umf")
    places = {
        file.name: Path(str(file.locate())).resolve().parent for file in files if file.name in ("umf.h", "libumf.so.1")
    }
    source = _EXAMPLE.with_name("umf_pool.c")
    made = f"{tempfile.gettempdir()}/libumf_pool-{os.getpid()}.so"
    library = places["libumf.so.1"]
    command = f"cc -shared -fPIC -I{places['umf.h']} {source} -o {made} {library}/libumf.so.1 -Wl,-rpath,{library}"
    return f"{made}:mine_*?build={command}"


# --- RMM: its pools run over a Python callback, without a GPU


def _rmm(make: Callable[[Any, Any], object]) -> Callable[[], object]:
    def target() -> object:
        rmm: Any = pytest.importorskip("rmm", reason="RMM is not installed: pip install rmm-cu12")
        rmm.set_logging_level(rmm.level_enum.off)  # it tells of every refusal, and there are thousands
        upstream = _example()["UPSTREAM"]
        return lambda: make(rmm.mr, upstream)

    return target


@cache
def _example() -> dict[str, Any]:
    """The names of the example, which must stay alive: RMM's pools call its functions even while both are collected."""
    return runpy.run_path(str(_EXAMPLE))


def _rmm_pool(mr: Any, upstream: Any) -> Any:
    return mr.PoolMemoryResource(upstream, initial_pool_size=1 << 24, maximum_pool_size=1 << 28)


_RMM_POOLS: dict[str, Callable[[Any, Any], object]] = {
    "pool": _rmm_pool,
    "binning": lambda mr, up: mr.BinningMemoryResource(_rmm_pool(mr, up), 8, 16),
    "fixed-size": lambda mr, up: mr.FixedSizeMemoryResource(up, block_size=1 << 16, blocks_to_preallocate=64),
    "limiting": lambda mr, up: mr.LimitingResourceAdaptor(_rmm_pool(mr, up), 1 << 24),
    "statistics": lambda mr, up: mr.StatisticsResourceAdaptor(_rmm_pool(mr, up)),
    "tracking": lambda mr, up: mr.TrackingResourceAdaptor(_rmm_pool(mr, up)),
}


# --- PyOpenCL and cuda.core


def _opencl() -> Any:
    try:
        return named_device("opencl")
    except NoDeviceError as error:
        pytest.skip(f"no OpenCL here: {error}")


def _opencl_pool() -> object:
    queue = _opencl().queue
    tools: Any = importlib.import_module("pyopencl.tools")
    return tools.MemoryPool(tools.ImmediateAllocator(queue))


def _cuda_core() -> object:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed: pip install cuda-core")
    from syncedmem.interop import cuda_core

    return lambda: cuda_core.as_resource(CPUDeviceAllocator())


_RMM = {"alignment": "256"}
_ROUNDED = {"A06-out-of-memory": "pools round sizes up to 256 bytes, and the 255 largest become 0"}
_UNALIGNED = {
    "A03-aligned": "mi_aligned_alloc(256, 256) gives an address that is no multiple of 256; so with 512 and 1,024, and "
    "mi_posix_memalign does it too"
}
_WRONG_CLASS = {
    "A03-aligned": "tc_realloc makes a block of 576 bytes one of 512 in place; tc_free_sized(block, 512) files it with "
    "those of 512 bytes, and tc_posix_memalign with 512 gives it out, which is no multiple of 512"
}
# PyOpenCL refuses a size beyond all memory as an invalid size, not as out of memory.
_POOL_OF_PYOPENCL = {"out_of_memory": "MemoryError,LogicError"}

_FORKED = {"fork_safe": "yes"}

BACKENDS = (
    Backend("glibc", _library("c"), {"alignment": "16", **_FORKED}, threads=2),
    Backend("jemalloc", _library("jemalloc"), {"alignment": "8", **_FORKED}, threads=2),
    Backend("mimalloc", _library("mimalloc", "mi_*"), {"alignment": "8", **_FORKED}, threads=2, known=_UNALIGNED),
    Backend(
        "tcmalloc", _library("tcmalloc_minimal", "tc_*"), {"alignment": "8", **_FORKED}, threads=2, known=_WRONG_CLASS
    ),
    Backend("UMF disjoint pool", _umf, threads=2),
    Backend("RMM callback", _rmm(lambda _, upstream: upstream), _RMM),
    *(Backend(f"RMM {name}", _rmm(make), _RMM, known=_ROUNDED) for name, make in _RMM_POOLS.items()),
    Backend("PyOpenCL MemoryPool", _opencl_pool, _POOL_OF_PYOPENCL, steps=1_000),
    Backend("cuda.core resource over ours", _cuda_core),
    Backend("CPUDeviceAllocator", lambda: "syncedmem:CPUDeviceAllocator", {**_OURS, "alignment": "64"}),
    Backend("SimulatedDeviceAllocator", lambda: "syncedmem:SimulatedDeviceAllocator", _OURS),
    Backend("OpenCLDeviceAllocator", _opencl, _OURS, steps=1_000),
    Backend(
        "PoolAllocator",
        lambda: lambda: PoolAllocator(CPUDeviceAllocator()),
        {**_OURS, "alignment": "64", "thread_safe": "yes"},
        threads=4,
    ),
    Backend("TrackingAllocator", lambda: lambda: TrackingAllocator(CPUDeviceAllocator()), _OURS),
    Backend("StatisticsAllocator", lambda: lambda: StatisticsAllocator(CPUDeviceAllocator()), _OURS),
    Backend("LimitingAllocator", lambda: lambda: LimitingAllocator(CPUDeviceAllocator(), 1 << 24), _OURS),
    Backend("GuardingAllocator", lambda: lambda: GuardingAllocator(CPUDeviceAllocator()), _OURS),
)
"""All of them; every one has to pass."""
