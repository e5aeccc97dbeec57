"""The steps that can be taken on a target, each judged by the oracle.

A step that has nothing to act on (a free of a block that was never had) does nothing, so that any part of a program
is a program too.
"""

from __future__ import annotations

import gc
import mmap
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.finding import Violation
from .journal import Journal, code
from .oracle import Oracle
from .shadow_heap import Block
from .streams import Stream
from .targets import address_of, is_null

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .access import HostAccess
    from .capabilities import Capabilities, Misuse
    from .finding import Step
    from .shadow_heap import Intervals
    from .targets import Target

__all__ = ["PLAIN", "RESIZED", "ZEROED", "Driver"]

PLAIN, RESIZED, ZEROED = range(3)
"""How a `cycle` comes by its blocks."""

_ALLOCATE, _FREE, _CHECK = code("allocate"), code("free"), code("check")

_KEYS = 40503
"""Odd, so that as many blocks as a tile has bytes get as many different keys."""

_ATTEMPTS = 16
"""How often a request that should be met is made again: some refuse now and then, on purpose."""

_REMEMBERED = 64
"""Blocks that were given back, and may be given back again."""

_MEASUREMENTS = 3
"""A process grows for other reasons too, now and then; what leaks makes it grow every time."""

_MOST_BLOCKS = 4096
"""As many as a `fill` takes."""

_STATM = Path("/proc/self/statm")


