"""Takes steps on a target; the oracle judges each of them.

A step without an object (a free of a block that was never allocated) does nothing.  So any part of a program
is a program too.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Literal

from ..engine.violation import Violation
from .access import WHOLE
from .forking import fork_often
from .handles import address_of, is_null
from .journal import Journal, code
from .mask import NO_MASK, Mask
from .oracle import HeapOracle
from .residence import MOST_TOUCHED, resident
from .shadow_heap import Block
from .streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .access import HostAccess
    from .capabilities import Capabilities, Misuse
    from .finding import HeapStep
    from .shadow_heap import Intervals
    from .targets import Target

__all__ = ["ATTEMPTS", "CROWDED", "PAIRED", "PLAIN", "RESIZED", "SHRUNK", "ZEROED", "Driver"]

PLAIN, RESIZED, ZEROED, SHRUNK, PAIRED, CROWDED = range(6)
"""How a `cycle` allocates its blocks."""

_ALLOCATE, _FREE, _CHECK = code("allocate"), code("free"), code("check")

_KEYS = 40503
"""An odd number, so that a tile's number of blocks get different keys."""

ATTEMPTS = 1400
"""How often a request that must be met is repeated.  Some allocators refuse at random, on purpose: one that refuses 99
of 100 requests refuses so many in a row with a chance of 1 in 1,000,000.  The native driver is told this number too."""

_ASKED, _MET = 256, 32
"""How often a size is refused, and a larger one is met between these, before the smaller one counts as starved."""

_REMEMBERED = 64
"""The number of freed blocks that are kept for a second free."""

_MEASUREMENTS = 3
"""A process sometimes grows for other reasons; a leak makes it grow in every measurement."""

_NAP, _LAST_NAP = 0.01, 0.5
"""The seconds for the allocator's own thread to free what waits for it, and those before a leak is told."""

_QUARANTINED = 320 << 20
"""So many bytes may wait in a quarantine before they are lent again, if blocks are large; that of ASan has 256 MiB."""

_SMALL, _REUSED = 4096, 256
"""Up to this size, blocks of twice the size are of another class; and of so many blocks, one has an address again."""

_CROWD = 2048
"""The live blocks of a cycle that is crowded: more than the cache of a thread has."""

_MOST_RESETS = 1024
"""The most turns of a cycle with resets: a reset that loses something may lose much more than a block."""

_SHARE_OF_A_CYCLE, _LOOKED_AT, _LEAST = 1 / 32, 16, 5 << 18
"""The most of the time that is left for one measurement of a cycle, the turns by which this is estimated, and the bytes
without which a measurement says nothing."""

_LENT = 16
"""So many blocks are allocated to see whether one that was freed is lent again."""

_FEWEST_TURNS = 64
"""After so many turns in which no memory was lent again, none will be: a quarantine may keep some blocks."""

_MOST_BLOCKS = 4096
"""The most blocks of a `fill`."""


