"""Whether a recorded run is one of a machine with names of its own: calls and what was seen of them, or actions alone.

Such a machine has no sides of Caffe's, so nothing is known of contents; `.traces` follows runs of Caffe's machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model.compiled import dispatch, head_machine
from syncedmem.model.exploration import State, space

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Action, Call, Declaration, Refusal
    from syncedmem.model.machine import AnyEdition

__all__ = ["OwnRun"]

_KEYS = ("call", "memory", "refusal", "refused", "actions", "head", "flags")


class _Candidate(NamedTuple):
    """A state that agrees with what was recorded."""

    state: State
    ended: bool = False


class _Outcome(NamedTuple):
    """What a candidate does at a line."""

    call: str
    after: _Candidate
    actions: tuple[Action, ...]
    refusal: Refusal | None

    def __str__(self) -> str:
        what = f"the refusal {self.refusal.value}" if self.refusal else ", ".join(it.value for it in self.actions)
        end = "the end" if self.after.ended else self.after.state.head.name
        return f"{self.call}: {what or 'no action'}, then {end}"


class OwnRun:
    """The states that each object of a run may be in.

    Parameters
    ----------
    header : dict
        A line that is no step: it may say the name of the machine as ``edition``.
    machine : Declaration

    Raises
    ------
    ValueError
        If the run is one of another machine.
    """

    def __init__(self, header: dict[str, Any], machine: Declaration) -> None:
        name = header.get("edition", machine.edition.name)
        if name != machine.edition.name:
            raise ValueError(f"it is a run of {name!r}, not of {machine}")
        self._machine: AnyEdition = machine
        self._names = machine.edition.names
        self._start = frozenset({_Candidate(space(machine).start)})
        self._objects: dict[object, frozenset[_Candidate]] = {}

    def take(self, step: dict[str, Any]) -> tuple[tuple[str, ...], str] | None:
        """Follow a line; what was expected and what was seen, if no candidate agrees.

        Raises
        ------
        ValueError
            If the line says something that there is not.
        """
        self._check(step)
        key = step.get("memory", 0)
        outcomes = [it for at in self._objects.get(key, self._start) for it in self._outcomes(at, step.get("call"))]
        kept = frozenset(it.after for it in outcomes if self._agrees(it, step))
        self._objects[key] = kept
        seen = ", ".join(
            [str(step.get("call", "actions alone")), *(f"{it} {step[it]}" for it in _KEYS[2:] if it in step)]
        )
        return None if kept else (tuple(dict.fromkeys(map(str, outcomes))), seen)

    def _check(self, step: dict[str, Any]) -> None:
        """Refuse a name that the machine does not have: no outcome would agree, and nobody would see why."""
        names = self._names
        facts = [str(fact.name).lower() for fact in names.facts]
        for kind, used, known in (
            ("key", list(step), list(_KEYS)),
            ("call", [step["call"]] if "call" in step else [], [it.value for it in names.calls]),
            ("action", step.get("actions", []), [it.value for it in names.actions]),
            ("head", [step["head"]] if "head" in step else [], [it.name for it in names.heads]),
            ("refusal", [step["refusal"]] if step.get("refusal") else [], [it.value for it in names.refusals]),
            ("flag", list(step.get("flags", {})), facts),
        ):
            if unknown := [it for it in used if it not in known]:
                raise ValueError(f"unknown {kind} {unknown[0]!r}; there are {', '.join(known) or 'none'}")

    def _outcomes(self, at: _Candidate, called: str | None) -> Iterator[_Outcome]:
        calls: tuple[Call, ...] = head_machine(self._machine).calls
        for call in calls:
            cell = None if at.ended else dispatch(self._machine).cell(call, at.state.packed)
            if cell is None or called not in (None, call.value):
                continue
            after = at.state._replace(packed=cell.next[at.state.mode.value])
            ended = call.ends and cell.refusal is None
            yield _Outcome(call.value, _Candidate(after, ended), cell.actions, cell.refusal)

    def _agrees(self, outcome: _Outcome, step: dict[str, Any]) -> bool:
        state, name = outcome.after.state, outcome.refusal and outcome.refusal.value
        flags = {str(fact.name).lower(): fact in state.facts for fact in self._names.facts}
        return (
            step.get("refusal", name) == name
            and bool(step.get("refused", name)) == bool(name)
            and step.get("actions", [it.value for it in outcome.actions]) == [it.value for it in outcome.actions]
            and step.get("head", state.head.name) == state.head.name
            and all(flags[flag] == value for flag, value in step.get("flags", {}).items())
        )
