"""Numba: external memory managers, the classes for ``numba.cuda.set_memory_manager``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar, Never

from syncedmem.model import NoDeviceError, WrongDeviceError

from .exporter import Exporter
from .foreign import allocator_over
from .packages import missing
from .source import Source, check_calls

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from ..allocators.base import DeviceAllocator
    from .exporter import ExportedBlock

__all__ = ["ExportedManager", "as_resource", "from_resource"]

try:
    cuda: Any = importlib.import_module("numba.cuda")
    bindings: Any = importlib.import_module("cuda.bindings.driver")
except ImportError as _error:
    raise missing("Numba for CUDA", "numba", _error) from _error

if not hasattr(cuda, "HostOnlyCUDAMemoryManager"):
    raise NoDeviceError("Numba's simulator has no memory managers: unset NUMBA_ENABLE_CUDASIM")


def from_resource(theirs: Any, *, device: int | None = 0) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from a memory manager of Numba.

    Parameters
    ----------
    theirs : numba.cuda.BaseCUDAMemoryManager
        A manager with a context, such as ``numba.cuda.current_context().memory_manager``.
    device : int or None
        The CUDA device of that context; None if the host can read the memory of ``memalloc``.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is no memory manager.
    NoDeviceError
        If there is no such device here.
    """
    check_calls("theirs", theirs, ("memalloc",), "a memory manager of Numba, with a context")

    def take(size: int) -> tuple[int, Callable[[], object]]:
        pointer = theirs.memalloc(size)
        if isinstance(pointer, cuda.MemoryPointer):
            return int(pointer.device_pointer), pointer.free
        # A pointer that counts its owners, and gives its memory back when the last owner is gone.
        pointers = [pointer]
        return int(pointer.device_pointer), pointers.clear

    return allocator_over(Source(f"Numba's {type(theirs).__name__}", take, _is_full), device)


def _is_full(error: Exception) -> bool:
    """Whether it is Numba's ``CudaAPIError`` for a full device, which is no ``MemoryError``."""
    return bool(getattr(error, "code", None) == bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY)


def as_resource(allocator: object) -> type[ExportedManager]:
    """A memory manager of Numba whose memory comes from a `DeviceAllocator`.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of CUDA memory; one of host memory works too, for tests.

    Returns
    -------
    class
        For ``numba.cuda.set_memory_manager``.  Numba makes one object of this class for each context.  A context of
        another device than the allocator's is refused.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    return type("ExportedManager", (ExportedManager,), {"exporter": Exporter(allocator)})


if TYPE_CHECKING:
    _Base = SimpleNamespace  # of a library without types; this takes and has anything
else:
    _Base = cuda.HostOnlyCUDAMemoryManager


class ExportedManager(_Base):
    """Memory of a `DeviceAllocator`, for Numba; `as_resource` makes subclasses that have an exporter.

    Numba itself allocates pinned and mapped host memory.  While Numba defers deallocations, blocks are given back
    later.
    """

    exporter: ClassVar[Exporter]

    def __init__(self, context: Any) -> None:
        super().__init__(context=context)
        self._exported: set[ExportedBlock] = set()

    def initialize(self) -> None:
        """Refuse a context of another device.

        Raises
        ------
        WrongDeviceError
            If the context is not of the allocator's device.
        """
        if self.exporter.on_device and self.context.device.id != self.exporter.ordinal:
            raise WrongDeviceError("initialize", self.exporter.ordinal, self.context.device.id)

    def memalloc(self, size: int) -> Any:
        """A ``numba.cuda.MemoryPointer``, which gives its memory back when it is gone.

        Raises
        ------
        AllocationError
            If there is no room.
        """
        block = self.exporter.export(size, self.exporter.wait_for_device)
        self._exported.add(block)
        finalizer = _finalizer(block, self._exported, self.deallocations)
        return cuda.MemoryPointer(self.context, bindings.CUdeviceptr(block.ptr), size, finalizer=finalizer)

    def reset(self) -> None:
        """Give all memory back."""
        while self._exported:
            self._exported.pop().give_back()
        super().reset()  # type: ignore[misc] # of a library without types

    def get_ipc_handle(self, memory: Any) -> Never:
        """Refused: the allocator may export parts of larger blocks, which cannot be shared between processes."""
        raise NotImplementedError("memory of a syncedmem allocator is not shared between processes")

    def get_memory_info(self) -> Never:
        """Refused: an allocator does not tell how much memory is free."""
        raise NotImplementedError("a syncedmem allocator does not say how much memory is free")

    @property
    def interface_version(self) -> int:
        """The version of Numba's interface."""
        return 1


def _finalizer(block: ExportedBlock, exported: set[ExportedBlock], deallocations: Any) -> Callable[[], None]:
    """The function that Numba calls once when a pointer is gone; after a `reset` it does nothing."""

    def finalizer() -> None:
        if block not in exported:
            return
        exported.remove(block)
        if deallocations.is_disabled:
            deallocations.add_item(type(block).give_back, block, block.size)
        else:
            block.give_back()

    return finalizer
