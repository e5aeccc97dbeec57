"""Adaptors: what each does, and the laws that hold for all of them, in any order."""

from __future__ import annotations

import csv
import gc
import io
import itertools
import json
import sys
import threading
import warnings
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from benches import SIZE, devices

from syncedmem.model import (
    AllocationError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidSizeError,
    MemoryCorruptionError,
    NoScopeError,
)
from syncedmem.runtime import (
    Adaptor,
    Buffer,
    CPUDeviceAllocator,
    DeviceAllocator,
    DeviceType,
    FailingAllocator,
    GuardingAllocator,
    LimitingAllocator,
    LoggingAllocator,
    MemcpyKind,
    PoolAllocator,
    SimulatedDeviceAllocator,
    Statistics,
    StatisticsAllocator,
    SyncedMemory,
    ThreadSafeAllocator,
    TrackingAllocator,
)
from syncedmem.runtime.adaptor import COUNTS
from syncedmem.runtime.pointers import address_of
from syncedmem.runtime.vectors import vectors_of
from syncedmem.spec import Bench, check_conformance
from syncedmem.spec.fuzz import fuzz

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LIMIT = 1 << 26


def limiting(upstream: DeviceAllocator) -> LimitingAllocator:
    """With room for all tests."""
    return LimitingAllocator(upstream, LIMIT)


def logging(upstream: DeviceAllocator) -> LoggingAllocator:
    """Into a file in memory."""
    return LoggingAllocator(upstream, io.StringIO())


MAKERS: dict[str, Callable[[DeviceAllocator], DeviceAllocator]] = {
    "adaptor": Adaptor,
    "failing": FailingAllocator,
    "guarding": GuardingAllocator,
    "limiting": limiting,
    "logging": logging,
    "pool": PoolAllocator,
    "statistics": StatisticsAllocator,
    "thread-safe": ThreadSafeAllocator,
    "tracking": TrackingAllocator,
}
COUNTING = ("limiting", "statistics", "tracking")


def stacked(names: Sequence[str], upstream: DeviceAllocator) -> Any:
    """Adaptors by name over an allocator, the first one on top."""
    for name in reversed(names):
        upstream = MAKERS[name](upstream)
    return upstream


def upstreams() -> list[Any]:
    """Host memory, and every device of this machine."""
    return [CPUDeviceAllocator(), *devices()]


def counts(stack: Any) -> list[Any]:
    """What each adaptor of a stack has counted."""
    found: list[Any] = []
    while isinstance(stack, Adaptor):
        if isinstance(stack, TrackingAllocator):
            found.append((stack.live_blocks, stack.allocated_bytes))
        elif isinstance(stack, LimitingAllocator):
            found.append(stack.allocated_bytes)
        elif isinstance(stack, StatisticsAllocator):
            found.append(stack.statistics)
        stack = stack.upstream
    return found


class Recorder:
    """An allocator of nobody's class that notes what it is asked, and answers with its own words."""

    device_type = DeviceType.SIMULATED
    ordinal = 3
    name = "recorder:3"
    extra = "mine"

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> Any:
            self.asked.append((name, *arguments))
            return np.zeros(arguments[0], np.uint8) if name == "allocate" else f"answer to {name}"

        return answer


# --- laws


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("memcpy", ("a", "b", 8, MemcpyKind.CUDA2CUDA, "stream", True)),
    ("memset_zero", ("a", 8, "stream", True)),
    ("empty", (8,)),
    ("stream", ()),
    ("check_stream", ("stream",)),
    ("adopt", ("buffer", 8)),
    ("overlaps", ("a", "b")),
    ("record", ("stream",)),
    ("order_after", ("event",)),
    ("pinned_host", ()),
    ("read_only", ("a",)),
    ("viewer", ("a",)),
    ("using", ()),
    ("current_ordinal", ()),
]


@pytest.mark.parametrize("keeper", ["guarding", "pool"])
@pytest.mark.parametrize("counter", COUNTING)
def test_what_counts_blocks_does_not_show_through_an_adaptor_that_keeps_them(keeper: str, counter: str) -> None:
    """It counts what the adaptor has, and whoever compares it with what is out would see a leak."""
    below: Any = MAKERS[counter](CPUDeviceAllocator())
    stack: Any = MAKERS[keeper](below)
    ptr = stack.allocate(100)
    stack.release(ptr)
    shown = [name for name in COUNTS if hasattr(below, name)]

    assert shown
    assert ["live_blocks"] == [name for name in COUNTS if hasattr(stack, name)]  # its own
    assert (0, 1) == (stack.live_blocks, stack.upstream.upstream.live_blocks)
    fuzz(lambda: stacked([keeper, counter], CPUDeviceAllocator()), steps=3_000).require()


