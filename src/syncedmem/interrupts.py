"""What a signal that ends a command does: one line, the status of a shell, and no verdict.

It imports next to nothing, so that it comes before everything that takes long to import.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["BY_SIGNAL", "ENDING", "check", "end_at_once", "listen", "say"]

BY_SIGNAL = 128
"""The exit status of a command that a signal ended, without the number of the signal; as a shell has it."""

ENDING = tuple(number for number in signal.Signals if number.name in ("SIGHUP", "SIGINT", "SIGTERM"))
"""The signals by which users, shells and services end a command; Windows has no SIGHUP."""

_told: list[int] = []
"""The signals of which something was said: another one then ends the process without a second line."""


_received: list[signal.Signals] = []
"""The signals that the command which is running has received."""


def listen(signals: list[signal.Signals]) -> list[signal.Signals]:
    """Let `check` look at a list of received signals, in place of another one, which is returned."""
    global _received
    before, _received = _received, signals
    return before


def check() -> None:
    """Raise the interrupt once more, if there was one.

    It may not have ended what it came into: another exception that is raised while that is cleaned up replaces it, and
    what it breaks off may look like a mistake of a port.  So whoever is about to accuse somebody calls this.

    Raises
    ------
    KeyboardInterrupt
    """
    if _received:
        raise KeyboardInterrupt(_received[0])


def end_at_once() -> None:
    """Have `ENDING` signals end this process from now on, while nothing has been started that must end before it.

    A signal that is ignored, as in a job of `nohup`, and one that somebody else handles, stays as it is.  When all is
    done but for what Python takes apart of itself, Ctrl-C comes too late: nobody could say a word, so it is ignored.
    """
    atexit.register(_too_late)  # what is registered first is called last
    for number in ENDING:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, _end)


def _too_late() -> None:
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def say(number: int) -> int:
    """Say by which signal a command was interrupted; return its exit status."""
    _told.append(number)
    sys.stderr.write(_line(number))
    return BY_SIGNAL + number


def _line(number: int) -> str:
    return f"syncedmem: interrupted by {signal.Signals(number).name}\n"


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    if not _told:
        _told.append(number)
        with suppress(OSError):  # not by sys.stderr, which may be in the middle of something, or not be there any more
            os.write(2, _line(number).encode())
    os._exit(BY_SIGNAL + number)
