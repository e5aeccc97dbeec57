"""The comparison of the model with observations of Caffe itself.

``caffe.json`` was recorded from an exhaustive run of the original, not from the model, so a wrong
row cannot be wrong in both places.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from syncedmem.model import matrix, space
from syncedmem.model.caffe import CAFFE, CPU_MALLOC_USE_CUDA, CPU_ONLY, HAS_CPU_POINTER, OWN_CPU_DATA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Configuration, Input, Machine, Move, State

__all__ = ["compare_matrix", "compare_model", "compare_pinned_states", "compare_tutorial", "evidence"]


@cache
def evidence() -> Any:
    """The contents of ``caffe.json``."""
    return json.loads(files("syncedmem.spec.evidence").joinpath("caffe.json").read_text(encoding="utf-8"))


def compare_model(machine: Machine = CAFFE, without_device: Machine = CPU_ONLY) -> list[str]:
    """Every difference between the model and the observations of Caffe; empty if there is none.

    Parameters
    ----------
    machine, without_device : Machine
        What is compared with Caffe, and with its build without a device.
    """
    return [
        *compare_matrix("caffe", matrix(machine)),
        *compare_matrix("cpu_only", matrix(without_device)),
        *compare_pinned_states(machine),
        *compare_tutorial(machine),
    ]


def compare_matrix(edition: str, moves: Mapping[Configuration, Mapping[Input, Move[Configuration]]]) -> list[str]:
    """Compare a matrix cell by cell: ordered actions, next configuration, refusals."""
    observed = {f"{state} {call}": cell for state, row in evidence()[edition].items() for call, cell in row.items()}
    declared = {f"{state} {entry}": _shown(move) for state, row in moves.items() for entry, move in row.items()}
    problems = [
        f"{edition} {key}: observed {observed.get(key, 'nothing')!r}, declared {declared.get(key, 'nothing')!r}"
        for key in observed.keys() | declared.keys()
        if observed.get(key) != declared.get(key)
    ]
    return sorted(problems)


def _shown(move: Move[Configuration]) -> str:
    if move.refusal:
        return "refused"
    # Adoption touches no memory, so the observation has no code for it.
    codes = [_codes()[action] for action in move.actions if action in _codes()]
    return " ".join([*codes, f"-> {move.after}"])


@cache
def _codes() -> dict[str, str]:
    return {name: code for code, name in evidence()["codes"].items()}


def compare_pinned_states(machine: Machine) -> list[str]:
    """Compare the states with the pinned flag: 31 in both modes, 24 if the mode is always GPU."""
    names = {_pinned_name(machine, state) for state in space(machine).steps}
    observed = set(evidence()["pinned_states"])
    problems = [f"pinned state {name}: observed but not reachable" for name in sorted(observed - names)]
    problems += [f"pinned state {name}: reachable but not observed" for name in sorted(names - observed)]
    always = space(machine, settings=False).steps
    expected = evidence()["counts"]["caffe"]["always_gpu_states"]
    return problems + ([f"{len(always)} states in GPU mode, observed {expected}"] if len(always) != expected else [])


def _pinned_name(machine: Machine, state: State) -> str:
    facts, configuration = state.facts, space(machine).configuration(state)
    external = HAS_CPU_POINTER.name in facts and OWN_CPU_DATA.name not in facts
    names = ("fresh flag", "stale flag") if external else ("malloc", "pinned")
    return f"{configuration}/{names[CPU_MALLOC_USE_CUDA.name in facts]}"


def compare_tutorial(machine: Machine) -> list[str]:
    """Replay the trace of Caffe's own tutorial: nine calls with the copies of each."""
    states = space(machine)
    calls = {str(entry): entry for entry in states.steps[states.start]}
    state = states.steps[states.start][calls["mutable_cpu_data"]].after
    problems: list[str] = []
    for name, copies, head in evidence()["tutorial"]["steps"]:
        step = states.steps[state][calls[name]]
        state = step.after
        codes = " ".join(_codes()[action] for action in step.actions if states.machine.actions[action].does == "copy")
        if (codes, state.head) != (copies, head):
            problems.append(f"tutorial {name}: observed {copies!r} -> {head}, declared {codes!r} -> {state.head}")
    return problems