def test_every_count_of_an_adaptor_is_known_as_one() -> None:
    counting = (TrackingAllocator, StatisticsAllocator, LimitingAllocator)
    shown = {name for it in counting for name, member in vars(it).items() if isinstance(member, property)}

    assert shown - {"limit"} <= COUNTS
    with pytest.raises(AttributeError, match=r"PoolAllocator keeps memory, .* statistics does not .*: ask \.upstream"):
        _ = PoolAllocator(StatisticsAllocator(CPUDeviceAllocator())).statistics


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(("call", "arguments"), CALLS)
def test_what_an_adaptor_does_not_change_is_passed_on(maker: str, call: str, arguments: tuple[Any, ...]) -> None:
    """With every argument, streams among them, and the answer comes back."""
    recorder: Any = Recorder()
    answer = getattr(MAKERS[maker](recorder), call)(*arguments)

    assert (call, *arguments) == recorder.asked[-1]
    assert answer == (None if call in ("memcpy", "memset_zero", "check_stream", "order_after") else f"answer to {call}")


def test_every_call_of_the_interface_is_passed_on() -> None:
    """None is left to the defaults of `DeviceAllocator`."""
    interface = {name for name in vars(DeviceAllocator) if not name.startswith("_")} - {"device_type", "ordinal"}

    assert interface <= set(vars(Adaptor))
    assert interface - {"allocate", "release", "name", "vectors"} == {call for call, _ in CALLS}


@pytest.mark.parametrize("maker", MAKERS)
def test_arithmetic_is_that_of_the_memory_below(maker: str) -> None:
    """On the host too, where an allocator of somebody else's has no method for it."""
    device = SimulatedDeviceAllocator()
    adaptor: Any = MAKERS[maker](device)

    assert type(device.vectors()) is type(vectors_of(adaptor))
    assert type(vectors_of(CPUDeviceAllocator())) is type(vectors_of(MAKERS[maker](CPUDeviceAllocator())))


@pytest.mark.parametrize("maker", MAKERS)
def test_an_adaptor_says_what_its_upstream_says_of_itself(maker: str) -> None:
    """Also what is no part of the interface; but nothing private."""
    recorder: Any = Recorder()
    adaptor: Any = MAKERS[maker](recorder)

    assert (DeviceType.SIMULATED, 3, "recorder:3") == (adaptor.device_type, adaptor.ordinal, adaptor.name)
    assert (recorder, "mine") == (adaptor.upstream, adaptor.extra)
    assert f"<{type(adaptor).__name__} over {recorder!r}>" == repr(adaptor)
    with pytest.raises(AttributeError, match="has no attribute '_private'"):
        _ = adaptor._private


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("other", [None, 7, "cuda", CPUDeviceAllocator])
def test_an_adaptor_over_no_allocator_is_refused(maker: str, other: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="upstream must be an allocator, got"):
        MAKERS[maker](other)


@pytest.mark.parametrize(("upstream", "alignment"), [(CPUDeviceAllocator(), 64), (SimulatedDeviceAllocator(), 256)])
@pytest.mark.parametrize("maker", MAKERS)
def test_blocks_start_where_the_upstream_aligns_them(maker: str, upstream: Any, alignment: int) -> None:
    adaptor = MAKERS[maker](upstream)
    blocks = [adaptor.allocate(size) for size in (1, 63, 65, 4096)]

    assert [0] * 4 == [address_of(block) % alignment for block in blocks]
    assert [1, 63, 65, 4096] == [len(block) for block in blocks if block is not None]
    for block in blocks:
        adaptor.release(block)


