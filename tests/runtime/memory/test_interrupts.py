"""Interrupts of a memory: at every point of a call it is as before or as after, and nothing is lost or owned twice."""

from __future__ import annotations

import gc
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interruption import INTERRUPTS, acquired_elsewhere, interrupt_everywhere, interrupt_with_signals
from subjects import SIZE, filled

from syncedmem.model import ReleaseError, SyncedHead, SyncedMemoryError
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.devices.simulated.block import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

    from interruption import Report

    Require = Callable[..., None]

_AT_CPU = (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED)
_AT_GPU = (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED)


class World:
    """Memories on a host and a device that nobody else uses.

    Parameters
    ----------
    before : callable
        What is done to the first memory before the call.
    """

    def __init__(self, *before: Callable[[World], object], seed: int | None = None, deviceless: bool = False) -> None:
        self.device, self.host = SimulatedDeviceAllocator(seed=seed), CPUDeviceAllocator()
        on = None if deviceless else self.device
        self.memories = [
            SyncedMemory(SIZE, device=on, host=self.host, pinned=self.device.pinned_host()) for _ in range(2)
        ]
        self.buffers = [bytearray(SIZE), bytearray(SIZE)]
        self.array = self.device.empty(SIZE)
        self.stream = self.device.stream()
        for step in before:
            step(self)

    @property
    def memory(self) -> SyncedMemory:
        return self.memories[0]

    def seen(self) -> list[Any]:
        """What can be seen of each memory without moving a head: flags, and the bytes of each fresh side."""
        self.device.synchronize()
        return [_seen(memory) for memory in self.memories]

    @property
    def live_blocks(self) -> int:
        return self.host.live_blocks + self.device.pinned_host().live_blocks + self.device.live_blocks

    def check_blocks(self) -> None:
        """Nothing is lost, no lock is held, and there was no stray write."""
        owned = sum(facts.count("owned") for memory in self.memories if not memory.closed for facts in [repr(memory)])
        assert self.live_blocks == owned
        assert acquired_elsewhere(exclusive, *[memory._lock for memory in self.memories])  # pyright: ignore[reportPrivateUsage] -- they have to be free

    def use_and_close(self) -> None:
        """The next calls work, and everything is freed."""
        for memory in self.memories:
            if not memory.closed:
                memory.mutable_cpu_data()[:] = 9
                if memory.device is not None:
                    assert memory.gpu_data().get().tolist() == [9] * SIZE
                    memory.mutable_gpu_data().set(np.full(SIZE, 5, np.uint8))
                    assert memory.cpu_data().tolist() == [5] * SIZE
        for memory in self.memories:
            memory.close()
        self.device.check()
        assert self.live_blocks == 0


def _seen(memory: Any) -> Any:
    if memory.closed:
        return "closed"
    host = bytes(memory._cpu) if memory.head in _AT_CPU else b""
    device = bytes(memory._gpu.get()) if memory.head in _AT_GPU else b""
    return memory.head, memory.own_cpu_data, memory.cpu_malloc_use_cuda, memory.own_gpu_data, host, device


def fill(world: World) -> None:
    filled(world.memory)


def read_device(world: World) -> None:
    world.memory.gpu_data()


def write_device(world: World) -> None:
    world.memory.mutable_gpu_data().set(np.full(SIZE, 3, np.uint8))


def push(world: World) -> None:
    world.memory.async_gpu_push(stream=world.stream)


def adopt_host(world: World) -> None:
    world.memory.set_cpu_data(world.buffers[0])


def adopt_device(world: World) -> None:
    world.memory.set_gpu_data(world.array)


def close(world: World) -> None:
    world.memory.close()


def copy_fails(world: World) -> None:
    world.device.fail_at(1, "memcpy")


WAYS: dict[str, tuple[Callable[[World], object], ...]] = {
    "first host access": (lambda world: world.memory.cpu_data(),),
    "first device access": (lambda world: world.memory.mutable_gpu_data(),),
    "first copy up": (fill, read_device),
    "copy up": (fill, read_device, fill, read_device),
    "first copy down": (write_device, lambda world: world.memory.cpu_data()),
    "host write": (fill, read_device, lambda world: world.memory.mutable_cpu_data()),
    "device write": (fill, read_device, lambda world: world.memory.mutable_gpu_data()),
    "host adoption": (fill, adopt_host),
    "host adoption over an adoption": (adopt_host, lambda world: world.memory.set_cpu_data(world.buffers[1])),
    "device adoption": (fill, read_device, adopt_device),
    "adoption of another memory's side": (
        lambda world: [filled(memory) for memory in world.memories],
        lambda world: world.memory.set_cpu_data(world.memories[1].mutable_cpu_data()),
    ),
    "push": (fill, push),
    "push to a device side": (fill, read_device, fill, push),
    "host write behind a push": (fill, push, lambda world: world.memory.mutable_cpu_data()),
    "device read behind a push": (fill, push, read_device),
    "host adoption behind a push": (fill, push, adopt_host),
    "close": (fill, read_device, close),
    "close behind a push": (fill, push, close),
    "a copy up that fails": (fill, copy_fails, read_device),
    "a push that fails": (fill, copy_fails, push),
}

OFTEN = (KeyboardInterrupt, MemoryError)
"""With these every way is tried; with the others, which are dealt with alike, some."""

CASES = [(way, error) for way in WAYS for error in (INTERRUPTS if way in ("push", "host adoption", "close") else OFTEN)]


