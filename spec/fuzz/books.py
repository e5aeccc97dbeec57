"""What is known of a target in one run: what it lent and what is in it, compared with what it says of itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from syncedmem.model.errors import said

from .access import HandleAccess, HostAccess, NoAccess, host_can_write, through_handle
from .finding import Wrong
from .journal import Journal
from .misuse import Misuses
from .shadow_heap import Block, Intervals, Pattern
from .statistics import Gauge, device_of, gauges, limit_of
from .streams import Stream

if TYPE_CHECKING:
    from .access import Access
    from .capabilities import Capabilities
    from .targets import Target

__all__ = ["Books"]

PATTERN = Pattern()


class Books:
    """What is known of one target in one run.

    Parameters
    ----------
    target : Target
    capabilities : Capabilities
        What it promises.
    journal : Journal or None
        Where each step is written down before it is taken.
    intervals : Intervals or None
        Shared ones, where several drivers have one target.
    access : HostAccess or None
        How contents are reached, if an earlier run against such a target found that out: to ask the system takes as
        long as a thousand steps.

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
        access: HostAccess | None = None,
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
        self._access: Access | None = access
        self._take = target.take
        self._give = target.give
        self._mask = capabilities.alignment - 1
        self._note = self.journal.note
        self._bytes: int = 0
        self._peak_bytes = self._peak_count = self._largest = self._served = self._given = self._placed = 0
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

    @property
    def host_access(self) -> HostAccess | None:
        """How contents are reached if that is no matter of this very target: the host reads and writes them."""
        return self._access if isinstance(self._access, HostAccess) else None

    def in_use(self, block: Block) -> bool:
        """Whether the memory of a block that was given back belongs to somebody again."""
        return block.number in self.blocks or self._intervals.overlapped(block)

    # --- what is behind it

    def _stream(self, number: int) -> Stream:
        return self._streams.setdefault(number, Stream(number))

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
