"""Whether a recorded run is one of the machine's: calls and what was seen of them, or actions alone.

Nothing has to be recorded completely.  All states that agree with what was recorded are followed; the run is one of the
machine's as long as there is such a state.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from syncedmem.model import FileFormatError
from syncedmem.model.caffe import DEFAULT, EDITIONS
from syncedmem.model.moves import Input
from syncedmem.model.opening import machine_of
from syncedmem.model.states import stepper

from ..engine.contents import contrasted
from ..engine.fields import fault, short
from ..memory.by_table import TableOracle
from ..record.steps import content
from .keys import recorded_line, recorded_step, wrong_sizes
from .operations import LOOK, OWN_BUFFER, WRITE_BUFFER, refusals, setting_of
from .reading import json_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from syncedmem.model.declaration import Call, Machine
    from syncedmem.model.moves import Move, State
    from syncedmem.model.opening import AnyMachine

    from ..engine.fields import Field

__all__ = ["Stop", "check_trace", "checked_lines"]

_MOST = 4
"""The most possibilities that are named."""
_SHOWN = ("refusal", "refused", "actions", "head", "flags", "shows", "bytes")
_NULL_SAYS = frozenset({"argument", "refusal", "refused"})
"""The keys of which null says something: no pointer, and that the call was not refused."""


class Stop(NamedTuple):
    """Where a run stops being one of the machine's.

    Attributes
    ----------
    line : int
        Counted from 1.
    expected : tuple of str
        What could have been seen instead.
    seen : str
    """

    line: int
    expected: tuple[str, ...]
    seen: str

    def __str__(self) -> str:
        """The line, what was seen there, and what could have been, with the bytes that are due where these differ."""
        shown = "; or ".join(self.expected[:_MOST]) or "nothing"
        more = len(self.expected) - _MOST
        rest = f"; or {more} more" if more > 0 else ""
        return f"line {self.line}: seen {self.seen}, expected {shown}{rest}"


class _Outcome(NamedTuple):
    """What a memory may do at a line: its state after it, and what is seen."""

    after: TableOracle
    refusal: str = ""
    actions: tuple[str, ...] = ()
    shows: bytes | None = None
    call: str = ""

    def told(self, step: dict[str, Any], size: int | None) -> str:
        """What may be seen, with what the sides hold, as far as the line says that."""
        what = f"the refusal {self.refusal}" if self.refusal else ", ".join(self.actions)
        end = "the end" if self.after.released else self.after.head
        text = f"{self.call}: {what or 'no action'}, then {end}"
        shown = _bytes(step.get("shows"), size)
        if None not in (shown, self.shows) and shown != self.shows:
            text += f", which shows {contrasted(self.shows or b'', shown or b'')[0]}"
        for side, copy in self.after.copies.items():
            held = _bytes(step.get("bytes", {}).get(side), size)
            if None not in (held, copy.content) and held != copy.content:
                text += f", and the {side} side holds {contrasted(copy.content, held or b'')[0]}"
        return text


def check_trace(path: Path, edition: AnyMachine = DEFAULT) -> Stop | int:
    """Check a recorded run: a file of JSON lines, which docs/vectors.md defines.

    Parameters
    ----------
    path : Path
    edition : str or Machine
        The machine of runs that do not name one, or that name it; other names are those of editions.

    Returns
    -------
    Stop or int
        Where it stops being one of the machine's, or the number of lines.

    Raises
    ------
    FileAccessError
        If it cannot be read.
    FileFormatError
        If a line is none of a recorded run.
    """
    lines = json_lines(path, "a recorded run")
    try:
        return checked_lines(lines, edition)
    except ValueError as error:
        raise FileFormatError(str(path), f"it is no recorded run: {error}") from error


def checked_lines(lines: Iterable[tuple[int, dict[str, Any]]], edition: AnyMachine = DEFAULT) -> Stop | int:
    """Check the lines of a recorded run, with their numbers; see `check_trace`."""
    machine = machine_of(edition)
    run, last = _Run({}, machine), 0
    for last, line in lines:
        try:
            if "steps" in line or not {"call", "actions"} & set(line):  # a vector is a run too
                run = _Run(line, machine)
            for number, step in enumerate(line.get("steps", [line] if {"call", "actions"} & set(line) else [])):
                stop = run.take(step)
                if stop is not None:
                    return Stop(last, stop[0], f"{f'in step {number} ' if 'steps' in line else ''}{stop[1]}")
        except ValueError as error:
            raise ValueError(f"line {last}: {error}") from error
    return last


def _check_keys(line: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse a key that means nothing: it may be a misspelt one, and what it says would not be looked at."""
    if unknown := sorted(map(repr, line.keys() - known)):
        raise ValueError(f"there is no key {unknown[0]}; known are {', '.join(sorted(known))}")


