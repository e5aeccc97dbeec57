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

import numpy as np

from ..allocators.base import lends_new_blocks
from ..allocators.pointers import writing
from ..allocators.views import device_viewer

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from ..allocators.pointers import HostArray

__all__ = ["Views", "counted_views", "device_views", "host_views"]

_NOTHING = np.frombuffer(b"", np.uint8)


class _Anchor:
    """An object to which the views of a side refer, and what makes them."""

    __slots__ = ("_thing",)

    def __init__(self, thing: object) -> None:
        self._thing = thing

    @property
    def references(self) -> int:
        """How many references there are to it."""
        return getrefcount(self._thing)


_ALONE = _Anchor(object()).references + 1
"""The references to an anchor if there is no view: what makes the views has one.  Counted here, because each Python has
its own way of counting the call."""

_COUNTS = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether this Python counts references exactly."""


class Views:
    """What makes the views of a side.

    Parameters
    ----------
    read, write : callable
        They make a new view of the memory, to read and to write.
    readers, writers : object or None
        To what the views of each kind refer, and nothing else does but the callable.  None: it is not known who has
        one.
    """

    __slots__ = ("_readers", "_writers", "read", "write")

    def __init__(
        self, read: Callable[[], Any], write: Callable[[], Any], readers: object = None, writers: object = None
    ) -> None:
        self.read: Callable[[], Any] = read
        self.write: Callable[[], Any] = write
        counted = _COUNTS and readers is not None and writers is not None
        self._readers = _Anchor(readers) if counted else None
        self._writers = _Anchor(writers) if counted else None

    @property
    def may_be_read(self) -> bool:
        """Whether somebody may have a view to read."""
        return self._readers is None or self._readers.references > _ALONE

    @property
    def may_be_written(self) -> bool:
        """Whether somebody may have a view to write."""
        return self._writers is None or self._writers.references > _ALONE


def host_views(ptr: HostArray) -> Views:
    """Views of host memory."""
    return Views(_frozen(ptr).view, writing(ptr, ptr.view))


def device_views(device: Any, ptr: Pointer, *, checked: bool) -> Views:
    """Views of the memory of a device."""
    to_read = device_viewer(device, device.read_only(ptr), checked=checked)
    return Views(to_read, device_viewer(device, ptr, checked=checked))


def counted_views(owner: Any, ptr: Pointer) -> Views | None:
    """Views of a block of which nobody has one yet; None if its owner cannot tell who has one, or who had it before."""
    if not lends_new_blocks(owner):
        return None
    to_read, readers = owner._anchored(ptr, written=False)  # noqa: SLF001 -- as other questions of checked mode
    to_write, writers = owner._anchored(ptr, written=True)  # noqa: SLF001 -- as above
    return Views(owner.viewer(to_read), owner.viewer(to_write), readers, writers)


def _frozen(array: HostArray) -> HostArray:
    """The same bytes, read-only for good: no view of it can be made writeable again."""
    # Any: NumPy's stubs of this release do not declare that arrays have the buffer interface.
    return np.frombuffer(memoryview(cast("Any", array)).toreadonly(), np.uint8) if array.size else _NOTHING
