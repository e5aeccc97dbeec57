"""Jobs for other processes, which find them by name."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def counted(name: str, *, progress: Callable[[str, int], None]) -> tuple[str, int]:
    """Report two stages, and more cases than anybody wants to see."""
    for stage in ("first", "second"):
        for case in range(1000):
            progress(stage, case)
    return name, os.getpid()


def various(name: str, *, progress: Callable[[str, int], None]) -> str:
    """Does what its name says."""
    if name == "sleep before":
        time.sleep(600)
    progress("begun", 7)
    if name == "grow":
        bytearray(16 << 30)
    if name == "nap":
        time.sleep(1)
    if name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "leave":
        os._exit(3)
    if name == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    if name == "sleep":
        time.sleep(600)
    return name
