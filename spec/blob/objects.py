"""Blobs that are objects of Python: steps become calls of their methods, over allocators that record."""

from __future__ import annotations

import gc
from array import array
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from syncedmem.model import using_mode

from ..engine.call_log import InjectedInterrupt, recorded
from ..engine.contents import put
from ..engine.heads import head_name
from ..engine.subject import check_maker
from ..engine.violation import UnfitError, Violation
from ..record.observation import Observation
from ..subjects.objects import told
from ..subjects.python import family_of
from .elements import decoded, pour, shown
from .oracle import ACCESSORS, ADOPTIONS, NORMS, content_of
from .python import BlobDone, statements
from .seen import SIDES, BlobSeen, BlobsSeen, MemorySeen
from .steps import PARTS, Exported, Lent, Message, Other

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from syncedmem.model import Mode

    from ..engine.actions import Allocated
    from ..engine.subject import Subject
    from .steps import BlobStep

__all__ = ["ObjectBlobs"]

_VALUED = (*NORMS, "data_at", "diff_at", "gpu_shape")


class ObjectBlobs:
    """The blobs of a maker in Python, and the buffers of their caller."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._safe = subject.profile == "safe"
        self._sees_bytes = subject.level >= "L1"
        self._sees_views = subject.level >= "L4"
        self.begin()

    def begin(self) -> None:
        """Let a new case begin."""
        self._log, *allocators = recorded(self._subject)
        keywords = map(self._subject.keyword, self._subject.machine.sides)
        self._allocators = dict(zip(keywords, allocators, strict=True))
        self._blobs: dict[int, Any] = {}
        self._dtype = ""
        self._lent: list[Any] = []
        self._done: list[BlobDone] = []

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the statements that led to it."""
        return Violation(requirement, message, self.program())

    def program(self) -> tuple[str, ...]:
        """The steps of this case, as a program in Python."""
        return statements(self._done, self._subject)

    def collected(self) -> Mapping[Any, Allocated]:
        """What is allocated after the garbage was collected, which takes long."""
        gc.collect()
        return self._log.blocks

    def repeat(self, done: Sequence[BlobDone]) -> None:
        """Do steps again that were done elsewhere; nobody looks."""
        for step, mode, _ in done:
            self.perform(step, mode)

    def perform(self, step: BlobStep, mode: Mode, look: Collection[int] = ()) -> BlobsSeen:
        """Do a step in a mode, and look at some blobs: at everything that their heads say is fresh."""
        self._done.append(BlobDone(step, mode))
        seen = BlobsSeen()
        parts: tuple[Callable[[BlobsSeen], None], ...] = (
            partial(self._do, step, mode),
            partial(self._look, look, mode),
        )
        for part in parts:
            try:
                if not seen.broken or seen.called.refused is not None:
                    part(seen)
            except (Violation, UnfitError):
                raise
            except Exception as error:  # noqa: BLE001 -- whatever a subject raises where it is looked at
                seen.broken = seen.broken or told(error)
        seen.called = seen.called.at(self._subject.level)
        return seen

    # --- making a call

    def _do(self, step: BlobStep, mode: Mode, seen: BlobsSeen) -> None:
        if step.call == "drop":
            self._tell(written=False)
            self._blobs.clear()
            self._lent.clear()
            seen.called = self._acted(0, "")
            return
        given = [self._prepared(step, argument) for argument in step.arguments]
        self._tell(written=False)
        start = len(self._log.calls)
        refused, result = self._tried(step, mode, given)
        seen.called = self._acted(start, refused, blown=bool(step.fail and self._log.moves.blown))
        if not refused and step.call in ACCESSORS and self._sees_bytes:
            self._view(step, mode, result, seen)
        elif not refused and (step.is_valued or step.call in _VALUED):  # another result may be the blob itself
            seen.value = self._value(step, result)

    def _tell(self, *, written: bool) -> None:
        """Tell the journal what is about to be done: the last step, or what it writes through its view."""
        if self._subject.journal is not None:
            *earlier, last = self._done
            if not written and last.step.call in ACCESSORS:
                last = last._replace(step=last.step._replace(elements=0))
            self._subject.journal([*earlier, last])

    def _tried(self, step: BlobStep, mode: Mode, given: Sequence[Any]) -> tuple[str, Any]:
        """Make a call that may be refused or fail: the error as a text, and what was returned."""
        try:
            with using_mode(mode), self._log.moves.armed(step.fail) if step.fail else nullcontext():
                result = self._made(step) if step.call == "new" else self._called(step, given)
        except Violation:
            raise
        except (Exception, InjectedInterrupt, SystemExit) as error:  # noqa: BLE001 -- subjects may raise any error
            self._done[-1] = self._done[-1]._replace(raised=family_of(error))
            if step.call == "new":
                check_maker(self._subject, None, error, ACCESSORS, step.arguments, ("dtype", *self._allocators))
            return told(error), None
        if step.call == "new":
            check_maker(self._subject, result, None, ACCESSORS, step.arguments, ("dtype", *self._allocators))
            self._blobs[step.blob] = result
        return "", result

    def _made(self, step: BlobStep) -> Any:
        self._dtype = self._dtype or step.dtype
        make: Any = self._subject.make
        return make(*step.arguments, dtype=step.dtype, **self._allocators)

    def _called(self, step: BlobStep, given: Sequence[Any]) -> Any:
        attribute: Any = getattr(self._blobs[step.blob], step.call)
        arguments = [self._resolved(step, argument) for argument in given]
        return attribute(*arguments, **dict(step.options)) if callable(attribute) else attribute

    def _prepared(self, step: BlobStep, given: Any) -> Any:
        """An argument that is made before the call."""
        if isinstance(given, Message):
            return self._message(given)
        return self._lend(given, step) if isinstance(given, Lent) and given.form != "memory" else given

    def _resolved(self, step: BlobStep, given: Any) -> Any:
        """An argument that is another blob, or a call that is made in this one."""
        if isinstance(given, Other):
            return self._blobs[given.blob]
        if isinstance(given, Lent):
            return self._blobs[step.blob].data_memory
        if not isinstance(given, Exported):
            return given
        call = "gpu_shape" if given.part == "shape" else f"mutable_{ADOPTIONS[step.call][1]}_{given.part}"
        return getattr(self._blobs[given.blob], call)()

    def _lend(self, given: Lent, step: BlobStep) -> Any:
        """An object of the caller, which keeps it."""
        device, size = self._subject.device, given.size
        forms: dict[str, Callable[[], Any]] = {
            "": lambda: self._buffer(step),
            "bytearray": lambda: bytearray(size),
            "doubles": lambda: array("d", bytes(size)),
            "read-only": lambda: bytes(size),
            "device": lambda: device and device.empty(size),
        }
        self._lent.append(forms.get(given.form, object)())
        return self._lent[-1]

    def _buffer(self, step: BlobStep) -> Any:
        """A buffer of the blob's size, on the side of a call, with numbers; some object if there is no device."""
        side, content = ADOPTIONS[step.call][1], content_of(step, self._dtype)
        if side == "cpu":
            return bytearray(content)
        if self._subject.device is None:
            return object()
        there = self._subject.device.empty(len(content))
        put(self._subject, there, content)
        return there

    def _message(self, given: Message) -> Any:
        make: Any = self._subject.make
        written = make((1,), dtype=self._dtype, host=self._subject.host, device=self._subject.device).to_proto()
        message = type(written)()
        for name, value in given.fields:
            *inside, last = name.split(".")
            place = message.shape if inside else message
            if isinstance(value, tuple):
                getattr(place, last).extend(value)
            else:
                setattr(place, last, value)
        return message

    # --- what was seen

    def _acted(self, start: int, refused: str, *, blown: bool = False) -> Observation:
        """What was done to blocks since the log had so many calls, and whether it was refused."""
        stray = tuple(self._log.stray)
        return Observation(
            refused=refused,
            actions=tuple(call._replace(stream=None) for call in self._log.calls[start:]),
            live=self._log.blocks,
            wrong=tuple(("B60-nothing-left", sentence) for _, sentence in stray),
            blown=blown,
        )

    def _value(self, step: BlobStep, result: Any) -> Any:
        """What a call returned, as data."""
        if step.call == "to_proto":
            double = "double_" if self._dtype == "float64" else ""
            return tuple(result.shape.dim), *(tuple(getattr(result, f"{double}{part}")) for part in PARTS)
        if step.call == "gpu_shape" and self._sees_bytes:
            try:
                return decoded(shown(result), "int32")
            except Exception as error:  # noqa: BLE001 -- whatever a view raises that cannot be read
                return f"no 32-bit integers: {told(error)}"
        return tuple(result) if step.call == "shape" else result

    def _view(self, step: BlobStep, mode: Mode, view: Any, seen: BlobsSeen) -> None:
        """What a view shows; then it is written."""
        _, side, writes = ACCESSORS[step.call]
        held = shown(view)
        seen.called = seen.called._replace(view=held)
        if held and side == "cpu":
            seen.shape = memoryview(view).shape
        if held and self._sees_views:
            with using_mode(mode):
                seen.twice = getattr(self._blobs[step.blob], step.call)() is view
        if writes and step.elements:
            self._tell(written=True)
            pour(view, content_of(step, self._dtype))

    def _look(self, look: Collection[int], mode: Mode, seen: BlobsSeen) -> None:
        memories: dict[int, tuple[Any, str]] = {}
        for n in look:
            blob = self._blobs[n]
            shape, count, names = tuple(blob.shape), blob.count, list[int]()
            for part in PARTS:
                memory = getattr(blob, f"{part}_memory")
                names.append(id(memory))
                memories[id(memory)] = memory, head_name(self._subject.machine, memory.head)
            seen.blobs[n] = BlobSeen(shape, count, blob.capacity if self._safe else None, *names)
        with using_mode(mode):
            for name, (memory, head) in memories.items():
                start, size = len(self._log.calls), memory.size
                fresh = SIDES.get(head, ()) if self._sees_bytes else ()
                held = {side: shown(getattr(memory, f"{side}_data")()) for side in fresh}
                seen.memories[name] = MemorySeen(head, size, held, len(self._log.calls) > start)
