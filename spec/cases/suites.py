"""The enumerated suites: sequences of calls from the state space of a machine.

The machine decides only which calls are made.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import TYPE_CHECKING

from syncedmem.model import Input, hsi_suite, space, tour
from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences, counter_sequences, cycles

from ..memory.claims import offers_of
from ..memory.policy import absent_of
from ..record.steps import OWN, Buffer, Step
from .objects import UNADOPTED, ObjectSuites
from .writing import ROOM, SIZE, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from syncedmem.model import Machine, State

    from ..kit.trial import Bench
    from ..record.steps import Case, How

__all__ = ["Suites"]

_MANY = 100
_LONG = 2
"""Sequences of this length or longer are not run at several megabytes."""
_AROUND = 16


class Suites:
    """The suites for the memories of a subject.

    Attributes
    ----------
    machine : Machine
    safe : bool
        Whether promises beyond Caffe's are tested.
    level : str
        How much is observed.
    offers : frozenset of str
        What can be asked of the subject besides calls: ``own_buffer``, ``drop``.
    judged : frozenset of str
        The numbers of the requirements by which is judged.
    hosts : frozenset of str
        The sides that are host memory.
    reached : mapping of State to tuple of Input
        For each state of the machine the shortest way to it.
    calls, endings, reads : list of Input
        The calls of the machine; those that end a memory; those that read.
    """

    def __init__(self, bench: Bench) -> None:
        subject, machine = bench.subject, bench.world.machine
        self.machine: Machine = machine
        self.safe: bool = bench.world.safe
        self.level: str = subject.level
        self.offers: frozenset[str] = offers_of(subject)
        self.judged: frozenset[str] = frozenset(name.partition("-")[0] for name in bench.judged)
        self.hosts: frozenset[str] = frozenset(filter(subject.is_host, machine.sides))
        self._smallest = subject.smallest
        self._absent = absent_of(subject)
        self.reached: Mapping[State, tuple[Input, ...]] = access_sequences(machine)
        self._inputs = stepper(machine).inputs(end=True)
        self.calls: list[Input] = [Input(call) for call in machine.calls.values()]
        self.endings: list[Input] = [call for call in self.calls if call.ends]
        self.reads: list[Input] = [call for call in self.calls if call.does == "read"]

    def by_name(self) -> Mapping[str, Callable[[], Iterator[Case]]]:
        """The suites that can show something here, in the order in which they run."""
        pushes = any(call.queues for call in self.calls)
        adopts = bool(self.adopting())
        objects = ObjectSuites(self)
        failing = self.safe and self.level >= "L3"
        wanted: dict[str, tuple[Callable[[], Iterator[Case]], bool]] = {
            "cells": (self._cells, True),
            "tour": (self._tour, True),
            "flights": (self._flights, self.safe and self.level >= "L4" and pushes),
            "refused": (self._refused, not self.judged.isdisjoint({"R35", "R36", "R39"})),
            "forms": (objects.forms, self.of_objects and not self.judged.isdisjoint(UNADOPTED)),
            "lent": (self._lent, adopts),
            "again": (self._again, bool(self.endings) and "R49" in self.judged),
            "dropped": (self._dropped, not self.judged.isdisjoint({"P04", "R55"})),
            "several": (self._several, True),
            "streams": (self._streams, self.safe and self.level >= "L4" and pushes),
            "failures": (self._failures, failing),
            "stumbles": (objects.stumbles, failing and self.of_objects),
            "elsewhere": (objects.elsewhere, not self.judged.isdisjoint({"R50", "R51"})),
            "lifetimes": (objects.lifetimes, adopts and not self.judged.isdisjoint({"R40", "R56"})),
            "arguments": (objects.arguments, not self.judged.isdisjoint({"R45", "R52", "R57"})),
            "sizes": (self._sizes, True),
            "hsi": (self._hsi, True),
            "counters": (self._counters, True),
        }
        return {name: cases for name, (cases, shows) in wanted.items() if shows}

    @property
    def of_objects(self) -> bool:
        """Whether the memories are objects of Python."""
        return "objects" in self.offers

    def writer(self, *sequence: Input, size: int = SIZE, memory: int = 0, used: bool = True) -> Writer:
        """A writer of steps of a new memory, after a sequence."""
        drops = "P04" in self.judged
        writer = Writer(self.machine, size, memory, safe=self.safe, level=self.level, used=used, drops=drops)
        return writer.add(*sequence)

    def _sequences(self, sequences: Iterable[tuple[Input, ...]], size: int = SIZE) -> Iterator[Case]:
        return (self.writer(*sequence, size=size).done() for sequence in sequences)

    def legal_pushes(self, state: State) -> list[Input]:
        """The pushes that are not refused in a state."""
        return [entry for entry, step in space(self.machine).steps[state].items() if entry.queues and not step.refusal]

    def adopting(self) -> dict[str, Input]:
        """The calls that adopt, by side."""
        return {call.side: call for call in self.calls if call.does == "adopt" and call.side not in self._absent}

    # --- from the state space

    def _cells(self) -> Iterator[Case]:
        """Every call in every state, with NULL data and release; and all after a release, where that is defined."""
        for sequence in self.reached.values():
            for entry in self._inputs:
                yield self.writer(*sequence, entry).done()
            for ending in self.endings if self.safe else ():
                yield self.writer(*sequence, ending, *self._inputs).done()

    def _tour(self) -> Iterator[Case]:
        """Every transition, in few long sequences."""
        return self._sequences(tour(self.machine))

    def _hsi(self) -> Iterator[Case]:
        """The complete suite: after every transition every state is distinguished from every other."""
        return self._sequences(hsi_suite(self.machine))

    def _counters(self) -> Iterator[Case]:
        """Repeated cycles, for bugs at the n-th copy, push, adoption or read."""
        return self._sequences(counter_sequences(self.machine, (*range(2, 9), _MANY)))

    def _sizes(self) -> Iterator[Case]:
        """The tour with zero bytes, one, an odd number and a page; short sequences and a cycle with megabytes."""
        for size in (0, 1, 4095, 4096):
            if size >= self._smallest:
                yield from self._sequences(tour(self.machine), size)
        yield from self._sequences((way for way in self.reached.values() if len(way) < _LONG), (3 << 20) + 1)
        cycle = next(iter(cycles(self.machine)), max(self.reached.values(), key=len))
        powers = [(1 << power) + more for power in range(1, 19) for more in (-1, 0, 1)]
        for size in (*powers, (1 << 20) + 3, (16 << 20) + 1):
            yield self.writer(*cycle, size=size).done()

    def _failures(self) -> Iterator[Case]:
        """For every call in every state, each action fails, before its work or half-way.

        Afterwards the same call must work, and so must any other.
        """
        for state, sequence in self.reached.items():
            for entry, step in space(self.machine).steps[state].items():
                does = [self.machine.actions[name].does for name in step.actions]
                for k, what in enumerate((what for what in does if what != "adopt"), 1):
                    half: How = "half" if what in ("copy", "zero") else ""
                    # An interrupted free may have happened, so the call may also be completed.
                    interrupt: How = "interrupt" if self.of_objects and what != "free" else ""
                    for how in dict.fromkeys(("", half, interrupt)):
                        yield self.writer(*sequence).add(entry, fail=k, how=how).add(entry).done()
                    for other in (*self.endings, *self.reads):
                        yield self.writer(*sequence).add(entry, fail=k, how=half).add(other).done()
            for ending, k in product(self.endings, range(1, len(self.machine.sides) + 1)):
                yield self.writer(*sequence).add(ending, fail=k).add(ending).done()
                if k <= self._owned(state):
                    # After the first free every call works as before; after a later one every call is refused.
                    others = (call for call in self.calls if not call.ends and call.side not in self._absent)
                    yield self.writer(*sequence, used=False).add(ending, fail=k).add(*others).done()

    def _owned(self, state: State) -> int:
        """How many sides a release of a memory in a state frees, as far as its flags say it."""
        owned = [fact.name for fact in self.machine.facts.values() if fact.means == "owned"]
        return len(state.facts.intersection(owned)) if owned else len(self.machine.sides)

    def _flights(self) -> Iterator[Case]:
        """Every call while a push is queued, and after a wait for the push."""
        for state, sequence in self.reached.items():
            for push in self.legal_pushes(state):
                for entry in (*space(self.machine).steps[state], *self.endings):
                    yield self.writer(*sequence, push, entry, size=64).wait().done()
                    yield self.writer(*sequence, push, size=64).wait().add(entry).done()

    # --- buffers of the caller

    def _refused(self) -> Iterator[Case]:
        """In every state, buffers that must not be adopted, and after them every read: nothing has changed."""
        for turn, sequence in enumerate(self.reached.values()):
            for side, adopt in self.adopting().items():
                others = [other for other in self.machine.sides if other not in self._absent | {side}]
                wrong = [Buffer(OWN, side, offset=at) for at in (0, _AROUND) if "own_buffer" in self.offers]
                wrong += [Buffer(f"{side} small{longer}", side, 1, longer) for longer in (-1, 1 - ROOM)]
                wrong += [Buffer(f"{other} other", other, 1) for other in others]
                writer = self.writer(*sequence, size=ROOM, used=False)
                first = turn % max(len(wrong), 1)  # the first that is taken ends the case, so each begins one
                for buffer in wrong[first:] + wrong[:first]:
                    writer.add(adopt, argument=buffer)
                yield writer.add(*self.reads).done()

    def _lent(self) -> Iterator[Case]:
        """A buffer that is adopted again and again between all other calls, and no byte around it is touched."""
        for (side, adopt), before in product(self.adopting().items(), self.starts()):
            for again in self._shapes(side):
                writer = self.writer(*before, size=ROOM)
                for number, entry in enumerate(self._uses(side), 201):
                    writer.add(entry, argument=again._replace(content=number) if entry == adopt else None)
                yield writer.wait().done()

    def _shapes(self, side: str) -> Iterator[Buffer]:
        """Buffers that must be adopted: exact, longer, and as objects of many kinds."""
        usual = Buffer(f"{side} again", side)
        yield from (usual, usual._replace(longer=_AROUND))
        if self.of_objects:
            middle = usual._replace(longer=2 * _AROUND, offset=_AROUND)
            yield middle._replace(form="middle")
            if side in self.hosts:
                yield middle._replace(form="rest")
                yield usual._replace(form="doubles", longer=_AROUND)
                yield from (usual._replace(form=form) for form in ("doubles", "rows", "ctypes", "array"))

    def starts(self) -> list[tuple[Input, ...]]:
        """For each head the first sequence of calls that leads to it."""
        return list({state.head: way for state, way in reversed([*self.reached.items()])}.values())[::-1]

    def _uses(self, side: str) -> Iterator[Input]:
        """Adoptions on a side between the other calls of this side, and between those of the other sides."""
        by_does = {(call.side, call.does): call for call in self.calls}
        pushes = [call for call in self.calls if call.queues and call.side not in self._absent]

        def spelled(words: str, other: str) -> Iterator[Input]:
            for word in words.split():
                does = word.removeprefix("other-")
                if entry := by_does.get((side if does == word else other, does)):
                    yield entry

        yield from spelled("adopt read adopt write adopt", side)
        for other in (other for other in self.machine.sides if other not in self._absent | {side}):
            yield from spelled(
                "other-read adopt other-write adopt write other-read other-write read other-write", other
            )
            yield from pushes
            yield from spelled("other-read read other-adopt read other-write read write other-read write", other)
            yield from pushes
            yield from spelled("read", other)

    # --- several memories, and their ends

    def _again(self) -> Iterator[Case]:
        """A second and a third release, in every state and for zero bytes."""
        for sequence in self.reached.values():
            for size in (ROOM, 0) if self._smallest == 0 else (ROOM,):
                yield self.writer(*sequence, *self.endings[:1] * 2, size=size).done()

    def _dropped(self) -> Iterator[Case]:
        """A memory is dropped in every state, with a push in flight, and after a release."""
        queued = [(*way, push) for state, way in self.reached.items() for push in self.legal_pushes(state)]
        longest = max(self.reached.values(), key=len)
        for sequence in (*self.reached.values(), *queued, *((*longest, ending) for ending in self.endings)):
            yield (*self.writer(*sequence, size=ROOM).steps, Step("drop"))

    def _several(self) -> Iterator[Case]:
        """Calls on one memory do not affect others, of which each is shorter than those before it."""
        sides = [other for other in self.machine.sides if other not in self._absent]
        by_does = {(call.side, call.does): call for call in self.calls}
        order = [(does, sides[:1] if k % 2 == 0 else sides[1:]) for k, does in enumerate(_ORDER)]
        sequence = [by_does[place, does] for does, places in order for place in places if (place, does) in by_does]
        memories = range(max(len(sequence), 2))
        writers = [self.writer(*sequence[:k], size=ROOM + len(memories) - k, memory=k) for k in memories]
        steps: list[Step] = [step for writer in writers for step in writer.steps]
        for entry in sequence:
            for k, writer in enumerate(writers):
                steps += writer.written(entry)
                steps += (Step("look", other) for other in range(len(writers)) if other != k)
        for k, writer in enumerate(writers):
            steps += writer.ends()
            steps += (Step("look", other) for other in range(k + 1, len(writers)))
        yield tuple(steps)

    def _streams(self) -> Iterator[Case]:
        """A push of each of two memories, and then a use of each, in every order.

        Each push is on a stream of its own, so a memory that waits for another stream than its push's is noticed.  Or
        both are on one, for what is kept for each stream.
        """
        uses: list[Input | None] = [call for call in self.calls if not call.queues and call.side not in self._absent]
        if not self.judged.isdisjoint({"P04", "R55"}):
            uses.append(None)  # it is dropped, which is no input of the machine
        for sequence, turns in product(self._pushed(), _TURNS):
            for pair in product(uses, uses):
                yield self._pair(sequence, turns, pair, (1, 2))
            for use in uses:
                yield self._pair(sequence, turns, (use, use), (1, 1))

    def _pushed(self) -> Iterator[tuple[Input, ...]]:
        """For each push the shortest sequence to it, from a write if there is one: zeros may be there by luck."""
        found: dict[Input, tuple[Input, ...]] = {}
        for state, way in self.reached.items():
            for entry, move in space(self.machine).steps[state].items():
                for push in self.legal_pushes(move.after) if entry.writes else ():
                    found.setdefault(push, (*way, entry, push))
        for state, way in self.reached.items():
            for push in self.legal_pushes(state):
                found.setdefault(push, (*way, push))
        return iter(found.values())

    def _pair(
        self,
        sequence: tuple[Input, ...],
        turns: Iterable[int],
        uses: tuple[Input | None, ...],
        streams: tuple[int, ...],
    ) -> Case:
        """Two memories that take turns: the first turn of each is its push, the second its use."""
        *before, push = sequence
        writers = [self.writer(*before, memory=number, used=False) for number in range(len(uses))]
        steps = [step for writer in writers for step in writer.steps]
        pushed = set[int]()
        for number in turns:
            writer, use = writers[number], uses[number]
            if number not in pushed:
                pushed.add(number)
                steps += writer.written(push, stream=streams[number])
            else:
                steps += [Step("drop", number)] if use is None else writer.written(use)
        return (*steps, *(step for writer in writers for step in writer.ends()))


_TURNS = sorted(set(permutations((0, 0, 1, 1))))
"""The orders in which each of two memories comes twice."""
_ORDER = ("write", "write", "read", "read", "adopt", "write", "read")
"""What is done in turn on the first side and on the others."""
