"""What the kit says of Caffe's own ``SyncedMemory`` and ``Blob``, compiled as they are and tested as a port.

``make test-caffe`` does that.  The files are those of ``brocolli-caffe`` 9.0.2, which is Caffe's source tree of 2016.
In the profile ``caffe`` nothing is violated by memories, and one requirement by blobs.  In the profile ``safe`` exactly
the requirements here are.  Both hold at any seed; in the profile ``safe`` blobs are tested without generated calls.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CAFFE_BLOBS_EXCEPT",
    "CAFFE_BLOBS_VIOLATE",
    "CAFFE_LIBRARIES",
    "CAFFE_VIOLATES",
]

CAFFE_LIBRARIES: Mapping[str, str] = MappingProxyType(
    {"caffe": "libcaffe.so", "cpu_only": "libcaffe_cpu_only.so"},
)
"""The library that is built for each edition."""

_ALWAYS: dict[str, str] = {
    "P01-answers": "a CHECK in the destructor fails if a free fails, and a destructor that raises ends the program "
    "(syncedmem.cpp:7-23)",
    "R33-failure-leaks-nothing": "the flag of ownership is set after the zero-fill, so memory whose zero-fill failed "
    "is never freed (syncedmem.cpp:28-31, 56-59)",
    "R35-own-buffer-refused": "set_cpu_data frees its own block, and keeps the pointer to it (syncedmem.cpp:99-107)",
    "R36-too-small-refused": "the size of a buffer is not known (syncedmem.cpp:99)",
    "R44-size-zero": "malloc and cudaMalloc are called for zero bytes too (syncedmem.hpp:15-26)",
}
_DEVICES: dict[str, str] = {
    "R39-wrong-kind-refused": "the kind of a buffer is not known (syncedmem.cpp:99, 122)",
    "R41-in-flight-not-written": "nobody waits for a push: the caller has to (syncedmem.cpp:151)",
    "R42-in-flight-not-freed": "as R41: memory is freed although a push still uses it",
    "R43-in-flight-read": "as R41: the device side is shown before the push has happened",
}

CAFFE_VIOLATES: Mapping[str, Mapping[str, str]] = MappingProxyType({"caffe": _ALWAYS | _DEVICES, "cpu_only": _ALWAYS})
"""For each edition the requirements of the profile ``safe`` that Caffe does not keep, each with the reason."""

CAFFE_BLOBS_EXCEPT: Mapping[str, str] = MappingProxyType(
    {
        "B24-adopt-renews": "this form of Caffe is older than the lines that compare the sizes: set_cpu_data "
        "redirects a larger memory too (blob.cpp:90-93)",
    }
)
"""The requirements of the profile ``caffe`` that the blobs of these files do not keep, each with the reason."""

_BLOBS: dict[str, str] = {
    **CAFFE_BLOBS_EXCEPT,
    "P01-answers": "a CHECK in the destructor fails if a free fails, and a destructor that raises ends the program "
    "(syncedmem.cpp:7-23)",
    "B02-lazy": "there are no blobs of float16, so making one is refused",
    "B04-reshape-forms": "extents that are given as numbers are four (blob.cpp:12-20)",
    "B21-accessors": "a blob that never had an element has no memories, and its accessors fail (blob.cpp:85)",
    "B25-adopt-diff": "as B24",
    "B45-shrink": "there is no such call",
    "B46-capacity": "the capacity is not changed when memory is shared (blob.cpp:138-147)",
    "B47-wide-count": "a count is an int, and an extent of a message is cut to one (blob.cpp:33-35, 52)",
    "B49-bad-buffer-refused": "the size of a buffer is not known (blob.cpp:90-93)",
    "B56-unchanged": "data_at brings the host side up to date before it checks the index (blob.hpp:191-194)",
    "B57-failure-keeps-numbers": "copy_from has taken the new shape when the copy fails (blob.cpp:444-454)",
    "B60-nothing-left": "as R33: memory whose zero-fill failed is never freed (syncedmem.cpp:28-31, 56-59)",
    "B61-shape-once": "every reshape writes the extents on the host again (blob.cpp:30)",
    "B62-negative-index": "the extent is compared with 0, not the index (blob.hpp:153-164)",
    "B64-no-elements": "as B21",
    "B67-shape-lazy": "every shape with more axes has memory for its extents at once (blob.cpp:27-30)",
}
_OF_DEVICES = ("B60-nothing-left", "B61-shape-once")

CAFFE_BLOBS_VIOLATE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"caffe": _BLOBS, "cpu_only": {name: why for name, why in _BLOBS.items() if name not in _OF_DEVICES}}
)
"""For each edition the requirements of the profile ``safe`` that Caffe's blobs are found to violate, with the reason.

A scenario ends at its first violation, so what comes after it is not seen: B27, B63 and others may be hidden.
"""
