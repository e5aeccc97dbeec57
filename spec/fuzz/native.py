"""Allocators in shared libraries: how they are named, and which convention their functions follow."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from ctypes import c_char_p, c_void_p
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .c_functions import C_RECORD, RESET, Abi, Functions, calls_of, malloc_target, plain_target
from .finding import TargetError
from .resources import ALIGNMENT, resource_target

if TYPE_CHECKING:
    from .targets import Target

__all__ = [
    "ABIS",
    "LibraryAddress",
    "abi_of",
    "handles_forks",
    "loaded",
    "meant_for_preloading",
    "symbols_of",
    "target_of",
]

_ENDING = re.compile(r"\.(so|dylib)", re.IGNORECASE)
_ABI = re.compile(r"abi=(\w*)", re.IGNORECASE)


ABIS: dict[str, Abi] = {
    "malloc": Abi(
        "C functions (malloc)",
        C_RECORD,
        2,
        calls_of("malloc=s:p free=p calloc=1s:p realloc=ps:p aligned_alloc=ss:p posix_memalign=pss:i")
        | calls_of("malloc_usable_size=p:s reallocarray=pss:p free_sized=ps free_aligned_sized=pss"),
        malloc_target,
    ),
    "nep49": Abi(
        "C functions (NumPy, NEP 49)",
        replace(C_RECORD, sized_free=True),
        2,
        calls_of("malloc=cs:p free=cps calloc=cs1:p realloc=cps:p make=:p drop=p"),
        plain_target,
    ),
    "torch": Abi(
        "C functions (PyTorch)",
        replace(C_RECORD, sized_free=True, host_readable=None),
        2,
        calls_of("malloc=s00:p free=ps00"),
        plain_target,
        most=sys.maxsize,  # PyTorch's sizes have a sign
    ),
    "cupy": Abi(
        "C functions (CuPy)",
        replace(C_RECORD, host_readable=None),
        2,
        calls_of("malloc=cs0:p free=cp0"),
        plain_target,
    ),
    "resource": Abi(
        "an object of a library (resource)",
        replace(C_RECORD, alignment=ALIGNMENT, sized_free=True, thread_safe=False),
        3,
        calls_of("make=:p allocate=osa:p deallocate=opsa drop=o zeroed=osa:p resize=oplas:p is_equal=oo:i error=:t"),
        resource_target,
        native=("allocate", "deallocate", "zeroed", "resize"),
    ),
}
"""The conventions of functions in C, for Python and for the native driver."""

_MOST_BY_POSITION = 4
_MOST_NAMED = 40
"""A message names so many symbols of a library at most."""


def abi_of(target: str) -> str:
    """The name of the convention that a target asks for, also if it is a source or has a build command."""
    chosen = _ABI.match(target.partition("?")[2])
    return (chosen[1] if chosen else "") or "malloc"


_FORK_HANDLERS = (b"pthread_atfork", b"__register_atfork")
"""The name in POSIX, and that of the function in glibc which it calls."""


class LibraryAddress(NamedTuple):
    """A target in a shared library."""

    path: str
    symbols: tuple[str, ...]
    abi: str

    @classmethod
    def parse(cls, text: str) -> LibraryAddress | None:
        """Read ``path/to/lib.so:alloc,free[,calloc[,realloc]][?abi=malloc]``; None for a text of another form."""
        address, asked, options = text.partition("?")
        endings = [*_ENDING.finditer(address, 0, max(address.rfind(":"), 0))]
        if not endings or (asked and not _ABI.fullmatch(options)):
            return None
        colon = address.index(":", endings[-1].end())
        symbols = tuple(name.strip() for name in address[colon + 1 :].split(","))
        abi = abi_of(text)
        if abi not in ABIS:
            raise TargetError(f"{text}: there is no abi {abi!r}; there are {', '.join(ABIS)}")
        found = cls(address[:colon], symbols, abi)
        by_position = [name for name in symbols if "=" not in name and "*" not in name]
        named = len(by_position) < len(symbols)
        most = min(len(found.parts), _MOST_BY_POSITION)
        if not all(symbols) or len(by_position) > most or not (named or len(by_position) > 1):
            raise TargetError(
                f"{text}: name the symbols as {found.path}:alloc,free or :alloc,free,calloc,realloc, or the prefix "
                "that all have, as :prefix_*"
            )
        return found

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the convention, in the order of symbols by position."""
        return tuple(ABIS[self.abi].calls)


def symbols_of(address: LibraryAddress, library: ctypes.CDLL) -> dict[str, str]:
    """The symbol of a library for each part that has one."""
    symbols: dict[str, str] = {}
    free_parts = iter(address.parts)
    for text in address.symbols:
        part, equals, symbol = (item.strip() for item in text.partition("="))
        if equals:
            if part not in (*address.parts, RESET):
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
    missing += [pattern.replace("*", part) for part in address.parts[: ABIS[address.abi].needed] if part not in symbols]
    if missing:
        raise TargetError(f"{address.path} has no symbol {', '.join(missing)}{_what_it_has(address.path)}")
    return symbols


def _what_it_has(path: str) -> str:
    """The symbols that a library has itself, for a message; empty if there is no ``nm``, or if they are very many."""
    nm = shutil.which("nm")
    if nm is None:
        return ""
    run = subprocess.run([nm, "-D", "--defined-only", path], capture_output=True, text=True, check=False)  # noqa: S603 -- binutils
    rows = [line.split() for line in run.stdout.splitlines()]
    names = [row[-1].partition("@")[0] for row in rows if row[1:2] in (["T"], ["W"])]
    names = [name for name in dict.fromkeys(names) if not name.startswith("_")]
    return f"; it has {', '.join(names)}" if 0 < len(names) <= _MOST_NAMED else ""


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


def handles_forks(functions: Functions) -> bool:
    """Whether the library has the function by which it registers what is to be done at forks among its symbols."""
    place = _file_of(functions.bind_symbol(next(iter(functions.symbols.values())), ""))
    try:
        content = b"" if place is None else Path(os.fsdecode(place)).read_bytes()
    except OSError:
        return False
    return any(b"\0%b\0" % name in content for name in _FORK_HANDLERS)


def meant_for_preloading(functions: Functions) -> str:
    """The file of a library that defines malloc, where that of this process is another one; else empty.

    What it calls of its own by such a name is then that of the process, so that it frees what it has not allocated.
    """
    if functions.symbols.get("malloc") != "malloc":
        return ""
    own, of_process = (_file_of(library["malloc"]) for library in (functions.library, ctypes.CDLL(None)))
    return "" if own is None or own == of_process else os.path.abspath(os.fsdecode(own))  # noqa: PTH100 -- resolve() follows links


def loaded(address: LibraryAddress, *, deep: bool = False) -> Functions:
    """The functions of a library, which may be bound to its own functions first."""
    mode = getattr(os, "RTLD_DEEPBIND", 0) if deep else 0
    try:
        library = ctypes.CDLL(address.path, mode=ctypes.DEFAULT_MODE | mode)
    except OSError as error:
        here = "/" not in address.path and Path(address.path).exists()
        hint = f"; for the file in this folder write ./{address.path}" if here else ""
        raise TargetError(f"cannot load {address.path}: {error}{hint}") from None
    return Functions(library, symbols_of(address, library), ABIS[address.abi])


def target_of(functions: Functions) -> Target:
    """A target of functions of a library."""
    target = functions.abi.target(functions)
    if target.reset is None:
        return target
    target.reset()
    return replace(target, capabilities=replace(target.capabilities, reuse=False))
