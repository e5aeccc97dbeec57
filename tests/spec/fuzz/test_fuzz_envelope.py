"""The edges of what the fuzzer asks for: sizes, live blocks, refusals, usable sizes, and the age of a process."""

from __future__ import annotations

import ctypes
import random
from typing import TYPE_CHECKING, Any

import pytest
from mutants.allocator import Pool
from mutants.allocator.envelope import UsablePool

from syncedmem.spec import Violation
from syncedmem.spec.fuzz import Driver, TargetSource, driver_of, fuzz
from syncedmem.spec.fuzz.access import WHOLE
from syncedmem.spec.fuzz.campaign import Stage, campaign
from syncedmem.spec.fuzz.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

LIBC = "libc.so.6:malloc,free,calloc,realloc"


def started(target: object) -> Driver:
    """Return a driver of a new target."""
    opened = TargetSource(target).open()
    return Driver(opened, opened.capabilities)


# --- large blocks


@pytest.mark.parametrize("at", [0, 1 << 20, WHOLE + 99])
def test_a_change_in_a_window_of_a_large_block_is_seen(at: int) -> None:
    with driver_of(LIBC) as driver:
        driver.allocate(0, WHOLE + 100)
        assert driver.check(0)
        where = driver.blocks[0].address + at
        ctypes.memset(where, ctypes.string_at(where, 1)[0] ^ 1, 1)
        with pytest.raises(Violation, match=rf"A04-contents-kept: .*byte {at} is"):
            driver.check(0)
        driver.blocks.clear()


# --- how much may be asked for


class Library:
    """The C library, with a function that is called with each new block."""

    def __init__(self, touch: Callable[[int, int], object]) -> None:
        self._libc = ctypes.CDLL(None)
        self._libc.malloc.restype, self._libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self._libc.free.argtypes = [ctypes.c_void_p]
        self._touch = touch

    def allocate(self, size: int) -> int | None:
        """Allocate."""
        address: int | None = self._libc.malloc(size)
        if address is None:
            raise MemoryError(size)
        self._touch(address, size)
        return address

    def deallocate(self, pointer: int) -> None:
        """Free."""
        self._libc.free(pointer)


def test_python_may_refuse_what_is_no_size_as_a_wrong_value() -> None:
    with driver_of((bytearray, print)) as driver:
        assert driver.request_too_much((1 << 64) - 1)

    class Overflowing(Pool):
        """Raises the wrong error."""

        def refuse(self, size: int) -> int:
            raise OverflowError(size)

    with driver_of(Overflowing) as driver:
        assert driver.request_too_much(1 << 63)
        with pytest.raises(Violation, match="A06-out-of-memory"):
            driver.request_too_much(1 << 50)


@pytest.mark.parametrize("touches", [True, False])
def test_an_allocator_that_writes_to_its_blocks_is_asked_for_none_that_are_huge(touches: bool) -> None:
    sizes: list[int] = []

    def touch(address: int, size: int) -> None:
        sizes.append(size)
        if touches:
            ctypes.memset(address, 0xDD, size)

    report = fuzz(Library(touch), steps=15_000)

    assert report.passed, report.findings
    assert (max(sizes) > 1 << 26) is not touches


# --- usable sizes


def test_all_of_a_usable_size_is_written_and_must_stay() -> None:
    driver = started(UsablePool)
    driver.allocate(0, 10)
    assert driver.use_all(0)
    block = driver.blocks[0]
    assert (10, 64) == (block.size, block.extent)
    assert driver.resize(0, 100)
    assert driver.use_all(0)
    ctypes.memset(driver.blocks[0].address + 127, 0, 1)
    with pytest.raises(Violation, match=r"A04-contents-kept: .*byte 127 is 00"):
        driver.check(0)
    with driver_of(Pool) as driver:
        driver.allocate(0, 10)
        assert not driver.use_all(0)


@pytest.mark.parametrize("usable", [9, None, ValueError("lost"), 1 << 46])
def test_a_usable_size_that_is_none_is_seen(usable: Any) -> None:
    class Lying(UsablePool):
        """Says another size."""

        def usable_size(self, pointer: int) -> Any:
            if isinstance(usable, Exception):
                raise usable
            return usable if pointer else 0

    driver = started(Lying)
    driver.allocate(0, 10)
    with pytest.raises(Violation, match=r"A08-size-known: .*usable size"):
        driver.use_all(0)


# --- refusals


RULES: dict[str, Callable[[float, int], bool]] = {
    "10 %": lambda drawn, _: drawn < 0.1,
    "50 %": lambda drawn, _: drawn < 0.5,
    "90 %": lambda drawn, _: drawn < 0.9,
    "each 2nd": lambda _, number: number % 2 == 0,
    "each 7th": lambda _, number: number % 7 == 0,
    "all but each 3rd": lambda _, number: number % 3 != 0,
    "all but each 50th": lambda _, number: number % 50 != 0,
}
"""What is refused, by a number from 0 to 1 that is drawn, and by the number of the request."""


class Refuser(Pool):
    """A legal allocator that refuses by a rule of its own."""

    def __init__(self, rule: Callable[[float, int], bool]) -> None:
        super().__init__()
        self._rule, self._drawn, self._requests = rule, random.Random(7), iter(range(1 << 40))  # noqa: S311 -- replayable

    def place(self, room: int, alignment: int) -> int:
        """The first hole, unless this one is refused."""
        refused = self._rule(self._drawn.random(), next(self._requests))
        return 0 if refused else super().place(room, alignment)


@pytest.mark.parametrize("rule", RULES)
def test_who_refuses_at_random_or_in_turn_is_not_accused(rule: str) -> None:
    source = TargetSource(lambda: Refuser(RULES[rule]))
    record = source.open().capabilities
    for seed in range(3):
        fixed = campaign(source, record, Journal(), Stage(3_000, "fixed"), seed=seed, seconds=600)
        drawn = campaign(source, record, Journal(), Stage(2_000), seed=seed, seconds=600)

        assert [None, None] == [fixed.finding, drawn.finding]


def test_a_class_that_is_refused_while_blocks_are_live_is_asked_for_again() -> None:
    """Once it is met, it is not starved."""
    asked: list[int] = []

    class Later(Pool):
        """Refuses a size at first."""

        def place(self, room: int, alignment: int) -> int:
            asked.append(room)
            return 0 if room == 128 and asked.count(128) < 5 else super().place(room, alignment)

    with driver_of(Later) as driver:
        driver.allocate(0, 4096)
        assert not driver.allocate(1, 100)
        assert {(100, False): None} == driver.oracle.suspects
    assert 5 == asked.count(128)
    assert 1 == driver.oracle.checked["A25-no-starvation"]


# --- rounds, processes and age


@pytest.mark.deep
def test_the_default_run_of_the_c_library_finds_nothing() -> None:
    report = fuzz(LIBC, steps=600_000, seconds=600)
    report.require()

    assert report.operations >= 600_000
