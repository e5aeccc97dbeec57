"""What the page is told, as plain data: every state of a machine with every step from it, and traces to step through.

The steps are computed here, by the model; the scripts of the page only look them up.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from syncedmem import __version__
from syncedmem.model import EDITIONS, Input, Mode, caffe
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.errors import InvalidExportError
from syncedmem.model.exports.document import machine_document
from syncedmem.model.opening import machine_of
from syncedmem.model.refusals import error_of
from syncedmem.model.states import explore, stepper
from syncedmem.spec.evidence.caffe_tests import CAFFE_TESTS, CAFFE_TESTS_FILE
from syncedmem.spec.vectors import SUITES, vectors
from syncedmem.spec.vectors.programs import LOOK, OWN, SET_MODE, WRITE_BUFFER

from .trace import MOST_STEPS, armed_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from syncedmem.model import Machine
    from syncedmem.model.opening import AnyMachine
    from syncedmem.model.states import Space
    from syncedmem.model.stepper import State, Step
    from syncedmem.spec.vectors.programs import Operation

__all__ = ["MOST_TRANSITIONS", "calls_of", "explorer_material", "explorer_vectors"]

Json = dict[str, Any]

MOST_TRANSITIONS = 20_000
"""The most steps that a page has: they are 30 bytes each, and a browser reads them before it shows anything."""

_CAFFE = "https://github.com/BVLC/caffe/blob/9b8915401"
_FILES = {
    "syncedmem.hpp": f"{_CAFFE}/include/caffe/syncedmem.hpp",
    "syncedmem.cpp": f"{_CAFFE}/src/caffe/syncedmem.cpp",
}
_DIGITS = 12  # of an id: as many as tell all vectors apart with certainty enough, in a page that has to stay small
_LETTERS = string.ascii_letters + string.digits
_WORDS = "name", "title", "about", "cite", "sides", "heads", "settings", "facts", "calls", "actions", "counts"


def explorer_material(edition: AnyMachine = DEFAULT, walks: Sequence[Json] = ()) -> Json:
    """Everything that the page is told, but for the vectors.

    Parameters
    ----------
    edition : str or Machine
        The machine of the page.
    walks : sequence of dict
        What the page opens with, as `Trace.walks` reads it.

    Returns
    -------
    dict
        Plain data, ready for JSON.

    Raises
    ------
    InvalidExportError
        If the machine has too many steps for a page.
    """
    machine = machine_of(edition)
    takes = stepper(machine)
    whole = explore(takes, takes.inputs(end=True))
    if whole.transitions > MOST_TRANSITIONS:
        raise InvalidExportError(
            f"{machine} has {whole.transitions:,} transitions, and a page to play with has at most {MOST_TRANSITIONS:,}"
        )
    (document,) = machine_document(machine)["editions"]
    return {
        "version": __version__,
        **{word: document[word] for word in _WORDS},
        **_Table(whole).told(),
        "laws": [text for text, holds in _laws(whole).items() if holds],
        "most": MOST_STEPS,
        "opened": list(walks),
        **(_of_caffe(machine) if machine in EDITIONS.values() else {}),
    }


def _of_caffe(machine: Machine) -> Json:
    """What is known about Caffe's machine and about no other."""
    tests = [test for test in CAFFE_TESTS if all(call.name in machine.calls for call in test.calls)]
    mode = str(Input(setting=caffe.MODE.name, value=Mode.CPU.name))
    ends = [call.name for call in machine.calls.values() if call.ends]
    return {
        "files": _FILES,
        "undoes": True,
        "tests": [
            {"name": it.name, "calls": [mode, *(call.name for call in it.calls), *ends], "count": len(it.calls)}
            for it in tests
        ],
        "testsFile": CAFFE_TESTS_FILE,
    }


