"""What must be true after every step, from a ledger of our own and from the capability record alone.

`Oracle` takes memory from a target and gives it back, and looks at all that can be seen of it; ``trial`` says in
which steps.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from syncedmem.model.errors import said

from .access import HandleAccess, HostAccess, NoAccess, host_can_write, through_handle
from .finding import Wrong
from .journal import Journal
from .ledger import Block, Intervals, Pattern
from .misuse import Misuses
from .statistics import Gauge, device_of, gauges, limit_of
from .streams import Stream
from .targets import address_of, is_null, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .access import Access
    from .capabilities import Capabilities
    from .targets import Target

__all__ = ["Oracle"]

_KEYS = 40503
"""Odd, so that as many blocks as a tile has bytes get as many different keys."""

PATTERN = Pattern()
_NO_HANDLES = (str, float, bool)
_ATTEMPTS = 16


class Oracle:
    """What is known of one target in one run.

    Parameters
    ----------
    target : Target
    capabilities : Capabilities
        What it promises.
    journal : Journal or None
        Where each step is written down before it is taken.
    intervals : Intervals or None
        Shared ones, where several trials have one target.

    Attributes
    ----------
    blocks : dict of int to Block
        What is in use, by number.
    checked : Counter
        How often each property was looked at.
    """

    def __init__(
        self,
        target: Target,
        capabilities: Capabilities,
        journal: Journal | None = None,
        intervals: Intervals | None = None,
    ) -> None:
        self.target = target
        self.capabilities = capabilities
        self.journal = journal if journal is not None else Journal(capacity=1 << 16)
        self.blocks: dict[int, Block] = {}
        self.checked: Counter[str] = Counter()
        self.misuses = Misuses(self)
        self._remember_freed = self.misuses.freed if capabilities.double_free != "undefined" else None
        self.limit = capabilities.limit or limit_of(target.subject)
        self._alone = intervals is None
        self._intervals = Intervals() if intervals is None else intervals
        self._access: Access | None = None
        self._take = target.take
        self._give = target.give
        self._mask = capabilities.alignment - 1
        self._note = self.journal.note
        self._bytes = self._peak_bytes = self._peak_count = self._largest = self._served = self._given = (
            self._placed
        ) = 0
        self._streams: dict[int, Stream] = {}
        self._pending: list[tuple[int, int, Stream, int]] = []
        self._device = device_of(target.subject)
        self.baseline = gauges(target.subject)
        self._resized = False
        self._nothings = 0

    def close(self) -> None:
        """With everything given back, compare, and close what was made for this run.

        Raises
        ------
        Wrong
            If something is not as it should be.
        """
        self._compare(at_end=True)
        close = getattr(self.target.subject, "close", None)
        if self.target.owned and callable(close):
            self.checked["A24-closes"] += 1
            try:
                close()
            except Exception as error:
                raise Wrong("A24-closes", f"closing with nothing in use: {said(error)}") from error

    def looked_at(self) -> Counter[str]:
        """How often each property was looked at."""
        found = Counter(self.checked)
        found["A01-distinct-pointers"] = found["A02-no-overlap"] = self._placed
        found["A05-served"], found["A07-free-accepts"] = self._served, self._given
        if self._access is not None and not self._access.reason:
            found["A04-contents-kept"] += self._given
            if self.capabilities.zeroed:
                found["A13-zeroed"] += self._served
        if self._mask:
            found["A03-aligned"] += self._served
        return +found

    @property
    def contents_reason(self) -> str | None:
        """Why contents are not checked; empty where they are, None where there were none."""
        return None if self._access is None else self._access.reason

    def in_use(self, block: Block) -> bool:
        """Whether the memory of a block that was given back belongs to somebody again."""
        return block.number in self.blocks or self._intervals.overlapped(block)

    # --- what is behind it

    def _taking(self, alignment: int, stream: int) -> Callable[[int], Any]:
        target = self.target
        if stream and target.take_on is not None:
            take_on, on = target.take_on, self._stream(stream)
            return lambda size: take_on(size, on)
        if alignment and target.take_aligned is not None:
            aligned = target.take_aligned
            return lambda size: aligned(size, alignment)
        return target.take

    def _stream(self, number: int) -> Stream:
        return self._streams.setdefault(number, Stream(number))

    def _obtain(  # noqa: PLR0913 -- what there is to know of a request
        self, take: Callable[[int], Any], number: int, size: int, alignment: int, stream: int, *, zeroed: bool = False
    ) -> bool:
        try:
            handle = take(size)
        except Exception as error:  # noqa: BLE001 -- as above
            self._refusal(size, error)
            return False
        plain = type(handle) is int
        if handle is None or (plain and not handle):
            self._null(size)
            return False
        if not plain and isinstance(handle, _NO_HANDLES):
            raise Wrong("A05-served", f"a request for {size} bytes gave {handle!r:.60}, which is no memory")
        address = handle if plain else address_of(handle)
        block = Block(number, handle, address, size, number * _KEYS & 0xFFFF, stream)
        if not size:
            self._admit_nothing(block)
            return True
        if zeroed or self.capabilities.zeroed:
            self._check_zero(block)
        self._admit(block, alignment)
        return True

    def _refusal(self, size: int, error: Exception) -> None:
        """Look whether a refusal is an out-of-memory error, and whether it can be true."""
        if not size:
            self.checked["A09-zero-size"] += 1
            if self.capabilities.zero_size in ("null", "unique") or not (
                isinstance(error, ValueError) or self.capabilities.is_out_of_memory(error)
            ):
                raise Wrong("A09-zero-size", f"a request for zero bytes: {said(error)}") from error
            return
        if not self.capabilities.is_out_of_memory(error):
            raise Wrong(
                "A05-served", f"a request for {size} bytes: {said(error)}; {self._promised_errors()} was promised"
            ) from error
        self._check_exhausted(size)

    def _null(self, size: int) -> None:
        if not size:
            self._nothings += 1
            self.checked["A09-zero-size"] += 1
            if self.capabilities.zero_size in ("unique", "error"):
                raise Wrong(
                    "A09-zero-size", f"a request for zero bytes gave null; {self.capabilities.zero_size} was promised"
                )
            return
        if "null" not in self.capabilities.out_of_memory:
            raise Wrong("A05-served", f"a request for {size} bytes gave null; {self._promised_errors()} was promised")
        self._check_exhausted(size)

    def _check_exhausted(self, size: int) -> None:
        """Nobody is out of memory who has nothing out: of a size served before, or far below the limit.

        It is asked for again, because some refuse now and then, on purpose.
        """
        if self.blocks or not self._alone or any(self._is_served(size) for _ in range(_ATTEMPTS)):
            return
        if size <= self._largest:
            raise Wrong("A16-no-leaks", f"{size} bytes are refused with nothing in use; as many were served before")
        if self.limit and size <= self.limit // 2:
            raise Wrong("A18-limit", f"{size} bytes are refused with nothing in use and a limit of {self.limit}")

    def _is_served(self, size: int) -> bool:
        """Whether memory can be had, which is given back at once."""
        try:
            handle = self._take(size)
        except Exception:  # noqa: BLE001 -- whatever it is, it is no memory
            return False
        if is_null(handle):
            return False
        self._give(handle, size)
        return True

    def _promised_errors(self) -> str:
        return " or ".join(self.capabilities.out_of_memory)

    def _check_zero(self, block: Block) -> None:
        self.checked["A13-zeroed"] += 1
        content = self._reach(block).read(block, block.size)
        if content.count(0) != len(content):
            at = len(content) - len(content.lstrip(b"\0"))
            raise Wrong("A13-zeroed", f"byte {at} of {block} is {content[at]:02x}")

    def _admit_nothing(self, block: Block) -> None:
        """A block of no bytes: of its own, and nobody else's."""
        self._nothings += 1
        self.checked["A09-zero-size"] += 1
        promised = self.capabilities.zero_size
        if promised in ("null", "error"):
            raise Wrong("A09-zero-size", f"a request for zero bytes gave {block.handle!r:.60}; {promised} was promised")
        other = self._intervals.at(block.address) if block.address else None
        if promised == "unique" and other is None:
            same = (it for it in self.blocks.values() if not it.size and it.address == block.address)
            other = next(same, None) if block.address else None
        if other is not None:
            raise Wrong("A09-zero-size", f"a request for zero bytes gave the memory of {other}")
        self.blocks[block.number] = block

    def _admit(self, block: Block, alignment: int) -> None:
        """Take a new block in: it has to be where it may be, and be writeable."""
        size, address = block.size, block.address
        access = self._access or self._reach(block)
        if address & self._mask or (alignment and address % alignment):
            wanted = max(alignment, self._mask + 1)
            raise Wrong("A03-aligned", f"{block} is not at a multiple of {wanted}")
        if alignment and address:
            self.checked["A03-aligned"] += 1
        if type(block.handle) is not int and (said_size := size_of(block.handle)) is not None:
            self.checked["A08-size-known"] += 1
            if said_size < size:
                raise Wrong("A08-size-known", f"{block} says that it has {said_size} bytes")
        self._remember(block)
        if self._pending:
            self._check_streams(block)
        if self.limit:
            self.checked["A18-limit"] += 1
            if self._bytes > self.limit and self._alone:
                raise Wrong("A18-limit", f"{self._bytes} bytes are in use, the limit is {self.limit}")
        try:
            access.fill(block)
        except Exception as error:
            raise Wrong("A04-contents-kept", f"{block} cannot be written: {said(error)}") from error
        self._served += 1
        if size > self._largest:  # noqa: PLR1730 -- as in _remember
            self._largest = size

    def _remember(self, block: Block) -> None:
        if block.address:
            self._intervals.add(block)
            self._placed += 1
        self.blocks[block.number] = block
        self._bytes = total = self._bytes + block.size
        if total > self._peak_bytes:  # noqa: PLR1730 -- max() would take longer than all the rest here
            self._peak_bytes = total
        if len(self.blocks) > self._peak_count:  # noqa: PLR1730 -- as above
            self._peak_count = len(self.blocks)

    def forget(self, block: Block) -> None:
        """Take a block out of the ledger."""
        self.blocks.pop(block.number, None)
        self._leave(block)

    def _leave(self, block: Block) -> None:
        self._bytes -= block.size
        if block.address:
            self._intervals.remove(block)

    def _give_back(self, block: Block, stream: int) -> None:
        """Give back a block that is no longer in the ledger's list."""
        size = block.size
        if size:
            self._look(block)
            self._leave(block)  # before the call: another thread may get the address at once
        if self._remember_freed is not None:
            self._remember_freed(block)
        try:
            if stream and self.target.give_on is not None:
                on = self._stream(stream)
                if not on.done:
                    self._pending.append((block.address, block.address + size, on, on.queued))
                self.target.give_on(block.handle, size, on)
            else:
                self._give(block.handle, size)
        except Exception as error:
            raise Wrong("A07-free-accepts", f"{block} cannot be given back: {said(error)}") from error
        self._given += 1

    def _check_streams(self, block: Block) -> None:
        self.checked["A19-stream-order"] += 1
        waiting: list[tuple[int, int, Stream, int]] = []
        for start, end, stream, point in self._pending:
            if stream.finished >= point:
                continue
            waiting.append((start, end, stream, point))
            if start < block.address + block.size and block.address < end and stream.number != block.stream:
                raise Wrong(
                    "A19-stream-order",
                    f"{block} for stream {block.stream} is memory that {stream} still writes to",
                )
        self._pending = waiting

    def _look(self, block: Block) -> None:
        access = self._access
        if access is None or not block.size:
            return
        try:
            difference = access.differs(block, block.size)
        except Exception as error:
            raise Wrong("A04-contents-kept", f"{block} cannot be read: {said(error)}") from error
        if difference:
            raise Wrong("A04-contents-kept", f"{block}: {difference}")

    def _rest_differs(self, block: Block, size: int) -> str:
        """Whether bytes beyond a copy were changed."""
        found = self._reach(block).read(block, block.size)
        expected = PATTERN.of(block.key, block.size)
        return "" if found[size:] == expected[size:] or not found else "bytes beyond it were changed"

    def _reach(self, block: Block) -> Access:
        """How contents are reached; decided at the first block."""
        if self._access is None:
            self._access = self._choose_access(block)
        return self._access

    def _choose_access(self, block: Block) -> Access:
        readable, target = self.capabilities.host_readable, self.target
        if readable or (readable is None and block.address and host_can_write(block.address, block.size)):
            return HostAccess(PATTERN)
        if target.read is not None and target.write is not None:
            return HandleAccess(PATTERN, target.read, target.write)
        functions = through_handle(block.handle)
        if functions is not None:
            return HandleAccess(PATTERN, *functions)
        return NoAccess("the host cannot read the memory, and the target has no read and write")

    def _compare(self, at_end: bool) -> None:
        """Compare gauges with the ledger; what is left at the end is a leak."""
        for gauge, value in gauges(self.target.subject).items() if self._alone or at_end else ():
            self.checked["A17-statistics"] += 1
            if at_end:
                self.checked["A16-no-leaks"] += 1
            self._compare_gauge(gauge, value, at_end)
        if self._device is not None:
            self.checked["A21-device-kept"] += 1
            if (device := device_of(self.target.subject)) != self._device:
                raise Wrong("A21-device-kept", f"device {device!r} is current, it was {self._device!r}")

    def _compare_gauge(self, gauge: Gauge, value: int, at_end: bool) -> None:
        before = self.baseline.get(gauge, 0)
        if gauge.meaning.startswith("peak"):
            expected = self._peak_count if gauge.meaning == "peak count" else self._peak_bytes
            # A peak of somebody else hides ours, and a resize may have both blocks for a while.
            exactly = not (before or self._resized or self._nothings) and self._alone
            wrong = value != expected if exactly else value < expected
        elif gauge.meaning == "count":
            # Some count blocks of zero bytes, and RMM those that are null too; and some do not.
            expected = before + sum(bool(it.size) for it in self.blocks.values())
            wrong = not expected <= value <= expected + self._nothings
        else:
            expected = before + self._bytes
            wrong = value != expected if gauge.exact or not self._bytes else value < expected
        if wrong:
            leaked = at_end and value > expected and not gauge.meaning.startswith("peak")
            raise Wrong(
                "A16-no-leaks" if leaked else "A17-statistics", f"{gauge.name} is {value}, the ledger has {expected}"
            )
