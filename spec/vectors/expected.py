"""The expected results of a program: the model's table determines the steps, and its actions determine the contents."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS, TRANSITIONS, Action, Call, Fact, Input, Mode, Refusal, inputs
from syncedmem.model.compiled import dispatch
from syncedmem.model.dispatch import facts_of, head_of
from syncedmem.model.exploration import Space, explore
from syncedmem.model.head import Verb

from ..engine.calls import READS, SIDES, WRITES
from ..engine.contents import pattern
from ..proofs.states import FRESH, side_of
from .programs import LOOK, OWN, SET_MODE, WRITE_BUFFER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from syncedmem.model.exploration import Step

    from ..engine.calls import Side
    from .programs import Operation, Program

__all__ = ["OWN_BUFFER", "REFUSALS", "content", "expected_steps"]

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


def content(number: int, size: int) -> bytes:
    """The bytes of a content: zeros for 0, and the pattern of any other number."""
    return pattern(number, size) if number else bytes(size)


def expected_steps(program: Program) -> list[dict[str, Any]]:
    """The steps of a program: each operation with its expected result."""
    caller = _Caller(program)
    return [caller.step(operation) for operation in program.operations]


class _Caller:
    """The memories and the caller's buffers, while a program is followed."""

    def __init__(self, program: Program) -> None:
        self._buffers: dict[int, int] = {}
        self._memories = [_Follower(program.edition, size, self._buffers) for size in program.sizes]

    def step(self, operation: Operation) -> dict[str, Any]:
        """The expected result of one operation."""
        if operation["call"] == SET_MODE:
            for memory in self._memories:
                memory.take(Input(None, mode=Mode[operation["argument"]]))
            return operation
        if operation["call"] == WRITE_BUFFER:
            self._buffers[operation["argument"]["buffer"]] = operation["argument"]["bytes"]
        number: int = operation.get("memory", 0)
        return {**operation, **self._memories[number].step(operation)}


class _Follower:
    """The state of the model of one memory, and the contents of its sides."""

    def __init__(self, edition: str, size: int, buffers: dict[int, int]) -> None:
        self._edition = EDITIONS[edition]
        self._size = size
        self._steps = _space(edition).steps
        self._state = _space(edition).start
        self._own: dict[Side, int] = {}
        self._buffers = buffers
        self._adopted: dict[Side, int] = {}

    def take(self, entry: Input) -> Step:
        """Take a step of the model."""
        step = self._steps[self._state][entry]
        self._state = step.after
        return step

    def step(self, operation: Operation) -> dict[str, Any]:
        """The expected result of an operation on this memory."""
        name = operation["call"]
        if name in (WRITE_BUFFER, LOOK):
            return self._seen()
        call = Call(name)
        if call.ends:
            return self._release()
        if "fail" in operation:
            return {"refusal": None, **self._seen()}
        if operation.get("argument") == OWN:
            return {"refusal": OWN_BUFFER, **self._acted(()), **self._seen()}
        return self._call(call, operation)

    def _call(self, call: Call, operation: Operation) -> dict[str, Any]:
        argument: Any = operation.get("argument")
        taken = self.take(Input(call, data="argument" not in operation or argument is not None))
        if taken.refusal is None and argument is not None:
            self._adopt(SIDES[call], argument)
        for action in taken.actions:
            self._act(action)
        seen: dict[str, Any] = {"refusal": taken.refusal and taken.refusal.value, **self._acted(taken.actions)}
        if taken.refusal is None and call in READS + WRITES:
            seen["shows"] = self._content(SIDES[call])
        if taken.refusal is None and "write" in operation:
            self._store(SIDES[call], operation["write"])
        return {**seen, **self._seen()}

    def _acted(self, actions: Iterable[Action]) -> dict[str, Any]:
        """The expected actions; those of a memory of zero bytes are not specified."""
        return {"actions": [action.value for action in actions]} if self._size else {}

    def _adopt(self, side: Side, argument: dict[str, int]) -> None:
        """Adopt a buffer, with a new content or with its present one."""
        buffer = argument["buffer"]
        self._buffers[buffer] = argument.get("bytes", self._buffers.get(buffer, 0))
        self._adopted[side] = buffer

    def _act(self, action: Action) -> None:
        side = side_of(action)
        verb = action.does
        if verb is Verb.ZERO:
            self._store(side, 0)
        elif verb is Verb.COPY:
            self._store(side, self._content("gpu" if side == "cpu" else "cpu"))

    def _content(self, side: Side) -> int:
        """What a side holds: if it is a buffer of the caller, what is in the buffer."""
        return self._buffers[self._adopted[side]] if side in self._adopted else self._own[side]

    def _store(self, side: Side, number: int) -> None:
        if side in self._adopted:
            self._buffers[self._adopted[side]] = number
        else:
            self._own[side] = number

    def _release(self) -> dict[str, Any]:
        cell = dispatch(self._edition.name).cell(Call.RELEASE, self._state.packed)
        return {"refusal": None, **self._acted(() if cell is None else cell.actions)}

    def _seen(self) -> dict[str, Any]:
        """The expected head, flags and contents; a memory of zero bytes has the flags of any other."""
        head, facts = head_of(self._state.packed), facts_of(self._state.packed)
        sides: tuple[Side, ...] = ("cpu", "gpu")
        shown = {side: self._content(side) if side in FRESH[head] else None for side in sides}
        flags = {str(fact.name).lower(): fact in facts for fact in Fact if fact in self._edition.flags}
        return {"head": head.name, "flags": flags, "bytes": shown}
