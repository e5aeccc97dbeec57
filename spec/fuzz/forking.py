"""Forks while another thread allocates: a lock that it holds stays locked in the child for ever.

POSIX lets the child of a process with threads call only what is safe in signal handlers, and no allocator is.
So this is asked only of a target that promises more.

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
from ctypes import CDLL, byref, c_int, c_size_t
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model.errors import said

from ..engine.fork import seen
from .finding import TargetError
from .native_driver.building import compiled_busy

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .targets import Target

__all__ = ["Forked", "fork_often"]

_SIZES = (64, 1000, 64, 1000, 64, 1000, 64, 1 << 16)
_TURNS, _TURNS_IN_C, _OF_A_CHILD = 400, 20_000, 48
"""The most blocks of the thread beside each fork, four megabytes, and of a child."""
_FORKS_OF_AN_ARENA = 16
"""The most forks of a target that cannot be reset, and never lends again what was freed."""
_ENOUGH = 0.1
"""The seconds after which a child has shown that it can allocate, however slow its target is."""
_SECONDS, _FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 0.0005, 0.01
"""The time of a child, which needs a thousandth of it, and the pauses between two looks at it."""
_WHOLE = 4.0
"""The seconds after which a slow target is forked no more."""


class Forked(NamedTuple):
    """What forks came to: the children that ended, what was wrong with one, and why there were no more of them."""

    children: int
    problem: str = ""
    undone: str = ""


def fork_often(
    target: Target, count: int, moved: Callable[[], object], *, reuse: bool, reset: Callable[[], object] | None
) -> Forked:
    """Fork so often beside a thread that allocates; after each, reset a target that does not reuse what was freed."""
    end = time.monotonic() + _WHOLE
    count = count if reuse or reset else min(count, _FORKS_OF_AN_ARENA)
    for number in range(count):
        if time.monotonic() > end:
            return Forked(number)
        try:
            child = _fork(target)
        except (OSError, RuntimeError) as error:  # there is no room for a process or a thread
            return Forked(number, undone=said(error))
        if not _ends(child, moved):
            what = f"could not allocate and free within {_SECONDS:g} seconds"
            return Forked(number, f"child {number + 1}, forked while another thread allocated, {what}")
        if reset is not None:
            reset()
    return Forked(count)


def _fork(target: Target) -> int:
    """Fork beside a thread that allocates; the child serves, and ends."""
    with _busy(target), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        child = os.fork()
        if not child:
            _serve(target)
        return child


def _serve(target: Target) -> None:
    """Allocate and free in a child, and end it."""
    try:
        end = time.monotonic() + _ENOUGH
        for size in islice(cycle(_SIZES), _OF_A_CHILD):
            _turn(target, size)
            if time.monotonic() > end:
                break
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
    """Whether a child ends in time; else it is ended.

    What counts is the time that it works, and the time that it is seen to wait: on a busy machine it may get no
    processor for long, and what stops this process stops neither clock.
    """
    waited, pause = 0.0, _FIRST_PAUSE
    while waited < _SECONDS and (there := seen(child)).seconds < _SECONDS:
        moved()
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(pause)
        waited += pause * (there.state in ("S", ""))  # it waits for something else than a processor
        pause = min(2 * pause, _LONGEST_PAUSE)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@contextmanager
def _busy(target: Target) -> Generator[None]:
    """A thread that allocates and frees, from the beginning of the context to its end."""
    begun, ended = c_int(), c_int()
    work = _in_c(target) or partial(_in_python, target)
    thread = threading.Thread(target=work, args=(begun, ended), daemon=True)
    thread.start()
    while not begun.value and thread.is_alive():
        time.sleep(0)
    try:
        yield
    finally:
        ended.value = 1
        thread.join()


def _in_python(target: Target, begun: c_int, ended: c_int) -> None:
    for size in islice(cycle(_SIZES), _TURNS):
        _turn(target, size)
        begun.value = 1
        if ended.value:
            return


def _in_c(target: Target) -> Callable[[c_int, c_int], object] | None:
    """The same without the lock of the interpreter, for functions in C; None if there is no compiler."""
    if target.contracts is None:
        return None
    try:
        keep_busy = CDLL(str(compiled_busy())).keep_busy
    except TargetError:
        return None
    functions = target.contracts.allocate, target.contracts.free
    return lambda begun, ended: keep_busy(*functions, c_size_t(_TURNS_IN_C), byref(begun), byref(ended))
