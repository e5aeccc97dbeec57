"""Wrong devices: one left current, one that is not checked, and streams that belong to none or to another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from syncedmem.model import SyncedHead

from ...memory.reference import ReferenceMemory
from ..registry import seeded_bug

if TYPE_CHECKING:
    from collections.abc import Generator


class _Stays(ReferenceMemory):
    """Can make its device current and leave it so."""

    def stay(self) -> None:
        """Make the device current."""
        entered = self.device.using()
        entered.__enter__()
        self.left.append(entered)  # for good: a collected context manager would be left after all

    left: ClassVar[list[Any]] = []


@seeded_bug("R50-device-restored", "KuiperLLama: the current device is left changed")
class LeavesDeviceChanged(_Stays):
    """gpu_data makes the memory's device current and leaves it so."""

    def to_gpu(self) -> None:
        super().to_gpu()
        self.stay()


@seeded_bug("R50-device-restored", "KuiperLLama, on the way of a push")
class PushLeavesDeviceChanged(_Stays):
    """async_gpu_push makes the memory's device current and leaves it so."""

    def pushed(self) -> None:
        super().pushed()
        self.stay()


@seeded_bug("R50-device-restored", "cudaSetDevice back, skipped by an error")
class FailureLeavesDeviceChanged(_Stays):
    """A call that fails leaves the memory's device current."""

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        super().undo(allocator, pointer, fresh)
        self.stay()


@seeded_bug("R51-device-check", "Caffe release builds: the check is compiled out")
class IgnoresDeviceCheck(ReferenceMemory):
    """The device check is asked for and not made."""

    def check_current(self) -> None:
        pass


class _ChecksSome(ReferenceMemory):
    """Makes the device check but in one call."""

    unchecked = False

    def check_current(self) -> None:
        if not self.unchecked:
            super().check_current()

    @contextmanager
    def without_check(self) -> Generator[None]:
        self.unchecked = True
        yield
        self.unchecked = False


@seeded_bug("R51-device-check", "check_device() forgotten in one of eight calls")
class PushIgnoresDeviceCheck(_ChecksSome):
    """async_gpu_push does not make the device check."""

    def async_gpu_push(self, *, stream: Any) -> None:
        with self.without_check():
            super().async_gpu_push(stream=stream)


@seeded_bug("R51-device-check", "check_device() forgotten in one of eight calls")
class DeviceAdoptionIgnoresDeviceCheck(_ChecksSome):
    """set_gpu_data does not make the device check."""

    def set_gpu_data(self, data: Any) -> None:
        with self.without_check():
            super().set_gpu_data(data)


@seeded_bug("R51-device-check", "a fast way past check_device() where there is nothing to do")
class IdleWriteIgnoresDeviceCheck(_ChecksSome):
    """mutable_gpu_data does not make the device check when the device side is fresh."""

    def mutable_gpu_data(self) -> Any:
        if self.head is not SyncedHead.HEAD_AT_GPU:
            return super().mutable_gpu_data()
        with self.without_check():
            return super().mutable_gpu_data()


class _CopiesAtOnce(ReferenceMemory):
    """Pushes synchronously on what is no stream of the device."""

    def push(self, pointer: Any, stream: Any) -> None:
        try:
            self.device.check_stream(stream)
        except TypeError:
            self.copy_up(pointer)
        else:
            super().push(pointer, stream)


@seeded_bug("R52-bad-stream-refused", "a stream is a stream: the device it belongs to is not asked")
class StreamOfAnotherDevice(_CopiesAtOnce):
    """async_gpu_push copies at once when it gets another device's stream."""

    def check_stream(self, stream: Any) -> None:
        if type(stream) is not type(self.device.stream()):
            super().check_stream(stream)


@seeded_bug("R52-bad-stream-refused", "a stream that is looked at with the first allocation only")
class AnyStreamLater(_CopiesAtOnce):
    """async_gpu_push does not look at the stream once there is device memory."""

    def check_stream(self, stream: Any) -> None:
        if self.gpu_ptr is None:
            super().check_stream(stream)