class Driver:
    """One run against one target; the methods are the names in `OPERATIONS`.

    Parameters
    ----------
    target : Target
    capabilities : Capabilities
        The promises of the target.
    journal : Journal or None
        Records each step before it is taken.
    intervals, access
        As for `HeapOracle`.
    mask : Mask
        What is left unjudged or left out.

    Attributes
    ----------
    oracle : HeapOracle
        The judge of every step.
    blocks : dict of int to Block
        The live blocks by number: those of the oracle's shadow heap.
    reserves : bool or None
        Whether the target leaves large blocks untouched; None if that is not known yet.
    notes : list of str
        What was not done, and says nothing about the target.
    deadline : float
        When the steps are to end, on the clock `perf_counter`; a cycle of a slow target has fewer turns.
    """

    def __init__(  # noqa: PLR0913 -- what a run is made of
        self,
        target: Target,
        capabilities: Capabilities,
        journal: Journal | None = None,
        intervals: Intervals | None = None,
        access: HostAccess | None = None,
        mask: Mask = NO_MASK,
    ) -> None:
        self.target = target
        self.capabilities = capabilities
        self.journal: Journal = journal if journal is not None else Journal(capacity=1 << 16)
        self.oracle: HeapOracle = HeapOracle(target, capabilities, intervals, access, mask.passed_over)
        self._leaves_out = mask.leaves_out if mask.without else None
        self.blocks: dict[int, Block] = self.oracle.heap.blocks
        self.reserves: bool | None = None
        self.notes: list[str] = []
        self.deadline: float = math.inf
        self._note, self._record = self.journal.note, self.journal.record
        self._take = target.take
        self._give = target.give
        self._admit = self.oracle.admit
        self._look = self.oracle.look
        self._forget = self.oracle.heap.remove
        self._zeroed = capabilities.zeroed
        self._streams = self.oracle.streams
        self._freed: OrderedDict[int, Block] | None = None if capabilities.double_free == "undefined" else OrderedDict()
        self._foreign = bytearray(4096)

    # --- the steps, with the names of OPERATIONS

    def allocate(self, block: int, size: int, alignment: int = 0, stream: int = 0) -> bool:
        """Allocate; True if there is a new block with this number."""
        if block in self.blocks:
            return False
        self._note(_ALLOCATE, block, size, alignment, stream)
        if alignment or stream:
            return self._obtain(self._taking(alignment, stream), block, size, alignment, stream)
        return self._obtain(self._take, block, size, 0, 0)

    def free(self, block: int, stream: int = 0) -> bool:
        """Check the contents of a block, and free it."""
        live = self.blocks.get(block)
        if live is None:
            return False
        self._note(_FREE, block, 0, 0, stream)
        self._give_back(live, stream)
        return True

    def check(self, block: int) -> bool:
        """Check whether the contents of a block are unchanged."""
        live = self.blocks.get(block)
        if live is None:
            return False
        self._note(_CHECK, block)
        self._look(live)
        return True

    def calloc(self, block: int, size: int) -> bool:
        """Allocate memory that must be zero."""
        take = self.target.take_zeroed
        if take is None or block in self.blocks:
            return False
        self._record("calloc", block, size)
        self.oracle.checked["calloc"] += 1
        return self._obtain(take, block, size, 0, 0, zeroed=True)

    def resize(self, block: int, size: int) -> bool:
        """Change the size of a block; its contents must stay."""
        old = self.blocks.get(block)
        if self.target.resize is None or old is None or not size or not old.size or min(size, old.size) > MOST_TOUCHED:
            return False
        self._record("resize", block, size)
        self.oracle.checked["realloc"] += 1
        return self._resize(old, size)

    def copy(self, block: int, source: int) -> bool:
        """Copy as many bytes as fit from one block to another."""
        copy, target, origin = self.target.copy, self.blocks.get(block), self.blocks.get(source)
        if copy is None or target is None or origin is None or target is origin:
            return False
        if max(target.extent, origin.extent) > WHOLE:
            return False
        self._record("copy", block, source)
        size = min(target.size, origin.size)
        self.oracle.judge_copy(origin, target, size, _error_of(lambda: copy(origin.handle, target.handle, size)))
        return True

    def copy_nothing(self) -> bool:
        """Copy zero bytes from null to null."""
        copy = self.target.copy
        if copy is None:
            return False
        self._record("copy_nothing")
        self.oracle.check_error(
            "A15-copies", "copying zero bytes from null to null", _error_of(lambda: copy(None, None, 0))
        )
        return True

    def use_all(self, block: int) -> bool:
        """Ask for the usable size of a block, and write all of it; from now on all of it must stay."""
        usable_size, live = self.target.usable_size, self.blocks.get(block)
        if usable_size is None or live is None or not live.size:
            return False
        self._record("use_all", block)
        self._look(live)
        self.oracle.judge_usable(live, _answer_of(lambda: usable_size(live.handle)))
        return True

    def compare(self) -> bool:
        """Compare the statistics of the target with the shadow heap."""
        self._record("compare")
        self.oracle.compare(at_end=False)
        return True

    def work(self, block: int, stream: int) -> bool:
        """Queue work on a block: its stream now uses the block."""
        if self.target.give_on is None or block not in self.blocks:
            return False
        self._record("work", block, stream)
        self._stream(stream).queued += 1
        return True

    def finish(self, stream: int) -> bool:
        """Let the work of a stream happen."""
        self._record("finish", stream)
        self._stream(stream).synchronize()
        return True

    # --- frees that are wrong on purpose, if the target promises something about them

    def free_again(self, block: int) -> bool:
        """Free a block a second time, unless its address belongs to another block by now."""
        freed = None if self._freed is None else self._freed.get(block)
        if freed is None or not freed.size or self.oracle.heap.in_use(freed):
            return False
        self._record("free_again", block)
        promised = self.capabilities.double_free
        self._misuse("A12-double-free", promised, freed.handle, freed.size, f"{freed}, given back twice")
        return True

    def free_foreign(self) -> bool:
        """Free an address or an object that no allocator has returned."""
        promised = self.capabilities.foreign_free
        if promised == "undefined" or not self.blocks:
            return False
        self._record("free_foreign")
        example = next(iter(self.blocks.values())).handle
        foreign = id(self._foreign) if isinstance(example, int) else object()
        self._misuse("A11-foreign-free", promised, foreign, 16, f"{foreign!r:.60}, never allocated, given back")
        return True

    def free_wrong_size(self, block: int, size: int) -> bool:
        """Free a block with a wrong size; if that is refused, the block stays."""
        promised, live = self.capabilities.wrong_size, self.blocks.get(block)
        if promised == "undefined" or live is None or not live.size or size == live.size:
            return False
        self._record("free_wrong_size", block, size)
        if promised == "ignore":
            self._forget(live)
        self._misuse("A10-wrong-size", promised, live.handle, size, f"{live}, given back as {size} bytes")
        return True

    def _misuse(self, requirement: str, promised: Misuse, handle: Any, size: int, what: str) -> None:
        self.oracle.judge_misuse(requirement, promised, what, _error_of(lambda: self._give(handle, size)))

    # --- what C and POSIX say

    def free_null(self) -> bool:
        """Free null, which does nothing."""
        contracts = self.target.contracts
        if contracts is None:
            return False
        self._record("free_null")
        self.oracle.check("A26-c-contracts", contracts.free_null())
        return True

    def free_with_errno(self, size: int) -> bool:
        """Allocate and free a block; if that is promised, errno stays as it was."""
        contracts = self.target.contracts
        if contracts is None or not self.capabilities.errno_kept or not size:
            return False
        self._record("free_with_errno", size)
        if self._obtain(self._take, -1, size, 0, 0):
            block = self.blocks[-1]
            self._look(block)
            self._forget(block)
            self.oracle.check("A26-c-contracts", contracts.free_with_errno(block.handle))
        return True

    def resize_null(self, block: int, size: int) -> bool:
        """Resize null, which allocates; it may refuse only what a plain request may refuse."""
        contracts = self.target.contracts
        if contracts is None or not contracts.resizes or block in self.blocks or not size:
            return False
        self._record("resize_null", block, size)
        for _ in range(ATTEMPTS):
            if self._obtain(contracts.resize_null, block, size, 0, 0):
                self.oracle.check("A26-c-contracts", "")
                return True
            if not self._is_served(self._take, size):
                return False
        self.oracle.check("A26-c-contracts", f"realloc(NULL, {size}) is null each time, and malloc({size}) is not")
        return False

    def resize_to_nothing(self, block: int) -> bool:
        """Resize a block to zero bytes: it is freed, or it stays, but a freed block is not returned."""
        contracts, live = self.target.contracts, self.blocks.get(block)
        if contracts is None or not contracts.resizes or live is None or not live.size:
            return False
        self._record("resize_to_nothing", block)
        self._look(live)
        self._forget(live)
        self.oracle.resized = True
        kept = contracts.resize_to_nothing(live.handle)
        if kept is None:
            self.oracle.check("A26-c-contracts", "")
            return True
        sizes = (*[live.size] * _LENT, 1, 16, 64)
        numbers = [-1 - at for at, size in enumerate(sizes) if self._obtain(self._take, -1 - at, size, 0, 0)]
        owner = self.oracle.heap.at(kept)
        freed = f"realloc({live}, 0) returned {kept:#x}, which it had freed: it is lent again, as {owner}"
        self.oracle.check("A26-c-contracts", freed if owner is not None else "")
        for number in numbers:
            self._give_back(self.blocks[number], 0)
        self._give(kept, 0)
        return True

    def request_bad_alignment(self, alignment: int, size: int) -> bool:
        """Request what is no alignment, which is refused with EINVAL."""
        contracts = self.target.contracts
        if contracts is None or not contracts.aligns:
            return False
        self._record("request_bad_alignment", alignment, size)
        self.oracle.check("A26-c-contracts", contracts.request_bad_alignment(alignment, size))
        return True

    def fork(self, count: int) -> bool:
        """Fork many times while another thread allocates: each child must be able to allocate and free."""
        if not self.capabilities.fork_safe or not self.oracle.heap.alone:
            return False
        self._record("fork", count)
        resets = self.target.reset is not None and not self.capabilities.reuse and not self.blocks
        children, problem, undone = fork_often(
            self.target,
            count,
            self.journal.move,
            reuse=self.capabilities.reuse,
            reset=self._begin_anew if resets else None,
        )
        if undone:
            self.notes.append(f"a step that forks ended after {children} of {count} children: {undone}")
        if children or problem:
            self.oracle.check("A27-survives-fork", problem)
        return True

    def _begin_anew(self) -> None:
        """Reset an arena in which no block is in use."""
        if self.target.reset is not None:
            self.oracle.check_error("A07-free-accepts", "resetting", _error_of(self.target.reset))

    # --- requests that are too large, many requests, and requests up to the limit

    def request_too_much(self, size: int, alignment: int = 0) -> bool:
        """Request more memory than can exist, maybe with an alignment, to which it is rounded up."""
        if size > self.target.most or (alignment and self.target.take_aligned is None):
            return False
        self._record("request_too_much", size, alignment)
        take = self._taking(alignment, 0)
        at = f" at a multiple of {alignment}" if alignment else ""
        self.oracle.judge_too_much(f"a request for {size} bytes{at}", size, _answer_of(lambda: take(size)))
        return True

    def request_too_many(self, count: int, size: int) -> bool:
        """Request so many blocks at once that their total size overflows."""
        take = self.target.take_many
        if take is None:
            return False
        self._record("request_too_many", count, size)
        request = f"a request for {count} times {size} bytes"
        self.oracle.judge_too_much(request, count * size, _answer_of(lambda: take(count, size)))
        return True

    def resize_too_much(self, block: int, size: int) -> bool:
        """Request an impossible size for a block; the block must stay unchanged."""
        resize, old = self.target.resize, self.blocks.get(block)
        if resize is None or old is None or not old.size or size > self.target.most:
            return False
        self._record("resize_too_much", block, size)
        self._look(old)
        self.oracle.resized = True
        answer = _answer_of(lambda: resize(old.handle, size, old.size))
        self.oracle.judge_too_much(f"a request to resize {old} to {size} bytes", size, answer)
        self._look(old)
        return True

    def cycle(self, size: int, count: int, how: int = PLAIN) -> bool:
        """Allocate and free a block many times; the memory of the process must not grow by all of them.

        Parameters
        ----------
        size, count : int
        how : {PLAIN, RESIZED, ZEROED, SHRUNK, PAIRED, CROWDED}
            Whether the block is allocated plainly, with half the size and then resized, with zeros, resized to an
            eighth, and freed as a block of that size, freed before a younger block, or freed when 2,048 are live.
        """
        needed = {RESIZED: self.target.resize, ZEROED: self.target.take_zeroed, SHRUNK: self.target.resize}
        if needed.get(how, True) is None:
            return False
        if not (self.capabilities.reuse or (self.target.reset and how != CROWDED)):
            return False
        self._record("cycle", size, count, how)
        if not self.capabilities.reuse:
            count = min(count, _MOST_RESETS)
        if size <= _SMALL and how != CROWDED and self._comes_again(size, min(count, _REUSED), how):
            return True
        turns = self._in_time(size, count, how)
        measured = turns - turns // 4
        too_few = turns < count and turns * size < _LEAST
        if too_few or not self._turn_over(size, turns - measured, how):  # fills the caches
            return False
        growth = self._grows(size, measured, how)
        if not growth:
            return growth is not None
        # An allocator may keep a record of each call: then the process grows with blocks of another class as well.
        other = size // 64 if how == CROWDED else size // 8 if size > _SMALL else 2 * size
        records = self._growth(other, measured, how)
        explained = records is not None and not self.oracle.grew(size, measured, growth - records)
        # A leak is told after another look, before which a thread that is slow has more time.
        if explained or not self._grows(size, measured, how, _LAST_NAP, enough=1):
            return True
        raise Violation("A16-no-leaks", f"{measured} times {size} bytes, each given back: the process grew by {growth}")

    def _grows(self, size: int, count: int, how: int, nap: float = _NAP, enough: int = _MEASUREMENTS) -> int | None:
        """The bytes by which the process grows each time that a cycle is measured; 0 if not always, None if refused.

        Each measurement begins where the one before ended, so that what comes back a little later is no growth: objects
        that wait for the collector, and blocks that the allocator's own thread frees in a nap.
        """
        growth = grown = measurements = 0
        gc.collect()
        before = resident()
        may_wait = size > _SMALL and how != CROWDED and enough > 1
        while measurements < enough or (may_wait and grown < _QUARANTINED):
            time.sleep(nap)
            if not self._turn_over(size, count, how):
                return None
            gc.collect()
            now = resident()
            growth, before = now - before, now
            if not self.oracle.grew(size, count, growth):
                return 0
            grown, measurements = grown + growth, measurements + 1
        return growth

    def _in_time(self, size: int, count: int, how: int) -> int:
        """As many turns of a cycle as there is time for, by the time of a few; none if they are refused."""
        began = time.perf_counter()
        if self.deadline == math.inf:
            return count
        few = min(count, _LOOKED_AT)
        if not self._turn_over(size, few, PLAIN if how == CROWDED else how):
            return 0
        each = (time.perf_counter() - began) / few
        return min(count, int(max(self.deadline - began, 0.0) * _SHARE_OF_A_CYCLE / each))

    def _comes_again(self, size: int, count: int, how: int) -> bool:
        """Whether one of some blocks has the address of an earlier one: then this class of blocks is used again."""
        addresses: set[int] = set()
        for number in range(count):
            if not self._turn_over(size, 1, how, addresses):
                return False
            if len(addresses) <= number:
                return True
        return False

    def _growth(self, size: int, count: int, how: int) -> int | None:
        """The bytes by which the process grows while a block comes and goes this many times; None if it is refused."""
        before = resident()
        return resident() - before if self._turn_over(size, count, how) else None

    def _turn_over(self, size: int, count: int, how: int, addresses: set[int] | None = None) -> bool:
        """Allocate and free a block this many times, and note its addresses; False if it is refused."""
        if how == CROWDED:
            return all(self._fill_and_empty(size, min(_CROWD, count - at)) for at in range(0, count, _CROWD))
        take: Any = self.target.take_zeroed if how == ZEROED else self._take
        first = max(size // 2, 1) if how == RESIZED else size
        last = max(size // 8, 1) if how == SHRUNK else size
        for _ in range(count):
            if not self._obtain(take, -1, first, 0, 0, zeroed=how == ZEROED):
                return False
            if addresses is not None:
                addresses.add(self.blocks[-1].address)
            if how == PAIRED and not self._obtain(take, -2, first, 0, 0):
                self._give_back(self.blocks[-1], 0)
                return False
            resized = first == last or self._resize(self.blocks[-1], last)
            self._give_back(self.blocks[-1], 0)
            if how == PAIRED:
                self._give_back(self.blocks[-2], 0)
            if not self.capabilities.reuse:
                self._begin_anew()
            if not resized:
                return False
            self.journal.move()
        return True

    def fill(self, size: int) -> bool:
        """Allocate blocks until the limit is reached, and free them all."""
        if not self.oracle.limit or not size:
            return False
        self._record("fill", size)
        self._fill_and_empty(size, _MOST_BLOCKS)
        return True

    def _fill_and_empty(self, size: int, most: int) -> bool:
        """Allocate so many blocks, as far as they are met, and free them all; whether all were met."""
        count = 0
        while count < most and self._obtain(self._take, -1 - count, size, 0, 0):
            count += 1
            self.journal.move()
        for number in range(-count, 0):
            self._give_back(self.blocks[number], 0)
        return count == most

    def reset(self) -> bool:
        """Have an arena take all its blocks back; what was served once must be served again."""
        reset = self.target.reset
        if reset is None or self.capabilities.reuse or not self.oracle.heap.alone:
            return False
        self._record("reset")
        for live in list(self.blocks.values()):
            self._look(live)
            self._forget(live)
        if self._freed is not None:
            self._freed.clear()
        self.oracle.check_error("A07-free-accepts", "resetting", _error_of(reset))
        size = self.oracle.largest
        if size and not any(self._obtain(self._take, -1, size, 0, 0) for _ in range(ATTEMPTS)):
            self.oracle.judge_exhausted(size)
        if -1 in self.blocks:
            self._give_back(self.blocks[-1], 0)
            self.oracle.check_error("A07-free-accepts", "resetting", _error_of(reset))
        return True

    def reuse(self, size: int, count: int) -> bool:
        """Allocate two blocks and free them, the older one first, many times; some memory must be lent again."""
        if not (self.capabilities.reuse and size and count):
            return False
        self._record("reuse", size, count)
        gone: set[int] = set()
        for _ in range(count):
            if not all(self._obtain(self._take, number, size, 0, 0) for number in (-1, -2)):
                break
            first, second = self.blocks[-1], self.blocks[-2]
            lent_again = not first.address or first.address in gone or second.address in gone
            gone.add(first.address)
            for block in (first, second):
                self._give_back(block, 0)
            if lent_again:
                return True
            self.journal.move()
        for number in (-1, -2):
            if number in self.blocks:
                self._give_back(self.blocks[number], 0)
        if len(gone) >= min(count, _FEWEST_TURNS):
            self.oracle.judge_arena()
        return bool(gone)

    # --- allocating, resizing and freeing a block

    def _taking(self, alignment: int, stream: int) -> Callable[[int], Any]:
        target = self.target
        if stream and target.take_on is not None:
            take_on, on = target.take_on, self._stream(stream)
            return lambda size: take_on(size, on)
        if alignment and target.take_aligned is not None:
            aligned = target.take_aligned
            return lambda size: aligned(size, alignment)
        return target.take

    def _obtain(  # noqa: PLR0913 -- the properties of a request
        self, take: Callable[[int], Any], number: int, size: int, alignment: int, stream: int, *, zeroed: bool = False
    ) -> bool:
        try:
            handle = take(size)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            self.oracle.judge_error(size, error)
            return self._refused(size, zeroed)
        plain = type(handle) is int
        if handle is None or (plain and not handle):
            self.oracle.judge_null(size)
            return self._refused(size, zeroed)
        address = handle if plain else address_of(handle)
        block = Block(number, handle, address, size, number * _KEYS & 0xFFFF, stream)
        if zeroed or self._zeroed:
            self.oracle.judge_zeros(block)
        block.alignment = alignment
        self._admit(block)
        return True

    def _refused(self, size: int, zeroed: bool) -> Literal[False]:
        """Note a refusal, and repeat the request if it must be met."""
        self.oracle.note_refusal(size, zeroed=zeroed)
        if size and self.capabilities.reuse and self._is_unused() and self.oracle.must_serve(size):
            self._try_again(size)
        return False

    def _is_unused(self) -> bool:
        """Whether no block is live, and no work is queued that may still use a freed one."""
        return not self.blocks and self.oracle.heap.alone and all(stream.done for stream in self._streams.values())

    def _try_again(self, size: int) -> None:
        """Repeat a refused request while no block is live; an allocator without live blocks must have room."""
        if not any(self._is_served(self._take, size) for _ in range(ATTEMPTS)):
            self.oracle.judge_exhausted(size)

    def _ask_again(self) -> None:
        """Ask again, without live blocks, for sizes that were refused although larger ones were met."""
        suspects, largest = list(self.oracle.suspects) if self.capabilities.reuse else [], self.oracle.largest
        self.oracle.suspects.clear()
        for size, zeroed in suspects if self.oracle.heap.alone else ():
            take: Any = self.target.take_zeroed if zeroed else self._take
            for larger in {min(2 * size, largest), largest}:
                if self._is_fair(take, size, larger):
                    break

    def _is_fair(self, take: Callable[[int], Any], size: int, larger: int) -> bool:
        """Whether a size is met now and then; a violation if it never is, and a larger one is often met between."""
        asked = met = 0
        order = random.Random(size)  # noqa: S311 -- in an order without a period, because refusals may have one
        for _ in range(4 * _ASKED):
            if order.random() < 1 / 2:
                met += self._is_served(take, larger)
                continue
            asked += 1
            if self._is_served(take, size):
                self.oracle.checked["A25-no-starvation"] += 1
                return True
            if asked >= _ASKED and met >= _MET:
                self.oracle.judge_starved(size, asked, larger, met)
        return False

    def _is_served(self, take: Callable[[int], Any], size: int) -> bool:
        """Whether a request is met; its memory is freed at once."""
        self.journal.move()
        handle = _answer_of(lambda: take(size))
        if isinstance(handle, Exception) or is_null(handle):
            return False
        error = _error_of(lambda: self._give(handle, size))
        if error is not None:
            self.oracle.judge_free(Block(-1, handle, address_of(handle), size, 0, 0), error)
        self.oracle.heap.pass_by(size)
        return True

    def _resize(self, old: Block, size: int) -> bool:
        """Change the size of a block; False if it is refused."""
        resize: Any = self.target.resize
        oracle, heap = self.oracle, self.oracle.heap
        self._look(old)
        oracle.resized = True
        heap.remove(old)  # before the call: another thread may get the address at once
        try:
            handle = resize(old.handle, size, old.size)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            oracle.judge_error(size, error)
            handle = None
        if is_null(handle):
            heap.add(old)
            self._look(old)  # a failed resize must not change the block
            return False
        new = Block(old.number, handle, address_of(handle), size, old.key, old.stream)
        new.alignment = old.alignment if self.target.keeps_alignment else 0
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
                if self._streams:
                    self.oracle.order_after_all(block)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            self.oracle.judge_free(block, error)
        self.oracle.accepted += 1

    def _stream(self, number: int) -> Stream:
        return self._streams.setdefault(number, Stream(number))

    # --- the end

    def run(self, program: Iterable[HeapStep]) -> None:
        """Take all steps, then end.

        Raises
        ------
        Violation
            At the first step that shows a bug.
        """
        for step in program:
            self.perform(step)
        self.end()

    def perform(self, step: HeapStep) -> bool:
        """Take one step; False if its object does not exist, or if it is left out."""
        if self._leaves_out is not None and self._leaves_out(step):
            return False
        done: bool = getattr(self, step.operation)(*step.numbers)
        return done

    def ask_for_the_largest(self) -> None:
        """Free everything, and ask once more for the largest size that was met: no fragment may be lost.

        These are steps, which a program that shows a violation has too.

        Raises
        ------
        Violation
            If it is not met any more.
        """
        self.oracle.compare(at_end=False)
        for number, stream in self._streams.items():
            if not stream.done:
                self.finish(number)
        for number in list(self.blocks):
            self.free(number)
        size = self.oracle.largest
        if not self.capabilities.reuse:
            self.reset()
        elif size and self.oracle.heap.alone and self.allocate(0, size):
            self.free(0)

    def end(self) -> None:
        """Free everything, compare, and close a target that was made for this run.

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
        self._ask_again()
        self.close()

    def close(self) -> None:
        """After everything was freed, compare, and close a target that was made for this run.

        Raises
        ------
        Violation
            If something is not as it should be.
        """
        self.oracle.compare(at_end=True)
        close = getattr(self.target.subject, "close", None)
        if self.target.owned and callable(close):
            self.oracle.check_error("A24-closes", "closing with nothing in use", _error_of(close))


def _answer_of(call: Callable[[], Any]) -> Any:
    """The result of a call, or the exception that it raises."""
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
