"""Allocators that are objects, whose calls take an alignment: ``std::pmr::memory_resource`` and Rust's ``GlobalAlloc``.

A library exports them through the functions of ``examples/fuzz_target.hpp`` and ``examples/fuzz_target.rs``::

    void *make(void);                                                       a new object
    void drop(void *self);
    void *allocate(void *self, size_t size, size_t alignment);              null: out of memory, or see error()
    void deallocate(void *self, void *block, size_t size, size_t alignment);
    void *zeroed(void *self, size_t size, size_t alignment);
    void *resize(void *self, void *block, size_t old_size, size_t alignment, size_t size);
    int is_equal(void *self, void *other);
    const char *error(void);                                                what the last call threw; null: nothing

The first three and ``deallocate`` are needed.
"""

from __future__ import annotations

from ctypes import c_char_p, c_int, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

from .c_functions import Functions, Instance
from .capabilities import Capabilities
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["resource_target"]

_ALIGNMENT = 16
"""Requests that name no alignment ask for that of C's ``max_align_t``."""
_RECORD = Capabilities(alignment=_ALIGNMENT, sized_free=True, out_of_memory=("null",), host_readable=True)


def resource_target(functions: Functions) -> Target:
    """The target for a new object."""
    resource = _Resource(functions)
    return Target(
        kind="an object of a library (resource)",
        subject=resource,
        capabilities=_RECORD,
        take=resource.take,
        give=resource.give,
        take_aligned=resource.take_aligned,
        take_zeroed=resource.take_zeroed if resource.zeroed is not None else None,
        resize=resource.resized if resource.resize is not None else None,
        owned=True,
    )


class _Resource:
    """One object, and a second one if it can be compared with others."""

    def __init__(self, functions: Functions) -> None:
        bind = functions.bind
        size, place = c_size_t, c_void_p
        self._error: Callable[[], bytes | None] = bind("error", c_char_p) or (lambda: None)
        self._make, self._drop = bind("make", place), bind("drop", None, place)
        self._allocate = bind("allocate", place, place, size, size)
        self._deallocate = bind("deallocate", None, place, place, size, size)
        self.zeroed: Any = bind("zeroed", place, place, size, size)
        self.resize: Any = bind("resize", place, place, place, size, size, size)
        self._is_equal = bind("is_equal", c_int, place, place)
        self._first = self._new()
        self._second = self._first if self._is_equal is None else self._new()
        self._alignments: dict[int, int] = {}

    def _new(self) -> Instance:
        address: int | None = self._make()
        return Instance(address, self._drop, self._read_error() or "null")

    def _read_error(self) -> str:
        return (self._error() or b"").decode(errors="replace")

    def _answer(self, handle: int | None) -> int | None:
        """A result; null means out of memory, unless something else was thrown."""
        if handle is None and (reason := self._read_error()):
            raise RuntimeError(reason)
        return handle

    def take(self, size: int) -> int | None:
        """Allocate."""
        return self._answer(self._allocate(self._first.address, size, _ALIGNMENT))

    def take_aligned(self, size: int, alignment: int) -> int | None:
        """Allocate with an alignment, which the free names too."""
        address = self._answer(self._allocate(self._first.address, size, alignment))
        if address is not None:
            self._alignments[address] = alignment
        return address

    def take_zeroed(self, size: int) -> int | None:
        """Allocate memory that must be zero."""
        return self._answer(self.zeroed(self._first.address, size, _ALIGNMENT))

    def resized(self, handle: int, size: int, old: int) -> int | None:
        """Change the size of a block; its alignment stays."""
        alignment = self._alignments.pop(handle, _ALIGNMENT)
        address = self._answer(self.resize(self._first.address, handle, old, alignment, size))
        if alignment != _ALIGNMENT:
            self._alignments[handle if address is None else address] = alignment
        return address

    def give(self, handle: int, size: int) -> None:
        """Free a block: an even size through the second object, if that is equal, because an equal one may free it."""
        alignment = self._alignments.pop(handle, _ALIGNMENT)
        equal = self._is_equal is not None and self._are_equal()
        resource = self._second if equal and not size % 2 else self._first
        self._deallocate(resource.address, handle, size, alignment)
        if reason := self._read_error():
            raise RuntimeError(reason)

    def _are_equal(self) -> bool:
        """Whether the two objects are equal."""
        first, second = self._first.address, self._second.address
        if not self._is_equal(first, first):
            raise RuntimeError("is_equal: the object is not equal to itself")
        equal = bool(self._is_equal(first, second))
        if equal != bool(self._is_equal(second, first)):
            raise RuntimeError("is_equal: of two objects, only one is equal to the other")
        return equal

    def close(self) -> None:
        """Destroy the objects."""
        if self._second is not self._first:
            self._second.close()
        self._first.close()
