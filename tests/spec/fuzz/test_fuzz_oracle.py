"""The fuzzer's oracle: how it judges the answers of a target."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections import UserList, defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from mutants.allocator import CachingPool, Pool

from syncedmem.spec import Violation
from syncedmem.spec.fuzz import (
    Capabilities,
    Driver,
    TargetSource,
    driver_of,
    fuzz,
)
from syncedmem.spec.fuzz.driver import CROWDED
from syncedmem.spec.fuzz.shadow_heap import Block, Intervals
from syncedmem.spec.fuzz.streams import Stream
from syncedmem.spec.fuzz.targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable


def test_steps_with_nothing_to_act_on_do_nothing() -> None:
    class Bare:
        """Has only the methods that are required."""

        def allocate(self, size: int) -> int:
            raise MemoryError(size)

        def deallocate(self, pointer: int) -> None:
            raise AssertionError(pointer)

    with driver_of(Bare()) as driver:
        done = [
            driver.free(0),
            driver.check(0),
            driver.calloc(0, 8),
            driver.resize(0, 8),
            driver.copy(0, 1),
            driver.copy_nothing(),
            driver.free_again(0),
            driver.free_foreign(),
            driver.free_wrong_size(0, 8),
            driver.fill(8),
            driver.cycle(8, 4),
            driver.work(0, 1),
            driver.allocate(0, 8, 64),
        ]
    assert {False} == set(done)
    with driver_of(Pool(), double_free="detect") as driver:
        assert driver.allocate(0, 8)
        assert not driver.allocate(0, 8)
        assert driver.free(0)
        assert driver.free_again(0)
        assert driver.allocate(1, 8)
        assert not driver.free_again(0)  # its address belongs to block 1
        assert driver.finish(1)


@pytest.mark.parametrize(
    ("zero_size", "gives", "wrong"),
    [
        ("null", 0, False),
        ("null", 64, True),
        ("null", ValueError(), True),
        ("unique", 0, True),
        ("unique", 64, False),
        ("error", 0, True),
        ("error", 64, True),
        ("error", ValueError(), False),
        ("error", MemoryError(), False),
        ("any", ValueError(), False),
        ("any", KeyError(), True),
        ("any", None, False),
    ],
)
def test_zero_bytes_do_what_is_promised(zero_size: str, gives: Any, wrong: bool) -> None:
    class Zero:
        def allocate(self, size: int) -> Any:
            assert not size
            if isinstance(gives, Exception):
                raise gives
            return gives

        def deallocate(self, pointer: int) -> None:
            assert pointer == 64

    opened = TargetSource(Zero()).open()
    driver = Driver(opened, opened.capabilities.with_promises({"zero_size": zero_size}))
    if wrong:
        with pytest.raises(Violation, match="A09-zero-size"):
            driver.allocate(0, 0)
    else:
        driver.allocate(0, 0)
        driver.end()


class Scripted:
    """Has the methods that a test passes in."""

    def __init__(self, **methods: Any) -> None:
        vars(self).update(methods)

    def allocate(self, size: int) -> Any:
        return bytearray(size)

    def deallocate(self, pointer: Any) -> None:
        """Nothing to do."""


def null(*_: object) -> int:
    """Return null, as a failing function in C does."""
    return 0


def test_a_resize_that_fails_leaves_the_block() -> None:
    def full(*_: object) -> int:
        raise MemoryError

    for refuse in (full, null):
        with driver_of(Scripted(realloc=refuse)) as driver:
            driver.allocate(0, 16)
            assert not driver.resize(0, 32)
            assert 16 == driver.blocks[0].size


def test_ignored_frees_do_nothing_and_others_are_seen() -> None:
    promises = {"double_free": "ignore", "foreign_free": "ignore"}
    with driver_of(Scripted(), **promises) as driver:
        driver.allocate(0, 16)
        driver.allocate(1, 16)
        assert driver.free_foreign()
        driver.free(0)
        assert driver.free_again(0)
    opened = TargetSource(CachingPool()).open()
    driver = Driver(opened, opened.capabilities.with_promises(promises))
    driver.allocate(0, 16)
    with pytest.raises(Violation, match=r"A11-foreign-free: .* to be ignored was promised"):
        driver.free_foreign()


def test_a_wrong_size_that_is_ignored_frees_the_block() -> None:
    class Careless(Pool):
        def verify(self, pointer: int, size: int) -> None:
            super().verify(pointer, self.sizes.get(pointer, size))

    with driver_of(Careless(), wrong_size="ignore") as driver:
        driver.allocate(0, 16)
        assert driver.free_wrong_size(0, 8)
        assert not driver.blocks
    assert fuzz(Careless, promises={"wrong_size": "ignore"}, steps=4_000).passed


def test_who_reports_a_rough_number_may_report_more() -> None:
    class Rough(Pool):
        @property
        def used_bytes(self) -> int:
            return self.live_bytes and self.live_bytes + 64

    assert fuzz(Rough, steps=2_000).passed


class Rounds(Pool):
    """Counts 64 bytes for each block, also for one of no bytes; and wrongly for none, if that is kept."""

    kept = 0

    @property
    def used_bytes(self) -> int:
        return 64 * (len(self.sizes) or self.kept) + self.live_bytes


def test_who_counts_rounded_bytes_may_round_no_bytes_too() -> None:
    assert fuzz(Rounds, steps=2_000).passed

    class Keeps(Rounds):
        kept = 1

        def deallocate(self, pointer: int, size: int, stream: Any = None) -> None:
            super().deallocate(pointer, size, stream)
            self.kept = 2

    found = fuzz(Keeps, steps=2_000, first=True).findings
    assert {finding.requirement for finding in found} in ({"A16-no-leaks"}, {"A17-statistics"})


@pytest.mark.parametrize("name", ["synchronize", "sync", "wait"])
def test_streams_speak_every_dialect(name: str) -> None:
    stream = Stream(2)
    stream.queued = 1
    event = stream.record()

    assert [False, False, False, False] == [stream.done, stream.query(), event.is_done, event.query()]
    getattr(event, name)()
    assert [True, True, 2, 2, 2] == [event.done, stream.done, stream.ptr, stream.handle, int(stream)]
    assert "<stream 2>" == repr(stream)


class Hoards(Pool):
    """At the requests with the given numbers, takes 8 MiB that it never gives back."""

    def __init__(self, *when: int) -> None:
        super().__init__()
        self._when = when
        self._requests = 0
        self._kept: list[mmap.mmap] = []

    def allocate(self, size: int, alignment: int = 16, stream: Any = None) -> int:
        self._requests += 1
        if self._requests in self._when:
            self._kept.append(mmap.mmap(-1, 8 << 20))  # new pages: the heap could reuse old ones
            self._kept[-1].write(b"x" * (8 << 20))
        return super().allocate(size, alignment, stream)


def test_growing_once_is_no_leak_and_growing_every_time_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process with many threads, other memory may grow while a cycle is measured."""
    monkeypatch.setattr(f"{Driver.__module__}._QUARANTINED", 16 << 20)  # so that three measurements are enough
    for when in ((200, 500), (200, 600, 1000)):
        with driver_of(Hoards(*when)) as driver:
            assert driver.cycle(1 << 16, 512)
    with (
        driver_of(Hoards(200, 600, 1000, 1800)) as driver,  # the last one when it is looked at again
        pytest.raises(Violation, match="A16-no-leaks: 384 times 65536 bytes"),
    ):
        driver.cycle(1 << 16, 512)