@pytest.mark.parametrize("maker", MAKERS)
def test_zero_bytes_and_none_are_nothing(maker: str) -> None:
    """They are neither allocated nor counted."""
    upstream = CPUDeviceAllocator()
    adaptor = MAKERS[maker](upstream)
    before = counts(adaptor)
    adaptor.release(adaptor.allocate(0))

    assert (0, before) == (upstream.live_blocks, counts(adaptor))


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(("size", "error"), [(-1, InvalidSizeError), ("8", InvalidArgumentError), (True, TypeError)])
def test_what_is_no_size_is_refused_and_not_counted(maker: str, size: Any, error: type[Exception]) -> None:
    adaptor = MAKERS[maker](CPUDeviceAllocator())
    before = counts(adaptor)
    with pytest.raises(error):
        adaptor.allocate(size)

    assert before == counts(adaptor)


@pytest.mark.parametrize("maker", MAKERS)
def test_double_and_foreign_releases_are_refused_and_not_counted(maker: str) -> None:
    upstream = CPUDeviceAllocator()
    adaptor = MAKERS[maker](upstream)
    kept, gone = adaptor.allocate(SIZE), adaptor.allocate(SIZE)
    adaptor.release(gone)
    before = (counts(adaptor), upstream.live_blocks)
    for wrong in (gone, np.zeros(SIZE, np.uint8), bytearray(4), 7, None if kept is None else kept[:]):
        with pytest.raises(InvalidPointerError, match=r"cpu:0 cannot use .*: it is not a live block of this allocator"):
            adaptor.release(wrong)

    assert before == (counts(adaptor), upstream.live_blocks)
    adaptor.release(kept)


@pytest.mark.parametrize("maker", [maker for maker in MAKERS if maker != "pool"])
@pytest.mark.parametrize("operation", ["allocate", "release"])
def test_when_the_upstream_raises_nothing_has_changed(maker: str, operation: str) -> None:
    """Neither what is counted nor what is out; and the next call works."""
    device = SimulatedDeviceAllocator()
    adaptor: Any = GuardingAllocator(device, quarantine=0) if maker == "guarding" else MAKERS[maker](device)
    block = adaptor.allocate(SIZE)
    before = counts(adaptor)
    device.fail_at(1, operation)
    with pytest.raises(Exception, match="told to fail"):
        adaptor.allocate(SIZE) if operation == "allocate" else adaptor.release(block)

    assert (before, 1) == (counts(adaptor), device.live_blocks)
    adaptor.release(block)
    assert 0 == device.live_blocks


@pytest.mark.parametrize("operation", ["allocate", "release"])
@pytest.mark.parametrize("maker", COUNTING)
def test_an_interrupted_upstream_counts_as_one_that_did_nothing(maker: str, operation: str) -> None:
    class Interrupted(CPUDeviceAllocator):
        now = False

        def allocate(self, byte_size: int) -> Any:
            if self.now:
                raise KeyboardInterrupt
            return super().allocate(byte_size)

        def release(self, ptr: Any) -> None:
            if self.now:
                raise KeyboardInterrupt
            super().release(ptr)

    upstream = Interrupted()
    adaptor: Any = MAKERS[maker](upstream)
    block = adaptor.allocate(SIZE)
    before, upstream.now = counts(adaptor), True
    with pytest.raises(KeyboardInterrupt):
        adaptor.allocate(SIZE) if operation == "allocate" else adaptor.release(block)
    upstream.now = False

    assert before == counts(adaptor)
    adaptor.release(block)


ORDERS = list(itertools.permutations(COUNTING))


def story(allocator: Any, limit: int) -> list[Any]:
    """What a caller sees of an allocator with a limit: answers, and errors with their words."""
    seen: list[Any] = []
    blocks: list[Any] = []

    def tell(act: Callable[..., Any], *arguments: Any) -> None:
        try:
            answer = act(*arguments)
        except Exception as error:  # noqa: BLE001 -- what is compared
            seen.append((type(error), str(error)))
        else:
            blocks.append(answer)
            seen.append(None if answer is None else len(answer))

    for size in (10, limit, limit - 10, 0, -1, "x", 1):
        tell(allocator.allocate, size)
    for block in (blocks[0], blocks[0], np.zeros(3, np.uint8), None):
        tell(allocator.release, block)
    tell(allocator.allocate, 10)
    return seen


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_the_order_of_adaptors_changes_nothing_for_callers(order: tuple[str, ...]) -> None:
    """Tracking over limiting, or the other way round, or with statistics between them."""
    expected = story(LimitingAllocator(CPUDeviceAllocator(), LIMIT), LIMIT)
    stack = stacked(order, CPUDeviceAllocator())

    assert expected == story(stack, LIMIT)
    assert AllocationError in {entry[0] for entry in expected if isinstance(entry, tuple)}
    live = sorted(map(repr, counts(stack)))
    assert sorted(map(repr, counts(stacked_story(COUNTING)))) == live


