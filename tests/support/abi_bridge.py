"""Memories of Python as ports with the C ABI, so that programs in other languages can judge seeded bugs.

The memory works on the allocators of its subject.  Each array of theirs has a block of the program: allocations, copies
and frees are also made with the allocators that the program lends, and the bytes of arrays and blocks are made equal
before and after each call.
"""

from __future__ import annotations

import ctypes
import gc
from ctypes import c_void_p, pointer
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

from syncedmem.model import Mode, using_mode
from syncedmem.spec.engine.call_log import TO_DEVICE, TO_HOST, InjectedFailure, StrayFree
from syncedmem.spec.engine.contents import Watched, fetch, put
from syncedmem.spec.engine.heads import FRESH
from syncedmem.spec.ports.harness.abi import (
    ABI_VERSION,
    BLOB_CALLS,
    BLOB_TYPES,
    BLOBS_VERSION,
    CALLS,
    FLAGS,
    HEADS,
    KINDS,
    OPTIONS,
    STATUSES,
    STRUCTURES,
)

if TYPE_CHECKING:
    from syncedmem.spec import Subject

__all__ = ["BlobBridge", "Bridge"]

OK, REFUSED, FAILED = (STATUSES[name] for name in ("OK", "REFUSED", "FAILED"))
HOST, PINNED, DEVICE = (KINDS[name] for name in ("HOST", "PINNED", "DEVICE"))
_TAIL = 5
"""The bytes behind a caller's buffer that are compared too."""


class _Twin(NamedTuple):
    """An array of the subject's allocators, and the block of the program that has its bytes."""

    array: Any
    side: str
    at: int
    size: int


def _functions(bridge: object, table: str) -> list[Any]:
    """The functions of a table, which call the methods of a bridge."""
    fields: Any = getattr(STRUCTURES[table], "_fields_")  # noqa: B009 -- the name that ctypes gives it
    kinds: dict[str, Any] = dict(fields)
    return [kinds[name](getattr(bridge, f"_{name}")) for name in ("create", "call", "state", "destroy")]


class Bridge:
    """A table of functions for memories of a subject.

    Parameters
    ----------
    subject : Subject
    edition : str

    Attributes
    ----------
    table : Structure
        The ``smp_port``.
    """

    def __init__(self, subject: Subject, edition: str) -> None:
        self.subject = subject
        self._memories: dict[int, _Memory] = {}
        self._buffers: dict[int, _Twin] = {}
        self._made = 0
        self.table: Any = STRUCTURES["port"](
            ABI_VERSION, 3, 2, b"bug", edition.encode(), None, *_functions(self, "port")
        )

    def _create(self, lent: Any, size: int, made: Any) -> int:
        self._made += 1
        self._memories[self._made] = _Memory(self.subject, lent.contents, size)
        made[0] = self._made
        return OK

    def _call(self, number: int, asked: Any, result: Any) -> int:
        given, memory = asked.contents, self._memories[number]
        side: str = "gpu" if "gpu" in CALLS[given.call] else "cpu"
        for twin in self._buffers.values():
            memory.twins.setdefault(twin.at, twin)
        buffer = self._buffer(memory, side, given) if given.data else None
        everyone = [*self._memories.values()]
        with self._current():
            for it in everyone:
                it.pull()
            raised, view = memory.call(CALLS[int(given.call)], Mode(given.mode), buffer)
            for it in everyone:
                it.push()
            result.contents.view = memory.place(view, side)
        return OK if raised is None else FAILED if isinstance(raised, InjectedFailure) else REFUSED

    def _current(self) -> Any:
        device: Any = self.subject.device
        return self.subject.host.using() if device is None else device.using()

    def _buffer(self, memory: _Memory, side: str, given: Any) -> Any:
        """The array for a buffer of the program, or the memory's own view."""
        if given.data not in self._buffers:
            if given.data in memory.views:
                return memory.views[given.data]
            device: Any = self.subject.device if side == "gpu" else None
            side = "cpu" if device is None else "gpu"
            size = given.data_size + (_TAIL if given.data_size else 0)
            array = Watched(size) if device is None else device.empty(size)
            self._buffers[given.data] = memory.twins[given.data] = _Twin(array, side, given.data, size)
        return self._buffers[given.data].array

    def _state(self, number: int, seen: Any) -> None:
        memory, state = self._memories[number].memory, seen.contents
        state.head, state.size = HEADS.index(memory.head.name), memory.size
        for name, bit in FLAGS.items():
            if hasattr(memory, name):
                state.known_flags |= bit
                state.flags |= bit * bool(getattr(memory, name))

    def _destroy(self, number: int) -> None:
        self._memories.pop(number).lent = None
        if not self._memories:
            self._buffers.clear()  # a vector has ended


