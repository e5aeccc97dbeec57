"""Wrong heads, and copies and fills that are missing, needless or wrong."""

from __future__ import annotations

from typing import Any, ClassVar

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory


@seeded_bug("R01-lazy", "Kokkos DualView allocates both sides at once")
class EagerAllocation(HandmadeMemory):
    """Host memory is allocated when the memory is made."""

    def set_up(self) -> None:
        if self.size:
            self.got_cpu(*self.malloc_cpu())


@seeded_bug("R02-uninitialized", "Caffe 7149de51c, the first version")
class InitiallySynced(HandmadeMemory):
    """A new memory reports SYNCED, so the first access does nothing."""

    def set_up(self) -> None:
        self.head = SyncedHead.SYNCED


@seeded_bug("R03-allocate-when-needed", "HOOMD, AMReX: both sides at first use")
class BothSidesAtOnce(HandmadeMemory):
    """The first access to the host allocates the device side too."""

    def zero_cpu(self, pointer: Any, pinned: bool) -> None:
        super().zero_cpu(pointer, pinned)
        if self.device is not None and self.size:
            self.gpu_ptr, self.own_gpu_data = self.malloc_gpu(), True


@seeded_bug("R04-exact-size", "PR #3138 passes a count of elements instead of bytes")
class RoundedSize(HandmadeMemory):
    """Allocations are rounded up to eight bytes."""

    def bytes(self) -> int:
        return -(-self.size // 8) * 8


@seeded_bug("R04-exact-size", "PR #3138, the opposite mistake")
class HalfCopied(HandmadeMemory):
    """Only half of the bytes are copied up."""

    def copy_up(self, pointer: Any) -> None:
        self.device.memcpy(self.cpu_ptr, pointer, self.size // 2, 1)


@seeded_bug("R05-zeroed-first", "syncedmem.cpp:44; mini-caffe leaves it out")
class HostNotZeroed(HandmadeMemory):
    """Host memory is not zeroed at the first access."""

    def zero_cpu(self, pointer: Any, pinned: bool) -> None:
        del pointer, pinned


@seeded_bug("R05-zeroed-first", "PETSc: a device array is not zeroed")
class DeviceNotZeroed(HandmadeMemory):
    """Device memory is not zeroed at the first access."""

    def zero_gpu(self, pointer: Any) -> None:
        del pointer


@seeded_bug("R06-zero-only-first", "a common port: calloc everywhere")
class ZeroBeforeCopyDown(HandmadeMemory):
    """Host memory is zeroed although a copy overwrites it at once."""

    def copy_down(self, pointer: Any) -> None:
        if self.cpu_ptr is None:
            super().zero_cpu(pointer, self.pinned_now())
        super().copy_down(pointer)


@seeded_bug("R06-zero-only-first", "OpenCL Caffe initialises in every allocation")
class ZeroBeforePush(HandmadeMemory):
    """Device memory is zeroed before a push fills it."""

    def push(self, pointer: Any, stream: Any) -> None:
        if self.gpu_ptr is None:
            self.zero_gpu(pointer)
        super().push(pointer, stream)


@seeded_bug("R07-copy-down", "syncedmem.cpp:49 miscopied: #ifdef CPU_ONLY")
class InvertedCpuOnly(HandmadeMemory):
    """Copying down ends with NO_GPU in the build that has a GPU."""

    def need_cpu(self) -> None:
        self.refuse("NO_GPU")


@seeded_bug("R07-copy-down", "Caffe 7149de51c: the copy is inside the allocation branch")
class CopiesDownOnlyOnce(HandmadeMemory):
    """A copy down is made only when host memory is allocated."""

    def copy_down(self, pointer: Any) -> None:
        if self.cpu_ptr is None:
            super().copy_down(pointer)


@seeded_bug("R07-copy-down", "NVIDIA/caffe copy_from_gpu=false as the default")
class WriteOnlyHost(HandmadeMemory):
    """mutable_cpu_data returns the host side without bringing it up to date."""

    def mutable_cpu_data(self) -> Any:
        if self.head is SyncedHead.HEAD_AT_GPU and self.cpu_ptr is not None:
            self.head = SyncedHead.HEAD_AT_CPU
        return super().mutable_cpu_data()


@seeded_bug("R08-copy-up", "Caffe 7149de51c")
class CopiesUpOnlyOnce(HandmadeMemory):
    """A copy up is made only when device memory is allocated."""

    def copy_up(self, pointer: Any) -> None:
        if self.gpu_ptr is None:
            super().copy_up(pointer)


@seeded_bug("R08-copy-up", "a hidden counter")
class ThirdCopyUpSkipped(HandmadeMemory):
    """The third copy up is not made."""

    ups = 0

    def copy_up(self, pointer: Any) -> None:
        self.ups += 1
        if self.ups != 3:
            super().copy_up(pointer)


@seeded_bug("R07-copy-down", "a hidden counter")
class FifthCopyDownSkipped(HandmadeMemory):
    """The fifth copy down is not made."""

    downs = 0

    def copy_down(self, pointer: Any) -> None:
        self.downs += 1
        if self.downs != 5:
            super().copy_down(pointer)


@seeded_bug("R09-no-needless-copy", "HOOMD: writing always copies")
class CopiesAgainWhenSynced(HandmadeMemory):
    """mutable_gpu_data copies up although both sides are fresh."""

    def mutable_gpu_data(self) -> Any:
        if self.head is SyncedHead.SYNCED and not self.closed:
            self.wait_for_push()
            self.copy_up(self.gpu_ptr)
        return super().mutable_gpu_data()


@seeded_bug("R09-no-needless-copy", "pycaffe: every read of .data is a write")
class CopiesOnEveryRead(HandmadeMemory):
    """cpu_data copies down whenever there is a device side."""

    def to_cpu(self) -> None:
        if self.head is SyncedHead.SYNCED:
            self.wait_for_push()
            self.copy_down(self.cpu_ptr)
        super().to_cpu()


@seeded_bug("R09-no-needless-copy", "a hidden counter")
class TenthLookCopies(HandmadeMemory):
    """Every tenth read of a host side that is in sync copies it down again."""

    looks = 0

    def cpu_data(self) -> Any:
        self.looks += self.head is SyncedHead.SYNCED and not self.closed
        if self.looks % 10 == 9 and self.head is SyncedHead.SYNCED:
            self.wait_for_push()
            self.copy_down(self.cpu_ptr)
        return super().cpu_data()


@seeded_bug("R10-same-bytes", "#2998: nobody waited for a copy")
class SpoiltCopy(HandmadeMemory):
    """The first byte is wrong after a copy down."""

    def copy_down(self, pointer: Any) -> None:
        super().copy_down(pointer)
        if self.size:
            memoryview(pointer)[0] ^= 1


@seeded_bug("R10-same-bytes", "numba#5821: writes to a temporary are lost")
class DeviceViewIsCopy(HandmadeMemory):
    """mutable_gpu_data returns a copy, and bytes that are written to it are lost."""

    def mutable_gpu_data(self) -> Any:
        view = super().mutable_gpu_data()
        copy = self.device.empty(self.size)
        if self.size:
            self.device.inner.memcpy(view, copy, self.size, 3)
        return copy


@seeded_bug("R10-same-bytes", "syncedmem.cpp:143 miscopied: void mutable_gpu_data()")
class ReturnsNothing(HandmadeMemory):
    """mutable_gpu_data returns nothing."""

    def mutable_gpu_data(self) -> Any:
        super().mutable_gpu_data()


@seeded_bug("R11-head", "Caffe 7149de51c, half corrected")
class FirstTouchSyncs(HandmadeMemory):
    """After the first access to a side the head is SYNCED, although the other side does not exist."""

    def first_head(self, head: SyncedHead) -> SyncedHead:
        return SyncedHead.SYNCED if head is SyncedHead.HEAD_AT_CPU else head


@seeded_bug("R12-read-keeps", "syncedmem.cpp:82 misread: copying to the device leaves HEAD_AT_GPU")
class ReadingMovesHead(HandmadeMemory):
    """Reading on the device makes the host stale."""

    def copied_up(self, pointer: Any, fresh: bool) -> None:
        super().copied_up(pointer, fresh)
        self.head = SyncedHead.HEAD_AT_GPU


@seeded_bug("R12-read-keeps", "syncedmem.cpp:55 misread: copying back leaves HEAD_AT_CPU")
class ReadingDownMovesHead(HandmadeMemory):
    """Reading on the host makes the device stale."""

    def copied_down(self, pointer: Any, pinned: bool, fresh: bool) -> None:
        super().copied_down(pointer, pinned, fresh)
        self.head = SyncedHead.HEAD_AT_CPU


@seeded_bug("R13-write-makes-stale", "#3357: writes that are not tracked")
class HostWriteUnnoticed(HandmadeMemory):
    """mutable_cpu_data keeps the head at SYNCED, so the device side is not updated after the write."""

    def wrote_cpu(self) -> None:
        if self.head is not SyncedHead.SYNCED:
            super().wrote_cpu()


@seeded_bug("R13-write-makes-stale", "gt4py: an exported array that does not mark its owner dirty")
class DeviceWriteUnnoticed(HandmadeMemory):
    """mutable_gpu_data keeps the head at SYNCED, so the host side is not updated after the write."""

    def wrote_gpu(self) -> None:
        if self.head is not SyncedHead.SYNCED:
            super().wrote_gpu()


@seeded_bug("R53-independent", "a static scratch buffer")
class ZeroesItsNeighbour(HandmadeMemory):
    """The first access to a memory zeroes the host side of the memory that was accessed before it."""

    last: Any = None

    def zero_cpu(self, pointer: Any, pinned: bool) -> None:
        super().zero_cpu(pointer, pinned)
        if type(self).last is not None:
            memoryview(type(self).last)[:] = bytes(len(type(self).last))
        type(self).last = pointer


@seeded_bug("R07-copy-down", "a hidden counter that short sequences cannot reach")
class NinetiethCopyDownSkipped(HandmadeMemory):
    """The ninetieth copy down is not made."""

    copies = 0

    def copy_down(self, pointer: Any) -> None:
        self.copies += 1
        if self.copies != 90:
            super().copy_down(pointer)


@seeded_bug("R10-same-bytes", "a counter of 24 bits")
class LosesWhatIsBeyond16MiB(HandmadeMemory):
    """A copy down of more than 16 MiB loses its last byte."""

    def copy_down(self, pointer: Any) -> None:
        super().copy_down(pointer)
        if self.size > 16 << 20:
            memoryview(pointer)[-1] ^= 255


@seeded_bug("R10-same-bytes", "a vector loop without its remainder")
class LosesTheRemainder(HandmadeMemory):
    """A copy down of more than 32 bytes loses the rest after whole vectors of 32."""

    def copy_down(self, pointer: Any) -> None:
        super().copy_down(pointer)
        if self.size > 32 and self.size % 32:
            memoryview(pointer)[-1] ^= 255


@seeded_bug("R10-same-bytes", "a scratch buffer for all memories, as long as the last one needs")
class SharesAScratchThatIsTooShort(HandmadeMemory):
    """A copy down stops at the size of the memory that was made last."""

    scratch: ClassVar[int] = 0

    def set_up(self) -> None:
        type(self).scratch = self.size

    def copy_down(self, pointer: Any) -> None:
        super().copy_down(pointer)
        memoryview(pointer)[self.scratch :] = bytes(max(0, self.size - self.scratch))


@seeded_bug("R46-fresh-view", "two arrays in turn, because making one takes time")
class AlternatingViews(HandmadeMemory):
    """cpu_data returns one of two view objects, in turn."""

    def set_up(self) -> None:
        self.pair: list[Any] = []

    def host_view(self) -> Any:
        self.pair = [super().host_view(), *self.pair] if len(self.pair) < 2 else self.pair[::-1]
        return self.pair[0]


@seeded_bug("R54-view-of-the-memory", "to_numpy() that copies")
class HostViewIsACopy(HandmadeMemory):
    """cpu_data returns a copy of the bytes."""

    def host_view(self) -> Any:
        return memoryview(bytes(self.cpu_ptr))


@seeded_bug("R54-view-of-the-memory", "a snapshot on the device, taken to be safe from later writes")
class DeviceViewIsACopy(HandmadeMemory):
    """gpu_data returns a copy of the bytes, in separate device memory."""

    def gpu_data(self) -> Any:
        view = super().gpu_data()
        copy = self.device.empty(self.size)
        if self.size:
            copy.set(view.get())
        return copy
