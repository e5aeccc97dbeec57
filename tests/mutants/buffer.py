"""Seeded bugs of buffers: each forwards all calls to a correct buffer, and does one thing wrong."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from syncedmem.model import ReentrantCallError, SyncedMemoryError
from syncedmem.model.interface import DeviceType, MemcpyKind, is_host

from .registry import BUFFER_BUGS, seeded_bug

if TYPE_CHECKING:
    from syncedmem.spec.engine.subject import BufferMaker

__all__ = ["BUFFER_BUGS"]


class Over:
    """A buffer that forwards all calls to another one, which `make` makes."""

    def __init__(
        self,
        make: BufferMaker,
        byte_size: int = 0,
        allocator: Any = None,
        ptr: Any = None,
        *,
        use_external: bool = False,
    ) -> None:
        self.make = make
        self.upstream = make(byte_size, allocator, ptr, use_external=use_external)

    def copy_from(self, source: Any, **options: Any) -> None:
        self.upstream.copy_from(bare(source), **options)

    def close(self) -> None:
        self.upstream.close()

    def __enter__(self) -> Self:
        self.upstream.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.upstream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.upstream, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.upstream.__reduce_ex__(protocol)

    def queue(self, source: Any, stream: Any) -> None:
        """Copy with the allocator alone, and remember nothing."""
        there = source.allocator if is_host(self.allocator) else self.allocator
        kind = MemcpyKind.between(from_device=not is_host(source.allocator), to_device=not is_host(self.allocator))
        there.memcpy(source.ptr, self.ptr, len(source), kind, stream)


def bare(buffer: Any) -> Any:
    """The correct buffer inside of a wrong one."""
    return getattr(buffer, "upstream", buffer)


@seeded_bug("F01-zero-bytes", "malloc(0) of many systems")
class OneByteForNoBytes(Over):
    """A buffer of zero bytes has a block of one byte."""

    def __init__(self, make: Any, byte_size: int = 0, allocator: Any = None, *rest: Any, **named: Any) -> None:
        nothing = byte_size == 0 and allocator is not None
        super().__init__(make, 1 if nothing else byte_size, allocator, *rest, **named)


@seeded_bug("F02-allocates", "pools that round sizes up")
class BufferRoundsUp(Over):
    """The size is rounded up to a multiple of 64 bytes."""

    def __init__(self, make: Any, byte_size: int = 0, allocator: Any = None, ptr: Any = None, **named: Any) -> None:
        super().__init__(make, byte_size if ptr is not None else -(-byte_size // 64) * 64, allocator, ptr, **named)


@seeded_bug("F03-released-once", "a with block without an end")
class CloseDoesNothing(Over):
    """The memory is released when the buffer is dropped, and not before."""

    def close(self) -> None:
        pass


@seeded_bug("F04-external", "a copy for safety")
class CopiesExternal(Over):
    """External host memory is copied."""

    def __init__(self, make: Any, byte_size: int = 0, allocator: Any = None, ptr: Any = None, **named: Any) -> None:
        ours = bytearray(ptr) if isinstance(ptr, bytearray) else ptr
        super().__init__(make, byte_size, allocator, ours, **named)


@seeded_bug("F05-handed-over", "KuiperLLama, use_external by mistake")
class HandedOverIsExternal(Over):
    """A block that is handed over is never released."""

    def __init__(self, make: Any, byte_size: int = 0, allocator: Any = None, ptr: Any = None, **named: Any) -> None:
        super().__init__(make, byte_size, allocator, ptr, **{**named, "use_external": ptr is not None})


@seeded_bug("F06-allocate", "KuiperLLama buffer.cpp, Buffer::allocate")
class AllocatesOnce(Over):
    """A buffer that has memory keeps it, and says that it has new memory."""

    def allocate(self) -> bool:
        return self.ptr is not None or self.upstream.allocate()


@seeded_bug("F07-failure-unchanged", "realloc by free and malloc")
class ReleasesFirst(Over):
    """The old memory is released before there is new memory."""

    def allocate(self) -> bool:
        self.upstream.close()
        found: bool = self.upstream.allocate()
        return found


@seeded_bug("F08-copies", "an end that is off by one")
class CopiesAllButTheLastByte(Over):
    """The last byte is not copied."""

    def copy_from(self, source: Any, **options: Any) -> None:
        if options or not isinstance(source, Over) or source.ptr is None:
            super().copy_from(source, **options)
        elif len(source) > 1:
            some = len(source) - 1
            self.upstream.copy_from(self.make(some, source.allocator, source.ptr[:some], use_external=True))


@seeded_bug("F09-too-long", "KuiperLLama buffer.cpp, the smaller size")
class CopiesWhatFits(Over):
    """Of a longer source the first bytes are copied."""

    def copy_from(self, source: Any, **options: Any) -> None:
        if isinstance(source, Over) and len(source) > len(self):
            source = self.make(len(self), source.allocator, source.ptr[: len(self)], use_external=True)
        super().copy_from(source, **options)


@seeded_bug("F10-no-memory", "KuiperLLama buffer.cpp, null")
class IgnoresNoMemory(Over):
    """A copy from a buffer without memory does nothing."""

    def copy_from(self, source: Any, **options: Any) -> None:
        if getattr(source, "ptr", self) is not None:
            super().copy_from(source, **options)


@seeded_bug("F11-bad-arguments", "a language without types")
class IgnoresWhatIsNoBuffer(Over):
    """A copy from an object that is no buffer does nothing."""

    def copy_from(self, source: Any, **options: Any) -> None:
        if isinstance(source, Over):
            super().copy_from(source, **options)


@seeded_bug("F12-queued", "cuda-python#779")
class ForgetsQueuedCopies(Over):
    """A queued copy is not remembered, so nothing waits for it."""

    def copy_from(self, source: Any, *, stream: Any = None, **options: Any) -> None:
        if stream is None:
            super().copy_from(source, **options)
        else:
            self.queue(source, stream)


@seeded_bug("F12-queued", "one slot for the copy in flight")
class RemembersTheLastCopy(Over):
    """Of two queued copies only the last one is waited for."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.last: Any = None

    def copy_from(self, source: Any, *, stream: Any = None, **options: Any) -> None:
        if stream is None:
            super().copy_from(source, **options)
            return
        self.queue(source, stream)
        self.last = self.allocator.record(stream)
        source.last = self.last

    def close(self) -> None:
        if self.last is not None:
            self.last.synchronize()
        super().close()


