"""The processes that a process has begun, also those that have left its session: they end with it, on Linux."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["adopt_orphans", "end_children", "end_descendants", "end_with_parent"]

_PARENT_DEATH, _SUBREAPER = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER


def adopt_orphans() -> None:
    """Have this process become the parent of all its descendants that lose theirs."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_with_parent() -> None:
    """Have this process end when the thread ends that has started it, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)


def end_children() -> None:
    """End all descendants of this process, which adopts orphans, and wait for them."""
    while children := _children(os.getpid()):
        for child in children:
            os.kill(child, signal.SIGKILL)  # it may have ended, but nobody has waited for it
        os.waitpid(-1, 0)  # what it leaves is a child then


def end_descendants(process: int) -> None:
    """End all descendants of another process."""
    ended: set[int] = set()
    while new := _descendants(process) - ended:
        ended |= new
        for each in new:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


def _descendants(process: int) -> set[int]:
    descendants: set[int] = set()
    waiting = [process]
    while waiting:
        children = _children(waiting.pop())
        descendants.update(children)
        waiting += children
    return descendants


def _children(process: int) -> list[int]:
    children: list[int] = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            children += map(int, tasks.read_text(encoding="ascii").split())
    return children