def stacked_story(order: Sequence[str]) -> Any:
    """A stack after the story."""
    stack = stacked(order, CPUDeviceAllocator())
    story(stack, LIMIT)
    return stack


SAMPLE = [
    ("tracking", "limiting", "statistics", "logging", "failing", "guarding", "thread-safe", "pool"),
    ("pool", "guarding", "thread-safe", "statistics", "failing", "logging", "limiting", "tracking"),
    ("guarding", "pool", "logging", "tracking", "thread-safe", "limiting", "failing", "statistics"),
    ("limiting", "pool", "tracking"),
]


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
@pytest.mark.parametrize("order", SAMPLE, ids="-".join)
def test_any_order_composes_on_any_device(order: tuple[str, ...], upstream: Any) -> None:
    """Bytes go in and come out, unstreamed and on a stream, and at the end nothing is left."""
    before = upstream.live_blocks
    stack = stacked(order, upstream)
    down = np.zeros(SIZE, np.uint8)
    with Buffer(SIZE, stack) as first, Buffer(SIZE, stack) as second:
        first.copy_from(Buffer(SIZE, None, np.full(SIZE, 7, np.uint8), use_external=True), stream=stack.stream())
        second.copy_from(first)
        Buffer(SIZE, None, down, use_external=True).copy_from(second)
    assert [7] * SIZE == down.tolist()
    while isinstance(stack, Adaptor):
        if isinstance(stack, PoolAllocator | LoggingAllocator):
            stack.close()
        if isinstance(stack, GuardingAllocator):
            stack.check()
            stack.clear()
        stack = stack.upstream
    assert before == upstream.live_blocks


@pytest.mark.parametrize("order", SAMPLE[:2], ids="-".join)
def test_a_memory_over_adaptors_conforms(order: tuple[str, ...]) -> None:
    """On both sides of it."""
    bench = Bench(
        "adaptors",
        SyncedMemory,
        stacked(order, CPUDeviceAllocator()),
        stacked(order, SimulatedDeviceAllocator()),
        elsewhere=SimulatedDeviceAllocator(1),
        check_device=True,
    )

    check_conformance(bench, steps=300).require()


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns all the time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("maker", ["limiting", "statistics", "tracking", "pool", "guarding", "thread-safe"])
def test_threads_leave_the_counts_right(maker: str, hasty: None) -> None:
    """Although they take turns as often as they can."""
    del hasty
    upstream = CPUDeviceAllocator()
    adaptor: Any = MAKERS[maker](upstream)

    def work() -> None:
        for size in range(1, 300):
            block = adaptor.allocate(size)
            block[:] = size & 0xFF
            again = adaptor.allocate(size)
            assert (block == size & 0xFF).all()
            adaptor.release(block)
            adaptor.release(again)

    run_in_threads(work, work, work, work)
    now = counts(adaptor)

    if maker == "statistics":
        assert (0, 0, 4 * 2 * 299) == (now[0].current_bytes, now[0].current_count, now[0].total_count)
        assert 4 * 2 * sum(range(1, 300)) == now[0].total_bytes
    elif now:
        assert now[0] in (0, (0, 0))


