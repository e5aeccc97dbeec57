"""Memories that are objects of Python: steps become calls of their methods, over allocators that record."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Mode, caffe, using_mode

from ..engine.call_log import ON_DEVICE, InjectedFailure, InjectedInterrupt, recorded
from ..engine.contents import fetch, put, shown
from ..engine.heads import head_name
from ..engine.subject import check_maker
from ..engine.violation import UnfitError, Violation
from ..record.observation import NOTHING, Observation
from ..record.steps import OWN, content
from .lent import Lent, LentBuffers
from .python import Done, family_of, statements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from syncedmem.model import Call

    from ..engine.actions import Action
    from ..engine.call_log import CallLog, Fuse
    from ..engine.subject import Subject
    from ..record.steps import Step

    Wrong = tuple[tuple[str, str], ...]

__all__ = ["UNREADABLE", "ObjectMemories", "told"]

UNREADABLE = "R10-same-bytes"
"""The requirement of a view that cannot be read."""
_STRAY = {"external": "R18-external-not-freed", "pinned": "R25-pinned-frozen", "stray": "R28-freed-once"}
"""The requirement of a wrong free, by its kind."""
_HEAVY = 64 << 20
"""The bytes of a block, half of which is copied to the other half to keep a stream busy."""


class _Queued(NamedTuple):
    """Work that was queued before a push: where it copies to, an event after it, and what it must have read."""

    copied: Any
    event: Any
    expected: bytes


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
    returned : dict of str to list
        All views that each call has returned.
    older : dict of str to object
        For each side a view for reading over its present memory.
    seen : (int, int, int)
        How much of the log was told: calls, wrong frees, early frees.
    """

    size: int
    log: CallLog
    memory: Any = None
    adopted: dict[str, str] = field(default_factory=dict[str, str])
    views: dict[str, Any] = field(default_factory=dict[str, Any])
    returned: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    older: dict[str, Any] = field(default_factory=dict[str, Any])
    seen: tuple[int, int, int] = (0, 0, 0)

    def forget_views(self) -> None:
        """Keep no view, so that none keeps anything else."""
        self.views, self.returned, self.older = {}, {}, {}

    def forget_freed(self, actions: tuple[Action, ...]) -> None:
        """Keep no view of a side that was freed: the caller of an evict must not look at it any more."""
        for side in {action.side for action in actions if action.does == "free" and not action.failed}:
            self.views.pop(side, None)
            self.older.pop(side, None)


