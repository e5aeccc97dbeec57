"""The rounds of the fast generator.

*Fixed* rounds are the same for every seed: limits of sizes, many live blocks, long cycles, and the limit of memory.
*Late* rounds are the same for every seed too, and come last: cycles in many more classes, and giant sizes.
A *drawn* round first draws its own mix: the calls, the sizes, the number of live blocks, and how long they live.
Rounds that differ find more than rounds that are all the same mixture (Groce et al., Swarm Testing, 2012).
"""

from __future__ import annotations

import random
import time
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

from .driver import CROWDED, PAIRED, PLAIN, RESIZED, SHRUNK, ZEROED
from .finding import HeapStep, allocated, freed
from .residence import MOST_TOUCHED, may_reserve
from .targets import SIZE_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .driver import Driver

__all__ = ["CHUNK", "DRAWN", "TOO_MUCH", "Drawn", "Kind", "Round", "take_round"]

Kind = Literal["fixed", "drawn", "late"]

KIB, MIB = 1 << 10, 1 << 20
_WORD = SIZE_MAX.bit_length()
_BELOW_THE_MOST = (0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 1023, 4095, 4096, 65535, 1 << 20)
TOO_MUCH = (
    *((1 << power) + more for power in range(50, _WORD) for more in (0, -1, 1, 64)),
    *(SIZE_MAX - less for less in _BELOW_THE_MOST),
)
"""Sizes that no machine has.  Some are small if they are cut to 32 bits, or if a header is added to them; those around
1 << 63 have another sign."""

