"""Allocators in shared libraries, called through ctypes, with four conventions for their arguments."""

from __future__ import annotations

import ctypes
import re
import sys
from ctypes import c_int, c_size_t, c_ssize_t, c_void_p
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from .capabilities import Capabilities
from .finding import TargetError
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Abi", "LibraryAddress", "open_library"]

Abi = Literal["malloc", "torch", "cupy", "nep49"]

_SPELLING = re.compile(r"(?P<path>[^?]*\.(?:so|dylib)[^:?]*):(?P<symbols>[^?]*)(?:\?abi=(?P<abi>\w*))?", re.IGNORECASE)
_MOST_SYMBOLS = 4
_C_RECORD = Capabilities(alignment=8, thread_safe=True, out_of_memory=("null",), host_readable=True)


class LibraryAddress(NamedTuple):
    """A target in a shared library.

    Attributes
    ----------
    path : str
        A path for the dynamic loader, or a name that it searches for.
    symbols : tuple of str
        The symbols of malloc and free, and optionally of calloc and realloc.
    abi : {"malloc", "torch", "cupy", "nep49"}
    """

    path: str
    symbols: tuple[str, ...]
    abi: Abi

    @classmethod
    def parse(cls, text: str) -> LibraryAddress | None:
        """Read ``path/to/lib.so:alloc,free[,calloc[,realloc]][?abi=malloc]``; None for a text of another form.

        Raises
        ------
        TargetError
            If it names a library, but not the symbols or a known convention.
        """
        found = _SPELLING.fullmatch(text)
        if found is None:
            return None
        symbols = tuple(name.strip() for name in found["symbols"].split(","))
        abi: Any = found["abi"] or "malloc"
        if abi not in get_args(Abi):
            raise TargetError(f"{text}: there is no abi {abi!r}; there are {', '.join(get_args(Abi))}")
        if not 1 < len(symbols) <= _MOST_SYMBOLS or not all(symbols):
            raise TargetError(f"{text}: name the symbols as {found['path']}:alloc,free or :alloc,free,calloc,realloc")
        return cls(found["path"], symbols, abi)


def open_library(address: LibraryAddress) -> Target:
    """Load a library and bind its symbols.

    Raises
    ------
    TargetError
        If it cannot be loaded or lacks a symbol.
    """
    try:
        library = ctypes.CDLL(address.path)
    except OSError as error:
        here = "/" not in address.path and Path(address.path).exists()
        hint = f"; for the file in this folder write ./{address.path}" if here else ""
        raise TargetError(f"cannot load {address.path}: {error}{hint}") from None
    missing = [name for name in address.symbols if not hasattr(library, name)]
    if missing:
        raise TargetError(f"{address.path} has no symbol {', '.join(missing)}")
    return _BINDERS[address.abi](library, address.symbols)


def _bind(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = library[name]  # a new function object; an attribute would be shared
    function.restype, function.argtypes = result, arguments
    return function


def _malloc(library: ctypes.CDLL, symbols: tuple[str, ...]) -> Target:
    take = _bind(library, symbols[0], c_void_p, c_size_t)
    free = _bind(library, symbols[1], None, c_void_p)
    calloc: Callable[..., Any] | None = None
    resize: Callable[..., Any] | None = None
    if symbols[2:]:
        calloc = _bind(library, symbols[2], c_void_p, c_size_t, c_size_t)
    if symbols[3:]:
        resize = _bind(library, symbols[3], c_void_p, c_void_p, c_size_t)
    return Target(
        kind="C functions (malloc)",
        subject=None,
        capabilities=_C_RECORD,
        take=take,
        give=lambda handle, _: free(handle),
        take_zeroed=None if calloc is None else lambda size: calloc(1, size),
        take_many=calloc,
        resize=None if resize is None else lambda handle, size, _: resize(handle, size),
    )


def _nep49(library: ctypes.CDLL, symbols: tuple[str, ...]) -> Target:
    """NumPy's ``PyDataMem_Handler``: the first argument is a context, and a free takes the size."""
    take = _bind(library, symbols[0], c_void_p, c_void_p, c_size_t)
    free = _bind(library, symbols[1], None, c_void_p, c_void_p, c_size_t)
    calloc: Callable[..., Any] | None = None
    resize: Callable[..., Any] | None = None
    if symbols[2:]:
        calloc = _bind(library, symbols[2], c_void_p, c_void_p, c_size_t, c_size_t)
    if symbols[3:]:
        resize = _bind(library, symbols[3], c_void_p, c_void_p, c_void_p, c_size_t)
    return Target(
        kind="C functions (NumPy, NEP 49)",
        subject=None,
        capabilities=replace(_C_RECORD, sized_free=True),
        take=lambda size: take(None, size),
        give=lambda handle, size: free(None, handle, size),
        take_zeroed=None if calloc is None else lambda size: calloc(None, size, 1),
        take_many=None if calloc is None else lambda count, size: calloc(None, count, size),
        resize=None if resize is None else lambda handle, size, _: resize(None, handle, size),
    )


def _torch(library: ctypes.CDLL, symbols: tuple[str, ...]) -> Target:
    """PyTorch's pluggable allocator, with size, device and stream."""
    take = _bind(library, symbols[0], c_void_p, c_ssize_t, c_int, c_void_p)
    free = _bind(library, symbols[1], None, c_void_p, c_ssize_t, c_int, c_void_p)
    return Target(
        kind="C functions (PyTorch)",
        subject=None,
        capabilities=replace(_C_RECORD, sized_free=True, host_readable=None),
        take=lambda size: take(size, 0, None),
        give=lambda handle, size: free(handle, size, 0, None),
        most=sys.maxsize,  # its sizes have a sign
    )


def _cupy(library: ctypes.CDLL, symbols: tuple[str, ...]) -> Target:
    """CuPy's ``CFunctionAllocator``: the first argument is a parameter, the last is the device."""
    take = _bind(library, symbols[0], c_void_p, c_void_p, c_size_t, c_int)
    free = _bind(library, symbols[1], None, c_void_p, c_void_p, c_int)
    return Target(
        kind="C functions (CuPy)",
        subject=None,
        capabilities=replace(_C_RECORD, host_readable=None),
        take=lambda size: take(None, size, 0),
        give=lambda handle, _: free(None, handle, 0),
    )


_BINDERS: dict[Abi, Callable[[ctypes.CDLL, tuple[str, ...]], Target]] = {
    "malloc": _malloc,
    "nep49": _nep49,
    "torch": _torch,
    "cupy": _cupy,
}
