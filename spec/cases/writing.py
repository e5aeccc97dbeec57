"""Writing cases: the inputs of a machine as steps of one memory, with another content each time."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Self

from ..record.steps import Buffer, Step

if TYPE_CHECKING:
    from syncedmem.model import Input, Machine

    from ..record.steps import Case

__all__ = ["ROOM", "SIZE", "Writer", "reads_of"]

SIZE = 5
"""The size of most memories, in bytes."""
ROOM = 48
"""The size of memories that adopt buffers of many sizes."""
_APART = 60
"""How many contents each memory has for itself."""


def reads_of(machine: Machine, side: str = "") -> list[str]:
    """The calls that read: all, or those of one side."""
    return [call.name for call in machine.calls.values() if call.does == "read" and side in ("", call.side)]


class Writer:
    """Writes the steps of one memory.

    Parameters
    ----------
    machine : Machine
    size : int
        In bytes.
    memory : int
        Its number.
    safe : bool
        Whether the memory waits itself for its pushes; in Caffe the caller must.
    level : str
        How much is observed.
    used : bool
        Whether what is adopted is written by its owner and then read.
    drops : bool
        Whether the memory is dropped at its end.
    """

    def __init__(  # noqa: PLR0913 -- each is for some suites
        self,
        machine: Machine,
        size: int = SIZE,
        memory: int = 0,
        *,
        safe: bool,
        level: str = "L4",
        used: bool = True,
        drops: bool = False,
    ) -> None:
        self.steps: list[Step] = [Step("new", memory, size=size)]
        self._machine = machine
        self._size = size
        self._memory = memory
        self._safe = safe
        self._level = level
        self._used = used
        self._drops = drops
        self._contents = count(1 + _APART * memory)
        self._streams = count(1 + _APART * memory)

    def add(self, *entries: Input, argument: Buffer | None = None, **more: Any) -> Self:
        """Add inputs; what is given besides is of each of their calls."""
        for entry in entries:
            self.steps += self.written(entry, argument=argument, **more)
        return self

    def written(self, entry: Input, *, argument: Buffer | None = None, **more: Any) -> list[Step]:
        """The steps of an input; none if something more is given, which nobody can say from here."""
        if entry.given:
            return []
        if entry.call is None:
            return [Step("set", self._memory, entry.setting, value=entry.value)]
        call, number = entry.call, next(self._contents)
        adopts = call.does == "adopt" and entry.data
        if adopts and argument is None:  # every third buffer is longer than needed
            longer = SIZE if number % 3 == 0 else 0
            argument = Buffer(f"{call.side}{number}", call.side, number, longer)
        stream = more.pop("stream", None) or (next(self._streams) if call.queues else 0)
        write = number if call.writes else None
        steps = [Step("call", self._memory, call.name, argument if adopts else None, write, stream=stream, **more)]
        if call.queues and not self._safe:
            # Below L4 a push may happen as late as this, so it is looked at here.
            steps.append(Step("wait", self._memory, quiet=self._level >= "L4"))
        if adopts and argument is not None and self._used and not more.get("fail") and self._level >= "L1":
            steps.append(Step("write", self._memory, argument=argument, write=next(self._contents), quiet=True))
            there = more.get("elsewhere", False)
            reads = reads_of(self._machine, call.side)[:1]
            steps += (Step("call", self._memory, name, elsewhere=there) for name in reads)
        return steps

    def wait(self) -> Self:
        """Wait for every push."""
        self.steps.append(Step("wait", self._memory))
        return self

    def ends(self) -> list[Step]:
        """The steps that end the memory, if the machine has such a call."""
        ending = [call.name for call in self._machine.calls.values() if call.ends][:1]
        steps = [*(Step("call", self._memory, name) for name in ending), Step("wait", self._memory)]
        return [*steps, Step("drop", self._memory)] if self._drops else steps

    def done(self) -> Case:
        """The case, with the end of the memory."""
        return (*self.steps, *self.ends())
