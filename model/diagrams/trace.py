"""A list of calls, walked through the machine: the way it takes, and what it copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..editions import dispatch, head_machine
from ..errors import InvalidExportError
from ..exploration import Input, State, inputs
from ..mode import Mode
from ..vocabulary import Host, Verb, place_of, verb_of
from .drawing import Detail, effect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..head import Action, Refusal

__all__ = ["Step", "Trace", "trace_of"]


class Step(NamedTuple):
    """One call of a trace.

    Attributes
    ----------
    asked : Input
    before, after : State
    identifier : str
        The transition that it took; empty for a change of mode.
    actions : tuple of Action
    refusal : Refusal or None
    """

    asked: Input
    before: State
    after: State
    identifier: str
    actions: tuple[Action, ...]
    refusal: Refusal | None


class Trace(NamedTuple):
    """A walk.

    Attributes
    ----------
    size : int or None
        Of the memory, in bytes; None where it does not matter.
    steps : tuple of Step
    """

    size: int | None
    steps: tuple[Step, ...]

    def numbers_of(self, identifiers: Collection[str], source: str) -> list[int]:
        """The steps, counted from one, that took one of some transitions from a head or from a configuration."""
        return [
            number
            for number, step in enumerate(self.steps, 1)
            if step.identifier in identifiers and source in (step.before.head.name, str(step.before.configuration))
        ]

    def numbered(self, call: str, numbers: list[int]) -> str:
        """A call with the first of its steps before it, and an ellipsis if there are more."""
        return f"{numbers[0]}{'…' * (len(numbers) > 1)}: {call}" if numbers else call

    @property
    def room(self) -> int:
        """Letters that `numbered` may put before a call."""
        return len(self.numbered("", [len(self.steps), 0]))

    def copies(self, place: Host) -> int:
        """How many times the whole trace copied to a place."""
        return sum(_copies(step, place) for step in self.steps)

    def total(self, place: Host) -> int:
        """How many bytes the whole trace copied to a place.

        Raises
        ------
        InvalidExportError
            If nobody said what the size is.
        """
        if self.size is None:
            raise InvalidExportError("how many bytes a trace copies depends on its size, and none was given")
        return self.size * self.copies(place)

    def lines(self, detail: Detail = Detail.HEADS) -> tuple[str, ...]:
        """The walk in words: a line per step, between drawn states, and what was copied altogether."""
        said = [f"{number}. {self._said(step, detail)}" for number, step in enumerate(self.steps, 1)]
        sums = ", ".join(f"{self._amount(self.copies(place))} to {place.name}" for place in reversed(Host))
        return (*said, f"Copied: {sums}.")

    def _amount(self, times: int) -> str:
        """So many copies, in bytes or in words."""
        if self.size is not None:
            return f"{self.size * times:,} byte{'' if self.size * times == 1 else 's'}"
        return "nothing" if not times else "all bytes" if times == 1 else f"all bytes {times:,} times"

    def _said(self, step: Step, detail: Detail) -> str:
        start = _named(step.before, detail)
        if step.refusal is not None:
            return f"{step.asked} in {start}: refused, {step.refusal.value}"
        copies = [self._amount(1) for place in Host if _copies(step, place)]
        end = "the end" if step.asked.ends else _named(step.after, detail)
        return f"{step.asked}: {start} → {end}, {', '.join([_done(step), *copies])}"


def _named(state: State, detail: Detail) -> str:
    return str(state.configuration) if detail is Detail.CONFIGURATIONS else state.head.name


def _done(step: Step) -> str:
    """What a step does.  The destructor alone has no side in its name, so what it frees is said with its side."""
    if not step.asked.ends:
        return effect([step]) or "nothing"
    freed = [place for place in Host if place in map(place_of, step.actions)]
    return " + ".join(f"{effect([step])} {place.name}" for place in freed) or "nothing"


def _copies(step: Step, place: Host) -> int:
    return sum(verb_of(action) is Verb.COPY and place_of(action) is place for action in step.actions)


def trace_of(
    calls: str | Iterable[str], *, edition: str = "caffe", size: int | None = None, mode: Mode = Mode.GPU
) -> Trace:
    """Walk some calls from a fresh memory.

    Parameters
    ----------
    calls : str or iterable of str
        Names of calls, at least one, separated by blanks or commas; ``set_cpu_data(NULL)`` and ``set_mode(CPU)`` are
        calls too.  ``release``, if at all, is the last one.
    edition : str
        A name from ``EDITIONS``.
    size : int, optional
        Of the memory, in bytes; without it the trace says "all bytes".
    mode : Mode
        What it is at the beginning.

    Raises
    ------
    InvalidExportError
        If there is none, or one of them is no call of the edition, or follows ``release``; or if the size is negative.
    DeclarationError
        If there is no such edition.
    """
    names = calls.replace(",", " ").split() if isinstance(calls, str) else list(calls)
    known = {str(asked): asked for asked in inputs(edition, null=True, end=True)}
    if not names:
        raise InvalidExportError("a trace has at least one call, got none")
    if size is not None and size < 0:
        raise InvalidExportError(f"a memory has at least 0 bytes, got {size}")
    state, steps = State(dispatch(edition).start, mode), list[Step]()
    for number, name in enumerate(names, 1):
        if name not in known:
            raise InvalidExportError(f"{name!r} is no call of edition {edition}; there are {', '.join(known)}")
        if known[name].ends and number < len(names):
            raise InvalidExportError(f"release is the end, and {names[number]} follows it")
        steps.append(_step(edition, state, known[name]))
        state = steps[-1].after
    return Trace(size, tuple(steps))


def _step(edition: str, state: State, asked: Input) -> Step:
    if asked.call is None:
        return Step(asked, state, State(state.packed, asked.mode or state.mode), "", (), None)
    row = head_machine(edition).row(asked.call, state.head, state.facts, data=asked.data)
    cell = dispatch(edition).cell(asked.call, state.packed, data=asked.data)
    after = state if cell is None else State(cell.next[state.mode.value], state.mode)
    return Step(asked, state, after, row.identifier(state.head), row.actions, row.refusal)