def run_in_threads(*work: Callable[[], None]) -> None:
    """Run at once, and report what went wrong in any."""
    wrong: list[BaseException] = []

    def run(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 -- reported below
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [] == wrong


# --- tracking


def test_tracking_lists_what_is_out() -> None:
    tracking = TrackingAllocator(SimulatedDeviceAllocator())
    first, second, third = (tracking.allocate(size) for size in (10, 20, 30))
    tracking.release(second)

    assert [(1, 10, None), (3, 30, None)] == [
        (n, size, stack) for n, _, size, stack in tracking.outstanding_allocations
    ]
    assert [address_of(first), address_of(third)] == [block.address for block in tracking.outstanding_allocations]
    lines = tracking.leak_report().splitlines()
    assert "40 bytes in 2 blocks are out on simulated:0" == lines[0]
    assert [f"  #1: 10 bytes at {address_of(first):#x}", f"  #3: 30 bytes at {address_of(third):#x}"] == lines[1:]
    tracking.release(first)
    tracking.release(third)
    assert ["0 bytes in 0 blocks are out on simulated:0"] == tracking.leak_report().splitlines()


def test_tracking_with_stacks_says_who_allocated() -> None:
    """The innermost call last, and nothing of the adaptor itself."""
    tracking = TrackingAllocator(CPUDeviceAllocator(), stacks=True)

    def forgetful() -> Any:
        return tracking.allocate(5)

    kept = forgetful()
    (block,) = tracking.outstanding_allocations
    assert block.stack is not None
    assert ("forgetful", "test_tracking_with_stacks_says_who_allocated") == (block.stack[-1].name, block.stack[-2].name)
    assert tracking.leak_report().splitlines()[-1] == "        return tracking.allocate(5)"
    tracking.release(kept)
    with SyncedMemory(8, host=PoolAllocator(StatisticsAllocator(tracking)), device=None) as memory:
        memory.cpu_data()
        assert tracking.leak_report().splitlines()[-1] == "        memory.cpu_data()"


def test_addresses_are_those_of_each_kind_of_device() -> None:
    class Cuda:
        """As CuPy's arrays say where they are."""

        __cuda_array_interface__ = {"data": (0x1234, False)}  # noqa: RUF012 -- as there

    assert 0x1234 == address_of(Cuda())
    for allocator in upstreams():
        block = allocator.allocate(SIZE)
        assert address_of(block[5:]) == address_of(block) + 5
        allocator.release(block)


# --- limiting


def test_a_limit_is_reached_and_not_passed() -> None:
    limiting = LimitingAllocator(CPUDeviceAllocator(), 100)
    block = limiting.allocate(60)
    with pytest.raises(AllocationError, match="cannot allocate 41 bytes on cpu:0: 60 of at most 100 bytes are in use"):
        limiting.allocate(41)
    other = limiting.allocate(40)

    assert (100, 100) == (limiting.limit, limiting.allocated_bytes)
    limiting.release(block)
    limiting.release(other)
    assert 0 == limiting.allocated_bytes


@pytest.mark.parametrize("limit", [-1, "4", None])
def test_what_is_no_limit_is_refused(limit: Any) -> None:
    with pytest.raises((InvalidSizeError, InvalidArgumentError), match=r"limit|size must"):
        LimitingAllocator(CPUDeviceAllocator(), limit)


# --- statistics


def test_statistics_count_what_is_out_what_was_at_most_and_all() -> None:
    counting = StatisticsAllocator(CPUDeviceAllocator())
    one, two = counting.allocate(10), counting.allocate(5)
    counting.release(one)
    three = counting.allocate(1)

    assert Statistics(6, 2, 15, 2, 16, 3) == counting.statistics
    counting.statistics.total_count = 99
    assert 3 == counting.statistics.total_count
    counting.release(two)
    counting.release(three)


def test_scopes_count_from_zero_and_are_taken_over() -> None:
    """The peak of what is around a scope is reached inside it, if it is."""
    counting = StatisticsAllocator(CPUDeviceAllocator())
    outer = counting.allocate(10)
    before = counting.push_counters()
    inner = counting.allocate(7)
    counting.release(inner)
    counting.release(outer)
    left = counting.pop_counters()

    assert Statistics(10, 1, 10, 1, 10, 1) == before
    assert Statistics(-10, -1, 7, 1, 7, 1) == left
    assert Statistics(0, 0, 17, 2, 17, 2) == counting.statistics
    with pytest.raises(NoScopeError, match="pop_counters: there is no scope to leave"):
        counting.pop_counters()


def test_a_scope_with_less_than_the_peak_around_it_leaves_that() -> None:
    counting = StatisticsAllocator(CPUDeviceAllocator())
    for size in (5, 6):
        counting.release(counting.allocate(size))
    with counting.scope():
        pass

    assert Statistics(0, 0, 6, 1, 11, 2) == counting.statistics


def test_a_scope_is_a_with_block_and_keeps_its_figures() -> None:
    counting = StatisticsAllocator(CPUDeviceAllocator())
    with counting.scope() as outside:
        with suppress(AllocationError), counting.scope() as inside:
            counting.release(counting.allocate(3))
            raise AllocationError("here", 1)
        kept = counting.allocate(4)
        seen = outside.total_bytes
    counting.release(kept)

    assert Statistics(0, 0, 3, 1, 3, 1) == inside
    assert (7, Statistics(4, 1, 4, 1, 7, 2)) == (seen, outside)
    assert Statistics(0, 0, 4, 1, 7, 2) == counting.statistics


# --- logging


def test_a_log_of_json_lines(tmp_path: Path) -> None:
    """One for each call, also for one that finds no room, and one with a size that is none."""
    path = tmp_path / "log.jsonl"
    with LoggingAllocator(LimitingAllocator(CPUDeviceAllocator(), 100), path) as log:
        block = log.allocate(60)
        for size in (50, object()):
            with pytest.raises((AllocationError, InvalidArgumentError)):
                log.allocate(size)  # type: ignore[arg-type] # the point of the test
        log.release(block)
        log.release(log.allocate(0))
    late = log.allocate(5)
    log.release(late)
    log.close()

    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert ["allocate", "allocate failure", "allocate failure", "free"] == [line["action"] for line in lines]
    assert [f"{address_of(block):#x}", "0x0", "0x0", f"{address_of(block):#x}"] == [line["pointer"] for line in lines]
    assert [60, 50, 60] == [line["size"] for line in lines if isinstance(line["size"], int)]
    assert {threading.get_ident()} == {line["thread"] for line in lines}
    assert {"0x0"} == {line["stream"] for line in lines}
    assert all(line["time"][10] == "T" for line in lines)


def test_a_release_that_fails_is_in_the_log() -> None:
    """After the line of the attempt, which comes first so that no other thread has the address by then."""
    file = io.StringIO()
    log = LoggingAllocator(CPUDeviceAllocator(), file)
    for foreign in (np.zeros(3, np.uint8), 7):
        with pytest.raises(InvalidPointerError):
            log.release(foreign)
    lines: list[dict[str, Any]] = [json.loads(line) for line in file.getvalue().splitlines()]

    assert ["free", "free failure"] * 2 == [line["action"] for line in lines]
    assert ([3, 3, 0, 0], "0x0", None) == ([line["size"] for line in lines], lines[-1]["pointer"], log.failure)


def test_a_log_in_the_columns_of_rmm() -> None:
    """A file that is open stays open."""
    file = io.StringIO()
    log = LoggingAllocator(CPUDeviceAllocator(), file, csv=True)
    block = log.allocate(60)
    log.release(block)
    log.close()
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))

    assert file.getvalue().startswith("Thread,Time,Action,Pointer,Size,Stream\n")
    shown = f"{address_of(block):#x}"
    assert [("allocate", shown, "60", "0x0"), ("free", shown, "60", "0x0")] == [tuple(row.values())[2:] for row in rows]
    assert all(len(row["Time"]) == len("12:34:56.123456") and int(row["Thread"]) for row in rows)


