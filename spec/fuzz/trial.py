"""The steps that can be taken on a target, each checked by the oracle.

A step that has nothing to act on (a free of a block that was never had) does nothing, so that any part of a program
is a program too.
"""

from __future__ import annotations

import gc
import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncedmem.model.errors import said

from .finding import Wrong
from .journal import code
from .ledger import Block
from .oracle import Oracle
from .targets import address_of, is_null

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .finding import Step

__all__ = ["PLAIN", "RESIZED", "ZEROED", "Trial"]

PLAIN, RESIZED, ZEROED = range(3)
"""How a `cycle` comes by its blocks."""

_ALLOCATE, _FREE, _CHECK = code("allocate"), code("free"), code("check")
MEASURABLE = 1 << 20
"""Bytes that a process may grow by for other reasons."""

_STATM = Path("/proc/self/statm")

_MEASUREMENTS = 3
"""A process grows for other reasons too, now and then; what leaks makes it grow every time."""

_MOST_BLOCKS = 4096
"""As many as a `fill` takes."""


class Trial(Oracle):
    """One run against one target; the methods are the names in `OPERATIONS`.

    Parameters
    ----------
    target : Target
    capabilities : Capabilities
        What it promises.
    journal : Journal or None
        Where each step is written down before it is taken.
    intervals : Intervals or None
        Shared ones, where several trials have one target.
    """

    # --- what can be done; the names are those of OPERATIONS

    def allocate(self, block: int, size: int, alignment: int = 0, stream: int = 0) -> bool:
        """Ask for memory; True if there is a new block of that number."""
        if block in self.blocks:
            return False
        self._note(_ALLOCATE, block, size, alignment, stream)
        if alignment or stream:
            return self._obtain(self._taking(alignment, stream), block, size, alignment, stream)
        return self._obtain(self._take, block, size, 0, 0)

    def free(self, block: int, stream: int = 0) -> bool:
        """Give a block back, after a look at what is in it."""
        found = self.blocks.pop(block, None)
        if found is None:
            return False
        self._note(_FREE, block, stream)
        self._give_back(found, stream)
        return True

    def check(self, block: int) -> bool:
        """Look whether a block still holds what was written."""
        found = self.blocks.get(block)
        if found is None:
            return False
        self._note(_CHECK, block)
        self._look(found)
        return True

    def calloc(self, block: int, size: int) -> bool:
        """Ask for memory that is zero."""
        take = self.target.take_zeroed
        if take is None or block in self.blocks:
            return False
        self._note(code("calloc"), block, size)
        return self._obtain(take, block, size, 0, 0, zeroed=True)

    def resize(self, block: int, size: int) -> bool:
        """Ask for a block to be larger or smaller; what it holds stays."""
        old = self.blocks.get(block)
        if self.target.resize is None or old is None or not size or not old.size:
            return False
        self._note(code("resize"), block, size)
        return self._resize(old, size)

    def _resize(self, old: Block, size: int) -> bool:
        """Ask for a block to have another size; False where it is refused."""
        resize: Any = self.target.resize
        self._look(old)
        self._resized = True
        if old.address:
            self._intervals.remove(old)  # before the call: another thread may get the address at once
        try:
            handle = resize(old.handle, size, old.size)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            self._refusal(size, error)
            handle = None
        if is_null(handle):
            if old.address:
                self._intervals.add(old)
            self._look(old)  # a resize that fails leaves the block alone
            return False
        del self.blocks[old.number]
        self._bytes -= old.size
        new = Block(old.number, handle, address_of(handle), size, old.key, old.stream)
        self.checked["A14-resize-keeps"] += 1
        if difference := self._reach(new).differs(new, min(size, old.size)):
            raise Wrong("A14-resize-keeps", f"{old} resized to {size} bytes: {difference}")
        self._admit(new, 0)
        return True

    def copy(self, block: int, source: int) -> bool:
        """Copy as much as fits from one block to another."""
        copy, target, origin = self.target.copy, self.blocks.get(block), self.blocks.get(source)
        if copy is None or target is None or origin is None or target is origin:
            return False
        self._note(code("copy"), block, source)
        size = min(target.size, origin.size)
        self.checked["A15-copies"] += 1
        try:
            copy(origin.handle, target.handle, size)
        except Exception as error:
            raise Wrong("A15-copies", f"copying {size} bytes: {said(error)}") from error
        copied = Block(block, target.handle, target.address, target.size, origin.key, 0)
        rest = Block(block, target.handle, target.address, target.size, target.key, 0)
        access = self._reach(target)
        if difference := access.differs(copied, size) or self._rest_differs(rest, size):
            raise Wrong("A15-copies", f"{size} bytes of {origin} copied to {target}: {difference}")
        access.fill(target)
        self._look(origin)
        return True

    def copy_nothing(self) -> bool:
        """Copy zero bytes from null to null."""
        if self.target.copy is None:
            return False
        self._note(code("copy_nothing"))
        self.checked["A15-copies"] += 1
        try:
            self.target.copy(None, None, 0)
        except Exception as error:
            raise Wrong("A15-copies", f"copying zero bytes from null to null: {said(error)}") from error
        return True

    def free_again(self, block: int) -> bool:
        """Give back what was given back, where something is promised of that."""
        return self.misuses.free_again(block)

    def free_foreign(self) -> bool:
        """Give back what was never had, where something is promised of that."""
        return self.misuses.free_foreign()

    def free_wrong_size(self, block: int, size: int) -> bool:
        """Give a block back with another size than its own, where something is promised of that."""
        return self.misuses.free_wrong_size(block, size)

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

    def compare(self) -> bool:
        """Compare what the target says of itself with the ledger."""
        self._note(code("compare"))
        self._compare(at_end=False)
        return True

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

    def work(self, block: int, stream: int) -> bool:
        """Queue work on a block: from now on its stream uses it."""
        if self.target.give_on is None or block not in self.blocks:
            return False
        self._note(code("work"), block, stream)
        self._stream(stream).queued += 1
        return True

    def finish(self, stream: int) -> bool:
        """Let the work of a stream happen."""
        self._note(code("finish"), stream)
        self._stream(stream).synchronize()
        return True

    # --- how it ends

    def run(self, program: Iterable[Step]) -> None:
        """Take all steps, then end.

        Raises
        ------
        Wrong
            At the first step that shows something wrong.
        """
        for step in program:
            self.perform(step)
        self.end()

    def perform(self, step: Step) -> bool:
        """Take one step; False if there was nothing for it to act on."""
        done: bool = getattr(self, step.operation)(*step.numbers)
        return done

    def end(self) -> None:
        """Give everything back, compare, and close what was made for this run.

        Raises
        ------
        Wrong
            If something is not as it should be.
        """
        for stream in self._streams.values():
            stream.synchronize()
        self._compare(at_end=False)
        for number in list(self.blocks):
            self.free(number)
        self.close()


def _resident() -> int:
    """The bytes of this process that are in memory; 0 where nobody says."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
