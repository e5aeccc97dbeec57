"""What calls do in a machine, computed in one place: the effect of each row, and a move for each input in each state.

An *effect* is what a row does whatever the facts are: which facts have which values afterwards, perhaps by a setting.
Who writes guarded rows (code, formal models, tables) reads effects.  A *move* is what one input does in one state, and
is computed from an effect.  Who steps, explores, judges or performs calls reads moves.

The rows are given to `transitions`, and what it built is read back and compared with them.  Nothing is triggered: that
is about a hundred times slower, takes the first of two enabled rows silently, and returns False where there is none.
The tests do it, and compare every move with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import chain, combinations
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from transitions import Machine as Transitions

from .errors import DeclarationError, listed
from .size import MOST_MOVES, check_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from transitions import Transition

    from .declaration import BySetting, Call, Machine, Row

__all__ = ["Effect", "Input", "Move", "State", "Stepper"]

LONGEST = 160
"""The characters of an error at most, unless names are very long."""

_ALIKE = 0.8
"""How alike names are of which one may be misspelled, from 0 to 1."""

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
        null = "" if self.data or self.does != "adopt" else "(NULL)"
        refuted = [] if self.data or null else [f"!{self.call.takes}"]
        stated = ",".join([*refuted, *self.given])
        return f"{self.call.name}{null}" + (f"[{stated}]" if stated else "")


class Effect(NamedTuple):
    """What a row does in one of its heads.

    Attributes
    ----------
    row : Row
    head, dest : str
        The same head if the row does not move it.
    changes : mapping of str to bool or BySetting
        The facts that its actions change, with their values afterwards.
    """

    row: Row
    head: str
    dest: str
    changes: Mapping[str, bool | BySetting]

    @property
    def identifier(self) -> str:
        """The identifier of the transition."""
        return self.row.identifier(self.head)

    def facts_after(self, facts: frozenset[str], settings: Mapping[str, str]) -> frozenset[str]:
        """The facts after the row, if these were true before; `settings` has the value of each setting."""
        values = {
            fact: change if isinstance(change, bool) else change.holds(settings)
            for fact, change in self.changes.items()
        }
        return facts.difference(values) | {fact for fact, value in values.items() if value}


class _Headed(Protocol):
    """A state or a configuration."""

    @property
    def head(self) -> str: ...


AtT = TypeVar("AtT", bound=_Headed)


class Move(NamedTuple, Generic[AtT]):
    """What an input does in a state; or, in the matrix, in a configuration.

    Attributes
    ----------
    before : State or Configuration
    input : Input
    actions : tuple of str
        In their order.
    after : State or Configuration
        The same one if the call is refused.
    refusal : str
        Empty unless the call is refused.
    row : Row or None
        The row that fires; None for a change of a setting.
    """

    before: AtT
    input: Input
    actions: tuple[str, ...]
    after: AtT
    refusal: str
    row: Row | None

    @property
    def identifier(self) -> str:
        """The identifier of the transition that is taken; empty for a change of a setting."""
        return self.row.identifier(self.before.head) if self.row else ""


class Stepper:
    """The effects and the moves of a machine, each computed once.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    machine : Machine
    start : State
        That of a new memory.
    library : transitions.Machine
        The same machine as `transitions` built it.
    effects : tuple of Effect
        Of each row in each of its heads, in the order of their declaration.

    Raises
    ------
    DeclarationError
        If `transitions` could not keep its heads apart, or if there may be too many moves.
    """

    def __init__(self, machine: Machine) -> None:
        for head in machine.heads:
            if head in _WILDCARDS:
                raise DeclarationError(f"{machine}: a head cannot be named {head!r}, which stands for others")
        self.machine: Machine = machine
        check_size(str(machine), self._most_moves(), MOST_MOVES, "moves are possible by multiplication")
        self.start: State = State(
            machine.initial.name, settings=tuple(setting.initial for setting in machine.settings.values())
        )
        self.effects: tuple[Effect, ...] = tuple(
            Effect(row, head, row.dest or head, _changes(machine, row)) for row in machine.rows for head in row.source
        )
        self.library: Transitions = Transitions(
            model=None,
            states=list(machine.heads),
            initial=machine.initial.name,
            transitions=[_as_data(effect) for effect in self.effects],
            auto_transitions=False,
            ignore_invalid_triggers=True,
            send_event=False,
            model_attribute="head",
        )
        for (call, head), effects in self.effects_at.items():
            kept = self.library.events[call].transitions[head]
            if [_read(call, transition) for transition in kept] != [_as_data(effect) for effect in effects]:
                raise DeclarationError(f"{machine}: transitions changed the rows of {call} in {head}")
        self._moves: dict[tuple[State, Input], Move[State] | None] = {}

    @cached_property
    def effects_at(self) -> Mapping[tuple[str, str], tuple[Effect, ...]]:
        """The effects of each call in each head where it has any, in the order of their declaration."""
        by_place: dict[tuple[str, str], list[Effect]] = {}
        for effect in self.effects:
            by_place.setdefault((effect.row.call, effect.head), []).append(effect)
        return MappingProxyType({place: tuple(effects) for place, effects in by_place.items()})

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The facts that no action changes: they may be true or false whenever a call is made."""
        changed = set(chain.from_iterable(action.changes for action in self.machine.actions.values()))
        return tuple(fact for fact in self.machine.facts if fact not in changed)

    @cached_property
    def _tested(self) -> Mapping[str, tuple[str, ...]]:
        """For each call the facts that its rows test and nobody changes."""
        tested: dict[str, set[str]] = {}
        for row in self.machine.rows:
            tested.setdefault(row.call, set()).update(row.guards)
        place = {fact: k for k, fact in enumerate(self.free)}
        return {call: tuple(sorted(facts & place.keys(), key=place.__getitem__)) for call, facts in tested.items()}

    def _most_moves(self) -> int:
        """The product of heads, facts, settings and inputs: there cannot be more moves than that."""
        machine = self.machine
        values = [len(setting.values) for setting in machine.settings.values()]
        states: int = len(machine.heads) * 2 ** (len(machine.facts) - len(self.free)) * prod(values)
        calls: int = sum(
            2 ** len(self._tested[call.name]) * (2 if call.takes else 1) for call in machine.calls.values()
        )
        return states * (calls + sum(values))

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
        """
        calls = self.machine.calls.values()
        inputs = [entry for call in calls if not call.ends for entry in self._of_call(call, data=True)]
        if null:
            inputs += [entry for call in calls if call.takes for entry in self._of_call(call, data=False)]
        if settings:
            inputs += [
                Input(setting=setting.name, value=value)
                for setting in self.machine.settings.values()
                for value in setting.values
            ]
        if end:
            inputs += [entry for call in calls if call.ends for entry in self._of_call(call, data=True)]
        return tuple(inputs)

    def step(self, state: State, entry: Input) -> Move[State] | None:
        """What an input does in a state; None if a call that means nothing has no row there.

        Raises
        ------
        DeclarationError
            If two rows are enabled at once; or if none is, though the call means something.
        """
        try:
            return self._moves[state, entry]
        except KeyError:
            move = self._moves[state, entry] = self._move(state, entry)
            return move

    def _move(self, state: State, entry: Input) -> Move[State] | None:
        settings = dict(zip(self.machine.settings, state.settings, strict=True))
        if entry.call is None:
            after = state._replace(settings=tuple({**settings, entry.setting: entry.value}.values()))
            return Move(state, entry, (), after, "", None)
        call, holds = entry.call, state.facts | entry.holds
        effects = self.effects_at.get((call.name, state.head), ())
        enabled = [effect for effect in effects if not effect.row.unmet(holds)]
        if not enabled and not call.does:
            return None
        if len(enabled) != 1:
            raise self._ambiguous(state, call, holds, enabled)
        row, _, dest, _ = effect = enabled[0]
        after = State(dest, effect.facts_after(state.facts, settings), state.settings)
        return Move(state, entry, row.actions, after, row.refusal, row)

    def _of_call(self, call: Call, *, data: bool) -> Iterator[Input]:
        """The inputs of a call: one for each set of the facts that it tests and nobody changes."""
        free = self._tested[call.name]
        for count in range(len(free) + 1):
            yield from (Input(call, data, given) for given in combinations(free, count))

    def _ambiguous(self, state: State, call: Call, holds: frozenset[str], enabled: list[Effect]) -> DeclarationError:
        effects = enabled or self.effects_at.get((call.name, state.head), ())
        problem = "no row is enabled; those for other facts are" if effects else "no row is enabled"
        if enabled:
            problem = f"{len(enabled)} rows are enabled at once"
        named = [f"{effect.identifier} to {effect.dest}" for effect in effects] or ["it has no row there"]
        facts = listed(sorted(holds)) if holds else ""
        where = f"{self.machine}: {call} in {state.head}" + (f" with {facts}" if facts else "")
        return DeclarationError(shortened(f"{where}: {problem}{self._misspelled(effects)}: ", named))

    def _misspelled(self, effects: Iterable[Effect]) -> str:
        """Two conditions that are spelt nearly alike, one of which nothing makes true; empty if there are none."""
        arguments = [call.takes for call in self.machine.calls.values() if call.takes]
        for fact in dict.fromkeys(chain.from_iterable(effect.row.guards for effect in effects)):
            others = [other for other in (*self.machine.facts, *arguments) if _letters(other) != _letters(fact)]
            near = get_close_matches(fact, others, 1, _ALIKE)
            if near and fact in self.free:
                return f" ({fact!r} is not {near[0]!r}: is one misspelled?)"
        return ""


def _letters(name: str) -> str:
    """A name without its digits, in which names differ that are meant to."""
    return re.sub(r"\d", "", name)


def _changes(machine: Machine, row: Row) -> dict[str, bool | BySetting]:
    """The facts that the actions of a row change; the last change of a fact counts."""
    changes: dict[str, bool | BySetting] = {}
    for name in row.actions:
        changes |= machine.actions[name].changes
    return changes


def shortened(text: str, names: list[str]) -> str:
    """A sentence that ends with names: as many as there is room for, one at least."""
    shown = len(names)
    while True:
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        sentence = f"{text}{', '.join(names[:shown])}{more}"
        if len(sentence) <= LONGEST or shown == 1:
            return sentence
        shown -= 1


def _as_data(effect: Effect) -> dict[str, object]:
    """A row in one of its heads, as the data that `transitions` accepts: names only.

    It looks names up at its model, and a fact and an action may have the same name, or that of an attribute: so a
    question mark is before each fact, and an exclamation mark before each action.
    """
    row = effect.row
    steps = (row.refusal,) if row.refusal else row.actions
    return {
        "trigger": row.call,
        "source": effect.head,
        "dest": row.dest,
        "conditions": [f"?{fact}" for fact in row.conditions],
        "unless": [f"?{fact}" for fact in row.unless],
        "before": [f"!{step}" for step in steps],
    }


def _read(call: str, transition: Transition) -> dict[str, object]:
    """The same data of a transition, as `transitions` keeps it."""
    return {
        "trigger": call,
        "source": transition.source,
        "dest": transition.dest,
        "conditions": [condition.func for condition in transition.conditions if condition.target],
        "unless": [condition.func for condition in transition.conditions if not condition.target],
        "before": transition.before,
    }
