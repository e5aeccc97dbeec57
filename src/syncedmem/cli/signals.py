"""Signals that end a command: each ends it as Ctrl-C does, so that what it has started ends with it."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from syncedmem.interrupts import ENDING, listen

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

__all__ = ["interruptible"]


@contextmanager
def interruptible() -> Generator[list[signal.Signals]]:
    """Have the first signal that ends a command raise ``KeyboardInterrupt(number)``; all come into the list.

    SIGHUP, which nobody sends but a terminal that closes, stays ignored in a job of ``nohup``.
    """
    signals: list[signal.Signals] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        signals.append(signal.Signals(number))
        if not signals[1:]:
            raise KeyboardInterrupt(number)

    if threading.current_thread() is not threading.main_thread():  # only that one may have handlers
        yield signals
        return
    ignored = {number for number in ENDING if number.name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN}
    before = {number: signal.signal(number, interrupt) for number in ENDING if number not in ignored}
    others = listen(signals)
    try:
        yield signals
    finally:
        listen(others)
        for number, handler in before.items():
            signal.signal(number, handler)
