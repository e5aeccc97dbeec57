"""The edges of what the fuzzer asks for: sizes, live blocks, refusals, usable sizes, and the age of a process."""

from __future__ import annotations

import ctypes
import mmap
import random
from typing import TYPE_CHECKING, Any

import pytest
from mutants.allocator import Pool
from mutants.allocator.envelope import UsablePool

from syncedmem.spec import Violation
from syncedmem.spec.fuzz import Driver, Source, Step, driver_of, fuzz
from syncedmem.spec.fuzz.access import WHOLE, first_gap, windows
from syncedmem.spec.fuzz.campaign import campaign
from syncedmem.spec.fuzz.journal import Journal
from syncedmem.spec.fuzz.plan import stages
from syncedmem.spec.fuzz.residence import MOST_TOUCHED, may_reserve
from syncedmem.spec.fuzz.rounds import TOO_MANY, TOO_MUCH, Round, take_round

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.spec.fuzz.rounds import Kind

LIBC = "libc.so.6:malloc,free,calloc,realloc"
GIB = 1 << 30


def started(target: object) -> Driver:
    """Return a driver of a new target."""
    opened = Source(target).open()
    return Driver(opened, opened.capabilities)


def taken(target: object, kind: Kind, number: int, seed: int = 0, most: int = 2_000) -> tuple[Step, ...]:
    """Return the steps of one round on a target."""
    driver = started(target)
    assert take_round(driver, kind, number, seed, most, float("inf"))
    return driver.journal.steps()


# --- large blocks


@pytest.mark.parametrize("size", [WHOLE + 1, 6 * 1000 * 1000, (1 << 32) + 64, 1 << 47])
def test_the_windows_of_a_large_block_have_both_ends_and_powers_of_two(size: int) -> None:
    found = windows(size)
    starts, ends = [it[0] for it in found], [start + length for start, length, _ in found]

    assert (0, size) == (starts[0], ends[-1])
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert all(any(s <= 1 << k < e for s, e in zip(starts, ends, strict=True)) for k in range(17, 22))


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


def test_a_large_block_keeps_its_windows_when_it_is_resized() -> None:
    with driver_of(LIBC) as driver:
        driver.allocate(0, WHOLE + 100)
        assert driver.resize(0, 9 * WHOLE)
        assert driver.resize(0, WHOLE - 1)
        assert driver.calloc(1, 3 * WHOLE)
        assert not driver.copy(0, 1)  # it would be too much
        driver.allocate(2, MOST_TOUCHED + 1)
        assert not driver.resize(2, MOST_TOUCHED + 2)


def test_a_large_block_of_a_handle_has_one_window() -> None:
    class Heap:
        """Allocates zeroed bytes."""

        def allocate(self, size: int) -> bytearray:
            return bytearray(size)

        calloc = allocate

        def deallocate(self, block: bytearray) -> None:
            """Nothing to do."""

    with driver_of(Heap) as driver:
        driver.calloc(0, WHOLE + 100)
        assert driver.check(0)
        driver.blocks[0].handle[5] ^= 1
        with pytest.raises(Violation, match="A04-contents-kept"):
            driver.check(0)
        driver.blocks.clear()


