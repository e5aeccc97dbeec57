"""Adaptors: the laws that hold for all of them, in any order and with threads."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from adaptors import COUNTING, LIMIT, MAKERS, SAMPLE, counts, stacked
from subjects import SIZE
from threads import run_in_threads

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError
from syncedmem.model.interface import DEVICE_CALLS
from syncedmem.runtime import (
    Adaptor,
    CPUDeviceAllocator,
    DeviceType,
    GuardingAllocator,
    LimitingAllocator,
    MemcpyKind,
    PoolAllocator,
    SimulatedDeviceAllocator,
    StatisticsAllocator,
    SyncedMemory,
    ThreadSafeAllocator,
    TrackingAllocator,
)
from syncedmem.runtime.allocators.adaptor import COUNTS
from syncedmem.runtime.allocators.arithmetic import arithmetic_of
from syncedmem.runtime.allocators.pointers import address_of
from syncedmem.runtime.interop.exporter import Exporter
from syncedmem.spec import Subject, check_conformance
from syncedmem.spec.fuzz import fuzz

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Recorder:
    """An allocator without a base class of ours; it records its calls, and returns results of its own."""

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
    ("current_stream", ()),
    ("on", ("stream",)),
    ("pinned_host", ()),
    ("read_only", ("a",)),
    ("viewer", ("a",)),
    ("using", ()),
    ("current_ordinal", ()),
]


@pytest.mark.deep
@pytest.mark.parametrize("keeper", ["guarding", "pool"])
@pytest.mark.parametrize("counter", COUNTING)
def test_what_counts_blocks_does_not_show_through_an_adaptor_that_keeps_them(keeper: str, counter: str) -> None:
    """Such a count includes the blocks that the adaptor keeps, so it would look like a leak."""
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
    shown = {name for item in counting for name, member in vars(item).items() if isinstance(member, property)}

    assert shown - {"limit"} <= COUNTS
    with pytest.raises(AttributeError, match=r"PoolAllocator keeps memory, .* statistics does not .*: ask \.upstream"):
        _ = PoolAllocator(StatisticsAllocator(CPUDeviceAllocator())).statistics  # type: ignore[attr-defined]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(("call", "arguments"), CALLS)
def test_what_an_adaptor_does_not_change_is_passed_on(maker: str, call: str, arguments: tuple[Any, ...]) -> None:
    """The upstream gets every argument, streams included, and its result is returned."""
    recorder: Any = Recorder()
    answer = getattr(MAKERS[maker](recorder), call)(*arguments)

    assert (call, *arguments) == recorder.asked[-1]
    assert answer == (None if call in ("memcpy", "memset_zero", "check_stream", "order_after") else f"answer to {call}")


def test_an_upstream_without_a_current_stream_has_none() -> None:
    """It may be somebody else's, without our base class; the host has none either."""

    class Bare:
        device_type = DeviceType.SIMULATED

        def allocate(self, byte_size: int) -> None: ...

        def check_stream(self, stream: object) -> None: ...

    for allocator in (Adaptor(cast("Any", Bare())), CPUDeviceAllocator()):
        with allocator.on(None) as entered:
            assert (None, None) == (entered, allocator.current_stream())
    with pytest.raises(InvalidArgumentError, match="stream must be None on the host, got 3"):
        CPUDeviceAllocator().on(cast("Any", 3))


def test_every_call_of_the_interface_is_passed_on() -> None:
    """No call uses the default of `DeviceAllocator`."""
    interface = (DEVICE_CALLS | {"arithmetic", "current_stream", "on"}) - {"device_type", "ordinal"}

    assert interface <= set(vars(Adaptor))
    assert interface - {"allocate", "release", "name", "arithmetic"} == {call for call, _ in CALLS}


@pytest.mark.parametrize("maker", MAKERS)
def test_arithmetic_is_that_of_the_memory_below(maker: str) -> None:
    """It holds on the host too, where an allocator that is not ours has no method for it."""
    device = SimulatedDeviceAllocator()
    adaptor: Any = MAKERS[maker](device)

    assert type(device.arithmetic()) is type(arithmetic_of(adaptor))
    assert type(arithmetic_of(CPUDeviceAllocator())) is type(arithmetic_of(MAKERS[maker](CPUDeviceAllocator())))


