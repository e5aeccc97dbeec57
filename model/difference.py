"""Where two machines differ, by what their words mean, and a shortest sequence of calls that tells them apart.

A call of one machine is that of the other if they have one name, or else if only they do the same on the same side.
Sides are the same by their name, or else by their place.  Heads are compared by what they say is fresh, and by their
names if they say nothing; actions by what they do, or else by their names.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from .declaration import Action, Call, Machine
from .moves import Input
from .opening import machine_of
from .states import stepper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .moves import Move, State
    from .opening import AnyMachine

__all__ = ["DifferentCell", "MachineDiff", "compare"]


class DifferentCell(NamedTuple):
    """A call that does different things in states to which the same calls lead.

    Attributes
    ----------
    heads : (str, str)
        The head of each machine.
    sequence : tuple of Input
        The shortest sequence of calls of the first machine that shows it; the last one is the call.
    does : (str, str)
        What it does in each.
    """

    heads: tuple[str, str]
    sequence: tuple[Input, ...]
    does: tuple[str, str]

    @property
    def call(self) -> Input:
        """The call of the first machine."""
        return self.sequence[-1]


class MachineDiff(NamedTuple):
    """The result of a comparison.

    Attributes
    ----------
    machines : (Machine, Machine)
    calls, heads : (tuple of str, tuple of str)
        Those that only the one machine has, and those that only the other one has.
    shared : dict of str to str
        The calls that are compared: for each of the first machine, that of the other.
    cells : tuple of DifferentCell
        What differs, the shortest sequence first; what comes only after machines have parted is not looked at.
    compared : int
        How many cells were compared.
    """

    machines: tuple[Machine, Machine]
    calls: tuple[tuple[str, ...], tuple[str, ...]]
    heads: tuple[tuple[str, ...], tuple[str, ...]]
    shared: Mapping[str, str]
    cells: tuple[DifferentCell, ...]
    compared: int

    @property
    def same(self) -> bool:
        """Whether nobody can tell the machines apart."""
        return not (self.cells or any(self.calls) or any(self.heads))

    def as_json(self) -> dict[str, Any]:
        """The same as values of JSON."""
        one, other = map(str, self.machines)
        return {
            "machines": [one, other],
            "same": self.same,
            "shared_calls": dict(self.shared),
            "calls": {"only_in_first": list(self.calls[0]), "only_in_second": list(self.calls[1])},
            "heads": {"only_in_first": list(self.heads[0]), "only_in_second": list(self.heads[1])},
            "compared_cells": self.compared,
            "cells": [
                {
                    "call": str(cell.call),
                    "heads": cell.heads,
                    "does": cell.does,
                    "sequence": list(map(str, cell.sequence)),
                }
                for cell in self.cells
            ],
        }


def compare(one: AnyMachine, other: AnyMachine) -> MachineDiff:
    """Compare two machines.

    Parameters
    ----------
    one, other : str or Machine
        Names of editions, or machines.

    Raises
    ------
    DeclarationError
        If there is no such edition, or if a machine is unsound.
    """
    words = _Words(machine_of(one), machine_of(other))
    cells: dict[tuple[str, str, Input], DifferentCell] = {}
    compared: set[tuple[str, str, Input]] = set()
    for states, sequence, steps in _walk(words):
        cell = (states[0].head, states[1].head, sequence[-1])
        compared.add(cell)
        if words.outcome(0, steps[0]) != words.outcome(1, steps[1]):
            cells.setdefault(cell, DifferentCell(cell[:2], sequence, (_sentence(steps[0]), _sentence(steps[1]))))
    ordered = tuple(cells.values())
    return MachineDiff(words.machines, words.other_calls, words.other_heads, words.calls, ordered, len(compared))


Pair = tuple["State", "State"]
Steps = tuple["Move[State] | None", "Move[State] | None"]


def _walk(words: _Words) -> Iterator[tuple[Pair, tuple[Input, ...], Steps]]:
    """Each pair of states that the same calls lead to, with each call there, on the shortest way."""
    one, other = map(stepper, words.machines)
    entries = [(entry, twin) for entry in one.inputs(end=True) if (twin := words.twin(entry)) is not None]
    start = one.start, other.start
    waiting: deque[tuple[Pair, tuple[Input, ...]]] = deque([(start, ())])
    seen = {start}
    while waiting:
        states, before = waiting.popleft()
        for entry, twin in entries:
            steps = one.step(states[0], entry), other.step(states[1], twin)
            yield states, (*before, entry), steps
            after = tuple(step.after if step else state for step, state in zip(steps, states, strict=True))
            pair = after[0], after[1]
            if pair not in seen and not entry.ends and words.stands(0, pair[0]) == words.stands(1, pair[1]):
                seen.add(pair)
                waiting.append((pair, (*before, entry)))


class _Words:
    """Which words of two machines are the same.

    Attributes
    ----------
    machines : (Machine, Machine)
    calls : dict of str to str
        For each call of the first machine that of the other.
    other_calls, other_heads : (tuple of str, tuple of str)
        Those of each machine that the other one does not have.
    """

    def __init__(self, one: Machine, other: Machine) -> None:
        self.machines: tuple[Machine, Machine] = (one, other)
        self._sides = {side: side if side in other.sides else _at(other.sides, k) for k, side in enumerate(one.sides)}
        self._sides[""] = ""
        self._bare = {
            action.name for machine in self.machines for action in machine.actions.values() if not action.does
        }
        self._flags = {flag.name for flag in one.flags} & {flag.name for flag in other.flags}
        self.calls: dict[str, str] = {call: call for call in one.calls if call in other.calls}
        rest = [[call for name, call in machine.calls.items() if name not in self.calls] for machine in self.machines]
        for call in rest[0]:
            alike = [name for name in rest[1] if call.does and self._meaning(0, call) == self._meaning(1, name)]
            twins = [name for name in rest[0] if self._meaning(0, name) == self._meaning(0, call)]
            if len(alike) == len(twins) == 1:
                self.calls[call.name] = alike[0].name
        self.other_calls = (
            tuple(call for call in one.calls if call not in self.calls),
            tuple(call for call in other.calls if call not in self.calls.values()),
        )
        self._drawn = not all(any(head.fresh for head in machine.heads.values()) for machine in self.machines)
        known = [{self._says(number, head) for head in machine.heads} for number, machine in enumerate(self.machines)]
        here, there = (
            tuple(head for head in machine.heads if self._says(number, head) not in known[1 - number])
            for number, machine in enumerate(self.machines)
        )
        self.other_heads = here, there

    def twin(self, entry: Input) -> Input | None:
        """The input of the other machine; None if it has none."""
        other = self.machines[1]
        if entry.call is None:
            values = other.settings[entry.setting].values if entry.setting in other.settings else ()
            return entry if entry.value in values else None
        name = self.calls.get(entry.call.name)
        if name is None or not set(entry.given) <= set(stepper(other).free):
            return None
        call = other.calls[name]
        return None if not entry.data and not call.takes else Input(call, entry.data, entry.given)

    def outcome(self, number: int, step: Move[State] | None) -> object:
        """What can be seen of a step, in the words of the other machine."""
        if step is None:
            return None
        if step.refusal:
            return "refused"
        actions = map(self.machines[number].actions.__getitem__, step.actions)
        return tuple(self._meaning(number, action) for action in actions), self.stands(number, step.after)

    def stands(self, number: int, state: State) -> object:
        """What the head of a state says, and the flags that both machines have."""
        return self._says(number, state.head), state.facts & self._flags

    def _says(self, number: int, head: str) -> object:
        fresh = self.machines[number].heads[head].fresh
        return head if self._drawn else frozenset(self._side(number, side) for side in fresh)

    def _meaning(self, number: int, word: Call | Action) -> object:
        if not word.does or word.name in self._bare:
            return word.name
        queued = isinstance(word, Action) and word.queued
        return word.does, self._side(number, word.side), self._side(number, word.source), queued

    def _side(self, number: int, side: str) -> str:
        return side if number else self._sides[side]


def _at(sides: tuple[str, ...], place: int) -> str:
    return sides[place] if place < len(sides) else ""


def _sentence(step: Move[State] | None) -> str:
    """What a call does, in words."""
    if step is None:
        return "nothing"
    if step.refusal:
        return f"refused: {step.refusal}"
    where = "" if step.after.head == step.before.head else f" -> {step.after.head}"
    return (", ".join(step.actions) or "no action") + where
