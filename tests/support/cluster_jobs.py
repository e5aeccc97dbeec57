"""Runs of one seed that the tests of clusters take: each is called with the options and a seed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from syncedmem.model import FileAccessError

LOST = 1
"""The seed whose process is ended, or whose worker."""


def square(options: int, seed: int) -> tuple[int, int]:
    """Every answer is another one; ``options`` operations."""
    return seed * seed, options


def refused(options: Any, seed: int) -> tuple[int, int]:
    raise FileAccessError(f"{options}/{seed}", "No space left on device", 28)


def failed(options: Any, seed: int) -> tuple[int, int]:
    raise ZeroDivisionError(f"{options}:\n{seed}")


def ends(options: str, seed: int) -> tuple[int, int]:
    """Its process is ended, the first time, or with the options ``"always"`` every time."""
    if seed == LOST and (options == "always" or noted(Path(options), seed) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return seed, 1


def meets(options: str, seed: int) -> tuple[int, int]:
    """Tell the test of each beginning of one seed, by its worker's number, and wait for the test."""
    time = noted(Path(options), seed)
    if seed == LOST:
        # A pipe for each time: the next worker may begin before this process has ended, and its pipe.
        with Path(options, f"begun-{time}").open(
            "w", encoding="utf-8"
        ) as begun:  # open as long as this process is there
            begun.write(f"{os.getppid()}\n")
            begun.flush()
            Path(options, "go").read_text(encoding="utf-8")
    return seed, 1


def noted(folder: Path, seed: int) -> int:
    """Note that a seed began; return how often it has."""
    with (folder / f"seed-{seed}").open("a", encoding="utf-8") as file:
        file.write("begun\n")
    return times(folder, seed)


def times(folder: Path, seed: int) -> int:
    return len((folder / f"seed-{seed}").read_text(encoding="utf-8").splitlines())