class _Place:
    """The twins of the arrays of a memory, or of the blobs of a vector."""

    def __init__(self, subject: Subject, lent: Any) -> None:
        self.subject = subject
        self.lent = lent
        self.twins: dict[int, _Twin] = {}
        self.views: dict[int, Any] = {}
        self._scratch: list[Any] = []
        device = None if subject.device is None else _Bridged(subject.device, self, DEVICE)
        self.sides: dict[str, Any] = {"host": _Bridged(subject.host, self, HOST), "device": device}

    def twin(self, array: Any, side: str) -> _Twin | None:
        """The twin whose bytes an array has."""
        if array is None:
            return None
        device: Any = self.subject.host if side == "cpu" else self.subject.device
        return next((it for it in self.twins.values() if it.side == side and device.overlaps(array, it.array)), None)

    def pull(self) -> None:
        """Give the arrays the bytes of their blocks."""
        for it in self.twins.values():
            content = ctypes.string_at(it.at, it.size)
            if it.side == "cpu":
                memoryview(it.array).cast("B")[: it.size] = content
            else:
                put(self.subject, it.array, content)

    def push(self) -> None:
        """Give the blocks the bytes of their arrays."""
        for it in self.twins.values():
            ctypes.memmove(it.at, self._bytes(it.array, it.side, it.size), it.size)

    def place(self, view: Any, side: str) -> int:
        """Where a view is."""
        if view is None:
            return 0
        found = self.twin(view, side)
        at = self._apart(view) if found is None else found.at
        self.views[at] = view
        return at

    def _apart(self, view: Any) -> int:
        """A place for a view of other memory than that of the twins."""
        content = bytes(memoryview(view.get() if hasattr(view, "get") else view).cast("B"))
        self._scratch.append(ctypes.create_string_buffer(content, max(len(content), 1)))
        return ctypes.addressof(self._scratch[-1])

    def _bytes(self, array: Any, side: str, size: int) -> bytes:
        return bytes(memoryview(array).cast("B")[:size]) if side == "cpu" else fetch(self.subject, array, size)


class _Memory(_Place):
    """A memory with the twins of its arrays."""

    def __init__(self, subject: Subject, lent: Any, size: int) -> None:
        super().__init__(subject, lent)
        make: Any = subject.make
        self.memory: Any = make(size, **self.sides)

    def call(self, name: str, mode: Mode, buffer: Any) -> tuple[BaseException | None, Any]:
        """Make a call; return what it raised, and its view."""
        device: Any = self.subject.device
        stream = object() if device is None else device.stream()
        given = [buffer] if name.startswith("set_") else []
        options = {"stream": stream} if name == "async_gpu_push" else {}
        try:
            with using_mode(mode):
                view = getattr(self.memory, "close" if name == "release" else name)(*given, **options)
        except Exception as error:  # noqa: BLE001 -- subjects may raise any error
            return error, None
        if options and device is not None:
            device.record(stream).synchronize()
        self.lent.synchronize(self.lent.context, None)
        return None, view


