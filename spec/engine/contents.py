"""The bytes of memories under test: patterns to write, and reading memory without the memory's help."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from syncedmem.model import caffe

from .call_log import TO_DEVICE, TO_HOST

if TYPE_CHECKING:
    from .subject import Subject

__all__ = ["Watched", "contrasted", "fetch", "pattern", "put", "shown"]

# 251 is a prime, so no shift by a power of two maps the pattern onto itself.
_WHEEL = bytes(range(251)) * 2


@lru_cache(maxsize=8)  # a call, what is expected of it and what is written after it ask for the same one
def pattern(number: int, size: int) -> bytes:
    """Bytes that differ from the pattern of every other number, at every position if possible."""
    start = number * 7 % 251
    return (_WHEEL[start : start + 251] * (size // 251 + 1))[:size]


_SHORT = 16
"""Contents up to this length are shown whole."""


def contrasted(expected: bytes, seen: bytes) -> tuple[str, str]:
    """Two contents that differ, as texts; of long ones, the bytes from the first that differs."""
    pairs = zip(seen, expected, strict=False)
    at = next((k for k, (one, other) in enumerate(pairs) if one != other), min(len(seen), len(expected)))
    start = at if len(expected) > _SHORT else 0
    where = f" from byte {start} of {len(expected)}" if start else ""
    shown = [content[start : start + _SHORT].hex() or "nothing" for content in (expected, seen)]
    return shown[0] + where, shown[1] + ("" if len(seen) == len(expected) else f", {len(seen)} bytes")


class Watched(bytearray):
    """A host buffer that supports weak references."""

    __slots__ = ("__weakref__",)


def put(subject: Subject, array: Any, content: bytes, side: str = caffe.GPU) -> None:
    """Overwrite the first bytes of an array of a side, without the memory under test."""
    if subject.on_host(side):
        memoryview(array).cast("B")[: len(content)] = content
    elif content:
        scratch = subject.host.empty(len(content))
        memoryview(scratch)[:] = content
        subject.place(side).memcpy(scratch, array, len(content), TO_DEVICE)


def fetch(subject: Subject, array: Any, size: int, side: str = caffe.GPU) -> bytes:
    """The first bytes of an array of a side, read without the memory under test."""
    if subject.on_host(side):
        return bytes(memoryview(array).cast("B")[:size])
    scratch = subject.host.empty(size)
    subject.place(side).memcpy(array, scratch, size, TO_HOST)
    return bytes(memoryview(scratch))


def shown(subject: Subject, view: Any, side: str) -> bytes:
    """What a view of a side shows."""
    return bytes(memoryview(view if subject.on_host(side) else view.get()).cast("B"))
