"""Vectors of violations: what the kit of memories has found, for ports in other languages and for regression tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from syncedmem.model import Input, space

from ..memory.suites import Fail, Stumble
from .programs import MOVES, WRITE_BUFFER, VectorProgram, end_of, numbered, operation_of
from .replay import replay
from .vector import Vector, mute_calls

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from syncedmem.model import Machine

    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from .programs import Operation

__all__ = ["FOUND", "add_vectors", "vector_of"]

FOUND = "found"
"""The suite of these vectors."""


def vector_of(violation: Violation, subject: Subject) -> Vector | None:
    """The vector that shows a violation.

    Parameters
    ----------
    violation : Violation
    subject : Subject
        The memory that has it.

    Returns
    -------
    Vector or None
        None if a vector cannot say it: the replay of the memory passes, or the violation is not one of calls, as for
        interrupts, streams in flight and finalisers.
    """
    if violation.played is None:
        return None
    sizes, moves = violation.played
    taker = _Taker(subject.machine, len(sizes), mute_calls(subject.machine, subject.policy))
    for number, move in moves:
        taker.take(number, move)
    program = VectorProgram(subject.machine, sizes, taker.operations(), subject.profile)
    if not program.operations:
        return None
    vector = Vector(FOUND, program, subject.policy)
    if subject.program is not None:
        subject.program.renew()
    difference = replay(replace(subject, elsewhere=None, journal=None), vector.as_json())
    return None if difference is None else vector


def add_vectors(violations: Iterable[Violation], subject: Subject) -> None:
    """Give each violation its vector, if it has one; see `vector_of`."""
    for violation in violations:
        vector = None if violation.vector else vector_of(violation, subject)
        if vector is not None:
            violation.vector = vector.line()


class _Taker:
    """Makes operations of moves, in the states of the model."""

    def __init__(self, machine: Machine, count: int, mute: Collection[str]) -> None:
        self._mute = mute
        self._space = space(machine)
        self._states = [self._space.start] * count
        self._settings = {it.name: it.initial for it in machine.settings.values()}
        self._wanted = [dict(self._settings) for _ in range(count)]
        self._ended: set[int] = set()
        self._operations: list[Operation] = []

    def take(self, number: int, move: object) -> None:
        """Add the operations of a move of one memory."""
        if isinstance(move, Fail):
            steps = self._space.steps[self._states[number]]
            actions = steps[move.entry].actions if move.entry in steps else ()
            if move.k <= sum(self._space.machine.actions[name].does in MOVES for name in actions):
                self._add(number, move.entry, {"fail": move.k})
                if not move.again:
                    return
            self._enter(number, move.entry)
        elif isinstance(move, Stumble):
            self._enter(number, move.entry)
        elif isinstance(move, Input):
            self._enter(number, move)

    def operations(self) -> tuple[Operation, ...]:
        """All operations, and the end of each memory."""
        living = (number for number in range(len(self._states)) if number not in self._ended)
        return (*self._operations, *(it for number in living for it in end_of(self._space.machine, number)))

    def _enter(self, number: int, entry: Input) -> None:
        steps = self._space.steps[self._states[number]]
        if number in self._ended or entry.given:
            return
        if entry.call is None:
            self._wanted[number][entry.setting] = entry.value
        elif entry.call.name in self._mute or (not entry.call.does and entry not in steps):
            return  # nobody says what it does here
        elif entry.call.ends:
            self._ended.add(number)
            self._operations.append(numbered(number, {"call": entry.call.name}))
            return
        else:
            self._add(number, entry, {})
        if entry in steps:
            self._states[number] = steps[entry].after
        if entry.does == "adopt" and entry.data:  # the kit writes into what it has handed in
            buffer = {"buffer": len(self._operations), "bytes": len(self._operations) + 1}
            self._operations.append(numbered(number, {"call": WRITE_BUFFER, "argument": buffer}))

    def _add(self, number: int, entry: Input, more: Operation) -> None:
        """Add a call, with the settings of its memory: a vector has one value of each, and the kit one a memory."""
        for name, value in self._wanted[number].items():
            if self._settings[name] != value:
                self._settings[name] = value
                self._operations.append({"call": f"set_{name}", "argument": value})
        operation = {**operation_of(entry, len(self._operations) + 1), **more}
        if more:
            operation.pop("write", None)
        self._operations.append(numbered(number, operation))
