"""What calls do by a machine's own table: for a machine without a policy.

This is no second account: a wrong row is wrong here too.  What is left to judge is whether a memory does what its table
says, with the right bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from syncedmem.model import Input, Machine, State, caffe
from syncedmem.model.states import stepper

from .oracle import Copy, Expected, Oracle, Wanted
from .policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from syncedmem.model import Action, Call, Fact
    from syncedmem.model.moves import Move

__all__ = ["TableOracle", "allocated", "is_pinned"]


def allocated(machine: Machine) -> frozenset[str]:
    """The sides that actions allocate; the others are there from the beginning."""
    return frozenset(action.side for action in machine.actions.values() if action.does == "allocate")


def is_pinned(machine: Machine, state: State, side: str) -> bool:
    """Whether a state says that the memory of a side is page-locked."""
    facts = map(machine.facts.__getitem__, state.facts)
    return any(fact.means == "pinned" and fact.side == side for fact in facts)


@dataclass(frozen=True, slots=True, repr=False)
class TableOracle(Oracle):
    """The state of a memory, and the effect of each call by the table; `of` makes one.

    Attributes
    ----------
    machine : Machine
    state : State
        The state of the machine.
    """

    machine: Machine = field(default=caffe.CAFFE)
    state: State = field(default=State(""))

    @classmethod
    def of(cls, machine: Machine, size: int, zeros: Any = None) -> TableOracle:
        """A new memory; `zeros` as for `Oracle.new`."""
        policy = Policy(machine.sides, allocated(machine), born_fresh=frozenset(machine.initial.fresh))
        start = Oracle.new(policy, size, zeros)
        return cls(policy, size, zeros, start.copies, machine=machine, state=stepper(machine).start)

    @property
    def head(self) -> str:
        """The name of the head."""
        return self.state.head

    def defines(self, call: Call) -> bool:
        """Whether a call has a row in this state; one that means nothing may have none."""
        return call.does != "" or stepper(self.machine).step(self.state, Input(call)) is not None

    def holds(self, fact: Fact) -> bool | None:
        """Whether a fact is true in the state of the machine."""
        return fact.name in self.state.facts

    def expect(self, call: Call, settings: Mapping[str, str], content: Any = None) -> Expected:
        """The effect of a call by its row; see `Oracle.expect`."""
        if self.released:
            return self.release() if call.ends else Expected("released", (), self)
        step = self._step(call, settings, content)
        if step is None or step.refusal:
            return Expected("null" if call.does == "adopt" and content is None else "push", (), self)
        return Expected("", *self.take(call, step, content))

    def why(self, call: Call, settings: Mapping[str, str], content: Any = None) -> str:
        """What the machine calls the reason for which a call is refused; see `Oracle.why`."""
        step = None if self.released else self._step(call, settings, content)
        return step.refusal if step else ""

    def _step(self, call: Call, settings: Mapping[str, str], content: Any) -> Move[State] | None:
        given = call.does != "adopt" or content is not None
        state = self.state._replace(settings=tuple(settings.values()))
        return stepper(self.machine).step(state, Input(call, data=given or not call.takes))

    def take(self, call: Call, step: Move[State], content: Any = None) -> tuple[tuple[Wanted, ...], TableOracle]:
        """What a step of the table that is no refusal does to memory, and the state after it."""
        copies, steps = dict(self.copies), list[Wanted]()
        for action in map(self.machine.actions.__getitem__, step.actions):
            steps += self._act(action, copies, step, content)
        if call.does == "overwrite":
            copies[call.side] = copies[call.side]._replace(content=None)
        fresh = self.machine.heads[step.after.head].fresh
        told = {side: copy._replace(fresh=side in fresh) for side, copy in copies.items()}
        if call.ends:
            told = dict.fromkeys(told, Copy())
        return tuple(steps), replace(self, copies=told, state=step.after, released=call.ends)

    def _act(self, action: Action, copies: dict[str, Copy], step: Move[State], content: Any) -> Iterator[Wanted]:
        """The step of an action, which changes copies; none if the action means nothing."""
        side, here = action.side, copies.get(action.side, Copy())
        match action.does:
            case "allocate":
                pinned = is_pinned(self.machine, step.after, side)
                copies[side] = Copy("memory", pinned=pinned)
                yield Wanted("allocate", side, pinned=pinned)
            case "zero":
                copies[side] = here._replace(content=self._zeroed())
                yield Wanted("zero", side)
            case "copy":
                copies[side] = here._replace(content=copies[action.source].content)
                yield Wanted("copy", side, action.source, action.queued)
            case "adopt":
                copies[side] = Copy("caller", content=content)
                yield Wanted("adopt", side)
            case "free":
                copies[side] = Copy()
                yield Wanted("free", side, pinned=here.pinned)
            case _:
                pass
