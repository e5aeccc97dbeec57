"""Wrong ways out: what a call leaves behind when a step of it fails or is interrupted."""

from __future__ import annotations

import sys
from typing import Any

from syncedmem.model import SyncedHead

from ...memory.reference import ReferenceMemory
from ..registry import seeded_bug


@seeded_bug("R33-failure-leaks-nothing", "except Exception: an interrupt is none")
class InterruptLeaks(ReferenceMemory):
    """What a call allocated is given back after errors, and not after an interrupt."""

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        if isinstance(sys.exception(), Exception):
            super().undo(allocator, pointer, fresh)


@seeded_bug("R27-release-frees-owned", "a memory that a failed call leaves in two minds")
class LeaksAfterFailure(ReferenceMemory):
    """A release that comes right after a failed call frees nothing."""

    failed = False

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        super().undo(allocator, pointer, fresh)
        self.failed = True

    def enter(self) -> None:
        super().enter()
        self.failed = False

    def release(self) -> None:
        if self.failed:
            self.own_cpu_data = self.own_gpu_data = False
        super().release()


@seeded_bug("R10-same-bytes", "the stale side of a failed copy taken for the fresh one")
class TakesStaleForFresh(ReferenceMemory):
    """After a failed copy down, asking for the device side fills it from the host side that was half written."""

    doubtful: Any = None

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        if self.head is SyncedHead.HEAD_AT_GPU and self.size:
            self.doubtful = pointer.copy()
        super().undo(allocator, pointer, fresh)

    def to_gpu(self) -> None:
        super().to_gpu()
        if self.doubtful is not None:
            self.gpu_ptr.set(self.doubtful)
        self.doubtful = None


@seeded_bug("R42-in-flight-not-freed", "cudaEventRecord fails after cudaMemcpyAsync")
class FreesWhatCannotBeRecorded(ReferenceMemory):
    """A push that is queued and cannot be recorded is undone without waiting for it."""

    def take_off(self, stream: Any) -> Any:
        return self.device.record(stream)


@seeded_bug("R33-failure-leaks-nothing", "syncedmem.cpp:102-105: freed before the new buffer was looked at")
class FreesBeforeLooking(ReferenceMemory):
    """set_cpu_data frees its own host memory, and then finds that the buffer cannot be adopted."""

    def adopt_host(self, data: Any) -> Any:
        if self.own_cpu_data and data is not None:
            self.land()
            super().adopt_host(data)
            self.free_cpu()
            self.own_cpu_data = False
        return super().adopt_host(data)


@seeded_bug("R41-in-flight-not-written", "a push that counts as landed before anybody waited")
class ForgetsThePushItCouldNotWaitFor(ReferenceMemory):
    """When waiting for a push fails, the push is forgotten."""

    def land(self) -> None:
        flight, self.flight = self.flight, None
        if flight is not None:
            flight.synchronize()


@seeded_bug("R32-strong-guarantee", "a view is the last thing that can fail, and often the only thing after the head")
class HeadBeforeView(ReferenceMemory):
    """mutable_cpu_data makes the device stale before it finds that it must wait for a push, and cannot."""

    def mutable_cpu_data(self) -> Any:
        self.enter()
        self.to_cpu()
        self.wrote_cpu()
        self.land()
        return memoryview(self.cpu_ptr)
