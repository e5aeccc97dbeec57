"""Ports that wait wrongly for a push, in one of the calls that must wait.

``python wrong_waits.py KIND CALL`` speaks the protocol, as safe_port.py does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from safe_port import Memory, SafePort, serve

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KINDS", "WrongWaits"]

KINDS: dict[str, Callable[[int, list[int]], list[int]]] = {
    "a stream that nobody uses": lambda _, others: [max(others, default=0) + 1000],
    "the stream of another memory": lambda own, others: others[-1:] or [own],
    "the last stream": lambda own, others: [max(own, *others)] if others else [own],
    "the first stream": lambda own, others: [min(own, *others)] if others else [own],
    "every other stream": lambda own, others: others or [own],
    "the default stream": lambda *_: [0],
    "none": lambda *_: [],
    "too early": lambda *_: [],
    "after the free": lambda *_: [],
}
"""For which streams each kind waits, by the stream of the memory's own push and by those of others."""


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
        others = [
            other.stream
            for other in self.memories.values()
            if other is not memory and other.stream not in (None, memory.stream)
        ]
        for stream in KINDS[self.kind](memory.stream, [stream for stream in others if stream is not None]):
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
