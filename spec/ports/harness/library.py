"""A shared library with the C ABI of ports, as an object that answers the requests of the protocol."""

from __future__ import annotations

import ctypes
import math
from collections import deque
from contextlib import suppress
from ctypes import POINTER, byref, c_int64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from . import VERSION, abi
from .calls import NUMBERS, RETURNING, VIEWS, WHOLE
from .heap import SIDES, Heap, LentBuffer

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Library", "LibraryError", "load"]

Answer = dict[str, Any]
Request = dict[str, Any]

_BYTES, _ACTIONS, _STREAMS = 1, 2, 4
"""The levels from which on bytes and actions are shown, and from which on pushes are deferred."""

_KEPT = 256
"""How many released memories are kept, because they may be called again."""

_ARGUMENTS, _RESULT, _STATE, _BLOB_ARGUMENTS, _BLOB_RESULT, _BLOB_STATE = (
    abi.STRUCTURES[name] for name in ("arguments", "result", "state", "blob_arguments", "blob_result", "blob_state")
)
_FRESH = {"cpu": ("HEAD_AT_CPU", "SYNCED"), "gpu": ("HEAD_AT_GPU", "SYNCED")}


class LibraryError(Exception):
    """A file that is no library of a port, or a library that did what no port may do; in one line."""


class _RefusedError(Exception):
    """A request that cannot be answered, and why."""


def load(path: str) -> tuple[Any, Any]:
    """The tables of a library: that of memories, and that of blobs or None."""
    if not Path(path).is_file():
        raise LibraryError(f"there is no file {path}")
    try:
        library = ctypes.CDLL(str(Path(path).absolute()))
        table = _table(library, "port", path, "its table")
    except AttributeError:
        raise LibraryError(f"{path} exports no function syncedmem_port: see syncedmem_port.h") from None
    except OSError as error:
        why = str(error).removeprefix(f"{Path(path).absolute()}: ")
        raise LibraryError(f"{path} cannot be loaded: {why}") from None
    if table.sides != abi.SIDES:
        raise LibraryError(f"{path}: its memories have {table.sides} sides, not {abi.SIDES}")
    if table.own and table.level >= _ACTIONS:
        most = f"its level is at most {_ACTIONS - 1}, not {table.level}"
        raise LibraryError(f"{path}: it has allocators of its own, so {most}")
    with suppress(AttributeError):
        return table, _table(library, "blobs", path, "its table of blobs")
    return table, None


def _table(library: ctypes.CDLL, name: str, path: str, called: str) -> Any:
    """A table of functions that a library exports; nothing else of it is read if it has another version."""
    structure = abi.STRUCTURES[name]
    entry = library[f"syncedmem_{name}"]
    entry.restype = POINTER(structure)
    pointer = entry()
    if not pointer:
        raise LibraryError(f"{path}: syncedmem_{name} returned NULL")
    table: Any = pointer.contents
    fields = [field for field, _ in structure._fields_]
    version, wanted = getattr(table, fields[0]), abi.ABI_VERSION if name == "port" else abi.BLOBS_VERSION
    if version != wanted:
        of = (
            f"it was built with version {version} of syncedmem_port.h"
            if name == "port"
            else f"its blobs have version {version}"
        )
        raise LibraryError(f"{path}: {of}, and this is version {wanted}")
    for field in ("name", "edition", "create", "call", "state", "destroy"):
        if field in fields and not getattr(table, field):
            raise LibraryError(f"{path}: the field {field} of {called} is NULL")
    return table


class _Object:
    """A memory or a blob of the library: its handle, the addresses of its sides as they are known, its last views."""

    __slots__ = ("destroy", "handle", "released", "sides", "size", "type", "views")

    def __init__(self, destroy: Any, handle: c_void_p, size: int = 0, type_: str = "") -> None:
        self.destroy, self.handle, self.size, self.type, self.released = destroy, handle.value, size, type_, False
        self.sides: dict[Any, int] = {}
        self.views: dict[Any, int] = {}


