"""Memory of other libraries for us, and ours for them: one module for each library or convention.

Every module here has the same two functions.  ``from_resource(theirs)`` makes a `DeviceAllocator` from a source of
memory of the library.  ``as_resource(allocator)`` makes a source of memory for the library from a `DeviceAllocator`.

A module is imported when its name is first used, and imports its library.  If the library is not installed, this raises
a `NoDeviceError` that says how to install it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from . import cuda_core, cupy, malloc, pyopencl, rmm, torch

__all__ = ["cuda_core", "cupy", "malloc", "pyopencl", "rmm", "torch"]


def _named(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


if not TYPE_CHECKING:  # as in syncedmem/__init__.py
    __getattr__ = _named


def __dir__() -> list[str]:
    return sorted(__all__)
