"""Interrupts in allocators: whatever comes, wherever it comes, a call has done nothing or all, in every layer.

`KeyboardInterrupt` and `MemoryError` come at every point of every scenario.  `SystemExit` and `RecursionError`, which
differ from these in nothing that an allocator looks at, come at every point of the scenarios of the pool.
"""

# The tests look at what each layer has recorded.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from adaptors import MAKERS
from heaps import Heap, Later, Streamed
from interruption import INTERRUPTS, interrupt_everywhere, interrupt_with_signals
from subjects import devices

from syncedmem.runtime import (
    CPUDeviceAllocator,
    LimitingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    named_device,
)
from syncedmem.runtime.interop.exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Callable

    from interruption import Report

MIB = 1 << 20
BOTH = (KeyboardInterrupt, MemoryError)

pytestmark = pytest.mark.filterwarnings("ignore:the log of:RuntimeWarning")  # MemoryError in the middle of a line


def whole(heap: Heap, _raised: BaseException | None) -> None:
    """All records agree, the stack still works, and nothing is left at the end."""
    heap.check()
    heap.finish()


# --- the pool


def pool(**options: Any) -> Heap:
    """A heap whose stack has a pool."""
    heap = Heap(bottom=Streamed())
    heap.stack = PoolAllocator(heap.bottom, **options)
    return heap


def full() -> Heap:
    """A heap with a pool whose upstream has no more room."""
    heap = Heap(["pool"], LimitingAllocator(CPUDeviceAllocator(), 4000))
    heap.sizes = 64, 50, 20
    return heap.with_idle(2000, 1900)


def pushed(heap: Heap) -> Heap:
    """The same heap, with queued work on its first block."""
    heap.stack.memset_zero(heap.out[0], 10, object())
    return heap


def closed(heap: Heap) -> Heap:
    """The same heap, with its pool closed."""
    heap.stack.close()
    return heap


def drop(heap: Heap) -> None:
    """Drop the stack, with the blocks that it keeps."""
    heap.stack = None


def nothing_left(heap: Heap, _raised: BaseException | None) -> None:
    assert 0 == heap.bottom.live_blocks


def held(heap: Heap) -> None:
    heap.stack.hold(heap.out[0][:8], Later())


POOL: dict[str, tuple[Callable[[], Heap], Callable[[Heap], object]]] = {
    "allocate, new": (pool, lambda heap: heap.allocate(100)),
    "allocate, idle": (lambda: pool().with_idle(100, 200), lambda heap: heap.allocate(100)),
    "allocate, part of an idle block": (lambda: pool().with_idle(50, 200, 300), lambda heap: heap.allocate(150)),
    "allocate, big": (lambda: pool().with_idle(3 * MIB, 2 * MIB), lambda heap: heap.allocate(2 * MIB - 8)),
    "allocate, idle in flight": (
        lambda: releasing(pushed(pool().with_blocks(100))),
        lambda heap: heap.allocate(100),
    ),
    "allocate, upstream full": (full, lambda heap: heap.allocate(3000)),
    "allocate, nothing to be had": (full, lambda heap: heap.allocate(5000)),
    "release": (lambda: pool().with_blocks(100, 200), lambda heap: heap.release(0)),
    "release in flight": (lambda: pushed(pool().with_blocks(100)), lambda heap: heap.release(0)),
    "release at the limit": (
        lambda: pool(idle_limit=150).with_blocks(100).with_idle(20, 90),
        lambda heap: heap.release(0),
    ),
    "release in flight at the limit": (
        lambda: pushed(pool(idle_limit=150).with_blocks(100)).with_idle(90),
        lambda heap: heap.release(0),
    ),
    "release after close": (lambda: closed(pushed(pool().with_blocks(100))), lambda heap: heap.release(0)),
    "trim": (lambda: pool().with_blocks(10).with_idle(100, 2 * MIB, 200), lambda heap: heap.stack.trim()),
    "trim in flight": (lambda: releasing(pushed(pool().with_blocks(100, 10))), lambda heap: heap.stack.trim(5)),
    "close": (lambda: pool().with_blocks(10).with_idle(100, 2 * MIB, 200), lambda heap: heap.stack.close()),
    "hold": (lambda: pool().with_blocks(100), held),
    "copy on a stream": (lambda: pool().with_blocks(100), pushed),
}


