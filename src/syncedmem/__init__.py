"""Host/device mirrored memory as Caffe defined it, declared once and checked against an independent spec.

General layout: ``syncedmem.model`` declares the head machine and computes everything from it,
``syncedmem.runtime`` binds it to real memory, ``syncedmem.spec`` checks any implementation against
requirements that read neither.  The package loads none of them until a name is used.

PYTEST_DONT_REWRITE: the package has a plugin of pytest, and may be imported before pytest is, which would warn of that.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from os.path import dirname, isdir
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # isort: off
    # Made by `make generated`.
    from .runtime import Blob as Blob
    from .runtime import Buffer as Buffer
    from .runtime import CPUDeviceAllocator as CPUDeviceAllocator
    from .runtime.devices.cuda import CUDADeviceAllocator as CUDADeviceAllocator
    from .runtime import DeviceAllocator as DeviceAllocator
    from .runtime import DeviceType as DeviceType
    from .runtime import MemcpyKind as MemcpyKind
    from .model import Mode as Mode
    from .runtime.devices.opencl import OpenCLDeviceAllocator as OpenCLDeviceAllocator
    from .runtime import SimulatedArray as SimulatedArray
    from .runtime import SimulatedDeviceAllocator as SimulatedDeviceAllocator
    from .runtime import SimulatedDeviceError as SimulatedDeviceError
    from .spec import Subject as Subject
    from .model import SyncedHead as SyncedHead
    from .runtime import SyncedMemory as SyncedMemory
    from .spec import check_blobs as check_blobs
    from .spec import check_conformance as check_conformance
    from .runtime import copies as copies
    from .model import current_mode as current_mode
    from .runtime import load_binaryproto as load_binaryproto
    from .runtime import load_caffemodel as load_caffemodel
    from .runtime import load_npy as load_npy
    from .runtime import load_npz as load_npz
    from .runtime import named_device as named_device
    from .runtime import no_copies as no_copies
    from .runtime import save_binaryproto as save_binaryproto
    from .runtime import save_npy as save_npy
    from .runtime import save_npz as save_npz
    from .model import set_mode as set_mode
    from .model import using_mode as using_mode
    from .model.errors import *  # noqa: F403 -- as _WHOLE says
    from .runtime.allocators import *  # noqa: F403 -- as _WHOLE says
    # isort: on

__version__ = "0.1.0"

_ROOMS = {
    "Blob": "runtime",
    "Buffer": "runtime",
    "CPUDeviceAllocator": "runtime",
    "CUDADeviceAllocator": "runtime.devices.cuda",
    "DeviceAllocator": "runtime",
    "DeviceType": "runtime",
    "MemcpyKind": "runtime",
    "Mode": "model",
    "OpenCLDeviceAllocator": "runtime.devices.opencl",
    "SimulatedArray": "runtime",
    "SimulatedDeviceAllocator": "runtime",
    "SimulatedDeviceError": "runtime",
    "Subject": "spec",
    "SyncedHead": "model",
    "SyncedMemory": "runtime",
    "check_blobs": "spec",
    "check_conformance": "spec",
    "current_mode": "model",
    "copies": "runtime",
    "load_binaryproto": "runtime",
    "load_caffemodel": "runtime",
    "load_npy": "runtime",
    "load_npz": "runtime",
    "named_device": "runtime",
    "no_copies": "runtime",
    "save_binaryproto": "runtime",
    "save_npy": "runtime",
    "save_npz": "runtime",
    "set_mode": "model",
    "using_mode": "model",
}
"""Where each public name comes from, but for those that a room lists as a whole."""

_LIBRARIES = {
    "CUDADeviceAllocator": "cupy",
    "OpenCLDeviceAllocator": "pyopencl",
    **dict.fromkeys(("Subject", "check_blobs", "check_conformance"), "hypothesis"),
}
"""Names that need a library.  Without it they are not listed, and asking for one says what is missing."""

_broken: set[str] = set()
"""Names whose library is there, and cannot be imported."""

_WHOLE = ("model.errors", "runtime.allocators")
"""Modules whose names are all public here: every error, and every adaptor."""

_MODULES = ("interop", "model", "runtime", "spec")
"""Modules that are public as such."""


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


def _public() -> dict[str, str]:
    """Where each public name comes from; this loads the rooms that list theirs as a whole."""
    whole = {name: module for module in _WHOLE for name in import_module(f".{module}", __name__).__all__}
    missing = {name for name, library in _LIBRARIES.items() if not _is_there(library)} | _broken
    return {name: home for name, home in (_ROOMS | whole).items() if name not in missing}


def _is_there(library: str) -> bool:
    """Whether a library may be installed; only an import shows whether it works, which `dir` does not wait for."""
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # of a module that somebody has put there without one
        return True


def _listed() -> list[str]:
    """The names that a star imports: all that can be had, which is tried."""
    _broken.clear()
    for name in _LIBRARIES.keys() & _public().keys():
        try:
            _named(name)
        except Exception:  # noqa: BLE001 -- a library may raise anything while it is imported
            _broken.add(name)
    return ["__version__", *_public()]


def _named(name: str) -> object:
    """A public name, from its room."""
    if name == "__all__":
        return _listed()
    # A lower-case name may be a module of ours that is being imported, for which no room has to be loaded.
    homes = _public() if name[:1].isupper() and name not in _ROOMS else _ROOMS
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{homes[name]}", __name__), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a checker that saw it would take every name for one of ours
    __getattr__ = _named


def __dir__() -> list[str]:
    return sorted({"__version__", *_MODULES, *_public()})
