"""The memory of this process, and whether a target may be asked for blocks that are much larger.

A system that overcommits gives memory when it is first touched.  An allocator that writes to new or to freed memory
would touch all of a block of 8 GiB.  So a block of 64 MiB comes first, and the memory of the process is measured.  If
that block has been lent before, all of it may be there already: then nothing shows, and larger ones are not asked for.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

__all__ = ["MOST_TOUCHED", "may_reserve", "resident"]

MOST_TOUCHED = 64 << 20
"""The largest block that any target is asked for, because it may touch all of it."""

_STATM, _STATUS, _CLEAR = (Path("/proc/self") / name for name in ("statm", "status", "clear_refs"))
_THE_PEAK = "5"
_MINCORE: Callable[[int, int, Any], int] = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)(("mincore", ctypes.CDLL(None)))
_OVERCOMMIT, _NEVER = Path("/proc/sys/vm/overcommit_memory"), "2"


def resident() -> int:
    """The resident memory of this process in bytes; 0 if it is not known."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


def may_reserve(driver: Driver, number: int) -> bool:
    """Whether larger blocks than `MOST_TOUCHED` cost nothing until they are touched."""
    if driver.reserves is None:
        driver.reserves = _overcommits() and _leaves_untouched(driver, number)
    return driver.reserves


def _overcommits() -> bool:
    try:
        return _OVERCOMMIT.read_text(encoding="ascii").strip() != _NEVER
    except OSError:
        return False


def _leaves_untouched(driver: Driver, number: int) -> bool:
    """Whether the process stays small while a block of `MOST_TOUCHED` bytes is allocated, sampled and freed."""
    if 0 < driver.oracle.limit < MOST_TOUCHED:
        return True  # it must refuse all of them
    before = resident()
    with suppress(OSError):
        _CLEAR.write_text(_THE_PEAK, encoding="ascii")
    if not before or not driver.allocate(number, MOST_TOUCHED):
        return False
    was_there = _present(driver.blocks[number].address, MOST_TOUCHED) > MOST_TOUCHED // 2
    driver.free(number)
    # What a free has touched is gone by now, but it was there.
    return not was_there and driver.oracle.host_access is not None and 0 < _peak() < before + MOST_TOUCHED // 2


def _present(address: int, size: int) -> int:
    """The bytes of the pages of a block that are in memory; all of them if that is not known."""
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = (address + size - start) // mmap.PAGESIZE
    there = ctypes.create_string_buffer(pages)
    failed = _MINCORE(start, pages * mmap.PAGESIZE, ctypes.addressof(there))
    return size if failed else sum(page & 1 for page in there.raw) * mmap.PAGESIZE


def _peak() -> int:
    """The most memory that this process has had at once, in bytes; 0 if it is not known."""
    match = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text(encoding="utf-8"))
    return int(match[1]) * 1024 if match else 0