@pytest.mark.parametrize("maker", MAKERS)
def test_an_adaptor_says_what_its_upstream_says_of_itself(maker: str) -> None:
    """It holds also for attributes that are not in the interface, but not for private ones."""
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
    """Nor does its finaliser, which finds no memory, tell of anything."""
    with pytest.raises(InvalidArgumentError) as refused:
        MAKERS[maker](other)
    assert ("upstream", other) == (refused.value.argument, refused.value.value)
    del refused
    gc.collect()


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
def test_what_is_nothing_or_refused_is_not_counted(maker: str) -> None:
    """Neither by the adaptor nor below it; that it is refused is the contract's."""
    upstream = CPUDeviceAllocator()
    adaptor = MAKERS[maker](upstream)
    kept, gone = adaptor.allocate(SIZE), adaptor.allocate(SIZE)
    adaptor.release(gone)
    before = (counts(adaptor), upstream.live_blocks)
    adaptor.release(adaptor.allocate(0))
    wrong: Any
    for wrong in (-1, "8", True):
        with pytest.raises((ValueError, TypeError)):
            adaptor.allocate(wrong)
    for wrong in (gone, np.zeros(SIZE, np.uint8), 7):
        with pytest.raises(InvalidPointerError):
            adaptor.release(wrong)

    assert before == (counts(adaptor), upstream.live_blocks)
    adaptor.release(kept)


@pytest.mark.parametrize("maker", [maker for maker in MAKERS if maker != "pool"])
@pytest.mark.parametrize("operation", ["allocate", "release"])
def test_when_the_upstream_raises_nothing_has_changed(
    maker: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts and live blocks are unchanged, and the next call works."""
    device = SimulatedDeviceAllocator()
    monkeypatch.setattr("syncedmem.runtime.allocators.guards._QUARANTINE", 0)
    adaptor: Any = MAKERS[maker](device)
    block = adaptor.allocate(SIZE)
    before = counts(adaptor)
    device.fail_at(1, operation)
    with pytest.raises(Exception, match="told to fail"):
        adaptor.allocate(SIZE) if operation == "allocate" else adaptor.release(block)

    assert (before, 1) == (counts(adaptor), device.live_blocks)
    adaptor.release(block)
    assert 0 == device.live_blocks


def nothing(_: int) -> None:
    """In place of ``allocate``: somebody else's way to say that there is no room."""


@pytest.mark.parametrize("maker", [LimitingAllocator, GuardingAllocator, PoolAllocator, Exporter])
def test_an_upstream_that_returns_none_has_no_room(maker: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stays counted, and the next call works."""
    upstream = CPUDeviceAllocator()
    adaptor = maker(upstream, **{"limit": SIZE} if maker is LimitingAllocator else {})
    with monkeypatch.context() as full:
        full.setattr(upstream, "allocate", nothing)
        with pytest.raises(AllocationError, match=r"cannot allocate \d+ bytes on cpu:0"):
            adaptor.allocate(SIZE)

    block = adaptor.allocate(SIZE)
    adaptor.deallocate(block) if maker is Exporter else adaptor.release(block)


@pytest.fixture
def hasty() -> Iterator[None]:
    """Python switches between threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("maker", ["limiting", "statistics", "tracking", "pool", "guarding", "thread-safe"])
def test_threads_leave_the_counts_right(maker: str, hasty: None) -> None:
    """Python switches between the threads as often as it can."""
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


@pytest.mark.parametrize(("safe", "patience"), [(True, 0.1), (False, 10)])
def test_one_thread_at_a_time_is_let_in(safe: bool, patience: float) -> None:
    """Two threads are never inside at the same time; without the adaptor they are."""
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


ORDERS = list(itertools.permutations(COUNTING))


def scenario(allocator: Any, limit: int) -> list[Any]:
    """What a caller sees of an allocator with a limit: the results, and the messages of the errors."""
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
    """The stacks are tracking over limiting, limiting over tracking, and both with statistics between them."""
    expected = scenario(LimitingAllocator(CPUDeviceAllocator(), LIMIT), LIMIT)
    stack = stacked(order, CPUDeviceAllocator())

    assert expected == scenario(stack, LIMIT)
    assert AllocationError in {entry[0] for entry in expected if isinstance(entry, tuple)}
    live = sorted(map(repr, counts(stack)))
    assert sorted(map(repr, counts(stack_after_scenario(COUNTING)))) == live


def stack_after_scenario(order: Sequence[str]) -> Any:
    """The stack of a scenario, after the scenario."""
    stack = stacked(order, CPUDeviceAllocator())
    scenario(stack, LIMIT)
    return stack


@pytest.mark.deep
@pytest.mark.parametrize("order", SAMPLE[:2], ids="-".join)
def test_a_memory_over_adaptors_conforms(order: tuple[str, ...]) -> None:
    """The adaptors are on the host side and on the device side."""
    subject = Subject(
        "adaptors",
        SyncedMemory,
        stacked(order, CPUDeviceAllocator()),
        stacked(order, SimulatedDeviceAllocator()),
        elsewhere=SimulatedDeviceAllocator(1),
        check_device=True,
    )

    check_conformance(subject, steps=300).require()
