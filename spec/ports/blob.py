"""Blobs of a port that is a process: calls become requests, and answers become what the kit observes of a blob.

A port gives each memory a number.  Two blobs share a memory if they show the same number.  The kit reads heads, sizes
and bytes of a memory from what the port last showed of a blob that has it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from syncedmem.model import SyncedHead, current_mode
from syncedmem.model.interface import BLOB_CALLS

from ..blob.elements import TYPES, itemsize
from ..blob.oracle import ADOPTIONS, SCALES
from .actions import Actions
from .harness.calls import NUMBERS, VIEWS
from .memory import Refused, RemoteBuffer, RemoteView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..engine.call_log import RecordingAllocator
    from .process import Port

__all__ = ["RemoteBlob"]

_WIDEST = 1 << 63


class RemoteBlobMemory:
    """A memory of blobs in the port, as it was last seen.

    Attributes
    ----------
    head : SyncedHead
    size : int
    """

    def __init__(self) -> None:
        self.head: SyncedHead = SyncedHead.UNINITIALIZED
        self.size: int = 0
        self._sides: dict[str, str | None] = {}

    def see(self, part: str, answer: dict[str, Any]) -> None:
        """Take what an answer says of this part of a blob."""
        self.head = SyncedHead[answer.get(f"{part}_head", "UNINITIALIZED")]
        self.size = answer.get(f"{part}_size", 0)
        self._sides = {side: answer.get(f"{part}_{side}") for side in ("cpu", "gpu")}

    def cpu_data(self) -> RemoteView:
        """The bytes of the host side, read without a call."""
        return self._shown("cpu")

    def gpu_data(self) -> RemoteView:
        """The bytes of the device side, read without a call."""
        return self._shown("gpu")

    def _shown(self, side: str) -> RemoteView:
        content = self._sides[side]
        if content is None and self.size:
            raise Refused(f"the port does not show the {side} side, which is fresh")
        return RemoteView(content)


class _Shared:
    """What the blobs of one driver share: their actions, and the memories of the port by their numbers.

    Attributes
    ----------
    actions : Actions
    port : Port
    turn : int
        The number of requests that may have changed a blob.
    """

    def __init__(self, host: RecordingAllocator, device: RecordingAllocator | None) -> None:
        self.actions = Actions({"cpu": host, "gpu": device})
        self.port: Port = self.actions.port
        self.turn: int = 0
        self.host: Any = host.inner
        self.device: Any = None if device is None else device.inner
        self._memories: dict[object, RemoteBlobMemory] = {}

    def memory(self, key: object) -> RemoteBlobMemory:
        """The memory with this number; it is always the same object."""
        return self._memories.setdefault(key, RemoteBlobMemory())

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request that may change something, after its actions are in the log.

        Raises
        ------
        Refused
            If the port refused it.
        """
        self.turn += 1
        failure = self.actions.failure() if op == "blob_call" else {}
        answer = self.port.ask(op, mode=current_mode().name, **fields, **failure)
        self.actions.take(answer)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer


