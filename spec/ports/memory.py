"""Memories of a port that is a process: calls become requests, and answers become what the kit observes of a memory.

The kit sees a memory, buffers, views and two allocators, as of any other subject.  The memory passes the actions that
the port reports on to the kit's recording allocators.  So the log has them, fails where it has to, and knows what is
allocated.  The allocators below have no memory: bytes are read from the port.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Any

from syncedmem.model import SyncedHead, current_mode

from .actions import Actions, RemotePointer

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..engine.call_log import RecordingAllocator
    from .process import Port

__all__ = ["Refused", "RemoteAllocator", "RemoteBuffer", "RemoteMemory", "RemoteView"]

_FLAGS = ("size", "own_cpu_data", "own_gpu_data", "cpu_malloc_use_cuda")
_OWN = "own"
"""The name of a memory's own block, as a buffer."""


class Refused(RuntimeError):
    """A call that the port refused, or that failed there."""


class RemoteBuffer:
    """A buffer of the caller in the port.

    Parameters
    ----------
    port : Port
    name : str
    size : int
    """

    def __init__(self, port: Port, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self._port = port

    def get(self) -> bytes:
        """All its bytes."""
        return bytes.fromhex(self._port.ask("read_buffer", buffer=self.name)["bytes"])

    def set(self, content: bytes) -> None:
        """Overwrite its first bytes."""
        self._port.ask("write_buffer", buffer=self.name, bytes=content.hex())


class RemoteView:
    """What a call returned, or a side that was read without a call.

    Parameters
    ----------
    content : str or None
        What it showed, in hexadecimal digits.
    write : callable or None
        Overwrites its first bytes.
    """

    def __init__(self, content: str | None, write: Callable[[bytes], object] | None = None) -> None:
        self._content = bytearray.fromhex(content or "")
        self._write = write

    def get(self) -> bytearray:
        """What it showed."""
        return bytearray(self._content)

    def set(self, content: bytes) -> None:
        """Overwrite its first bytes."""
        assert self._write is not None  # noqa: S101 -- the kit writes only through views for writing
        self._write(content)


@dataclass(frozen=True)
class RemoteStream:
    """A stream of the port, by its number."""

    number: int

    def __str__(self) -> str:
        return f"stream {self.number}" if self.number else "the default stream"


class RemoteEvent:
    """A point after everything that is queued on a stream; it is reached when the port has waited for the stream.

    Parameters
    ----------
    allocator : RemoteAllocator
    stream : RemoteStream
    """

    def __init__(self, allocator: RemoteAllocator, stream: RemoteStream) -> None:
        self._allocator = allocator
        self._stream = stream
        self._waits = allocator.waits(stream)

    @property
    def done(self) -> bool:
        """Whether the port has waited for the stream since."""
        return self._allocator.waits(self._stream) > self._waits or not self._allocator.defers

    def synchronize(self) -> None:
        """Have the port wait for all streams."""
        self._allocator.port.ask("synchronize")
        self._allocator.waited(None)


class RemoteAllocator:
    """One side of the memories of a port, as an allocator: it makes buffers and streams there.

    Parameters
    ----------
    port : Port
    side : {"cpu", "gpu"}

    Attributes
    ----------
    blobs : object
        What the blobs of the last driver share; see `syncedmem.spec.ports.blob`.
    """

    name = "the port"
    ordinal = 0

    def __init__(self, port: Port, side: str) -> None:
        self.port: Port = port
        self.side: str = side
        self._waits: Counter[int | None] = Counter()
        self.blobs: Any = None
        self._buffers = 0
        self._streams = 0

    @property
    def defers(self) -> bool:
        """Whether a push happens only when somebody waits for it."""
        return bool(self.port.level >= "L4" and self.port.hello.get("defers"))

    # --- for the kit

    def empty(self, byte_size: int) -> RemoteBuffer:
        """A new buffer of the caller."""
        self._buffers += 1
        name = f"{'host' if self.side == 'cpu' else 'device'}{self._buffers}"
        self.port.ask("buffer", buffer=name, side=self.side, bytes=bytes(byte_size).hex())
        return RemoteBuffer(self.port, name, byte_size)

    def stream(self) -> RemoteStream:
        """A new stream."""
        self._streams += 1
        return RemoteStream(self._streams)

    @staticmethod
    def stream_of(number: int) -> RemoteStream:
        """The stream with a number."""
        return RemoteStream(number)

    def record(self, stream: RemoteStream) -> RemoteEvent:
        """An event after everything that has been queued on a stream."""
        return RemoteEvent(self, stream)

    def waited(self, stream: int | None) -> None:
        """Note that the port has waited: for a stream, or for all if `stream` is None."""
        self._waits[stream] += 1

    def waits(self, stream: RemoteStream) -> int:
        """How often the port has waited for a stream, alone or with all others."""
        return self._waits[stream.number] + self._waits[None]

    def using(self) -> AbstractContextManager[object]:
        """Nothing: the port's device is always current."""
        return nullcontext()

    def current_ordinal(self) -> int:
        """The only device."""
        return 0

    # --- for the log of calls

    def allocate(self, _byte_size: int) -> RemotePointer:
        """A new block."""
        return RemotePointer()

    def release(self, ptr: object) -> None:
        """Nothing: the port has freed it."""

    def memcpy(self, *_: object) -> None:
        """Nothing: the port has copied it."""

    def memset_zero(self, *_: object) -> None:
        """Nothing: the port has zeroed it."""

    def overlaps(self, first: object, second: object) -> bool:
        """Whether they are one block."""
        return first is second


class RemoteMemory:
    """A memory of a port; see `syncedmem.spec.engine.subject.Memory`.

    Parameters
    ----------
    size : int
    host, device : RecordingAllocator
        The kit's recording allocators; `device` is None for a port without a device.
    """

    def __init__(self, size: int, *, host: RecordingAllocator, device: RecordingAllocator | None) -> None:
        self._actions = Actions(host, device, size)
        self._port = self._actions.port
        self._size = size
        self._released = False
        self._number = self._port.next_id()
        self._seen: tuple[int, dict[str, Any]] = (0, {})
        self._take(self._port.ask("new", memory=self._number, size=size))

    # --- the calls

    def async_gpu_push(self, *, stream: Any) -> None:
        """Queue a copy to the device."""
        self._call("async_gpu_push", stream, stream=stream.number if isinstance(stream, RemoteStream) else 0)

    def close(self) -> None:
        """Free the memory."""
        self._call("release")

    # --- what else the kit does with it

    def drop(self) -> None:
        """Drop it, as an owner who may not have released it."""
        self._released = True
        self._take(self._port.ask("drop", memory=self._number))

    def own(self, side: str) -> RemoteBuffer:
        """Its own block on a side, as if that were a buffer of the caller.

        Raises
        ------
        Refused
            If it has none there.
        """
        answer = self._port.ask("own_buffer", memory=self._number, side=side, buffer=_OWN)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return RemoteBuffer(self._port, _OWN, self._size)

    def write(self, side: str, content: bytes) -> None:
        """Write through the last view of a side."""
        self._see(self._port.ask("write_view", memory=self._number, side=side, bytes=content.hex()))

    def sides(self, side: str) -> list[RemoteView]:
        """What is on a side, read without a call: nothing if the port does not show it."""
        shown = self._state().get(side)
        return [] if shown is None else [RemoteView(shown)]

    def __getattr__(self, name: str) -> Any:
        if name == "head":
            return SyncedHead[self._state()["head"]]
        if name not in _FLAGS or name not in self._state():
            raise AttributeError(name)
        return self._state()[name]

    def _state(self) -> dict[str, Any]:
        """What was last seen of this memory, if nothing has happened since; otherwise what is seen now."""
        if self._seen[0] != self._port.asked:
            self._see(self._port.ask("state", memory=self._number))
        return self._seen[1]

    def _see(self, answer: dict[str, Any]) -> None:
        if "head" not in answer and not self._released:
            raise self._port.violation(
                "P02-one-answer", "the last answer has no 'head', and the memory is not released"
            )
        self._seen = (self._port.asked, answer)

    # --- making a call

    def _call(self, op: str, pushed_on: object = None, **argument: Any) -> dict[str, Any]:
        fields = {**argument, **self._actions.failure()}
        answer = self._port.ask(op, memory=self._number, mode=current_mode().name, **fields)
        self._released = self._released or (op == "release" and "refused" not in answer)
        return self._take(answer, pushed_on)

    def _take(self, answer: dict[str, Any], pushed_on: object = None) -> dict[str, Any]:
        """Put what an answer says into the log; the answer, if the request was not refused."""
        self._actions.take(answer, pushed_on)
        if "refused" in answer:
            self._seen = (self._port.asked, answer) if "head" in answer else (0, {})
            raise Refused(answer["refused"])
        self._see(answer)
        return answer

    def _get(self, op: str, side: str) -> RemoteView | None:
        """Make a call that returns a side."""
        answer = self._call(op)
        if self._port.level >= "L1" and answer.get("view") is None:
            return None
        return RemoteView(answer.get("view"), partial(self.write, side))

    def _adopt(self, side: str, data: RemoteBuffer | None) -> None:
        name = data.name if isinstance(data, RemoteBuffer) else None
        self._call(f"set_{side}_data", buffer=name)
        if name is not None:
            self._actions.adopt(side, name)

    cpu_data: partialmethod[RemoteView | None] = partialmethod(_get, "cpu_data", "cpu")
    mutable_cpu_data: partialmethod[RemoteView | None] = partialmethod(_get, "mutable_cpu_data", "cpu")
    gpu_data: partialmethod[RemoteView | None] = partialmethod(_get, "gpu_data", "gpu")
    mutable_gpu_data: partialmethod[RemoteView | None] = partialmethod(_get, "mutable_gpu_data", "gpu")
    set_cpu_data: partialmethod[None] = partialmethod(_adopt, "cpu")
    set_gpu_data: partialmethod[None] = partialmethod(_adopt, "gpu")