class _Table:
    """Every state and every step of a space as numbers, and the words that they number."""

    def __init__(self, whole: Space) -> None:
        self.whole, self.machine = whole, whole.machine
        self.inputs = list(dict.fromkeys(entry for row in whole.steps.values() for entry in row))
        self._states = {state: number for number, state in enumerate(whole.steps)}
        self._rows: dict[tuple[int, str], int] = {}
        self._said: list[Json] = []
        self._ways: dict[tuple[str, ...], int] = {}
        self._reasons: dict[str, int] = {}

    def told(self) -> Json:
        """The table, and what its numbers stand for."""
        heads, facts = list(self.machine.heads), list(self.machine.facts)
        actions = list(self.machine.actions)
        steps = [
            [self._step(state, entry, row.get(entry)) for entry in self.inputs]
            for state, row in self.whole.steps.items()
        ]
        return {
            "inputs": [
                {
                    "name": str(it),
                    "call": it.call.name if it.call else None,
                    "data": it.data,
                    "setting": it.setting or None,
                    "value": it.value or None,
                    "ends": it.ends,
                    "side": it.side,
                    "does": it.does,
                }
                for it in self.inputs
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

    def _step(self, state: State, entry: Input, step: Step | None) -> list[int] | int:
        """The row, the state afterwards, the actions and the reason of a refusal, each by its number, or -1."""
        if step is None:
            return 0
        after = -1 if entry.ends and not step.refusal else self._states[step.after]
        way = self._ways.setdefault(step.actions, len(self._ways))
        reason = -1
        if step.row is not None and step.refusal:
            data = None if entry.data else _Null()
            error = error_of(self.machine.refusals[step.refusal], step.row.call, self.machine.heads[state.head], data)
            reason = self._reasons.setdefault(str(error), len(self._reasons))
        return [self._row(step, state), after, way, reason]

    def _row(self, step: Step, state: State) -> int:
        row = step.row
        if row is None:
            return -1
        key = id(row), state.head
        if key not in self._rows:
            self._rows[key] = len(self._said)
            conditions = {"when": list(row.conditions), "unless": list(row.unless)}
            self._said.append({"id": row.identifier(state.head), "cite": row.cite, **conditions})
        return self._rows[key]


class _Null:
    """No data: shown as ``NULL``, the word of the inputs, not as Python's None."""

    def __repr__(self) -> str:
        return "NULL"


def _laws(whole: Space) -> dict[str, bool]:
    """Sentences about all states and all steps, of a machine that has pointers, and whether they hold."""
    machine, first = whole.machine, whole.start.head
    pointers = {it.side: it.name for it in machine.facts.values() if it.means == "pointer"}
    owned = {it.side: it.name for it in machine.facts.values() if it.means == "owned"}
    states = list(whole.steps)
    edges = [(state, step) for state, row in whole.steps.items() for entry, step in row.items() if not entry.ends]
    found = {
        f"{first} is never entered again": all(
            (state.head == first) or step.after.head != first for state, step in edges
        )
    }
    if pointers:
        found |= {
            "a fresh side has a pointer": all(
                side not in pointers or pointers[side] in state.facts
                for state in states
                for side in machine.heads[state.head].fresh
            ),
            "a pointer, once there, stays": all(
                not (fact in state.facts and fact not in step.after.facts)
                for state, step in edges
                for fact in pointers.values()
            ),
        }
    if pointers and owned:
        found["what is owned has a pointer"] = all(
            fact not in state.facts or pointers[side] in state.facts
            for state in states
            for side, fact in owned.items()
            if side in pointers
        )
        found["ownership, once given up, never returns"] = all(
            not (pointers[side] in state.facts and fact not in state.facts and fact in step.after.facts)
            for state, step in edges
            for side, fact in owned.items()
            if side in pointers
        )
    zeroes = {it.name for it in machine.actions.values() if it.does == "zero"}
    if zeroes:
        found[f"memory is zeroed only on the way out of {first}"] = all(
            state.head == first or zeroes.isdisjoint(step.actions) for state, step in edges
        )
    return found


def explorer_vectors(edition: AnyMachine = DEFAULT) -> list[Json]:
    """Every suite of an edition with its vectors, or nothing for other machines; the page can open without them.

    Returns
    -------
    list of dict
        Plain data, ready for JSON.
    """
    machine = machine_of(edition)
    return [_suite(machine.name, name) for name in SUITES] if machine in EDITIONS.values() else []


def calls_of(operations: Iterable[Operation]) -> tuple[str, ...]:
    """The operations of a vector that are inputs of the machine, by name; of several memories, those of the first.

    Handing in a memory's own pointer is none, because it is this project that refuses it; nor is what a caller writes
    into a buffer, nor a look.  A call of which an allocator call is to fail has its number behind ``!``.
    """
    return tuple(_name(it) for it in operations if _is_input(it))


def _is_input(operation: Operation) -> bool:
    skipped = operation["call"] in (WRITE_BUFFER, LOOK) or "memory" in operation
    return not skipped and operation.get("argument") != OWN


def _name(operation: Operation) -> str:
    name = operation["call"]
    if name == SET_MODE:
        return str(Input(setting=caffe.MODE.name, value=operation["argument"]))
    data = operation.get("argument", ()) is not None
    fails = f"!{operation['fail']}" if "fail" in operation else ""
    return f"{Input(caffe.EVERYTHING.calls[name], data)}{fails}"


def _suite(edition: str, name: str) -> Json:
    """A suite with its vectors spelled, a letter for each call."""
    found = list(vectors(name, edition))
    words = [_spelled(edition, calls_of(vector.program.operations)) for vector in found]
    letters = dict(zip(dict.fromkeys(call for word in words for call in word), _LETTERS, strict=False))
    return {
        "name": name,
        "text": SUITES[name].text,
        "letters": {letter: call for call, letter in letters.items()},
        "ids": " ".join(vector.id[:_DIGITS] for vector in found),
        "words": " ".join("".join(letters[call] for call in word) for word in words),
    }


def _spelled(edition: str, calls: Iterable[str]) -> list[str]:
    """Calls of which an action fails, with the number of the action in place of that of the allocator call."""
    split = [call.partition("!") for call in calls]
    armed = [(name, int(number or 0)) for name, _, number in split]
    return [f"{name}!{fail}" if fail else name for name, fail in armed_calls(EDITIONS[edition], armed)]
