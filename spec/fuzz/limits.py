"""Steps that take a target to its limits: more than there can be, again and again, and until it is full."""

from __future__ import annotations

import gc
import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncedmem.model.errors import said

from .finding import Wrong
from .journal import code
from .oracle import Oracle
from .targets import is_null

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PLAIN", "RESIZED", "ZEROED", "Limits"]

PLAIN, RESIZED, ZEROED = range(3)
"""How a `cycle` comes by its blocks."""

MEASURABLE = 1 << 20
"""Bytes that a process may grow by for other reasons."""

_STATM = Path("/proc/self/statm")

_MEASUREMENTS = 3
"""A process grows for other reasons too, now and then; what leaks makes it grow every time."""

_MOST_BLOCKS = 4096
"""As many as a `fill` takes."""


class Limits(Oracle):
    """The steps of one run that go to the limits; `Driver` has the others."""

    def request_too_much(self, size: int) -> bool:
        """Ask for more than there can be."""
        self._note(code("request_too_much"), size)
        self._expect_refusal(lambda: self._take(size), f"a request for {size} bytes")
        return True

    def request_too_many(self, count: int, size: int) -> bool:
        """Ask for so many blocks at once that their bytes cannot be counted."""
        take = self.target.take_many
        if take is None:
            return False
        self._note(code("request_too_many"), count, size)
        self._expect_refusal(lambda: take(count, size), f"a request for {count} times {size} bytes")
        return True

    def resize_too_much(self, block: int, size: int) -> bool:
        """Ask for a block to be larger than there can be; it stays as it is."""
        resize, old = self.target.resize, self.blocks.get(block)
        if resize is None or old is None or not old.size:
            return False
        self._note(code("resize_too_much"), block, size)
        self._look(old)
        self._resized = True
        self._expect_refusal(lambda: resize(old.handle, size, old.size), f"a request to resize {old} to {size} bytes")
        self._look(old)
        return True

    def _expect_refusal(self, take: Callable[[], Any], request: str) -> None:
        """Ask for what cannot be had."""
        self.checked["A06-out-of-memory"] += 1
        try:
            handle = take()
        except Exception as error:
            if not self.capabilities.is_out_of_memory(error):
                raise Wrong(
                    "A06-out-of-memory", f"{request}: {said(error)}; {self._promised_errors()} was promised"
                ) from error
            return
        if not is_null(handle):
            raise Wrong("A06-out-of-memory", f"{request} was met, with {handle!r:.60}")
        if "null" not in self.capabilities.out_of_memory:
            raise Wrong("A06-out-of-memory", f"{request} gave null; {self._promised_errors()} was promised")

    def cycle(self, size: int, count: int, how: int = PLAIN) -> bool:
        """Ask for a block and give it back, many times; the memory of the process must not grow by all of them.

        Parameters
        ----------
        size, count : int
        how : {PLAIN, RESIZED, ZEROED}
            Whether the block is asked for as it is, as half of it, which then grows, or as zeros.
        """
        if (how == RESIZED and self.target.resize is None) or (how == ZEROED and self.target.take_zeroed is None):
            return False
        self._note(code("cycle"), size, count, how)
        measured = count - count // 4
        if not self._turn_over(size, count - measured, how):  # fills what caches there are
            return False
        growth = 0
        for _ in range(_MEASUREMENTS):
            before = _resident()
            if not self._turn_over(size, measured, how):
                return False
            growth = _resident() - before
            if before:
                self.checked["A16-no-leaks"] += 1
            if not before or growth <= max(size * measured // 16, MEASURABLE):
                return True
            gc.collect()  # what waits for the collector is not lost
        raise Wrong("A16-no-leaks", f"{measured} times {size} bytes, each given back: the process grew by {growth}")

    def _turn_over(self, size: int, count: int, how: int) -> bool:
        """Ask for a block and give it back so often; False where it is refused."""
        take: Any = self.target.take_zeroed if how == ZEROED else self._take
        first = max(size // 2, 1) if how == RESIZED else size
        for _ in range(count):
            if not self._obtain(take, -1, first, 0, 0, zeroed=how == ZEROED):
                return False
            if how == RESIZED and not self._resize(self.blocks[-1], size):
                self._give_back(self.blocks.pop(-1), 0)
                return False
            self._give_back(self.blocks.pop(-1), 0)
            self.journal.move()
        return True

    def fill(self, size: int) -> bool:
        """Take blocks until the limit is reached, and give them all back."""
        if not self.limit or not size:
            return False
        self._note(code("fill"), size)
        count = 0
        while count < _MOST_BLOCKS and self._obtain(self._take, -1 - count, size, 0, 0):
            count += 1
            self.journal.move()
        for number in range(-count, 0):
            self._give_back(self.blocks.pop(number), 0)
        return True


def _resident() -> int:
    """The bytes of this process that are in memory; 0 where nobody says."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
