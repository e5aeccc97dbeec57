"""Functions of C: those of a shared library, and ours for C to call."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError

from .unraisable import print_unraisable

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    Library = str | PathLike[str] | ctypes.CDLL

__all__ = ["CFunctions", "foreign_function", "keep_for_ever", "name_of", "or_null", "shared_library"]


def shared_library(library: Library) -> ctypes.CDLL:
    """A shared library.

    Parameters
    ----------
    library : str, path or ctypes.CDLL
        A name is looked for as the dynamic linker does it, a path with a slash is taken as it is.

    Raises
    ------
    InvalidArgumentError
        If it cannot be loaded.
    """
    if isinstance(library, ctypes.CDLL):
        return library
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise InvalidArgumentError("library", library, f"a shared library that can be loaded ({error})") from error


def foreign_function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of a shared library, with its types; nobody else's view of the library changes.

    Raises
    ------
    InvalidArgumentError
        If there is none of this name.
    """
    try:
        return ctypes.CFUNCTYPE(result, *arguments)((name, library))
    except (AttributeError, TypeError):
        raise InvalidArgumentError("function", name, f"a function of {name_of(library)}") from None


def name_of(library: ctypes.CDLL) -> str:
    """What a library was loaded as."""
    return str(library._name)  # noqa: SLF001 -- it has no other name


class CFunctions:
    """Two functions for C to call, which stay until the process ends: nobody knows how long C has them.

    Attributes
    ----------
    allocate, deallocate : ctypes function pointers
    """

    def __init__(self, allocate: Any, deallocate: Any) -> None:
        self.allocate = allocate
        self.deallocate = deallocate
        keep_for_ever(self)

    @property
    def addresses(self) -> tuple[int, int]:
        """Where the two are, for those that take numbers."""
        return _address(self.allocate), _address(self.deallocate)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def keep_for_ever(thing: object) -> None:
    """Keep an object until the process ends, also while Python itself goes."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def or_null(allocate: Callable[..., int]) -> Callable[..., int | None]:
    """A function for C, which learns from the null pointer that there is no room.

    It never raises: what ctypes answers for a function that does is any address.  Errors other than ``MemoryError``
    are printed.
    """

    def answer(*arguments: Any) -> int | None:
        try:
            return allocate(*arguments)
        except MemoryError:
            return None
        except BaseException as error:  # noqa: BLE001 -- the caller is C
            print_unraisable(error)
            return None

    return answer
