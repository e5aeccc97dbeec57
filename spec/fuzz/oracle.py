"""The oracle judges the answers of a target, with only a shadow heap and the capability record.

The driver calls the target and passes the result to the oracle, which raises `Violation` where a requirement is
not met.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import TYPE_CHECKING, NoReturn

from syncedmem.model.errors import said

from ..engine.violation import Violation
from .access import HostAccess, access_to, contents
from .finding import NEVER_REUSES
from .handles import is_null, size_of
from .shadow_heap import Block, ShadowHeap
from .statistics import Gauge, device_of, gauges, limit_of

if TYPE_CHECKING:
    from .access import Access
    from .capabilities import Capabilities, Misuse
    from .shadow_heap import Intervals
    from .streams import Stream
    from .targets import Target

__all__ = ["OF_CONTENTS", "HeapOracle"]

OF_CONTENTS = frozenset({"A04-contents-kept", "A13-zeroed", "A14-resize-keeps", "A15-copies"})
"""What can be judged only where the bytes of blocks can be read."""

_NO_HANDLES = (str, float, bool)

_OTHER_GROWTH = 1 << 20
"""The bytes by which a process may grow for other reasons."""

_JUDGED = 16 << 20
"""A refusal of more bytes than these is not judged: the system may have had more memory before."""

_UNREPRESENTABLE = (1 << 8 * ctypes.sizeof(ctypes.c_size_t) - 1) - (1 << 20)
"""Sizes from here on do not fit a signed size, or not with a header; Python's own types refuse them as wrong values."""

_SUSPECTS = 16
"""The most refused sizes that are asked for again at the end."""


