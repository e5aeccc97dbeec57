"""A case of blobs as the text of a program in Python: for whoever wants to see what was done.  Nothing here is run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Mode

from ..subjects.python import program_of
from .calls import CALLS
from .elements import itemsize
from .oracle import ADOPTIONS
from .steps import REFUSED, Exported, Lent, Message, Other, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..engine.subject import Subject
    from .steps import BlobStep

__all__ = ["BlobDone", "statements"]

# What `objects` makes stands here a second time, as text, because nothing may be made by running text.  A test runs the
# text of cases of every suite, and compares the calls.
_LENT = {
    "bytearray": "bytearray({size})",
    "doubles": "array('d', bytes({size}))",
    "read-only": "bytes({size})",
    "device": "subject.device.empty({size})",
    "memory": "{blob}.data_memory",
}
_ATTRIBUTES = frozenset(name for call in CALLS if call.arguments is None for name in call.names)


class BlobDone(NamedTuple):
    """A step that was done, in a mode, and the family of the error that it raised; empty if it raised none."""

    step: BlobStep
    mode: Mode
    raised: str = ""


def statements(done: Sequence[BlobDone], subject: Subject) -> tuple[str, ...]:
    """The steps of a case as a whole program, with its imports; the last one may raise."""
    text = _Text(subject)
    lines = [line for k, step in enumerate(done, 1) for line in text.of(step, last=k == len(done))]
    return program_of(["log, host, device = recorded(subject)", *lines], subject)


class _Text:
    """The statements of steps, and what is defined in them until now."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._mode = Mode.GPU
        self._dtype = ""
        self._blobs: list[str] = []
        self._buffers = 0

    def of(self, done: BlobDone, *, last: bool) -> Iterator[str]:
        """The statements of a step; the error of the last one is not suppressed, unless it has to be raised."""
        step, mode, raised = done
        if step.call == "drop":
            yield f"del {', '.join(self._blobs)}"
            return
        given: list[str] = []
        for argument in step.arguments:
            lines, text = self._argument(step, argument)
            yield from lines
            given.append(text)
        if mode is not self._mode:
            self._mode = mode
            yield f"set_mode(Mode.{mode.name})"
        statement = self._statement(step, [*given, *(f"{option}={value!r}" for option, value in step.options)])
        around = [f"log.moves.armed({step.fail})"] if step.fail else []
        around += [f"suppress({raised})"] if raised and (step.fail or not last or step.expected is REFUSED) else []
        yield f"with {', '.join(around)}: {statement}" if around else statement
        if step.call.startswith("mutable_") and step.elements and not raised and self._subject.level >= "L1":
            yield f"pour(view, {self._content(step)})"

    def _statement(self, step: BlobStep, given: Sequence[str]) -> str:
        name = name_of(step.blob)
        if step.call == "new":
            self._dtype = self._dtype or step.dtype
            self._blobs.append(name)
            return f"{name} = subject.make({', '.join((*given, 'host=host', 'device=device'))})"
        if step.call == "shape_string":
            return f"{name}.shape_string() if callable({name}.shape_string) else {name}.shape_string"
        call = f"{name}.{step.call}" if step.call in _ATTRIBUTES else f"{name}.{step.call}({', '.join(given)})"
        return f"view = {call}" if step.call.startswith("mutable_") else call

    def _content(self, step: BlobStep) -> str:
        dtype = self._dtype
        return (
            f"encoded({step.values!r}, {dtype!r})"
            if step.values
            else f"numbers({step.number}, {step.elements}, {dtype!r})"
        )

    def _argument(self, step: BlobStep, given: Any) -> tuple[list[str], str]:
        """The statements that make an argument, and the argument itself."""
        match given:
            case Other(blob):
                text = name_of(blob)
            case Exported(blob, "shape"):
                text = f"{name_of(blob)}.gpu_shape()"
            case Exported(blob, part):
                text = f"{name_of(blob)}.mutable_{ADOPTIONS[step.call][1]}_{part}()"
            case Lent("", _):
                return self._buffer(step)
            case Lent(form, size):
                text = _LENT.get(form, "object()").format(size=size, blob=name_of(step.blob))
            case Message(fields):
                return [*self._message(fields)], "message"
            case SimpleNamespace():
                text = f"SimpleNamespace(dim={given.dim!r})"
            case _:
                text = repr(given)
        return [], text

    def _buffer(self, step: BlobStep) -> tuple[list[str], str]:
        self._buffers += 1
        name = f"buffer{self._buffers}" if self._buffers > 1 else "buffer"
        if ADOPTIONS[step.call][1] == "cpu":
            return [f"{name} = bytearray({self._content(step)})"], name
        if self._subject.device is None:
            return [f"{name} = object()"], name
        statement = f"{name} = subject.device.empty({step.elements * itemsize(self._dtype)})"
        return [statement, f"put(subject, {name}, {self._content(step)})"], name

    def _message(self, fields: tuple[tuple[str, Any], ...]) -> Iterator[str]:
        maker = f"subject.make((1,), dtype={self._dtype!r}, host=subject.host, device=subject.device)"
        yield f"message = type({maker}.to_proto())()"
        for name, value in fields:
            yield f"message.{name}.extend({[*value]})" if isinstance(value, tuple) else f"message.{name} = {value}"
