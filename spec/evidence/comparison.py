"""The comparison of the model with observations of Caffe itself.

``caffe.json`` was recorded from an exhaustive run of the original, not from the model, so a wrong
row cannot be wrong in both places.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from syncedmem.model import Action, Fact, Side, SyncedHead, inputs, matrix, space
from syncedmem.model.compiled import dispatch
from syncedmem.model.exploration import explore

if TYPE_CHECKING:
    from syncedmem.model import Configuration, Input, State
    from syncedmem.model.exploration import Entry

__all__ = ["compare_matrix", "compare_model", "compare_pinned_states", "compare_tutorial", "evidence"]


@cache
def evidence() -> Any:
    """The contents of ``caffe.json``."""
    return json.loads(files("syncedmem.spec.evidence").joinpath("caffe.json").read_text(encoding="utf-8"))


def compare_model() -> list[str]:
    """Every difference between the model and the observations of Caffe; empty if there is none."""
    return [
        *compare_matrix("caffe", matrix("caffe")),
        *compare_matrix("cpu_only", matrix("cpu_only")),
        *compare_pinned_states(),
        *compare_tutorial(),
    ]


def compare_matrix(edition: str, entries: dict[Configuration, dict[Input, Entry]]) -> list[str]:
    """Compare a matrix cell by cell: ordered actions, next configuration, flags, refusals."""
    observed = {f"{state} {call}": cell for state, row in evidence()[edition].items() for call, cell in row.items()}
    declared = {f"{state} {entry}": _shown(found) for state, row in entries.items() for entry, found in row.items()}
    problems = [
        f"{edition} {key}: observed {observed.get(key, 'nothing')!r}, declared {declared.get(key, 'nothing')!r}"
        for key in observed.keys() | declared.keys()
        if observed.get(key) != declared.get(key)
    ]
    return sorted(problems) + _wrong_flags(edition, entries)


def _wrong_flags(edition: str, entries: dict[Configuration, dict[Input, Entry]]) -> list[str]:
    """Cells whose flags contradict the sides of the next configuration."""
    return [
        f"{edition} {state} {entry}: {found.after} has the flags {found.facts!r}"
        for state, row in entries.items()
        for entry, found in row.items()
        if (found.after.cpu is Side.OWNED, found.after.gpu is Side.OWNED)
        != (Fact.OWN_CPU_DATA in found.facts, Fact.OWN_GPU_DATA in found.facts)
    ]


def _shown(entry: Entry) -> str:
    if entry.refusal:
        return "refused"
    # Adoption touches no memory, so the observation has no code for it.
    codes = [_codes()[action] for action in entry.actions if action in _codes()]
    return " ".join([*codes, f"-> {entry.after}"])


@cache
def _codes() -> dict[Action, str]:
    return {Action(name): code for code, name in evidence()["codes"].items()}


def compare_pinned_states() -> list[str]:
    """Compare the states with the pinned flag: 31 in both modes, 24 if the mode is always GPU."""
    found = {_pinned_name(state) for state in space("caffe").steps}
    observed = set(evidence()["pinned_states"])
    problems = [f"pinned state {name}: observed but not reachable" for name in sorted(observed - found)]
    problems += [f"pinned state {name}: reachable but not observed" for name in sorted(found - observed)]
    always = explore(dispatch("caffe"), inputs("caffe", mode=False)).steps
    expected = evidence()["counts"]["caffe"]["always_gpu_states"]
    return problems + ([f"{len(always)} states in GPU mode, observed {expected}"] if len(always) != expected else [])


def _pinned_name(state: State) -> str:
    pinned = bool(state.facts & Fact.CPU_MALLOC_USE_CUDA)
    external = state.configuration.cpu is Side.EXTERNAL
    names = ("fresh flag", "stale flag") if external else ("malloc", "pinned")
    return f"{state.configuration}/{names[pinned]}"


def compare_tutorial() -> list[str]:
    """Replay the trace of Caffe's own tutorial: nine calls with the copies of each."""
    found = space("caffe")
    calls = {str(entry): entry for entry in found.steps[found.start]}
    state = found.steps[found.start][calls["mutable_cpu_data"]].after
    problems: list[str] = []
    for name, copies, head in evidence()["tutorial"]["steps"]:
        step = found.steps[state][calls[name]]
        state = step.after
        made = " ".join(_codes()[action] for action in step.actions if action.value.startswith("copy"))
        if (made, state.head) != (copies, SyncedHead[head]):
            problems.append(f"tutorial {name}: observed {copies!r} -> {head}, declared {made!r} -> {state.head.name}")
    return problems
