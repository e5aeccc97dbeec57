"""Comparison of two machines: every sequence of calls of one is also one of the other.

One machine refines another if the other does the same in every step: the same actions in the same order, the same head,
and the same facts as far as it has them.  Calls for a side that the first does not have are left out, because they do
nothing.  If it refuses a call for any other reason, the other must refuse it too.

Both machines are followed at the same time, through every pair of states that they can reach together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import caffe
from syncedmem.model.moves import Stepper
from syncedmem.model.states import space

if TYPE_CHECKING:
    from syncedmem.model.declaration import Machine
    from syncedmem.model.moves import Input, Move, State

__all__ = ["REFINEMENTS", "find_unlike_steps"]

REFINEMENTS = ((caffe.EARLY, caffe.CAFFE), (caffe.CPU_ONLY, caffe.CAFFE), (caffe.CPU_ONLY, caffe.EARLY))
"""Pairs of editions; every sequence of calls of the first is one of the second."""


def find_unlike_steps(finer: Machine, coarser: Machine, absent: str = caffe.NO_GPU.name) -> list[str]:
    """The differences that keep one machine from being a refinement of another.

    Parameters
    ----------
    finer, coarser : Machine
    absent : str
        The refusal of calls for a side that the first machine does not have.

    Returns
    -------
    list of str
        A sentence for each pair of states and each input in which they differ; empty for a refinement.
    """
    tables = Stepper(finer), Stepper(coarser)
    common = finer.facts.keys() & coarser.facts.keys()
    problems: list[str] = []
    waiting = [(tables[0].start, tables[1].start)]
    seen = set(waiting)
    for pair in waiting:  # it grows
        for entry in tables[0].inputs(null=False, end=True):
            one, other = (_step(table, state, entry) for table, state in zip(tables, pair, strict=True))
            if one is None or one.refusal == absent:
                continue
            if other is None or _shown(one, common) != _shown(other, common):
                where = f"{entry} in {space(finer).configuration(pair[0])}"
                problems.append(f"{where}: {finer} {_told(one, common)}, {coarser} {_told(other, common)}")
            elif not entry.ends and (after := (one.after, other.after)) not in seen:
                seen.add(after)
                waiting.append(after)
    return problems


def _step(table: Stepper, state: State, entry: Input) -> Move[State] | None:
    known = entry.call is None or entry.call.name in table.machine.calls
    return table.step(state, entry) if known else None


def _shown(step: Move[State], common: set[str]) -> tuple[object, ...]:
    """What two steps must have in common."""
    return step.actions, step.refusal, step.after.head, step.after.settings, step.after.facts & common


def _told(step: Move[State] | None, common: set[str]) -> str:
    if step is None:
        return "has no such call"
    facts = ", ".join(sorted(step.after.facts & common))
    done = step.refusal or ", ".join(step.actions) or "nothing"
    return f"{done}, then {step.after.head}" + (f" with {facts}" if facts else "")
