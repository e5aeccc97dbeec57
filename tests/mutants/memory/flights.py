"""Wrong pushes: synchronous or forbidden pushes, and copies in flight for which nobody waits."""

from __future__ import annotations

from typing import Any

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory


@seeded_bug("R21-push", "syncedmem.cpp:165 misread: 'stream synchronisation'")
class SynchronousPush(HandmadeMemory):
    """async_gpu_push copies at once and queues nothing."""

    def push(self, pointer: Any, stream: Any) -> None:
        del stream
        self.copy_up(pointer)


@seeded_bug("R21-push", "cudaMemcpyAsync, and cudaStreamSynchronize directly after it")
class WaitsForItsPush(HandmadeMemory):
    """async_gpu_push queues its copy and waits for it."""

    def push(self, pointer: Any, stream: Any) -> None:
        super().push(pointer, stream)
        self.wait_for_push()


@seeded_bug("R21-push", "syncedmem.cpp:166 left out")
class PushKeepsHead(HandmadeMemory):
    """async_gpu_push keeps HEAD_AT_CPU, so the next read copies again."""

    def pushed(self) -> None:
        pass


@seeded_bug("R21-push", "a hidden counter")
class FourthPushSkipped(HandmadeMemory):
    """The fourth push queues nothing."""

    pushes = 0

    def push(self, pointer: Any, stream: Any) -> None:
        self.pushes += 1
        if self.pushes != 4:
            super().push(pointer, stream)


@seeded_bug("R29-allocated-once", "a missing test for NULL, syncedmem.cpp:159")
class PushAllocatesAgain(HandmadeMemory):
    """async_gpu_push allocates although there is device memory."""

    def push(self, pointer: Any, stream: Any) -> None:
        if self.own_gpu_data and self.size:
            self.device.release(self.device.allocate(self.size))
        super().push(pointer, stream)


@seeded_bug("R22-push-refused", "CHECK compiled out; syncedmem.cpp:158")
class PushAlwaysAllowed(HandmadeMemory):
    """async_gpu_push does nothing when it should refuse."""

    def async_gpu_push(self, *, stream: Any) -> None:
        if self.closed or self.device is None or self.head is SyncedHead.HEAD_AT_CPU:
            super().async_gpu_push(stream=stream)


@seeded_bug("R22-push-refused", "a push that brings the host side up to date first")
class PushFromAnywhere(HandmadeMemory):
    """async_gpu_push first moves any head to HEAD_AT_CPU."""

    def check_pushable(self) -> None:
        if self.head is SyncedHead.UNINITIALIZED:
            self.to_cpu()
        self.head = SyncedHead.HEAD_AT_CPU if self.cpu_ptr is not None else self.head
        super().check_pushable()


@seeded_bug("R41-in-flight-not-written", "H3: mutable_cpu_data overtakes the copy")
class WritesInFlight(HandmadeMemory):
    """mutable_cpu_data does not wait for a push."""

    def mutable_cpu_data(self) -> Any:
        flight, self.flight = self.flight, None
        view = super().mutable_cpu_data()
        self.flight = flight
        return view


@seeded_bug("R41-in-flight-not-written", "H3: a wait only for its own memory")
class WritesExternalInFlight(HandmadeMemory):
    """mutable_cpu_data does not wait for a push that reads a buffer of the caller."""

    def mutable_cpu_data(self) -> Any:
        flight = self.flight
        if not self.own_cpu_data:
            self.flight = None
        view = super().mutable_cpu_data()
        self.flight = flight
        return view


@seeded_bug("R41-in-flight-not-written", "H3: the same bytes through another array")
class WritesSliceInFlight(HandmadeMemory):
    """A push reads through a slice, and mutable_cpu_data does not wait for it."""

    def push(self, pointer: Any, stream: Any) -> None:
        whole = self.cpu_ptr
        self.cpu_ptr = whole[:] if self.size else whole
        super().push(pointer, stream)
        self.cpu_ptr = whole

    def mutable_cpu_data(self) -> Any:
        flight, self.flight = self.flight, None
        view = super().mutable_cpu_data()
        self.flight = flight
        return view


@seeded_bug("R42-in-flight-not-freed", "H3: a caller writes to a buffer after its release")
class LetsGoInFlight(HandmadeMemory):
    """set_cpu_data drops a buffer of the caller while a push still reads it."""

    def set_cpu_data(self, data: Any) -> None:
        flight = self.flight
        if not self.own_cpu_data:
            self.flight = None
        super().set_cpu_data(data)
        self.flight = flight


@seeded_bug("R42-in-flight-not-freed", "H3: freed by another array over the same bytes")
class FreesSliceInFlight(HandmadeMemory):
    """A push reads through a slice, and release does not wait for it."""

    def push(self, pointer: Any, stream: Any) -> None:
        whole = self.cpu_ptr
        self.cpu_ptr = whole[:] if self.size else whole
        super().push(pointer, stream)
        self.cpu_ptr = whole

    def close(self) -> None:
        self.flight = None
        super().close()


@seeded_bug("R42-in-flight-not-freed", "H3: the destructor frees memory in flight")
class FreesInFlight(HandmadeMemory):
    """Release does not wait for a push."""

    def close(self) -> None:
        self.flight = None
        super().close()


@seeded_bug("R42-in-flight-not-freed", "H3: set_cpu_data frees memory in flight")
class AdoptsInFlight(HandmadeMemory):
    """set_cpu_data does not wait for a push."""

    def set_cpu_data(self, data: Any) -> None:
        flight, self.flight = self.flight, None
        super().set_cpu_data(data)
        self.flight = flight


@seeded_bug("R43-in-flight-read", "H3: gpu_data returns a pointer to an unfinished copy")
class ReadsInFlight(HandmadeMemory):
    """gpu_data is not ordered after a push."""

    def follow(self) -> None:
        pass


@seeded_bug("R58-push-on-its-stream", "a port that passes NULL, whatever stream it is given")
class PushesOnItsOwn(HandmadeMemory):
    """A push is queued on a stream of the memory, not on the one that it was given."""

    own: Any = None

    def push(self, pointer: Any, stream: Any) -> None:
        del stream
        self.own = self.own or self.device.stream()
        super().push(pointer, self.own)


@seeded_bug("R57-push-in-order", "a queue of its own on OpenCL: 22 of 24 sums were wrong")
class OvertakesWork(HandmadeMemory):
    """A push does not wait for work that the device's current stream still has."""

    def push(self, pointer: Any, stream: Any) -> None:
        with self.device.on(stream):
            super().push(pointer, stream)


@seeded_bug("R52-bad-stream-refused", "NULL as the default stream")
class AnyStream(HandmadeMemory):
    """async_gpu_push without a stream copies at once."""

    def check_stream(self, stream: Any) -> None:
        if stream is not None:
            super().check_stream(stream)