class BlobBridge:
    """Two tables of functions: the second is for blobs of a subject, and the first has no memories.

    Parameters
    ----------
    subject : Subject
    edition : str

    Attributes
    ----------
    port : Structure
        The ``smp_port``.
    table : Structure
        The ``smp_blobs``.
    """

    def __init__(self, subject: Subject, edition: str) -> None:
        self._memories = Bridge(subject, edition)
        self._subject = subject
        self._blobs: dict[int, Any] = {}
        self._made = 0
        self._place: Any = None  # of the vector that is replayed
        self.port: Any = self._memories.table
        self.table: Any = STRUCTURES["blobs"](BLOBS_VERSION, *_functions(self, "blobs"))

    def _create(self, lent: Any, _launch: Any, kind: int, made: Any) -> int:
        if not self._blobs:
            self._place = _Place(self._subject, lent.contents)
        self._made += 1
        make: Any = self._subject.make
        self._blobs[self._made] = make(dtype=[*BLOB_TYPES][kind], **self._place.sides)
        made[0] = self._made
        return OK

    def _call(self, number: int, asked: Any, result: Any) -> int:
        given, name = asked.contents, BLOB_CALLS[int(asked.contents.call)]
        arguments, options = list[Any](), dict[str, bool]()
        if name in ("reshape", "data_at", "diff_at"):
            arguments = [tuple(given.numbers[k] for k in range(given.count))]
        elif given.other:
            arguments = [self._blobs[given.other]]
            options = {"copy_diff": bool(given.options & OPTIONS["copy_diff"])} if name == "copy_from" else {}
        elif name.startswith(("scale", "set")):
            arguments = [given.factor if name.startswith("scale") else None]
        self._place.pull()
        try:
            with self._current(), using_mode(Mode(given.mode)):
                found = getattr(self._blobs[number], name)(*arguments, **options)
        except Exception:  # noqa: BLE001 -- subjects may raise any error
            return REFUSED
        finally:
            self._place.push()
        if name.startswith(("cpu", "gpu", "mutable")):
            result.contents.view = self._place.place(found, "gpu" if "gpu" in name else "cpu")
        elif isinstance(found, SupportsFloat):
            result.contents.number = float(found)
        return OK

    def _current(self) -> Any:
        device: Any = self._subject.device
        return self._subject.host.using() if device is None else device.using()

    def _state(self, number: int, seen: Any) -> None:
        blob, state = self._blobs[number], seen.contents
        state.axes, state.count, state.capacity = len(blob.shape), blob.count, blob.count
        for axis, extent in enumerate(blob.shape):
            state.shape[axis] = extent
        self._place.pull()
        for part in ("data", "diff"):
            memory, told = getattr(blob, f"{part}_memory"), getattr(state, part)
            told.memory, told.head, told.size = id(memory), HEADS.index(memory.head.name), memory.size
            for side in FRESH[memory.head]:
                with self._current():
                    setattr(told, side, self._place.place(getattr(memory, f"{side}_data")(), side))

    def _destroy(self, number: int) -> None:
        del self._blobs[number]
        if not self._blobs:
            gc.collect()
            self._place.lent = None


class _Bridged:
    """An allocator that also does everything with those that the program lends."""

    def __init__(self, inner: Any, memory: _Place, kind: int) -> None:
        self.inner = inner
        self._memory = memory
        self._kind = kind
        self._side: str = "gpu" if kind == DEVICE else "cpu"

    def _do(self, action: str, *arguments: Any) -> None:
        lent = self._memory.lent  # None if a finaliser runs after the end
        if lent is not None and getattr(lent, action)(lent.context, *arguments):
            raise InjectedFailure(action)

    def allocate(self, byte_size: int) -> Any:
        at = c_void_p()
        self._do("allocate", self._kind, byte_size, pointer(at))
        array = self.inner.allocate(byte_size)
        if at.value is not None:
            self._memory.twins[at.value] = _Twin(array, self._side, at.value, byte_size)
            self._memory.push()
        return array

    def release(self, ptr: Any) -> None:
        twin = self._memory.twin(ptr, self._side)
        try:
            self._do("deallocate", self._kind, None if twin is None else twin.at)
        except InjectedFailure as error:
            if twin is None:
                raise StrayFree("release") from error
            raise
        assert twin is not None
        del self._memory.twins[twin.at]
        self.inner.release(ptr)

    def memset_zero(self, ptr: Any, byte_size: int, *rest: Any) -> None:
        self._do("zero", self._at(ptr, self._side), byte_size)
        self.inner.memset_zero(ptr, byte_size, *rest)

    def memcpy(self, src: Any, dest: Any, byte_size: int, kind: Any = 0, *rest: Any) -> None:
        if byte_size:
            source: str = "cpu" if kind in (TO_DEVICE, 0) else "gpu"
            target: str = "cpu" if kind in (TO_HOST, 0) else "gpu"
            places = self._at(dest, target), self._at(src, source), byte_size
            if rest and rest[0] is not None:
                self._do("copy_async", *places, None)
            else:
                self._do("copy", *places)
        self.inner.memcpy(src, dest, byte_size, kind, *rest)

    def pinned_host(self) -> _Bridged:
        return _Bridged(self.inner.pinned_host(), self._memory, PINNED)

    def _at(self, array: Any, side: str) -> int | None:
        found = self._memory.twin(array, side)
        return None if found is None else found.at

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
