"""A library's way of handing out memory: `Source`.

What a library hands out is a `Grant`: an address with the one call that gives it back.  The array over it keeps the
grant, and the grant goes back when the last array over it does: `release` promises that a late reader finds old bytes.
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
    """A block of somebody else's memory, given back when this object goes.

    At the end of the process it is not: the library may be gone by then, and the memory goes with the process.

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
        """How NumPy makes an array over the block that keeps this object."""
        return {"version": 3, "data": (self.address, False), "shape": (self.size,), "typestr": "|u1"}


def _give_back(name: str, give_back: Callable[[], object]) -> None:
    try:
        give_back()
    except Exception as error:
        # Nobody can catch it here: Python prints it.
        raise ReleaseError("deallocate", name, error) from error


class Source:
    """A library's way of handing out memory.

    Parameters
    ----------
    name : str
        As errors show it.
    take : callable
        ``take(byte_size)`` returns an address and a function that gives it back; that function is called once.
    full : callable
        Whether an error of `take` says that there is no room; a ``MemoryError`` always does.
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
            If the library fails otherwise.
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
    """Refuse an object without the methods that are going to be called.

    Raises
    ------
    InvalidArgumentError
    """
    if isinstance(theirs, type) or not all(callable(getattr(theirs, call, None)) for call in calls):
        raise InvalidArgumentError(argument, theirs, expected)