class HeapOracle:
    """The judge of one target in one run; violations of what is `passed_over` are judged, and then let pass."""

    def __init__(
        self,
        target: Target,
        capabilities: Capabilities,
        intervals: Intervals | None = None,
        access: HostAccess | None = None,
        passed_over: frozenset[str] = frozenset(),
    ) -> None:
        self.heap: ShadowHeap = ShadowHeap(intervals)
        self._add = self.heap.add
        self.checked: Counter[str] = Counter()  # without what every step checks: `looked_at` has all
        self.limit: int = capabilities.limit or limit_of(target.subject)
        self.baseline: dict[Gauge, int] = gauges(target.subject)  # at the start
        self.accepted = 0  # frees
        self.resized = False  # whether a block may have been resized
        self._target = target
        self._capabilities = capabilities
        self._access: Access | None = access
        self._passed_over = passed_over
        self._mask = capabilities.alignment - 1
        self.served: int = 0  # requests for at least one byte
        self.largest: int = 0  # that was met, as far as refusals are judged by it
        self._nothings = 0
        self.suspects: dict[tuple[int, bool], None] = {}  # refused sizes, and whether zeros were requested
        self.streams: dict[int, Stream] = {}  # by number
        self._pending: list[tuple[int, int, Stream, int]] = []
        self._device = device_of(target.subject)

    def looked_at(self) -> Counter[str]:
        """How often each requirement was checked."""
        counts = Counter(self.checked)
        counts["A01-distinct-pointers"] = counts["A02-no-overlap"] = self.heap.placed
        counts["A05-served"], counts["A07-free-accepts"] = self.served, self.accepted
        if self._access is not None and self._access.reason:
            for requirement in OF_CONTENTS:
                counts.pop(requirement, None)  # without the bytes nothing shows whether it is kept
        elif self._access is not None:
            counts["A04-contents-kept"] += self.accepted
            if self._capabilities.zeroed:
                counts["A13-zeroed"] += self.served
        if self._mask:
            counts["A03-aligned"] += self.served
        return +counts

    @property
    def contents_reason(self) -> str | None:
        """Why contents are not checked; empty if they are, None if there were none."""
        return None if self._access is None else self._access.reason

    @property
    def host_access(self) -> HostAccess | None:
        """The access, if later targets can use it too, because the host reads and writes the memory."""
        return self._access if isinstance(self._access, HostAccess) else None

    # --- requests that are met

    def admit(self, block: Block) -> None:
        """Accept a new block: it must be in a right place, and writable."""
        size, address, plain = block.size, block.address, type(block.handle) is int
        if not plain and isinstance(block.handle, _NO_HANDLES):
            raise Violation("A05-served", f"a request for {size} bytes gave {block.handle!r:.60}, which is no memory")
        if not size:
            self._admit_nothing(block)
            return
        access = self._access or self._reach(block)
        if address & self._mask or (block.alignment and address):
            self._check_alignment(block)
        if not plain:
            self._check_size(block)
        self._add(block)
        if self._pending:
            self._check_streams(block)
        if self.limit:
            self._check_limit()
        try:
            access.fill(block)
        except Exception as error:
            raise Violation("A04-contents-kept", f"{block} cannot be written: {said(error)}") from error
        self.served += 1
        if size > self.largest:
            self.largest = min(size, _JUDGED)

    def _reach(self, block: Block) -> Access:
        """The access to contents, chosen at the first block."""
        if self._access is None:
            self._access = access_to(block, self._target, self._capabilities)
        return self._access

    def _admit_nothing(self, block: Block) -> None:
        """Judge a block of zero bytes, which must not share memory with another block."""
        self._judge_nothing(f"gave {block.handle!r:.60}", ("null", "error"))
        other = self.heap.at(block.address)
        if self._capabilities.zero_size == "unique" and other is None and block.address:
            same = (item for item in self.heap.blocks.values() if not item.size and item.address == block.address)
            other = next(same, None)
        if other is not None:
            raise Violation("A09-zero-size", f"a request for zero bytes gave the memory of {other}")
        self.heap.add_nothing(block)

    def _judge_nothing(self, answer: str, wrong: tuple[str, ...]) -> None:
        """Judge the answer to a request for zero bytes, which is wrong if one of these was promised."""
        self._nothings += 1
        promised = self._capabilities.zero_size
        problem = f"a request for zero bytes {answer}; {promised} was promised" if promised in wrong else None
        self.check("A09-zero-size", problem)

    def check(self, requirement: str, problem: object, error: Exception | None = None) -> None:
        """Count a check of a requirement, which is broken if there is a problem."""
        self.checked[requirement] += 1
        if problem:
            self._break(requirement, str(problem), error)

    def check_error(self, requirement: str, what: str, error: Exception | None) -> None:
        """Count a check of a call that must not raise."""
        self.check(requirement, error and f"{what}: {said(error)}", error)

    def _break(self, requirement: str, message: str, error: Exception | None = None) -> None:
        """Raise the violation of a requirement, unless it is passed over."""
        if requirement not in self._passed_over:
            raise Violation(requirement, message) from error

    def _check_alignment(self, block: Block) -> None:
        wrong = block.address & self._mask or (block.alignment and block.address % block.alignment)
        self.check("A03-aligned", wrong and f"{block} is not at a multiple of {max(block.alignment, self._mask + 1)}")

    def _check_size(self, block: Block) -> None:
        size = size_of(block.handle)
        if size is not None:
            self.check("A08-size-known", f"{block} says that it has {size} bytes" if size < block.size else None)

    def judge_usable(self, block: Block, usable: object) -> None:
        """Judge the usable size that the target reports of a block: from now on, all of it belongs to the block."""
        if not isinstance(usable, int):
            self.check("A08-size-known", f"the usable size of {block} is {usable!r:.60}")
            return
        what = f"{block} has a usable size of {usable} bytes"
        self.check("A08-size-known", what if usable < block.size else None)
        self.heap.extend(block, usable)
        try:
            self._reach(block).fill(block)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            self._break("A08-size-known", f"{what}, which cannot be written: {said(error)}", error)

    def judge_zeros(self, block: Block) -> None:
        """Judge whether a new block is zero, as requested or as promised for new memory."""
        self.checked["A13-zeroed"] += bool(block.size)
        for start, content in self._reach(block).parts(block) if block.size else ():
            if content.count(0) != len(content):
                at = len(content) - len(content.lstrip(b"\0"))
                self._break("A13-zeroed", f"byte {start + at} of {block} is {content[at]:02x}")

    def _check_streams(self, block: Block) -> None:
        self._pending = [item for item in self._pending if item[2].finished < item[3]]
        start, end = block.address, block.address + block.size
        own = self.streams.get(block.stream)
        there = ((item[2], item[3]) for item in self._pending if item[0] < end and start < item[1])
        stream = next((stream for stream, queued in there if own is None or not own.is_after(stream, queued)), None)
        problem = stream and f"{block} for stream {block.stream} is memory that {stream} still writes to"
        self.check("A19-stream-order", problem)

    def _check_limit(self) -> None:
        wrong = self.heap.bytes > self.limit and self.heap.alone
        self.check("A18-limit", f"{self.heap.bytes} bytes are in use, the limit is {self.limit}" if wrong else None)

    # --- requests that are refused

    def judge_error(self, size: int, error: Exception) -> None:
        """Judge an error of a request, which must be an out-of-memory error."""
        out_of_memory = self._capabilities.is_out_of_memory(error)
        if not size:
            self.checked["A09-zero-size"] += 1
            promised = self._capabilities.zero_size in ("null", "unique")
            if promised or not (isinstance(error, ValueError) or out_of_memory):
                self._break("A09-zero-size", f"a request for zero bytes: {said(error)}", error)
        elif not out_of_memory:
            what = f"a request for {size} bytes: {said(error)}; {self._promised_errors()} was promised"
            self._break("A05-served", what, error)

    def judge_null(self, size: int) -> None:
        """Judge a null pointer."""
        if not size:
            self._judge_nothing("gave null", ("unique", "error"))
        elif "null" not in self._capabilities.out_of_memory:
            what = f"a request for {size} bytes gave null; {self._promised_errors()} was promised"
            self._break("A05-served", what)

    def note_refusal(self, size: int, *, zeroed: bool) -> None:
        """Note a refused request, which may be one that is refused for ever."""
        if 0 < size < self.largest and len(self.suspects) < _SUSPECTS:
            self.suspects[size, zeroed] = None

    def must_serve(self, size: int) -> bool:
        """Whether a request must be met while no block is live: as many were met before, or the limit is far."""
        return size <= self.largest or size <= min(self.limit // 2, _JUDGED)

    def judge_exhausted(self, size: int) -> None:
        """Judge a refusal that repeats, without live blocks, of a size that must be met."""
        if size <= self.largest:
            self._break("A16-no-leaks", f"{size} bytes are refused with nothing in use; as many were served before")
        else:
            self._break("A18-limit", f"{size} bytes are refused with nothing in use and a limit of {self.limit}")

    def judge_arena(self) -> None:
        """Judge a target that lent no memory again, of many blocks that were freed."""
        self.checked["A16-no-leaks"] += 1
        self._break("A16-no-leaks", f"{NEVER_REUSES}, unless it is the last: is it an arena? then --promise reuse=no")

    def judge_starved(self, size: int, asked: int, larger: int, met: int) -> None:
        """Judge a size that was refused each time, while a larger one was met many times."""
        self._break(
            "A25-no-starvation",
            f"with nothing in use, {size} bytes are refused {asked} times of {asked}, "
            f"and of the requests for {larger} bytes between them {met} are met",
        )

    def judge_too_much(self, request: str, size: int, answer: object) -> None:
        """Judge the answer to an impossible request: a handle or an exception."""
        self.checked["A06-out-of-memory"] += 1
        if isinstance(answer, Exception):
            no_size = size >= _UNREPRESENTABLE and isinstance(answer, OverflowError | ValueError)
            if not no_size and not self._capabilities.is_out_of_memory(answer):
                what = f"{request}: {said(answer)}; {self._promised_errors()} was promised"
                self._break("A06-out-of-memory", what, answer)
        elif not is_null(answer):
            self._break("A06-out-of-memory", f"{request} was met, with {answer!r:.60}")
        elif "null" not in self._capabilities.out_of_memory:
            self._break("A06-out-of-memory", f"{request} gave null; {self._promised_errors()} was promised")

    def _promised_errors(self) -> str:
        return " or ".join(self._capabilities.out_of_memory)

    # --- contents of blocks

    def look(self, block: Block) -> None:
        """Judge whether the contents of a block are unchanged."""
        access = self._access
        if access is None or not block.size:
            return
        try:
            difference = access.differs(block, block.extent)
        except Exception as error:  # noqa: BLE001 -- anything may come from a target
            self._break("A04-contents-kept", f"{block} cannot be read: {said(error)}", error)
            return
        if difference:
            self._break("A04-contents-kept", f"{block}: {difference}")

    def judge_resize(self, old: Block, new: Block) -> None:
        """Judge a resized block, which may have moved; call `admit` for it too."""
        difference = self._reach(new).differs(new, min(new.size, old.size), old.extent)
        self.check("A14-resize-keeps", difference and f"{old} resized to {new.size} bytes: {difference}")

    def judge_copy(self, origin: Block, target: Block, size: int, error: Exception | None) -> None:
        """Judge a copy of `size` bytes from one block to another, or its error."""
        if error is not None:
            self.check("A15-copies", f"copying {size} bytes: {said(error)}", error)
        copied = Block(target.number, target.handle, target.address, target.size, origin.key, 0)
        access = self._reach(target)
        difference = access.differs(copied, size) or self._rest_differs(target, size)
        self.check("A15-copies", difference and f"{size} bytes of {origin} copied to {target}: {difference}")
        access.fill(target)
        self.look(origin)

    def _rest_differs(self, block: Block, size: int) -> str:
        """A sentence if bytes after a copy were changed; else empty."""
        present = self._reach(block).read(block, block.size)
        expected = contents(block.key, block.size)
        return "" if present[size:] == expected[size:] or not present else "bytes beyond it were changed"

    # --- frees

    def judge_until_done(self, block: Block, stream: Stream) -> None:
        """Note that a block was freed before the work on it is done; until then only its stream may get the memory."""
        self._pending.append((block.address, block.address + block.size, stream, stream.queued))

    def order_after_all(self, block: Block) -> None:
        """Note that a block was freed on no stream: a device does that after all work, and anybody may get it then."""
        start, end = block.address, block.address + block.size
        self._pending = [item for item in self._pending if item[1] <= start or end <= item[0]]

    def judge_free(self, block: Block, error: Exception) -> NoReturn:
        """Judge an error of a free of a live block."""
        raise Violation("A07-free-accepts", f"{block} cannot be given back: {said(error)}") from error

    def judge_misuse(self, requirement: str, promised: Misuse, what: str, error: Exception | None) -> None:
        """Judge a free that was wrong on purpose."""
        problem = f"{what}: it went unnoticed" if error is None and promised == "detect" else None
        if error is not None and promised == "ignore":
            problem = f"{what}: {said(error)}; to be ignored was promised"
        self.check(requirement, problem, error)

    def grew(self, size: int, times: int, growth: int) -> bool:
        """Whether a process grew by more than other reasons explain, while a block was freed many times."""
        self.checked["A16-no-leaks"] += 1
        return growth > max(size * times // 16, _OTHER_GROWTH)

    # --- statistics of the target

    def compare(self, *, at_end: bool) -> None:
        """Compare the statistics of the target with the shadow heap; memory that is left at the end is a leak."""
        for gauge, value in gauges(self._target.subject).items() if self.heap.alone or at_end else ():
            self.checked["A17-statistics"] += 1
            if at_end:
                self.checked["A16-no-leaks"] += 1
            self._compare_gauge(gauge, value, at_end)
        if self._device is not None:
            self.checked["A21-device-kept"] += 1
            if (device := device_of(self._target.subject)) != self._device:
                self._break("A21-device-kept", f"device {device!r} is current, it was {self._device!r}")

    def _compare_gauge(self, gauge: Gauge, value: int, at_end: bool) -> None:
        heap, before = self.heap, self.baseline.get(gauge, 0)
        if gauge.meaning.startswith("peak"):
            expected = heap.peak_count if gauge.meaning == "peak count" else heap.peak_bytes
            # An earlier peak hides ours, and a resize may hold both blocks for a while.
            exactly = not (before or self.resized or self._nothings) and heap.alone
            wrong = value != expected if exactly else value < expected
        elif gauge.meaning == "count":
            # Some allocators count blocks of zero bytes, RMM also null pointers; others do not.
            expected = before + sum(bool(block.size) for block in heap.blocks.values())
            wrong = not expected <= value <= expected + self._nothings
        else:
            # What rounds sizes up rounds up zero bytes too, so only with no block at all is the number known.
            expected = before + heap.bytes
            wrong = value != expected if gauge.exact or not heap.blocks else value < expected
        if wrong:
            leaked = at_end and value > expected and not gauge.meaning.startswith("peak")
            self._break(
                "A16-no-leaks" if leaked else "A17-statistics",
                f"{gauge.name} is {value}, the shadow heap has {expected}",
            )
