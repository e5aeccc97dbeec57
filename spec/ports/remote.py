"""What blobs of a program are seen through: buffers, views, and two allocators, as of any other subject.

The actions that the program reports go to the kit's recording allocators.  So the log has them, fails where it has to,
and knows what is allocated.  The allocators below have no memory: bytes are read from the program.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from ..engine.subject import Subject
from .actions import Actions, RemotePointer, RemoteStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from .process import Port

__all__ = ["RemoteAllocator", "RemoteBuffer", "RemoteObject", "RemoteView", "RequestRefused"]


class RequestRefused(RuntimeError):
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
    side : str

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

    @property
    def defers(self) -> bool:
        """Whether a push happens only when somebody waits for it."""
        return bool(self.port.level >= "L4" and self.port.hello.get("defers"))

    # --- for the kit

    def empty(self, byte_size: int) -> RemoteBuffer:
        """A new buffer of the caller."""
        self._buffers += 1
        name = f"{Subject.keyword(self.side)}{self._buffers}"
        self.port.ask("buffer", buffer=name, side=self.side, bytes=bytes(byte_size).hex())
        return RemoteBuffer(self.port, name, byte_size)

    def stream(self) -> RemoteStream:
        """A new stream."""
        self.port.streams += 1
        return RemoteStream(self.port.streams)

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


class RemoteObject:
    """A blob in the port, and what was last seen of it.

    Parameters
    ----------
    actions : Actions
        Those of the object, or of all that share a log.
    op : str
        The request that makes it.
    **fields
        Those of this request, besides its number.
    """

    kind: ClassVar[str]
    """The field of requests that has its number."""
    shows: ClassVar[str]
    """The request that shows it."""
    required: ClassVar[tuple[str, ...]]
    """What every answer about it has."""

    def __init__(self, actions: Actions, op: str, **fields: Any) -> None:
        self._actions = actions
        self._port: Port = actions.port
        self._gone = False
        self._seen: tuple[int, dict[str, Any]] = (-1, {})
        self.number: int = self._port.next_id()
        self._change(op, **fields)

    def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self._port.ask(op, **{self.kind: self.number}, **fields)

    def _change(self, op: str, *, pushed_on: object = None, ends: bool = False, **fields: Any) -> dict[str, Any]:
        """The answer to a request that takes actions, after these are in the log.

        Raises
        ------
        RequestRefused
            If the port refused it.
        """
        answer = self._ask(op, **fields)
        refused = "refused" in answer
        self._gone = self._gone or (ends and not refused)
        self._actions.take(answer, pushed_on)
        if not refused or not self._missing(answer):
            self._see(answer)
        if refused:
            raise RequestRefused(answer["refused"])
        return answer

    def _state(self) -> dict[str, Any]:
        """What was last seen of it, if nothing has happened since; otherwise what is seen now."""
        if self._seen[0] != self._port.turn:
            self._see(self._ask(self.shows))
        return self._seen[1]

    def _see(self, answer: dict[str, Any]) -> None:
        if missing := self._missing(answer):
            raise self._port.violation("P02-one-answer", missing)
        self._seen = (self._port.turn, answer)

    def _missing(self, answer: dict[str, Any]) -> str:
        """What an answer does not say of it and must, in a sentence; of one that is gone, nothing must be said."""
        missing = [] if self._gone else [name for name in self.required if name not in answer]
        return f"the last answer about a {self.kind} has no {missing[0]!r}" if missing else ""