def test_the_operating_system_says_where_a_block_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory = mmap.mmap(-1, 8 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    assert first_gap(start + 1, 7 * mmap.PAGESIZE) is None
    assert 0 == first_gap(mmap.PAGESIZE, 10)
    found = first_gap(start, 1 << 46)
    assert found is not None
    assert found >= 8 * mmap.PAGESIZE
    monkeypatch.setattr("syncedmem.spec.fuzz.access._MAPS", tmp_path / "nothing")
    assert first_gap(mmap.PAGESIZE, 10) is None


def test_a_block_that_is_cut_to_32_bits_is_seen() -> None:
    class Narrow(Pool):
        """Cuts sizes to 32 bits, and knows no limit."""

        def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
            return super().allocate(size % (1 << 32), alignment, stream)

    driver = started(Narrow)
    driver.oracle.limit = 0
    driver.allocate(0, 8)
    with pytest.raises(Violation, match=r"A04-contents-kept: .* cannot be written: .* has no memory at byte"):
        driver.allocate(1, (1 << 46) + 8)


# --- how much may be asked for


class Library:
    """The C library, with a function that is called with each new and each freed block."""

    def __init__(self, touch: Callable[[int, int], object], free: Callable[[int, int], object]) -> None:
        self._libc = ctypes.CDLL(None)
        self._libc.malloc.restype, self._libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self._libc.free.argtypes = [ctypes.c_void_p]
        self._touch, self._free = touch, free

    def allocate(self, size: int) -> int | None:
        """Allocate."""
        address: int | None = self._libc.malloc(size)
        if address is None:
            raise MemoryError(size)
        self._touch(address, size)
        return address

    def deallocate(self, pointer: int, size: int) -> None:
        """Free."""
        self._free(pointer, size)
        self._libc.free(pointer)


def quietly(address: int, size: int) -> None:
    """Touch nothing."""


def poison(address: int, size: int) -> None:
    """Touch all of a block."""
    ctypes.memset(address, 0xDD, size)


def test_an_allocator_that_writes_to_its_blocks_is_asked_for_none_that_are_huge() -> None:
    def reserves(subject: object) -> bool:
        with driver_of(subject) as driver:
            driver.allocate(0, 64)
            first = may_reserve(driver, 1)
            assert first == may_reserve(driver, 2)  # it is found out once
            return first

    assert not reserves(Library(poison, quietly))
    assert not reserves(Library(quietly, poison))
    assert reserves(LIBC) or mmap.PAGESIZE > 1 << 12  # a large page is touched whole


@pytest.mark.parametrize("reserves", [True, False])
def test_a_round_asks_for_huge_blocks_only_where_they_cost_nothing(reserves: bool) -> None:
    sizes: list[int] = []
    for number in range(1, 40):
        driver = started(LIBC)
        driver.reserves = reserves
        take_round(driver, "drawn", number, 0, 512, float("inf"))
        sizes += [step.numbers[1] for step in driver.journal.steps() if step.operation in {"allocate", "resize"}]

    assert (max(sizes) > MOST_TOUCHED) is reserves


def test_a_limited_target_is_asked_and_one_that_refuses_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Refusing(Pool):
        """Has a limit that it does not tell."""

    with driver_of(Pool(1 << 20)) as driver:
        assert may_reserve(driver, 0)
    with driver_of(Refusing) as driver:
        driver.oracle.limit = 0
        assert not may_reserve(driver, 0)
    monkeypatch.setattr("syncedmem.spec.fuzz.residence._OVERCOMMIT", tmp_path / "nothing")
    with driver_of(Pool(1 << 20)) as driver:
        assert not may_reserve(driver, 0)
    (tmp_path / "never").write_text("2\n", encoding="ascii")
    monkeypatch.setattr("syncedmem.spec.fuzz.residence._OVERCOMMIT", tmp_path / "never")
    with driver_of(Pool(1 << 20)) as driver:
        assert not may_reserve(driver, 0)


def test_impossible_sizes_and_counts_wrap_in_every_way() -> None:
    word = 1 << 64
    assert all(size >= (1 << 50) - 1 for size in TOO_MUCH)
    assert {(1 << 63) - 1, 1 << 63, (1 << 63) + 1, word - 1, word - 16} <= set(TOO_MUCH)
    assert any(size % (1 << 32) == 64 for size in TOO_MUCH)
    assert {0, 1, 2, 16} <= {count * size % word for count, size in TOO_MANY}
    assert any(count * size < word and count * size % (1 << 32) == 1 for count, size in TOO_MANY)


def drop(_: object) -> None:
    """Drop a block."""


def test_python_may_refuse_what_is_no_size_as_a_wrong_value() -> None:
    with driver_of((bytearray, drop)) as driver:
        assert driver.request_too_much((1 << 64) - 1)

    class Overflowing(Pool):
        """Raises the wrong error."""

        def refuse(self, size: int) -> int:
            raise OverflowError(size)

    with driver_of(Overflowing) as driver:
        assert driver.request_too_much(1 << 63)
        with pytest.raises(Violation, match="A06-out-of-memory"):
            driver.request_too_much(1 << 50)


def test_sizes_that_a_function_cannot_be_told_are_left_out() -> None:
    driver = started("libc.so.6:malloc,free?abi=torch")

    assert not driver.request_too_much(1 << 63)
    assert not driver.resize_too_much(0, 1 << 63)


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


class Refuser(Pool):
    """A legal allocator that refuses by a rule of its own."""

    def __init__(self, refuses: Callable[[], bool]) -> None:
        super().__init__()
        self._refuses = refuses

    def place(self, room: int, alignment: int) -> int:
        """The first hole, unless this one is refused."""
        return 0 if self._refuses() else super().place(room, alignment)


def at_random(chance: float) -> Callable[[], bool]:
    """Refuse with this chance."""
    rng = random.Random(7)  # noqa: S311 -- replayable
    return lambda: rng.random() < chance


def each(period: int) -> Callable[[], bool]:
    """Refuse each n-th request."""
    calls = iter(range(1 << 40))
    return lambda: next(calls) % period == 0


def all_but_each(period: int) -> Callable[[], bool]:
    """Meet only each n-th request."""
    calls = iter(range(1 << 40))
    return lambda: next(calls) % period != 0


@pytest.mark.parametrize(
    "rule",
    [
        lambda: at_random(0.1),
        lambda: at_random(0.5),
        lambda: at_random(0.9),
        lambda: each(2),
        lambda: each(7),
        lambda: all_but_each(3),
        lambda: all_but_each(50),
    ],
    ids=["10 %", "50 %", "90 %", "each 2nd", "each 7th", "all but each 3rd", "all but each 50th"],
)
def test_who_refuses_at_random_or_in_turn_is_not_accused(rule: Callable[[], Callable[[], bool]]) -> None:
    source = Source(lambda: Refuser(rule()))
    record = source.open().capabilities
    for seed in range(3):
        fixed = campaign(source, record, Journal(), seed=seed, steps=3_000, seconds=600, kind="fixed")
        drawn = campaign(source, record, Journal(), seed=seed, steps=2_000, seconds=600)

        assert [None, None] == [fixed.wrong, drawn.wrong]


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


def test_a_size_is_not_starved_if_the_larger_one_is_not_met_either() -> None:
    class Used(Pool):
        """Meets large requests once."""

        def place(self, room: int, alignment: int) -> int:
            return super().place(room, alignment) if self.peak_bytes < 4096 else 0

    driver = started(Used)
    driver.oracle.limit = 0
    driver.allocate(0, 4096)
    driver.allocate(1, 100)
    driver.run(())

    assert not driver.oracle.checked["A25-no-starvation"]


def test_an_error_of_a_free_between_two_requests_is_a_finding() -> None:
    class Stuck(Pool):
        """Refuses once, and then cannot free."""

        refused = 0

        def place(self, room: int, alignment: int) -> int:
            self.refused += 1
            return 0 if self.refused == 1 else super().place(room, alignment)

        def deallocate(self, pointer: int, size: int, stream: object = None) -> None:
            raise ValueError(pointer, size, stream)

    opened = Source(Stuck).open()
    with pytest.raises(Violation, match="A07-free-accepts"):
        Driver(opened, opened.capabilities).allocate(0, 8)


# --- rounds, processes and age


def seeded() -> random.Random:
    """Return a generator that always draws the same numbers."""
    return random.Random(0)  # noqa: S311 -- replayable


def test_a_round_depends_only_on_its_seed_and_its_number() -> None:
    assert taken(Pool, "drawn", 5) == taken(Pool, "drawn", 5)
    assert taken(Pool, "drawn", 5) != taken(Pool, "drawn", 6)
    assert taken(Pool, "drawn", 5) != taken(Pool, "drawn", 5, seed=1)
    assert taken(Pool, "fixed", 0) == taken(Pool, "fixed", 0, seed=1)


def test_rounds_differ_in_their_mix() -> None:
    programs = [taken(Pool, "drawn", number) for number in range(1, 40)]
    calls = {frozenset(step.operation for step in program) for program in programs}

    assert len(calls) > 10
    assert any("resize" not in mix for mix in calls)


def test_the_fixed_rounds_end() -> None:
    source, journal = Source(Pool), Journal()
    outcome = campaign(source, source.open().capabilities, journal, seed=0, steps=1 << 40, seconds=600, kind="fixed")

    assert outcome.wrong is None
    assert 15 < outcome.rounds < 50


def test_a_crowded_round_has_more_than_65_536_live_blocks() -> None:
    driver = started(LIBC)
    Round(driver, seeded(), crowd=66_000).take(80_000)

    assert 1 << 16 < driver.oracle.heap.peak_count <= 66_000
    driver.end()


def test_a_round_ends_at_the_deadline() -> None:
    driver = started(Pool)
    Round(driver, seeded()).take(5_000, deadline=0.0)

    assert driver.journal.length < 300


def test_a_run_has_sixteen_young_processes_and_an_old_one() -> None:
    plan = stages(2_000_000)

    assert ["fixed", *["drawn"] * 17] == [it.kind for it in plan]
    assert (16, 1) == (sum(not it.ages for it in plan[1:]), sum(it.ages for it in plan))
    assert 1_000_000 == plan[-1].steps
    assert len({it.first_round for it in plan[1:]}) == 17
    assert 3 == len(stages(100))
    assert all(sum(it.steps for it in stages(steps)[1:]) >= steps for steps in (1, 100, 20_000, 99_999))


def test_a_target_that_ages_is_made_once_and_closed_once() -> None:
    made: list[Any] = []

    class Counted(Pool):
        """Counts how often it is closed."""

        closed = 0

        def close(self) -> None:
            self.closed += 1
            if self.peak_bytes == 1 << 62:
                raise RuntimeError("it is too old")

    def make() -> Pool:
        pool = Counted()
        made.append(pool)
        return pool

    source = Source(make)
    record = source.open().capabilities
    made.clear()
    outcome = campaign(source, record, Journal(), seed=0, steps=5_000, seconds=600, ages=True)

    assert outcome.wrong is None
    assert outcome.rounds > 1
    assert [1] == [it.closed for it in made]


def test_a_target_that_cannot_be_closed_when_it_is_old_is_a_finding() -> None:
    class Old(Pool):
        """Cannot be closed."""

        def close(self) -> None:
            raise RuntimeError("it is too old")

    source = Source(Old)
    outcome = campaign(source, source.open().capabilities, Journal(), seed=0, steps=500, seconds=600, ages=True)

    assert outcome.wrong is not None
    assert "A24-closes" == outcome.wrong.requirement


def test_a_full_journal_still_shows_progress() -> None:
    journal = Journal(capacity=2)
    journal.begin()
    for block in range(3):
        journal.note(1, block)
    before = journal.mark()
    journal.note(1, 9)

    assert journal.full
    assert before != journal.mark()


@pytest.mark.deep
def test_the_default_run_of_the_c_library_finds_nothing() -> None:
    report = fuzz(LIBC, steps=600_000, seconds=600)
    report.require()

    assert report.operations >= 600_000
