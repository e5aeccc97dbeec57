"""Wrong lifetimes: adopted buffers that are dropped too early or never, and wrong calls after release."""

from __future__ import annotations

import weakref
from typing import Any

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory


@seeded_bug("R40-kept-alive", "javacpp-presets#360: a temporary is collected")
class ForgetsAdoptedBuffer(HandmadeMemory):
    """set_cpu_data keeps only a weak reference to the buffer."""

    remembered: Any = None

    def set_cpu_data(self, data: Any) -> None:
        super().set_cpu_data(data)
        try:
            self.remembered = weakref.ref(data)
        except TypeError:
            return
        self.cpu_ptr = None

    def host_view(self) -> Any:
        if self.remembered is not None and self.cpu_ptr is None:
            self.cpu_ptr = self.host.adopt(self.remembered(), self.size)
        return super().host_view()


@seeded_bug("R40-kept-alive", "javacpp-presets#360, on the device")
class ForgetsAdoptedDeviceBuffer(HandmadeMemory):
    """set_gpu_data keeps only a weak reference to the buffer."""

    remembered: Any = None

    def set_gpu_data(self, data: Any) -> None:
        super().set_gpu_data(data)
        self.remembered = weakref.ref(data)

    def to_gpu(self) -> None:
        self.lose()
        super().to_gpu()

    def copy_down(self, pointer: Any) -> None:
        self.lose()
        super().copy_down(pointer)

    def lose(self) -> None:
        """Overwrite memory that has a new owner."""
        if self.remembered is not None and self.remembered() is None and self.size:
            self.device.inner.memset_zero(self.gpu_ptr, self.size)


@seeded_bug("R56-adopted-let-go", "H6: a destructor that leaves a pointer set")
class HoldsAdoptedBuffers(HandmadeMemory):
    """A released memory still keeps the last adopted buffers."""

    def let_go(self) -> None:
        """Keep the pointers."""


@seeded_bug("R56-adopted-let-go", "a list that keeps all buffers alive")
class HoldsEveryAdoptedBuffer(HandmadeMemory):
    """A released memory still keeps all device buffers that it adopted."""

    def set_up(self) -> None:
        self.kept: list[Any] = []

    def adopt_device(self, data: Any) -> Any:
        self.kept.append(data)
        return super().adopt_device(data)


@seeded_bug("R48-released-refuses", "cuda-python before Buffer.close was final")
class WorksAfterRelease(HandmadeMemory):
    """A released memory can be used again."""

    def enter(self) -> None:
        if self.closed:
            self.closed = False
            self.head, self.cpu_ptr, self.gpu_ptr = SyncedHead.UNINITIALIZED, None, None


@seeded_bug("R48-released-refuses", "CHECK(data) before the check for a released memory")
class NullIsNothingAfterRelease(HandmadeMemory):
    """After release set_gpu_data(NULL) is ignored."""

    def set_gpu_data(self, data: Any) -> None:
        if data is not None or not self.closed:
            super().set_gpu_data(data)


@seeded_bug("R49-release-twice", "pyopencl: MemoryObject.free failed: trying to double-unref")
class SecondReleaseFails(HandmadeMemory):
    """Releasing twice raises."""

    def close(self) -> None:
        if self.closed:
            self.refuse("released already")
        super().close()


@seeded_bug("R49-release-twice", "a counter of owners that goes below zero")
class ThirdReleaseFails(HandmadeMemory):
    """Releasing a third time raises."""

    releases = 0

    def close(self) -> None:
        self.releases += 1
        if self.releases > 2:
            self.refuse("released too often")
        super().close()


@seeded_bug("R55-dropped-freed", "syncedmem.cpp:26-37 without a destructor: the garbage collector knows no cudaFree")
class NoFinaliser(HandmadeMemory):
    """A dropped memory frees nothing."""

    def __del__(self) -> None:
        """Free nothing."""


@seeded_bug("R55-dropped-freed", "a destructor that frees one side")
class FinaliserForgetsDevice(HandmadeMemory):
    """A dropped memory frees only its host side."""

    def __del__(self) -> None:
        self.own_gpu_data = False
        super().__del__()


@seeded_bug("R42-in-flight-not-freed", "H3: a finaliser that does not wait")
class FinaliserFreesInFlight(HandmadeMemory):
    """A dropped memory does not wait for a push."""

    def __del__(self) -> None:
        self.flight = None
        super().__del__()
