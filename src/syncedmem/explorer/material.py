"""What the page is told, as plain data: every state of a machine with every step from it.

The steps are computed here, by the model; the scripts of the page only look them up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.errors import InvalidExportError
from syncedmem.model.exports.document import machine_document
from syncedmem.model.opening import machine_of
from syncedmem.model.refusals import reason_of
from syncedmem.model.states import space

if TYPE_CHECKING:
    from syncedmem.model.moves import Move, State
    from syncedmem.model.opening import AnyMachine
    from syncedmem.model.states import Space

__all__ = ["MOST_TRANSITIONS", "explorer_material"]

Json = dict[str, Any]

MOST_TRANSITIONS = 20_000
"""The most steps that a page has: they are 30 bytes each, and a browser reads them before it shows anything."""

_CAFFE = "https://github.com/BVLC/caffe/blob/9b8915401"
_FILES = {
    "syncedmem.hpp": f"{_CAFFE}/include/caffe/syncedmem.hpp",
    "syncedmem.cpp": f"{_CAFFE}/src/caffe/syncedmem.cpp",
}
_WORDS = "sides", "heads", "settings", "facts", "actions"


def explorer_material(edition: AnyMachine = DEFAULT) -> Json:
    """Everything that the page is told.

    Parameters
    ----------
    edition : str or Machine
        The machine of the page.

    Returns
    -------
    dict
        Plain data, ready for JSON.
    """
    machine = machine_of(edition)
    whole = space(machine, null=True, end=True)
    if whole.transitions > MOST_TRANSITIONS:
        raise InvalidExportError(
            f"{machine} has {whole.transitions:,} transitions, and a page to play with has at most {MOST_TRANSITIONS:,}"
        )
    (document,) = machine_document(machine)["editions"]
    original = {"files": _FILES, "undoes": True} if machine in EDITIONS.values() else {}
    return {**{word: document[word] for word in _WORDS}, **_Table(whole).told(), **original}


class _Table:
    """Every state and every step of a space as numbers, and the words that they number."""

    def __init__(self, whole: Space) -> None:
        self.whole, self.machine = whole, whole.machine
        self.inputs = list(dict.fromkeys(move.input for move in whole.moves))
        self._states = {state: number for number, state in enumerate(whole.steps)}
        self._rows: dict[tuple[int, str], int] = {}
        self._said: list[Json] = []
        self._ways: dict[tuple[str, ...], int] = {}
        self._reasons: dict[str, int] = {}

    def told(self) -> Json:
        """The table, and what its numbers stand for."""
        heads, facts = list(self.machine.heads), list(self.machine.facts)
        actions = list(self.machine.actions)
        steps = [[self._step(row.get(entry)) for entry in self.inputs] for row in self.whole.steps.values()]
        return {
            "inputs": [
                {
                    "name": str(entry),
                    "call": entry.call.name if entry.call else None,
                    "setting": entry.setting or None,
                    "value": entry.value or None,
                    "ends": entry.ends,
                    "side": entry.side,
                    "does": entry.does,
                }
                for entry in self.inputs
            ],
            "states": [
                {
                    "name": str(self.whole.configuration(state)),
                    "head": heads.index(state.head),
                    "facts": sorted(facts.index(fact) for fact in state.facts),
                    "settings": state.settings,
                }
                for state in self.whole.steps
            ],
            "steps": steps,
            "rows": self._said,
            "ways": [[actions.index(name) for name in way] for way in self._ways],
            "reasons": list(self._reasons),
        }

    def _step(self, move: Move[State] | None) -> list[int] | int:
        """The row, the state afterwards, the actions and the reason of a refusal, each by its number, or -1."""
        if move is None:
            return 0
        after = -1 if move.input.ends and not move.refusal else self._states[move.after]
        way = self._ways.setdefault(move.actions, len(self._ways))
        reason = move.row and reason_of(self.machine, move.row, move.before.head)
        refused = self._reasons.setdefault(reason, len(self._reasons)) if reason else -1
        return [self._row(move), after, way, refused]

    def _row(self, move: Move[State]) -> int:
        row = move.row
        if row is None:
            return -1
        key = id(row), move.before.head
        if key not in self._rows:
            self._rows[key] = len(self._said)
            conditions = {"when": list(row.conditions), "unless": list(row.unless)}
            self._said.append({"id": move.identifier, "cite": row.cite, **conditions})
        return self._rows[key]
