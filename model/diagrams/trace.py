"""A list of calls, walked through the machine: the states it passes, and what it copies."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ..caffe import DEFAULT
from ..errors import InvalidExportError, listed
from ..moves import Input
from ..opening import machine_of
from ..spelling import any_of, names_in
from ..states import space, stepper
from .diagram import diagram_svg
from .drawing import Detail, asked_of_caller, steps_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..declaration import Machine
    from ..moves import Move, State
    from ..opening import AnyMachine

__all__ = ["Trace", "trace_of"]


class Trace(NamedTuple):
    """The steps of a walk through the machine.

    Attributes
    ----------
    size : int or None
        The size of the memory in bytes; None if it does not matter.
    steps : tuple of Move
    machine : Machine
    """

    size: int | None
    steps: tuple[Move[State], ...]
    machine: Machine = DEFAULT

    def _repr_svg_(self) -> str:
        """The diagram with this walk, in a notebook."""
        return diagram_svg(self.machine, trace=self)

    def numbers_of(self, identifiers: Collection[str], source: str) -> list[int]:
        """The steps, counted from one, that took one of these transitions from this head or configuration."""
        return [
            number
            for number, step in enumerate(self.steps, 1)
            if step.identifier in identifiers
            and source in (step.before.head, _named(self.machine, step.before, Detail.CONFIGURATIONS))
        ]

    def numbered(self, call: str, numbers: list[int]) -> str:
        """A call with the number of its first step before it, and an ellipsis if it has more steps."""
        return f"{numbers[0]}{'…' * (len(numbers) > 1)}: {call}" if numbers else call

    @property
    def room(self) -> int:
        """The number of letters that `numbered` may put before a call."""
        return len(self.numbered("", [len(self.steps), 0]))

    def copies(self, side: str) -> int:
        """The number of copies to a side in the whole trace."""
        return sum(self._copies(step, side) for step in self.steps)

    def total(self, side: str) -> int:
        """The number of bytes that the whole trace copied to a side."""
        if self.size is None:
            raise InvalidExportError("the number of bytes that a trace copies depends on its size, and none was given")
        return self.size * self.copies(side)

    def lines(self, detail: Detail = Detail.HEADS) -> tuple[str, ...]:
        """The trace in words: a line for each step, with the states as drawn, and the sum of what was copied.

        A machine that copies nothing has no sum.
        """
        lines = [f"{number}. {self._said(step, detail)}" for number, step in enumerate(self.steps, 1)]
        if not self.machine.copies:
            return (*lines,)
        sums = (f"{self._amount(self.copies(side))} to {side.upper()}" for side in reversed(self.machine.sides))
        return (*lines, f"Copied: {', '.join(sums)}.")

    def _amount(self, times: int) -> str:
        """A number of copies, in bytes or in words."""
        if self.size is not None:
            return f"{self.size * times:,} byte{'' if self.size * times == 1 else 's'}"
        return "nothing" if not times else "all bytes" if times == 1 else f"all bytes {times:,} times"

    def _said(self, step: Move[State], detail: Detail) -> str:
        start, asked = _named(self.machine, step.before, detail), _stated(self.machine, step)
        if step.refusal:
            return f"{asked} in {start}: refused, {step.refusal}"
        copies = [self._amount(1) for side in self.machine.sides if self._copies(step, side)]
        end = "the end" if step.input.ends else _named(self.machine, step.after, detail)
        return f"{asked}: {start} → {end}, {', '.join([self._done(step), *copies])}"

    def _done(self, step: Move[State]) -> str:
        """The effect of a step.  The name of the end has no side, so each of its frees is named with its side."""
        if not step.input.ends:
            return steps_of(self.machine, [step]) or "nothing"
        sides = [self.machine.actions[action].side for action in step.actions]
        freed = [side for side in self.machine.sides if side in sides]
        return " + ".join(f"{steps_of(self.machine, [step])} {side.upper()}" for side in freed) or "nothing"

    def _copies(self, step: Move[State], side: str) -> int:
        words = (self.machine.actions[action] for action in step.actions)
        return sum(word.does == "copy" and word.side == side for word in words)


def _named(machine: Machine, state: State, detail: Detail) -> str:
    return str(space(machine).configuration(state)) if detail is Detail.CONFIGURATIONS else state.head


def _stated(machine: Machine, step: Move[State]) -> str:
    """An input with the conditions that decided it, also those of which the trace says nothing."""
    if step.row is None or step.input.call is None:
        return str(step.input)
    called = step.input.call.name if step.input.does != "adopt" else str(replace(step.input, given=()))
    conditions = ", ".join(asked_of_caller(machine, step.row))
    return f"{called} [{conditions}]" if conditions else called


class _Reader:
    """Reads the calls of a trace: ``count``, ``count[all yes]``, ``count [all yes, !late]``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._known = {str(asked): asked for asked in stepper(machine).inputs(end=True)}
        free = stepper(machine).free
        tested: dict[str, dict[str, None]] = {name: {} for name in machine.calls}
        for row in machine.rows:
            tested[row.call] |= dict.fromkeys(row.guards)
        self._conditions = {
            call.name: [fact for fact in tested[call.name] if fact in free or fact == call.takes]
            for call in machine.calls.values()
        }

    def names(self, text: str) -> list[str]:
        """The calls in a text."""
        every = any_of({*chain.from_iterable(self._conditions.values())} or {"]"})
        calls = any_of(self._machine.calls)
        stated = rf"(?:{calls})\s*\[\s*!?(?:{every})(?:\s*,\s*!?(?:{every}))*\s*\]"
        return names_in(text, self._known, rf"{stated}|(?:{calls})\s*\[[^\]]*\]")

    def input(self, name: str) -> Input:
        """The input with this name."""
        if name in self._known:
            return self._known[name]
        match = re.fullmatch(rf"({any_of(self._machine.calls)})\s*\[(.*)\]", name)
        if match is None:
            raise InvalidExportError(f"{name!r} is not a call of {self._machine}; its calls are {listed(self._known)}")
        call = self._machine.calls[match[1]]
        conditions = self._conditions[call.name]
        stated: dict[str, bool] = {}
        known = any_of([sign + condition for condition in conditions for sign in ("", "!")])
        for text in re.findall(rf"\s*({known + '|' if known else ''}[^,]+?)\s*(?:,|$)", match[2]) or [""]:
            fact = text.removeprefix("!") if text not in conditions else text
            if fact not in conditions:
                raise InvalidExportError.unknown(f"condition of {call}", fact, conditions)
            if stated.setdefault(fact, text == fact) != (text == fact):
                raise InvalidExportError(f"{name!r} says of {fact!r} both that it holds and that it does not")
        given = tuple(fact for fact in stepper(self._machine).free if stated.get(fact))
        return Input(call, stated.get(call.takes, True), given)

    def stated(self, entry: Input) -> str:
        """A call with all that the caller decides of it."""
        conditions = self._conditions[entry.call.name] if entry.call else []
        stated = ", ".join(fact if fact in entry.holds else f"!{fact}" for fact in conditions)
        return f"{entry.call} [{stated}]" if stated else str(entry)


