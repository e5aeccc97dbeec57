"""The rounds of the fast generator.

Each round first draws its parameters: the sizes, the number of live blocks, and the order of frees.  Rounds that
differ find more than rounds that are all the same mixture.  The first rounds are fixed: limits of sizes, long
cycles, and the limit of memory.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING

from .driver import PLAIN, RESIZED, ZEROED
from .finding import Step

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from .driver import Driver

__all__ = ["TOO_MANY", "TOO_MUCH", "Round", "draw_sizes", "fixed_rounds"]

KIB, MIB = 1 << 10, 1 << 20
TOO_MUCH = (1 << 50, 1 << 62)
_WORD = 8 * ctypes.sizeof(ctypes.c_size_t)
TOO_MANY = ((1 << _WORD // 2, 1 << _WORD // 2), (3, (1 << _WORD) // 3 + 1))
"""Counts and sizes whose products overflow a size_t, to 0 and to 2."""
_SIZES = 1024
_RARE = 0.03
_CYCLES = ((2 * MIB, 48), (64 * KIB, 512))
_REFUSALS = 256
"""So many that a leak in each is noticed."""
_LARGEST_FILLED = 256 * MIB
_STREAMS = 3


@lru_cache(maxsize=1)
def fixed_rounds(limit: int, *, takes_many: bool) -> Sequence[Sequence[Step]]:
    """The fixed rounds: limits of sizes, cycles, the limit of memory, and each rare step once.

    Parameters
    ----------
    limit : int
        The most bytes of the target; 0 if not known.
    takes_many : bool
        Whether it has a request for a count of blocks of a size, such as calloc.
    """
    edges = sorted({0, *(max(0, (1 << k) + d) for k in range(17) for d in (-1, 0, 1))})
    allocate = [Step("allocate", (i, size, 0, 0)) for i, size in enumerate(edges)]
    free = [Step("free", (i, 0)) for i in range(len(edges))]
    once = [Step("allocate", (0, 64 * KIB, 0, 0)), Step("free", (0, 0))]
    rounds = [
        [*allocate, Step("compare", ()), *free, *allocate, *reversed(free)],
        [Step("allocate", (0, 100, 0, 0)), Step("copy_nothing", ()), Step("free_foreign", ()), Step("check", (0,))],
        [*(Step("request_too_much", (size,)) for size in TOO_MUCH), Step("allocate", (0, 64, 0, 0))],
        *([Step("request_too_many", it)] for it in (TOO_MANY if takes_many else ())),
        [Step("allocate", (0, 100, 0, 0)), Step("resize_too_much", (0, TOO_MUCH[0])), Step("allocate", (1, 100, 0, 0))],
        [*once, *(Step("request_too_much", (TOO_MUCH[0],)) for _ in range(_REFUSALS)), *once],
        *([Step("cycle", (size, count, how))] for size, count in _CYCLES for how in (PLAIN, RESIZED, ZEROED)),
    ]
    if 0 < limit <= _LARGEST_FILLED:
        part = max(limit // 64, 1)
        rounds.append([Step("fill", (part,)), Step("fill", (part,)), Step("allocate", (0, part, 0, 0))])
    return rounds


class Round:
    """Random steps with the parameters of one round.

    Parameters
    ----------
    driver : Driver
    rng : random.Random
    first : int
        The first block number; threads use different numbers.
    """

    def __init__(self, driver: Driver, rng: random.Random, first: int = 0) -> None:
        self._driver = driver
        self._rng = rng
        self._next = first
        self._live: list[int] = []
        self._freed: list[int] = []
        self._most = rng.choice((4, 16, 64, 256))
        self._growth = rng.choice((0.5, 0.55, 0.7))
        self._order = rng.choice(("any", "last", "first"))
        self._sizes = draw_sizes(rng)
        self._rare = self._rare_steps()

    def take(self, steps: int) -> None:
        """Take steps.

        Raises
        ------
        Violation
            At the first step that shows a bug.
        """
        driver, live, sizes = self._driver, self._live, self._sizes
        allocate, free, check = driver.allocate, driver.free, driver.check
        draw, most, growth, number = self._rng.random, self._most, self._growth, self._next
        for step in range(steps):
            chance = draw()
            if chance < _RARE:
                self._next = number
                self._rng.choice(self._rare)()
                number = self._next
            elif live and chance < 2 * _RARE:
                check(live[int(draw() * len(live))])
            elif len(live) < most and (chance < growth or not live):
                if allocate(number, sizes[step & 1023]):
                    live.append(number)
                number += 1
            else:
                free(self._leaving())

    def _leaving(self) -> int:
        """The block that is freed next."""
        live = self._live
        if self._order == "last":
            return live.pop()
        if self._order == "first":
            return live.pop(0)
        at = int(self._rng.random() * len(live))
        live[at], live[-1] = live[-1], live[at]
        return live.pop()

    def _rare_steps(self) -> list[Callable[[], None]]:
        """The rare steps of this target, drawn with equal chances."""
        target, promised = self._driver.target, self._driver.capabilities
        found = [self._compare, self._request_too_much, self._nothing]
        found += [self._calloc] * 2 if target.take_zeroed else []
        found += [self._request_too_many] if target.take_many else []
        found += [self._resize] * 4 + [self._resize_too_much] if target.resize else []
        found += [self._copy] * 2 if target.copy else []
        found += [self._aligned] * 2 if target.take_aligned else []
        found += [self._free_again] * 2 if promised.double_free != "undefined" else []
        found += [self._free_foreign] if promised.foreign_free != "undefined" else []
        found += [self._free_wrong_size] if promised.wrong_size != "undefined" else []
        found += [self._on_streams] * 8 if promised.stream_ordered else []
        return found

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _some(self) -> int:
        return self._rng.choice(self._live) if self._live else -1

    def _size(self) -> int:
        return self._rng.choice(self._sizes)

    def _obtained(self, number: int, got: bool) -> None:
        if got:
            self._live.append(number)

    def _compare(self) -> None:
        self._driver.compare()

    def _request_too_much(self) -> None:
        self._driver.request_too_much(self._rng.choice(TOO_MUCH))

    def _request_too_many(self) -> None:
        self._driver.request_too_many(*self._rng.choice(TOO_MANY))

    def _nothing(self) -> None:
        self._obtained(number := self._new(), self._driver.allocate(number, 0))

    def _calloc(self) -> None:
        self._obtained(number := self._new(), self._driver.calloc(number, self._size()))

    def _aligned(self) -> None:
        alignment = 1 << self._rng.randrange(4, 13)
        self._obtained(number := self._new(), self._driver.allocate(number, self._size(), alignment))

    def _resize(self) -> None:
        self._driver.resize(self._some(), self._size())

    def _resize_too_much(self) -> None:
        self._driver.resize_too_much(self._some(), self._rng.choice(TOO_MUCH))

    def _copy(self) -> None:
        self._driver.copy(self._some(), self._some())

    def _free_again(self) -> None:
        if self._live:
            number = self._leaving()
            self._driver.free(number)
            self._driver.free_again(number)

    def _free_foreign(self) -> None:
        self._driver.free_foreign()

    def _free_wrong_size(self) -> None:
        number = self._some()
        self._driver.free_wrong_size(number, self._size())
        if number not in self._driver.blocks and number in self._live:
            self._live.remove(number)

    def _on_streams(self) -> None:
        """Allocate on one stream, queue work, free, and allocate the same size on the same or another stream."""
        driver, rng, size = self._driver, self._rng, self._size()
        first, second = rng.sample(range(1, _STREAMS + 1), 2)
        number = self._new()
        if driver.allocate(number, size, 0, first):
            driver.work(number, first)
            driver.free(number, first)
            self._obtained(number := self._new(), driver.allocate(number, size, 0, rng.choice((first, second))))
        if rng.random() < 1 / 2:
            driver.finish(first)


def draw_sizes(rng: random.Random) -> list[int]:
    """The sizes of a round in bytes: mostly small, sometimes all the same, sometimes large."""
    kind = rng.choice(("small", "small", "mixed", "mixed", "alike", "large"))
    if kind == "alike":
        one = rng.choice((1, 16, 24, 64, 100, 256, 4096))
        return [one] * _SIZES
    if kind == "large":
        return [_around(rng, 22) if rng.random() < 1 / 8 else _around(rng, 13) for _ in range(_SIZES)]
    if kind == "small":
        return [rng.randrange(1, 257) for _ in range(_SIZES)]
    return [_around(rng, 16 if rng.random() < 1 / 32 else 12) for _ in range(_SIZES)]


def _around(rng: random.Random, bits: int) -> int:
    """A size of any magnitude; powers of two and their neighbours are more frequent."""
    top = 1 << rng.randrange(bits)
    return max(1, top + rng.choice((-1, 0, 1))) if rng.random() < 1 / 4 else rng.randrange(top, 2 * top)
