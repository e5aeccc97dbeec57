"""Forks while another thread allocates: a lock that it holds stays locked in the child for ever.

Only one thread calls the target, so it need not be thread-safe.  One without locks may be torn in the child; therefore
only a child that does not come to its end says something: a crash does not.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .targets import Target

__all__ = ["fork_often"]

_SIZES = (64, 1000, 1 << 16)
_TURNS = 16
_SECONDS, _PAUSE = 1.5, 0.0005
"""The time of a child, which needs a thousandth of it, and the pause between two looks at it."""


def fork_often(target: Target, count: int, moved: Callable[[], object]) -> str:
    """Fork so often beside a thread that allocates; return what was wrong with a child, or an empty text."""
    with _busy(target), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        for number in range(1, count + 1):
            child = os.fork()
            if not child:
                _serve(target)
            if not _ends(child, moved):
                what = f"could not allocate and free within {_SECONDS:g} seconds"
                return f"child {number}, forked while another thread allocated, {what}"
    return ""


def _serve(target: Target) -> None:
    """Allocate and free in a child, and end it."""
    try:
        for size in _SIZES * _TURNS:
            _turn(target, size)
    finally:
        os._exit(0)


def _turn(target: Target, size: int) -> None:
    """Allocate and free once; a refusal is no matter here."""
    try:
        handle = target.take(size)
        if handle is not None:
            target.give(handle, size)
    except Exception:  # noqa: BLE001, S110 -- anything may come from a target, and others judge it
        pass


def _ends(child: int, moved: Callable[[], object]) -> bool:
    """Whether a child ends in time; else it is ended."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        moved()
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(_PAUSE)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@contextmanager
def _busy(target: Target) -> Generator[None]:
    """A thread that allocates and frees all the time."""
    ended = threading.Event()

    def work() -> None:
        for size in cycle(_SIZES):
            if ended.is_set():
                return
            _turn(target, size)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
