"""Allocators of other libraries as ours, and ours as theirs: ``from syncedmem.interop import rmm``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.runtime import interop

if TYPE_CHECKING:
    from types import ModuleType

    from syncedmem.runtime.interop import cuda_core, cupy, malloc, pyopencl, rmm, torch

__all__ = ["cuda_core", "cupy", "malloc", "pyopencl", "rmm", "torch"]


def _named(name: str) -> ModuleType:
    module: ModuleType = getattr(interop, name)
    return module


if not TYPE_CHECKING:  # as in syncedmem/__init__.py
    __getattr__ = _named


def __dir__() -> list[str]:
    return sorted(__all__)
