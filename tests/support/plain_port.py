"""A port in plain Python that can fail on request, so its level is L3; its device is a bytearray too."""

from __future__ import annotations

import json
import sys
from typing import Any

OTHER, HEAD = {"cpu": "gpu", "gpu": "cpu"}, {"cpu": "HEAD_AT_CPU", "gpu": "HEAD_AT_GPU"}
HELLO = {"version": 1, "name": "plain_port.py", "level": "L3", "offers": ["drop"]}


class Memory:
    def __init__(self, size: int) -> None:
        self.size, self.head, self.pinned, self.fail, self.partial = size, "UNINITIALIZED", False, 0, False
        self.actions: list[Any] = []
        self.data: dict[str, Any] = {"cpu": None, "gpu": None}
        self.own = {"cpu": False, "gpu": False}

    def act(self, action: str, target: Any = None, content: bytes = b"") -> None:
        """Zero or copy; the kit may want this to fail, also half-way."""
        self.fail -= 1
        failed = self.fail == 0
        self.actions.append({"action": action, "failed": failed})
        content = content[: len(content) // 2 * self.partial] if failed else content
        if content:
            target[: len(content)] = content
        if failed:
            raise MemoryError(f"{action} was told to fail")

    def free(self, side: str) -> None:
        if self.own[side]:
            self.act(f"free_{side}")
            self.data[side], self.own[side] = None, False

    def bring(self, side: str, mode: str, copy: str) -> None:
        """Make a side fresh; if an action fails, undo those before it."""
        here, new, first = self.data[side], self.data[side] is None, self.head == "UNINITIALIZED"
        if new:
            self.act(f"allocate_{side}")
            here = bytearray(b"\xee" * self.size)
        try:
            content = bytes(self.size) if first else self.data[OTHER[side]][: self.size]
            self.act(f"zero_{side}" if first else copy, here, content)
        except MemoryError:
            if new:
                self.act(f"free_{side}")
            raise
        self.data[side], self.own[side], self.head = here, self.own[side] or new, HEAD[side] if first else "SYNCED"
        if new and side == "cpu":
            self.pinned = mode == "GPU"

    def call(self, op: str, mode: str, buffer: str | None = None, **how: Any) -> None:
        self.actions, self.fail, self.partial = [], how.get("fail", 0), how.get("partial", False)
        side = "gpu" if "gpu" in op else "cpu"
        if op == "release":
            self.free("cpu")
            self.free("gpu")
        elif op.startswith("set"):
            if buffer is None:
                raise ValueError("there is no buffer")
            self.free(side)
            self.data[side], self.head = buffers[buffer], HEAD[side]
        elif op == "async_gpu_push" and self.head != "HEAD_AT_CPU":
            raise ValueError(f"the head is {self.head}")
        else:
            if self.head not in (HEAD[side], "SYNCED"):
                self.bring(side, mode, "copy_to_gpu_async" if op == "async_gpu_push" else f"copy_to_{side}")
            self.head = HEAD[side] if op.startswith("mutable") else self.head

    def state(self, op: str) -> dict[str, Any]:
        shown = {side: None if data is None else data[: self.size].hex() for side, data in self.data.items()}
        flags = {"own_cpu_data": self.own["cpu"], "own_gpu_data": self.own["gpu"], "cpu_malloc_use_cuda": self.pinned}
        seen = {"view": shown["gpu" if "gpu" in op else "cpu"], "actions": self.actions} if op not in OTHERS else {}
        return {"head": self.head, "size": self.size, **flags, **shown, **seen}


memories: dict[int, Memory] = {}
buffers: dict[str, bytearray] = {}
OTHERS = ("state", "write_view")


def optional(op: str, memory: int, **fields: Any) -> dict[str, Any]:
    if op == "own_buffer":
        buffers[fields["buffer"]] = memories[memory].data[fields["side"]]
        return {}
    memories[memory].call("release", "CPU")
    return {"actions": memories.pop(memory).actions}


def answer(op: str, memory: int = 0, **fields: Any) -> dict[str, Any]:
    if op == "hello":
        return HELLO
    if op in ("buffer", "write_buffer"):
        content = bytes.fromhex(fields["bytes"])
        buffers.setdefault(fields["buffer"], bytearray(content))[: len(content)] = content
    if op == "read_buffer":
        return {"bytes": buffers[fields["buffer"]].hex()}
    if op == "new":
        memories[memory] = Memory(fields["size"])
    if memory not in memories:
        return {}
    if op in ("own_buffer", "drop"):
        return optional(op, memory, **fields)
    try:
        if op == "write_view":
            content = bytes.fromhex(fields["bytes"])
            memories[memory].data[fields["side"]][: len(content)] = content
        elif op not in ("new", "state"):
            memories[memory].call(op, **fields)
    except (MemoryError, ValueError) as error:
        return {"refused": str(error), **memories[memory].state(op)}
    return memories[memory].state(op)


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        number = request.pop("id")
        sys.stdout.write(json.dumps({"id": number, **answer(**request)}) + "\n")
        sys.stdout.flush()
