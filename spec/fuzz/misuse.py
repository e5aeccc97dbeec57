"""Frees that are wrong on purpose, where a target says what becomes of them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from syncedmem.model.errors import said

from .finding import Wrong
from .journal import code

if TYPE_CHECKING:
    from collections.abc import Callable

    from .books import Books
    from .capabilities import Misuse
    from .shadow_heap import Block

__all__ = ["Misuses"]

_REMEMBERED = 64


class Misuses:
    """Wrong frees of one driver.

    Parameters
    ----------
    driver : Books
    """

    def __init__(self, driver: Books) -> None:
        self._driver = driver
        self._freed: OrderedDict[int, Block] = OrderedDict()
        self._kept = bytearray(4096)

    def freed(self, block: Block) -> None:
        """Remember a block that is given back; it may be given back again."""
        self._freed[block.number] = block
        if len(self._freed) > _REMEMBERED:
            self._freed.popitem(last=False)

    def free_again(self, number: int) -> bool:
        """Give a block back that was given back; not if its address belongs to somebody again."""
        driver, block = self._driver, self._freed.get(number)
        if block is None or not block.size or driver.in_use(block):
            return False
        driver.journal.note(code("free_again"), number)
        self._expect(
            "A12-double-free",
            driver.capabilities.double_free,
            lambda: driver.target.give(block.handle, block.size),
            f"{block}, given back twice",
        )
        return True

    def free_foreign(self) -> bool:
        """Give back an address, or an object, that no allocator ever had."""
        driver = self._driver
        if driver.capabilities.foreign_free == "undefined" or not driver.blocks:
            return False
        driver.journal.note(code("free_foreign"))
        example = next(iter(driver.blocks.values())).handle
        foreign: Any = id(self._kept) if isinstance(example, int) else object()
        self._expect(
            "A11-foreign-free",
            driver.capabilities.foreign_free,
            lambda: driver.target.give(foreign, 16),
            f"{foreign!r:.60}, never allocated, given back",
        )
        return True

    def free_wrong_size(self, number: int, size: int) -> bool:
        """Give a block back and say another size; where that is refused the block stays."""
        driver, block = self._driver, self._driver.blocks.get(number)
        promised = driver.capabilities.wrong_size
        if promised == "undefined" or block is None or not block.size or size == block.size:
            return False
        driver.journal.note(code("free_wrong_size"), number, size)
        if promised == "ignore":
            driver.forget(block)
        self._expect(
            "A10-wrong-size",
            promised,
            lambda: driver.target.give(block.handle, size),
            f"{block}, given back as {size} bytes",
        )
        return True

    def _expect(self, property_id: str, promised: Misuse, free: Callable[[], object], what: str) -> None:
        self._driver.checked[property_id] += 1
        try:
            free()
        except Exception as error:
            if promised == "ignore":
                raise Wrong(property_id, f"{what}: {said(error)}; to be ignored was promised") from error
            return
        if promised == "detect":
            raise Wrong(property_id, f"{what}: it went unnoticed")
