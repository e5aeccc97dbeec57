"""What this version no longer has, and what to use in its place; the next version has no such table.

A key is a public name, ``--format NAME``, or a command with its option, as it is typed.
"""

from __future__ import annotations

from typing import Final

__all__ = ["GONE", "gone"]

GONE: Final[dict[str, str]] = {
    "interop.numba": "use interop.cuda_core, whose resources Numba takes, or interop.cupy",
    "interop.warp": "use interop.cupy or interop.rmm",
    "interop.numpy": "use Blob, or an array of CPUDeviceAllocator().empty(size)",
    "LoggingAllocator": "use TrackingAllocator or StatisticsAllocator, or log in an Adaptor of your own",
    "CPUDeviceAllocatorFactory": "use CPUDeviceAllocator()",
    "CUDADeviceAllocatorFactory": "use named_device('cuda:0')",
    "OpenCLDeviceAllocatorFactory": "use named_device('opencl:0')",
    "SimulatedDeviceAllocatorFactory": "use named_device('simulated:0')",
    "NotInitializedError": "call super().__init__() in the __init__ of your subclass; nothing checks it any more",
    "--format csv": "use --format json",
    "--format itf": "use --format text --trace CALLS",
    "--format matrix": "use --format markdown --detail configurations",
    "--format page": "use --insert, which writes diagrams and tables into a page of yours",
    "--format rst": "use --format markdown, or the directive syncedmem-table of Sphinx",
    "--format schema": "use the file syncedmem/model/exports/machine.schema.json of the package",
    "--format scxml": "use --format xstate",
    "--format tla-config": "use --format tla -o X.tla, which writes X.cfg beside it",
    "explore --port": "use explore -o PAGE.html and open the file; there is no server",
    "explore --browser": "use explore -o PAGE.html and open the file; there is no server",
    "explore --no-browser": "use explore -o PAGE.html and open the file; there is no server",
    "MissingProgramError": "catch MissingPackageError, because only Python packages are needed now",
    "vectors --archive": "write the files with `syncedmem vectors --out FOLDER`, and pack them with tar",
    "fuzz --log": "take the requests of the log in a test of your own, with `driver_of` of `syncedmem.spec.fuzz`",
    "fuzz --corpus": "keep the replay files of findings, and repeat them with `syncedmem replay`",
    "fuzz --sanitizer": "build the library with -fsanitize=address, and fuzz it with LD_PRELOAD=libasan.so",
    "conform --first": "leave it out: the first violation ends the test; --keep-going goes on",
    "conform --memory": "leave it out: a port has 4,096 MiB of private memory",
    "learn --states": "use --extra, the number of states beyond those that are learned",
    "verify --processes": "leave it out: as many checks run at a time as there are processors",
}
"""What to do instead, as a sentence that begins with a verb."""


def gone(key: str) -> str:
    """What is said of something that is gone, and empty if it is not.

    Examples
    --------
    >>> gone("verify")
    ''
    """
    return f"{key} is gone: {GONE[key]}" if key in GONE else ""
