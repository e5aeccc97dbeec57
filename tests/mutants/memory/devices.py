"""Wrong devices: a device that stays current, a device that is not checked, and wrong streams."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory

if TYPE_CHECKING:
    from collections.abc import Generator


class _Stays(HandmadeMemory):
    """A memory that can make its device current and leave it current."""

    def stay(self) -> None:
        """Make the device current."""
        entered = self.device.using()
        entered.__enter__()
        self.left.append(entered)  # kept for good: otherwise the garbage collector would exit it

    left: ClassVar[list[Any]] = []


@seeded_bug("R50-device-restored", "KuiperLLama: the current device is left changed")
class LeavesDeviceChanged(_Stays):
    """gpu_data makes the memory's device current and leaves it current."""

    def to_gpu(self) -> None:
        super().to_gpu()
        self.stay()


@seeded_bug("R50-device-restored", "KuiperLLama, in a push")
class PushLeavesDeviceChanged(_Stays):
    """async_gpu_push makes the memory's device current and leaves it current."""

    def pushed(self) -> None:
        super().pushed()
        self.stay()


@seeded_bug("R50-device-restored", "cudaSetDevice is not restored after an error")
class FailureLeavesDeviceChanged(_Stays):
    """A call that fails leaves the memory's device current."""

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        super().undo(allocator, pointer, fresh)
        self.stay()


@seeded_bug("R51-device-check", "Caffe release builds: the check is compiled out")
class IgnoresDeviceCheck(HandmadeMemory):
    """The device check is requested but not made."""

    def check_current(self) -> None:
        pass


class _ChecksSome(HandmadeMemory):
    """A memory that makes the device check in every call except one."""

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


@seeded_bug("R51-device-check", "a fast path without check_device() for calls that have nothing to do")
class IdleWriteIgnoresDeviceCheck(_ChecksSome):
    """mutable_gpu_data does not make the device check if the device side is fresh."""

    def mutable_gpu_data(self) -> Any:
        if self.head is not SyncedHead.HEAD_AT_GPU:
            return super().mutable_gpu_data()
        with self.without_check():
            return super().mutable_gpu_data()


class _CopiesAtOnce(HandmadeMemory):
    """A memory that copies at once if the stream is not one of the device."""

    def push(self, pointer: Any, stream: Any) -> None:
        try:
            self.device.check_stream(stream)
        except TypeError:
            self.copy_up(pointer)
        else:
            super().push(pointer, stream)


@seeded_bug("R52-bad-stream-refused", "the device of a stream is not checked")
class StreamOfAnotherDevice(_CopiesAtOnce):
    """async_gpu_push copies at once if it gets a stream of another device."""

    def check_stream(self, stream: Any) -> None:
        if type(stream) is not type(self.device.stream()):
            super().check_stream(stream)


@seeded_bug("R52-bad-stream-refused", "a stream that is checked only with the first allocation")
class AnyStreamLater(_CopiesAtOnce):
    """async_gpu_push does not check the stream if there is device memory."""

    def check_stream(self, stream: Any) -> None:
        if self.gpu_ptr is None:
            super().check_stream(stream)
