"""A case as the text of a program in Python: for whoever wants to see what was done.  Nothing here is run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

from syncedmem.model import caffe

from ..engine.reproducer import program_of
from ..record.steps import CANARY, OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Call

    from ..engine.subject import Subject
    from ..record.steps import Buffer, Step

__all__ = ["Statements"]


class Statements:
    """The statements of the steps of a case.

    Parameters
    ----------
    subject : Subject

    Attributes
    ----------
    lines : list of str
    """

    def __init__(self, subject: Subject) -> None:
        self.lines: list[str] = []
        self._subject = subject
        self._machine = subject.machine
        self._sizes: dict[int, int] = {}
        self._buffers: dict[str, str] = {}
        self._streams: dict[int, tuple[str, str]] = {}
        self._views: set[tuple[int, str]] = set()
        self._wanted: dict[str, str] = {}
        self._settings = {it.name: it.initial for it in self._machine.settings.values()}

    def add(self, *steps: Step) -> Self:
        """Add the statements of steps."""
        for step in steps:
            self.lines += self._of(step)
        return self

    def complete(self) -> tuple[str, ...]:
        """The whole program, with its imports."""
        return program_of(self.lines, self._subject)

    def _of(self, step: Step) -> Iterator[str]:
        memory = _numbered("memory", step.memory)
        if step.does == "set":
            self._wanted[step.name] = step.value
        elif step.does == "new":
            yield from self._applied()
            yield from self._new(step, memory)
        elif step.does == "drop":
            yield f"del {memory}"
        elif step.does == "wait":
            yield from (f"{place}.record({stream}).synchronize()" for place, stream in self._streams.values())
        elif step.does == "write" and step.argument is not None:
            yield self._put(step.argument.side, self._buffers[step.argument.name], step.write or 0, step.memory)
        elif step.does == "call":
            yield from self._call(step, self._machine.calls[step.name], memory)

    def _applied(self) -> Iterator[str]:
        """The changes of settings, where the next call is made."""
        for name, value in self._wanted.items():
            if self._settings[name] != value:
                self._settings[name] = value
                mode = name == caffe.MODE.name
                yield f"set_mode(Mode.{value})" if mode else f"subject.setting({name!r}, {value!r})"
        self._wanted = {}

    def _new(self, step: Step, memory: str) -> Iterator[str]:
        self._sizes[step.memory] = step.size
        keywords = [self._subject.keyword(side) for side in self._machine.sides]
        names = [_numbered(it, step.memory) for it in ("log", *keywords)]
        yield f"{', '.join(names)}{'' if keywords else ','} = recorded(subject)"
        given = "".join(f", {keyword}={name}" for keyword, name in zip(keywords, names[1:], strict=True))
        yield f"{memory} = subject.make({step.size}{given})"

    def _call(self, step: Step, call: Call, memory: str) -> Iterator[str]:
        argument = ""
        if call.does == "adopt":
            argument = "None"
            if step.argument is not None:
                yield from self._handed_in(step, step.argument)
                argument = self._argument(step, step.argument)
        elif call.queues:
            side = call.side if call.does == "push" else call.source
            yield from self._stream(step.stream, side)
            argument = f"stream={self._streams[step.stream][1]}" if step.stream in self._streams else ""
        yield from self._applied()
        method = "close" if call.ends and self._subject.is_caffe else call.name
        made, log = f"{memory}.{method}({argument})", _numbered("log", step.memory)
        how = ", partial=True" if step.how else ""
        if step.fail:
            yield f"with {log}.moves.armed({step.fail}{how}), suppress(Exception): {made}"
        elif call.shows:
            view = _numbered(f"{self._subject.keyword(call.side)}_view", step.memory)
            self._views.add((step.memory, call.side))
            yield f"{view} = {made}"
            if call.writes and step.write is not None:
                yield self._put(call.side, view, step.write, step.memory)
        else:
            yield made

    def _argument(self, step: Step, buffer: Buffer) -> str:
        if buffer.name != OWN:
            return self._buffers[buffer.name]
        owner = self._subject.keyword(buffer.side)
        known = (step.memory, buffer.side) in self._views
        own = (
            _numbered(f"{owner}_view", step.memory)
            if known
            else f"{_numbered('log', step.memory)}.owned({buffer.side!r})[-1]"
        )
        return f"{own}[{buffer.offset}:]" if buffer.offset else own

    def _handed_in(self, step: Step, buffer: Buffer) -> Iterator[str]:
        if buffer.name == OWN:
            return
        known = buffer.name in self._buffers
        name = self._buffers.setdefault(buffer.name, re.sub(r"\W", "_", f"{buffer.name}_buffer"))
        used = max(self._sizes[step.memory] + min(buffer.longer, 0), 0)
        longer = max(buffer.longer, 0)
        place = self._subject.place(buffer.side)
        if place is None:
            yield f"{name} = object()"
        elif known:
            if buffer.content is not None:
                yield self._put(buffer.side, name, buffer.content, step.memory)
        elif self._subject.on_host(buffer.side):
            around = f" + bytes([{CANARY}]) * {longer}" if longer else ""
            yield f"{name} = Watched({_spelled(buffer.content or 0, used)}{around})"
        else:
            yield f"{name} = {self._subject.named(buffer.side)}.empty({used + longer})"
            yield self._put(buffer.side, name, buffer.content or 0, step.memory)

    def _stream(self, number: int, side: str) -> Iterator[str]:
        if number in self._streams or self._subject.is_host(side):
            return
        place = self._subject.named(side)
        self._streams[number] = place, f"stream{number}"
        yield f"stream{number} = {'object()' if self._subject.place(side) is None else f'{place}.stream()'}"

    def _put(self, side: str, name: str, number: int, memory: int) -> str:
        there = "" if side == caffe.GPU else f", {side!r}"
        return f"put(subject, {name}, {_spelled(number, self._sizes[memory])}{there})"


def _numbered(name: str, number: int) -> str:
    return f"{name}{number + 1}" if number else name


def _spelled(number: int, size: int) -> str:
    return f"pattern({number}, {size})" if number else f"bytes({size})"
