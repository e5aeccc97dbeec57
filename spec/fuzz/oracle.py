"""What must be true after every step, from a ledger of our own and from the capability record alone.

`Oracle` judges what a target answers to requests, and ``books`` keeps what is known of it; ``driver`` and ``limits``
say in which steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model.errors import said

from .books import Books
from .finding import Wrong
from .shadow_heap import Block
from .targets import address_of, is_null, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Oracle"]

_KEYS = 40503
"""Odd, so that as many blocks as a tile has bytes get as many different keys."""

_NO_HANDLES = (str, float, bool)
_ATTEMPTS = 16


class Oracle(Books):
    """The judge of one target in one run; it takes what `Books` takes."""

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
