"""Everything that the inputs of a machine can reach, and what is unsound about it.

There are two views of one reachable space.  A *state* is everything that decides what inputs do.  A *configuration* is
what is left of it without the settings, and without the facts that they decide, if no row tests these.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from .errors import DeclarationError
from .moves import Move, Stepper, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .declaration import Machine, Row
    from .moves import Input, State

__all__ = [
    "Configuration",
    "Space",
    "configurations",
    "explore",
    "matrix",
    "space",
    "stepper",
]


class Configuration(NamedTuple):
    """A head, and the facts that matter for the next call.

    Attributes
    ----------
    name : str
        For example ``C:oe``: the letter of the head, and for each side no pointer (-), an owned one (o), an external
        one (e), or a pointer without a flag of ownership (p).  Other facts are added by their names.
    head : str
    facts : frozenset of str
    """

    name: str
    head: str
    facts: frozenset[str]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class Space:
    """A reachable space: every move, in every state.

    Attributes
    ----------
    machine : Machine
    start : State
    moves : tuple of Move
        Those of one state after those of another, the states in breadth-first order.  A call that means nothing has
        none where it has no row.
    """

    machine: Machine
    start: State
    moves: tuple[Move[State], ...]

    def __repr__(self) -> str:
        return f"<Space of {self.machine}: {len(self.steps)} states, {self.transitions} transitions>"

    @property
    def transitions(self) -> int:
        """The number of moves."""
        return len(self.moves)

    @cached_property
    def steps(self) -> Mapping[State, Mapping[Input, Move[State]]]:
        """The moves by state and input: ``steps[state][input]``; also of a state without moves."""
        steps: dict[State, dict[Input, Move[State]]] = {self.start: {}}
        for move in self.moves:
            steps[move.before][move.input] = move
            if not move.input.ends:
                steps.setdefault(move.after, {})
        return steps

    @cached_property
    def configurations(self) -> Mapping[Configuration, State]:
        """The configurations, in breadth-first order, each with the state of it that is reached first."""
        configurations: dict[Configuration, State] = {}
        for state in self.steps:
            configurations.setdefault(self.configuration(state), state)
        return configurations

    def configuration(self, state: State) -> Configuration:
        """The configuration of a state."""
        facts = state.facts - self._decided
        return Configuration(self._named(state.head, facts), state.head, facts)

    @cached_property
    def _decided(self) -> frozenset[str]:
        """The facts that settings decide and no row tests."""
        tested = {fact for row in self.machine.rows for fact in row.guards}
        decided = {by[0] for action in self.machine.actions.values() for by in action.by_setting}
        return frozenset(decided - tested)

    @cached_property
    def _meanings(self) -> Mapping[str, Mapping[str, str]]:
        """For each side its facts, by what they mean."""
        meanings: dict[str, dict[str, str]] = {side: {} for side in self.machine.sides}
        for fact in self.machine.facts.values():
            if fact.side:
                meanings[fact.side][fact.means] = fact.name
        return meanings

    def _named(self, head: str, facts: frozenset[str]) -> str:
        meanings = self._meanings.values()
        known = frozenset(meaning[name] for meaning in meanings for name in ("pointer", "owned") if name in meaning)
        codes = "".join(_code(meaning, facts) for meaning in meanings) if known else ""
        others = "".join(f"+{fact}" for fact in self.machine.facts if fact in facts - known)
        return (self.machine.heads[head].letter or head) + (f":{codes}" if codes else "") + others


def _code(meaning: Mapping[str, str], facts: frozenset[str]) -> str:
    """A character for one side, from what its facts mean."""
    pointer, owned = meaning.get("pointer"), meaning.get("owned")
    if owned in facts:
        return "o"
    if pointer not in facts:
        return "-"
    return "p" if owned is None else "e"


def explore(machine: Stepper, alphabet: tuple[Input, ...]) -> Space:
    """Search breadth-first for everything that some inputs can reach.

    Raises
    ------
    DeclarationError
        If in a state two rows are enabled at once, or none is though the call means something.
    """
    moves: list[Move[State]] = []
    waiting, seen = deque([machine.start]), {machine.start}
    while waiting:
        state = waiting.popleft()
        for move in filter(None, (machine.step(state, entry) for entry in alphabet)):
            moves.append(move)
            if not move.input.ends and move.after not in seen:
                seen.add(move.after)
                waiting.append(move.after)
    return Space(machine.machine, machine.start, tuple(moves))


# --- the shared ones


@cache
def stepper(machine: Machine) -> Stepper:
    """The shared stepper of a machine, which is checked when it is asked for first.

    Raises
    ------
    DeclarationError
        If the machine declares something that can never happen, or that is ambiguous or missing.
    """
    table = Stepper(machine)
    _check_soundness(table, explore(table, table.inputs(end=True)))
    return table


@cache
def space(machine: Machine, *, null: bool = False, settings: bool = True, end: bool = False) -> Space:
    """The space of a machine: 62 states and 558 transitions for Caffe's, with changes of mode as inputs.

    Parameters
    ----------
    machine : Machine
    null, settings, end : bool
        Which inputs there are besides calls: see `Stepper.inputs`.

    Raises
    ------
    DeclarationError
        If the machine is unsound.
    """
    table = stepper(machine)
    return explore(table, table.inputs(null=null, settings=settings, end=end))


def configurations(machine: Machine) -> tuple[Configuration, ...]:
    """The reachable configurations of a machine, in breadth-first order: 17 for Caffe's."""
    return tuple(space(machine).configurations)


