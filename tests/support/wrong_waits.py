"""Ports that wait wrongly for a push, in one of the calls that must wait.

``python wrong_waits.py KIND CALL`` speaks the protocol, as safe_port.py does.
"""

from __future__ import annotations

import sys
from typing import Any

from safe_port import Memory, SafePort, serve

__all__ = ["KINDS", "WrongWaits"]

KINDS = (
    "a stream that nobody uses",
    "the stream of another memory",
    "the last stream",
    "the first stream",
    "every other stream",
    "the default stream",
    "none",
    "too early",
    "after the free",
)


def awaited(kind: str, own: int, others: list[int]) -> list[int]:
    """For which streams a kind waits, by the stream of the memory's own push and by those of others."""
    streams = {
        "a stream that nobody uses": [max(own, *others, 0) + 1000],
        "the stream of another memory": others[-1:] or [own],
        "the last stream": [max(own, *others, 0)],
        "the first stream": [min([own, *others])],
        "every other stream": others or [own],
        "the default stream": [0],
    }
    return streams.get(kind, [])


class WrongWaits(SafePort):
    """The port; it takes a push for done when it has waited for it, rightly or not."""

    def __init__(self, kind: str, call: str) -> None:
        super().__init__()
        self.kind = kind
        self.wrong = call
        self.op = ""

    def answer(self, op: str, **fields: Any) -> dict[str, Any]:
        self.op = op
        return super().answer(op, **fields)

    def settle(self, memory: Memory) -> None:
        if memory.stream is None or self.op != self.wrong:
            super().settle(memory)
            return
        streams = (other.stream for other in self.memories.values() if other is not memory)
        others = [stream for stream in streams if stream not in (None, memory.stream)]
        for stream in awaited(self.kind, memory.stream, [*filter(None, others)]):
            self.wait(stream)
        memory.stream = None

    def push(self, memory: Memory, mode: str, stream: int) -> None:
        if self.kind == "too early":
            self.wait(stream)
        super().push(memory, mode, stream)

    def release(self, memory: Memory) -> None:
        stream = memory.stream
        super().release(memory)
        if stream is not None and self.kind == "after the free":
            self.wait(stream)


if __name__ == "__main__":
    serve(WrongWaits(*sys.argv[1:]))
