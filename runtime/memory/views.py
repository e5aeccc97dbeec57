"""`Views`: what makes the views of a side, and whether somebody has one still.

In checked mode all views of a side, and whatever is made of them, refer to one object to which nothing else refers but
what makes them: there is one for views to read, and one for views to write.  So its references tell whether somebody
can still read the side, or write to it, and no byte has to be looked at to know it.  Frames of a debugger, exceptions
that are kept, and generators have references too: where there are more than views that are used, bytes are compared in
vain, and nothing else happens.
"""

from __future__ import annotations

import platform
import sysconfig
from sys import getrefcount
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

import numpy as np

from ..allocators.base import lends_new_blocks
from ..allocators.pointers import writing
from ..allocators.views import device_viewer

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from ..allocators.pointers import HostArray

__all__ = ["Lender", "Views", "counted_views", "device_views", "host_views"]

_NOTHING = np.frombuffer(b"", np.uint8)


_COUNTS = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether this Python counts references exactly."""


class Lender:
    """What makes views of one kind.

    Parameters
    ----------
    make : callable
        It makes a new view.
    anchor : object
        To what the views refer; nothing else does but the callable, once.  None: it is not known who has a view.
    owner : DeviceAllocator or None
        What has made the anchor.
    """

    __slots__ = ("__weakref__", "_owner", "_parts", "anchor", "make")

    def __init__(self, make: Callable[[], Any], anchor: object = None, owner: Any = None) -> None:
        self.make: Callable[[], Any] = make
        self.anchor: Any = anchor if _COUNTS else None
        self._owner = owner
        self._parts: list[ref[Lender]] = []

    @property
    def references(self) -> int:
        """How many references there are to the anchor."""
        return getrefcount(self.anchor)

    @property
    def counts(self) -> bool:
        """Whether it is known who has a view."""
        return self.anchor is not None

    @property
    def is_out(self) -> bool:
        """Whether somebody may have a view."""
        if self.anchor is None:
            return True
        if self.references <= _ALONE:  # so there is no part either, which would have one
            return False
        parts = [part for known in self._parts if (part := known()) is not None]
        return self.references > _ALONE + len(parts) or any(part.is_out for part in parts)

    def part(self, view: Pointer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Lender:
        """A lender of the first bytes as elements of a type; while it is there, it counts as no view.

        Parameters
        ----------
        view : array
            A view that was made here.
        dtype : numpy.dtype
        shape : tuple of int
        """
        array, anchor = self._owner._anchored(view, written=False, dtype=dtype, shape=shape)  # noqa: SLF001 -- as below
        part = Lender(self._owner.viewer(array), anchor, self._owner)
        self._parts = [*(known for known in self._parts if known() is not None), ref(part)]
        return part


class Views:
    """What makes the views of a side: one lender of those to read, and one of those to write."""

    __slots__ = ("reader", "writer")

    def __init__(self, reader: Lender, writer: Lender) -> None:
        self.reader: Lender = reader
        self.writer: Lender = writer


_ALONE = Lender(int, object()).references + 1
"""The references to an anchor if there is no view; what makes views has one.  They are counted here, because each
Python counts the call in its own way."""


def host_views(ptr: HostArray) -> Views:
    """Views of host memory."""
    return Views(Lender(_frozen(ptr).view), Lender(writing(ptr, ptr.view)))


def device_views(device: Any, ptr: Pointer, *, checked: bool) -> Views:
    """Views of the memory of a device."""
    to_read = device_viewer(device, device.read_only(ptr), checked=checked)
    return Views(Lender(to_read), Lender(device_viewer(device, ptr, checked=checked)))


def counted_views(owner: Any, ptr: Pointer) -> Views | None:
    """Views of a block of which nobody has one yet; None if its owner cannot tell who has one, or who had it before."""
    if not lends_new_blocks(owner):
        return None
    return Views(_counted(owner, ptr, written=False), _counted(owner, ptr, written=True))


def _counted(owner: Any, ptr: Pointer, *, written: bool) -> Lender:
    array, anchor = owner._anchored(ptr, written=written)  # noqa: SLF001 -- as other questions of checked mode
    return Lender(owner.viewer(array), anchor, owner)


def _frozen(array: HostArray) -> HostArray:
    """The same bytes, read-only for good: no view of it can be made writeable again."""
    # Any: NumPy's stubs of this release do not declare that arrays have the buffer interface.
    return np.frombuffer(memoryview(cast("Any", array)).toreadonly(), np.uint8) if array.size else _NOTHING