def _check_types(line: dict[str, Any], keys: Mapping[str, Field]) -> None:
    """Refuse a line with another key, or with a value that cannot be one of its key."""
    if type(line) is dict:
        _check_keys(line, keys)
    if sentence := fault(line, keys):
        raise ValueError(f"it {sentence}")


def _check_words(kind: str, words: Iterable[Any], known: Iterable[str]) -> None:
    """Refuse a word that the machine does not have: it may be a misspelt one, and would look like a difference."""
    names = sorted(known)
    for word in words:
        if word not in names:
            near = get_close_matches(str(word), names, 1)
            meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
            raise ValueError(f"there is no {kind} {short(word)}; {meant}")


class _Run:
    """The candidates of each memory of a run: the states that agree with it, with contents as far as they are known."""

    def __init__(self, header: dict[str, Any], machine: Machine) -> None:
        _check_types(header, recorded_line(machine))
        header = {key: value for key, value in header.items() if value is not None}
        name = header.get("edition", machine.name)
        if name != machine.name and name not in EDITIONS:
            raise ValueError(f"there is no machine {short(name)}")
        self._machine = machine = machine if name == machine.name else EDITIONS[name]
        self._stepper = stepper(machine)
        self._keys = recorded_step(machine)
        inputs = self._stepper.inputs(settings=False, end=True)
        self._entries = {call: [entry for entry in inputs if str(entry.call) == call] for call in machine.calls}
        sizes: list[int] = header.get("sizes", [header["size"]] if "size" in header else [])
        if sizes and (sentence := wrong_sizes(sizes)):
            raise ValueError(f"the sizes of its memories are wrong: {short(sizes)} {sentence}")
        self._sizes: dict[int, int] = dict(enumerate(sizes))
        # A recorded run may begin with any setting; a vector begins with that of the beginning.
        self._starts = {self._stepper.start}
        for setting in machine.settings.values():
            begun = [setting.initial] if "steps" in header else setting.values
            values = [header[setting.name]] if setting.name in header else begun
            self._starts = {self._set(start, setting.name, value) for value in values for start in self._starts}
        # A vector says only what happens to memory.
        self._unsaid = {"adopt", "wait", ""} if "steps" in header else {"adopt"}
        self._memories: dict[int, list[TableOracle]] = {}
        self._buffers: dict[Any, int] = {}
        self._landing: set[tuple[int, str]] = set()  # memories, and sides of theirs that a copy may not have reached
        self._shared = False  # whether two memories have the same buffer: then what one holds says nothing

    def take(self, step: dict[str, Any]) -> tuple[tuple[str, ...], str] | None:
        """Follow a line; what was expected and what was seen, if no candidate agrees."""
        step = self._checked(step)
        call, number = step.get("call", ""), step.get("memory", 0)
        if setting := setting_of(self._machine, call):
            value = step["argument"]
            self._starts = {self._set(start, setting, value) for start in self._starts}
            self._memories = {key: self._with(them, setting, value) for key, them in self._memories.items()}
            return None
        argument: Any = step.get("argument")
        if isinstance(argument, dict) and "buffer" in argument:
            self._shared |= self._buffers.setdefault(cast("Any", argument)["buffer"], number) != number
        candidates = self._memories[number] if number in self._memories else self._new(number)
        for name in self._machine.settings.keys() & step.keys():
            candidates = self._with(candidates, name, step[name])
        self._queue_or_land(number, step)
        size = self._sizes.get(number)
        outcomes = [outcome for candidate in candidates for outcome in self._outcomes(candidate, step, size)]
        agreeing = (self._agreeing(outcome, step, size) for outcome in outcomes)
        self._memories[number] = _distinct(oracle for oracle in agreeing if oracle is not None)
        if self._memories[number]:
            return None
        return tuple(dict.fromkeys(outcome.told(step, size) for outcome in outcomes)), _seen(step)

    def _checked(self, line: dict[str, Any]) -> dict[str, Any]:
        """A line without what was not recorded: other keys, types and words are refused."""
        machine = self._machine
        _check_types(line, self._keys)
        step: dict[str, Any] = {key: line[key] for key in line if line[key] is not None or key in _NULL_SAYS}
        known = {*machine.calls, *(f"set_{setting}" for setting in machine.settings), WRITE_BUFFER, LOOK}
        _check_words("call", [step["call"]] if "call" in step else [], known)
        _check_words("head", [step["head"]] if "head" in step else [], machine.heads)
        _check_words("action", step.get("actions", ()), machine.actions)
        _check_words("refusal", [step["refusal"]] if step.get("refusal") else [], filter(None, refusals(machine)))
        _check_keys(step.get("bytes", {}), machine.sides)
        _check_keys(step.get("flags", {}), machine.facts)
        if setting_of(machine, step.get("call", "")) and not isinstance(step.get("argument"), str):
            raise ValueError(f"{step['call']} has no value as its argument")
        return step

    def _queue_or_land(self, number: int, step: dict[str, Any]) -> None:
        """Note to which side a copy was queued; it has happened at the next call for that side, or at a wait."""
        call, words = self._machine.calls.get(step.get("call", "")), self._machine.actions
        actions = [words[action] for action in step.get("actions", ())]
        if any(action.does == "wait" for action in actions):
            self._landing.clear()
        elif call is not None:
            self._landing.discard((number, call.side))
        if step.get("refused") or step.get("refusal"):
            return
        self._landing |= {(number, action.side) for action in actions if action.queued}
        self._landing |= {(number, call.side)} if call is not None and call.queues else set()

    def _new(self, number: int) -> list[TableOracle]:
        """The candidates for a memory of which nothing was recorded yet."""
        new = _forgetful(TableOracle.of(self._machine, self._sizes.get(number, 0)))
        return [replace(new, state=state) for state in self._starts]

    def _set(self, state: State, setting: str, value: str) -> State:
        """A state with another value of a setting."""
        if value not in self._machine.settings[setting].values:
            raise ValueError(f"there is no {setting} {short(value)}")
        step = self._stepper.step(state, Input(setting=setting, value=value))
        return step.after if step else state

    def _with(self, candidates: Iterable[TableOracle], setting: str, value: str) -> list[TableOracle]:
        """The candidates with another value of a setting."""
        return _distinct(
            replace(candidate, state=self._set(candidate.state, setting, value)) for candidate in candidates
        )

    # --- what a candidate can do

    def _outcomes(self, at: TableOracle, step: dict[str, Any], size: int | None) -> Iterator[_Outcome]:
        call = step.get("call")
        if call in (LOOK, WRITE_BUFFER) or "fail" in step or step.get("failed"):
            # Of a buffer it is not known here which side has it.
            yield _Outcome(_forgetful(at) if call == WRITE_BUFFER else at, call=str(call))
        elif at.released:
            return
        elif isinstance(argument := step.get("argument"), dict) and cast("Any", argument).get("own"):
            yield _Outcome(at, OWN_BUFFER, call=str(call))
        elif call is not None:
            yield from self._called(at, call, step, size)
        else:
            states = [at]
            for setting in self._machine.settings.values():
                states = _distinct(
                    state for value in setting.values for state in self._with(states, setting.name, value)
                )
            for state in states:
                for name in self._machine.calls:
                    yield from self._called(state, name, step, size)

    def _called(self, at: TableOracle, name: str, step: dict[str, Any], size: int | None) -> Iterator[_Outcome]:
        call = self._machine.calls[name]
        data = not call.takes or step.get("argument", {}) is not None
        for entry in self._entries[name]:
            row = self._stepper.step(at.state, entry)
            if row is None or entry.data != data:
                continue
            if row.refusal:
                yield _Outcome(at, row.refusal, call=name)
            else:
                yield self._answered(at, call, row, step, size)

    def _answered(
        self, at: TableOracle, call: Call, row: Move[State], step: dict[str, Any], size: int | None
    ) -> _Outcome:
        """What follows of a call that is not refused, with the contents of the sides."""
        argument: Any = step.get("argument") or {}
        _, after = at.take(call, row, _bytes(argument.get("bytes"), size) if call.does == "adopt" else None)
        if size is None:  # then nobody knows how many zeros there are
            zeroed = [side for side, copy in after.copies.items() if copy.content == b""]
            after = _forgetful(after, zeroed)
        shows = after.copy(call.side).content if call.does in ("read", "write") else None
        if call.does == "read" and shows is None:
            after = after.written(call.side, _bytes(step.get("shows"), size))
        elif call.writes:
            after = after.written(call.side, _bytes(step.get("write"), size))
        return _Outcome(after, "", row.actions, shows, call.name)

    def _agreeing(self, outcome: _Outcome, step: dict[str, Any], size: int | None) -> TableOracle | None:
        """The candidate after a line, if its outcome agrees with what was recorded."""
        after, words = outcome.after, self._machine.actions
        refused = step.get("refusal", step.get("refused", outcome.refusal))
        actions = [action for action in outcome.actions if words[action].does not in self._unsaid]
        flags = {flag.name: after.holds(flag) for flag in self._machine.flags}
        shown = _bytes(step.get("shows"), size)
        agrees = (
            bool(refused) == bool(outcome.refusal)
            and step.get("refusal", outcome.refusal) in (outcome.refusal, None)
            and [
                action
                for action in step.get("actions", actions)
                if action not in words or words[action].does not in self._unsaid
            ]
            == actions
            and step.get("head", after.head) == after.head
            and all(flags.get(name, value) == value for name, value in step.get("flags", {}).items())
            and (shown is None or outcome.shows is None or shown == outcome.shows)
        )
        if not agrees:
            return None
        if self._shared:
            return _forgetful(after)
        for side, copy in after.copies.items():
            recorded = _bytes(step.get("bytes", {}).get(side), size)
            if (step.get("memory", 0), side) in self._landing:
                continue
            if recorded and copy.content not in (None, recorded):
                return None
            if recorded:
                after = after.written(side, recorded)
        return after


def _forgetful(oracle: TableOracle, sides: Iterable[str] | None = None) -> TableOracle:
    """The same state, in which nothing is known of what some sides hold; of none, if they are not named."""
    for side in oracle.copies if sides is None else sides:
        oracle = oracle.written(side, None)
    return oracle


def _distinct(oracles: Iterable[TableOracle]) -> list[TableOracle]:
    """States without those that are alike."""
    return [
        *{
            (oracle.state, oracle.released, *(copy.content for copy in oracle.copies.values())): oracle
            for oracle in oracles
        }.values()
    ]


def _bytes(value: int | str | None, size: int | None) -> bytes | None:
    """A content that was recorded, as a number or in hexadecimal digits; None if it is not known."""
    if value is None or (isinstance(value, int) and size is None):
        return None
    return content(value, size or 0) if isinstance(value, int) else bytes.fromhex(value)


def _seen(step: dict[str, Any]) -> str:
    """What a line says was seen, in one line."""
    parts = [str(step.get("call", "actions alone"))]
    parts += [
        f"{name} {step[name]}"
        for name in ("refusal", "refused", "actions", "head", "flags", "shows", "bytes")
        if name in step
    ]
    return ", ".join(parts)