def releasing(heap: Heap) -> Heap:
    """The same heap, with its first block released."""
    heap.release(0)
    return heap


@pytest.mark.parametrize("error", INTERRUPTS)
@pytest.mark.parametrize("scenario", POOL)
def test_an_interrupted_pool_is_whole(
    scenario: str, error: type[BaseException], require_unbroken: Callable[[Report], None]
) -> None:
    prepare, act = POOL[scenario]

    require_unbroken(interrupt_everywhere(prepare, act, whole, error))


# --- adaptors, and stacks of them

STACKS = [
    *([name] for name in MAKERS if name != "pool"),
    ["tracking", "limiting", "statistics", "logging", "failing", "thread-safe", "pool"],
    ["pool", "thread-safe", "statistics", "failing", "logging", "limiting", "tracking"],
    ["limiting", "pool", "tracking"],
    ["statistics", "guarding", "pool"],
    ["pool", "guarding", "tracking"],
    ["thread-safe", "pool", "pool", "statistics"],
]
CALLS: dict[str, tuple[Callable[[Heap], Heap], Callable[[Heap], object]]] = {
    "allocate": (lambda heap: heap.with_blocks(100), lambda heap: heap.allocate(50)),
    "allocate again": (lambda heap: heap.with_blocks(100).with_idle(60), lambda heap: heap.allocate(50)),
    "release": (lambda heap: heap.with_blocks(100, 50), lambda heap: heap.release(0)),
}


CASES = [(names, call) for names in STACKS for call in CALLS if call != "allocate again" or "pool" in names]


@pytest.mark.deep(quick=12)
@pytest.mark.parametrize("error", BOTH)
@pytest.mark.parametrize(("names", "call"), CASES, ids=lambda it: it if isinstance(it, str) else "-".join(it))
def test_an_interrupted_stack_is_whole(
    names: list[str], call: str, error: type[BaseException], require_unbroken: Callable[[Report], None]
) -> None:
    prepare, act = CALLS[call]

    require_unbroken(interrupt_everywhere(lambda: prepare(Heap(names)), act, whole, error))


# --- allocators that have their memory from nobody


def bottoms() -> dict[str, Callable[[], Any]]:
    """A function that makes an allocator, for each kind."""
    made: dict[str, Callable[[], Any]] = {"host": CPUDeviceAllocator, "simulated": SimulatedDeviceAllocator}
    made["simulated, pinned"] = lambda: SimulatedDeviceAllocator().pinned_host()
    if "opencl" in {it.name.partition(":")[0] for it in devices()}:
        made["opencl"] = partial(named_device, "opencl")
    return made


BOTTOMS = bottoms()


def one_more_or_less(heap: Heap, _raised: BaseException | None) -> None:
    """The allocator has allocated what the caller has; and at the end what it had before."""
    assert heap.before + len(heap.out) == heap.bottom.live_blocks
    while heap.out:
        heap.release(-1)
    assert heap.before == heap.bottom.live_blocks


@pytest.mark.parametrize("error", BOTH)
@pytest.mark.parametrize("size", [100, 2 * MIB])
@pytest.mark.parametrize("call", ["allocate", "release"])
@pytest.mark.parametrize("bottom", BOTTOMS)
def test_an_interrupted_allocator_is_whole(
    bottom: str,
    call: str,
    size: int,
    error: type[BaseException],
    require_unbroken: Callable[[Report], None],
) -> None:
    def act(heap: Heap) -> None:
        heap.allocate(size) if call == "allocate" else heap.release(0)

    def prepare() -> Heap:
        return Heap(bottom=BOTTOMS[bottom]()).with_blocks(size)

    require_unbroken(interrupt_everywhere(prepare, act, one_more_or_less, error))


# --- memory exported by address


