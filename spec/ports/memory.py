"""Memories of a port that is a process: calls become requests, and answers become what the kit observes of a memory.

The kit sees a memory, buffers, views and two allocators, as of any other subject.  The memory passes the actions that
the port reports on to the kit's recording allocators.  So the log has them, fails where it has to, and knows what is
allocated.  The allocators below have no memory: bytes are read from the port.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syncedmem.model import SyncedHead, current_mode
from syncedmem.model.interface import MemcpyKind

from ..engine.call_log import InjectedFailure, RecordingAllocator, StrayFree

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..engine.call_log import CallLog
    from .process import Port

__all__ = [
    "COPIES",
    "Refused",
    "RemoteAllocator",
    "RemoteBuffer",
    "RemoteMemory",
    "RemotePointer",
    "RemoteSide",
    "failing",
    "recorders",
    "replay",
]

_FLAGS = ("size", "own_cpu_data", "own_gpu_data", "cpu_malloc_use_cuda")
_ACTIONS_FROM, _FAILURES_FROM = "L2", "L3"
_OWN = "own"
"""The name of a memory's own block, as a buffer."""
COPIES: dict[str, tuple[str, str, MemcpyKind]] = {
    "copy_to_cpu": ("gpu", "cpu", MemcpyKind.CUDA2CPU),
    "copy_to_gpu": ("cpu", "gpu", MemcpyKind.CPU2CUDA),
    "copy_to_gpu_async": ("cpu", "gpu", MemcpyKind.CPU2CUDA),
    "copy_cpu": ("cpu", "cpu", MemcpyKind.CPU2CPU),
    "copy_gpu": ("gpu", "gpu", MemcpyKind.CUDA2CUDA),
}


class Refused(RuntimeError):
    """A call that the port refused, or that failed there."""


class RemotePointer:
    """A block of memory in the port, or the pointer to an adopted buffer there.

    Attributes
    ----------
    number : int or None
        The port's number of the block.
    """

    number: int | None = None


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
    """The view that a call returned.

    Parameters
    ----------
    memory : RemoteMemory
    side : {"cpu", "gpu"}
    content : bytes
        What the view showed when the call returned.
    """

    def __init__(self, memory: RemoteMemory, side: str, content: bytes) -> None:
        self._memory = memory
        self._side: str = side
        self._content = content

    def get(self) -> bytes:
        """What it showed when the call returned."""
        return self._content

    def set(self, content: bytes) -> None:
        """Overwrite its first bytes."""
        self._memory.write(self._side, content)


class RemoteSide:
    """A side of a memory, read without a call.

    Parameters
    ----------
    content : bytes
    """

    def __init__(self, content: bytes) -> None:
        self._content = content

    def get(self) -> bytes:
        """Its bytes."""
        return self._content


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

    remote = True
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


def recorders(
    host: RecordingAllocator, device: RecordingAllocator | None
) -> dict[tuple[str, bool], RecordingAllocator]:
    """The recording allocator of each side, and of page-locked memory or not; each records in the same log."""
    inner: Any = host.inner
    return {
        ("cpu", False): host,
        ("cpu", True): RecordingAllocator(inner, host.log, "cpu", pinned=True),
        ("gpu", False): device or RecordingAllocator(inner, host.log, "gpu"),
    }


def failing(port: Port, log: CallLog) -> dict[str, Any]:
    """The fields of a call that say which of its actions has to fail, if the kit wants one to fail."""
    if not log.moves.left or port.level < _FAILURES_FROM:
        return {}
    return {"fail": log.moves.left, **({"partial": True} if log.moves.partial else {})}


def replay(port: Port, log: CallLog, action: dict[str, Any], move: Callable[[], None]) -> None:
    """Make the allocator calls of an action again with `move`, so that they are in the log.

    Raises
    ------
    Violation
        If the action was told to fail, and did not.
    """
    name: str = action["action"]
    if action.get("failed"):
        with suppress(InjectedFailure):
            log.moves.count(name)
        return
    try:
        move()
    except InjectedFailure as error:
        sentence = f"{name} was told to fail, and the port did it: {action}"
        raise port.violation("P03-fails-when-told", sentence) from error
    except StrayFree:
        pass  # it is in the log