TOO_MANY = (
    (1 << _WORD // 2, 1 << _WORD // 2),
    (3, (1 << _WORD) // 3 + 1),
    (1 << _WORD - 1, 2),
    (SIZE_MAX, SIZE_MAX),
    (SIZE_MAX // 16 + 2, 16),
    (16, SIZE_MAX // 16 + 2),
    ((1 << _WORD // 2 - 1) + 1, (1 << _WORD // 2 - 1) + 1),
)
"""Counts and sizes whose products overflow: to 0, 2, 0, 1, 16 and 16 in a size_t, and the last to 1 in half of it."""


class Drawn(NamedTuple):
    """A step that is drawn: the block that it is about, how often in rounds, what it needs, and its other numbers.

    It needs a function of the target, or a promise that is not the default.  A number that is a word is drawn.
    """

    operation: str
    block: Literal["new", "live", "leaving", "gone", ""] = ""
    weight: int = 0
    needs: str = ""
    numbers: tuple[int | str, ...] = ()

    def is_offered(self, driver: Driver) -> bool:
        """Whether the target of a driver has what it needs."""
        if hasattr(driver.capabilities, self.needs):
            return getattr(driver.capabilities, self.needs) not in (False, "undefined")
        return not self.needs or getattr(driver.target, self.needs) is not None

    def draw(self, rng: random.Random, sizes: Sequence[int], blocks: Sequence[int]) -> tuple[int, ...]:
        """Draw its other numbers: sizes are among these, and another block is one of these."""
        drawn: list[int] = []
        for number in self.numbers:
            if isinstance(number, int):
                drawn.append(number)
            elif number == "too_many":
                drawn += rng.choice(TOO_MANY)
            else:
                among = {"size": sizes, "block": blocks or (-1,), **_AMONG}[number]
                drawn.append(rng.choice(among))
        return tuple(drawn)


_AMONG: dict[str, Sequence[int]] = {
    "alignment": [1 << power for power in range(4, 13)],
    "stream": range(1, 4),
    "too_much": TOO_MUCH,
}

DRAWN = (
    Drawn("allocate", "new", 1, "", (0, 0, 0)),
    Drawn("allocate", "new", 0, "", ("size", 0, 0)),
    Drawn("allocate", "new", 2, "take_aligned", ("size", "alignment", 0)),
    Drawn("allocate", "new", 0, "stream_ordered", ("size", 0, "stream")),
    Drawn("calloc", "new", 2, "take_zeroed", ("size",)),
    Drawn("free", "leaving", 0, "", (0,)),
    Drawn("free", "leaving", 0, "stream_ordered", ("stream",)),
    Drawn("check", "live"),
    Drawn("compare", "", 1),
    Drawn("reset", "", 1, "reset"),
    Drawn("request_too_much", "", 1, "", ("too_much", 0)),
    Drawn("request_too_many", "", 1, "take_many", ("too_many",)),
    Drawn("resize", "live", 4, "resize", ("size",)),
    Drawn("resize_too_much", "live", 1, "resize", ("too_much",)),
    Drawn("use_all", "live", 2, "usable_size"),
    Drawn("copy", "live", 2, "copy", ("block",)),
    Drawn("free_again", "gone", 2, "double_free"),
    Drawn("free_foreign", "", 1, "foreign_free"),
    Drawn("free_wrong_size", "live", 1, "wrong_size", ("size",)),
    Drawn("work", "live", 0, "stream_ordered", ("stream",)),
    Drawn("finish", "", 0, "stream_ordered", ("stream",)),
)
"""The steps that rounds and the machine of Hypothesis draw."""

_SIZES = 1024
_RARE = 0.03
_CYCLES = ((2 * MIB, 48), (64 * KIB, 512))
_CLASSES, _CLASS_BYTES = (16, 32, 48, 64, 96, 128, 256, 512, 1024, 4096), 8 * MIB
"""Sizes of which each is in a class of its own in many allocators, and the bytes after which a class that is never used
again shows."""
_OTHER_CLASSES = [
    size for size in (*range(8, 512, 8), *range(512, 4096, 64), *range(5 * KIB, 33 * KIB, KIB)) if size not in _CLASSES
]
"""Sizes of further classes: a class that is used again takes only a few calls."""
_ORDINARY, _SOON = 64, 32
"""The size of an ordinary block, and after so many of them one has an address again in most allocators."""
_SHRUNK = (64, 256, 1024, 4096, 64 * KIB, 2 * MIB)
"""Sizes of blocks that are resized to an eighth, and freed as such."""
_PROBED, _PROBE_BITS = range(24, 10, -1), 6
"""The powers of two from which the largest size that is met is looked for, and so many bits of it."""
_MANY_TOGETHER = KIB, 1 << 14
"""The size and the number of blocks that come and go together: what a cache loses of each batch is some megabytes."""
_NO_ALIGNMENTS = (0, 1, 2, 3, 4, 12, 24, 48, 100)
"""What is no alignment for ``posix_memalign``: no power of two, or not a multiple of the size of a pointer."""
_PAGE = 4096
_LARGE_ALIGNMENTS = tuple(1 << power for power in range(13, 21))
"""Alignments beyond a page, which only functions in C have to know."""
_FORKS = 100
_ALIGNED = tuple(1 << power for power in range(5, 13))
"""The alignments of blocks that are resized."""
_REFUSALS = 256
"""So many that a leak in each is noticed."""
_LARGEST_FILLED = 256 * MIB
_MANY = 1100
_SHORTEST, _LONGEST = 128, 8192
_CROWD, _CROWD_STEPS, _CROWDED = (66_000, 100_000), 240_000, 128
"""The live blocks of a crowded round, the steps that it needs, and one round of how many is crowded."""
CHUNK = 128
"""The steps between two looks at the time."""
_LIVE, _LIVE_OF_A_THREAD = (1, 4, 16, 64, 256, 256, 1024, 4096), (4, 16, 64, 256)
"""The most live blocks of a round."""
_FEW = 16
"""So few blocks may be of up to 64 MiB each, or of many gibibytes."""
_TIDE = (0.97, 0.1)
"""The chance of an allocation until all blocks are live, and then until an eighth is left."""
_YOUNG = 8
"""The number of newest blocks from which one is freed, if blocks die young."""
_KINDS_OF_SIZES = ("small", "small", "small", "alike", "mixed", "mixed", "classes", "large", "wide")
_HEIGHTS = range(21, 48)
_SLOW = 1.0
"""The seconds after which a size takes too long to try larger ones."""
_RESERVED = range(26, 33)
_WRAP = 1 << 32


def take_round(driver: Driver, kind: Kind, number: int, seed: int, most: int, deadline: float) -> bool:  # noqa: PLR0913 -- what a round depends on
    """Take one round to its end; False if there is no such round."""
    driver.deadline = deadline
    if kind != "drawn":
        rounds = fixed_rounds(driver, deadline) if kind == "fixed" else late_rounds(driver, deadline)
        if number >= len(rounds):
            return False
        rounds[number]()
    else:
        rng = random.Random(f"{seed}:{number}")  # noqa: S311 -- replayable
        crowded = number % _CROWDED == 0 and most >= _CROWD_STEPS
        length = min(_SHORTEST << rng.randrange(7), _LONGEST, most)
        mix = Round(driver, rng, crowd=rng.randint(*_CROWD) if crowded else 0)
        mix.take(_CROWD_STEPS if crowded else length, deadline)
    driver.ask_for_the_largest()
    driver.end()
    return True


def fixed_rounds(driver: Driver, deadline: float) -> Sequence[Callable[[], None]]:
    """The fixed rounds for a driver: limits of sizes, cycles, the limit of memory, and each rare step once."""
    target, limit = driver.target, driver.oracle.limit
    edges = sorted({0, *(max(0, (1 << k) + d) for k in range(17) for d in (-1, 0, 1))})
    taken, gone = [allocated(i, size) for i, size in enumerate(edges)], [freed(i) for i in range(len(edges))]
    once = [allocated(0, 64 * KIB), freed(0)]
    rounds = [
        [*taken, HeapStep("compare", ()), *gone, *taken, *reversed(gone)],
        [*taken, *(HeapStep("use_all", (i,)) for i in range(len(edges))), *gone],
        [allocated(0, 100), HeapStep("copy_nothing", ()), HeapStep("free_foreign", ()), HeapStep("check", (0,))],
        _too_much(0),
        *([HeapStep("request_too_many", item)] for item in (TOO_MANY if target.take_many else ())),
        [allocated(0, 100), *(HeapStep("resize_too_much", (0, size)) for size in TOO_MUCH), allocated(1, 100)],
        *([*_aligned_then_resized(item)] for item in (_ALIGNED if target.take_aligned else ())),
        *([*there, step] for there, step in (_contracts() if target.contracts else ())),
        [*(allocated(i, 16 + i % 48) for i in range(_MANY)), *(freed(i) for i in range(0, _MANY, 2))],
        [*once, *(HeapStep("request_too_much", (TOO_MUCH[0], 0)) for _ in range(_REFUSALS)), *once],
        # Before blocks are large: memory that they leave would serve a class that grows.
        *([HeapStep("cycle", (size, _CLASS_BYTES // size, PLAIN))] for size in _CLASSES),
        *([HeapStep("cycle", (size, count, how))] for size, count in _CYCLES for how in (PLAIN, RESIZED, ZEROED)),
        [HeapStep("cycle", (64 * KIB, _CLASS_BYTES // (64 * KIB), PAIRED))],
    ]
    if 0 < limit <= _LARGEST_FILLED:
        part = max(limit // 64, 1)
        rounds.append([HeapStep("fill", (part,)), HeapStep("fill", (part,)), allocated(0, part)])
    rounds.append([allocated(i, (1 << k) + d) for i, (k, d) in enumerate(product(range(17, 21), (-1, 0, 1)))])
    if target.take_aligned:
        rounds += [_too_much(alignment) for alignment in (16, 64, _PAGE)]
        rounds += [[allocated(0, 100, alignment)] for alignment in (_LARGE_ALIGNMENTS if target.contracts else ())]
    return [*(partial(_take_all, driver, steps) for steps in rounds), partial(_crowd, driver, deadline)]


def _too_much(alignment: int) -> list[HeapStep]:
    """Sizes that no machine has, and after them one that it has."""
    steps = [HeapStep("request_too_much", (size, alignment)) for size in TOO_MUCH]
    return [*steps, allocated(0, 64)]


def _contracts() -> Iterable[tuple[Sequence[HeapStep], HeapStep]]:
    """What C and POSIX say, each with the blocks that must be there, because each call may end the process."""
    blocks = [allocated(number, size) for number, size in enumerate((100, 5000, 200_000))]
    yield (), HeapStep("free_null", ())
    for number in range(len(blocks)):
        yield blocks, HeapStep("resize_to_nothing", (number,))
    for size in (1, 64, 5000, 200_000):
        yield (), HeapStep("resize_null", (0, size))
        yield (), HeapStep("free_with_errno", (size,))
    for alignment in _NO_ALIGNMENTS:
        yield (), HeapStep("request_bad_alignment", (alignment, 64))
    yield (), HeapStep("fork", (_FORKS,))


def _aligned_then_resized(alignment: int) -> Iterable[HeapStep]:
    """Blocks with an alignment become larger, one after the other, so that they have to move; then smaller."""
    blocks = range(_FEW)
    for block in blocks:
        yield allocated(block, alignment << block % 2, alignment)
    for size in (2 * alignment + 24, 5 * alignment + 8, alignment, 8):
        for block in blocks:
            yield HeapStep("resize", (block, size + 16 * block))


def late_rounds(driver: Driver, deadline: float) -> Sequence[Callable[[], None]]:
    """The rounds that are taken last: cycles in more classes, those that shrink, and giant sizes, which take long."""
    cycles = [(size, _CLASS_BYTES // size, PLAIN) for size in _OTHER_CLASSES]
    cycles += [(size, max(_CLASS_BYTES // size, 48), SHRUNK) for size in _SHRUNK]
    return [*(partial(_turn, driver, cycle) for cycle in cycles), partial(_climb, driver, deadline)]


def _turn(driver: Driver, cycle: tuple[int, int, int]) -> None:
    """Take a cycle where an ordinary block soon has an address again; elsewhere each cycle would take seconds."""
    addresses: set[int] = set()
    for number in range(_SOON):
        if driver.allocate(0, _ORDINARY):
            addresses.add(driver.blocks[0].address)
            driver.free(0)
        if len(addresses) <= number:
            driver.perform(HeapStep("cycle", cycle))
            return


def _crowd(driver: Driver, deadline: float) -> None:
    """Allocate and free very many blocks together, some times, if there is time for it."""
    size, count = _MANY_TOGETHER
    began = time.perf_counter()
    for number in range(_SOON):
        driver.allocate(number, _ORDINARY)
    for number in range(_SOON):
        driver.free(number)
    now = time.perf_counter()
    if (now - began) / _SOON * count < (deadline - now) / 4:  # if the process grows, it is measured four times
        driver.perform(HeapStep("cycle", (size, count, CROWDED)))


def _take_all(driver: Driver, steps: Sequence[HeapStep]) -> None:
    for step in steps:
        driver.perform(step)


def _climb(driver: Driver, deadline: float) -> None:
    """Request two blocks of each large power of two and its neighbours; each may be met or refused.

    It ends at the deadline, and with a size that takes longer than a second: those beyond it take longer still.
    """
    driver.allocate(0, KIB)
    number = 1
    for power in _HEIGHTS:
        for more in (-1, 0, 1, 64):
            size, began = (1 << power) + more, time.perf_counter()
            if began > deadline:
                return
            if size > MOST_TOUCHED and not may_reserve(driver, number):
                return
            if driver.allocate(number, size):
                driver.allocate(number + 1, size)  # if blocks are too short, they overlap
                driver.check(number)
                driver.free(number)
                driver.free(number + 1)
            if time.perf_counter() > began + _SLOW:
                return
            number += 2


class Round:
    """Random steps with the mix of one round."""

    def __init__(self, driver: Driver, rng: random.Random, first: int = 0, crowd: int = 0) -> None:
        self._driver = driver
        self._rng = rng
        self._next = first
        self._live: list[int] = []
        self._alone = driver.oracle.heap.alone
        self._most = crowd or rng.choice(_LIVE if self._alone else _LIVE_OF_A_THREAD)
        # A first-fit list with thousands of holes is slow, so very many blocks leave no gaps between them.
        self._order = rng.choice(("last", "first") if self._most > KIB else ("any", "any", "last", "first", "young"))
        self._flood, self._ebb = _TIDE if crowd else rng.choice((_TIDE, _TIDE, (0.5, 0.5), (0.55, 0.55), (0.7, 0.7)))
        self._growth = self._flood
        self._sizes = draw_sizes(rng, self._most)
        self._rarely = _RARE / 64 if crowd else rng.choice((_RARE / 4, _RARE / 2, _RARE, 2 * _RARE))
        self._rare = self._mix(self._rare_steps())

    def _mix(self, steps: list[Callable[[], None]]) -> list[Callable[[], None]]:
        """Some of the rare steps, each with a chance of its own; in one round of four, all with equal chances."""
        if self._rng.random() < 1 / 4:
            return steps
        times = {step: self._rng.choice((0, 0, 0, 1, 2, 4)) for step in dict.fromkeys(steps)}
        return [step for step, count in times.items() for _ in range(count)] or steps

    def take(self, steps: int, deadline: float = float("inf")) -> None:
        """Take steps, until the deadline at most."""
        # Not where the bytes of a block are copied to be checked, which takes long.
        probes = self._alone and self._driver.capabilities.reuse and self._driver.oracle.host_access is not None
        if probes and self._rng.random() < 1 / 8:
            self._probe()
        for start in range(0, steps, CHUNK):
            self._take(range(start, min(start + CHUNK, steps)))
            if time.perf_counter() > deadline:
                return

    def _probe(self) -> None:
        """Look for the largest size that is met with nothing in use: at the end of the round it is asked for again."""
        size = next((1 << power for power in _PROBED if self._comes_and_goes(1 << power)), 0)
        for bit in range(1, _PROBE_BITS + 1):
            more = size >> bit
            if more and size < 1 << _PROBED.start and self._comes_and_goes(size + more):
                size += more

    def _comes_and_goes(self, size: int) -> bool:
        """Whether a block of a size is served; it is freed at once."""
        number = self._new()
        served = self._driver.allocate(number, size)
        self._driver.free(number)
        return served

    def _take(self, steps: range) -> None:
        driver, live, sizes = self._driver, self._live, self._sizes
        allocate, free, check = driver.allocate, driver.free, driver.check
        draw, most, growth, number = self._rng.random, self._most, self._growth, self._next
        rarely, checking = self._rarely, self._rarely + _RARE
        for step in steps:
            chance = draw()
            if chance < rarely:
                self._next = number
                self._rng.choice(self._rare)()
                number = self._next
            elif live and chance < checking:
                check(live[int(draw() * len(live))])
            elif len(live) < most and (chance < growth or not live):
                if allocate(number, sizes[step & 1023]):
                    live.append(number)
                number += 1
            else:
                if len(live) >= most:
                    growth = self._ebb
                elif len(live) <= most >> 3:
                    growth = self._flood
                free(self._leaving())
        self._next, self._growth = number, growth

    def _leaving(self) -> int:
        """The block that is freed next."""
        live = self._live
        if self._order == "last":
            return live.pop()
        if self._order == "first":
            return live.pop(0)
        among = min(len(live), _YOUNG) if self._order == "young" else len(live)
        at = len(live) - 1 - int(self._rng.random() * among)
        live[at], live[-1] = live[-1], live[at]
        return live.pop()

    def _rare_steps(self) -> list[Callable[[], None]]:
        """The rare steps of this target, drawn with equal chances."""
        rows = [row for row in DRAWN if row.weight and row.is_offered(self._driver)]
        rare: list[Callable[[], None]] = [step for row in rows for step in [partial(self._take_one, row)] * row.weight]
        rare += [self._on_streams] * 8 if self._driver.capabilities.stream_ordered else []
        rare += [self._reserve] if self._alone and self._most <= _FEW else []
        return rare

    def _take_one(self, row: Drawn) -> None:
        """Take a step of a row of the table."""
        driver, live = self._driver, self._live
        if row.block == "gone" and not live:
            return
        number = self._new() if row.block == "new" else self._leaving() if row.block == "gone" else self._some()
        if row.block == "gone":
            driver.free(number)
        numbers = row.draw(self._rng, self._sizes, live)
        done = driver.perform(HeapStep(row.operation, (number, *numbers) if row.block else numbers))
        if row.block == "new":
            self._note_new(number, done)
        elif row.block == "live" and number in live and number not in driver.blocks:
            live.remove(number)
        elif row.operation == "reset" and done:
            live.clear()

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _some(self) -> int:
        return self._rng.choice(self._live) if self._live else -1

    def _size(self) -> int:
        return self._rng.choice(self._sizes)

    def _note_new(self, number: int, done: bool) -> None:
        if done:
            self._live.append(number)

    def _reserve(self) -> None:
        """Allocate a block that is much larger than what is written, or resize one to that size; and a small one.

        Whether that may be depends on the memory of the process, and must not change what is drawn after it.
        """
        rng = random.Random(self._rng.random())  # noqa: S311 -- replayable
        size = _around(rng, _RESERVED) if rng.random() < 1 / 2 else _WRAP + rng.choice(self._sizes)
        small, old, resizes = rng.choice(self._sizes), rng.choice(self._live or [-1]), rng.random() < 1 / 4
        may, number = may_reserve(self._driver, self._new()), self._new()
        if may and resizes:
            self._driver.perform(HeapStep("resize", (old, size)))
        elif may:
            self._note_new(number, self._driver.allocate(number, size))
        self._note_new(number := self._new(), self._driver.allocate(number, small))

    def _on_streams(self) -> None:
        """Allocate on one stream, queue work, free, and allocate the same size on the same or another stream."""
        driver, rng, size = self._driver, self._rng, self._size()
        first, second = rng.sample(_AMONG["stream"], 2)
        number = self._new()
        if driver.perform(HeapStep("allocate", (number, size, 0, first))):
            driver.perform(HeapStep("work", (number, first)))
            driver.free(number, first)
            on = rng.choice((first, second))
            self._note_new(number := self._new(), driver.perform(HeapStep("allocate", (number, size, 0, on))))
        if rng.random() < 1 / 2:
            driver.perform(HeapStep("finish", (first,)))


def draw_sizes(rng: random.Random, most: int) -> list[int]:
    """The sizes of a round in bytes: mostly small, sometimes only a few different ones, sometimes large."""
    kind = rng.choice(_KINDS_OF_SIZES[: 4 if most > _LONGEST else 8 if most > _FEW else None])
    if kind == "alike":
        one = rng.choice((1, 16, 24, 64, 100, 256) if most > _LONGEST else (1, 16, 24, 64, 100, 256, 4096))
        return [one] * _SIZES
    if kind == "classes":
        few = [_around(rng, range(14)) for _ in range(rng.randrange(2, 8))]
        return rng.choices(few, k=_SIZES)
    if kind == "large":
        return [_around(rng, range(22 if rng.random() < 1 / 8 else 13)) for _ in range(_SIZES)]
    if kind == "wide":
        return [_around(rng, range(22, 26) if rng.random() < 1 / 64 else range(18)) for _ in range(_SIZES)]
    if kind == "small":
        return [rng.randrange(1, 257) for _ in range(_SIZES)]
    return [_around(rng, range(16 if rng.random() < 1 / 32 else 12)) for _ in range(_SIZES)]


def _around(rng: random.Random, powers: range) -> int:
    """A size of any of these magnitudes; powers of two and their neighbours are more frequent."""
    top = 1 << rng.choice(powers)
    return max(1, top + rng.choice((-1, 0, 1))) if rng.random() < 1 / 4 else rng.randrange(top, 2 * top)
