"""The steps that can be taken on a target, each checked by the oracle.

A step that has nothing to act on (a free of a block that was never had) does nothing, so that any part of a program
is a program too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model.errors import said

from .finding import Wrong
from .journal import code
from .limits import Limits
from .shadow_heap import Block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .finding import Step

__all__ = ["Driver"]

_ALLOCATE, _FREE, _CHECK = code("allocate"), code("free"), code("check")


class Driver(Limits):
    """One run against one target; the methods are the names in `OPERATIONS`.

    Parameters
    ----------
    target : Target
    capabilities : Capabilities
        What it promises.
    journal : Journal or None
        Where each step is written down before it is taken.
    intervals : Intervals or None
        Shared ones, where several drivers have one target.
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

    def compare(self) -> bool:
        """Compare what the target says of itself with the ledger."""
        self._note(code("compare"))
        self._compare(at_end=False)
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