class RemoteMemory:
    """A memory of a port; see `syncedmem.spec.engine.subject.Memory`.

    Parameters
    ----------
    size : int
    host, device : RecordingAllocator
        The kit's recording allocators; `device` is None for a port without a device.
    """

    def __init__(self, size: int, *, host: RecordingAllocator, device: RecordingAllocator | None) -> None:
        inner: Any = host.inner
        self._port: Port = inner.port
        self._size = size
        self._log = host.log
        self._released = False
        self._recorders = recorders(host, device)
        self._allocators: list[Any] = [recorder.inner for recorder in (host, device) if recorder]
        self._blocks: dict[str, list[RemotePointer]] = {"cpu": [], "gpu": []}
        self._adopted: dict[str, tuple[str, RemotePointer]] = {}
        self._stream: object = None
        self._number = self._port.next_id()
        self._seen: tuple[int, dict[str, Any]] = (0, {})
        self._answered(self._port.ask("new", memory=self._number, size=size))

    # --- the calls

    def cpu_data(self) -> RemoteView | None:
        """Read the host side."""
        return self._view("cpu", self._call("cpu_data"))

    def mutable_cpu_data(self) -> RemoteView | None:
        """Write the host side."""
        return self._view("cpu", self._call("mutable_cpu_data"))

    def gpu_data(self) -> RemoteView | None:
        """Read the device side."""
        return self._view("gpu", self._call("gpu_data"))

    def mutable_gpu_data(self) -> RemoteView | None:
        """Write the device side."""
        return self._view("gpu", self._call("mutable_gpu_data"))

    def set_cpu_data(self, data: RemoteBuffer | None) -> None:
        """Adopt a host buffer."""
        self._adopt("cpu", data)

    def set_gpu_data(self, data: RemoteBuffer | None) -> None:
        """Adopt a device buffer."""
        self._adopt("gpu", data)

    def async_gpu_push(self, *, stream: Any) -> None:
        """Queue a copy to the device."""
        self._stream = stream
        self._call("async_gpu_push", stream=stream.number if isinstance(stream, RemoteStream) else 0)

    def close(self) -> None:
        """Free the memory."""
        self._call("release")

    # --- what else the kit does with it

    def drop(self) -> None:
        """Drop it, as an owner who may not have released it."""
        self._released = True
        self._answered(self._port.ask("drop", memory=self._number))

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

    def sides(self, side: str) -> list[RemoteSide]:
        """What is on a side, read without a call: nothing if the port does not show it."""
        shown = self._state().get(side)
        return [] if shown is None else [RemoteSide(bytes.fromhex(shown))]

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

    def _call(self, op: str, **argument: Any) -> dict[str, Any]:
        told = failing(self._port, self._log)
        answer = self._port.ask(op, memory=self._number, mode=current_mode().name, **argument, **told)
        self._released = self._released or (op == "release" and "refused" not in answer)
        return self._answered(answer)

    def _answered(self, answer: dict[str, Any]) -> dict[str, Any]:
        if self._port.level >= _ACTIONS_FROM:
            for action in answer["actions"]:
                self._replay({"action": action} if isinstance(action, str) else action, answer)
        if "refused" in answer:
            self._seen = (self._port.asked, answer) if "head" in answer else (0, {})
            raise Refused(answer["refused"])
        self._see(answer)
        return answer

    def _view(self, side: str, answer: dict[str, Any]) -> RemoteView | None:
        if self._port.level >= "L1" and answer.get("view") is None:
            return None
        return RemoteView(self, side, bytes.fromhex(answer.get("view") or ""))

    def _adopt(self, side: str, data: RemoteBuffer | None) -> None:
        name = data.name if isinstance(data, RemoteBuffer) else None
        self._call(f"set_{side}_data", buffer=name)
        if name is not None:
            self._adopted[side] = name, self._noted(side)

    def _noted(self, side: str) -> RemotePointer:
        """A pointer to a buffer that was adopted, in the log; in a port no adoption can be told to fail."""
        pointer = RemotePointer()
        self._log.adopt(side, pointer)
        return pointer

    # --- what it did

    def _replay(self, action: dict[str, Any], answer: dict[str, Any]) -> None:
        """Make the allocator calls of an action again, so that they are in the log."""
        name: str = action["action"]
        if name.startswith("adopt"):
            return
        if name == "wait":
            for allocator in self._allocators:
                allocator.waited(action.get("stream"))  # a port that does not say which one is taken to mean all
            return
        replay(self._port, self._log, action, lambda: self._move(name, action, answer))

    def _move(self, name: str, action: dict[str, Any], answer: dict[str, Any]) -> None:
        size = action.get("size", self._size)
        if name in COPIES:
            source, dest, kind = COPIES[name]
            stream = self._stream if name.endswith("async") else None
            if stream is not None and "stream" in action:
                stream = RemoteStream(action["stream"])
            self._recorders[dest, False].memcpy(self._pointer(source), self._pointer(dest), size, kind, stream)
            return
        verb, _, side = name.partition("_")
        if verb == "zero":
            self._recorders[side, False].memset_zero(self._pointer(side), size)
        elif verb == "allocate":
            pinned = side == "cpu" and action.get("pinned", answer.get("cpu_malloc_use_cuda", False))
            pointer = self._recorders[side, pinned].allocate(size)
            pointer.number = action.get("block")
            self._blocks[side].append(pointer)
        else:
            self._free(side, action)

    def _free(self, side: str, action: dict[str, Any]) -> None:
        pointer = self._freed(side, action)
        live = self._log.live.get(id(pointer))
        pinned = action.get("pinned", live is not None and live[1].pinned)
        self._recorders[side, side == "cpu" and pinned].release(pointer)
        self._blocks[side].remove(pointer)

    def _freed(self, side: str, action: dict[str, Any]) -> RemotePointer:
        """What a free is about; a new pointer, which is not allocated, if it is about nothing that is known."""
        blocks, (name, adopted) = self._blocks[side], self._adopted.get(side, ("", RemotePointer()))
        if "buffer" in action:
            return adopted if action["buffer"] == name else self._noted(side)
        if "block" in action:
            numbered = [it for it in blocks if it.number is not None and it.number == action["block"]]
            return numbered[0] if numbered else RemotePointer()
        return blocks[-1] if blocks else adopted

    def _pointer(self, side: str) -> RemotePointer | None:
        """What is on a side now."""
        blocks, adopted = self._blocks[side], self._adopted.get(side)
        return blocks[-1] if blocks else adopted[1] if adopted else None
