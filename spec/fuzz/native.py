"""Allocators in shared libraries: how they are named, and which convention their functions follow."""

from __future__ import annotations

import ctypes
import re
from ctypes import c_char_p, c_void_p
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from .c_functions import CALLS, Functions, malloc_target, plain_target
from .finding import TargetError
from .resources import resource_target
from .umf import umf_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from .targets import Target

__all__ = ["Abi", "LibraryAddress", "by_position", "makes_fresh", "open_library", "symbols_of"]

Abi = Literal["malloc", "torch", "cupy", "nep49", "resource", "umf"]

_SPELLING = re.compile(r"(?P<path>[^?]*\.(?:so|dylib)[^:?]*):(?P<symbols>[^?]*)(?:\?abi=(?P<abi>\w*))?", re.IGNORECASE)


class _Convention(NamedTuple):
    """The parts that functions of a convention can play."""

    needed: tuple[str, ...]
    more: tuple[str, ...]
    target: Callable[[Functions], Target]


_RELATIVES = (
    "aligned_alloc",
    "posix_memalign",
    "malloc_usable_size",
    "reallocarray",
    "free_sized",
    "free_aligned_sized",
)
_PLAIN = ("malloc", "free")
_CONVENTIONS: dict[Abi, _Convention] = {
    "malloc": _Convention(_PLAIN, ("calloc", "realloc", *_RELATIVES), malloc_target),
    "nep49": _Convention(_PLAIN, ("calloc", "realloc", "make", "drop"), partial(plain_target, "nep49")),
    "torch": _Convention(_PLAIN, (), partial(plain_target, "torch")),
    "cupy": _Convention(_PLAIN, (), partial(plain_target, "cupy")),
    "resource": _Convention(
        ("make", "allocate", "deallocate"), ("drop", "zeroed", "resize", "is_equal", "error"), resource_target
    ),
    "umf": _Convention((), ("pool", "provider"), umf_target),
}
_RESET = "reset"
"""The part of a function ``void reset(void)`` that makes the state of a library as new; it is never guessed."""
_MOST_BY_POSITION = 4


class LibraryAddress(NamedTuple):
    """A target in a shared library."""

    path: str
    symbols: tuple[str, ...]
    abi: Abi

    @classmethod
    def parse(cls, text: str) -> LibraryAddress | None:
        """Read ``path/to/lib.so:alloc,free[,calloc[,realloc]][?abi=malloc]``; None for a text of another form."""
        match = _SPELLING.fullmatch(text)
        if match is None:
            return None
        symbols = tuple(name.strip() for name in match["symbols"].split(","))
        abi: Any = match["abi"] or "malloc"
        if abi not in get_args(Abi):
            raise TargetError(f"{text}: there is no abi {abi!r}; there are {', '.join(get_args(Abi))}")
        address = cls(match["path"], symbols, abi)
        by_position = [name for name in symbols if "=" not in name and "*" not in name]
        named = len(by_position) < len(symbols)
        most = min(len(address.parts), _MOST_BY_POSITION)
        if not all(symbols) or len(by_position) > most or not (named or len(by_position) > 1):
            raise TargetError(
                f"{text}: name the symbols as {address.path}:alloc,free or :alloc,free,calloc,realloc, or the prefix "
                "that all have, as :prefix_*"
            )
        return address

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the convention, in the order of symbols by position."""
        convention = _CONVENTIONS[self.abi]
        return (*convention.needed, *convention.more)


def symbols_of(address: LibraryAddress, library: ctypes.CDLL) -> dict[str, str]:
    """The symbol of a library for each part that has one."""
    symbols: dict[str, str] = {}
    free_parts = iter(address.parts)
    for text in address.symbols:
        part, equals, symbol = (it.strip() for it in text.partition("="))
        if equals:
            if part not in (*address.parts, _RESET):
                raise TargetError(
                    f"{text}: {address.abi} has no part {part!r}; it has {', '.join(address.parts)}, reset"
                )
            symbols[part] = symbol
        elif "*" in text:
            symbols = _fitting(library, {part: text.replace("*", part) for part in address.parts}) | symbols
        else:
            symbols[next(free_parts)] = text
    symbols = {part: symbol for part, symbol in symbols.items() if symbol}  # `part=` leaves a part out
    missing = [symbol for symbol in symbols.values() if not hasattr(library, symbol)]
    pattern = next((text for text in address.symbols if "*" in text), "*")
    missing += [pattern.replace("*", part) for part in _CONVENTIONS[address.abi].needed if part not in symbols]
    if missing:
        raise TargetError(f"{address.path} has no symbol {', '.join(missing)}")
    return symbols


def by_position(address: LibraryAddress) -> LibraryAddress | None:
    """The same functions, named only by position, for what knows no other names; None if it could not call them."""
    if address.abi not in CALLS or makes_fresh(address):
        return None
    symbols = _load(address).symbols
    return address._replace(symbols=tuple(takewhile(bool, (symbols.get(part, "") for part in CALLS[address.abi]))))


def _fitting(library: ctypes.CDLL, symbols: dict[str, str]) -> dict[str, str]:
    """The symbols that the library has itself: the loader finds those of the libraries below it too."""
    places = {part: _file_of(library[symbol]) for part, symbol in symbols.items() if hasattr(library, symbol)}
    own = next(iter(places.values()), None)  # that of the first part, which is needed
    return {part: symbols[part] for part, place in places.items() if place == own}


class _Place(ctypes.Structure):
    """``Dl_info``: the file of a function, where it begins, and the symbol."""

    _fields_ = (("file", c_char_p), ("base", c_void_p), ("name", c_char_p), ("address", c_void_p))


def _file_of(function: Any) -> bytes | None:
    """The file that the loader took a function from."""
    place, find = _Place(), ctypes.CDLL(None).dladdr
    find.argtypes = (c_void_p, ctypes.POINTER(_Place))
    file: bytes | None = place.file if find(ctypes.cast(function, c_void_p), ctypes.byref(place)) else None
    return file


def makes_fresh(address: LibraryAddress) -> bool:
    """Whether each target has a state of its own: a function makes it, or makes that of the library as new."""
    return address.abi == "umf" or not _load(address).symbols.keys().isdisjoint(("make", _RESET))


def open_library(address: LibraryAddress) -> Target:
    """Load a library and bind its functions."""
    functions = _load(address)
    reset = functions.bind(_RESET, None)
    if reset is not None:
        reset()
    return _CONVENTIONS[address.abi].target(functions)


def _load(address: LibraryAddress) -> Functions:
    try:
        library = ctypes.CDLL(address.path)
    except OSError as error:
        here = "/" not in address.path and Path(address.path).exists()
        hint = f"; for the file in this folder write ./{address.path}" if here else ""
        raise TargetError(f"cannot load {address.path}: {error}{hint}") from None
    return Functions(library, symbols_of(address, library))