class Full(io.StringIO):
    """A file on a disk with no room, or that somebody interrupts."""

    error: BaseException = OSError("no space left")

    def write(self, text: str) -> int:
        del text
        raise self.error


def test_a_log_that_fails_loses_no_memory() -> None:
    """It says so once, and calls go on."""
    upstream = CPUDeviceAllocator()
    log = LoggingAllocator(upstream, Full())
    with pytest.warns(RuntimeWarning, match="the log of cpu:0 is not complete: OSError: no space left") as warned:
        block = log.allocate(SIZE)
        log.release(block)
    assert (1, 0, True) == (len(warned), upstream.live_blocks, isinstance(log.failure, OSError))
    with warnings.catch_warnings(action="error"):
        again = LoggingAllocator(upstream, Full())
        block = again.allocate(SIZE)
        assert (1, "no space left") == (upstream.live_blocks, str(again.failure))
        again.release(block)


def test_an_interrupt_while_the_log_is_written_loses_no_memory() -> None:
    upstream, file = CPUDeviceAllocator(), Full()
    file.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        LoggingAllocator(upstream, file).allocate(SIZE)

    assert 0 == upstream.live_blocks


def test_a_log_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        LoggingAllocator(CPUDeviceAllocator(), tmp_path / "no" / "log")


# --- failing


def is_even(size: int) -> bool:
    """A reason for a call to fail."""
    return size % 2 == 0


