"""What the kit says of Caffe's own ``SyncedMemory``, compiled as it is and tested as a port: ``make test-caffe``.

The files are those of ``brocolli-caffe`` 9.0.2, which is Caffe's source tree of 2016.  In the profile ``caffe`` nothing
is violated.  In the profile ``safe`` exactly the requirements here are.  Both hold at any seed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CAFFE_LIBRARIES", "CAFFE_VIOLATES"]

CAFFE_LIBRARIES: Mapping[str, str] = MappingProxyType(
    {"caffe": "libcaffe.so", "cpu_only": "libcaffe_cpu_only.so"},
)
"""The library that is built for each edition."""

_ALWAYS: dict[str, str] = {
    "P01-answers": "a CHECK in the destructor fails if a free fails, and a destructor that raises ends the program "
    "(syncedmem.cpp:7-23)",
    "R33-failure-leaks-nothing": "the flag of ownership is set after the zero-fill, so memory whose zero-fill failed "
    "is never freed (syncedmem.cpp:28-31, 56-59)",
    "R44-size-zero": "malloc and cudaMalloc are called for zero bytes too (syncedmem.hpp:15-26)",
}
_PUSHES: dict[str, str] = {
    "R41-in-flight-not-written": "nobody waits for a push: the caller has to (syncedmem.cpp:151)",
    "R42-in-flight-not-freed": "as R41: memory is freed although a push still uses it",
    "R43-in-flight-read": "as R41: the device side is shown before the push has happened",
}

CAFFE_VIOLATES: Mapping[str, Mapping[str, str]] = MappingProxyType({"caffe": _ALWAYS | _PUSHES, "cpu_only": _ALWAYS})
"""For each edition the requirements of the profile ``safe`` that Caffe does not keep, each with the reason."""
