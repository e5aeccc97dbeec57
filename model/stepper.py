"""What an input does in a state of a machine, for everybody who asks: the only code that takes a step by rows.

The rows are given to `transitions` and read back from what it built, so a step and a triggered event are the same row.
Stepping does not trigger: that is about a hundred times slower, takes the first of two enabled rows silently, and
returns False where there is none.  `Stepper.trigger` does, for the tests, which compare every step with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from transitions import Machine as Transitions

from .errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .declaration import Call, Machine, Row

__all__ = ["Input", "State", "Step", "Stepper"]

LONGEST = 160
"""The characters of an error at most, unless names are very long."""

_MOST_FREE = 8
"""How many facts that no action changes a call may test: each doubles its inputs."""

_WILDCARDS = "*", "="
"""What `transitions` would not take as the name of a head."""


class State(NamedTuple):
    """Everything that decides what inputs do.

    Attributes
    ----------
    head : str
    facts : frozenset of str
        The facts that are true, of those that actions change.
    settings : tuple of str
        The value of each setting, in the order of the machine.
    """

    head: str
    facts: frozenset[str] = frozenset()
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Input:
    """A call, or a change of a setting.

    Attributes
    ----------
    call : Call or None
        None for a change of a setting.
    data : bool
        False for a call without its argument; only of calls that take one.
    given : tuple of str
        The facts that are true at this call, of those that no action changes.
    setting, value : str
        What is changed to what.
    """

    call: Call | None = None
    data: bool = True
    given: tuple[str, ...] = ()
    setting: str = ""
    value: str = ""

    @property
    def does(self) -> str:
        """What the call means; empty for a change of a setting."""
        return self.call.does if self.call else ""

    @property
    def side(self) -> str:
        """The side of the call; empty if it is about none."""
        return self.call.side if self.call else ""

    @property
    def shows(self) -> bool:
        """Whether it returns a view of its side."""
        return self.call is not None and self.call.shows

    @property
    def writes(self) -> bool:
        """Whether the caller writes through the view that it returns."""
        return self.call is not None and self.call.writes

    @property
    def queues(self) -> bool:
        """Whether it queues a copy to its side."""
        return self.call is not None and self.call.queues

    @property
    def ends(self) -> bool:
        """Whether there is no memory after it."""
        return self.call is not None and self.call.ends

    @property
    def holds(self) -> frozenset[str]:
        """The conditions that are true because of this call, whatever the state is."""
        argument = (self.call.takes,) if self.call and self.call.takes and self.data else ()
        return frozenset((*self.given, *argument))

    def __str__(self) -> str:
        if self.call is None:
            return f"set_{self.setting}({self.value})"
        null = "" if self.data else "(NULL)"
        return f"{self.call.name}{null}" + (f"[{','.join(self.given)}]" if self.given else "")


class Step(NamedTuple):
    """The effect of an input in a state.

    Attributes
    ----------
    row : Row or None
        The row that fires; None for a change of a setting.
    actions : tuple of str
        In their order.
    after : State
        The same state if the call is refused.
    refusal : str
        Empty unless the call is refused.
    """

    row: Row | None
    actions: tuple[str, ...]
    after: State
    refusal: str


class Built(NamedTuple):
    """A row in one of its heads, as `transitions` built it.

    Attributes
    ----------
    row : Row
    conditions, unless : frozenset of str
    steps : tuple of str
        Its actions, or its refusal.
    dest : str
        The same head if the call does not move it.
    """

    row: Row
    conditions: frozenset[str]
    unless: frozenset[str]
    steps: tuple[str, ...]
    dest: str

    def unmet(self, holds: frozenset[str]) -> frozenset[str]:
        """The conditions that keep the row from firing; none if it fires."""
        return (self.conditions - holds) | (self.unless & holds)


class _Transition(Protocol):
    """The part of a transition of `transitions` that is read: names."""

    conditions: list[Any]
    before: list[str]
    dest: str | None


class _Event(Protocol):
    transitions: dict[str, list[_Transition]]

    def trigger(self, model: object) -> bool: ...


class Stepper:
    """A machine as `transitions` built it, and its steps.

    Parameters
    ----------
    machine : Machine

    Raises
    ------
    DeclarationError
        If `transitions` could not keep its heads apart.
    """

    def __init__(self, machine: Machine) -> None:
        for head in machine.heads:
            if head in _WILDCARDS:
                raise DeclarationError(f"{machine}: a head cannot be named {head!r}, which stands for others")
        self.machine: Machine = machine
        self.start: State = State(
            machine.initial.name, settings=tuple(setting.initial for setting in machine.settings.values())
        )
        self._transitions = Transitions(
            model=None,
            states=list(machine.heads),
            initial=machine.initial.name,
            transitions=[_as_data(row, head) for row in machine.rows for head in row.source],
            auto_transitions=False,
            ignore_invalid_triggers=True,
            send_event=False,
            model_attribute="head",
        )

    @cached_property
    def rows_at(self) -> Mapping[tuple[str, str], tuple[Built, ...]]:
        """The rows of each call in each head where it has any, in the order of their declaration."""
        return MappingProxyType(
            {
                (call, head): tuple(map(partial(_built, head), rows, self._event(call).transitions[head]))
                for (call, head), rows in self.machine.rows_at.items()
            }
        )

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The facts that no action changes: they may be true or false whenever a call is made."""
        changed = set(chain.from_iterable(action.changes for action in self.machine.actions.values()))
        return tuple(fact for fact in self.machine.facts if fact not in changed)

    def inputs(self, *, null: bool = True, settings: bool = True, end: bool = False) -> tuple[Input, ...]:
        """The inputs of the machine.

        Parameters
        ----------
        null : bool
            With calls without their argument.
        settings : bool
            With changes of settings.
        end : bool
            With the calls that end the memory, which come last.

        Raises
        ------
        DeclarationError
            If a call tests too many facts that no action changes.
        """
        calls = self.machine.calls.values()
        found = [entry for call in calls if not call.ends for entry in self._of_call(call, data=True)]
        if null:
            found += [entry for call in calls if call.takes for entry in self._of_call(call, data=False)]
        if settings:
            found += [
                Input(setting=setting.name, value=value)
                for setting in self.machine.settings.values()
                for value in setting.values
            ]
        if end:
            found += [entry for call in calls if call.ends for entry in self._of_call(call, data=True)]
        return tuple(found)

    def step(self, state: State, entry: Input) -> Step | None:
        """The effect of an input in a state; None if a call that means nothing has no row there.

        Raises
        ------
        DeclarationError
            If two rows are enabled at once; or if none is, though the call means something.
        """
        if entry.call is None:
            return Step(None, (), state._replace(settings=self._changed(state.settings, entry)), "")
        holds = state.facts | entry.holds
        enabled = [it for it in self.rows_at.get((entry.call.name, state.head), ()) if not it.unmet(holds)]
        if len(enabled) == 1:
            return self._taken(enabled[0], state)
        if not enabled and not entry.call.does:
            return None
        raise self._ambiguous(state, entry.call, holds, enabled)

    def trigger(self, state: State, entry: Input) -> Step | None:
        """The same as `step` for a call, decided by `transitions` itself."""
        if entry.call is None:
            return self.step(state, entry)
        choice = _Choice(state.head, state.facts | entry.holds)
        if not self._event(entry.call.name).trigger(choice):
            return None
        found = self.rows_at[entry.call.name, state.head]
        row = next(it for it in found if it.steps == tuple(choice.steps) and it.dest == choice.head)
        return self._taken(row, state)

    def facts_after(self, facts: frozenset[str], actions: Iterable[str], settings: tuple[str, ...]) -> frozenset[str]:
        """The facts after some actions, by their declared effects."""
        for name in actions:
            action = self.machine.actions[name]
            facts = (facts | frozenset(action.sets)) - frozenset(action.clears)
            for fact, setting, value in action.by_setting:
                is_set = settings[self._places[setting]] == value
                facts = facts | {fact} if is_set else facts - {fact}
        return facts

    def _taken(self, built: Built, state: State) -> Step:
        if built.row.refusal:
            return Step(built.row, (), state, built.row.refusal)
        facts = self.facts_after(state.facts, built.steps, state.settings)
        return Step(built.row, built.steps, State(built.dest, facts, state.settings), "")

    def _of_call(self, call: Call, *, data: bool) -> Iterator[Input]:
        """The inputs of a call: one for each set of the facts that it tests and nobody changes."""
        rows = (row for row in self.machine.rows if row.call == call.name)
        tested = set(chain.from_iterable((*row.conditions, *row.unless) for row in rows))
        free = [fact for fact in self.free if fact in tested]
        if len(free) > _MOST_FREE:
            raise DeclarationError(
                f"{self.machine}: {call} tests {len(free)} facts that no action changes; {_MOST_FREE} at most"
            )
        for count in range(len(free) + 1):
            yield from (Input(call, data, given) for given in combinations(free, count))

    def _changed(self, settings: tuple[str, ...], entry: Input) -> tuple[str, ...]:
        place = self._places[entry.setting]
        return (*settings[:place], entry.value, *settings[place + 1 :])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.machine.settings)}

    def _event(self, call: str) -> _Event:
        return cast("_Event", self._transitions.events[call])

    def _ambiguous(self, state: State, call: Call, holds: frozenset[str], enabled: list[Built]) -> DeclarationError:
        rows = enabled or self.rows_at.get((call.name, state.head), ())
        problem = "no row is enabled; those for other facts are" if rows else "no row is enabled"
        if enabled:
            problem = f"{len(enabled)} rows are enabled at once"
        named = [f"{built.row.identifier(state.head)} to {built.dest}" for built in rows] or ["it has no row there"]
        facts = ", ".join(sorted(holds))
        where = f"{self.machine}: {call} in {state.head}" + (f" with {facts}" if facts else "")
        return DeclarationError(shortened(f"{where}: {problem}: ", named))