def outcomes(failing: FailingAllocator, sizes: Sequence[int]) -> list[bool]:
    """For each allocation whether it failed."""
    failed: list[bool] = []
    for size in sizes:
        try:
            failing.release(failing.allocate(size))
        except AllocationError as error:
            assert "told to fail" in str(error)  # noqa: PT017 -- of many calls
            failed.append(True)
        else:
            failed.append(False)
    return failed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [False] * 5),
        ({"at": 3}, [False, False, True, False, False]),
        ({"from_size": 4}, [False, False, False, True, True]),
        ({"when": is_even}, [False, True, False, True, False]),
        ({"probability": 1}, [True] * 5),
        ({"at": 1, "from_size": 5}, [True, False, False, False, True]),
    ],
)
def test_calls_fail_where_they_are_told_to(options: dict[str, Any], expected: list[bool]) -> None:
    upstream = CPUDeviceAllocator()
    failing = FailingAllocator(upstream, **options)

    assert expected == outcomes(failing, [1, 2, 3, 4, 5])
    assert (5, sum(expected), 0) == (failing.calls, failing.failures, upstream.live_blocks)


def test_failures_by_chance_come_again_with_their_seed() -> None:
    """Whatever other reasons there are."""
    first, again = (
        outcomes(FailingAllocator(CPUDeviceAllocator(), probability=0.5, seed=7), [1] * 64) for _ in range(2)
    )
    other = outcomes(FailingAllocator(CPUDeviceAllocator(), probability=0.5, seed=8), [1] * 64)
    more = outcomes(
        FailingAllocator(CPUDeviceAllocator(), probability=0.5, seed=7, at=first.index(False) + 1), [1] * 64
    )

    assert (first, True, True) == (again, first != other, 10 < sum(first) < 54)
    assert 1 == sum(one != two for one, two in zip(first, more, strict=True))


@pytest.mark.parametrize("operation", ["release", "memcpy", "memset_zero"])
def test_other_calls_can_fail_too(operation: str) -> None:
    upstream = CPUDeviceAllocator()
    failing = FailingAllocator(upstream, operation=operation, at=1)
    block = failing.allocate(SIZE)

    def act() -> None:
        if operation == "release":
            failing.release(block)
        elif operation == "memcpy":
            failing.memcpy(np.ones(SIZE, np.uint8), block, SIZE)
        else:
            failing.memset_zero(block, SIZE)

    with pytest.raises(DeviceError, match=f"{operation} failed on cpu:0: RuntimeError: this call was told to fail"):
        act()
    assert 1 == upstream.live_blocks
    act()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"operation": "free"}, "operation must be one of allocate, release, memcpy, memset_zero, got 'free'"),
        ({"at": "2"}, "at must be the number of a call, or None, got '2'"),
        ({"seed": "x"}, "seed must be an integer, or None, got 'x'"),
        ({"probability": 1.5}, "probability must be a number from 0 to 1, got 1.5"),
        ({"probability": "1"}, "probability must be a number from 0 to 1, got '1'"),
        ({"probability": float("nan")}, "got nan"),
        ({"from_size": "3"}, "from_size must be an integer number of bytes"),
    ],
)
def test_what_says_nothing_of_which_calls_fail_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        FailingAllocator(CPUDeviceAllocator(), **options)


# --- guarding


