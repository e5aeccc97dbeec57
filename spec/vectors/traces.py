"""Whether a recorded run is one of the machine's: calls and what was seen of them, or actions alone.

Nothing has to be recorded completely.  All states that agree with what was recorded are followed; the run is one of the
machine's as long as there is such a state.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from syncedmem.model import EDITIONS, Call, FileFormatError, Input, Mode, inputs
from syncedmem.model.compiled import dispatch, head_machine
from syncedmem.model.dispatch import facts_of, head_of
from syncedmem.model.exploration import State, explore
from syncedmem.model.head import DEFAULT_EDITION, Fact
from syncedmem.model.vocabulary import Verb, verb_of

from ..engine.calls import ADOPTIONS, READS, SIDES, WRITES
from ..proofs.states import side_of
from .expected import OWN_BUFFER, content
from .keys import LINE, MEMORY_STEP
from .programs import LOOK, OWN, SET_MODE, WRITE_BUFFER
from .reading import json_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from syncedmem.model import Action
    from syncedmem.model.machine import AnyEdition

    from ..engine.calls import Side

__all__ = ["Stop", "check_trace", "checked_lines"]

_MOST = 4
"""The most possibilities that are named."""
_SHOWN = ("refusal", "refused", "actions", "head", "flags", "shows", "bytes")
_OF_STEP = frozenset({"failed", "refused", "mode", *(key.name for key in MEMORY_STEP)})
_OF_RUN = frozenset({"size", "mode", *(key.name for key in LINE)})
_CALLS = frozenset({*(call.value for call in Call), SET_MODE, WRITE_BUFFER, LOOK})


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
        shown = "; or ".join(self.expected[:_MOST]) or "nothing"
        more = len(self.expected) - _MOST
        rest = f"; or {more} more" if more > 0 else ""
        return f"line {self.line}: seen {self.seen}, expected {shown}{rest}"


class _Candidate(NamedTuple):
    """A state that agrees with what was recorded, and the contents of both sides as far as they are known."""

    state: State
    cpu: bytes | None = None
    gpu: bytes | None = None
    ended: bool = False


class _Outcome(NamedTuple):
    """What a candidate does at a line."""

    after: _Candidate
    refusal: str | None
    actions: tuple[Action, ...]
    shows: bytes | None = None
    call: str = ""

    def __str__(self) -> str:
        what = f"the refusal {self.refusal}" if self.refusal else ", ".join(it.value for it in self.actions)
        end = "the end" if self.after.ended else head_of(self.after.state.packed).name
        return f"{self.call}: {what or 'no action'}, then {end}"


def check_trace(path: Path, edition: AnyEdition = DEFAULT_EDITION) -> Stop | int:
    """Check a recorded run: a file of JSON lines, which docs/vectors.md defines.

    Parameters
    ----------
    path : Path
    edition : str or Declaration
        The edition of runs that do not name one, or that name a declaration's.

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


def checked_lines(lines: Iterable[tuple[int, dict[str, Any]]], edition: AnyEdition = DEFAULT_EDITION) -> Stop | int:
    """Check the lines of a recorded run, with their numbers; see `check_trace`."""
    run, last = _Run({"edition": str(edition)}, edition), 0
    for last, line in lines:
        try:
            if "steps" in line or not {"call", "actions"} & set(line):  # a vector is a run too
                _check_keys(line, _OF_RUN)
                run = _Run({"edition": str(edition), **line}, edition)
            for number, step in enumerate(line.get("steps", [line] if {"call", "actions"} & set(line) else [])):
                _check_step(step)
                stop = run.take(step)
                if stop is not None:
                    return Stop(last, stop[0], f"{f'in step {number} ' if 'steps' in line else ''}{stop[1]}")
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"line {last}: {what}") from error
    return last


def _check_keys(found: dict[str, Any], known: frozenset[str]) -> None:
    """Refuse a key that means nothing: it may be a misspelt one, and what it says would not be looked at."""
    if unknown := sorted(map(repr, found.keys() - known)):
        raise ValueError(f"there is no key {unknown[0]}; known are {', '.join(sorted(known))}")


def _check_step(step: dict[str, Any]) -> None:
    _check_keys(step, _OF_STEP)
    if "call" in step and step["call"] not in _CALLS:
        raise ValueError(f"there is no call {step['call']!r}; known are {', '.join(sorted(_CALLS))}")
    _check_keys(step.get("bytes") or {}, frozenset({"cpu", "gpu"}))
    _check_keys(step.get("flags") or {}, frozenset(str(fact.name).lower() for fact in Fact))


