"""How tests look into blobs: allocators that record the calls they get, heads, and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import SyncedHead
from syncedmem.runtime import Adaptor, Blob, CPUDeviceAllocator, MemcpyKind, arithmetic_of

if TYPE_CHECKING:
    from syncedmem.runtime import Arithmetic, DeviceAllocator, SyncedMemory

__all__ = ["HEADS", "Recorder", "at_head", "got", "heads", "recorded", "snapshot"]

HEADS = tuple(SyncedHead)
_DIRECTIONS = ("host to host", "up", "down", "across")


class Recorder(Adaptor):
    """Records what is allocated, zeroed, copied and computed, under a name, in a list that several may share."""

    def __init__(self, upstream: DeviceAllocator, side: str, log: list[str]) -> None:
        super().__init__(upstream)
        self._side = side
        self.log = log
        self.host: Any = None

    def allocate(self, byte_size: int) -> Any:
        self.log.append(f"{self._side} allocate")
        return super().allocate(byte_size)

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:  # noqa: FBT002 -- as below
        self.log.append(f"{self._side} zero")
        super().memset_zero(ptr, byte_size, stream, need_sync)

    def memcpy(  # noqa: PLR0913, PLR0917 -- the interface's signature
        self,
        src: Any,
        dest: Any,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,  # noqa: FBT002 -- as above
    ) -> None:
        self.log.append(_DIRECTIONS[kind])
        super().memcpy(src, dest, byte_size, kind, stream, need_sync)

    def pinned_host(self) -> Any:
        return self.host

    def arithmetic(self) -> Any:
        return _RecordingArithmetic(arithmetic_of(self.upstream), self._side, self.log)


class _RecordingArithmetic:
    def __init__(self, upstream: Arithmetic, side: str, log: list[str]) -> None:
        self._upstream = upstream
        self._side = side
        self._log = log

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._upstream, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            self._log.append(f"{self._side} {name}")
            return found(*arguments)

        return call


def recorded(device: DeviceAllocator, *shape: Any, dtype: Any = np.float32) -> tuple[Blob[Any], list[str]]:
    """A blob, and the list of all calls that its allocators get."""
    log: list[str] = []
    there, here = Recorder(device, "device", log), Recorder(CPUDeviceAllocator(), "host", log)
    there.host = here
    return Blob(*shape, dtype=dtype, host=here, pinned=here, device=there), log


def at_head(memory: SyncedMemory, head: SyncedHead, values: Any) -> None:
    """Bring a new memory to a head, with some bytes in it."""
    if head is SyncedHead.UNINITIALIZED:
        return
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    if head is SyncedHead.HEAD_AT_GPU:
        there = memory.mutable_gpu_data()
        if raw.size:
            there[: raw.size].set(raw)
        return
    memory.mutable_cpu_data()[: raw.size] = raw
    if head is SyncedHead.SYNCED:
        memory.gpu_data()


def heads(blob: Any) -> tuple[SyncedHead, SyncedHead]:
    """The heads of data and diff."""
    return blob.data_memory.head, blob.diff_memory.head


def got(array: Any) -> Any:
    """The bytes on the device, or on the host."""
    return array.get() if hasattr(array, "get") else np.array(array)


def snapshot(blob: Blob[Any]) -> tuple[object, ...]:
    """Everything that a blob has, with its bytes, which are read without the blob's help."""
    return (blob.shape, blob.count, blob.dtype, *map(_memory, (blob.data_memory, blob.diff_memory)))


def _memory(memory: Any) -> tuple[object, ...]:
    sides = memory._sides
    near = None if sides.cpu.ptr is None else sides.cpu.ptr.tobytes()
    far = None if sides.gpu.ptr is None or not memory.size else sides.gpu.ptr.get().tobytes()
    return id(memory), memory.size, memory.head, near, far
