"""The error for a library that cannot be imported."""

from __future__ import annotations

from syncedmem.model import NoDeviceError
from syncedmem.model.packages import install, why

__all__ = ["missing"]


def missing(library: str, extra: str, error: Exception) -> NoDeviceError:
    """The error for a library that cannot be imported; it says how to install it, and what was raised."""
    return NoDeviceError(f"{library} is needed here: {install(extra)} ({why(error)})")
