"""The error for a library that is not installed."""

from __future__ import annotations

from syncedmem.model import NoDeviceError
from syncedmem.model.packages import install

__all__ = ["missing"]


def missing(library: str, extra: str, error: ImportError) -> NoDeviceError:
    """The error for a library that is not installed; it says how to install it."""
    return NoDeviceError(f"{library} is needed here: {install(extra)} ({error})")