def around(block: Any, reach: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Host memory from before a block to behind it, as a stray pointer reaches it."""
    import ctypes

    start, size = block.ctypes.data - reach, block.size + 2 * reach
    return np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8)


@pytest.mark.parametrize("where", [0, -1])
@pytest.mark.parametrize("found_by", ["release", "check"])
def test_a_write_around_a_block_is_found(where: int, found_by: str) -> None:
    """Before it and behind it; it is not released."""
    upstream = CPUDeviceAllocator()
    guarding = GuardingAllocator(upstream)
    block: Any = guarding.allocate(SIZE)
    zone = around(block, 1)
    was, zone[where] = int(zone[where]), 0
    with pytest.raises(MemoryCorruptionError, match="cpu:0: somebody wrote into the red zone of a block of 48 bytes"):
        guarding.release(block) if found_by == "release" else guarding.check()

    assert 1 == upstream.live_blocks
    zone[where] = was
    guarding.release(block)
    guarding.check()


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
def test_a_write_into_a_released_block_is_found(upstream: Any) -> None:
    """On every device, through an array that somebody kept."""
    guarding, before = GuardingAllocator(upstream), upstream.live_blocks
    block = guarding.allocate(SIZE)
    guarding.release(block)
    guarding.check()
    kind = MemcpyKind.CPU2CPU if upstream.device_type is DeviceType.CPU else MemcpyKind.CPU2CUDA
    guarding.memcpy(np.zeros(1, np.uint8), block, 1, kind)

    with pytest.raises(MemoryCorruptionError, match="somebody wrote after its release into a block of 48 bytes"):
        guarding.check()
    with pytest.raises(MemoryCorruptionError):
        guarding.clear()
    guarding.clear()
    assert before == upstream.live_blocks


def test_memory_is_poisoned_when_it_is_new_and_when_it_is_released() -> None:
    guarding = GuardingAllocator(CPUDeviceAllocator())
    block: Any = guarding.allocate(SIZE)
    fresh = set(block.tolist())
    guarding.release(block)

    assert ({0xA5}, {0xDD}) == (fresh, set(block.tolist()))


def test_the_quarantine_keeps_the_last_blocks() -> None:
    """The oldest leave it, and are looked at once more; what does not fit at all is released at once."""
    upstream = CPUDeviceAllocator()
    guarding = GuardingAllocator(upstream, quarantine=100)
    spoilt, second, third, large = (guarding.allocate(size) for size in (50, 50, 60, 101))
    guarding.release(spoilt)
    guarding.release(second)
    assert 4 == upstream.live_blocks
    assert spoilt is not None
    spoilt[3] = 0
    with pytest.raises(MemoryCorruptionError, match="after its release into a block of 50 bytes"):
        guarding.release(third)
    assert 3 == upstream.live_blocks
    guarding.release(third)
    assert 2 == upstream.live_blocks
    guarding.release(large)
    assert 1 == upstream.live_blocks


def test_the_quarantine_makes_room_when_the_upstream_is_full() -> None:
    """And where it has nothing to give, there is no room."""
    device = SimulatedDeviceAllocator(capacity=2000)
    guarding = GuardingAllocator(device, red_zone=64)
    guarding.release(guarding.allocate(1500))
    block = guarding.allocate(1500)
    with pytest.raises(AllocationError, match="1628 of 2000 bytes are in use"):
        guarding.allocate(1500)

    guarding.release(block)


def test_a_guard_that_nobody_uses_any_more_gives_back_what_it_kept() -> None:
    """And tells what it finds; what does not go is no reason to try for ever."""
    device = SimulatedDeviceAllocator()
    for spoil, stuck in ((False, False), (True, False), (False, True)):
        guarding = GuardingAllocator(device)
        blocks: list[Any] = [guarding.allocate(SIZE), guarding.allocate(SIZE)]
        for block in blocks:
            guarding.release(block)
        if spoil:
            guarding.memcpy(np.zeros(1, np.uint8), blocks[0], 1, MemcpyKind.CPU2CUDA)
        if stuck:
            device.fail_at(1, "release")
        said = "after its release|told to fail"
        with pytest.warns(ResourceWarning, match=said) if spoil or stuck else nullcontext():
            del guarding
            gc.collect()
        assert 0 == device.live_blocks


def test_a_guard_that_cannot_be_set_up_gives_the_block_back() -> None:
    device = SimulatedDeviceAllocator()
    device.fail_at(1, "memcpy")
    with pytest.raises(Exception, match="told to fail"):
        GuardingAllocator(device).allocate(SIZE)

    assert 0 == device.live_blocks


@pytest.mark.parametrize("zone", [0, 32, 100, "64"])
def test_a_red_zone_that_would_spoil_the_alignment_is_refused(zone: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="red_zone must be"):
        GuardingAllocator(CPUDeviceAllocator(), red_zone=zone)


# --- one thread at a time


@pytest.mark.parametrize(("safe", "patience"), [(True, 0.1), (False, 10)])
def test_one_thread_at_a_time_is_let_in(safe: bool, patience: float) -> None:
    """Two never meet inside; without the adaptor they do."""
    met, inside = threading.Event(), list[None]()

    class Fragile(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            inside.append(None)
            if len(inside) > 1:
                met.set()
            met.wait(patience)
            inside.pop()
            return super().allocate(byte_size)

    allocator: Any = ThreadSafeAllocator(Fragile()) if safe else Fragile()

    def work() -> None:
        allocator.release(allocator.allocate(8))

    run_in_threads(work, work)

    assert met.is_set() is not safe
