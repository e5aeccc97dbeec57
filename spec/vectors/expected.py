"""The expected results of a program, as the oracle says them; the machine has only the words for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from syncedmem.model import EDITIONS, caffe

from ..engine.call_log import action_of
from ..memory.by_table import TableOracle
from ..memory.oracle import Oracle, Wanted
from ..memory.policy import POLICIES, Reason
from .programs import LOOK, OWN, WRITE_BUFFER, setting_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from syncedmem.model.declaration import Call, Machine, Refusal

    from ..memory.policy import Policy
    from .programs import Operation, VectorProgram

__all__ = ["OWN_BUFFER", "REFUSALS", "expected_steps", "refusals"]

OWN_BUFFER = "own_buffer"
"""The refusal of a memory's own pointer, which Caffe frees and then keeps; no machine knows pointers."""

_WHY = {
    caffe.NULL_DATA: "the argument of `set_*_data` was NULL",
    caffe.NO_GPU: "a call for the device in a build without one, with any argument",
}


def _why(refusal: Refusal) -> str:
    if not refusal.needs:
        return _WHY[refusal]
    calls = dict.fromkeys(f"`{row.call}`" for row in caffe.EVERYTHING.rows if row.refusal == refusal.name)
    return f"{' or '.join(calls)} at a head other than {refusal.needs}"


REFUSALS: dict[str | None, str] = {
    None: "the call is not refused; if it has `fail`, it reports that failure",
    **{refusal.name: _why(refusal) for refusal in caffe.REFUSALS},
    OWN_BUFFER: "the argument of `set_*_data` was the memory's own pointer, which the caller does not own",
}
"""The values of `refusal` in a step with their meanings; the page and the schema are made from this list."""


def refusals(machine: Machine) -> Mapping[str | None, str]:
    """The values of `refusal` in a step of a machine with their meanings; what it does not name has a word of ours."""
    if machine in (caffe.EVERYTHING, *EDITIONS.values()):
        return REFUSALS
    ours = dict.fromkeys(get_args(Reason), "the policy refuses the call, and does not say what the machine calls it")
    own = {it.name: it.text or "the machine refuses the call" for it in machine.refusals.values()}
    return {None: REFUSALS[None], **ours, **own}


def _policy_for(machine: Machine, policy: Policy | None) -> Policy | None:
    """The policy of a machine: that of an edition is known."""
    return POLICIES[machine.name] if policy is None and EDITIONS.get(machine.name) == machine else policy


def expected_steps(program: VectorProgram, policy: Policy | None = None) -> list[dict[str, Any]]:
    """The steps of a program: each operation with its expected result.

    Without a policy, the oracle of a machine that is no edition of Caffe's is its own table.
    """
    caller = _Caller(program, _policy_for(program.machine, policy))
    return [caller.step(operation) for operation in program.operations]


class _Caller:
    """The memories and the caller's buffers, while a program is followed."""

    def __init__(self, program: VectorProgram, policy: Policy | None) -> None:
        self._machine = program.machine
        self._settings = {it.name: it.initial for it in self._machine.settings.values()}
        self._buffers: dict[int, int] = {}
        self._memories = [_Followed(self._machine, policy, size, self._buffers) for size in program.sizes]

    def step(self, operation: Operation) -> dict[str, Any]:
        """The expected result of one operation."""
        if setting := setting_of(self._machine, operation["call"]):
            self._settings[setting] = operation["argument"]
            return operation
        if operation["call"] == WRITE_BUFFER:
            self._buffers[operation["argument"]["buffer"]] = operation["argument"]["bytes"]
        number: int = operation.get("memory", 0)
        return {**operation, **self._memories[number].step(operation, self._settings)}


class _Followed:
    """One memory as the oracle sees it; its contents are numbers, and those of adopted sides are the caller's."""

    def __init__(self, machine: Machine, policy: Policy | None, size: int, buffers: dict[int, int]) -> None:
        self._machine = machine
        self._oracle = Oracle.new(policy, size, 0) if policy else TableOracle.of(machine, size, 0)
        self._heads = {frozenset(head.fresh): head.name for head in machine.heads.values()}
        self._buffers = buffers
        self._adopted: dict[str, int] = {}

    def step(self, operation: Operation, settings: Mapping[str, str]) -> dict[str, Any]:
        """The expected result of an operation on this memory."""
        for side, buffer in self._adopted.items():  # others may have written there
            self._oracle = self._oracle.written(side, self._buffers[buffer])
        name = operation["call"]
        if name in (WRITE_BUFFER, LOOK):
            return self._seen()
        if "fail" in operation:
            return {"refusal": None, **self._seen()}
        if operation.get("argument") == OWN:
            return {"refusal": OWN_BUFFER, **self._acted(()), **self._seen()}
        return self._call(self._machine.calls[name], operation, settings)

    def _call(self, call: Call, operation: Operation, settings: Mapping[str, str]) -> dict[str, Any]:
        argument = operation.get("argument")
        given = self._given(argument) if argument else None
        expected = self._oracle.expect(call, settings, given)
        reason = self._oracle.why(call, settings, given) if expected.refused else None
        self._oracle = expected.after
        if argument and not expected.refused:
            self._adopted[call.side] = argument["buffer"]
        seen: dict[str, Any] = {"refusal": reason, **self._acted(expected.steps)}
        if call.ends:
            return seen
        if not expected.refused and call.does in ("read", "write"):
            shown = self._oracle.copy(call.side).content
            seen |= {} if shown is None else {"shows": shown}
        if not expected.refused and "write" in operation:
            self._oracle = self._oracle.written(call.side, operation["write"])
        for side, buffer in self._adopted.items():
            self._buffers[buffer] = self._oracle.copy(side).content
        return {**seen, **self._seen()}

    def _given(self, argument: dict[str, int]) -> int:
        """What is in a buffer that is handed in: a new content, or its present one."""
        buffer = argument["buffer"]
        return argument.get("bytes", self._buffers.get(buffer, 0))

    def _acted(self, steps: Iterable[Wanted]) -> dict[str, Any]:
        """The expected actions; those of a memory of zero bytes are not specified."""
        names = [action_of(self._machine, it.operation, it.side, it.source) for it in steps]
        return {"actions": names} if self._oracle.size else {}

    def _seen(self) -> dict[str, Any]:
        """The expected head, flags and contents; a memory of zero bytes has the flags of any other."""
        flags = {flag.name: self._oracle.holds(flag) for flag in self._machine.flags}
        return {
            "head": self._oracle.head or self._heads[self._oracle.fresh],
            "flags": {name: value for name, value in flags.items() if value is not None},
            "bytes": {side: copy.content if copy.fresh else None for side, copy in self._oracle.copies.items()},
        }