def interrupted(error: type[BaseException], *ways: Callable[[World], object], **options: Any) -> Report:
    """Interrupt the last of some calls at every point, and check everything afterwards."""
    *before, act = ways
    untouched, done = World(*before, **options), World(*before, **options)
    with suppress(SyncedMemoryError):  # which some calls are made to raise
        act(done)
    possible = untouched.seen(), done.seen()

    def check(world: World, raised: BaseException | None) -> None:
        world.device.fail_at(0)
        if isinstance(raised, ReleaseError) and world.memory.closed:  # one side was freed and not the other
            world.memory.close()
        assert world.seen() in possible
        world.check_blocks()
        world.use_and_close()

    report = interrupt_everywhere(lambda: World(*before, **options), act, check, error)
    if not issubclass(error, Exception):
        assert not report.silent  # it was raised, or shown
    return report


@pytest.mark.deep(quick=4)
@pytest.mark.parametrize(("way", "error"), CASES, ids=str)
def test_an_interrupt_anywhere_leaves_a_memory_as_before_or_as_after(
    way: str, error: type[BaseException], require_unbroken: Require
) -> None:
    report = interrupted(error, *WAYS[way])

    require_unbroken(report, at_least=20)


@pytest.mark.parametrize("options", [{"seed": 3}, {"deviceless": True}], ids=str)
def test_so_it_is_with_a_scheduler_and_without_a_device(options: Any, require_unbroken: Require) -> None:
    before = [fill] if options.get("deviceless") else [fill, read_device, fill, push]

    require_unbroken(interrupted(KeyboardInterrupt, *before, adopt_host, **options), at_least=20)


def test_two_memories_never_own_one_block(require_unbroken: Require) -> None:
    """One adopts a buffer and frees its own block, which the other memory may then get."""

    def check(world: World, _raised: BaseException | None) -> None:
        world.memories[1].cpu_data()
        first, second = [memory.mutable_cpu_data() for memory in world.memories]
        assert not np.shares_memory(first, second)
        world.check_blocks()
        world.use_and_close()

    fresh = lambda: World(fill, deviceless=True)  # noqa: E731 -- as short as it is
    require_unbroken(interrupt_everywhere(fresh, adopt_host, check), at_least=20)


def forget(world: World) -> None:
    world.memories.clear()


def in_a_cycle(world: World) -> None:
    world.memories.append(world.memories)  # type: ignore[arg-type] # the cycle


def collect(world: World) -> None:
    world.memories = []
    gc.collect()


def out_of_scope(world: World) -> None:
    def scope() -> None:
        memory = filled(SyncedMemory(SIZE, device=world.device, host=world.host, pinned=world.device.pinned_host()))
        memory.gpu_data()

    scope()


ENDS: dict[str, tuple[Callable[[World], object], ...]] = {
    "the last reference": (fill, read_device, forget),
    "behind a push": (fill, push, forget),
    "a cycle": (fill, read_device, in_a_cycle, collect),
    "a scope": (forget, out_of_scope),
    "a release that fails": (fill, read_device, lambda world: world.device.fail_at(1, "release"), forget),
}


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize("error", INTERRUPTS)
@pytest.mark.parametrize("end", ENDS)
def test_a_finaliser_finishes(end: str, error: type[BaseException], require_unbroken: Require) -> None:
    """Everything is freed; a Ctrl-C is raised after the finaliser, or shown like an error of a finaliser."""
    *before, act = ENDS[end]
    leaks = end == "a release that fails"

    def check(world: World, _raised: BaseException | None) -> None:
        world.memories = []
        gc.collect()  # if the interrupt came before the collection
        world.device.fail_at(0)
        assert world.device.live_blocks <= leaks
        assert world.live_blocks == world.device.live_blocks
        assert acquired_elsewhere(exclusive)
        world.device.check()

    gc.collect()
    gc.freeze()  # what was there before need not be looked at each time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if leaks else "error", ResourceWarning)
            report = interrupt_everywhere(lambda: World(*before), act, check, error)
    finally:
        gc.unfreeze()

    require_unbroken(report, at_least=20)
    if not issubclass(error, Exception):
        assert not report.silent


@pytest.mark.deep
def test_real_signals_leave_a_memory_that_can_be_used(require_unbroken: Require) -> None:
    world = World()

    def act() -> None:
        for _ in range(100):
            memory = world.memory
            filled(memory)
            memory.gpu_data()
            memory.set_cpu_data(world.buffers[0])
            memory.async_gpu_push(stream=world.stream)
            memory.close()
            world.memories[0] = SyncedMemory(
                SIZE, device=world.device, host=world.host, pinned=world.device.pinned_host()
            )

    def check(_raised: BaseException | None) -> None:
        world.check_blocks()
        world.use_and_close()
        world.memories = [
            SyncedMemory(SIZE, device=world.device, host=world.host, pinned=world.device.pinned_host())
            for _ in range(2)
        ]

    require_unbroken(interrupt_with_signals(act, check, times=300, microseconds=3_000), at_least=200)


def test_a_host_adoption_that_is_interrupted_after_its_free_has_taken_effect(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is freed cannot be restored, so the interrupt waits until the rest is done."""
    filled(memory)
    buffer, release = bytearray(SIZE), device.pinned_host().release

    def release_and_interrupt(ptr: Any) -> None:
        release(ptr)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(device.pinned_host(), "release", release_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            memory.set_cpu_data(buffer)

    assert (memory.own_cpu_data, device.pinned_host().live_blocks) == (False, 0)
    memory.mutable_cpu_data()[:] = 3
    assert buffer == bytes([3]) * SIZE