class Keeps(Pool):
    """Never takes back a block that was freed before its stream was done."""

    def settle(self, stream: Any) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("make", "requirement"), [(Pool, None), (Keeps, "A16-no-leaks")])
def test_memory_that_queued_work_uses_is_not_free(make: type, requirement: str | None) -> None:
    """Until the work is done the pool may refuse what it has served before."""
    found = None
    try:
        with driver_of(make, stream_ordered="yes") as driver:
            assert driver.allocate(0, 16 << 20)
            driver.work(0, 1)
            driver.free(0, 1)
            assert not driver.allocate(1, 12 << 20)
            driver.finish(1)
            assert driver.allocate(1, 12 << 20)
    except Violation as violation:
        found = violation.requirement

    assert requirement == found


class Fragments(Pool):
    """Loses a fragment at a resize: what is left is enough for every size but the largest."""

    lost = False

    def allocate(self, size: int, alignment: int = 16, stream: Any = None) -> int:
        if self.lost and size > 1 << 19:
            raise MemoryError
        return super().allocate(size, alignment, stream)

    def lose(self) -> None:
        """Lose it."""
        self.lost = True


def test_the_largest_size_is_asked_for_again_at_the_end() -> None:
    """A fragment that is lost shows in no size that is asked for meanwhile."""
    pool = Fragments()
    driver = Driver(TargetSource(pool).open(), Capabilities())
    assert driver.allocate(0, 1_048_000)
    driver.free(0)
    pool.lose()
    assert driver.allocate(1, 1000)
    with pytest.raises(Violation, match="1048000 bytes are refused with nothing in use"):
        driver.ask_for_the_largest()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_resized_block_has_the_alignment_that_was_asked_for_where_resize_is_told_it(keeps: bool) -> None:
    """C's realloc is not told it, and promises none."""
    heap = (ctypes.c_char * (1 << 16))()
    start = (ctypes.addressof(heap) + 4095) & -4096
    places = iter((start, start + 4096 + 16))

    def take(*_: int) -> int:
        return next(places)

    def resize(handle: int, size: int, old: int) -> int:
        place = next(places)
        ctypes.memmove(place, handle, min(size, old))
        return place

    target = Target(
        "a test",
        None,
        Capabilities(),
        take=take,
        give=print,
        take_aligned=take,
        resize=resize,
        keeps_alignment=keeps,
    )
    driver = Driver(target, Capabilities())
    assert driver.allocate(0, 64, 256)
    if not keeps:
        assert driver.resize(0, 128)
        return
    with pytest.raises(Violation, match="is not at a multiple of 256"):
        driver.resize(0, 128)