class Exports:
    """An exporter and the addresses of its blocks."""

    def __init__(self, alignment: int = 1) -> None:
        self.heap = Heap(["tracking"])
        self.exporter = Exporter(self.heap.stack, alignment=alignment)
        self.addresses: list[int] = []
        self.block: Any = None

    def allocating(self, byte_size: int) -> Exports:
        self.addresses.extend(map(self.exporter.allocate, (byte_size,)))
        return self

    def with_block(self) -> Exports:
        (self.block,) = map(self.exporter.export, (100,))
        return self

    def give_back(self) -> None:
        giving, forgetting = map(self.exporter.deallocate, self.addresses[:1]), map(self.addresses.pop, (0,))
        (_,) = giving
        (_,) = forgetting

    def drop(self) -> None:
        self.block = None

    def lose(self) -> None:
        """Give a block back as a C library does, which forgets the block and cannot handle an exception."""
        address = self.addresses.pop()
        self.exporter.give_back(address)

    def check(self) -> None:
        blocks = [] if self.block is None else [self.block.ptr]
        assert sorted(self.addresses + blocks) == sorted(self.exporter._blocks)
        self.heap.out = [block.array for block in self.exporter._blocks.values()]
        self.heap.check()


def exported_and_known(exports: Exports, _raised: BaseException | None) -> None:
    """The exporter, the allocator and its user agree, and everything can be given back."""
    exports.check()
    exports.block = None
    while exports.addresses:
        exports.give_back()
    exports.check()


EXPORTS: dict[str, tuple[Callable[[], Exports], Callable[[Exports], object]]] = {
    "allocate": (Exports, lambda exports: exports.allocating(100)),
    "allocate, aligned": (lambda: Exports(4096), lambda exports: exports.allocating(100)),
    "deallocate": (lambda: Exports().allocating(100).allocating(50), Exports.give_back),
    "export": (Exports, Exports.with_block),
}


@pytest.mark.parametrize("error", BOTH)
@pytest.mark.parametrize("scenario", EXPORTS)
def test_an_interrupted_exporter_is_whole(
    scenario: str, error: type[BaseException], require_unbroken: Callable[[Report], None]
) -> None:
    prepare, act = EXPORTS[scenario]

    require_unbroken(interrupt_everywhere(prepare, act, exported_and_known, error))


# --- finalisers


def guarded() -> Heap:
    """A guard with blocks in quarantine."""
    return Heap(["guarding"]).with_idle(10, 20)


FINALISERS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "pool": (lambda: pool().with_idle(100, 2 * MIB, 200), drop),
    "pool, just released": (lambda: pool().with_idle(100), drop),
    "guard": (guarded, drop),
}


@pytest.mark.parametrize("error", INTERRUPTS)
@pytest.mark.parametrize("scenario", FINALISERS)
def test_an_interrupted_finaliser_gives_everything_back(
    scenario: str, error: type[BaseException], require_unbroken: Callable[[Report], None]
) -> None:
    """It holds even if its first instruction is interrupted."""
    prepare, act = FINALISERS[scenario]

    require_unbroken(interrupt_everywhere(prepare, act, nothing_left, error))


@pytest.mark.parametrize("error", BOTH)
def test_a_block_whose_finaliser_is_interrupted_is_given_back(
    error: type[BaseException], require_unbroken: Callable[[Report], None]
) -> None:
    report = interrupt_everywhere(lambda: Exports().with_block(), Exports.drop, exported_and_known, error)

    require_unbroken(report)


# --- real signals


@pytest.mark.deep
@pytest.mark.parametrize("names", STACKS[8:], ids="-".join)
def test_real_signals_leave_a_stack_whole(names: list[str], require_unbroken: Callable[[Report], None]) -> None:
    """Some thousand signals come at any moment while the stacks work."""
    heap, chance = Heap(names), random.Random(7)  # noqa: S311 -- replayable calls, not secrets

    def work() -> None:
        for _ in range(100):
            if heap.out and (len(heap.out) > 20 or chance.random() < 0.5):
                heap.release(chance.randrange(len(heap.out)))
            else:
                heap.allocate(chance.choice((10, 100, 1000, 2 * MIB)))
            if chance.random() < 0.1:
                for layer in heap.layers():
                    if isinstance(layer, PoolAllocator):
                        layer.trim(chance.choice((0, 1000)))

    report = interrupt_with_signals(work, lambda _: heap.check(), times=250, microseconds=2_000)
    heap.finish()

    require_unbroken(report)
