"""Vectors of somebody's own machine: sequences of calls with guarantees, and what is seen after each call.

A line is a vector, and a recorded run too, which `.traces` follows.  Contents of memory are not part of it, because
only Caffe's calls say what they do to them; `.vector` makes the vectors of Caffe's editions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model.compiled import dispatch, head_machine
from syncedmem.model.exploration import Input, space
from syncedmem.model.head import CAFFE_NAMES
from syncedmem.model.suites import access_sequences, hsi_suite, pair_tour, tour
from syncedmem.model.vocabulary import Verb, verb_of

from .programs import SET_MODE
from .vector import canonical, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from syncedmem.model import Declaration
    from syncedmem.model.exploration import State
    from syncedmem.model.suites import InputSequence

__all__ = ["OWN_SUITES", "own_files"]


def _ends(machine: Declaration) -> tuple[InputSequence, ...]:
    """Every call that ends, after a shortest way to each state in which it does: other suites have none of them."""
    table = dispatch(machine)
    ending = [Input(call) for call in head_machine(machine).calls if call.ends]
    return tuple(
        (*way, end)
        for state, way in access_sequences(machine).items()
        for end in ending
        if end.call is not None and (cell := table.cell(end.call, state.packed)) is not None and cell.refusal is None
    )


OWN_SUITES: dict[str, Callable[[Declaration], tuple[InputSequence, ...]]] = {
    "tour": tour,
    "pairs": pair_tour,
    "hsi": hsi_suite,
    "ends": _ends,
}
"""What makes the sequences of calls of each suite, each for a new object; docs/own-machine.md has their guarantees."""


def own_files(machine: Declaration, suites: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The files of a machine: the path of each in a folder, and its text; a suite without vectors has none.

    Parameters
    ----------
    machine : Declaration
        A sound one, with any names.
    suites : iterable of str
        Names from ``OWN_SUITES``.
    """
    name = machine.edition.name
    for suite in suites:
        lines = [canonical(_vector(machine, suite, sequence)) for sequence in OWN_SUITES[suite](machine)]
        if lines:
            yield f"{name}/{suite}.jsonl", "".join(f"{line}\n" for line in lines)


def _vector(machine: Declaration, suite: str, sequence: InputSequence) -> dict[str, Any]:
    name, at = machine.edition.name, space(machine).start
    mode = {"mode": at.mode.name} if machine.edition.names is CAFFE_NAMES else {}
    identity = digest(f"{name}: {' '.join(map(str, sequence))}")
    steps: list[dict[str, Any]] = []
    for entry in sequence:
        steps.append(_seen(machine, at, entry))
        if not (entry.call and entry.call.ends):
            at = space(machine).steps[at][entry].after
    return {"id": identity, "suite": suite, "edition": name, **mode, "steps": steps}


def _seen(machine: Declaration, at: State, entry: Input) -> dict[str, Any]:
    """What is seen of a call in a state."""
    if entry.call is None:
        return {"call": SET_MODE, "argument": entry.mode.name if entry.mode else None}
    argument = {} if entry.data else {"argument": None}
    if entry.call.ends:
        cell = dispatch(machine).cell(entry.call, at.packed)
        return {"call": entry.call.value, "actions": [it.value for it in cell.actions] if cell else []}
    taken, own = space(machine).steps[at][entry], machine.edition.names is not CAFFE_NAMES
    refused = {} if taken.refusal is None else {"refusal": taken.refusal.value}
    facts = machine.edition.names.facts if own else machine.edition.flags
    return {
        "call": entry.call.value,
        **argument,
        **refused,
        "actions": [it.value for it in taken.actions if own or verb_of(it) is not Verb.ADOPT],
        "head": taken.after.head.name,
        "flags": {str(fact.name).lower(): fact in taken.after.facts for fact in facts},
    }