def test_a_stream_that_waits_for_an_event_comes_after_it() -> None:
    """Also after what the other stream waits for; and a free on no stream comes after all work."""
    first, second, third = Stream(1), Stream(2), Stream(3)
    first.queued = 2
    second.wait_event(first.record())
    third.wait_event(second.record())
    assert (third.is_after(first, 2), third.is_after(first, 3), first.is_after(third, 1)) == (True, False, False)
    third.synchronize()
    assert first.done


class Shelf:
    """Lends one block again at once, whatever work there is on it; a free on no stream is a free after all work."""

    def __init__(self) -> None:
        self._memory = (ctypes.c_char * 64)()

    def allocate(self, size: int, stream: Any = None) -> int:  # noqa: ARG002 -- the stream does not matter to it
        """Lend it."""
        if size > 64:
            raise MemoryError
        return ctypes.addressof(self._memory)

    def deallocate(self, pointer: int, size: int, stream: Any = None) -> None:
        """Take it back."""


def test_memory_that_was_freed_on_no_stream_may_go_to_any_stream() -> None:
    with driver_of(Shelf, stream_ordered="yes") as driver:
        driver.allocate(0, 16, 0, 2)
        driver.work(0, 2)
        driver.free(0, 2)
        driver.allocate(1, 16, 0, 2)
        driver.free(1)
        assert driver.allocate(2, 16, 0, 3)


def test_only_fresh_memory_has_to_be_zero() -> None:
    """The bytes that a resize adds may have any content, even if the target promises zeros."""

    class Fresh(Pool):
        """Fresh memory is zero; the bytes that a resize adds are not set."""

        def allocate(self, size: int, alignment: int = 16, stream: Any = None) -> int:
            pointer = super().allocate(size, alignment, stream)
            ctypes.memset(pointer, 0, size)
            return pointer

    with driver_of(Fresh(), zeroed="yes") as driver:
        assert driver.allocate(0, 64)
        assert driver.resize(0, 128)


class Meddled(UserList[int]):
    """Start addresses, of which another thread removes one while this one looks."""

    def __init__(self, starts: list[int], meddle: Callable[[], object]) -> None:
        super().__init__(starts)
        self.thread = threading.Thread(target=meddle)
        self.left = 3  # a search among two blocks looks twice; then the one that it has found is taken

    def __getitem__(self, index: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            self.thread.start()
            self.thread.join(0.2)  # if it may not come in, it waits longer than that
        starts: Any = self.data
        return starts[index]


@pytest.mark.parametrize("look", ["at", "overlapped"])
def test_another_thread_changes_nothing_while_one_looks_what_lies_where(look: str) -> None:
    """A right allocator was accused: the block that was found was another one by then."""
    intervals = Intervals()
    first, second = Block(0, 100, 100, 8, 0, 0), Block(1, 200, 200, 8, 0, 0)
    intervals.add(first)
    intervals.add(second)
    starts: Any = Meddled([100, 200], lambda: intervals.remove(first))
    intervals._starts = starts  # pyright: ignore[reportPrivateUsage] -- to cause the race
    found = intervals.at(150) if look == "at" else intervals.overlapped(Block(2, 150, 150, 8, 0, 0))
    starts.thread.join()

    assert not found
    assert intervals.at(200) is second


class LosesBatches:
    """A cache for each size: of what comes back while many blocks are live, every second one is never lent again.

    Its memory is new; that of the C library may have been used by an earlier test, so that the process would not grow.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 28)
        self._next = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._cached: defaultdict[int, list[int]] = defaultdict(list)
        self._live = 0

    def allocate(self, size: int) -> int:
        self._live += 1
        if self._cached[size]:
            return self._cached[size].pop()
        self._next += -(-size // 64) * 64
        return self._next - -(-size // 64) * 64

    def deallocate(self, address: int, size: int) -> None:
        self._live -= 1
        if self._live < 100 or self._live % 2:
            self._cached[size].append(address)


def test_what_is_lost_of_many_live_blocks_is_a_leak() -> None:
    with pytest.raises(Violation, match="A16-no-leaks"), driver_of(LosesBatches) as driver:
        driver.cycle(4000, 1 << 14, CROWDED)
    with driver_of("libc.so.6:malloc,free") as driver:
        assert driver.cycle(4000, 1 << 14, CROWDED)