class Library:
    """Answers the requests of the protocol with a shared library."""

    def __init__(self, path: str) -> None:
        self._table, self._blob_table = load(path)
        self._name: str = self._table.name.decode(errors="replace")
        self._edition: str = self._table.edition.decode(errors="replace")
        self._level = 0
        own = self._table.own.contents if self._table.own else None
        self._heap: Heap = Heap(own, guards=self._table.level >= _ACTIONS)
        self._objects: dict[str, dict[int, _Object]] = {"memory": {}, "blob": {}}
        self._released: deque[int] = deque()
        self._own: dict[str, LentBuffer] = {}
        self._arguments, self._result, self._state = _ARGUMENTS(), _RESULT(), _STATE()
        self._explained = self._heap.explained()

    def __enter__(self) -> Self:
        """Explain segmentation faults until the end."""
        self._explained.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Drop all memories and blobs."""
        for objects in self._objects.values():
            for value in objects.values():
                value.destroy(value.handle)
            objects.clear()
        self._explained.__exit__(None, None, None)

    def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        op = request["op"]
        answer = self._call if op in abi.CALLS else getattr(self, f"_on_{op}", self._refuse)
        try:
            return {"id": request["id"], **answer(request)}
        except _RefusedError as error:
            with_actions: Answer = {} if op in ("own_buffer", "blob_state", "write_blob") else {"actions": []}
            return {"id": request["id"], "refused": str(error), **with_actions}

    # --- the requests that are no calls

    @staticmethod
    def _refuse(request: Request) -> Answer:
        return {"refused": f"there is no request {request['op']!r}"}

    def _on_hello(self, request: Request) -> Answer:
        self._level = min(self._table.level, int(request["level"][1:]))
        self._heap.defers = self._level >= _STREAMS
        if request.get("edition", self._edition) != self._edition:
            return {"refused": f"{self._name} is of edition {self._edition}, not {request['edition']}"}
        about = {"version": VERSION, "name": self._name, "level": f"L{self._table.level}", "edition": self._edition}
        blobs = {"blobs": True} if self._blob_table else {}
        streams = {"defers": True, "streams": True} if self._heap.defers else {}
        return {**about, "offers": ["own_buffer", "drop"], **blobs, **streams}

    def _on_new(self, request: Request) -> Answer:
        handle, size = c_void_p(), request["size"]
        reason = _reason("create", self._table.create(byref(self._heap.table), size, byref(handle)), _RESULT())
        answer = self._acted()
        self._check("create")
        if reason:
            return {**answer, "refused": reason}
        memory = self._objects["memory"][request["memory"]] = _Object(self._table.destroy, handle, size)
        return answer | self._shown(memory)

    def _on_state(self, request: Request) -> Answer:
        return self._shown(self._object(request))

    def _on_buffer(self, request: Request) -> Answer:
        self._heap.buffer(request["buffer"], request["side"], bytes.fromhex(request["bytes"]))
        return {}

    def _on_write_buffer(self, request: Request) -> Answer:
        buffer = self._heap.buffers[request["buffer"]]
        self._heap.write(buffer.side, buffer.address, bytes.fromhex(request["bytes"]))
        return {}

    def _on_read_buffer(self, request: Request) -> Answer:
        buffer = self._heap.buffers[request["buffer"]]
        return {"bytes": self._heap.read(buffer.side, buffer.address, buffer.size).hex()}

    def _on_write_view(self, request: Request) -> Answer:
        """Write through the last view."""
        of, key = self._object(request), (request.get("part", ""), request["side"])
        if content := bytes.fromhex(request["bytes"]):  # a memory of zero bytes may have no address
            if key not in of.views:
                raise _RefusedError("no call has returned a view to write through")
            self._heap.write(request["side"], of.views[key], content)
        return self._shown(of)

    def _on_own_buffer(self, request: Request) -> Answer:
        memory, side = self._object(request), request["side"]
        if side not in memory.sides:
            raise _RefusedError(f"there is nothing on the side {side}")
        # Of a part too, the caller says the size of a memory: nobody knows how long what begins there is.
        part = memory.sides[side] + request.get("offset", 0)
        self._own = {request["buffer"]: LentBuffer(side, part, memory.size)}
        return {}

    def _on_drop(self, request: Request) -> Answer:
        of = self._object(request)
        if of.released:
            self._released.remove(request["memory"])
        kind = _kind(request)
        of.destroy(self._objects[kind].pop(request[kind]).handle)
        return self._acted()

    _on_blob_state, _on_write_blob, _on_drop_blob = _on_state, _on_write_view, _on_drop

    def _on_synchronize(self, _request: Request) -> Answer:
        self._heap.wait()
        return {}

    def _object(self, request: Request) -> _Object:
        """The memory or the blob that a request is about."""
        kind = _kind(request)
        if request[kind] not in self._objects[kind]:
            raise _RefusedError(f"there is no such {kind}")
        return self._objects[kind][request[kind]]

    # --- the calls of a memory

    def _call(self, request: Request) -> Answer:
        op, memory = request["op"], self._object(request)
        addresses, side = list(memory.sides.values()), "gpu" if "gpu" in request["op"] else "cpu"
        name = request.get("buffer")
        buffer = None if name is None else self._own.get(name) or self._heap.buffers[name]
        self._argue(self._arguments, abi.CALLS.index(op), request, buffer)
        self._arguments.stream = request.get("stream", 0)
        ctypes.memset(byref(self._result), 0, ctypes.sizeof(self._result))
        reason = self._ask(self._table.call, memory, self._arguments, self._result, request)
        memory.sides |= self._heap.newest
        memory.sides = {
            content: address for content, address in memory.sides.items() if not self._heap.is_freed(address)
        }
        answer = self._acted()
        if reason:
            answer["refused"] = reason
        elif op == "release":
            self._release(request["memory"], memory)
        elif buffer is not None:
            if not self._heap.was_in_freed(buffer.address):  # else it has freed its own block, and kept it
                memory.sides[side] = buffer.address
        elif op in RETURNING:
            answer |= self._view(memory, ("", side), self._result.view, memory.size)
            others = [address for other, address in memory.sides.items() if other != side]
            if self._result.view and self._level >= _BYTES and self._result.view not in others:
                memory.sides[side] = self._result.view
        self._check(op, addresses, memory.sides.values())
        return answer | self._shown(memory)

    def _argue(self, arguments: Any, call: int, request: Request, buffer: LentBuffer | None) -> None:
        """Set the arguments that all calls have."""
        arguments.call, arguments.mode = call, abi.MODES[request["mode"].lower()]
        arguments.data, arguments.data_size, arguments.data_kind = (
            (None, 0, SIDES["cpu"]) if buffer is None else (buffer.address, buffer.size, SIDES[buffer.side])
        )

    def _ask(self, function: Any, of: _Object, arguments: Any, result: Any, request: Request) -> str:
        """Make a call; why it was refused or failed, or nothing."""
        self._heap.fail, self._heap.partial = request.get("fail", 0), request.get("partial", False)
        status = function(of.handle, byref(arguments), byref(result))
        self._heap.fail = 0
        return _reason("call", status, result)

    def _check(self, op: str, *addresses: Iterable[int]) -> None:
        """Refuse to go on after the library did what no port may do."""
        if sentence := self._heap.misdeed(address for some in addresses for address in some):
            raise LibraryError(f"in {op} {sentence}")

    def _acted(self) -> Answer:
        """The actions since they were last shown, from their level on."""
        actions, self._heap.actions = self._heap.actions, []
        self._heap.newest.clear()
        return {"actions": actions} if self._level >= _ACTIONS else {}

    def _release(self, number: int, memory: _Object) -> None:
        memory.sides.clear()
        if not memory.released:
            memory.released = True
            self._released.append(number)
        if len(self._released) > _KEPT:
            self._table.destroy(self._objects["memory"].pop(self._released.popleft()).handle)

    def _view(self, of: _Object, key: tuple[str, str], address: int | None, size: int) -> Answer:
        """What a view of a part and a side shows that a call returned."""
        if self._level < _BYTES:
            return {}
        if not address:
            return {"view": None if size else ""}
        of.views[key] = address
        return {"view": self._heap.read(key[1], address, size).hex()}

    def _shown(self, memory: _Object) -> Answer:
        """What is seen of a memory or of a blob."""
        if memory.type:
            return self._blob_shown(memory)
        if memory.released:
            return {}
        seen = self._state
        ctypes.memset(byref(seen), 0, ctypes.sizeof(seen))
        self._table.state(memory.handle, byref(seen))
        shown: Answer = {"head": _head(seen.head), "size": seen.size}
        shown |= {name: bool(seen.flags & bit) for name, bit in abi.FLAGS.items() if seen.known_flags & bit}
        if self._level >= _BYTES:
            shown |= {side: self._heap.read(side, content, memory.size).hex() for side, content in memory.sides.items()}
        return shown

    # --- blobs

    def _on_new_blob(self, request: Request) -> Answer:
        if self._blob_table is None:
            raise _RefusedError(f"{self._name} has no blobs")
        handle, heap = c_void_p(), self._heap
        status = self._blob_table.create(
            byref(heap.table), heap.launch, [*abi.BLOB_TYPES].index(request["type"]), byref(handle)
        )
        if reason := _reason("create", status, _BLOB_RESULT()):
            return {**self._acted(), "refused": reason}
        destroy = self._blob_table.destroy
        blob = self._objects["blob"][request["blob"]] = _Object(destroy, handle, type_=request["type"])
        if request["shape"] is None:
            return self._acted() | self._shown(blob)
        return self._on_blob_call({**request, "call": "reshape", "numbers": request["shape"], "sequence": True})

    def _on_blob_call(self, request: Request) -> Answer:
        call, blob = request["call"], self._object(request)
        addresses, result = list(blob.sides.values()), _BLOB_RESULT()
        numbers, other, name = request.get("numbers", ()), request.get("other"), request.get("buffer")
        arguments = _BLOB_ARGUMENTS(
            options=sum(bit for option, bit in abi.OPTIONS.items() if request.get(option)),
            count=len(numbers),
            numbers=(c_int64 * len(numbers))(*numbers),
            factor=float(request.get("factor", 0)),
            other=None if other is None else self._object({"blob": other}).handle,
        )
        buffer = None if name is None else self._heap.buffers[name]
        self._argue(arguments, abi.BLOB_CALLS.index(call), request, buffer)
        reason = self._ask(self._blob_table.call, blob, arguments, result, request)
        answer, shown = self._acted(), self._shown(blob)
        answer |= {"refused": reason} if reason else self._returned(blob, call, result, shown)
        self._check(call, addresses, blob.sides.values())
        return answer | shown

    def _returned(self, blob: _Object, call: str, result: Any, shown: Answer) -> Answer:
        """What a call returned: a text, a number or a view."""
        if call == "shape_string":
            return {"value": (result.text or b"").decode(errors="replace")}
        if call in NUMBERS:
            if not math.isfinite(result.number):
                return {"value": str(result.number)}
            return {"value": int(result.number) if call in WHOLE or "int" in blob.type else result.number}
        if call == "gpu_shape":
            return self._view(blob, (call, "gpu"), result.view, 4 * len(shown["shape"]))
        if call not in VIEWS:
            return {}
        return self._view(blob, VIEWS[call], result.view, shown["count"] * abi.BLOB_TYPES[blob.type])

    def _blob_shown(self, blob: _Object) -> Answer:
        """What is seen of a blob."""
        seen = _BLOB_STATE()
        self._blob_table.state(blob.handle, byref(seen))
        blob.sides.clear()
        shown: Answer = {"shape": seen.shape[: seen.axes], "count": seen.count, "capacity": seen.capacity}
        for name in ("data", "diff"):
            part = getattr(seen, name)
            head = _head(part.head)
            shown |= {name: part.memory, f"{name}_head": head, f"{name}_size": part.size}
            for side, heads in _FRESH.items():
                if address := getattr(part, side):
                    blob.sides[name, side] = address
                    if head in heads and self._level >= _BYTES:
                        shown[f"{name}_{side}"] = self._heap.read(side, address, part.size).hex()
        return shown


def _kind(request: Request) -> str:
    """The field with the number of what a request is about."""
    return "memory" if "memory" in request else "blob"


def _head(number: int) -> str:
    return abi.HEADS[number] if number < len(abi.HEADS) else str(number)


def _reason(function: str, status: int, result: Any) -> str:
    """Why a call was refused or failed; empty if it was not."""
    if status == abi.STATUSES["OK"]:
        return ""
    if status not in abi.STATUSES.values():
        raise LibraryError(f"{function} returned {status}, which is none of SMP_OK, SMP_REFUSED and SMP_FAILED")
    if result.message:
        return str(result.message.decode(errors="replace"))
    if status == abi.STATUSES["FAILED"]:
        return "an action failed"
    return abi.REFUSALS.get(getattr(result, "refusal", 0), "refused")
