"""An interrupt wherever CPython delivers one: what it finds is as before or as after the call.

It is raised at the k-th start of a Python function, return of a function in C, or jump back, for every k; and it is
Ctrl-C, or what another signal handler raises, or an error of the interpreter.  Pools are below, so a block that has two
owners is lent twice, and shows.  No lock stays held, what is lost is told by a ResourceWarning, nobody is told of a
stale write, and the object takes its next call.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interrupts import ANYWHERE, MOST, Interrupt
from subjects import SIZE, devices

from syncedmem.model import ClosedAllocatorError, InvalidPointerError, SyncedMemoryError, caffe
from syncedmem.model.interface import MemcpyKind
from syncedmem.model.states import space
from syncedmem.model.suites import access_to, rows_of
from syncedmem.runtime import (
    Blob,
    Buffer,
    CPUDeviceAllocator,
    FailingAllocator,
    GuardingAllocator,
    LimitingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    StatisticsAllocator,
    SyncedMemory,
    ThreadSafeAllocator,
    TrackingAllocator,
    named_device,
)
from syncedmem.runtime.allocators import forking
from syncedmem.runtime.allocators.adaptor import Adaptor
from syncedmem.runtime.interop.exporter import Exporter
from syncedmem.runtime.memory import watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STRANGE, WRITTEN = 0xEE, 0x11
"""What other owners write into their blocks, and what the object under test writes after the interrupt."""


class World:
    """Pools over a host and a device that nobody else uses, and the object that owns blocks of them."""

    def __init__(self, make_device: Callable[[], Any]) -> None:
        self.real_host, self.real = CPUDeviceAllocator(), make_device()
        self.host: Any = PoolAllocator(self.real_host)
        self.device: Any = PoolAllocator(self.real)
        self.owner: Any = None
        self.held: list[Any] = []

    @property
    def where(self) -> dict[str, Any]:
        """The arguments that put a memory or a blob here."""
        return {"host": self.host, "pinned": self.host, "device": self.device}

    def lent(self) -> int:
        """How many blocks are lent, and how many a pool has lost: all that nobody has given back."""
        for pool in (self.host, self.device):
            pool.close()
        left: int = self.real_host.live_blocks + self.real.live_blocks
        return left


class Bare(World):
    """The host and the device themselves, without pools."""

    def __init__(self, make_device: Callable[[], Any]) -> None:
        super().__init__(make_device)
        self.host, self.device = self.real_host, self.real

    def lent(self) -> int:
        left: int = self.real_host.live_blocks + self.real.live_blocks
        return left


@dataclass(frozen=True)
class Case:
    """What is interrupted.

    Attributes
    ----------
    prepare : callable
        Makes the object in a new world, as ``owner``.
    act : callable
        The call.
    state : callable
        What can be seen of the object: after an interrupt it is as before the call, or as after it.
    works : callable
        Calls that an object must take after every interrupt, and that write its own bytes.
    fault : int
        The call of the device that fails meanwhile, counted from 1; 0 for none.
    """

    prepare: Callable[[World], None]
    act: Callable[[World], object]
    state: Callable[[World], object] = lambda _: None
    works: Callable[[World], object] = lambda _: None
    fault: int = 0

    def prepared(self, make_device: Callable[[], Any]) -> World:
        """A new world in which the call can be made."""
        world = World(make_device)
        self.prepare(world)
        return world

    def acted(self, world: World, interrupt: Interrupt | None = None) -> bool:
        """Make the call, which may fail if it was told to; returns whether the interrupt came."""
        if self.fault:
            world.real.fail_at(self.fault)
        try:
            return (interrupt or Interrupt(0)).comes_in(partial(self.act, world))
        except SyncedMemoryError:
            if not self.fault:
                raise
            return False
        finally:
            if self.fault:
                world.real.fail_at(0)

    def outcomes(self, make_device: Callable[[], Any]) -> list[object]:
        """What there is to see before the call, and after it."""
        before, after = self.prepared(make_device), self.prepared(make_device)
        self.acted(after)
        return [self.state(before), self.state(after)]

    def interrupts(
        self, make_device: Callable[[], Any], error: type[BaseException], points: range
    ) -> Iterator[Interrupted]:
        """The world after an interrupt at each of these points, as long as there are points."""
        for k in points:
            world = self.prepared(make_device)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                if not self.acted(world, Interrupt(k, ANYWHERE, error)):
                    return
                yield Interrupted(self, world, k, told)


@dataclass(frozen=True)
class Interrupted:
    """A world after an interrupt."""

    case: Case
    world: World
    k: int
    told: list[warnings.WarningMessage]

    def check(self, outcomes: list[object], in_hand: int = 0) -> None:
        """Nobody has two owners, what can be seen is before or after, the next calls work, and losses were told of."""
        world, case = self.world, self.case
        assert not locks_held(), f"start {self.k}: a lock is held"
        strangers = [(pool, pool.allocate(SIZE)) for pool in (world.host, world.device) for _ in range(3)]
        for _, ptr in strangers:
            written(ptr, STRANGE)
        state = case.state(world)
        assert state in outcomes, f"start {self.k}: {state}"
        case.works(world)
        for pool, ptr in strangers:
            assert read(ptr) == {STRANGE}, f"start {self.k}: two owners"
            pool.release(ptr)
        for owner in (world.owner, *world.held):
            if hasattr(owner, "close"):
                owner.close()
        world.owner = None
        world.held.clear()
        owner = state = None
        if isinstance(world.real, SimulatedDeviceAllocator):
            world.real.check()
        assert not [item for item in self.told if item.category is RuntimeWarning], f"start {self.k}: {self.told[0]}"
        losses = [item for item in self.told if item.category is ResourceWarning]
        assert world.lent() <= len(losses) + in_hand, f"start {self.k}: lost without a word"


def locks_held() -> int:
    """How many locks of the library this thread has."""
    known: Any = vars(forking)["_locks"]
    return sum(lock._is_owned() for reference in known._known if (lock := reference()) is not None)


def written(ptr: Any, value: int) -> None:
    """Fill a block."""
    if isinstance(ptr, np.ndarray):
        ptr[:] = value
    else:
        ptr.set(np.full(len(ptr), value, np.uint8))


def read(ptr: Any) -> set[int]:
    """The values in a block."""
    return set((ptr if isinstance(ptr, np.ndarray) else ptr.get()).tolist())


# --- memories


NEW, OLD = 5, 3
"""The bytes that a buffer has which is adopted, and the bytes that are fresh before a call."""


def call(world: World, name: str, value: int = NEW) -> None:
    """A call of the memory; one that adopts gets a new buffer."""
    memory = world.owner
    if name == caffe.SET_CPU_DATA.name:
        memory.set_cpu_data(np.full(SIZE, value, np.uint8))
    elif name == caffe.SET_GPU_DATA.name:
        memory.set_gpu_data(world.held[0])
    elif name == caffe.ASYNC_GPU_PUSH.name:
        memory.async_gpu_push(stream=world.held[1])
    else:
        getattr(memory, name)()


def new_memory(world: World) -> None:
    """A memory, and a buffer and a stream of its device for calls that take one."""
    world.held += [world.real.empty(SIZE), world.real.stream()]
    world.held[0].set(np.full(SIZE, NEW, np.uint8))
    world.owner = SyncedMemory(SIZE, **world.where)


def memory_at(*calls: str) -> Callable[[World], None]:
    """Makes a memory on which some calls were made; what is fresh then has the old bytes."""

    def prepare(world: World) -> None:
        new_memory(world)
        for name in calls:
            call(world, name, OLD)
            if world.owner.head.name == "HEAD_AT_CPU":
                world.owner.mutable_cpu_data()[:] = OLD
            elif world.owner.head.name == "HEAD_AT_GPU":
                world.owner.mutable_gpu_data().set(np.full(SIZE, OLD, np.uint8))
        world.held[0] = world.real.empty(SIZE)
        world.held[0].set(np.full(SIZE, NEW, np.uint8))

    return prepare


def state_of_memory(world: World) -> object:
    """The head, the flags, and the bytes that are fresh."""
    memory = world.owner
    if memory is None or memory.closed:
        return "closed"
    seen = memory.head.name, memory.own_cpu_data, memory.own_gpu_data
    bytes_are = (
        [] if seen[0] == "UNINITIALIZED" else [set(memory.cpu_data().tolist()), set(memory.gpu_data().get().tolist())]
    )
    return *seen, bytes_are


def memory_works(world: World) -> None:
    """Both sides can be written, and each shows on the other."""
    memory = world.owner
    if memory is None or memory.closed:
        return
    memory.mutable_cpu_data()[:] = WRITTEN
    assert set(memory.gpu_data().get().tolist()) == {WRITTEN}
    memory.mutable_gpu_data().set(np.full(SIZE, WRITTEN + 1, np.uint8))
    assert set(memory.cpu_data().tolist()) == {WRITTEN + 1}


def dropped(world: World) -> None:
    """The last reference goes: the finaliser runs."""
    world.owner = None


FAULTS = (0, 1, 2, 3)
"""Which call of the device fails before the interrupt comes, so that it comes while a call is undone; 0: none."""


def memory_cases() -> Iterator[tuple[str, Case]]:
    """Every call in every configuration, and the end of a memory in each; also while a call is undone."""
    plain = space(caffe.CAFFE, settings=False)
    ways = access_to(rows_of(plain))
    for configuration, start in plain.configurations.items():
        prepare = memory_at(*(item.call.name for item in ways[start] if item.call))
        calls = [item.call.name for item, step in plain.steps[start].items() if item.call and not step.refusal]
        for name in (*calls, "close"):
            for fault in FAULTS:
                case = Case(prepare, partial(call, name=name), state_of_memory, memory_works, fault)
                yield f"memory {configuration} {name} {fault}", case
        yield f"memory {configuration} dropped 0", Case(prepare, dropped, state_of_memory)
    made = Case(lambda _: None, lambda world: setattr(world, "owner", SyncedMemory(SIZE, **world.where)), exists)
    yield "memory made 0", made


def exists(world: World) -> object:
    """Whether there is an object."""
    return world.owner is not None


# --- blobs


def new_blob(world: World) -> None:
    """A blob with data and diff on both sides, and another one."""
    world.owner, other = (Blob(SIZE // 4, dtype="float32", **world.where) for _ in range(2))
    world.held.append(other)
    for item, data in ((world.owner, 2), (other, 8)):
        item.mutable_cpu_data()[:] = data
        item.mutable_cpu_diff()[:] = data + 1
        item.gpu_data()
        item.gpu_diff()


def state_of_blob(world: World) -> object:
    """The shape, and the numbers."""
    blob = world.owner
    if blob is None or blob.closed:
        return "closed"
    parts = (blob.data_memory, blob.cpu_data), (blob.diff_memory, blob.cpu_diff)
    return blob.shape, [memory.head.name == "UNINITIALIZED" or set(read().tolist()) for memory, read in parts]


def blob_works(world: World) -> None:
    """Both sides of both parts can be written, and show on the other side."""
    blob = world.owner
    if blob is None or blob.closed:
        return
    blob.mutable_cpu_data()[:] = 4
    blob.mutable_cpu_diff()[:] = 1
    blob.update()
    assert set(blob.gpu_data().get().tolist()) == {3}
    assert set(blob.cpu_data().tolist()) == {3}


def sixes(world: World) -> Any:
    """An array of the device that is somebody else's."""
    array = world.real.empty(SIZE)
    array.set(np.full(SIZE // 4, 6, np.float32).view(np.uint8))
    return array


def of_owner(world: World, name: str) -> None:
    """A call of the object without arguments."""
    getattr(world.owner, name)()


PLAIN = [
    "cpu_data",
    "mutable_cpu_data",
    "gpu_data",
    "mutable_gpu_data",
    "cpu_diff",
    "mutable_cpu_diff",
    "gpu_diff",
    "mutable_gpu_diff",
    "gpu_shape",
    "asum_data",
    "asum_diff",
    "sumsq_data",
    "sumsq_diff",
    "to_proto",
]
"""Calls of a blob without arguments."""

BLOB_CALLS: dict[str, Callable[[World], object]] = {
    "reshape smaller": lambda world: world.owner.reshape(SIZE // 8),
    "reshape larger": lambda world: world.owner.reshape(SIZE),
    "reshape_like": lambda world: world.owner.reshape_like(world.held[0]),
    "shrink_to_fit": lambda world: world.owner.reshape(2).shrink_to_fit(),
    "share_data": lambda world: world.owner.share_data(world.held[0]),
    "share_diff": lambda world: world.owner.share_diff(world.held[0]),
    "copy_from": lambda world: world.owner.copy_from(world.held[0]),
    "set_cpu_data": lambda world: world.owner.set_cpu_data(np.full(SIZE // 4, 6, np.float32)),
    "set_cpu_diff": lambda world: world.owner.set_cpu_diff(np.full(SIZE // 4, 6, np.float32)),
    "data =": lambda world: setattr(world.owner, "data", 6),
    "set_gpu_data": lambda world: world.owner.set_gpu_data(sixes(world)),
    "set_gpu_diff": lambda world: world.owner.set_gpu_diff(sixes(world)),
    **{name: partial(of_owner, name=name) for name in PLAIN},
    "data_at": lambda world: world.owner.data_at(1),
    "diff_at": lambda world: world.owner.diff_at(1),
    "copy": lambda world: copy(world.owner),
    "deepcopy": lambda world: deepcopy(world.owner),
    "pickle": lambda world: pickle.dumps(world.owner),
    "dropped": dropped,
    "close": lambda world: world.owner.close(),
}
COMPUTING: dict[str, Callable[[World], object]] = {
    "update": lambda world: world.owner.update(),
    "scale_data": lambda world: world.owner.scale_data(2),
    "scale_diff": lambda world: world.owner.scale_diff(2),
}
"""Calls of a blob that compute in place: an interrupt may leave some numbers changed."""


def blob_cases() -> Iterator[tuple[str, Case]]:
    for fault in FAULTS:
        for name, act in BLOB_CALLS.items():
            yield f"blob {name} {fault}", Case(new_blob, act, state_of_blob, blob_works, fault)
        for name, act in COMPUTING.items():
            yield f"blob {name} {fault}", Case(new_blob, act, works=blob_works, fault=fault)
    array = partial(np.full, SIZE // 4, 6, np.float32)
    makers: dict[str, Callable[[World], Any]] = {
        "made": lambda world: Blob(SIZE // 4, **world.where),
        "from_array": lambda world: Blob.from_array(array(), **world.where),
        "from_array copied": lambda world: Blob.from_array(array(), copy=True, **world.where),
    }
    for name, make in makers.items():
        yield f"blob {name} 0", Case(lambda _: None, partial(make_owner, make=make), state_of_blob, blob_works)


def make_owner(world: World, make: Callable[[World], Any]) -> None:
    """Make the object that owns memory: it is complete, or nobody has it."""
    world.owner = make(world)


# --- buffers


def new_buffer(world: World) -> None:
    """A buffer on the device, and one on the host."""
    world.held += [Buffer(SIZE, world.host), world.real.stream()]
    written(world.held[0].ptr, OLD)
    world.owner = Buffer(SIZE, world.device)
    written(world.owner.ptr, OLD)


def external_buffer(world: World) -> None:
    """A buffer over memory that is somebody else's."""
    new_buffer(world)
    world.owner = Buffer.from_external(world.held[0].ptr, allocator=world.host)


def closed_buffer(world: World) -> None:
    """A buffer that was closed."""
    new_buffer(world)
    world.owner.close()


def copying_buffer(world: World) -> None:
    """A buffer with a copy in flight."""
    new_buffer(world)
    world.owner.copy_from(world.held[0], stream=world.held[1])


def state_of_buffer(world: World) -> object:
    """Whether it has memory, and whose."""
    buffer = world.owner
    return None if buffer is None else (buffer.ptr is None, buffer.is_external)


def buffer_works(world: World) -> None:
    """It can be copied from and into, unless it has no memory, and then it can get some."""
    buffer = world.owner
    if buffer is None:
        return
    if buffer.ptr is None:
        buffer.allocate()
    source = Buffer(SIZE, world.host)
    written(source.ptr, WRITTEN)
    buffer.copy_from(source)
    written(source.ptr, 0)
    source.copy_from(buffer)
    assert read(source.ptr) == {WRITTEN}
    source.close()
    buffer.close()
    assert buffer.ptr is None
    buffer.allocate()


BUFFERS = {"owned": new_buffer, "external": external_buffer, "closed": closed_buffer, "copying": copying_buffer}
BUFFER_CALLS: dict[str, Callable[[World], object]] = {
    "close": lambda world: world.owner.close(),
    "allocate": lambda world: world.owner.allocate(),
    "copy_from": lambda world: world.owner.copy_from(world.held[0]),
    "copy_from queued": lambda world: world.owner.copy_from(world.held[0], stream=world.held[1]),
    "dropped": dropped,
}


def buffer_cases() -> Iterator[tuple[str, Case]]:
    for kind, prepare in BUFFERS.items():
        for name, act in BUFFER_CALLS.items():
            if name.startswith("copy_from") and kind != "owned":
                continue
            for fault in FAULTS:
                case = Case(prepare, act, state_of_buffer, buffer_works, fault)
                yield f"buffer {kind} {name} {fault}", case
    make = partial(make_owner, make=lambda world: Buffer(SIZE, world.device))
    yield "buffer made 0", Case(lambda _: None, make, state_of_buffer, buffer_works)
    array = partial(np.zeros, SIZE, np.uint8)
    make = partial(make_owner, make=lambda world: Buffer.from_external(array(), allocator=world.host))
    yield "buffer from_external 0", Case(lambda _: None, make, state_of_buffer, buffer_works)


# --- allocators


def new_allocator(world: World, make: Callable[[World], Any]) -> None:
    """An allocator with two blocks that are lent, and some that were released."""
    world.owner = make(world)
    blocks = [world.owner.allocate(SIZE) for _ in range(4)]
    for ptr in blocks[2:]:
        world.owner.release(ptr)
    for ptr in blocks[:2]:
        written(ptr, OLD)
    world.held += blocks[:2]


def idle_allocator(world: World, make: Callable[[World], Any]) -> None:
    """An allocator to which all blocks were given back."""
    new_allocator(world, make)
    for ptr in world.held:
        world.owner.release(ptr)
    world.held.clear()


def state_of_allocator(world: World) -> object:
    """What nobody has released belongs to its owner still."""
    return [read(ptr) for ptr in world.held[1:]]


def allocator_works(world: World) -> None:
    """Blocks are lent to one owner each, and taken back; the one whose release was interrupted may be back already."""
    allocator = world.owner
    if allocator is None:
        return
    fresh = []
    with suppress(ClosedAllocatorError):  # it was interrupted while it was closed
        fresh = [allocator.allocate(SIZE) for _ in range(4)]
    for ptr in fresh:
        written(ptr, WRITTEN)
    assert all(read(ptr) == {OLD} for ptr in world.held[1:])
    for ptr in (*fresh, *world.held[1:]):
        allocator.release(ptr)
    with suppress(InvalidPointerError):
        allocator.release(world.held[0] if world.held else None)
    world.held.clear()


ALLOCATORS: dict[str, Callable[[World], Any]] = {
    "pool": lambda world: PoolAllocator(world.device),
    "guard": lambda world: GuardingAllocator(world.device),
    "tracking": lambda world: TrackingAllocator(world.device),
    "statistics": lambda world: StatisticsAllocator(world.device),
    "limit": lambda world: LimitingAllocator(world.device, 1 << 20),
    "thread-safe": lambda world: ThreadSafeAllocator(world.device),
    "failing": lambda world: FailingAllocator(world.device),
    "plain": lambda world: Adaptor(world.device),
}
ALLOCATOR_CALLS: dict[str, Callable[[World], object]] = {
    "allocate": lambda world: world.owner.allocate(SIZE),
    "allocate larger": lambda world: world.owner.allocate(4 * SIZE),
    "release": lambda world: world.owner.release(world.held[0]),
    "memcpy": lambda world: world.owner.memcpy(*world.held, SIZE, MemcpyKind.CUDA2CUDA, world.real.stream()),
    "memset_zero": lambda world: world.owner.memset_zero(world.held[0], SIZE, world.real.stream()),
}


def hold(world: World) -> None:
    """A block waits for an event."""
    world.owner.hold(world.held[0], world.real.record(world.real.stream()))


OWN_CALLS: dict[str, tuple[str, ...]] = {"pool": ("trim", "close", "dropped"), "guard": ("check", "clear", "dropped")}
"""Calls of those that own memory themselves: what they lose they tell."""


def allocator_cases() -> Iterator[tuple[str, Case, int]]:
    """For each case also how many blocks the caller has in hand, which nobody can tell of."""
    for kind, make in ALLOCATORS.items():
        for fault in FAULTS:
            for name, act in (ALLOCATOR_CALLS | ({"hold": hold} if kind == "pool" else {})).items():
                prepare = partial(new_allocator, make=make)
                yield f"{kind} {name} {fault}", Case(prepare, act, state_of_allocator, allocator_works, fault), 1
            for name in OWN_CALLS.get(kind, ()):
                prepare = partial(idle_allocator, make=make)
                act = dropped if name == "dropped" else partial(of_owner, name=name)
                yield f"{kind} {name} {fault}", Case(prepare, act, state_of_allocator, allocator_works, fault), 0


# --- what lends memory by address


def new_exporter(world: World) -> None:
    """Two blocks that are exported, one of them as an object."""
    world.owner = Exporter(world.host)
    world.held += [world.owner.export(SIZE), world.owner.allocate(SIZE)]
    written(world.owner.array_at(world.held[1]), OLD)


def state_of_exporter(world: World) -> object:
    """What is in the block that nobody has given back."""
    return read(world.owner.array_at(world.held[1]))


def exporter_works(world: World) -> None:
    """Blocks are exported once each, and taken back."""
    exporter, (_, kept) = world.owner, world.held
    address = exporter.allocate(SIZE)
    written(exporter.array_at(address), WRITTEN)
    assert read(exporter.array_at(kept)) == {OLD}
    exporter.deallocate(address)
    exporter.deallocate(kept)
    world.held.clear()


EXPORTER_CALLS: dict[str, Callable[[World], object]] = {
    "allocate": lambda world: world.owner.allocate(SIZE),
    "export": lambda world: world.owner.export(SIZE),
    "give_back": lambda world: world.held[0].give_back(),
    "dropped": lambda world: world.held.__setitem__(0, None),
}


def exporter_cases() -> Iterator[tuple[str, Case, int]]:
    """Whoever exports an address has it in hand; an exported block is an owner, which tells what it loses."""
    for name, act in EXPORTER_CALLS.items():
        in_hand = int(name in {"allocate", "deallocate"})
        yield f"exporter {name} 0", Case(new_exporter, act, state_of_exporter, exporter_works), in_hand


CASES: dict[str, tuple[Case, int]] = {
    **{name: (case, 0) for cases in (memory_cases, blob_cases, buffer_cases) for name, case in cases()},
    **{name: (case, in_hand) for cases in (allocator_cases, exporter_cases) for name, case, in_hand in cases()},
}
NOTHING_TAKEN = {
    "memory": {"wait"},
    "blob": {"canonical_axis_index", "count_axes", "legacy_shape", "offset", "shape_equals"},
    "buffer": set[str](),
    "pool": set(dir(Adaptor)) - {"allocate", "release"},
    "guard": set(dir(Adaptor)) - {"allocate", "release"},
}
"""Calls that take and give back no memory: they ask, or the upstream does the work."""

THROUGH_OTHERS = {"from_contents", "from_proto", "load", "save"}
"""Calls of blobs that are made of the calls above."""
KINDS = sorted({name.split()[0] for name in CASES})


@pytest.fixture
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a finaliser raises is printed, and not kept: a traceback would keep blocks alive."""
    monkeypatch.setattr(sys, "unraisablehook", print)


def check_all(
    kind: str,
    make_device: Callable[[], Any] = SimulatedDeviceAllocator,
    *,
    faults: bool = False,
    error: type[BaseException] | None = KeyboardInterrupt,
) -> None:
    """Check interrupts in all calls of a kind of object: one of so many, beginning elsewhere in each call.

    Without an error, they are fewer, and each call has another one.
    """
    every = DENSE if error else SPARSE
    came, wrong = 0, list[str]()
    for number, (name, (case, in_hand)) in enumerate(CASES.items()):
        if name.split()[0] != kind or bool(case.fault) > faults:
            continue
        outcomes = case.outcomes(make_device)
        raised = error or ERRORS[number % len(ERRORS)]
        for interrupted in case.interrupts(make_device, raised, range(1 + number % every, MOST, every)):
            came += 1
            try:
                interrupted.check(outcomes, in_hand)
            except Exception as fault:  # noqa: BLE001 -- all of them are shown together
                wrong.append(f"{name}, interrupt {interrupted.k}: {type(fault).__name__}: {fault}")
    assert not wrong, f"{len(wrong)} of {came}:\n" + "\n".join(wrong)
    assert came * every > 40


OWNERS = ["memory", "blob", "buffer", "pool"]
ERRORS = [KeyboardInterrupt, TimeoutError, MemoryError, RecursionError]
SPARSE, DENSE = 17, 7
"""All points take hours; the quick tests take one of so many, and the deep tests one of so many."""

SOME = pytest.mark.parametrize("error", [None, *(pytest.param(error, marks=pytest.mark.deep) for error in ERRORS)])


@SOME
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("_nothing_kept")
def test_an_interrupt_wherever_cpython_delivers_one(kind: str, error: type[BaseException] | None) -> None:
    check_all(kind, error=error)


@pytest.mark.deep
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("_nothing_kept")
def test_an_interrupt_also_while_a_call_is_undone(kind: str, error: type[BaseException]) -> None:
    check_all(kind, faults=True, error=error)


@SOME
@pytest.mark.parametrize("kind", OWNERS)
@pytest.mark.usefixtures("_nothing_kept")
def test_where_no_pool_is_below(kind: str, error: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release of the device itself has happened, or nothing of it: a block that is free is not used again."""
    monkeypatch.setitem(globals(), "World", Bare)
    check_all(kind, error=error)


@SOME
@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("kind", ["memory", "blob", "buffer"])
@pytest.mark.usefixtures("_nothing_kept")
def test_checked_objects(
    kind: str, error: type[BaseException] | None, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told of a stale write that nobody made."""
    environment: Any = vars(watch)["_by_environment"]  # it is read once in a process
    monkeypatch.setenv("SYNCEDMEM_CHECKED", "1")
    environment.cache_clear()
    if not pooled:
        monkeypatch.setitem(globals(), "World", Bare)
    try:
        check_all(kind, error=error)
    finally:
        environment.cache_clear()


@SOME
@pytest.mark.parametrize(
    "adaptor",
    [
        GuardingAllocator,
        TrackingAllocator,
        StatisticsAllocator,
        ThreadSafeAllocator,
        pytest.param(partial(LimitingAllocator, limit=1 << 20), id="LimitingAllocator"),
    ],
)
@pytest.mark.usefixtures("_nothing_kept")
def test_where_an_adaptor_is_below(
    adaptor: Callable[[Any], Any], error: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of the adaptor has happened, or nothing of it; its numbers are those of what is out."""

    class Adapted(Bare):
        def __init__(self, make_device: Callable[[], Any]) -> None:
            super().__init__(make_device)
            self.device = adaptor(self.real)

        def lent(self) -> int:
            if isinstance(self.device, GuardingAllocator):
                self.device.clear()
            elif isinstance(self.device, LimitingAllocator | TrackingAllocator):
                assert self.device.allocated_bytes == SIZE * self.real.live_blocks
            elif isinstance(self.device, StatisticsAllocator):
                counted = self.device.statistics
                assert counted.current_count == self.real.live_blocks
                assert counted.current_bytes == SIZE * self.real.live_blocks
            return super().lent()

    monkeypatch.setitem(globals(), "World", Adapted)
    check_all("buffer", error=error)
    check_all("memory", error=error)


@pytest.mark.deep
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("kind", OWNERS)
@pytest.mark.usefixtures("_nothing_kept")
def test_an_interrupt_over_opencl(kind: str, error: type[BaseException]) -> None:
    if not any(device.name.startswith("opencl") for device in devices()):
        pytest.skip("there is no opencl here")
    check_all(kind, type(named_device("opencl")), error=error)


@pytest.mark.parametrize("kind", [SyncedMemory, Blob, Buffer, PoolAllocator, GuardingAllocator])
def test_every_call_that_owns_memory_is_interrupted(kind: type) -> None:
    """A new public method has a case here, or a reason why it needs none."""
    named = {"SyncedMemory": "memory", "Blob": "blob", "Buffer": "buffer", "PoolAllocator": "pool"}
    first = named.get(kind.__name__, "guard")
    tried = {word for name in CASES if name.split()[0] == first for word in name.split()[1:]}
    methods = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
    assert methods - tried <= NOTHING_TAKEN[first] | THROUGH_OTHERS
