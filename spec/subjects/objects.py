"""Memories that are objects of Python: steps become calls of their methods, over allocators that record."""

from __future__ import annotations

import gc
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Mode, caffe, using_mode

from ..engine.call_log import InjectedInterrupt, recorded
from ..engine.contents import Watched, fetch, put, shown
from ..engine.heads import head_name
from ..engine.run import check_maker
from ..engine.violation import UnfitError, Violation
from ..record.observation import NOTHING, Action, Allocated, Observation
from ..record.steps import CANARY, OWN, content
from .python import Statements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from syncedmem.model import Call

    from ..engine.call_log import AllocatorCall, CallLog
    from ..engine.subject import Subject
    from ..record.steps import Buffer, Step

__all__ = ["UNREADABLE", "ObjectMemories"]

UNREADABLE = "R10-same-bytes"
"""The requirement of a view that cannot be read."""
_STRAY = {"external": "R18-external-not-freed", "pinned": "R25-pinned-frozen", "stray": "R28-freed-once"}
"""The requirement of a wrong free, by its kind."""


class _Lent(NamedTuple):
    """A buffer of the caller: its side, the bytes of it that a memory uses, all of its bytes, and the object."""

    side: str
    used: int
    size: int
    buffer: Any


@dataclass
class _Made:
    """A memory, and what it did through its allocators.

    Attributes
    ----------
    size : int
        In bytes.
    log : CallLog
    memory : object
    adopted : dict of str to str
        The name of the buffer that each side has adopted.
    views : dict of str to object
        The view of each side that was returned last.
    seen : (int, int, int)
        How much of the log was told: calls, wrong frees, early frees.
    """

    size: int
    log: CallLog
    memory: Any = None
    adopted: dict[str, str] = field(default_factory=dict[str, str])
    views: dict[str, Any] = field(default_factory=dict[str, Any])
    seen: tuple[int, int, int] = (0, 0, 0)


