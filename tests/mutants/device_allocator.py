"""Seeded bugs of device allocators: each forwards all calls to a correct allocator, and does one thing wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError, InvalidSizeError
from syncedmem.model.interface import MemcpyKind

from .registry import DEVICE_ALLOCATOR_BUGS, seeded_bug

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEVICE_ALLOCATOR_BUGS"]


class Over:
    """An allocator that forwards all calls to another one."""

    def __init__(self, upstream: Any) -> None:
        self.upstream = upstream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.upstream, name)


@seeded_bug("D01-zero-bytes", "malloc(0) of many systems")
class OneByteForNothing(Over):
    """A request for zero bytes gives a block of one byte."""

    def allocate(self, byte_size: int) -> Any:
        return self.upstream.allocate(1 if byte_size == 0 else byte_size)


@seeded_bug("D02-row-of-bytes", "pools that round sizes up")
class RoundsUp(Over):
    """The size of a block is rounded up to a multiple of 64 bytes."""

    def allocate(self, byte_size: int) -> Any:
        return self.upstream.allocate(-(-byte_size // 64) * 64)


@seeded_bug("D03-sizes-refused", "a size that is cast and not checked")
class NoneForNoSize(Over):
    """A request with an invalid size returns None instead of an error."""

    def allocate(self, byte_size: int) -> Any:
        try:
            return self.upstream.allocate(byte_size)
        except (InvalidArgumentError, InvalidSizeError):
            return None


@seeded_bug("D04-no-room", "KuiperLLama logs and returns null")
class NoneWithoutRoom(Over):
    """A request for more memory than there is returns None."""

    def allocate(self, byte_size: int) -> Any:
        try:
            return self.upstream.allocate(byte_size)
        except AllocationError:
            return None


class Lenient(Over):
    """Ignores a release that it must refuse."""

    def release(self, ptr: Any) -> None:
        try:
            self.upstream.release(ptr)
        except InvalidPointerError:
            return


@seeded_bug("D05-released-once", "KuiperLLama counts it twice")
class ReleasesTwice(Lenient):
    """A second release is not noticed."""


@seeded_bug("D06-foreign-refused", "KuiperLLama frees what it does not know")
class ReleasesAnything(Lenient):
    """A release of memory that was never allocated is not noticed."""


@seeded_bug("D21-threads", "a check and a change in two separate steps")
class ReleasesForAll(Lenient):
    """If several threads release one block, all of them succeed."""


@seeded_bug("D07-late-reader", "a pool without views of its own")
class ReusesAtOnce(Over):
    """A released block is returned again for the next request."""

    def __init__(self, upstream: Any) -> None:
        super().__init__(upstream)
        self.idle: list[Any] = []

    def allocate(self, byte_size: int) -> Any:
        return self.idle.pop() if self.idle else self.upstream.allocate(byte_size)

    def release(self, ptr: Any) -> None:
        self.idle.append(ptr)


@seeded_bug("D08-counts", "a counter that an error path forgets")
class CountsRequests(Over):
    """Requests that were refused count too."""

    def __init__(self, upstream: Any) -> None:
        super().__init__(upstream)
        self.refused = 0

    @property
    def live_blocks(self) -> int:
        """The number of live blocks and of refused requests."""
        return int(self.upstream.live_blocks) + self.refused

    def allocate(self, byte_size: int) -> Any:
        try:
            return self.upstream.allocate(byte_size)
        except AllocationError:
            self.refused += 1
            raise


class Copier(Over):
    """Forwards copies in a method, which a bug can override."""

    def memcpy(  # noqa: PLR0913 -- the interface
        self, src: Any, dest: Any, byte_size: Any, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        """Copy bytes correctly."""
        self.upstream.memcpy(src, dest, byte_size, kind, stream, need_sync)


@seeded_bug("D09-copies", "a loop that ends too soon")
class CopiesAllButOne(Copier):
    """The last byte is not copied."""

    def memcpy(  # noqa: PLR0913 -- the interface
        self, src: Any, dest: Any, byte_size: Any, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        super().memcpy(src, dest, max(byte_size - 1, 0), kind, stream, need_sync)


@seeded_bug("D10-copies-of-nothing", "KuiperLLama: null is checked before the size")
class NullFirst(Copier):
    """Null is refused even for zero bytes."""

    def memcpy(  # noqa: PLR0913 -- the interface
        self, src: Any, dest: Any, byte_size: Any, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        if src is None or dest is None:
            raise InvalidPointerError("null", self.upstream.name, "it is null")
        super().memcpy(src, dest, byte_size, kind, stream, need_sync)


@seeded_bug("D11-bounds", "KuiperLLama copies as many bytes as the smaller buffer has")
class CutsCopies(Copier):
    """A copy that goes beyond an array is cut to its length without an error."""

    def memcpy(  # noqa: PLR0913 -- the interface
        self, src: Any, dest: Any, byte_size: Any, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        length = min((len(ptr) for ptr in (src, dest) if ptr is not None), default=byte_size)
        super().memcpy(src, dest, min(byte_size, length), kind, stream, need_sync)


@seeded_bug("D12-ends", "KuiperLLama: pointers have no place")
class BelievesDirections(Copier):
    """A copy from or to the wrong side is not noticed."""

    def memcpy(  # noqa: PLR0913 -- the interface
        self, src: Any, dest: Any, byte_size: Any, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        try:
            super().memcpy(src, dest, byte_size, kind, stream, need_sync)
        except InvalidPointerError:
            return


@seeded_bug("D13-kinds", "cudaMemcpyDefault, where the direction is not known")
class GuessesDirections(Copier):
    """A value that is not a direction is accepted as one."""

    def memcpy(  # noqa: PLR0913 -- the interface
        self, src: Any, dest: Any, byte_size: Any, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        known = isinstance(kind, MemcpyKind)
        super().memcpy(src, dest, byte_size, kind if known else MemcpyKind.CPU2CUDA, stream, need_sync)


@seeded_bug("D14-zeros", "a fill of whole words")
class ZeroesWholeWords(Over):
    """The bytes after the last whole word are not set to zero."""

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        self.upstream.memset_zero(ptr, byte_size // 8 * 8, stream, need_sync)


@seeded_bug("D15-streams", "KuiperLLama returns before need_sync is looked at")
class NeverWaits(Copier):
    """A copy of zero bytes does not wait, although need_sync asks for it."""

    def memcpy(  # noqa: PLR0913 -- the interface
        self, src: Any, dest: Any, byte_size: Any, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        super().memcpy(src, dest, byte_size, kind, stream, need_sync and byte_size > 0)


@seeded_bug("D16-foreign-streams", "cuda-python#779, which stream frees")
class TakesAnyStream(Over):
    """An object that is not a stream is accepted as one."""

    def check_stream(self, stream: object) -> None:
        """Accept every object."""


@seeded_bug("D17-overlaps", "blocks are compared instead of their bytes")
class OverlapsByBlock(Over):
    """Any two pointers overlap."""

    def overlaps(self, first: Any, second: Any) -> bool:
        return first is not None and second is not None


@seeded_bug("D18-adopts", "np.array in place of np.asarray")
class AdoptsCopies(Over):
    """Adopted memory is copied."""

    def adopt(self, buffer: object, byte_size: int) -> Any:
        return self.upstream.empty(len(self.upstream.adopt(buffer, byte_size)))


@seeded_bug("D19-views", "a view that is made once and kept")
class OneViewForAll(Over):
    """All calls of a viewer return the same view."""

    def viewer(self, ptr: Any) -> Callable[[], Any]:
        view = self.upstream.viewer(ptr)()
        return lambda: view


@seeded_bug("D20-device", "KuiperLLama: was 3, became 0 after a release")
class LeavesDeviceCurrent(Over):
    """After an allocation, the device of the allocator stays current."""

    def allocate(self, byte_size: int) -> Any:
        self.upstream.using().__enter__()
        return self.upstream.allocate(byte_size)
