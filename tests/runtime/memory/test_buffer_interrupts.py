"""Interrupts of a buffer: at every point of a call it is as before or as after, and takes the next call."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from interruption import INTERRUPTS, acquired_elsewhere, interrupt_everywhere, interrupt_with_signals
from subjects import SIZE, failing

from syncedmem.runtime import Buffer, CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.runtime.devices.simulated.block import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

    Require = Callable[..., None]


class Desk:
    """Buffers on allocators that nobody else uses: one on the host, two on a device, one on another device."""

    def __init__(self, *before: Callable[[Desk], object]) -> None:
        self.host, self.device, self.far = CPUDeviceAllocator(), SimulatedDeviceAllocator(), SimulatedDeviceAllocator(1)
        self.on_host, self.here, self.there = [Buffer(SIZE, it) for it in (self.host, self.device, self.device)]
        self.away = Buffer(SIZE, self.far)
        self.stream = self.device.stream()
        self.made: list[Buffer] = []
        for value, buffer in enumerate(self.buffers):
            buffer.copy_from(Buffer(SIZE, None, np.full(SIZE, value, np.uint8), use_external=True))
        for step in before:
            step(self)

    @property
    def buffers(self) -> list[Buffer]:
        return [self.on_host, self.here, self.there, self.away]

    def seen(self) -> list[Any]:
        """What can be seen of each buffer, after all queued work."""
        self.device.synchronize()
        return [_seen(buffer) for buffer in self.buffers]

    @property
    def live_blocks(self) -> int:
        return sum(allocator.live_blocks for allocator in (self.host, self.device, self.far))


def _seen(buffer: Buffer) -> Any:
    ptr: Any = buffer.ptr
    return buffer.is_external, None if ptr is None else bytes(ptr.get() if hasattr(ptr, "get") else ptr)


def queue(desk: Desk) -> None:
    desk.here.copy_from(desk.on_host, stream=desk.stream)


def close_here(desk: Desk) -> None:
    desk.here.close()


def adopt(desk: Desk) -> None:
    close_here(desk)
    desk.here = Buffer(SIZE, desk.device, desk.device.empty(SIZE), use_external=True)


def managed(desk: Desk) -> None:
    with desk.here:
        desk.here.copy_from(desk.on_host)


WAYS: dict[str, tuple[Callable[[Desk], object], ...]] = {
    "allocate": (close_here, lambda desk: desk.here.allocate()),
    "allocate anew": (lambda desk: desk.here.allocate(),),
    "allocate behind a copy": (queue, lambda desk: desk.here.allocate()),
    "allocate over external memory": (adopt, lambda desk: desk.here.allocate()),
    "copy to the device": (lambda desk: desk.here.copy_from(desk.on_host),),
    "copy to the host": (lambda desk: desk.on_host.copy_from(desk.here),),
    "copy on the device": (lambda desk: desk.here.copy_from(desk.there),),
    "copy across": (lambda desk: desk.here.copy_from(desk.away),),
    "queue a copy": (queue,),
    "queue a copy behind a copy": (queue, lambda desk: desk.there.copy_from(desk.here, stream=desk.stream)),
    "copy onto itself": (lambda desk: desk.here.copy_from(desk.here),),
    "close": (close_here,),
    "close behind a copy": (queue, close_here),
    "close external memory": (adopt, close_here),
    "a with block": (managed,),
}
ANEW = {way for way in WAYS if way.startswith("allocate")}
CASES = [
    (way, error)
    for way in WAYS
    for error in (INTERRUPTS if way in ("close behind a copy", "allocate anew") else INTERRUPTS[::2])
]


@pytest.mark.deep(quick=5)
@pytest.mark.parametrize(("way", "error"), CASES, ids=str)
def test_an_interrupt_anywhere_leaves_a_buffer_as_before_or_as_after(
    way: str, error: type[BaseException], require_unbroken: Require
) -> None:
    *before, act = WAYS[way]
    steps, done = [Desk(*before)], Desk(*before)
    act(done)
    steps.append(done)
    if way == "a with block":  # which is two calls
        steps.append(Desk(*before, lambda desk: desk.here.copy_from(desk.on_host)))
    possible = [desk.seen() for desk in steps]

    def check(desk: Desk, _raised: BaseException | None) -> None:
        seen = desk.seen()
        if way in ANEW and seen[1][1] is not None:  # new memory holds anything
            seen[1] = (seen[1][0], done.seen()[1][1])
            assert seen == possible[1] or seen[1][0]
        else:
            assert seen in possible
        owned = sum(buffer.ptr is not None and not buffer.is_external for buffer in desk.buffers)
        assert desk.live_blocks == owned
        assert acquired_elsewhere(exclusive, *[buffer._lock for buffer in desk.buffers])  # pyright: ignore[reportPrivateUsage] -- they have to be free
        desk.here.allocate()
        desk.here.copy_from(desk.there)
        here, there = cast("Any", desk.here.ptr), cast("Any", desk.there.ptr)
        assert here.get().tolist() == there.get().tolist()
        for buffer in desk.buffers:
            buffer.close()
        for allocator in (desk.device, desk.far):
            allocator.check()
        assert desk.live_blocks == 0

    report = interrupt_everywhere(lambda: Desk(*before), act, check, error)

    require_unbroken(report, at_least=20)
    if not issubclass(error, Exception):
        assert not report.silent


@pytest.mark.parametrize("error", INTERRUPTS)
def test_an_interrupt_while_a_buffer_is_made_or_goes_loses_nothing(
    error: type[BaseException], require_unbroken: Require
) -> None:
    def act(desk: Desk) -> None:
        desk.made.append(Buffer(SIZE, desk.device))
        desk.made.clear()

    def check(desk: Desk, _raised: BaseException | None) -> None:
        desk.made.clear()
        assert desk.live_blocks == 4
        assert acquired_elsewhere(exclusive)

    require_unbroken(interrupt_everywhere(Desk, act, check, error), at_least=20)


def test_the_lock_is_free_while_the_interrupt_is_kept() -> None:
    """Nothing depends on the collector, or on when a traceback is freed."""
    desk, kept = Desk(), list[BaseException]()

    desk.device.memcpy = failing(KeyboardInterrupt)  # type: ignore[method-assign] # an interrupt at a known place
    try:
        desk.here.copy_from(desk.on_host)
    except KeyboardInterrupt as error:
        kept.append(error)
    del desk.device.memcpy

    assert acquired_elsewhere(exclusive, *[buffer._lock for buffer in desk.buffers])  # pyright: ignore[reportPrivateUsage] -- they have to be free
    desk.here.copy_from(desk.on_host)
    assert kept[0].__traceback__ is not None


def test_real_signals_leave_buffers_that_can_be_used(require_unbroken: Require) -> None:
    desk = Desk()

    def act() -> None:
        for _ in range(100):
            desk.here.allocate()
            desk.here.copy_from(desk.on_host, stream=desk.stream)
            desk.there.copy_from(desk.here)
            desk.made.append(Buffer(SIZE, desk.device))
            desk.made.clear()
            desk.here.close()

    def check(_raised: BaseException | None) -> None:
        desk.made.clear()
        gc.collect(0)
        assert desk.live_blocks == 3 + (desk.here.ptr is not None)
        assert acquired_elsewhere(exclusive, *[buffer._lock for buffer in desk.buffers])  # pyright: ignore[reportPrivateUsage] -- they have to be free

    require_unbroken(interrupt_with_signals(act, check, times=300, microseconds=3_000), at_least=200)
