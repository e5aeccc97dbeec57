"""Memory of another library: `Source` takes it, and a `Grant` is a block of it.

A `Grant` is an address with the one call that gives the block back.  The array over it keeps the grant, and the block
goes back when the last array over it is gone: `release` promises that a late reader finds old bytes.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from syncedmem.model import AllocationError, InvalidArgumentError, ReleaseError, SyncedMemoryError

from ..allocators.failures import reporting
from ..allocators.pointers import no_room

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Grant", "Source", "check_calls"]


class Grant:
    """A block of another library's memory, which is given back when this object is gone.

    At the end of the process it is not given back: the library may be gone by then, and the memory goes with the
    process.

    Attributes
    ----------
    address : int
    size : int
        In bytes.
    """

    __slots__ = ("__weakref__", "address", "size")

    def __init__(self, name: str, address: int, size: int, give_back: Callable[[], object]) -> None:
        self.address: int = address
        self.size: int = size
        weakref.finalize(self, _give_back, name, give_back).atexit = False

    @property
    def __array_interface__(self) -> dict[str, object]:
        """With this attribute NumPy makes an array over the block, which keeps this object alive."""
        return {"version": 3, "data": (self.address, False), "shape": (self.size,), "typestr": "|u1"}


def _give_back(name: str, give_back: Callable[[], object]) -> None:
    try:
        give_back()
    except Exception as error:
        # This runs in a finaliser, where nobody can catch it: Python prints it.
        raise ReleaseError("deallocate", name, error) from error


class Source:
    """The way in which a library allocates memory.

    Parameters
    ----------
    name : str
        Its name in errors.
    take : callable
        ``take(byte_size)`` returns an address, and a function that gives the memory back; that function is called once.
    full : callable
        Returns whether an error of `take` means that there is no room; a ``MemoryError`` always does.
    """

    def __init__(
        self,
        name: str,
        take: Callable[[int], tuple[int, Callable[[], object]]],
        full: Callable[[Exception], bool] = lambda _: False,
    ) -> None:
        self.name = name
        self._take = take
        self._full = full

    def grant(self, byte_size: int) -> Grant:
        """Take memory.

        Raises
        ------
        AllocationError
            If there is no room, or the address is null.
        DeviceError
            If the library fails for another reason.
        """
        with reporting("allocate", self):
            try:
                address, give_back = self._take(byte_size)
            except SyncedMemoryError:
                raise
            except Exception as error:
                if isinstance(error, MemoryError) or self._full(error):
                    raise no_room(self.name, byte_size, error) from error
                raise
            if not address:
                raise AllocationError(self.name, byte_size, "the address is null")
            return Grant(self.name, address, byte_size, give_back)


def check_calls(argument: str, theirs: object, calls: tuple[str, ...], expected: str) -> None:
    """Refuse an object that lacks one of the methods `calls`, or is a class."""
    if isinstance(theirs, type) or not all(callable(getattr(theirs, call, None)) for call in calls):
        raise InvalidArgumentError(argument, theirs, expected)