class Driver:
    """One run against one target; the methods are the names in `OPERATIONS`.

    Parameters
    ----------
    target : Target
    capabilities : Capabilities
        What it promises.
    journal : Journal or None
        Where each step is written down before it is taken.
    intervals, access
        As `Oracle` takes them.

    Attributes
    ----------
    oracle : Oracle
        The judge of every step.
    blocks : dict of int to Block
        What is in use, by number: those of the oracle's shadow heap.
    """

    def __init__(
        self,
        target: Target,
        capabilities: Capabilities,
        journal: Journal | None = None,
        intervals: Intervals | None = None,
        access: HostAccess | None = None,
    ) -> None:
        self.target = target
        self.capabilities = capabilities
        self.journal = journal if journal is not None else Journal(capacity=1 << 16)
        self.oracle = Oracle(target, capabilities, intervals, access)
        self.blocks = self.oracle.heap.blocks
        self._note = self.journal.note
        self._take = target.take
        self._give = target.give
        self._admit = self.oracle.admit
        self._look = self.oracle.look
        self._forget = self.oracle.heap.remove
        self._zeroed = capabilities.zeroed
        self._streams: dict[int, Stream] = {}
        self._freed: OrderedDict[int, Block] | None = None if capabilities.double_free == "undefined" else OrderedDict()
        self._foreign = bytearray(4096)

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
        found = self.blocks.get(block)
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
        self.oracle.judge_copy(origin, target, size, _error_of(lambda: copy(origin.handle, target.handle, size)))
        return True

    def copy_nothing(self) -> bool:
        """Copy zero bytes from null to null."""
        copy = self.target.copy
        if copy is None:
            return False
        self._note(code("copy_nothing"))
        self.oracle.judge_copy_of_nothing(_error_of(lambda: copy(None, None, 0)))
        return True

    def compare(self) -> bool:
        """Compare what the target says of itself with the shadow heap."""
        self._note(code("compare"))
        self.oracle.compare(at_end=False)
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

    # --- frees that are wrong on purpose, where something is promised of them

    def free_again(self, block: int) -> bool:
        """Give a block back that was given back; not if its address belongs to somebody again."""
        freed = None if self._freed is None else self._freed.get(block)
        if freed is None or not freed.size or self.oracle.heap.in_use(freed):
            return False
        self._note(code("free_again"), block)
        promised = self.capabilities.double_free
        self._misuse("A12-double-free", promised, freed.handle, freed.size, f"{freed}, given back twice")
        return True

    def free_foreign(self) -> bool:
        """Give back an address, or an object, that no allocator ever had."""
        promised = self.capabilities.foreign_free
        if promised == "undefined" or not self.blocks:
            return False
        self._note(code("free_foreign"))
        example = next(iter(self.blocks.values())).handle
        foreign = id(self._foreign) if isinstance(example, int) else object()
        self._misuse("A11-foreign-free", promised, foreign, 16, f"{foreign!r:.60}, never allocated, given back")
        return True

    def free_wrong_size(self, block: int, size: int) -> bool:
        """Give a block back and say another size; where that is refused the block stays."""
        promised, found = self.capabilities.wrong_size, self.blocks.get(block)
        if promised == "undefined" or found is None or not found.size or size == found.size:
            return False
        self._note(code("free_wrong_size"), block, size)
        if promised == "ignore":
            self._forget(found)
        self._misuse("A10-wrong-size", promised, found.handle, size, f"{found}, given back as {size} bytes")
        return True

    def _misuse(self, requirement: str, promised: Misuse, handle: Any, size: int, what: str) -> None:
        self.oracle.judge_misuse(requirement, promised, what, _error_of(lambda: self._give(handle, size)))

    # --- more than there can be, again and again, and until it is full

    def request_too_much(self, size: int) -> bool:
        """Ask for more than there can be."""
        self._note(code("request_too_much"), size)
        self.oracle.judge_too_much(f"a request for {size} bytes", _answer_of(lambda: self._take(size)))
        return True

    def request_too_many(self, count: int, size: int) -> bool:
        """Ask for so many blocks at once that their bytes cannot be counted."""
        take = self.target.take_many
        if take is None:
            return False
        self._note(code("request_too_many"), count, size)
        self.oracle.judge_too_much(f"a request for {count} times {size} bytes", _answer_of(lambda: take(count, size)))
        return True

    def resize_too_much(self, block: int, size: int) -> bool:
        """Ask for a block to be larger than there can be; it stays as it is."""
        resize, old = self.target.resize, self.blocks.get(block)
        if resize is None or old is None or not old.size:
            return False
        self._note(code("resize_too_much"), block, size)
        self._look(old)
        self.oracle.resized = True
        answer = _answer_of(lambda: resize(old.handle, size, old.size))
        self.oracle.judge_too_much(f"a request to resize {old} to {size} bytes", answer)
        self._look(old)
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
            if not before or not self.oracle.grew(size, measured, growth):
                return True
            gc.collect()  # what waits for the collector is not lost
        raise Violation("A16-no-leaks", f"{measured} times {size} bytes, each given back: the process grew by {growth}")

    def _turn_over(self, size: int, count: int, how: int) -> bool:
        """Ask for a block and give it back so often; False where it is refused."""
        take: Any = self.target.take_zeroed if how == ZEROED else self._take
        first = max(size // 2, 1) if how == RESIZED else size
        for _ in range(count):
            if not self._obtain(take, -1, first, 0, 0, zeroed=how == ZEROED):
                return False
            resized = how != RESIZED or self._resize(self.blocks[-1], size)
            self._give_back(self.blocks[-1], 0)
            if not resized:
                return False
            self.journal.move()
        return True

    def fill(self, size: int) -> bool:
        """Take blocks until the limit is reached, and give them all back."""
        if not self.oracle.limit or not size:
            return False
        self._note(code("fill"), size)
        count = 0
        while count < _MOST_BLOCKS and self._obtain(self._take, -1 - count, size, 0, 0):
            count += 1
            self.journal.move()
        for number in range(-count, 0):
            self._give_back(self.blocks[number], 0)
        return True

    # --- how a block comes, changes and goes

    def _taking(self, alignment: int, stream: int) -> Callable[[int], Any]:
        target = self.target
        if stream and target.take_on is not None:
            take_on, on = target.take_on, self._stream(stream)
            return lambda size: take_on(size, on)
        if alignment and target.take_aligned is not None:
            aligned = target.take_aligned
            return lambda size: aligned(size, alignment)
        return target.take

    def _obtain(  # noqa: PLR0913 -- what there is to know of a request
        self, take: Callable[[int], Any], number: int, size: int, alignment: int, stream: int, *, zeroed: bool = False
    ) -> bool:
        try:
            handle = take(size)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            self.oracle.judge_error(size, error)
            self._try_again(size)
            return False
        plain = type(handle) is int
        if handle is None or (plain and not handle):
            self.oracle.judge_null(size)
            self._try_again(size)
            return False
        address = handle if plain else address_of(handle)
        block = Block(number, handle, address, size, number * _KEYS & 0xFFFF, stream)
        if zeroed or self._zeroed:
            self.oracle.judge_zeros(block)
        self._admit(block, alignment)
        return True

    def _try_again(self, size: int) -> None:
        """Nobody is out of memory who has nothing out, and still is when asked again."""
        if not size or self.blocks or not self.oracle.heap.alone:
            return
        if not any(self._is_served(size) for _ in range(_ATTEMPTS)):
            self.oracle.judge_exhausted(size)

    def _is_served(self, size: int) -> bool:
        """Whether memory can be had, which is given back at once."""
        handle = _answer_of(lambda: self._take(size))
        if isinstance(handle, Exception) or is_null(handle):
            return False
        self._give(handle, size)
        return True

    def _resize(self, old: Block, size: int) -> bool:
        """Ask for a block to have another size; False where it is refused."""
        resize: Any = self.target.resize
        oracle, heap = self.oracle, self.oracle.heap
        self._look(old)
        oracle.resized = True
        heap.vacate(old)  # before the call: another thread may get the address at once
        try:
            handle = resize(old.handle, size, old.size)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            oracle.judge_error(size, error)
            handle = None
        if is_null(handle):
            heap.occupy(old)
            self._look(old)  # a resize that fails leaves the block alone
            return False
        heap.drop(old)
        new = Block(old.number, handle, address_of(handle), size, old.key, old.stream)
        oracle.judge_resize(old, new)
        oracle.admit(new)
        return True

    def _give_back(self, block: Block, stream: int) -> None:
        self._look(block)
        self._forget(block)  # before the call: another thread may get the address at once
        if self._freed is not None:
            self._freed[block.number] = block
            if len(self._freed) > _REMEMBERED:
                self._freed.popitem(last=False)
        try:
            if stream and self.target.give_on is not None:
                on = self._stream(stream)
                if not on.done:
                    self.oracle.judge_until_done(block, on)
                self.target.give_on(block.handle, block.size, on)
            else:
                self._give(block.handle, block.size)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            self.oracle.judge_free(block, error)
        self.oracle.accepted += 1

    def _stream(self, number: int) -> Stream:
        return self._streams.setdefault(number, Stream(number))

    # --- how it ends

    def run(self, program: Iterable[Step]) -> None:
        """Take all steps, then end.

        Raises
        ------
        Violation
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
        Violation
            If something is not as it should be.
        """
        for stream in self._streams.values():
            stream.synchronize()
        self.oracle.compare(at_end=False)
        for number in list(self.blocks):
            self.free(number)
        self.close()

    def close(self) -> None:
        """With everything given back, compare, and close what was made for this run.

        Raises
        ------
        Violation
            If something is not as it should be.
        """
        self.oracle.compare(at_end=True)
        close = getattr(self.target.subject, "close", None)
        if self.target.owned and callable(close):
            self.oracle.judge_close(_error_of(close))


def _answer_of(call: Callable[[], Any]) -> Any:
    """What a call returns, or the exception that it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 -- anything may come from a target
        return error


def _error_of(call: Callable[[], object]) -> Exception | None:
    """The exception that a call raises, or None."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 -- as above
        return error
    return None


def _resident() -> int:
    """The bytes of this process that are in memory; 0 where nobody says."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