class ObjectMemories:
    """The memories of a maker in Python, and the buffers and streams of their caller."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._machine = subject.machine
        self._flags = [
            fact.name for fact in self._machine.facts.values() if fact.flag or fact.means in ("owned", "pinned")
        ]
        self._applied: dict[str, str] = {}
        self.begin()

    def begin(self) -> None:
        """Let a new case begin."""
        self._memories: dict[int, _Made] = {}
        self._over: set[int] = set()  # memories of which nothing more is looked at: a release has freed something
        self._lent = LentBuffers(self._subject)
        self._streams: dict[int | str, tuple[str, Any]] = {}
        self._queued: list[_Queued] = []
        self._current: tuple[Any, Any] = (None, None)
        self._done: list[Done] = []

    @property
    def defers(self) -> bool:
        """Whether a push happens only when somebody waits for it."""
        return self._subject.defers

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the statements that led to it."""
        return Violation(requirement, message, self.program())

    def program(self) -> tuple[str, ...]:
        """The steps of this case, as a program in Python."""
        return statements(self._done, self._subject)

    # --- steps

    def repeat(self, done: Sequence[Done]) -> None:
        """Do steps again that were done elsewhere; nothing is compared."""
        settings = {setting.name: setting.initial for setting in self._machine.settings.values()}
        for step, _ in done:
            if step.does == "set":
                settings[step.name] = step.value
            self.perform(step, settings, (), ())

    def perform(
        self, step: Step, settings: Mapping[str, str], sides: Collection[str], buffers: Collection[str]
    ) -> Observation:
        """Do a step.

        Parameters
        ----------
        step : Step
        settings : mapping of str to str
            Those of the machine.
        sides : collection of str
            The sides to look at; others may be shown too.
        buffers : collection of str
            The buffers of the caller to look at.
        """
        if self._subject.journal is not None:
            before = step._replace(write=None) if step.does == "call" else step
            self._subject.journal([*self._done, Done(before)])
        self._done.append(Done(step))
        try:
            return self._do(step, settings, sides, buffers).at(self._subject.level)
        except (Violation, UnfitError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a subject raises where it is looked at
            record = self._memories.get(step.memory)
            requirement = "R10-same-bytes" if record is None or record.size else "R44-size-zero"
            return Observation(wrong=((requirement, f"inspecting the memory raised {told(error)}"),))

    def _do(
        self, step: Step, settings: Mapping[str, str], sides: Collection[str], buffers: Collection[str]
    ) -> Observation:
        if step.does == "set":
            return NOTHING
        if step.does == "new":
            return self._new(step, settings)
        memory = self._memories[step.memory]
        if step.does == "call":
            return self._call(memory, step, settings, sides, buffers)
        if step.does in ("drop", "forget"):
            return self._let_go(memory, step)
        wrong = self._do_outside(memory, step)
        if wrong or step.quiet or step.memory in self._over:
            return Observation(wrong=wrong)
        return self._shown(memory, sides, buffers, Observation(wrong=wrong))

    def _let_go(self, record: _Made, step: Step) -> Observation:
        """Drop a memory, or forget a buffer, or all of them."""
        if step.does == "drop":
            return self._dropped(record, step)
        return self._forgotten(record, "" if step.argument is None else step.argument.name)

    def _dropped(self, record: _Made, step: Step) -> Observation:
        """Drop a memory; the garbage collector is called only if something still holds it, because it takes long."""
        del self._memories[step.memory]
        watch: Callable[[], Any] | None = None
        with suppress(TypeError):  # it cannot be watched
            watch = weakref.ref(record.memory)
        record.memory = None
        record.forget_views()
        if watch is None or watch() is not None:
            gc.collect()
        return self._acted(record)

    def _forgotten(self, record: _Made, name: str) -> Observation:
        """Forget a buffer, or all without a name, so that at most a memory holds them."""
        record.forget_views()
        record.log.flying()  # the log drops the copies that have happened
        self._lent.forget(name)
        return self._acted(record)

    def _do_outside(self, record: _Made, step: Step) -> Wrong:
        """Do what is no call: wait for every push, write into a buffer, or queue work; a look does nothing."""
        if step.does == "wait":
            return (*self._land(), *self._wait_for_work())
        if step.does == "write" and step.argument is not None:
            self._lent.fill(step.argument.name, step.write or 0)
        elif step.does == "queue":
            self._queue(record, step.name, step.size, content(step.write or 0, record.size))
        return ()

    def _land(self) -> Iterator[tuple[str, str]]:
        """Wait for every push; what is wrong with one that fails."""
        for name, (side, stream) in self._streams.items():
            place = self._subject.place(side)
            if place is None or stream is None or isinstance(name, str):
                continue
            try:
                place.record(stream).synchronize()
            except Exception as error:  # noqa: BLE001 -- any error of a device about memory that was freed
                yield "R42-in-flight-not-freed", f"the push failed: {error}"

    def _queue(self, record: _Made, side: str, loads: int, expected: bytes) -> None:
        """Queue heavy copies, and then one of what a view of a side shows, on the current stream of the device."""
        place, half = self._subject.place(side), _HEAVY // 2
        work, copied = place.current_stream(), place.empty(record.size)
        heavy: Any = place.empty(_HEAVY) if loads else None
        for _ in range(loads):
            place.memcpy(heavy[:half], heavy[half:], half, ON_DEVICE, work)
        place.memcpy(record.views[side], copied, record.size, ON_DEVICE, work)
        self._queued.append(_Queued(copied, place.record(work), expected))

    def _wait_for_work(self) -> Iterator[tuple[str, str]]:
        """Wait for work that was queued before pushes; what it should not have read."""
        queued, self._queued = self._queued, []
        for work in queued:
            work.event.synchronize()
            if bytes(work.copied.get()) != work.expected:
                yield "R57-push-in-order", "the push wrote before work of the current stream had read"

    def _new(self, step: Step, settings: Mapping[str, str]) -> Observation:
        log, *allocators = recorded(self._subject)
        record = self._memories[step.memory] = _Made(step.size, log)
        named = dict(zip(map(self._subject.keyword, self._machine.sides), allocators, strict=True))
        if step.checks:
            named["check_device"] = True
        raised, record.memory = self._tried(self._subject.make, step, settings, (step.size,), named)
        check_maker(self._subject, record.memory, raised, self._machine.calls, (step.size,), named)
        acted = self._acted(record, raised, self._moved_device(step))
        return acted if raised is not None else self._shown(record, (), (), acted)

    def _call(
        self, record: _Made, step: Step, settings: Mapping[str, str], sides: Collection[str], buffers: Collection[str]
    ) -> Observation:
        call, known = self._machine.calls[step.name], len(record.log.adopted)
        method = getattr(record.memory, "close" if call.ends and self._subject.is_caffe else call.name)
        arguments, named = self._arguments(record, step, call)
        fuse = record.log.steps if step.how == "other" else record.log.moves
        with _armed(fuse, step):
            raised, view = self._tried(method, step, settings, arguments, named)
        del arguments
        acted = self._acted(record, raised, self._moved_device(step))
        if step.fail:
            acted = acted._replace(blown=bool(fuse.blown))
        record.forget_freed(acted.actions or ())
        if raised is None:
            self._adopt_or_end(record, step, call, known)
        elif call.ends and any(action.does == "free" and not action.failed for action in acted.actions or ()):
            self._over.add(step.memory)
        if step.memory in self._over or (raised is not None and step.quiet):
            return acted
        if raised is None and call.shows:
            acted = self._viewed(record, step, call, view, acted)
        if step.quiet:
            sides, buffers = (), ()
        return self._shown(record, sides, buffers, acted)

    def _adopt_or_end(self, record: _Made, step: Step, call: Call, known: int) -> None:
        """Note what a call that was done has adopted, or that it has ended the memory."""
        if call.does == "adopt" and step.argument is not None:
            record.adopted[call.side] = step.argument.name
            record.older.pop(call.side, None)
            self._lent.adopted_as(step.argument.name, record.log.adopted[known:])
        if call.ends:
            record.adopted = {}
            record.forget_views()
            self._over.add(step.memory)

    def _tried(
        self, act: Any, step: Step, settings: Mapping[str, str], arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[BaseException | None, Any]:
        """Make a call that may be refused or fail: the error, or what was returned."""
        for name, value in settings.items():
            if name != caffe.MODE.name and self._applied.get(name) != value and self._subject.setting is not None:
                self._applied[name] = value
                self._subject.setting(name, value)
        mode, other = settings.get(caffe.MODE.name), self._subject.elsewhere
        here: Any = other.using() if step.elsewhere and other is not None else nullcontext()
        with nullcontext() if mode is None else using_mode(Mode[mode]), here:
            before = self._ordinal()
            try:
                return None, act(*arguments, **named)
            except Violation:
                raise
            except (Exception, InjectedInterrupt, SystemExit) as error:  # noqa: BLE001 -- subjects may raise any error
                self._done[-1] = Done(step, family_of(error))
                return error, None
            finally:
                self._current = before, self._ordinal()

    def _ordinal(self) -> Any:
        return None if self._subject.device is None else self._subject.device.current_ordinal()

    def _moved_device(self, step: Step) -> Wrong:
        """What is wrong if another device is current than before a call; it is put right, for the next case."""
        before, after = self._current
        if before == after:
            return ()
        if self._subject.device is not None and not step.elsewhere:
            self._subject.device.using().__enter__()
        return (("R50-device-restored", f"device {before} was current, and now {after} is"),)

    # --- arguments

    def _arguments(self, record: _Made, step: Step, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if call.queues:
            side = call.side if call.does == "push" else call.source
            stream = self._stream(step.stream, side)
            return (), {} if self._subject.is_host(side) else {"stream": stream}
        if call.does != "adopt":
            return (), {}
        wanted = step.argument
        if wanted is None or wanted.name != OWN:
            return (None if wanted is None else self._lent.handed_in(wanted, record.size),), {}
        return (
            self._lent.own(wanted, record.size, record.log.owned(wanted.side)[-1], record.views.get(wanted.side)),
        ), {}

    def _stream(self, number: int | str, side: str) -> Any:
        """A stream of the device of a side; some object if there is no device, or if it must be no stream of it."""
        if number not in self._streams:
            place, other = self._subject.place(side), self._subject.elsewhere
            if isinstance(number, str):
                odd = {"none": None, "number": 0, "word": "stream", "elsewhere": other and other.stream()}
                self._streams[number] = side, odd.get(number, object())
            else:
                host = self._subject.is_host(side)
                self._streams[number] = side, None if host else object() if place is None else place.stream()
        return self._streams[number][1]

    # --- what was seen

    def _acted(self, record: _Made, raised: BaseException | None = None, wrong: Wrong = ()) -> Observation:
        """What was done to blocks since the last step, and whether it was refused."""
        log, (calls, strays, early) = record.log, record.seen
        record.seen = len(log.calls), len(log.stray), len(log.freed_in_flight)
        wrong += tuple((_STRAY[kind], sentence) for kind, sentence in log.stray[strays:])
        wrong += tuple(("R42-in-flight-not-freed", sentence) for sentence in dict.fromkeys(log.freed_in_flight[early:]))
        return Observation(
            refused="" if raised is None else told(raised),
            actions=tuple(call._replace(stream=self._number(call.stream)) for call in log.calls[calls:]),
            wrong=wrong,
            live=log.blocks,
            flying=self._flying(log),
            gone=self._lent.gone(),
            held=self._lent.held(),
        )

    def _number(self, stream: Any) -> Any:
        """The number of a stream of the caller; any other stream is itself."""
        return next((number for number, (_, known) in self._streams.items() if known is stream), stream)

    def _flying(self, log: CallLog) -> tuple[tuple[Any, str, str], ...]:
        return tuple((self._number(flight.stream), *flight.sides) for flight in log.flying())

    def _viewed(self, record: _Made, step: Step, call: Call, view: Any, acted: Observation) -> Observation:
        """What a view shows; then it is written."""
        record.views[call.side] = view
        if self._subject.level < "L1" or view is None or self._subject.place(call.side) is None:
            return acted._replace(viewed=view is not None)
        try:
            held = shown(self._subject, view, call.side)
            seen = acted._replace(viewed=True, view=held, wrong=(*acted.wrong, *self._of_view(record, call, view)))
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a view raises that cannot be read
            why = f"reading it raised {type(error).__name__}"
            return acted._replace(viewed=False, wrong=(*acted.wrong, (UNREADABLE, why)))
        if call.writes and step.write is not None:
            if self._subject.journal is not None:
                self._subject.journal(self._done)
            put(self._subject, view, content(step.write, record.size), call.side)
        if call.side in record.older and not step.quiet and call.side not in {side for *_, side in seen.flying or ()}:
            seen = seen._replace(older={call.side: shown(self._subject, record.older[call.side], call.side)})
        if call.does == "read":
            record.older[call.side] = view
        return seen

    def _of_view(self, record: _Made, call: Call, view: Any) -> Iterator[tuple[str, str]]:
        """What is wrong with the object itself."""
        earlier = record.returned.setdefault(call.name, [])
        if any(view is old for old in earlier):
            yield "R46-fresh-view", f"{call.name} returned one object twice"
        earlier.append(view)
        if call.does == "read" and self._subject.is_host(call.side) and not _is_frozen(view):
            yield "R47-read-only-view", f"the view of {call.name} can be written"

    def _shown(
        self, record: _Made, sides: Collection[str], buffers: Collection[str], acted: Observation
    ) -> Observation:
        subject, memory, sees_bytes = self._subject, record.memory, self._subject.level >= "L1"
        flying = self._flying(record.log)
        landing = {side for *_, side in flying}
        held: dict[str, bytes] = {}
        for side in sides if record.size and sees_bytes else ():
            owned = record.log.owned(side)
            if side not in landing and side not in record.adopted and owned:
                held[side] = fetch(subject, owned[-1], record.size, side)
        lent = ((name, self._lent.known(name)) for name in buffers if sees_bytes)
        flags = {name: getattr(memory, name) for name in self._flags if hasattr(memory, name)}
        return acted._replace(
            head=head_name(self._machine, memory.head) if hasattr(memory, "head") else None,
            size=getattr(memory, "size", None),
            flags=flags,
            sides=held,
            buffers={name: self._whole(one) for name, one in lent if one is not None and one.side not in landing},
            live=record.log.blocks,
            flying=flying,
        )

    def _whole(self, lent: Lent) -> bytes:
        return fetch(self._subject, lent.whole, lent.size, lent.side)


def _armed(fuse: Fuse, step: Step) -> AbstractContextManager[None]:
    error = InjectedInterrupt if step.how == "interrupt" else InjectedFailure
    return fuse.armed(step.fail, error, partial=step.how == "half") if step.fail else nullcontext()


def _is_frozen(view: Any) -> bool:
    """Whether a host view is read-only and cannot be made writable."""
    if not memoryview(view).readonly:
        return False
    try:
        view.setflags(write=True)
    except (ValueError, AttributeError):
        return True
    return False


def told(error: BaseException) -> str:
    """An error as a text; it may not say what it is."""
    with suppress(Exception):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__
