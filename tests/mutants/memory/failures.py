"""Wrong handling of errors: the state after a step has failed or was interrupted."""

from __future__ import annotations

import sys
from typing import Any

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory


@seeded_bug("R33-failure-leaks-nothing", "except Exception does not catch an interrupt")
class InterruptLeaks(HandmadeMemory):
    """A call frees what it allocated after errors, but not after an interrupt."""

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        if isinstance(sys.exception(), Exception):
            super().undo(allocator, pointer, fresh)


@seeded_bug(
    "R27-release-frees-owned",
    "a memory that is half changed after a failed call",
    out_of_reach="an allocator call has to fail first, and then Caffe ends the process",
)
class LeaksAfterFailure(HandmadeMemory):
    """A release right after a failed call frees nothing."""

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


@seeded_bug(
    "R10-same-bytes",
    "the stale side of a failed copy counts as fresh",
    out_of_reach="an allocator call has to fail first, and then Caffe ends the process",
)
class TakesStaleForFresh(HandmadeMemory):
    """After a failed copy down, a read on the device copies the half-written host side up."""

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
class FreesWhatCannotBeRecorded(HandmadeMemory):
    """A queued push whose event cannot be recorded is undone without a wait for it."""

    def take_off(self, stream: Any) -> Any:
        return self.device.record(stream)


@seeded_bug("R33-failure-leaks-nothing", "syncedmem.cpp:102-105: freed before the new buffer was checked")
class FreesBeforeLooking(HandmadeMemory):
    """set_cpu_data frees its own host memory before it knows whether the buffer can be adopted."""

    def adopt_host(self, data: Any) -> Any:
        if self.own_cpu_data and data is not None:
            self.wait_for_push()
            super().adopt_host(data)
            self.free_cpu()
            self.own_cpu_data = False
        return super().adopt_host(data)


@seeded_bug("R41-in-flight-not-written", "a push that counts as finished before anybody waited")
class ForgetsThePushItCouldNotWaitFor(HandmadeMemory):
    """If the wait for a push fails, the push is forgotten."""

    def wait_for_push(self) -> None:
        flight, self.flight = self.flight, None
        if flight is not None:
            flight.synchronize()


@seeded_bug("R32-strong-guarantee", "the wait before a view can fail, and comes after the head is set")
class HeadBeforeView(HandmadeMemory):
    """mutable_cpu_data makes the device side stale before a wait for a push, which may fail."""

    def mutable_cpu_data(self) -> Any:
        self.enter()
        self.to_cpu()
        self.wrote_cpu()
        self.wait_for_push()
        return memoryview(self.cpu_ptr)


_FAILED_FIRST = "an allocator call has to fail first, and then Caffe ends the process"


@seeded_bug("R10-same-bytes", "a flag that is set before the work, as in many close()", out_of_reach=_FAILED_FIRST)
class ClosedByAFailedRelease(HandmadeMemory):
    """A release whose first free fails closes the memory: only another release is not refused."""

    def release(self) -> None:
        self.closed = True
        super().release()


@seeded_bug("R48-released-refuses", "a flag that is set after the work: the host side is gone, and is returned")
class OpenAfterAHalfRelease(HandmadeMemory):
    """A release that has freed one side and fails at the other leaves the memory open."""

    def release(self) -> None:
        try:
            super().release()
        except BaseException:
            self.closed = False
            raise
