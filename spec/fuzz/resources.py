"""Allocators that are objects, whose calls take an alignment: ``std::pmr::memory_resource`` and Rust's ``GlobalAlloc``.

A library exports them through the functions of ``shims/fuzz_target.hpp`` and ``shims/fuzz_target.rs``; their
arguments are those of the row ``resource`` in `native.ABIS`.  After a null, ``error`` returns what the call threw, or
null if memory was out.
"""

from __future__ import annotations

from .c_functions import Functions, Instance
from .targets import Target

__all__ = ["ALIGNMENT", "resource_target"]

ALIGNMENT = 16
"""Requests that name no alignment ask for that of C's ``max_align_t``."""


def resource_target(functions: Functions) -> Target:
    """The target for a new object."""
    resource = _Resource(functions)
    return Target(
        kind=functions.abi.kind,
        subject=resource,
        capabilities=functions.abi.record,
        take=resource.take,
        give=resource.give,
        take_aligned=resource.take,
        take_zeroed=resource.take_zeroed if resource.zeroed is not None else None,
        resize=resource.resized if resource.resize is not None else None,
        reset=functions.resetting(resource.forget),
        keeps_alignment=True,
        owned=True,
    )


class _Resource:
    """One object, and a second one if it can be compared with others."""

    def __init__(self, functions: Functions) -> None:
        bind = functions.bind
        self._error = bind("error") or (lambda: None)
        self._make, self._drop, self._is_equal = map(bind, ("make", "drop", "is_equal"))
        self._allocate, self._deallocate = map(bind, ("allocate", "deallocate"))
        self.zeroed, self.resize = map(bind, ("zeroed", "resize"))
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

    def take(self, size: int, alignment: int = ALIGNMENT) -> int | None:
        """Allocate with an alignment, which the free names too."""
        address = self._answer(self._allocate(self._first.address, size, alignment))
        if address is not None and alignment != ALIGNMENT:
            self._alignments[address] = alignment
        return address

    def take_zeroed(self, size: int) -> int | None:
        """Allocate memory that must be zero."""
        return self._answer(self.zeroed(self._first.address, size, ALIGNMENT))

    def forget(self) -> None:
        """Forget the alignments of all blocks."""
        self._alignments.clear()

    def resized(self, handle: int, size: int, old: int) -> int | None:
        """Change the size of a block; its alignment stays."""
        alignment = self._alignments.pop(handle, ALIGNMENT)
        address = self._answer(self.resize(self._first.address, handle, old, alignment, size))
        if alignment != ALIGNMENT:
            self._alignments[handle if address is None else address] = alignment
        return address

    def give(self, handle: int, size: int) -> None:
        """Free a block: an even size through the second object, if that is equal, because an equal one may free it."""
        alignment = self._alignments.pop(handle, ALIGNMENT)
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