@seeded_bug("F13-in-order", "streams that do not wait for each other")
class DoesNotWaitForStreams(Over):
    """A copy without a stream does not wait for the queued ones."""

    def copy_from(self, source: Any, *, stream: Any = None, **options: Any) -> None:
        if stream is None and isinstance(source, Over) and source.ptr is not None:
            self.queue(source, None)
        else:
            super().copy_from(source, stream=stream, **options)


def alias(buffer: Any) -> Any:
    """A correct buffer over the memory of a wrong one, which knows nothing of its queued copies."""
    return buffer.make(len(buffer), buffer.allocator, buffer.ptr, use_external=True)


@seeded_bug("F13-in-order", "a list of queued copies for what is written, and none for what is read")
class DoesNotWaitForItsSource(Over):
    """A copy without a stream does not wait for the copies that are queued to its source."""

    def copy_from(self, source: Any, *, stream: Any = None, **options: Any) -> None:
        if stream is None and isinstance(source, Over) and source.ptr is not None:
            source = alias(source)
        super().copy_from(source, stream=stream, **options)


@seeded_bug("F13-in-order", "the wait stands behind the way through the host, which returns before it")
class DoesNotWaitOnTheWayThroughTheHost(Over):
    """A copy from one device to another does not wait for the copies that are queued to its source."""

    def copy_from(self, source: Any, *, stream: Any = None, **options: Any) -> None:
        places = {getattr(it, "allocator", None) for it in (self, source)}
        if stream is None and len(places) > 1 and None not in places and not any(map(is_host, places)):
            source = alias(source)
        super().copy_from(source, stream=stream, **options)


@seeded_bug("F13-in-order", "a write waits for reads, and not for other writes")
class OvertakesAnEarlierWrite(Over):
    """A copy without a stream does not wait for the copies that are queued to its target."""

    aliases: tuple[Any, ...] = ()

    def copy_from(self, source: Any, *, stream: Any = None, **options: Any) -> None:
        if stream is not None:
            self.aliases = (*self.aliases, alias(self))
            self.aliases[-1].copy_from(bare(source), stream=stream, **options)
            return
        for written in getattr(source, "aliases", ()):
            written.close()
        super().copy_from(source, **options)


@seeded_bug("F14-lost-told", "an error that nobody looks at")
class KeepsLossesToItself(Over):
    """A lost copy is not reported."""

    def close(self) -> None:
        with suppress(SyncedMemoryError):
            super().close()
        super().close()


@seeded_bug("F15-need-sync", "KuiperLLama returns before need_sync is looked at")
class NothingToWaitFor(Over):
    """A copy of zero bytes returns at once."""

    def copy_from(self, source: Any, **options: Any) -> None:
        if not isinstance(source, Over) or source.byte_size:
            super().copy_from(source, **options)


@seeded_bug("F16-device-type", "KuiperLLama, the default of device_type_")
class OnTheHostIfUnknown(Over):
    """A buffer without memory says that it is on the host."""

    @property
    def device_type(self) -> DeviceType:
        kind: DeviceType = self.upstream.device_type
        return DeviceType.CPU if kind is DeviceType.UNKNOWN else kind


@seeded_bug("F17-closed", "a with block that does not ask")
class EntersClosed(Over):
    """A closed buffer can be entered."""

    def __enter__(self) -> Self:
        return self


@seeded_bug("F18-not-copied", "Python's default")
class Copied(Over):
    """The object can be copied."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        del protocol
        return int, ()


@seeded_bug("F19-threads", "two locks in two orders")
class LocksInAnyOrder(Over):
    """The own lock is taken before that of the source; the wait ends with an error, so that the test ends."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.lock = threading.RLock()

    def copy_from(self, source: Any, **options: Any) -> None:
        with self.lock:
            time.sleep(0.01)
            if isinstance(source, Over) and not source.lock.acquire(timeout=0.2):
                raise TimeoutError("waited for the lock of the source")
            try:
                super().copy_from(source, **options)
            finally:
                if isinstance(source, Over):
                    source.lock.release()


@seeded_bug("F20-reentrant", "a finaliser that swallows errors")
class ClosesInsideOfClose(Over):
    """A close inside of a close is ignored, and not refused."""

    def close(self) -> None:
        with suppress(ReentrantCallError):
            super().close()