class RemoteBlob:
    """A blob of a port; see `syncedmem.spec.blob.calls`.

    Parameters
    ----------
    *shape : int or tuple of int
        None at all for a blob without a shape.
    dtype : str
    host, device : RecordingAllocator
        The kit's recording allocators; `device` is None for a port without a device.
    """

    def __init__(self, *shape: Any, dtype: str, host: RecordingAllocator, device: RecordingAllocator | None) -> None:
        inner: Any = host.inner
        if inner.blobs is None or inner.blobs.actions.log is not host.log:
            inner.blobs = _Shared(host, device)
        self._shared: _Shared = inner.blobs
        self._type = dtype
        self._seen: tuple[int, dict[str, Any]] = (-1, {})
        self.number: int = self._shared.port.next_id()
        extents = [*_numbers(shape)] if shape else None
        self._see(self._shared.ask("new_blob", blob=self.number, type=dtype, shape=extents))

    # --- what is seen of it

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self._state()["shape"])

    @property
    def num_axes(self) -> int:
        """The number of extents."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """The number of elements."""
        count: int = self._state()["count"]
        return count

    @property
    def capacity(self) -> int | None:
        """How many elements fit; None if the port does not say it."""
        capacity: int | None = self._state().get("capacity")
        return capacity

    @property
    def data_memory(self) -> RemoteBlobMemory:
        """The memory of the data."""
        return self._memory("data")

    @property
    def diff_memory(self) -> RemoteBlobMemory:
        """The memory of the diff."""
        return self._memory("diff")

    def _memory(self, part: str) -> RemoteBlobMemory:
        """The memory of a part; one that is not there yet counts as a memory of no bytes, which nobody shares."""
        number = self._state().get(part)
        memory = self._shared.memory((self.number, part) if number is None else number)
        memory.see(part, self._state())
        return memory

    def _state(self) -> dict[str, Any]:
        """What was last seen of this blob, if nothing has happened since; otherwise what is seen now."""
        if self._seen[0] != self._shared.turn:
            self._see(self._shared.port.ask("blob_state", blob=self.number))
        return self._seen[1]

    def _see(self, answer: dict[str, Any]) -> None:
        for field in ("shape", "count"):
            if field not in answer:
                raise self._shared.port.violation("P02-one-answer", f"the last answer about a blob has no {field!r}")
        self._seen = (self._shared.turn, answer)

    # --- its calls

    def __getattr__(self, name: str) -> Any:
        if name in ("num", "channels", "height", "width"):
            return self._make(name)
        if name not in BLOB_CALLS:
            raise AttributeError(name)
        return partial(self._make, name)

    def access(self, call: str) -> RemoteView | None:
        """Make one of the eight accessors' calls."""
        part, side = VIEWS[call]
        shown = self._call(call).get("view")
        if shown is None and self._shared.port.level >= "L1" and self.count:
            return None
        return RemoteView(shown, partial(self.write, part, side))

    def write(self, part: str, side: str, content: bytes) -> None:
        """Write through the last view of a side of a part."""
        self._shared.turn += 1
        self._see(self._shared.port.ask("write_blob", blob=self.number, part=part, side=side, bytes=content.hex()))

    def drop(self) -> None:
        """Drop it, in the port too."""
        self._shared.ask("drop_blob", blob=self.number)

    def _make(self, call: str, *arguments: Any, **options: Any) -> Any:
        """Make a call with its arguments; what it returns."""
        if call in VIEWS:
            return self.access(call)
        fields = {**self._fields(call, *arguments), **options}
        answer = self._call(call, **fields)
        if call == "gpu_shape":
            return RemoteView(answer.get("view"))
        if call not in (*NUMBERS, "shape_string"):
            return None
        if "value" not in answer:
            raise self._shared.port.violation("P02-one-answer", "the last answer has no 'value'")
        value = answer["value"]
        return float(value) if isinstance(value, str) and call in NUMBERS else value

    def _fields(self, call: str, *arguments: Any) -> dict[str, Any]:
        """The fields of the request that have the arguments of a call."""
        if call in ADOPTIONS:
            (buffer,) = arguments
            return {"buffer": None if buffer is None else self._buffer(ADOPTIONS[call][1], buffer).name}
        if call in SCALES:
            (factor,) = arguments
            return {"factor": factor if isfinite(factor) else str(factor)}
        if call in _OF_ANOTHER:
            other, *rest = arguments
            fields = {"copy_diff": False, "reshape": False} if call == "copy_from" else {}
            return {"other": _number(other), **fields, **dict(zip(fields, rest, strict=False))}
        if call == "count_axes":
            return {"numbers": [*arguments] or [0]}
        if not arguments:
            return {}
        return {"numbers": _numbers(arguments), "sequence": not isinstance(arguments[0], int)}

    def _call(self, call: str, **fields: Any) -> dict[str, Any]:
        answer = self._shared.ask("blob_call", blob=self.number, call=call, **fields)
        self._see(answer)
        return answer

    def _buffer(self, side: str, argument: Any) -> RemoteBuffer:
        if isinstance(argument, RemoteBuffer):
            return argument
        with suppress(TypeError):
            return self._copy(memoryview(argument))
        if side == "gpu" and self._shared.device is None:  # an object that stands for memory on a device
            return self._copy(memoryview(bytearray(self.count * itemsize(self._type))))
        raise Refused("not a buffer")

    def _copy(self, content: memoryview) -> RemoteBuffer:
        """A buffer of the caller in the port, with the bytes of one that is here."""
        if content.readonly or content.format not in ("B", TYPES[self._type]):
            raise Refused("a request has only buffers that can be written, of the blob's own type")
        buffer: RemoteBuffer = self._shared.host.empty(content.nbytes)
        buffer.set(content.tobytes())
        return buffer


_OF_ANOTHER = ("reshape_like", "share_data", "share_diff", "copy_from")


def _number(other: object) -> int:
    """The number of another blob."""
    if not isinstance(other, RemoteBlob):
        raise Refused("a request has only blobs")
    return other.number


def _numbers(arguments: tuple[Any, ...]) -> list[int]:
    """The numbers of a call, which are its arguments, or in its only argument."""
    listed: Any = arguments[0] if len(arguments) == 1 and not isinstance(arguments[0], int) else arguments
    numbers: Iterable[Any] = getattr(listed, "dim", listed)
    if not isinstance(numbers, list | tuple):
        raise Refused("a request has only lists of numbers")
    if not all(type(it) is int and abs(it) < _WIDEST for it in numbers):
        raise Refused("a request has only integers of 64 bits")
    return [*numbers]
