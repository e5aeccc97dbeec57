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

from ..blob.elements import TYPES, itemsize
from ..blob.oracle import ACCESSORS, ADOPTIONS, NORMS, SCALES
from .actions import Actions
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
        self.actions = Actions(host, device)
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
        made = [*_numbers(shape)] if shape else None
        self._see(self._shared.ask("new_blob", blob=self.number, type=dtype, shape=made))

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
        found = self._shared.memory((self.number, part) if number is None else number)
        found.see(part, self._state())
        return found

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

    def reshape(self, *shape: Any) -> None:
        """Take a shape: up to four numbers, or a sequence."""
        self._call("reshape", numbers=_numbers(shape), sequence=not isinstance(shape[0], int))

    def reshape_like(self, other: RemoteBlob) -> None:
        """Take the shape of a blob."""
        self._call("reshape_like", other=_number(other))

    def copy_from(self, source: RemoteBlob, copy_diff: bool = False, reshape: bool = False) -> None:
        """Copy the data of a blob, or its diff."""
        self._call("copy_from", other=_number(source), copy_diff=copy_diff, reshape=reshape)

    def gpu_shape(self) -> RemoteView:
        """The extents on the device."""
        return RemoteView(self._call("gpu_shape").get("view"))

    def shape_string(self) -> str:
        """The shape as text."""
        return str(self._value(self._call("shape_string")))

    def count_axes(self, start: int = 0, end: int | None = None) -> float:
        """The volume of some axes."""
        return self._number("count_axes", numbers=[start] if end is None else [start, end])

    def write(self, part: str, side: str, content: bytes) -> None:
        """Write through the last view of a side of a part."""
        self._shared.turn += 1
        self._see(self._shared.port.ask("write_blob", blob=self.number, part=part, side=side, bytes=content.hex()))

    def drop(self) -> None:
        """Drop it, in the port too."""
        self._shared.ask("drop_blob", blob=self.number)

    def __getattr__(self, name: str) -> Any:
        if name in ("num", "channels", "height", "width"):
            return self._number(name)
        if name not in _CALLS:
            raise AttributeError(name)
        return partial(_CALLS[name], self, name)

    def access(self, call: str) -> RemoteView | None:
        """Make one of the eight accessors' calls."""
        part, side, _ = ACCESSORS[call]
        shown = self._call(call).get("view")
        if shown is None and self._shared.port.level >= "L1" and self.count:
            return None
        return RemoteView(shown, partial(self.write, part, side))

    def adopt(self, call: str, buffer: Any) -> None:
        """Adopt a buffer of the caller, which is made in the port if it is not there."""
        self._call(call, buffer=None if buffer is None else self._buffer(ADOPTIONS[call][1], buffer).name)

    def share(self, call: str, other: RemoteBlob) -> None:
        """Use the memory of a blob."""
        self._call(call, other=_number(other))

    def ask_number(self, call: str, *indices: Any) -> float:
        """A number, given indices or an axis."""
        if not indices:
            return self._number(call)
        return self._number(call, numbers=_numbers(indices), sequence=not isinstance(indices[0], int))

    def scale(self, call: str, factor: float) -> None:
        """Multiply a part by a number."""
        self._call(call, factor=factor if isfinite(factor) else str(factor))

    def act(self, call: str) -> None:
        """Make a call without arguments and without a result."""
        self._call(call)

    def _call(self, call: str, **fields: Any) -> dict[str, Any]:
        answer = self._shared.ask("blob_call", blob=self.number, call=call, **fields)
        self._see(answer)
        return answer

    def _number(self, call: str, **fields: Any) -> float:
        value = self._value(self._call(call, **fields))
        number: float = float(value) if isinstance(value, str) else value
        return number

    def _value(self, answer: dict[str, Any]) -> Any:
        if "value" not in answer:
            raise self._shared.port.violation("P02-one-answer", "the last answer has no 'value'")
        return answer["value"]

    def _buffer(self, side: str, given: Any) -> RemoteBuffer:
        if isinstance(given, RemoteBuffer):
            return given
        with suppress(TypeError):
            return self._copied(memoryview(given))
        if side == "gpu" and self._shared.device is None:  # an object that stands for memory on a device
            return self._copied(memoryview(bytearray(self.count * itemsize(self._type))))
        raise Refused("not a buffer")

    def _copied(self, content: memoryview) -> RemoteBuffer:
        """A buffer of the caller in the port, with the bytes of one that is here."""
        if content.readonly or content.format not in ("B", TYPES[self._type]):
            raise Refused("a request has only buffers that can be written, of the blob's own type")
        made: RemoteBuffer = self._shared.host.empty(content.nbytes)
        made.set(content.tobytes())
        return made


_CALLS: dict[str, Any] = {
    **dict.fromkeys(ACCESSORS, RemoteBlob.access),
    **dict.fromkeys(ADOPTIONS, RemoteBlob.adopt),
    **dict.fromkeys(("share_data", "share_diff"), RemoteBlob.share),
    **dict.fromkeys(SCALES, RemoteBlob.scale),
    **dict.fromkeys((*NORMS, "data_at", "diff_at", "offset"), RemoteBlob.ask_number),
    **dict.fromkeys(("canonical_axis_index", "legacy_shape"), RemoteBlob.ask_number),
    **dict.fromkeys(("update", "shrink_to_fit"), RemoteBlob.act),
}
"""The calls that are made in the same way, by name."""


def _number(other: object) -> int:
    """The number of another blob."""
    if not isinstance(other, RemoteBlob):
        raise Refused("a request has only blobs")
    return other.number


def _numbers(given: tuple[Any, ...]) -> list[int]:
    """The numbers of a call, which are its arguments, or in its only argument."""
    found: Any = given[0] if len(given) == 1 and not isinstance(given[0], int) else given
    numbers: Iterable[Any] = getattr(found, "dim", found)
    if not isinstance(numbers, list | tuple):
        raise Refused("a request has only lists of numbers")
    if not all(type(it) is int and abs(it) < _WIDEST for it in numbers):
        raise Refused("a request has only integers of 64 bits")
    return [*numbers]