def trace_of(calls: str | Iterable[str], *, edition: AnyMachine = DEFAULT, size: int | None = None) -> Trace:
    """Take the trace of some calls, from the first head on.

    Parameters
    ----------
    calls : str or iterable of str
        Names of calls, at least one, separated by blanks or commas, see `names_in`; ``set_cpu_data(NULL)`` and
        ``set_mode(CPU)`` are calls too.  ``release`` can only be the last one.  ``count[all yes, !late]`` states what
        the caller decides; of what is not stated, a fact is false, and the argument of a call is given.
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    size : int, optional
        The size of the memory in bytes; without it the trace says "all bytes".

    Raises
    ------
    InvalidExportError
        If there are no calls, if one is not a call of the machine, or does nothing in its head, if one follows the
        end, or if the size is negative.
    DeclarationError
        If there is no such edition, or if the machine is unsound.
    """
    machine = machine_of(edition)
    reader = _Reader(machine)
    names = reader.names(calls) if isinstance(calls, str) else list(calls)
    if not names:
        raise InvalidExportError("a trace has at least one call, got none")
    if size is not None and size < 0:
        raise InvalidExportError(f"a memory has at least 0 bytes, got {size}")
    state = stepper(machine).start
    steps: list[Move[State]] = []
    for number, name in enumerate(names, 1):
        entry = reader.input(name)
        if entry.ends and number < len(names):
            raise InvalidExportError(f"{name} is the end, and {names[number]} follows it")
        move = stepper(machine).step(state, entry)
        if move is None:
            words = reader.stated(entry)
            raise InvalidExportError(f"{machine} has no row for {words} in {state.head}, at call {number} of the trace")
        steps.append(move)
        state = move.after
    return Trace(size, tuple(steps), machine)
