"""What only objects of Python can show: kinds of buffers, failures of small calls, devices, lifetimes, arguments."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from syncedmem.model import space, tour

from ..record.steps import OWN, UNSUITABLE, Buffer, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Input, State

    from ..record.steps import Case
    from .suites import Suites

__all__ = ["ObjectSuites"]

_ROOM = 48
_REASONS = {"frozen": "R37", "spread": "R38", "kind": "R39"}
_OWN = {True: ("block", "view", "doubles", "part", "ctypes"), False: ("view", "part")}
"""The forms of the own block, on the host and on a device."""
_ODD = {
    True: ("read-only", "frozen view", "spread", "backwards", "columns", "text", "object", "number"),
    False: ("host", "page-locked", "elsewhere", "object", "number"),
}
"""What must not be adopted, on the host and on a device."""
_MOST = 7
"""More than the number of calls in any call that do nothing to memory."""
_SHORT = 3
"""Failures on another device are tested after sequences up to this length; these include every kind of action."""
_BEYOND = sys.maxsize + 1
_SIZES = (-1, -_BEYOND, -(1 << 70), _BEYOND, 2 * _BEYOND, 1.5, 5.0, "5", b"5", None, True, [5])
_LOADS = (0, 0, 0, 0, 0, 0, 1, 4, 16)
"""How many heavy copies are queued before a push: none as often as a scheduler needs to show an order, and more until
a stream is still busy; a GPU does one in 20 us."""


class ObjectSuites:
    """The suites for memories that are objects of Python.

    Parameters
    ----------
    suites : Suites
        Those for all memories.
    """

    def __init__(self, suites: Suites) -> None:
        self._suites = suites

    def forms(self) -> Iterator[Case]:
        """In every state, objects that must not be adopted, and after them every read: nothing has changed."""
        all_, judged = self._suites, self._suites.judged
        for turn, sequence in enumerate(all_.reached.values()):
            for side, adopt in all_.adopting().items():
                host = side in all_.hosts
                odd = (form for form in _ODD[host] if _REASONS[UNSUITABLE[form]] in judged and self._can(form))
                wrong = [Buffer(OWN, side, form=form) for form in _OWN[host] if "R35" in judged]
                wrong += [Buffer(f"{side} {form}", side, 1, form=form) for form in odd]
                wrong += [Buffer(f"{side} nothing", side, 1, -_ROOM)] if "R36" in judged else []
                first = turn % max(len(wrong), 1)
                writer = all_.writer(*sequence, size=_ROOM, used=False)
                for buffer in wrong[first:] + wrong[:first]:
                    writer.add(adopt, argument=buffer)
                if wrong:
                    yield writer.add(*all_.reads).done()

    def _can(self, form: str) -> bool:
        return form not in ("columns", "elsewhere", "page-locked") or form in self._suites.offers

    def stumbles(self) -> Iterator[Case]:
        """In every state, also with a push in flight, each call of an allocator fails that does nothing to memory."""
        all_ = self._suites
        for state, sequence in all_.reached.items():
            for entry in (*(it for it in space(all_.machine).steps[state] if it.call), *all_.endings):
                for first in ((), *((push,) for push in all_.legal_pushes(state))):
                    writer = all_.writer(*sequence, *first)
                    for k in range(1, _MOST + 1):
                        writer.add(entry, fail=k, how="other")
                    yield writer.done()

    def elsewhere(self) -> Iterator[Case]:
        """While another device is current, a memory works on its own and changes no current device, or refuses all."""
        all_ = self._suites
        if "R50" in all_.judged:
            for sequence in tour(all_.machine):
                yield _there(all_.writer().add(*sequence, elsewhere=True).done())
            for state, sequence in all_.reached.items():
                if len(sequence) < _SHORT:
                    yield from self._failing(state, sequence)
        if "R51" in all_.judged:
            for state, sequence in all_.reached.items():
                new, *before = all_.writer(*sequence, size=_ROOM, used=False).steps
                writer = all_.writer(*sequence, size=_ROOM, used=False)
                made = len(writer.steps)
                writer.add(*self._legal(state), elsewhere=True).add(*all_.reads)
                yield (new._replace(checks=True), *before, *writer.steps[made:], *writer.ends())

    def _failing(self, state: State, sequence: tuple[Input, ...]) -> Iterator[Case]:
        all_ = self._suites
        if not (all_.safe and all_.level >= "L3"):
            return
        for entry, step in space(all_.machine).steps[state].items():
            does = [it for it in step.actions if all_.machine.actions[it].does != "adopt"]
            for k in range(1, len(does) + 1):
                writer = all_.writer().add(*sequence, elsewhere=True)
                yield _there(writer.add(entry, fail=k, elsewhere=True).add(entry, elsewhere=True).done())

    def _legal(self, state: State) -> list[Input]:
        """The calls that are not refused in a state, and those that end the memory."""
        steps = space(self._suites.machine).steps[state]
        return [*(it for it, step in steps.items() if it.call and not step.refusal), *self._suites.endings]

    def lifetimes(self) -> Iterator[Case]:
        """A buffer that only a memory holds lives as long as the memory uses it, and no longer than the memory."""
        all_ = self._suites
        for side, adopt in all_.adopting().items():
            writes = [it for it in all_.calls if it.does == "write" and it.side == side]
            reads = sorted(all_.reads, key=lambda it: it.side != side)
            for before in ((), *((it,) for it in writes)):
                writer = all_.writer(*before, size=_ROOM, used=False)
                writer.add(adopt, argument=Buffer("kept", side, 3))
                writer.steps.append(Step("forget", argument=Buffer("kept", side)))
                yield writer.add(*reads).done()
        for sequence in all_.reached.values() if "R56" in all_.judged else ():
            writer = all_.writer(*sequence, size=_ROOM, used=False)
            for side, adopt in all_.adopting().items():
                for _ in range(2):
                    writer.add(adopt)
                    writer.add(*(it for it in all_.calls if it.queues and it.call and it.call.source == side))
            ended = (*writer.add(*all_.reads).steps, *writer.ends())
            yield (*ended, Step("forget"))

    def arguments(self) -> Iterator[Case]:
        """Sizes that are none, streams that are none of the device, and the order of a push among other work."""
        all_ = self._suites
        if "R45" in all_.judged:
            yield from ((Step("new", size=size),) for size in _SIZES)
        words = ("none", "number", "word", "object", *(("elsewhere",) if "elsewhere" in all_.offers else ()))
        for state, sequence in all_.reached.items() if "R52" in all_.judged else ():
            for push in all_.legal_pushes(state):
                writer = all_.writer(*sequence, size=_ROOM)
                for word in words:
                    writer.add(push, stream=word)
                yield writer.add(*all_.reads).done()
        for push in all_.calls if "R57" in all_.judged else ():
            if push.queues and push.side not in all_.hosts:
                yield from self._in_order(push)

    def _in_order(self, push: Input) -> Iterator[Case]:
        """A push behind work of the current stream that has still to read the old bytes."""
        calls = {(it.does, it.side): it.name for it in self._suites.machine.calls.values()}
        source = "" if push.call is None else push.call.source
        write, read = calls.get(("write", source)), calls.get(("read", push.side))
        if write is None or read is None or source not in self._suites.hosts:
            return
        for load in _LOADS:
            yield (
                Step("new", size=_ROOM),
                Step("call", 0, write, write=1, quiet=True),
                Step("call", 0, read, quiet=True),
                Step("queue", 0, push.side, write=1, size=load),
                Step("call", 0, write, write=2, quiet=True),
                Step("call", 0, str(push.call), stream=1, quiet=True),
                Step("wait", quiet=True),
            )


def _there(case: Case) -> Case:
    """A case of which every call is made while another device is current."""
    return tuple(step._replace(elsewhere=True) if step.does in ("call", "new") else step for step in case)
