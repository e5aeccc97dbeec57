"""C functions: those of a shared library, and ours that C can call."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError

from ..allocators.unraisable import print_unraisable

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    Library = str | PathLike[str] | ctypes.CDLL

__all__ = ["CFunctions", "foreign_function", "name_of", "or_null", "shared_library"]


def shared_library(library: Library) -> ctypes.CDLL:
    """Load a shared library.

    Parameters
    ----------
    library : str, path or ctypes.CDLL
        A name without a slash is searched by the dynamic linker; a path with a slash is used as it is.
    """
    if isinstance(library, ctypes.CDLL):
        return library
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise InvalidArgumentError("library", library, f"a shared library that can be loaded ({error})") from error


def foreign_function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of a shared library, with its types; other users of the same library are not affected."""
    try:
        return ctypes.CFUNCTYPE(result, *arguments)((name, library))
    except (AttributeError, TypeError):
        raise InvalidArgumentError("function", name, f"a function of {name_of(library)}") from None


def name_of(library: ctypes.CDLL) -> str:
    """The name or path under which a library was loaded."""
    return str(library._name)  # noqa: SLF001 -- there is no public attribute for it


class CFunctions:
    """Two functions that C can call.  They are kept until the process ends, because C may keep their addresses."""

    def __init__(self, allocate: Any, deallocate: Any) -> None:
        self.allocate = allocate
        self.deallocate = deallocate
        _keep_for_ever(self)

    @property
    def addresses(self) -> tuple[int, int]:
        """The addresses of the two functions, for libraries that take numbers."""
        return _address(self.allocate), _address(self.deallocate)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _keep_for_ever(thing: object) -> None:
    """Keep an object until the process ends, even while Python shuts down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def or_null(allocate: Callable[..., int]) -> Callable[..., int | None]:
    """A function for C, which returns the null pointer if there is no room.

    It never raises.  If a function raises, ctypes returns an arbitrary address to C.  Errors other than ``MemoryError``
    are printed.
    """

    def answer(*arguments: Any) -> int | None:
        try:
            return allocate(*arguments)
        except MemoryError:
            return None
        except BaseException as error:  # noqa: BLE001 -- the caller is C, which cannot handle an exception
            print_unraisable(error)
            return None

    return answer
