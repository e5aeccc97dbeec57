"""Programs that keep a view too long, in the ways people do, and their right twins, which ask again before each write.

Each program takes a device and whether it asks again.  It returns what its author expects, and what came out.
"""

from __future__ import annotations

import copy
import ctypes
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.runtime import Blob, CPUDeviceAllocator, PoolAllocator, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["PROGRAMS", "WAYS"]

Program = "Callable[[Any, bool], tuple[float, float]]"

SIZE = 64


def _memory(place: Any, **options: Any) -> Any:
    return SyncedMemory(SIZE, device=place, checked=True, **options)


def _blob(place: Any) -> Any:
    return Blob((4, 4), device=place, checked=True)


def _first(array: Any) -> float:
    """The first number of an array of a device, or of the host."""
    return float(np.asarray(array.get() if hasattr(array, "get") else array).ravel()[0])


def _strided(view: Any) -> Any:
    return np.lib.stride_tricks.as_strided(view, (SIZE // 2,), (2,))


def _in_c(view: Any) -> Any:
    return (ctypes.c_ubyte * SIZE).from_buffer(view)


def _by_dlpack(view: Any) -> Any:
    return np.from_dlpack(view)


WAYS: dict[str, Callable[[Any], Any]] = {
    "np.frombuffer": lambda view: np.frombuffer(view, np.uint8),
    "reshape and T": lambda view: view.reshape(8, 8).T.reshape(-1, order="A"),
    "every second": lambda view: view[::2],
    "structured": lambda view: view.view([("low", np.uint8), ("high", np.uint8)])["low"],
    "ctypes": _in_c,
    "memoryview.cast": lambda view: memoryview(view).cast("B"),
    "as_strided": _strided,
    "flat": lambda view: view[:].flat,
    "DLPack twice": lambda view: _by_dlpack(_by_dlpack(view)),
    "masked": np.ma.asarray,
    "split": lambda view: np.split(view, 2)[0],
    "matrix of rows": lambda view: view.reshape(8, 8)[0],
}
"""What people make of a view, and write to later."""


def _in_a_way(way: Callable[[Any], Any], place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)
    kept = way(memory.mutable_cpu_data())
    kept[0] = 1
    memory.gpu_data()
    if again:
        kept = way(memory.mutable_cpu_data())
    kept[0] = 2
    return 2, _first(memory.gpu_data())


def _closure(place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)
    view = memory.mutable_cpu_data()[:]

    def write(value: int) -> None:
        (memory.mutable_cpu_data() if again else view)[0] = value

    write(1)
    memory.gpu_data()
    write(2)
    return 2, _first(memory.gpu_data())


def _default(place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)

    def write(value: int, view: Any = memory.mutable_cpu_data()[:]) -> None:  # noqa: B008 -- the mistake
        (memory.mutable_cpu_data() if again else view)[0] = value

    memory.gpu_data()
    write(2)
    return 2, _first(memory.gpu_data())


def _generator(place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)

    def writing() -> Iterator[None]:
        view = memory.mutable_cpu_data()[:]
        for value in (1, 2):
            view = memory.mutable_cpu_data() if again else view
            view[0] = value
            yield

    for _ in writing():
        memory.gpu_data()
    return 2, _first(memory.gpu_data())


def _bound_method(place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)
    put = partial(memory.mutable_cpu_data()[:].__setitem__, 0)
    memory.gpu_data()
    if again:
        put = partial(memory.mutable_cpu_data().__setitem__, 0)
    put(2)
    return 2, _first(memory.gpu_data())


def _diff(place: Any, again: bool) -> tuple[float, float]:
    blob = _blob(place)
    view = blob.mutable_cpu_diff()[:]
    blob.gpu_diff()
    (blob.mutable_cpu_diff() if again else view)[:] = 2
    return 2, _first(blob.gpu_diff())


def _shared(place: Any, again: bool) -> tuple[float, float]:
    one, other = _blob(place), _blob(place)
    other.share_data(one)
    view = one.mutable_cpu_data()[:]
    other.gpu_data()
    (one.mutable_cpu_data() if again else view)[:] = 2
    return 2, _first(other.gpu_data())


def _update(place: Any, again: bool) -> tuple[float, float]:
    blob = _blob(place)
    view = blob.mutable_cpu_data()[:]
    view[:] = 3
    blob.gpu_data()
    blob.mutable_gpu_diff()
    blob.update()
    (blob.mutable_cpu_data() if again else view)[:] = 2
    return 2, _first(blob.gpu_data())


def _grown(place: Any, again: bool) -> tuple[float, float]:
    blob = _blob(place)
    view = blob.mutable_cpu_data()[:]
    blob.reshape(8, 8)
    (blob.mutable_cpu_data() if again else view)[:] = 2
    return 2, _first(blob.cpu_data())


def _adopted(place: Any, again: bool) -> tuple[float, float]:
    memory, mine = _memory(place), np.ones(SIZE, np.uint8)
    memory.set_cpu_data(mine)
    memory.gpu_data()
    mine[:] = 2
    if again:
        memory.set_cpu_data(mine)
    return 2, _first(memory.gpu_data())


def _replaced(place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)
    view = memory.mutable_cpu_data()[:]
    memory.set_cpu_data(bytearray(SIZE))
    (memory.mutable_cpu_data() if again else view)[:] = 2
    return 2, _first(memory.gpu_data())


def _push(place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)
    view = memory.mutable_cpu_data()[:]
    view[:] = 1
    memory.async_gpu_push(stream=place.stream())
    (memory.mutable_cpu_data() if again else view)[:] = 2
    memory.wait()
    return 2, _first(memory.mutable_gpu_data())


def _device_view(place: Any, again: bool) -> tuple[float, float]:
    memory = _memory(place)
    view = memory.mutable_gpu_data()
    memory.cpu_data()
    (memory.mutable_gpu_data() if again else view).set(np.full(SIZE, 2, np.uint8))
    return 2, _first(memory.cpu_data())


def _read_too_late(place: Any, again: bool) -> tuple[float, float]:
    blob = _blob(place)
    blob.data = np.ones((4, 4))
    view = blob.cpu_data()
    blob.mutable_gpu_data().set(np.full((4, 4), 2, np.float32))  # a kernel needs a compiler, which can be missing
    return 2, _first(blob.cpu_data() if again else view)


def _pool(place: Any, again: bool) -> tuple[float, float]:
    pool = PoolAllocator(CPUDeviceAllocator())
    where = {"host": pool, "pinned": pool}
    with _memory(place, **where) as first:
        view = first.mutable_cpu_data()[:]
    with _memory(place, **where) as memory:
        (memory.mutable_cpu_data() if again else view)[:] = 2
        found = 2.0 if again else 0.0
    pool.close()
    return 2, found


def _copied(place: Any, again: bool) -> tuple[float, float]:
    """A copy is nobody's view: it may be written at any time, and the memory does not see it."""
    memory = _memory(place)
    memory.mutable_cpu_data()[:] = 2
    kept = copy.deepcopy(memory.cpu_data())
    view = memory.mutable_cpu_data()[:]
    memory.gpu_data()
    (kept if again else view)[:] = 9
    return 2, _first(memory.gpu_data())


PROGRAMS: dict[str, Callable[[Any, bool], tuple[float, float]]] = {
    **{name: partial(_in_a_way, way) for name, way in WAYS.items()},
    "closure": _closure,
    "default argument": _default,
    "generator": _generator,
    "bound method": _bound_method,
    "diff": _diff,
    "shared data": _shared,
    "update": _update,
    "grown blob": _grown,
    "adopted array": _adopted,
    "other host side": _replaced,
    "push in flight": _push,
    "device view": _device_view,
    "read too late": _read_too_late,
    "pool": _pool,
    "copy": _copied,
}
