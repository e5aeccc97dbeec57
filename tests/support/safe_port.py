"""A right port of the profile safe at L4: pushes happen when somebody waits, and actions say their streams.

``python safe_port.py`` speaks the protocol.  A subclass of `SafePort` replaces a method, to take another freedom or to
be wrong.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SIDES", "Block", "FailedError", "Memory", "RefusedError", "SafePort", "serve"]

Answer = dict[str, Any]

SIDES = ("cpu", "gpu")
OTHER = {"cpu": "gpu", "gpu": "cpu"}
HEAD = {"cpu": "HEAD_AT_CPU", "gpu": "HEAD_AT_GPU"}


class RefusedError(Exception):
    """A call that is refused."""


class FailedError(Exception):
    """An action that was told to fail."""


@dataclass
class Block:
    """Memory of a side: its bytes, where it is, and its number; a buffer of the caller has 0."""

    data: bytearray
    side: str
    number: int = 0


@dataclass
class Memory:
    """A memory; `stream` is that of a push for which it has to wait."""

    size: int
    head: str = "UNINITIALIZED"
    sides: dict[str, Block] = field(default_factory=dict[str, Block])
    pinned: bool = False
    released: bool = False
    stream: int | None = None

    def owns(self, side: str) -> bool:
        """Whether what is on a side is its own."""
        return side in self.sides and self.sides[side].number > 0

    def is_fresh(self, side: str) -> bool:
        """Whether a side has the newest bytes."""
        return self.head in ("SYNCED", HEAD[side])


class SafePort:
    """The port."""

    def __init__(self) -> None:
        self.memories: dict[int, Memory] = {}
        self.buffers: dict[str, Block] = {}
        self.queued: dict[int, list[tuple[Block, Block, int]]] = defaultdict(list)
        self.actions: list[Answer] = []
        self._left = 0
        self._partial = False
        self._blocks = 0

    def answer(self, op: str, **fields: Any) -> Answer:
        """The answer to a request."""
        self.actions, self._left, self._partial = [], fields.get("fail", 0), fields.get("partial", False)
        if on := getattr(self, f"_on_{op}", None):
            found: Answer = on(**fields)
            return found
        memory = self.memories[fields["memory"]]
        told: Answer = {}
        try:
            view = self.call(memory, op, fields)
            told = {} if view is None else {"view": view.data[: memory.size]}
        except (RefusedError, FailedError) as error:
            told = {"refused": str(error)}
        return {**self.shown(memory), **told, "actions": self.actions}

    def shown(self, memory: Memory) -> Answer:
        """What is seen of a memory."""
        if memory.released and not any(map(memory.owns, SIDES)):
            return {}
        flags = {f"own_{side}_data": memory.owns(side) for side in SIDES}
        sides = {side: block.data[: memory.size] for side, block in memory.sides.items()}
        return {"head": memory.head, "size": memory.size, "cpu_malloc_use_cuda": memory.pinned, **flags, **sides}

    # --- requests that are no calls

    def _on_hello(self, **_: Any) -> Answer:
        hello = {"version": 1, "name": "safe_port.py", "level": "L4", "offers": ["own_buffer", "drop"]}
        return {**hello, "defers": True, "streams": True}

    def _on_new(self, memory: int, size: int) -> Answer:
        self.memories[memory] = Memory(size)
        return {**self.shown(self.memories[memory]), "actions": []}

    def _on_state(self, memory: int) -> Answer:
        return self.shown(self.memories[memory])

    def _on_buffer(self, buffer: str, side: str, bytes: str) -> Answer:  # noqa: A002 -- the protocol's word
        self.buffers[buffer] = Block(bytearray.fromhex(bytes), side)
        return {}

    def _on_write_buffer(self, buffer: str, bytes: str) -> Answer:  # noqa: A002 -- the protocol's word
        content = bytearray.fromhex(bytes)
        self.buffers[buffer].data[: len(content)] = content
        return {}

    def _on_read_buffer(self, buffer: str) -> Answer:
        return {"bytes": self.buffers[buffer].data}

    def _on_write_view(self, memory: int, side: str, bytes: str) -> Answer:  # noqa: A002 -- the protocol's word
        content = bytearray.fromhex(bytes)
        self.memories[memory].sides[side].data[: len(content)] = content
        return self.shown(self.memories[memory])

    def _on_synchronize(self) -> Answer:
        for stream in [*self.queued]:
            self.land(stream)
        return {}

    def _on_own_buffer(self, memory: int, side: str, buffer: str, offset: int = 0) -> Answer:
        del offset  # a part is refused like the whole
        self.buffers[buffer] = self.memories[memory].sides[side]
        return {}

    def _on_drop(self, memory: int) -> Answer:
        self.release(self.memories.pop(memory))
        return {"actions": self.actions}

    # --- calls

    def call(self, memory: Memory, op: str, fields: Answer) -> Block | None:
        """Make a call; return the side that it is for."""
        side, mode = "gpu" if "gpu" in op else "cpu", fields["mode"]
        if op == "release":
            self.release(memory)
            return None
        if memory.released:
            raise RefusedError("the memory is released")
        if op == "async_gpu_push":
            self.push(memory, mode, fields["stream"])
            return None
        if op.startswith("set_"):
            self.adopt(memory, side, fields["buffer"])
            return None
        return self.get(memory, side, mode, writes="mutable" in op)

    def get(self, memory: Memory, side: str, mode: str, *, writes: bool) -> Block:
        """A side, for reading or writing; only a read on the host need not wait for a push."""
        if writes or side == "gpu":
            self.settle(memory)
        if not memory.is_fresh(side):
            first = memory.head == "UNINITIALIZED"
            name = f"zero_{side}" if first else f"copy_to_{side}"
            self.bring(memory, side, mode, name)
            memory.head = HEAD[side] if first else "SYNCED"
        if writes:
            memory.head = HEAD[side]
        return memory.sides[side]

    def push(self, memory: Memory, mode: str, stream: int) -> None:
        """Queue a copy to the device."""
        if memory.head != "HEAD_AT_CPU":
            raise RefusedError("the head is not HEAD_AT_CPU")
        self.settle(memory)
        self.bring(memory, "gpu", mode, "copy_to_gpu_async", stream)
        if memory.size:
            self.queued[stream].append((memory.sides["cpu"], memory.sides["gpu"], memory.size))
            memory.stream = stream
        memory.head = "SYNCED"

    def adopt(self, memory: Memory, side: str, name: str | None) -> None:
        """Take a buffer of the caller."""
        buffer = None if name is None else self.buffers[name]
        if buffer is None or buffer.number or buffer.side != side or len(buffer.data) < memory.size:
            raise RefusedError("this buffer cannot be adopted")
        self.settle(memory)
        if memory.owns(side):
            self.free(memory, memory.sides[side])
        memory.sides[side], memory.head = buffer, HEAD[side]

    def release(self, memory: Memory) -> None:
        """Free what the memory owns; from the first side that is freed, it is released."""
        self.settle(memory)
        for side in filter(memory.owns, SIDES):
            self.free(memory, memory.sides[side])
            del memory.sides[side]
            memory.released = True
        memory.released = True

    # --- what calls are made of

    def bring(self, memory: Memory, side: str, mode: str, name: str, stream: int | None = None) -> None:
        """Zero a side or copy to it, on a stream or at once; what is allocated for that is freed if it fails."""
        block, pinned = memory.sides.get(side), mode == "GPU" if side == "cpu" else memory.pinned
        if allocates := block is None:
            self._blocks += 1
            block = Block(bytearray(b"\xdd" * memory.size), side, self._blocks)
            if memory.size:
                kind: Answer = {"pinned": pinned} if side == "cpu" else {}
                self.act(f"allocate_{side}", block=block.number, **kind)
        content = memory.sides[OTHER[side]].data if name.startswith("copy") else bytes(memory.size)
        try:
            if memory.size:
                where: Answer = {} if stream is None else {"stream": stream}
                self.act(name, block, content, **where)
        except FailedError:
            if allocates:
                self.act(f"free_{side}", block=block.number)
            raise
        if stream is None:
            block.data[: memory.size] = content[: memory.size]
        memory.sides[side] = block
        if allocates and side == "cpu":
            memory.pinned = pinned

    def free(self, memory: Memory, block: Block) -> None:
        """Free a block."""
        if memory.size:
            self.act(f"free_{block.side}", block=block.number)

    def settle(self, memory: Memory) -> None:
        """Wait for the push of a memory, if there is one."""
        if memory.stream is not None:
            self.wait(memory.stream)
            memory.stream = None

    def wait(self, stream: int) -> None:
        """Wait for a stream, and say so."""
        self.actions.append({"action": "wait", "stream": stream})
        self.land(stream)

    def land(self, stream: int) -> None:
        """Let the pushes of a stream happen."""
        for source, dest, size in self.queued.pop(stream, ()):
            dest.data[:size] = source.data[:size]

    def act(self, name: str, dest: Block | None = None, content: Any = b"", **more: Any) -> None:
        """Say an action, or fail in it, perhaps after half of its work."""
        self.actions.append({"action": name, **more})
        self._left -= 1
        if self._left == 0:
            if self._partial and dest is not None:
                half = len(content) // 2
                dest.data[:half] = content[:half]
            self.actions[-1]["failed"] = True
            raise FailedError(f"{name} was told to fail")


def serve(port: SafePort) -> None:
    """Answer every request."""
    for text in sys.stdin:
        request = json.loads(text)
        number = request.pop("id")
        line = json.dumps({"id": number, **port.answer(**request)}, default=bytearray.hex)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(SafePort())
