"""The mode, as ``Caffe::mode()``: whether host memory is allocated page-locked for the GPU.

Caffe's mode is local to a thread and starts as CPU.  Here it is a context variable, so it also follows
tasks.  If it is not set, it is GPU, because people who ask for a device mostly want page-locked memory.
The model reads the mode in one effect only (``caffe.ALLOCATE_CPU``); ``Blob.copy_from`` reads it too.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from .errors import InvalidArgumentError
from .spelling import Spelled

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

__all__ = ["Mode", "current_mode", "set_mode", "using_mode"]


class Mode(Spelled, enum.Enum):
    """``Caffe::CPU`` and ``Caffe::GPU``."""

    CPU = 0
    GPU = 1


_mode: ContextVar[Mode | None] = ContextVar("syncedmem_mode", default=None)


def current_mode() -> Mode:
    """The mode in force here: the mode that was set, else ``Mode.GPU``."""
    return _mode.get() or Mode.GPU


def set_mode(mode: Mode | None) -> None:
    """Set the mode for this thread or task; None restores the default.

    A new task begins with the mode of whoever started it, a new thread with the default.

    Raises
    ------
    InvalidArgumentError
        If `mode` is neither a `Mode` nor None; the mode stays as it was.
    """
    _mode.set(_checked(mode))


def using_mode(mode: Mode | None) -> AbstractContextManager[None]:
    """Set the mode inside a ``with`` block, and restore the old mode after it, also after an exception.

    Raises
    ------
    InvalidArgumentError
        As `set_mode`, at once and not first at the ``with``.
    """
    return _using(_checked(mode))


@contextmanager
def _using(mode: Mode | None) -> Generator[None, None, None]:
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def _checked(mode: Mode | None) -> Mode | None:
    if mode is not None and not isinstance(mode, Mode):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
        raise InvalidArgumentError("mode", mode, "Mode.CPU, Mode.GPU or None")
    return mode
