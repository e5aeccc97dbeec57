"""A list of calls, walked through the machine: the states it passes, and what it copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..compiled import dispatch, head_machine
from ..display import shown
from ..errors import InvalidExportError
from ..exploration import Input, State, inputs
from ..head import CAFFE_NAMES, DEFAULT_EDITION
from ..mode import Mode
from ..vocabulary import Host, Verb, has_verb, place_of, sides_of
from .drawing import Detail, effect
from .labels import PLAIN, Labels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..display import Bundle
    from ..head import Action, Refusal
    from ..machine import AnyEdition

__all__ = ["Step", "Trace", "trace_of"]


class Step(NamedTuple):
    """One call of a trace.

    Attributes
    ----------
    asked : Input
    before, after : State
    identifier : str
        The transition that the step took; empty for a change of mode.
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
    """The steps of a walk through the machine.

    Attributes
    ----------
    size : int or None
        The size of the memory in bytes; None if it does not matter.
    steps : tuple of Step
    edition : str or Declaration
        The machine of the walk.
    labels : Labels
        The texts of the drawing in which it is shown.
    """

    size: int | None
    steps: tuple[Step, ...]
    edition: AnyEdition = DEFAULT_EDITION
    labels: Labels = PLAIN

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:  # noqa: ARG002 -- of IPython
        """The diagram with this walk, in a notebook."""
        return shown(self.edition, trace=self)

    def numbers_of(self, identifiers: Collection[str], source: str) -> list[int]:
        """The steps, counted from one, that took one of these transitions from this head or configuration."""
        return [
            number
            for number, step in enumerate(self.steps, 1)
            if step.identifier in identifiers and source in self._places(step.before)
        ]

    def numbered(self, call: str, numbers: list[int]) -> str:
        """A call with the number of its first step before it, and an ellipsis if it has more steps."""
        return f"{numbers[0]}{'…' * (len(numbers) > 1)}: {call}" if numbers else call

    @property
    def room(self) -> int:
        """The number of letters that `numbered` may put before a call."""
        return len(self.numbered("", [len(self.steps), 0]))

    def copies(self, place: Host) -> int:
        """The number of copies to a place in the whole trace."""
        return sum(_copies(step, place) for step in self.steps)

    def total(self, place: Host) -> int:
        """The number of bytes that the whole trace copied to a place.

        Raises
        ------
        InvalidExportError
            If the size is not known.
        """
        if self.size is None:
            raise InvalidExportError("the number of bytes that a trace copies depends on its size, and none was given")
        return self.size * self.copies(place)

    def lines(self, detail: Detail = Detail.HEADS) -> tuple[str, ...]:
        """The trace in words: a line for each step, with the states as drawn, and the sum of what was copied."""
        said = [f"{number}. {self._said(step, detail)}" for number, step in enumerate(self.steps, 1)]
        sides = sides_of(head_machine(self.edition).names)
        sums = ", ".join(f"{self._amount(self.copies(it))} to {self.labels.of(sides[it])}" for it in reversed(Host))
        return (*said, f"Copied: {sums}.")

    def _amount(self, times: int) -> str:
        """A number of copies, in bytes or in words."""
        if self.size is not None:
            return f"{self.size * times:,} byte{'' if self.size * times == 1 else 's'}"
        return "nothing" if not times else "all bytes" if times == 1 else f"all bytes {times:,} times"

    def _said(self, step: Step, detail: Detail) -> str:
        asked, start = self.labels.of_input(step.asked), self._named(step.before, detail)
        if step.refusal is not None:
            return f"{asked} in {start}: refused, {self.labels.of(step.refusal.value)}"
        copies = [self._amount(1) for place in Host if _copies(step, place)]
        end = "the end" if step.asked.ends else self._named(step.after, detail)
        return f"{asked}: {start} → {end}, {', '.join([_done(step, self.labels), *copies])}"

    def _places(self, state: State) -> tuple[str, ...]:
        """The names of the nodes that show a state."""
        head = self._named(state, Detail.HEADS)
        return (head, str(state.configuration)) if state.names is CAFFE_NAMES else (head,)

    def _named(self, state: State, detail: Detail) -> str:
        return str(state.configuration) if detail is Detail.CONFIGURATIONS else self.labels.of(state.head.name)


def _done(step: Step, labels: Labels) -> str:
    """The effect of a step.  The name of the destructor has no side, so each of its frees is named with its side."""
    if not step.asked.ends:
        return effect([step], labels) or "nothing"
    sides, words = sides_of(step.before.names), list[str]()
    for action in step.actions:
        place = place_of(action) if has_verb(action, Verb.FREE) else None
        words.append(labels.of_action(action) + (f" {labels.of(sides[place])}" if place else ""))
    return " + ".join(words) or "nothing"


def _copies(step: Step, place: Host) -> int:
    return sum(has_verb(action, Verb.COPY) and place_of(action) is place for action in step.actions)


def trace_of(
    calls: str | Iterable[str], *, edition: AnyEdition = DEFAULT_EDITION, size: int | None = None, mode: Mode = Mode.GPU
) -> Trace:
    """Take the trace of some calls, beginning with a new memory.

    Parameters
    ----------
    calls : str or iterable of str
        Names of calls, at least one, separated by blanks or commas; ``set_cpu_data(NULL)`` and ``set_mode(CPU)`` are
        calls too.  ``release`` can only be the last one, unless it is refused.
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.
    size : int, optional
        The size of the memory in bytes; without it the trace says "all bytes".
    mode : Mode
        The mode at the beginning.

    Raises
    ------
    InvalidExportError
        If there are no calls, if one is not a call of the edition, if one follows ``release``, or if the size is
        negative.
    DeclarationError
        If there is no such edition.
    """
    names = calls.replace(",", " ").split() if isinstance(calls, str) else list(calls)
    known = {str(asked): asked for asked in inputs(edition, null=True, end=True)}
    if not names:
        raise InvalidExportError("a trace has at least one call, got none")
    if size is not None and size < 0:
        raise InvalidExportError(f"a memory has at least 0 bytes, got {size}")
    table = dispatch(edition)
    state, steps = State(table.start, mode, table.names), list[Step]()
    for number, name in enumerate(names, 1):
        if name not in known:
            raise InvalidExportError(f"{name!r} is not a call of edition {edition}; its calls are {', '.join(known)}")
        steps.append(_step(edition, state, known[name]))
        if known[name].ends and steps[-1].refusal is None and number < len(names):
            raise InvalidExportError(f"{name} is the end, and {names[number]} follows it")
        state = steps[-1].after
    return Trace(size, tuple(steps), edition)


def _step(edition: AnyEdition, state: State, asked: Input) -> Step:
    if asked.call is None:
        return Step(asked, state, state._replace(mode=asked.mode or state.mode), "", (), None)
    row = head_machine(edition).row(asked.call, state.head, state.facts, data=asked.data)
    cell = dispatch(edition).cell(asked.call, state.packed, data=asked.data)
    after = state if cell is None else state._replace(packed=cell.next[state.mode.value])
    return Step(asked, state, after, row.identifier(state.head), row.actions, row.refusal)
