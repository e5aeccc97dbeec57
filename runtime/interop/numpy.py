"""NumPy: handlers for the memory of arrays (NEP 49).

A handler is a capsule named ``mem_handler`` that holds a ``PyDataMem_Handler`` of C.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from contextlib import contextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError

from .exporter import Exporter
from .foreign import ForeignHostAllocator
from .native import keep_for_ever, or_null
from .source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..allocators.base import DeviceAllocator

__all__ = ["as_resource", "current", "from_resource", "using"]

_CAPSULE = b"mem_handler"
_MALLOC = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_CALLOC = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_REALLOC = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FREE = (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Handler(ctypes.Structure):
    """NumPy's structure ``PyDataMem_Handler``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_in_capsule = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _numpy_function(index: int, *types: Any) -> Callable[..., Any]:
    """A function of NumPy's C interface, by its index in the table, which never changes."""
    table = _in_capsule(importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API, None)  # noqa: SLF001 -- NumPy has its C interface there
    return ctypes.PYFUNCTYPE(*types)(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[index])


_set_handler = _numpy_function(304, ctypes.py_object, ctypes.py_object)
_get_handler = _numpy_function(305, ctypes.py_object)


def current() -> object:
    """The handler that NumPy uses for new arrays now, in this context."""
    return _get_handler()


@contextmanager
def using(handler: object) -> Generator[None]:
    """Let NumPy use a handler for the memory of new arrays inside a ``with`` block.

    Arrays keep their handler, and give their memory back to it whenever they are collected.  Other threads and tasks
    are not affected.

    Parameters
    ----------
    handler : capsule
        From `as_resource` or `current`.

    Raises
    ------
    InvalidArgumentError
        If `handler` is no handler.
    """
    _handler_in(handler)
    before = _set_handler(handler)
    try:
        yield
    finally:
        _set_handler(before)


def _handler_in(capsule: object) -> _Handler:
    try:
        return _Handler.from_address(_in_capsule(capsule, _CAPSULE))
    except ValueError:
        raise InvalidArgumentError("handler", capsule, "a capsule named mem_handler, as NumPy's are") from None


def from_resource(theirs: object = None) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from a handler of NumPy.

    Parameters
    ----------
    theirs : capsule or None
        A handler; None for the one that NumPy uses now.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is no handler.
    """
    capsule = current() if theirs is None else theirs
    handler = _handler_in(capsule)
    # PYFUNCTYPE keeps the GIL during the call, as NumPy does.
    malloc, free = ctypes.PYFUNCTYPE(*_MALLOC)(handler.malloc), ctypes.PYFUNCTYPE(*_FREE)(handler.free)

    def take(size: int) -> tuple[int, Callable[[], object]]:
        address = malloc(handler.ctx, size)

        def give_back(_handler: object = capsule) -> None:  # the default keeps the handler as long as the block
            free(handler.ctx, address, size)

        return address, give_back

    return ForeignHostAllocator(Source(f"NumPy's {handler.name.decode()}", take))


def as_resource(allocator: object, *, name: str = "syncedmem") -> object:
    """A handler of NumPy whose memory comes from a `DeviceAllocator`.

    The handler and the allocator are kept until the process ends, because an array may live until then.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of host memory.
    name : str
        The name that ``numpy._core.multiarray.get_handler_name`` returns for its arrays; at most 126 bytes of UTF-8.

    Returns
    -------
    capsule
        For `using`, or ``PyDataMem_SetHandler``.

    Raises
    ------
    InvalidArgumentError
        If `allocator` is not an allocator of host memory, or `name` is too long.
    """
    title = name.encode()
    if len(title) >= _Handler.name.size:
        raise InvalidArgumentError("name", name, "at most 126 bytes long")
    exported = _ExportedHandler(Exporter(allocator, alignment=16, host_only=True))
    # ctypes does not keep the functions itself.
    functions = (
        ctypes.CFUNCTYPE(*_MALLOC)(or_null(exported.malloc)),
        ctypes.CFUNCTYPE(*_CALLOC)(or_null(exported.calloc)),
        ctypes.CFUNCTYPE(*_REALLOC)(or_null(exported.realloc)),
        ctypes.CFUNCTYPE(*_FREE)(exported.free),
    )
    addresses = (ctypes.cast(function, ctypes.c_void_p) for function in functions)
    handler = _Handler(title, 1, None, *addresses)
    keep_for_ever((handler, functions))
    return _new_capsule(ctypes.addressof(handler), _CAPSULE, None)


class _ExportedHandler:
    """The four functions of a handler over a `DeviceAllocator`."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._is_over = sys.is_finalizing

    def malloc(self, _ctx: int | None, size: int) -> int:
        # An allocator may make arrays itself, whose memory must not come from it.  NumPy's handler is a context
        # variable, and a new context has NumPy's default.  A null pointer means no room to NumPy, so zero bytes become
        # one.
        return Context().run(self._exporter.allocate, size or 1)

    def calloc(self, _ctx: int | None, count: int, each: int) -> int:
        return Context().run(self._zeroed, count * each or 1)

    def _zeroed(self, size: int) -> int:
        address = self._exporter.allocate(size)
        try:
            self._exporter.allocator.memset_zero(self._exporter.array_at(address), size)
        except BaseException:
            self._exporter.deallocate(address)
            raise
        return address

    def realloc(self, _ctx: int | None, address: int | None, size: int) -> int:
        return Context().run(self._moved, address or 0, size or 1)

    def _moved(self, address: int, size: int) -> int:
        fresh = self._exporter.allocate(size)
        try:
            if address:
                old, new = self._exporter.array_at(address), self._exporter.array_at(fresh)
                self._exporter.allocator.memcpy(old, new, min(len(old), size))
                self._exporter.deallocate(address)
        except BaseException:
            self._exporter.deallocate(fresh)
            raise
        return fresh

    def free(self, _ctx: int | None, address: int | None, _size: int) -> None:
        # NumPy passes the size of the array.  After a realloc() it may be wrong, so only the address is used.
        if not self._is_over():
            Context().run(self._exporter.give_back, address or 0)