class _Run:
    """The candidates of each memory of a run."""

    def __init__(self, header: dict[str, Any], machine: AnyEdition) -> None:
        name = header["edition"]
        self._edition: AnyEdition = machine if name == str(machine) else name
        if self._edition != machine and name not in EDITIONS:
            raise ValueError(f"there is no edition {name!r}")
        sizes: list[int] = header.get("sizes", [header["size"]] if "size" in header else [])
        self._sizes: dict[int, int] = dict(enumerate(sizes))
        self._space = explore(dispatch(self._edition), inputs(self._edition, null=True))
        wanted = [Mode[header["mode"]]] if "mode" in header else [Mode.GPU] if "steps" in header else [*Mode]
        self._new = {_Candidate(self._moved(self._space.start, mode)) for mode in wanted}
        self._memories: dict[int, set[_Candidate]] = {}
        self._buffers: dict[Any, int] = {}
        self._shared = False  # whether two memories have the same buffer: then what one holds says nothing

    def take(self, step: dict[str, Any]) -> tuple[tuple[str, ...], str] | None:
        """Follow a line; what was expected and what was seen, if no candidate agrees."""
        call, number = step.get("call"), step.get("memory", 0)
        if call == SET_MODE:
            mode = Mode[step["argument"]]
            self._new = self._in(self._new, mode)
            self._memories = {key: self._in(found, mode) for key, found in self._memories.items()}
            return None
        argument: Any = step.get("argument")
        if isinstance(argument, dict) and "buffer" in argument:
            self._shared |= self._buffers.setdefault(cast("Any", argument)["buffer"], number) != number
        found = self._memories.get(number, self._new)
        if "mode" in step:
            found = self._in(found, Mode[step["mode"]])
        size = self._sizes.get(number)
        outcomes = [it for candidate in found for it in self._outcomes(candidate, step, size)]
        kept = {after for it in outcomes if (after := self._agreeing(it, step, size)) is not None}
        self._memories[number] = kept
        return None if kept else (tuple(dict.fromkeys(map(str, outcomes))), _seen(step))

    def _moved(self, state: State, mode: Mode) -> State:
        step = self._space.steps[state].get(Input(None, mode=mode))
        return state if step is None else step.after

    def _in(self, found: set[_Candidate], mode: Mode) -> set[_Candidate]:
        return {it._replace(state=self._moved(it.state, mode)) for it in found}

    # --- what a candidate can do

    def _outcomes(self, at: _Candidate, step: dict[str, Any], size: int | None) -> Iterator[_Outcome]:
        call = step.get("call")
        if call in (LOOK, WRITE_BUFFER) or "fail" in step or step.get("failed"):
            # Of a buffer it is not known here which side has it.
            yield _Outcome(at._replace(cpu=None, gpu=None) if call == WRITE_BUFFER else at, None, (), call=str(call))
        elif at.ended:
            return
        elif step.get("argument") == OWN:
            yield _Outcome(at, OWN_BUFFER, (), call=str(call))
        elif call is not None:
            yield from self._called(at, Call(call), step, size)
        else:
            modes = {at, *(it for mode in Mode for it in self._in({at}, mode))}
            calls = [entry.call for entry in inputs(self._edition) if entry.call is not None]
            yield from chain.from_iterable(
                self._called(it, entry, step, size) for it in modes for entry in (*calls, Call.RELEASE)
            )

    def _called(self, at: _Candidate, call: Call, step: dict[str, Any], size: int | None) -> Iterator[_Outcome]:
        if call.ends:
            cell = dispatch(self._edition).cell(call, at.state.packed)
            yield _Outcome(at._replace(ended=True), None, () if cell is None else cell.actions, call=call.value)
            return
        argument: Any = step.get("argument", {})
        taken = self._space.steps[at.state][Input(call, data=argument is not None)]
        if taken.refusal is not None:
            yield _Outcome(at, taken.refusal.value, (), call=call.value)
            return
        held: dict[Side, bytes | None] = {"cpu": at.cpu, "gpu": at.gpu}
        for action in taken.actions:
            side, verb = side_of(action), verb_of(action)
            other: Side = "gpu" if side == "cpu" else "cpu"
            if verb is Verb.ZERO:
                held[side] = None if size is None else bytes(size)
            elif verb is Verb.COPY:
                held[side] = held[other]
        shows = None
        if call in ADOPTIONS:
            held[SIDES[call]] = _bytes(argument.get("bytes"), size)
        elif call in READS + WRITES:
            shows = held[SIDES[call]]
        if call in READS and shows is None:
            held[SIDES[call]] = _bytes(step.get("shows"), size)
        if call in WRITES:
            held[SIDES[call]] = _bytes(step.get("write"), size)
        yield _Outcome(_Candidate(taken.after, held["cpu"], held["gpu"]), None, taken.actions, shows, call.value)

    def _agreeing(self, outcome: _Outcome, step: dict[str, Any], size: int | None) -> _Candidate | None:
        """The candidate after a line, if its outcome agrees with what was recorded."""
        after = outcome.after
        head, facts = head_of(after.state.packed), facts_of(after.state.packed)
        refused = step.get("refusal", step.get("refused", outcome.refusal))
        told = [it.value for it in outcome.actions if verb_of(it) is not Verb.ADOPT]
        flags = {str(fact.name).lower(): fact in facts for fact in head_machine(self._edition).edition.flags}
        shown = _bytes(step.get("shows"), size)
        agrees = (
            (refused == outcome.refusal or (refused is True and outcome.refusal is not None))
            and [it for it in step.get("actions", told) if not it.startswith("adopt")] == told
            and step.get("head", head.name) == head.name
            and all(flags.get(name, value) == value for name, value in step.get("flags", {}).items())
            and (shown is None or outcome.shows is None or shown == outcome.shows)
        )
        if not agrees:
            return None
        if self._shared:
            return after._replace(cpu=None, gpu=None)
        held = step.get("bytes", {})
        cpu, gpu = (_bytes(held.get(side), size) for side in ("cpu", "gpu"))
        if (cpu and after.cpu not in (None, cpu)) or (gpu and after.gpu not in (None, gpu)):
            return None
        return after._replace(cpu=cpu or after.cpu, gpu=gpu or after.gpu)


def _bytes(told: int | str | None, size: int | None) -> bytes | None:
    """A content that was recorded, as a number or in hexadecimal digits; None if it is not known."""
    if told is None or (isinstance(told, int) and size is None):
        return None
    return content(told, size or 0) if isinstance(told, int) else bytes.fromhex(told)


def _seen(step: dict[str, Any]) -> str:
    """What a line says was seen, in one line."""
    parts = [str(step.get("call", "actions alone"))]
    parts += [
        f"{name} {step[name]}"
        for name in ("refusal", "refused", "actions", "head", "flags", "shows", "bytes")
        if name in step
    ]
    return ", ".join(parts)
