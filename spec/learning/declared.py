"""The declared machine, as a machine of the answers that are seen of a port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS, Fact, Input, inputs
from syncedmem.model.compiled import dispatch
from syncedmem.model.exploration import explore
from syncedmem.model.head import Verb

from ..engine.calls import READS, WRITES
from .answers import FLAGS, NEWEST, NOT_ASKED, Answer, Sight, declared_name
from .mealy import Mealy

if TYPE_CHECKING:
    from syncedmem.model import State
    from syncedmem.model.exploration import Space, Step

__all__ = ["DeclaredMachine", "alphabet", "declared_machine"]


@dataclass(frozen=True)
class DeclaredMachine:
    """The machine of an edition.

    Attributes
    ----------
    machine : Mealy
    states : tuple of State
        What its states are, but for the last one, which is the end.
    """

    machine: Mealy
    states: tuple[State, ...]


def alphabet(edition: str) -> tuple[Input, ...]:
    """The inputs: each call, also with NULL, the changes of mode, and release."""
    return inputs(edition, null=True, end=True)


def declared_machine(edition: str, sight: Sight) -> DeclaredMachine:
    """The machine of an edition, as far as it is seen."""
    entries = alphabet(edition)
    found = explore(dispatch(edition), entries)
    states = _before_the_end(found)
    numbers = {state: number for number, state in enumerate(states)}
    end = len(states)
    steps = [
        {
            entry: (_answer(edition, state, entry, step, sight), end if entry.ends else numbers[step.after])
            for entry, step in row.items()
        }
        for state, row in ((state, found.steps[state]) for state in states)
    ]
    return DeclaredMachine(Mealy((*steps, dict.fromkeys(entries, (NOT_ASKED, end)))), states)


def _before_the_end(found: Space) -> tuple[State, ...]:
    """The states that are reached without release."""
    states = {found.start: None}
    waiting = [found.start]
    for state in waiting:
        for entry, step in found.steps[state].items():
            if not entry.ends and step.after not in states:
                states[step.after] = None
                waiting.append(step.after)
    return tuple(states)


def _answer(edition: str, state: State, entry: Input, step: Step, sight: Sight) -> Answer:
    if entry.call is None:
        return Answer()
    seen = sight.flags & EDITIONS[edition].flags
    flags = tuple(name for flag, name in FLAGS.items() if flag & seen & step.after.facts)
    head = step.after.head.name if sight.head else ""
    if step.refusal is not None:
        return Answer(refused=True, head=head, flags=flags)
    shows = NEWEST if sight.bytes and entry.call in (*READS, *WRITES) else ""
    did = _actions(state, step) if sight.actions else ()
    return Answer(False, did, shows, *(("", ()) if entry.ends else (head, flags)))


def _actions(state: State, step: Step) -> tuple[str, ...]:
    """The actions that are seen: all but adoptions.  What is freed is of the kind that it was before."""
    return tuple(
        declared_name(
            action,
            pinned=bool((state if action.does is Verb.FREE else step.after).facts & Fact.CPU_MALLOC_USE_CUDA),
        )
        for action in step.actions
        if action.does is not Verb.ADOPT
    )