def shortened(text: str, names: list[str]) -> str:
    """A sentence that ends with names: as many as there is room for, one at least."""
    shown = len(names)
    while True:
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        found = f"{text}{', '.join(names[:shown])}{more}"
        if len(found) <= LONGEST or shown == 1:
            return found
        shown -= 1


# What `transitions` looks up at its model: a fact and an action may have the same name, or that of an attribute.
_ASKS, _DOES = "?", "!"


def _as_data(row: Row, head: str) -> dict[str, object]:
    """One row in one of its heads, as the data that `transitions` accepts: names only."""
    steps = (row.refusal,) if row.refusal else row.actions
    return {
        "trigger": row.call,
        "source": head,
        "dest": row.dest,
        "conditions": [_ASKS + fact for fact in row.conditions],
        "unless": [_ASKS + fact for fact in row.unless],
        "before": [_DOES + step for step in steps],
    }


def _built(head: str, row: Row, it: _Transition) -> Built:
    conditions, unless = (
        frozenset(asked.func.removeprefix(_ASKS) for asked in it.conditions if asked.target is wanted)
        for wanted in (True, False)
    )
    return Built(row, conditions, unless, tuple(step.removeprefix(_DOES) for step in it.before), it.dest or head)


class _Choice:
    """The model of `transitions` for one call: it has every condition, and records the steps."""

    def __init__(self, head: str, holds: frozenset[str]) -> None:
        self.head = head
        self.steps: list[str] = []
        self._holds = holds

    def __getattr__(self, name: str) -> object:
        asked = name.removeprefix(_ASKS)
        return asked in self._holds if asked != name else partial(self.steps.append, name.removeprefix(_DOES))
