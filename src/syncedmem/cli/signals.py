"""Signals that end a command: each ends it as Ctrl-C does, so that what it has started ends with it."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

__all__ = ["interruptible"]


@contextmanager
def interruptible() -> Generator[list[signal.Signals]]:
    """Have SIGINT and SIGTERM raise ``KeyboardInterrupt(number)``, the first of them; all come into the list."""
    signals: list[signal.Signals] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        signals.append(signal.Signals(number))
        if not signals[1:]:
            raise KeyboardInterrupt(number)

    if threading.current_thread() is not threading.main_thread():  # only that one may have handlers
        yield signals
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
