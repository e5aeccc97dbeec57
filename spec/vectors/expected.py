"""The expected results of a program: the model's table determines the steps, and its actions determine the bytes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from syncedmem.model import EDITIONS, TRANSITIONS, Action, Call, Fact, Input, Mode, Refusal, inputs
from syncedmem.model.compiled import dispatch
from syncedmem.model.dispatch import facts_of, head_of
from syncedmem.model.exploration import Space, explore
from syncedmem.model.vocabulary import Verb, verb_of

from ..engine.calls import READS, SIDES, WRITES
from ..proofs.states import FRESH, side_of
from .programs import OWN, SET_MODE, WRITE_BUFFER

if TYPE_CHECKING:
    from ..engine.calls import Side
    from .programs import Operation, Program

__all__ = ["OWN_BUFFER", "REFUSALS", "REQUIRED", "Class", "expected_steps"]

Class = Literal["required", "acceptable", "unspecified"]
REQUIRED: Class = "required"
OWN_BUFFER = "own_buffer"
"""The refusal of a memory's own pointer, which Caffe frees and then keeps; the model knows no pointers."""

_WHY = {
    Refusal.NULL_DATA: "the argument of `set_*_data` was NULL",
    Refusal.NO_GPU: "a call for the device in a build without one, with any argument",
}


def _why(refusal: Refusal) -> str:
    if refusal.needs is None:
        return _WHY[refusal]
    calls = dict.fromkeys(f"`{row.call.value}`" for row in TRANSITIONS if row.refusal is refusal)
    return f"{' or '.join(calls)} at a head other than {refusal.needs.name}"


REFUSALS: dict[str | None, str] = {
    None: "the call is not refused; if it has `fail`, it reports that failure",
    **{refusal.value: _why(refusal) for refusal in Refusal},
    OWN_BUFFER: "the argument of `set_*_data` was the memory's own pointer, which the caller does not own",
}
"""The values of `refusal` in a step with their meanings; the page and the schema are made from this list."""


@cache
def _space(edition: str) -> Space:
    """The space of an edition with NULL data among the inputs."""
    return explore(dispatch(edition), inputs(edition, null=True))


def expected_steps(program: Program) -> list[dict[str, Any]]:
    """The steps of a program: each operation with its expected result."""
    follower = _Follower(program)
    return [follower.step(operation) for operation in program.operations]


class _Follower:
    """The state of the model and the bytes, while a program is followed."""

    def __init__(self, program: Program) -> None:
        self._edition = EDITIONS[program.edition]
        self._size = program.size
        self._steps = _space(program.edition).steps
        self._state = _space(program.edition).start
        self._bytes: dict[Side, bytes] = {}
        self._buffers: dict[str, bytes] = {}
        self._adopted: dict[Side, str] = {}

    def step(self, operation: Operation) -> dict[str, Any]:
        """The expected result of one operation."""
        name = operation["call"]
        argument: Any = operation.get("argument")
        if name == SET_MODE:
            self._state = self._steps[self._state][Input(None, mode=Mode[argument])].after
            return {**operation, "class": REQUIRED}
        if name == WRITE_BUFFER:
            self._fill(argument)
            return {**operation, "class": REQUIRED, **self._seen()}
        call = Call(name)
        if call.ends:
            return {**operation, **self._release()}
        if "fail" in operation:
            return {**operation, "class": "unspecified", "refusal": None, **self._seen()}
        if argument == OWN:
            return {**operation, "class": REQUIRED, "refusal": OWN_BUFFER, "actions": [], **self._seen()}
        return {**operation, **self._call(call, operation)}

    def _fill(self, argument: dict[str, Any]) -> None:
        """The caller writes to its own buffer."""
        name = argument["buffer"]
        self._buffers[name] = bytes.fromhex(argument["bytes"])
        self._bytes.update({side: self._buffers[name] for side, it in self._adopted.items() if it == name})

    def _call(self, call: Call, operation: Operation) -> dict[str, Any]:
        argument = operation.get("argument")
        found = self._steps[self._state][Input(call, data="argument" not in operation or argument is not None)]
        if found.refusal is None and argument is not None:
            self._take(SIDES[call], argument)
        for action in found.actions:
            self._act(action)
        self._state = found.after
        moving = found.refusal is None and argument is None
        seen: dict[str, Any] = {
            "class": "unspecified" if not self._size else "acceptable" if moving else REQUIRED,
            "refusal": found.refusal and found.refusal.value,
            "actions": [action.value for action in found.actions],
        }
        if found.refusal is None and call in READS + WRITES:
            seen["shows"] = self._bytes[SIDES[call]].hex()
        if found.refusal is None and "write" in operation:
            self._store(SIDES[call], bytes.fromhex(operation["write"]))
        return {**seen, **self._seen()}

    def _take(self, side: Side, argument: dict[str, Any]) -> None:
        """Adopt a buffer, with new bytes or with its present ones."""
        name = argument["buffer"]
        if "bytes" in argument:
            self._buffers[name] = bytes.fromhex(argument["bytes"])
        self._adopted[side] = name

    def _act(self, action: Action) -> None:
        side = side_of(action)
        verb = verb_of(action)
        if verb is Verb.ZERO:
            self._store(side, bytes(self._size))
        elif verb is Verb.COPY:
            self._store(side, self._bytes["gpu" if side == "cpu" else "cpu"])
        elif verb is Verb.ADOPT:
            self._bytes[side] = self._buffers[self._adopted[side]]

    def _store(self, side: Side, content: bytes) -> None:
        self._bytes[side] = content
        if side in self._adopted:
            self._buffers[self._adopted[side]] = content

    def _release(self) -> dict[str, Any]:
        cell = dispatch(self._edition.name).cell(Call.RELEASE, self._state.packed)
        actions = [] if cell is None else [action.value for action in cell.actions]
        return {"class": REQUIRED if self._size else "unspecified", "refusal": None, "actions": actions}

    def _seen(self) -> dict[str, Any]:
        """The expected head, flags and bytes; ownership of a memory of zero bytes is not specified."""
        head, facts = head_of(self._state.packed), facts_of(self._state.packed)
        fresh = FRESH[head]
        sides: tuple[Side, ...] = ("cpu", "gpu")
        shown = {side: self._bytes[side].hex() if side in fresh else None for side in sides}
        flags = {str(fact.name).lower(): fact in facts for fact in Fact if fact in self._edition.flags}
        return {"head": head.name, **({"flags": flags} if self._size else {}), "bytes": shown}
