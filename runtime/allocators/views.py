"""`device_viewer`: where making a view takes long, a view that nobody has any more is returned again.

A new ``cupy.ndarray`` takes twenty times as long as an empty call, and a view that only its maker has is as good as a
new one.  Memories that are checked have none of this: they count the references to their bytes, and this is one.
"""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

from syncedmem.model.interface import DeviceType

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["device_viewer"]

_ALONE = 3
"""The references to a view that nobody else has: its maker's, one on the stack, and the argument of the question.  A
Python that counts fewer never says so, and then every view is new."""


def device_viewer(device: Any, ptr: Any, *, checked: bool) -> Callable[[], Any]:
    """A function that makes views of an array of a device."""
    make: Callable[[], Any] = device.viewer(ptr)
    if checked or getattr(device, "device_type", DeviceType.UNKNOWN) != DeviceType.CUDA:
        return make
    last, shape = make(), ptr.shape
    # In place a row can only get more axes, and to ask for their number takes half as long as to ask for the shape.
    is_row = ptr.ndim == 1

    def view() -> Any:
        nonlocal last
        # A name of its own, so that of two threads that ask at once neither finds the view alone.
        now = last
        if getrefcount(now) == _ALONE and (now.ndim == 1 if is_row else now.shape == shape):
            return now
        last = fresh = make()
        return fresh

    return view
