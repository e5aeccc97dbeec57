"""A case as the text of a program in Python: for whoever wants to see what was done.  Nothing here is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import caffe

from ..record.steps import CANARY, OWN, UNSUITABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from syncedmem.model import Call

    from ..engine.subject import Subject
    from ..record.steps import Buffer, Step

__all__ = ["Done", "family_of", "program_of", "statements"]

# What `lent` makes stands here a second time, as text, because nothing may be made by running text.  A test runs the
# text of cases of every suite, and compares the calls.
_ROWS = 6
_ODD = {
    "read-only": "bytes({size})",
    "frozen view": "memoryview(bytearray({size})).toreadonly()",
    "spread": "memoryview(bytearray({twice}))[::2]",
    "backwards": "memoryview(bytearray({twice}))[::-1]",
    "columns": "{place}.empty({size}).reshape(6, -1).T",
    "text": "'0' * {size}",
    "number": "12345",
    "object": "object()",
    "host": "bytearray({size})",
    "page-locked": "{place}.pinned_host().empty({size})",
    "elsewhere": "subject.elsewhere.empty({size})",
}
"""Objects that must not be adopted."""
_OWN = {
    "block": "{own}",
    "view": "memoryview({own})",
    "doubles": "memoryview({own}).cast('B').cast('d')",
    "part": "memoryview({own}[:])",
    "ctypes": "(c_char * {size}).from_buffer({own})",
}
"""The own block of a memory on the host, as objects of many kinds."""
_OWN_ON_DEVICE = {"block": "{own}", "view": "{own}.view()", "part": "{own}[:{size}]"}
_STREAMS = {"none": "None", "number": "0", "word": "'stream'", "elsewhere": "subject.elsewhere.stream()"}
"""Objects that are no streams of the device."""


class Done(NamedTuple):
    """A step that was done, and the family of the error that it raised; empty if it raised none."""

    step: Step
    raised: str = ""


def family_of(error: BaseException) -> str:
    """What an error must be suppressed as, so that a program goes on after it."""
    return "Exception" if isinstance(error, Exception) else "BaseException"


def statements(done: Sequence[Done], subject: Subject) -> tuple[str, ...]:
    """The steps of a case as a whole program, with its imports; the last one may raise."""
    text = _Text(subject)
    return program_of([line for k, step in enumerate(done, 1) for line in text.of(step, last=k == len(done))], subject)


_IMPORTS: Mapping[str, tuple[str, ...]] = {
    "array": ("array",),
    "contextlib": ("suppress",),
    "ctypes": ("c_char",),
    "math": ("inf", "nan"),
    "syncedmem.model": ("Mode", "set_mode"),
    "syncedmem.spec.blob.elements": ("encoded", "numbers", "pour"),
    "syncedmem.spec.engine.call_log": ("InjectedInterrupt", "recorded"),
    "syncedmem.spec.engine.contents": ("Watched", "pattern", "put"),
    "types": ("SimpleNamespace",),
}
"""The names that programs may use, by their modules; and ``gc``."""
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def program_of(lines: Sequence[str], subject: Subject) -> tuple[str, ...]:
    """Statements as a whole program, with its imports."""
    used = {name for line in lines for name in _NAME.findall(line)}
    wanted = ((module, [name for name in names if name in used]) for module, names in _IMPORTS.items())
    imports = [f"from {module} import {', '.join(names)}" for module, names in wanted if names]
    return (*["import gc"] * ("gc" in used), *imports, *subject.source.splitlines(), *lines)


@dataclass
class _Names:
    """What is defined in a program until now.

    Attributes
    ----------
    settings, wanted : dict of str to str
        The settings as they are, and as they must be where the next call is made.
    sizes : dict of int to int
        Of memories, in bytes.
    buffers : dict of str to str
    streams : dict of (int or str) to str
    places : dict of str to str
        For each name of a stream the device that it is of.
    views : set of (int, str)
        The memories and sides of which there is a view.
    """

    settings: dict[str, str]
    wanted: dict[str, str]
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    streams: dict[int | str, str] = field(default_factory=dict["int | str", str])
    places: dict[str, str] = field(default_factory=dict[str, str])
    views: set[tuple[int, str]] = field(default_factory=set["tuple[int, str]"])


class _Text:
    """The statements of the steps of a case, and the names in them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._machine = subject.machine
        settings = {setting.name: setting.initial for setting in self._machine.settings.values()}
        self._names = _Names(settings, dict(settings))

    def of(self, done: Done, *, last: bool) -> Iterator[str]:
        """The statements of a step; the error of the last one is not suppressed, unless it was told to fail."""
        step, raised = done
        suppressed = "" if last and not step.fail else raised
        memory = _numbered("memory", step.memory)
        match step.does:
            case "set":
                self._names.wanted[step.name] = step.value
            case "new":
                yield from self._new(step, memory, suppressed)
            case "drop":
                yield f"del {memory}"
            case "forget":
                yield from self._forget("" if step.argument is None else step.argument.name)
            case "queue":
                yield from self._queue(step)
            case "wait":
                yield from (f"{place}.record({stream}).synchronize()" for stream, place in self._names.places.items())
            case "write" if step.argument is not None:
                name = self._names.buffers[step.argument.name]
                yield self._put(step.argument.side, name, step.write or 0, self._names.sizes[step.memory])
            case "call":
                yield from self._call(done, self._machine.calls[step.name], memory, suppressed)
            case _:
                pass

    def _applied(self) -> Iterator[str]:
        """The changes of settings, where the next call is made."""
        for name, value in self._names.wanted.items():
            if self._names.settings[name] != value:
                self._names.settings[name] = value
                mode = name == caffe.MODE.name
                yield f"set_mode(Mode.{value})" if mode else f"subject.setting({name!r}, {value!r})"

    def _new(self, step: Step, memory: str, raised: str) -> Iterator[str]:
        self._names.sizes[step.memory] = step.size
        keywords = [self._subject.keyword(side) for side in self._machine.sides]
        names = [_numbered(keyword, step.memory) for keyword in ("log", *keywords)]
        yield from self._applied()
        yield f"{', '.join(names)}{'' if keywords else ','} = recorded(subject)"
        given = "".join(f", {keyword}={name}" for keyword, name in zip(keywords, names[1:], strict=True))
        checks = ", check_device=True" if step.checks else ""
        yield _within(_around(step, raised), f"{memory} = subject.make({step.size!r}{given}{checks})")

    def _call(self, done: Done, call: Call, memory: str, suppressed: str) -> Iterator[str]:
        step = done.step
        argument, log = "", _numbered("log", step.memory)
        if call.does == "adopt":
            argument = "None"
            if step.argument is not None:
                yield from self._handed_in(step.argument, self._names.sizes[step.memory])
                argument = self._argument(step, step.argument)
        elif call.queues:
            side = call.side if call.does == "push" else call.source
            yield from self._stream(step.stream, side)
            argument = f"stream={self._names.streams[step.stream]}" if step.stream in self._names.streams else ""
        yield from self._applied()
        method = "close" if call.ends and self._subject.is_caffe else call.name
        statement, around = f"{memory}.{method}({argument})", _around(step, suppressed)
        if step.fail:
            how = {"half": ", partial=True", "interrupt": ", InjectedInterrupt"}.get(step.how, "")
            around.insert(0, f"{log}.{'steps' if step.how == 'other' else 'moves'}.armed({step.fail}{how})")
        if call.shows and not done.raised:
            view = _numbered(f"{self._subject.keyword(call.side)}_view", step.memory)
            self._names.views.add((step.memory, call.side))
            yield _within(around, f"{view} = {statement}")
            if call.writes and step.write is not None:
                yield self._put(call.side, view, step.write, self._names.sizes[step.memory])
        else:
            yield _within(around, statement)

    def _argument(self, step: Step, buffer: Buffer) -> str:
        """What is handed in, as an expression."""
        if buffer.name != OWN:
            return self._names.buffers[buffer.name]
        owner, host = self._subject.keyword(buffer.side), self._subject.on_host(buffer.side)
        own = f"{_numbered('log', step.memory)}.owned({buffer.side!r})[-1]"
        if not buffer.form and (step.memory, buffer.side) in self._names.views:
            own = _numbered(f"{owner}_view", step.memory)
        form = (_OWN if host else _OWN_ON_DEVICE).get(buffer.form, "{own}")
        own = form.format(own=own, size=self._names.sizes[step.memory])
        return f"{own}[{buffer.offset}:]" if buffer.offset else own

    def _handed_in(self, buffer: Buffer, size: int) -> Iterator[str]:
        """The statements that make a buffer, or fill it again."""
        if buffer.name == OWN:
            return
        known, place = buffer.name in self._names.buffers, self._subject.place(buffer.side)
        name = self._names.buffers.setdefault(buffer.name, re.sub(r"\W", "_", f"{buffer.name}_buffer"))
        if place is None:
            yield f"{name} = object()"
        elif buffer.form in UNSUITABLE:
            odd = _ODD[buffer.form]
            yield f"{name} = {odd.format(size=size, twice=2 * size, place=self._subject.named(buffer.side))}"
        elif not known:
            yield from self._made(buffer, name, size)
        elif buffer.content is not None:
            yield from self._filled(buffer, name, size)

    def _made(self, buffer: Buffer, name: str, size: int) -> Iterator[str]:
        used = max(size + min(buffer.longer, 0), 0)
        long = used + max(buffer.longer, 0)
        here = self._subject.named(buffer.side)
        if buffer.form in ("", "middle", "rest"):
            make = f"Watched({long})" if self._subject.on_host(buffer.side) else f"{here}.empty({long})"
        else:
            forms = {"doubles": f"array('d', bytes({long}))", "ctypes": f"(c_char * {long})()"}
            make = forms.get(buffer.form, f"Watched({long})" if buffer.form == "rows" else f"{here}.empty({long})")
        part = buffer.form in ("middle", "rest", "rows")
        whole = f"{name}_whole" if part else name
        yield f"{whole} = {make}"
        if long > used:
            yield self._written(buffer.side, whole, f"b'\\x{CANARY:02x}' * {long}")
        if part:
            end = str(buffer.offset + used) if buffer.form == "middle" else ""
            view = f"memoryview({whole})" if self._subject.on_host(buffer.side) else whole
            cut = f".cast('B', ({_ROWS}, {long // _ROWS}))" if buffer.form == "rows" else f"[{buffer.offset}:{end}]"
            yield f"{name} = {view}{cut}"
        yield from self._filled(buffer, name, used)

    def _filled(self, buffer: Buffer, name: str, used: int) -> Iterator[str]:
        if used:
            yield self._put(buffer.side, name, buffer.content or 0, used)

    def _stream(self, number: int | str, side: str) -> Iterator[str]:
        """The statement that makes a stream, or an object that is none; nothing on the host."""
        if number in self._names.streams or (self._subject.is_host(side) and not isinstance(number, str)):
            return
        name = self._names.streams[number] = f"stream_{number}" if isinstance(number, str) else f"stream{number}"
        place = self._subject.named(side)
        if isinstance(number, str):
            yield f"{name} = {_STREAMS.get(number, 'object()')}"
        elif self._subject.place(side) is None:
            yield f"{name} = object()"
        else:
            self._names.places[name] = place
            yield f"{name} = {place}.stream()"

    def _forget(self, name: str) -> Iterator[str]:
        forgotten = [text for key, text in self._names.buffers.items() if name in ("", key)]
        yield f"del {', '.join(forgotten)}" if forgotten else "pass"
        yield "gc.collect()"

    def _queue(self, step: Step) -> Iterator[str]:
        """Work that reads a view on the current stream, behind heavy copies."""
        place, view = self._subject.named(step.name), _numbered(f"{self._subject.keyword(step.name)}_view", step.memory)
        yield f"work, seen = {place}.current_stream(), {place}.empty({self._names.sizes[step.memory]})"
        if step.size:
            yield f"heavy = {place}.empty(1 << 26)"
            yield f"for _ in range({step.size}): {place}.memcpy(heavy[: 1 << 25], heavy[1 << 25 :], 1 << 25, 3, work)"
        yield f"{place}.memcpy({view}, seen, {self._names.sizes[step.memory]}, 3, work)"

    def _put(self, side: str, name: str, number: int, size: int) -> str:
        return self._written(side, name, f"pattern({number}, {size})" if number else f"bytes({size})")

    @staticmethod
    def _written(side: str, name: str, content: str) -> str:
        return f"put(subject, {name}, {content}{'' if side == caffe.GPU else f', {side!r}'})"


def _around(step: Step, raised: str) -> list[str]:
    """What a call is made in: another device is current, and an error that is expected is suppressed."""
    there = ["subject.elsewhere.using()"] if step.elsewhere else []
    return [*there, f"suppress({raised})"] if raised else there


def _within(around: Iterable[str], statement: str) -> str:
    contexts = ", ".join(around)
    return f"with {contexts}: {statement}" if contexts else statement


def _numbered(name: str, number: int) -> str:
    return f"{name}{number + 1}" if number else name
