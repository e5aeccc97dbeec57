"""The elements of blobs under test: whole numbers to write, the bytes of numbers, and comparisons of numbers."""

from __future__ import annotations

import struct
from math import isclose, isnan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "INTEGERS",
    "TYPES",
    "USUAL",
    "alike",
    "decoded",
    "encoded",
    "itemsize",
    "near",
    "numbers",
    "pour",
    "shown",
    "types_for",
]

TYPES = {"float32": "f", "float64": "d", "int32": "i", "uint32": "I", "float16": "e"}
"""The element types with which the kit tests a blob, and their codes in `struct`."""

USUAL = "float32"
"""The default type, as in Caffe."""

INTEGERS = ("int32", "uint32")
"""The types that have no arithmetic."""

_NOT_CAFFE = ("float16",)  # blob.cpp:556-558 has the other four


def types_for(profile: str) -> tuple[str, ...]:
    """The element types with which a blob is tested."""
    return tuple(kind for kind in TYPES if profile == "safe" or kind not in _NOT_CAFFE)


_WHEEL = 61  # a prime, so neither a shift nor another number of elements gives the same row


def numbers(number: int, count: int, dtype: str) -> bytes:
    """The bytes of `count` small whole numbers, different for each `number`."""
    lowest = 0 if dtype == "uint32" else -(_WHEEL // 2)
    turn = encoded(((number * 7 + place * 3) % _WHEEL + lowest for place in range(min(count, _WHEEL))), dtype)
    return (turn * -(-count // _WHEEL))[: count * itemsize(dtype)]


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


def alike(content: bytes, wanted: bytes, dtype: str) -> bool:
    """Whether these are the same numbers, bit for bit; any NaN equals any other."""
    if content == wanted or dtype in INTEGERS:
        return content == wanted
    size = itemsize(dtype)
    if len(content) != len(wanted) or len(content) % size:
        return False
    pairs = zip(decoded(content, dtype), decoded(wanted, dtype), strict=True)
    return all(
        content[at * size :][:size] == wanted[at * size :][:size] or (isnan(mine) and isnan(theirs))
        for at, (mine, theirs) in enumerate(pairs)
    )


def near(value: Any, wanted: float, tolerance: float) -> bool:
    """Whether a blob's answer is a number near this one; a string is not a number, whatever its text."""
    try:
        number = float("" if isinstance(value, str | bytes) else value)
    except (TypeError, ValueError):
        return False
    return isclose(number, wanted, rel_tol=tolerance) or (isnan(number) and isnan(wanted))


def pour(view: Any, content: bytes) -> None:
    """Overwrite the elements of a host view, or of a device view with its ``get`` and ``set``."""
    if content:
        there = view.get() if hasattr(view, "get") else view
        memoryview(there).cast("B")[:] = content
        if there is not view:
            view.set(there)


def shown(view: Any) -> bytes:
    """The bytes of a view on either side."""
    return memoryview(view.get() if hasattr(view, "get") else view).tobytes()
