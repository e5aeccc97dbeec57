"""The elements of blobs under test: numbers to write that no arithmetic here rounds, and their bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["INTEGERS", "TYPES", "decoded", "encoded", "itemsize", "numbers", "pour", "shown"]

TYPES = {"float32": "f", "float64": "d", "int32": "i", "uint32": "I", "float16": "e"}
"""The element types that the kit puts to a blob, and what `struct` calls them."""

INTEGERS = ("int32", "uint32")
"""The types that have no arithmetic."""

_WHEEL = 61  # a prime, so that neither a shift nor another number of elements maps one row onto another


def numbers(number: int, count: int, dtype: str) -> bytes:
    """The bytes of `count` small whole numbers, other ones for each `number`."""
    lowest = 0 if dtype == "uint32" else -(_WHEEL // 2)
    return encoded(((number * 7 + place * 3) % _WHEEL + lowest for place in range(count)), dtype)


def itemsize(dtype: str) -> int:
    """The size of an element in bytes."""
    return struct.calcsize(f"={TYPES[dtype]}")


def encoded(values: Iterable[float], dtype: str) -> bytes:
    """The bytes of some numbers."""
    given = tuple(values)
    return struct.pack(f"={len(given)}{TYPES[dtype]}", *given)


def decoded(content: bytes, dtype: str) -> tuple[Any, ...]:
    """The numbers of some bytes."""
    return struct.unpack(f"={len(content) // itemsize(dtype)}{TYPES[dtype]}", content)


def pour(view: Any, content: bytes) -> None:
    """Overwrite the elements of a host view, or of a device view by way of its ``get`` and ``set``."""
    if content:
        there = view.get() if hasattr(view, "get") else view
        memoryview(there).cast("B")[:] = content
        if there is not view:
            view.set(there)


def shown(view: Any) -> bytes:
    """The bytes of a view, on whichever side it is."""
    return memoryview(view.get() if hasattr(view, "get") else view).tobytes()
