"""What only objects of Python can show: kinds of buffers, failures of small calls, devices, lifetimes, arguments."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from syncedmem.model import space, tour

from ..record.steps import OWN, UNSUITABLE, Buffer, Step
from ..record.world import REFUSED_BY_US
from .writing import ROOM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Input, State

    from ..record.steps import Case
    from .suites import Suites

__all__ = ["UNADOPTED", "ObjectSuites"]

UNADOPTED = frozenset({"R35", "R36", "R37", "R38", "R39"})
"""The numbers of the requirements about what must not be adopted."""
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
        common, judged = self._suites, self._suites.judged
        for turn, sequence in enumerate(common.reached.values()):
            for side, adopt in common.adopting().items():
                host = side in common.hosts
                odd = (form for form in _ODD[host] if REFUSED_BY_US[UNSUITABLE[form]] in judged and self._can(form))
                wrong = [Buffer(OWN, side, form=form) for form in _OWN[host] if "R35" in judged]
                wrong += [Buffer(f"{side} {form}", side, 1, form=form) for form in odd]
                wrong += [Buffer(f"{side} nothing", side, 1, -ROOM)] if "R36" in judged else []
                first = turn % max(len(wrong), 1)
                writer = common.writer(*sequence, size=ROOM, used=False)
                for buffer in wrong[first:] + wrong[:first]:
                    writer.add(adopt, argument=buffer)
                if wrong:
                    yield writer.add(*common.reads).done()

    def _can(self, form: str) -> bool:
        needs = {"columns": "columns", "elsewhere": "another device", "page-locked": "device"}.get(form)
        return needs is None or needs in self._suites.offers

    def stumbles(self) -> Iterator[Case]:
        """In every state, also with a push in flight, each call of an allocator fails that does nothing to memory."""
        common = self._suites
        for state, sequence in common.reached.items():
            for entry in (*(entry for entry in space(common.machine).steps[state] if entry.call), *common.endings):
                for first in ((), *((push,) for push in common.legal_pushes(state))):
                    writer = common.writer(*sequence, *first)
                    for k in range(1, _MOST + 1):
                        writer.add(entry, fail=k, how="other")
                    yield writer.done()

    def elsewhere(self) -> Iterator[Case]:
        """While another device is current, a memory works on its own and changes no current device, or refuses all."""
        common = self._suites
        if "R50" in common.judged:
            for sequence in tour(common.machine):
                yield _there(common.writer().add(*sequence, elsewhere=True).done())
            for state, sequence in common.reached.items():
                if len(sequence) < _SHORT:
                    yield from self._failing(state, sequence)
        if "R51" in common.judged:
            for state, sequence in common.reached.items():
                new, *before = common.writer(*sequence, size=ROOM, used=False).steps
                writer = common.writer(*sequence, size=ROOM, used=False)
                start = len(writer.steps)
                writer.add(*self._legal(state), elsewhere=True).add(*common.reads)
                yield (new._replace(checks=True), *before, *writer.steps[start:], *writer.ends())

    def _failing(self, state: State, sequence: tuple[Input, ...]) -> Iterator[Case]:
        common = self._suites
        if not (common.safe and common.level >= "L3"):
            return
        for entry, step in space(common.machine).steps[state].items():
            does = [action for action in step.actions if common.machine.actions[action].does != "adopt"]
            for k in range(1, len(does) + 1):
                writer = common.writer().add(*sequence, elsewhere=True)
                yield _there(writer.add(entry, fail=k, elsewhere=True).add(entry, elsewhere=True).done())

    def _legal(self, state: State) -> list[Input]:
        """The calls that are not refused in a state, and those that end the memory."""
        steps = space(self._suites.machine).steps[state]
        return [*(entry for entry, step in steps.items() if entry.call and not step.refusal), *self._suites.endings]

    def lifetimes(self) -> Iterator[Case]:
        """A buffer that only a memory holds lives as long as the memory uses it, and no longer than the memory."""
        common = self._suites
        for side, adopt in common.adopting().items():
            writes = [call for call in common.calls if call.does == "write" and call.side == side]
            reads = sorted(common.reads, key=lambda read: read.side != side)
            for before in ((), *((write,) for write in writes)):
                writer = common.writer(*before, size=ROOM, used=False)
                writer.add(adopt, argument=Buffer("kept", side, 3))
                writer.steps.append(Step("forget", argument=Buffer("kept", side)))
                yield writer.add(*reads).done()
        for sequence in common.reached.values() if "R56" in common.judged else ():
            writer = common.writer(*sequence, size=ROOM, used=False)
            for side, adopt in common.adopting().items():
                for _ in range(2):
                    writer.add(adopt)
                    writer.add(
                        *(call for call in common.calls if call.queues and call.call and call.call.source == side)
                    )
            ended = (*writer.add(*common.reads).steps, *writer.ends())
            yield (*ended, Step("forget"))

    def arguments(self) -> Iterator[Case]:
        """Sizes that are none, streams that are none of the device, and the order of a push among other work."""
        common = self._suites
        if "R45" in common.judged:
            yield from ((Step("new", size=size),) for size in _SIZES)
        words = ("none", "number", "word", "object", *(("elsewhere",) if "another device" in common.offers else ()))
        for state, sequence in common.reached.items() if "R52" in common.judged else ():
            for push in common.legal_pushes(state):
                writer = common.writer(*sequence, size=ROOM)
                for word in words:
                    writer.add(push, stream=word)
                yield writer.add(*common.reads).done()
        for push in common.calls if "R57" in common.judged else ():
            if push.queues and push.side not in common.hosts:
                yield from self._in_order(push)

    def _in_order(self, push: Input) -> Iterator[Case]:
        """A push behind work of the current stream that has still to read the old bytes."""
        calls = {(call.does, call.side): call.name for call in self._suites.machine.calls.values()}
        source = "" if push.call is None else push.call.source
        write, read = calls.get(("write", source)), calls.get(("read", push.side))
        if write is None or read is None or source not in self._suites.hosts:
            return
        for load in _LOADS:
            yield (
                Step("new", size=ROOM),
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
