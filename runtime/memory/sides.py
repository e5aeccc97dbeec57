"""The two sides of a memory, and what each declared action does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import DeclarationError, caffe
from syncedmem.model.interface import MemcpyKind

from ..devices.host import cpu_allocator
from .flight import Flight
from .side import Side, finalise
from .tables import READ_GPU
from .views import counted_views, device_views, host_views

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from weakref import ref

    import numpy as np

    from ..allocators.base import DeviceAllocator
    from .views import Views

    Perform = Callable[["Sides", bool, Any], None]

__all__ = ["ACTIONS", "EMPTY_ACTIONS", "Sides"]

_NO_SIDE = Side(0, [])
"""The sides of a memory that has none yet."""

# Read once here, because reading a member of an enum takes as long as the rest of an action.
_UP, _DOWN = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU


class Sides:
    """Both sides of a memory, with their allocators; the memory has the only reference to this.

    Attributes
    ----------
    pageable, pinned : DeviceAllocator
        For host memory, in CPU mode and in GPU mode.
    device : DeviceAllocator or None
    size : int
        In bytes.
    cpu, gpu : Side
        A side that gets other memory is a new object.
    flights : list of Flight
        The copy between the two that may be in flight, or nothing.
    lent : weakref.ref or None
        The view of the host side that the call which moved the head there has returned: it has the right to write.
    watch : Watch or None
        What tells of stale writes, in checked mode.
    up, down : int
        How often the bytes were copied to the device, and to the host.
    """

    __slots__ = (
        "__weakref__", "cpu", "device", "down", "flights", "gpu", "lent", "pageable", "pinned", "size", "up", "watch",
    )  # fmt: skip

    def __init__(
        self, size: int, pageable: DeviceAllocator, pinned: DeviceAllocator, device: DeviceAllocator | None
    ) -> None:
        self.size: int = size
        self.pageable: DeviceAllocator = pageable
        self.pinned: DeviceAllocator = pinned
        self.device: Any = device  # Any: the rows that reach for it do not exist in a memory without a device
        self.flights: list[Flight] = []
        self.lent: ref[np.ndarray[Any, np.dtype[Any]]] | None = None
        self.watch: Any = None  # Any: the module of `Watch` imports this one
        self.up: int = 0
        self.down: int = 0
        self.cpu: Side = _NO_SIDE
        self.gpu: Side = _NO_SIDE

    @property
    def where(self) -> DeviceAllocator:
        """The allocator that errors name."""
        where: DeviceAllocator = self.device or self.pageable
        return where

    def show(self, side: Side, *, on_device: bool) -> Views:
        """Prepare views of a side that has memory."""
        checked = self.watch is not None
        views = counted_views(side.owner, side.ptr) if checked else None
        if views is None:
            views = device_views(self.device, side.ptr, checked=checked) if on_device else host_views(side.ptr)
        side.views = views
        return views

    def view(self, accessor: int) -> Any:
        """A new view, for an accessor by its number."""
        on_device = accessor >= READ_GPU
        side = self.gpu if on_device else self.cpu
        views = side.views or self.show(side, on_device=on_device)
        return views.writer.make() if accessor & 1 else views.reader.make()

    def undo(self, had_cpu: int, had_gpu: int, flights: list[Flight], error: BaseException) -> None:
        """Give back what a call has allocated that ends with `error`; a block that leaks is reported.

        A copy that it has queued uses that memory, so it is waited for first.  If the wait fails, the memory is left to
        the copy, which stays in `flights`.
        """
        stuck = ""
        if self.flights != flights:
            stuck = self.flights[0].end()
            if not stuck:
                self.flights[:] = flights
        if not had_cpu:
            self.cpu.give_back(error, stuck)
        if not had_gpu:
            self.gpu.give_back(error, stuck)

    def end_right(self, adopted: object = None) -> None:
        """Make the view that was lent last read-only: what is written through it from now on would be lost.

        If that view was adopted just now, it is the memory itself, and stays as it is.
        """
        view, self.lent = None if self.lent is None else self.lent(), None
        if view is not None and view is not adopted:
            view.flags.writeable = False

    def warn(self, why: str) -> None:
        """Warn of a stale write when no call is left that could raise."""
        if self.watch is not None:
            self.watch.warn(self, why)

    def end(self) -> None:
        """Give both sides back, because the memory is gone, when the copy in flight is over."""
        if not hasattr(self, "gpu"):
            return  # an interrupt came while this was made
        if self.cpu is _NO_SIDE and self.gpu is _NO_SIDE:
            return
        try:
            self.end_right()
            if self.watch is not None:
                self.watch.warn(self, "at the end of the memory")
                self.watch.leave(self, (self.cpu, self.gpu))
            for flight in self.flights:
                flight.end()  # also a copy between two buffers that others own
            self.cpu.end()
        finally:  # also after an interrupt
            self.gpu.end()

    __del__ = finalise


# --- what each action does: with the sides, in GPU mode or not, and with the argument of the call


def _allocate_cpu(sides: Sides, pinned: bool, _: Any) -> None:
    sides.cpu.end()  # gives back what an interrupt kept an earlier call from giving back
    sides.cpu = side = Side(sides.size, sides.flights)
    side.allocate(sides.pinned if pinned else sides.pageable)


def _zero_cpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.cpu.owner.memset_zero(sides.cpu.ptr, sides.size)


def _copy_to_cpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.device.memcpy(sides.gpu.ptr, sides.cpu.ptr, sides.size, _DOWN)
    sides.down += 1


def _free_cpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.cpu.release()


def _allocate_gpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.gpu.end()  # as on the host
    sides.gpu = side = Side(sides.size, sides.flights)
    side.allocate(sides.device)


def _zero_gpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.device.memset_zero(sides.gpu.ptr, sides.size)


def _copy_to_gpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.device.memcpy(sides.cpu.ptr, sides.gpu.ptr, sides.size, _UP)
    sides.up += 1


def _copy_to_gpu_async(sides: Sides, _pinned: bool, stream: Any) -> None:
    flight = Flight(sides.device, stream, (sides.cpu.ptr, sides.gpu.ptr))
    sides.flights[:] = (flight,)
    flight.start(sides.size, _UP)
    sides.up += 1


def _free_gpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.gpu.release()


def _nothing(_sides: Sides, _pinned: bool, _: Any) -> None:
    """An action that calls no allocator: the memory stores an adopted pointer itself, and zero bytes need nothing."""


def _empty_cpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.cpu = Side(0, sides.flights, cpu_allocator().empty(0))


def _empty_gpu(sides: Sides, _pinned: bool, _: Any) -> None:
    sides.gpu = Side(0, sides.flights, sides.device.empty(0))


def _complete(table: Mapping[str, Perform]) -> Mapping[str, Perform]:
    """A table of functions, after a check that it has one for every declared action."""
    missing = [action for action in caffe.EVERYTHING.actions if action not in table]
    if missing:
        raise DeclarationError(f"no implementation for: {', '.join(missing)}")
    return table


ACTIONS = _complete(
    {
        caffe.ALLOCATE_CPU.name: _allocate_cpu,
        caffe.ZERO_CPU.name: _zero_cpu,
        caffe.COPY_TO_CPU.name: _copy_to_cpu,
        caffe.ADOPT_CPU.name: _nothing,
        caffe.FREE_CPU.name: _free_cpu,
        caffe.ALLOCATE_GPU.name: _allocate_gpu,
        caffe.ZERO_GPU.name: _zero_gpu,
        caffe.COPY_TO_GPU.name: _copy_to_gpu,
        caffe.COPY_TO_GPU_ASYNC.name: _copy_to_gpu_async,
        caffe.ADOPT_GPU.name: _nothing,
        caffe.FREE_GPU.name: _free_gpu,
    }
)

EMPTY_ACTIONS = _complete(
    {
        **dict.fromkeys(caffe.EVERYTHING.actions, _nothing),
        caffe.ALLOCATE_CPU.name: _empty_cpu,
        caffe.ALLOCATE_GPU.name: _empty_gpu,
        caffe.FREE_CPU.name: _free_cpu,
        caffe.FREE_GPU.name: _free_gpu,
    }
)
"""For memories of zero bytes: heads move as for other memories, but no allocator is called for memory."""