class ObjectMemories:
    """The memories of a maker in Python, and the buffers and streams of their caller.

    Parameters
    ----------
    subject : Subject
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._machine = subject.machine
        self._flags = [it.name for it in self._machine.facts.values() if it.flag or it.means in ("owned", "pinned")]
        self._applied: dict[str, str] = {}
        self._forget()

    def _forget(self) -> None:
        self._memories: dict[int, _Made] = {}
        self._over: set[int] = set()
        self._buffers: dict[str, _Lent] = {}
        self._streams: dict[int, tuple[str, Any]] = {}
        self._done: list[Step] = []
        self._statements = Statements(self._subject)

    def begin(self) -> None:
        """Let a new case begin."""
        self._forget()

    @property
    def defers(self) -> bool:
        """Whether a push happens only when somebody waits for it."""
        return self._subject.defers

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the statements that led to it."""
        return Violation(requirement, message, self.program())

    def program(self) -> tuple[str, ...]:
        """The steps of this case, as a program in Python."""
        return Statements(self._subject).add(*self._done).complete()

    # --- steps

    def perform(
        self, step: Step, settings: Mapping[str, str], sides: Collection[str], buffers: Collection[str]
    ) -> Observation:
        """Do a step; see `syncedmem.spec.subjects.performer.Performer`."""
        self._done.append(step)
        if self._subject.journal is not None:
            self._subject.journal((), self._statements.add(step).lines)
        try:
            return self._done_and_seen(step, settings, sides, buffers).at(self._subject.level)
        except (Violation, UnfitError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a subject raises where it is looked at
            made = self._memories.get(step.memory)
            requirement = "R10-same-bytes" if made is None or made.size else "R44-size-zero"
            return Observation(wrong=((requirement, f"inspecting the memory raised {_told(error)}"),))

    def _done_and_seen(
        self, step: Step, settings: Mapping[str, str], sides: Collection[str], buffers: Collection[str]
    ) -> Observation:
        if step.does == "set":
            return NOTHING
        if step.does == "new":
            return self._new(step, settings)
        it = self._memories[step.memory]
        if step.does == "call":
            return self._call(it, step, settings, sides, buffers)
        if step.does == "drop":
            del self._memories[step.memory]
            it.memory, it.views = None, {}
            gc.collect()
            return self._acted(it)
        wrong = self._do_outside(step)
        if step.quiet or step.memory in self._over:
            return Observation(wrong=wrong)
        return self._shown(it, sides, buffers, Observation(wrong=wrong))

    def _do_outside(self, step: Step) -> tuple[tuple[str, str], ...]:
        """Do what is no call: wait for every push, or write into a buffer of the caller; a look does nothing."""
        if step.does == "wait":
            return tuple(self._land())
        if step.does == "write" and step.argument is not None:
            lent = self._buffers[step.argument.name]
            put(self._subject, lent.buffer, content(step.write or 0, lent.used), lent.side)
        return ()

    def _land(self) -> Iterator[tuple[str, str]]:
        """Wait for every push; what is wrong with one that fails."""
        for side, stream in self._streams.values():
            place = self._subject.place(side)
            if place is None or stream is None:
                continue
            try:
                place.record(stream).synchronize()
            except Exception as error:  # noqa: BLE001 -- any error of a device about memory that was freed
                yield "R42-in-flight-not-freed", f"the push failed: {error}"

    def _new(self, step: Step, settings: Mapping[str, str]) -> Observation:
        log, *allocators = recorded(self._subject)
        it = self._memories[step.memory] = _Made(step.size, log)
        named = dict(zip(map(self._subject.keyword, self._machine.sides), allocators, strict=True))
        raised, it.memory = self._made(self._subject.make, settings, (step.size,), named)
        check_maker(self._subject, it.memory, raised, self._machine.calls, (step.size,), named)
        acted = self._acted(it, raised)
        return acted if raised is not None else self._shown(it, (), (), acted)

    def _call(
        self,
        it: _Made,
        step: Step,
        settings: Mapping[str, str],
        sides: Collection[str],
        buffers: Collection[str],
    ) -> Observation:
        call = self._machine.calls[step.name]
        method = getattr(it.memory, "close" if call.ends and self._subject.is_caffe else call.name)
        arguments, named = self._arguments(it, step, call)
        device = self._subject.device
        current = None if device is None else device.current_ordinal()
        with it.log.moves.armed(step.fail, partial=step.how == "half") if step.fail else nullcontext():
            raised, view = self._made(method, settings, arguments, named)
        wrong = () if device is None else self._restored(current, device.current_ordinal())
        acted = self._acted(it, raised, wrong)
        if raised is None and call.does == "adopt" and step.argument is not None:
            it.adopted[call.side] = step.argument.name
        if call.ends and raised is None:
            it.adopted, it.views = {}, {}
            self._over.add(step.memory)
        if step.memory in self._over or (raised is not None and step.quiet):
            return acted
        if raised is None and call.shows:
            acted = self._viewed(it, step, call, view, acted)
        if step.quiet:
            sides, buffers = (), ()
        if call.ends:  # a release that failed may have freed one side: then nobody says what can be seen
            with suppress(Exception):
                return self._shown(it, sides, buffers, acted)
            return acted
        return self._shown(it, sides, buffers, acted)

    def _made(
        self, act: Any, settings: Mapping[str, str], arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[BaseException | None, Any]:
        """Make a call that may be refused or fail: the error, or what was returned."""
        for name, value in settings.items():
            if name != caffe.MODE.name and self._applied.get(name) != value and self._subject.setting is not None:
                self._applied[name] = value
                self._subject.setting(name, value)
        mode = settings.get(caffe.MODE.name)
        try:
            with nullcontext() if mode is None else using_mode(Mode[mode]):
                return None, act(*arguments, **named)
        except Violation:
            raise
        except (Exception, InjectedInterrupt, SystemExit) as error:  # noqa: BLE001 -- subjects may raise any error
            return error, None

    @staticmethod
    def _restored(before: Any, now: Any) -> tuple[tuple[str, str], ...]:
        sentence = f"device {before} was current, and now {now} is"
        return (("R50-device-restored", sentence),) if before != now else ()

    # --- arguments

    def _arguments(self, it: _Made, step: Step, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if call.queues:
            side = call.side if call.does == "push" else call.source
            stream = self._stream(step.stream, side)
            return (), {} if self._subject.is_host(side) else {"stream": stream}
        if call.does != "adopt":
            return (), {}
        return (None if step.argument is None else self._handed_in(it, step.argument),), {}

    def _stream(self, number: int, side: str) -> Any:
        """A stream of the device of a side; some object if there is no device."""
        if number not in self._streams:
            place = self._subject.place(side)
            host = self._subject.is_host(side)
            self._streams[number] = side, None if host else object() if place is None else place.stream()
        return self._streams[number][1]

    def _handed_in(self, it: _Made, wanted: Buffer) -> Any:
        """A buffer of the caller, which is made if there is none, or filled again."""
        side = wanted.side
        if wanted.name == OWN:
            own = it.views[side] if side in it.views else it.log.owned(side)[-1]
            return own[wanted.offset :] if wanted.offset else own
        place = self._subject.place(side)
        if place is None:
            return object()
        known = wanted.name in self._buffers
        if not known:
            used = max(it.size + min(wanted.longer, 0), 0)
            size = used + max(wanted.longer, 0)
            buffer = Watched(size) if self._subject.on_host(side) else place.empty(size)
            self._buffers[wanted.name] = _Lent(side, used, size, buffer)
        lent = self._buffers[wanted.name]
        if not known or wanted.content is not None:
            bytes_ = content(wanted.content or 0, lent.used)
            put(
                self._subject,
                lent.buffer,
                bytes_ if known else bytes_ + bytes([CANARY]) * (lent.size - lent.used),
                side,
            )
        return lent.buffer

    # --- what was seen

    def _acted(
        self, it: _Made, raised: BaseException | None = None, wrong: tuple[tuple[str, str], ...] = ()
    ) -> Observation:
        """What was done to blocks since the last step, and whether it was refused."""
        log, (calls, strays, early) = it.log, it.seen
        it.seen = len(log.calls), len(log.stray), len(log.freed_in_flight)
        wrong += tuple((_STRAY[kind], sentence) for kind, sentence in log.stray[strays:])
        wrong += tuple(("R42-in-flight-not-freed", sentence) for sentence in dict.fromkeys(log.freed_in_flight[early:]))
        return Observation(
            refused="" if raised is None else _told(raised),
            actions=tuple(self._action(one) for one in log.calls[calls:]),
            wrong=wrong,
            live=self._live(log),
            flying=self._flying(log),
        )

    def _action(self, one: AllocatorCall) -> Action:
        pinned = one.pinned if one.operation in ("allocate", "free") else None
        return Action(one.operation, one.side, one.source, one.byte_size, pinned, self._number(one.stream), one.block)

    def _number(self, stream: Any) -> Any:
        """The number of a stream of the caller; any other stream is itself."""
        return next((number for number, (_, it) in self._streams.items() if it is stream), stream)

    @staticmethod
    def _live(log: CallLog) -> dict[Any, Allocated]:
        return {key: Allocated(it.side, it.byte_size, it.pinned) for key, (_, it) in log.live.items()}

    def _flying(self, log: CallLog) -> tuple[tuple[Any, str, str], ...]:
        return tuple((self._number(it.stream), *it.sides) for it in log.flying())

    def _viewed(self, it: _Made, step: Step, call: Call, view: Any, acted: Observation) -> Observation:
        """What a view shows; then it is written."""
        it.views[call.side] = view
        if self._subject.level < "L1" or view is None:
            return replace(acted, viewed=view is not None)
        try:
            seen = replace(acted, viewed=True, view=shown(self._subject, view, call.side))
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a view raises that cannot be read
            why = f"reading it raised {type(error).__name__}"
            return replace(acted, viewed=False, wrong=(*acted.wrong, (UNREADABLE, why)))
        if call.writes and step.write is not None:
            put(self._subject, view, content(step.write, it.size), call.side)
        return seen

    def _shown(self, it: _Made, sides: Collection[str], buffers: Collection[str], acted: Observation) -> Observation:
        subject, memory, level = self._subject, it.memory, self._subject.level
        flying = self._flying(it.log)
        landing = {side for *_, side in flying}
        held: dict[str, bytes] = {}
        for side in sides if it.size and level >= "L1" else ():
            owned = it.log.owned(side)
            if side not in landing and side not in it.adopted and owned:
                held[side] = fetch(subject, owned[-1], it.size, side)
        lent = ((name, self._buffers[name]) for name in buffers if level >= "L1" and name in self._buffers)
        head = getattr(memory, "head", None)
        flags = ((name, getattr(memory, name, None)) for name in self._flags)
        return replace(
            acted,
            head=None if head is None else head_name(self._machine, head),
            size=getattr(memory, "size", None),
            flags={name: value for name, value in flags if value is not None},
            sides=held,
            buffers={
                name: fetch(subject, one.buffer, one.size, one.side) for name, one in lent if one.side not in landing
            },
            live=self._live(it.log),
            flying=flying,
        )


def _told(error: BaseException) -> str:
    with suppress(Exception):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__
