"""Host/device mirrored memory as Caffe defined it, declared once and checked against an independent spec.

General layout: ``syncedmem.model`` declares the head machine and computes everything from it,
``syncedmem.runtime`` binds it to real memory, ``syncedmem.spec`` checks any implementation against
requirements that read neither.  This front door loads none of them until a name is used.
"""

from __future__ import annotations

from importlib import import_module
from os.path import dirname, isdir
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Mode, SyncedHead, SyncedMemoryError, current_mode, set_mode, using_mode
    from .runtime import (
        CPUDeviceAllocator,
        DeviceAllocator,
        SimulatedDeviceAllocator,
        SyncedMemory,
    )
    from .spec import check_conformance

__version__ = "0.1.0"

__all__ = [
    "CPUDeviceAllocator",
    "DeviceAllocator",
    "Mode",
    "SimulatedDeviceAllocator",
    "SyncedHead",
    "SyncedMemory",
    "SyncedMemoryError",
    "__version__",
    "check_conformance",
    "current_mode",
    "set_mode",
    "using_mode",
]

_ROOMS = {
    "CPUDeviceAllocator": "runtime",
    "DeviceAllocator": "runtime",
    "Mode": "model",
    "SimulatedDeviceAllocator": "runtime",
    "SyncedHead": "model",
    "SyncedMemory": "runtime",
    "SyncedMemoryError": "model",
    "check_conformance": "spec",
    "current_mode": "model",
    "set_mode": "model",
    "using_mode": "model",
}


def _require_rooms(package: str) -> None:
    """Stop where a checkout without links has text files in place of the rooms."""
    for room in ("model", "runtime", "spec"):
        folder = f"{package}/{room}"
        if not isdir(folder):  # noqa: PTH112 -- pathlib takes longer to import than all the rest here
            raise ImportError(
                f"{folder} should be a link to the folder {room} at the top of the checkout, which was made "
                "without links: run 'git config core.symlinks true' and 'git checkout -- src/syncedmem'"
            )


_require_rooms(dirname(__file__))  # noqa: PTH120 -- as above


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
