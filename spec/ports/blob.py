"""Blobs of a port that is a process: calls become requests, and answers become what the kit observes of a blob.

A port gives each memory a number.  Two blobs share a memory if they show the same number.  The kit reads heads, sizes
and bytes of a memory from what the port last showed of a blob that has it.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from syncedmem.model import SyncedHead, current_mode
from syncedmem.model.interface import BLOB_CALLS

from ..blob.elements import TYPES, itemsize
from ..blob.oracle import ADOPTIONS, SCALES
from .actions import Actions
from .harness.calls import NUMBERS, VIEWS
from .remote import RemoteBuffer, RemoteObject, RemoteView, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..engine.call_log import RecordingAllocator

__all__ = ["RemoteBlob"]

_WIDEST = 1 << 63
_EXTENTS = ("num", "channels", "height", "width")
"""The calls that are attributes in Python."""


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
            raise RequestRefused(f"the port does not show the {side} side, which is fresh")
        return RemoteView(content)


class BlobActions(Actions):
    """The actions of all blobs of one driver, and the memories of the port by their numbers.

    Attributes
    ----------
    host, device : RemoteAllocator
    memories : dict of object to RemoteBlobMemory
        The memory of a number is always the same object.
    """

    def __init__(self, host: RecordingAllocator, device: RecordingAllocator | None) -> None:
        super().__init__({"cpu": host, "gpu": device})
        self.host: Any = host.inner
        self.device: Any = None if device is None else device.inner
        self.memories: defaultdict[object, RemoteBlobMemory] = defaultdict(RemoteBlobMemory)


class RemoteBlob(RemoteObject):
    """A blob of a port; see `syncedmem.spec.blob.calls`.

    Parameters
    ----------
    *shape : int or tuple of int
        None at all for a blob without a shape.
    dtype : str
    host, device : RecordingAllocator
        The kit's recording allocators; `device` is None for a port without a device.
    """

    kind: ClassVar[str] = "blob"
    shows: ClassVar[str] = "blob_state"
    required: ClassVar[tuple[str, ...]] = ("shape", "count")

    def __init__(self, *shape: Any, dtype: str, host: RecordingAllocator, device: RecordingAllocator | None) -> None:
        inner: Any = host.inner
        if inner.blobs is None or inner.blobs.log is not host.log:
            inner.blobs = BlobActions(host, device)
        self._shared: BlobActions = inner.blobs
        self._type = dtype
        extents = [*_numbers(shape)] if shape else None
        super().__init__(inner.blobs, "new_blob", mode=current_mode().name, type=dtype, shape=extents)

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
        memory = self._shared.memories[(self.number, part) if number is None else number]
        memory.see(part, self._state())
        return memory

    # --- its calls

    def __getattr__(self, name: str) -> Any:
        if name in ("count", "capacity"):
            return self._state().get(name)  # no port need say its capacity
        if name not in BLOB_CALLS:
            raise AttributeError(name)
        return self._make(name) if name in _EXTENTS else partial(self._make, name)

    def access(self, call: str) -> RemoteView | None:
        """Make one of the eight accessors' calls."""
        part, side = VIEWS[call]
        shown = self._call(call).get("view")
        if shown is None and self._port.level >= "L1" and self.count:
            return None
        return RemoteView(shown, partial(self.write, part, side))

    def write(self, part: str, side: str, content: bytes) -> None:
        """Write through the last view of a side of a part."""
        self._see(self._ask("write_blob", part=part, side=side, bytes=content.hex()))

    def drop(self) -> None:
        """Drop it, in the port too."""
        self._change("drop_blob", ends=True, mode=current_mode().name)

    def _make(self, call: str, *arguments: Any, **options: Any) -> Any:
        """Make a call with its arguments; what it returns."""
        if call in VIEWS:
            return self.access(call)
        answer = self._call(call, **{**self._fields(call, *arguments), **options})
        if call == "gpu_shape":
            return RemoteView(answer.get("view"))
        if call not in (*NUMBERS, "shape_string"):
            return None
        if "value" not in answer:
            raise self._port.violation("P02-one-answer", "the last answer has no 'value'")
        value = answer["value"]
        return float(value) if isinstance(value, str) and call in NUMBERS else value

    def _call(self, call: str, **fields: Any) -> dict[str, Any]:
        return self._change("blob_call", mode=current_mode().name, call=call, **fields, **self._actions.failure())

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
            if not isinstance(other, RemoteBlob):
                raise RequestRefused("a request has only blobs")
            options = ("copy_diff", "reshape") if call == "copy_from" else ()
            return {"other": other.number, **dict.fromkeys(options, False), **dict(zip(options, rest, strict=False))}
        if call == "count_axes":
            return {"numbers": [*arguments] or [0]}
        if not arguments:
            return {}
        return {"numbers": _numbers(arguments), "sequence": not isinstance(arguments[0], int)}

    def _buffer(self, side: str, argument: Any) -> RemoteBuffer:
        if isinstance(argument, RemoteBuffer):
            return argument
        with suppress(TypeError):
            return self._copy(memoryview(argument))
        if side == "gpu" and self._shared.device is None:  # an object that stands for memory on a device
            return self._copy(memoryview(bytearray(self.count * itemsize(self._type))))
        raise RequestRefused("not a buffer")

    def _copy(self, content: memoryview) -> RemoteBuffer:
        """A buffer of the caller in the port, with the bytes of one that is here."""
        if content.readonly or content.format not in ("B", TYPES[self._type]):
            raise RequestRefused("a request has only buffers that can be written, of the blob's own type")
        buffer: RemoteBuffer = self._shared.host.empty(content.nbytes)
        buffer.set(content.tobytes())
        return buffer


_OF_ANOTHER = ("reshape_like", "share_data", "share_diff", "copy_from")


def _numbers(arguments: tuple[Any, ...]) -> list[int]:
    """The numbers of a call, which are its arguments, or in its only argument."""
    listed: Any = arguments[0] if len(arguments) == 1 and not isinstance(arguments[0], int) else arguments
    numbers: Iterable[Any] = getattr(listed, "dim", listed)
    if not isinstance(numbers, list | tuple):
        raise RequestRefused("a request has only lists of numbers")
    if not all(type(it) is int and abs(it) < _WIDEST for it in numbers):
        raise RequestRefused("a request has only integers of 64 bits")
    return [*numbers]
