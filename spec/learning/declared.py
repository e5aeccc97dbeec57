"""The declared machine, as a machine of the answers that are seen of a port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS, Input, space
from syncedmem.model.states import stepper

from .answers import NEWEST, NOT_ASKED, Answer, Sight, declared_name
from .mealy import Mealy

if TYPE_CHECKING:
    from syncedmem.model import Configuration, Machine, State, Step

__all__ = ["DeclaredMachine", "alphabet", "declared_machine"]


@dataclass(frozen=True)
class DeclaredMachine:
    """The machine of an edition.

    Attributes
    ----------
    machine : Mealy
    configurations : tuple of Configuration
        What its states are, but for the last one, which is the end.
    """

    machine: Mealy
    configurations: tuple[Configuration, ...]


def alphabet(edition: str) -> tuple[Input, ...]:
    """The inputs: each call, also with NULL, the changes of mode, and release."""
    return stepper(EDITIONS[edition]).inputs(end=True)


def declared_machine(edition: str, sight: Sight) -> DeclaredMachine:
    """The machine of an edition, as far as it is seen."""
    machine, entries = EDITIONS[edition], alphabet(edition)
    states, table = tuple(space(machine, null=True).steps), stepper(machine)
    numbers = {state: number for number, state in enumerate(states)}
    end = len(states)
    steps = [
        {
            entry: (_answer(machine, state, entry, step, sight), end if entry.ends else numbers[step.after])
            for entry in entries
            if (step := table.step(state, entry))
        }
        for state in states
    ]
    whole = Mealy((*steps, dict.fromkeys(entries, (NOT_ASKED, end))))
    return DeclaredMachine(whole, tuple(map(space(machine).configuration, states)))


def _answer(machine: Machine, state: State, entry: Input, step: Step, sight: Sight) -> Answer:
    if entry.call is None:
        return Answer()
    flags = tuple(it.name for it in machine.flags if it.name in sight.flags & step.after.facts)
    head = step.after.head if sight.head else ""
    if step.refusal:
        return Answer(refused=True, head=head, flags=flags)
    shows = NEWEST if sight.bytes and entry.does in ("read", "write") else ""
    did = _actions(machine, state, step) if sight.actions else ()
    return Answer(False, did, shows, *(("", ()) if entry.ends else (head, flags)))


def _actions(machine: Machine, state: State, step: Step) -> tuple[str, ...]:
    """The actions that are seen: all but adoptions.  What is freed is of the kind that it was before."""
    pinned = {flag.name for flag in machine.flags if flag.means == "pinned"}
    actions = (machine.actions[name] for name in step.actions)
    return tuple(
        declared_name(action, pinned=bool(pinned & (state if action.does == "free" else step.after).facts))
        for action in actions
        if action.does != "adopt"
    )