@cache
def matrix(machine: Machine) -> Mapping[Configuration, Mapping[Input, Move[Configuration]]]:
    """Every configuration and every call, also without its argument: 17 x 9 moves for Caffe's.

    Settings are as at the beginning.  Of the states of a configuration, the one that is reached first stands for all of
    them.  Calls that end the memory are not among the calls.
    """
    whole = space(machine, null=True, settings=False)
    return {
        before: {
            entry: Move(before, entry, move.actions, whole.configuration(move.after), move.refusal, move.row)
            for entry, move in whole.steps[state].items()
        }
        for before, state in whole.configurations.items()
    }


# --- soundness: `transitions` would accept all of this silently


def _check_soundness(machine: Stepper, whole: Space) -> None:
    """Refuse a machine with a head that cannot be reached, a row that never fires or a condition that never matters."""
    name, reached = str(machine.machine), {state.head for state in whole.steps}
    if missing := [head for head in machine.machine.heads if head not in reached]:
        leading = [effect for effect in machine.effects if effect.row.dest == missing[0]]
        fired = [effect.identifier for effect in leading if effect.head in reached]
        text = f"{name}: cannot be reached: {missing[0]} ("
        unset = dict.fromkeys(
            _unset(machine.machine, condition) for effect in leading for condition in effect.row.conditions
        )
        why = shortened(f"{text}only these lead there, and never fire{''.join(unset)}: ", fired) if fired else ""
        otherwise = "only rows of heads that cannot be reached lead there" if leading else "no row leads there"
        raise DeclarationError(f"{why or f'{text}{otherwise}{_misspelled(machine.machine, missing[0])}'})")
    unmet: dict[Row, set[frozenset[str]]] = {row: set() for row in machine.machine.rows}
    calls = [(entry.call.name, entry.holds) for entry in machine.inputs(end=True) if entry.call]
    for state, (call, holds) in product(whole.steps, calls):
        for effect in machine.effects_at.get((call, state.head), ()):
            unmet[effect.row].add(effect.row.unmet(state.facts | holds))
    for row, facts in unmet.items():
        _check_row(machine.machine, row, facts)


def _misspelled(machine: Machine, head: str) -> str:
    """A row that names a head, and another head that is nearly spelled so; empty if there is none."""
    near = get_close_matches(head, [name for name in machine.heads if name != head], 1)
    rows = [row.identifier(head) for row in machine.rows if head in row.source]
    if not near:
        return ""
    return f"; {rows[0] if rows else 'no row'} names it, others name {near[0]}: is one of them misspelled?"


def _check_row(machine: Machine, row: Row, unmet: set[frozenset[str]]) -> None:
    identifiers = [row.identifier(head) for head in row.source]
    if frozenset() not in unmet:
        unset = "".join(_unset(machine, fact) for fact in row.conditions)
        raise DeclarationError(shortened(f"{machine}: never fires{unset}: ", identifiers))
    for fact in row.guards:
        # In some state this condition alone must keep the row from firing.
        if frozenset({fact}) not in unmet:
            unset = _unset(machine, fact)
            raise DeclarationError(shortened(f"{machine}: the condition {fact} never matters{unset} in ", identifiers))


def _unset(machine: Machine, fact: str) -> str:
    """Why a condition is never true, if nothing makes it so."""
    is_set = fact in {call.takes for call in machine.calls.values()} or any(
        action.changes.get(fact) for action in machine.actions.values()
    )
    hint = f"no action sets {fact}; if the caller decides it, say Call(NAME, takes={fact!r})"
    return "" if is_set else f" ({hint})"
