"""The world of a case, as the oracle knows it: its memories and the caller's buffers, and what a step does to them."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import EDITIONS, Input, State

from ..engine.actions import Action, Allocated
from ..memory.by_table import TableOracle
from ..memory.oracle import Oracle
from ..memory.policy import POLICIES
from .observation import NOTHING, Observation
from .steps import OWN, UNSUITABLE, Buffer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Call, Machine

    from ..memory.oracle import Expected, Wanted
    from ..memory.policy import Policy
    from .steps import Step

__all__ = ["FAILED", "REFUSED_BY_US", "Followed", "World"]

FAILED = "failed"
"""Why a call raises of which an action was told to fail."""
REFUSED_BY_US: Mapping[str, str] = {
    "own": "R35", "small": "R36", "frozen": "R37", "spread": "R38", "kind": "R39", "size": "R45", "device": "R51",
    "stream": "R52",
}  # fmt: skip
"""Why something is refused in the profile safe, each with its requirement; no table and no policy says it."""


class Followed(NamedTuple):
    """A memory as it must be.

    Attributes
    ----------
    oracle : Oracle
        Its contents are numbers.
    lent : mapping of str to Buffer
        The adopted buffers, by side.
    checks : bool
        Whether every call is refused while another device is current.
    """

    oracle: Oracle
    lent: Mapping[str, Buffer] = {}
    checks: bool = False


_NONE: Mapping[Any, Any] = MappingProxyType({})


class World(NamedTuple):
    """All memories of a case, as they must be.

    Attributes
    ----------
    machine : Machine
    policy : Policy or None
        None: the machine's own table says what a call does.
    safe : bool
        Whether promises beyond Caffe's are expected.
    settings : mapping of str to str
    memories : mapping of int to Followed
    buffers : mapping of str to int
        The contents of the buffers of the caller.
    """

    machine: Machine
    policy: Policy | None
    safe: bool
    settings: Mapping[str, str]
    memories: Mapping[int, Followed] = _NONE
    buffers: Mapping[str, Any] = _NONE

    @classmethod
    def of(cls, machine: Machine, policy: Policy | None, *, safe: bool) -> World:
        """A world without memories; the policy of an edition of Caffe's is known."""
        if policy is None and EDITIONS.get(machine.name) == machine:
            policy = POLICIES[machine.name]
        return cls(machine, policy, safe, {setting.name: setting.initial for setting in machine.settings.values()})

    # --- what is so

    def memory(self, number: int) -> Followed:
        """A memory, whose adopted sides have what is now in their buffers: others may have written there."""
        memory = self.memories[number]
        oracle = memory.oracle
        for side, lent in memory.lent.items():
            oracle = oracle.written(side, self.buffers[lent.name])
        return memory._replace(oracle=oracle)

    def is_over(self, number: int) -> bool:
        """Whether there is no such memory, or nothing can be said of it."""
        return number not in self.memories or self.memories[number].oracle.released

    def head(self, number: int) -> str:
        """The head of a memory; that of a new one if it is released."""
        oracle = self.memories[number].oracle
        if oracle.released:
            return self.machine.initial.name
        return oracle.head or {frozenset(head.fresh): head.name for head in self.machine.heads.values()}[oracle.fresh]

    def state(self, number: int) -> State:
        """The state of the machine that a memory is in, for coverage."""
        oracle = self.memories[number].oracle
        facts = (fact.name for fact in self.machine.facts.values() if oracle.holds(fact))
        return State(self.head(number), frozenset(facts), tuple(self.settings.values()))

    def shown(self, number: int) -> Observation:
        """What must be seen of a memory now."""
        oracle, lent, _ = self.memory(number)
        copies = oracle.copies
        mine = ((side, copy) for side, copy in copies.items() if copy.owner == "memory")
        blocks = {side: Allocated(side, oracle.size, copy.pinned) for side, copy in mine if oracle.size}
        owners = {side: copy.owner for side, copy in copies.items()}
        if oracle.released:
            return Observation(size=oracle.size, live=blocks, owners=owners)
        facts = (fact for fact in self.machine.facts.values() if fact.flag or fact.means in ("owned", "pinned"))
        fresh = {side: copy.content for side, copy in copies.items() if copy.fresh and copy.content is not None}
        return Observation(
            head=self.head(number),
            size=oracle.size,
            flags={fact.name: holds for fact in facts if (holds := oracle.holds(fact)) is not None},
            sides=fresh if oracle.size else {},
            buffers={buffer.name: fresh[side] for side, buffer in lent.items() if side in fresh},
            live=blocks,
            owners=owners,
            lent=lent,
        )

    # --- what a step does

    def after(self, step: Step) -> tuple[Observation, World] | None:
        """What must be seen after a step, and the world then; None if the step means nothing here.

        A call that is expected to be refused, or to fail, has the reason in ``refused``.
        """
        if step.does == "set":
            return NOTHING, self._replace(settings={**self.settings, step.name: step.value})
        if step.does == "new":
            return self.with_new(step)
        if step.memory not in self.memories:
            return None
        if step.does == "call":
            return self._called(step)
        if step.does == "drop":
            left = {number: memory for number, memory in self.memories.items() if number != step.memory}
            return Observation(live={}), self._replace(memories=left)
        return self._looked_at(step)

    def _looked_at(self, step: Step) -> tuple[Observation, World] | None:
        """After a look, a wait, or after the owner of a buffer wrote into it; nothing if no memory has adopted it."""
        world = self
        if step.does == "write" and step.argument is not None:
            if step.argument.name not in self.buffers:
                return None
            world = self._replace(buffers={**self.buffers, step.argument.name: step.write})
        over = self.is_over(step.memory) and step.does != "forget"
        return (NOTHING if over or step.does == "queue" else world.shown(step.memory)), world

    def with_new(self, step: Step) -> tuple[Observation, World]:
        """What must be seen of a new memory, and the world with it."""
        if type(step.size) is not int or not 0 <= step.size <= sys.maxsize:
            return Observation(refused="size", actions=()), self
        if self.policy is None:
            oracle: Oracle = TableOracle.of(self.machine, step.size, 0)
        else:
            oracle = Oracle.new(self.policy, step.size, 0)
        world = self._having(step.memory, Followed(oracle, checks=step.checks))
        actions = tuple(_action(wanted, step) for wanted in oracle.made)
        return world.shown(step.memory)._replace(refused="", actions=actions), world

    def expected(self, step: Step) -> Expected | None:
        """What a call must do if all its actions succeed; None if nobody says it."""
        call, oracle = self.machine.calls.get(step.name), self.memory(step.memory).oracle
        if call is None or not oracle.defines(call) or (oracle.released and not self.safe):
            return None  # Caffe does not define calls on a destroyed object
        given = None if step.argument is None else self._content(step.argument)
        return oracle.expect(call, self.settings, given)

    def why(self, step: Step) -> str:
        """What the machine calls the reason for which a call is refused; our own word if it has none."""
        call, oracle = self.machine.calls[step.name], self.memory(step.memory).oracle
        given = None if step.argument is None else self._content(step.argument)
        return self._unsuitable(step, call) or oracle.why(call, self.settings, given)

    def input(self, step: Step) -> Input | None:
        """The input of the machine that a step is; None if it is none."""
        if step.does == "set":
            return Input(setting=step.name, value=step.value)
        call = self.machine.calls.get(step.name) if step.does == "call" else None
        return None if call is None else Input(call, data=step.argument is not None or not call.takes)

    def _called(self, step: Step) -> tuple[Observation, World] | None:
        expected, call = self.expected(step), self.machine.calls.get(step.name)
        if expected is None or call is None or not self._means(step.argument, call, step):
            return None
        refused = expected.refused or self._unsuitable(step, call) or self._misplaced(step, call)
        if refused:
            return self.shown(step.memory)._replace(refused=refused, actions=()), self
        if step.fail and (step.how == "other" or step.fail <= len(expected.calls)):
            world = self._failed(step, expected, ends=call.ends)
            return world.shown(step.memory)._replace(refused=FAILED), world
        return self._done(step, call, expected)

    def _done(self, step: Step, call: Call, expected: Expected) -> tuple[Observation, World]:
        after, lent, buffers = expected.after, dict(self.memories[step.memory].lent), dict(self.buffers)
        if step.argument is not None and call.does == "adopt":
            lent[call.side] = step.argument
        shows = after.copy(call.side).content if call.shows else None
        if call.writes and step.write is not None:
            after = after.written(call.side, step.write)
        if call.ends:
            lent = {}
        for side, buffer in lent.items():
            buffers[buffer.name] = after.copy(side).content
        memories = {**self.memories, step.memory: self.memories[step.memory]._replace(oracle=after, lent=lent)}
        world = self._replace(memories=memories, buffers=buffers)
        flying: tuple[tuple[int | str, str, str], ...] | None = None
        if call.queues and after.size:
            flying = ((step.stream, call.source, call.side),)
        elif call.does in ("adopt", "release") and self.safe:
            flying = ()
        actions = tuple(_action(call, step, after.size) for call in expected.calls)
        seen = world.shown(step.memory)._replace(refused="", actions=actions, view=shows, flying=flying)
        return seen._replace(viewed=True) if call.shows else seen, world

    def _failed(self, step: Step, expected: Expected, *, ends: bool) -> World:
        """After a failure nothing has changed; but what is freed cannot be taken back, and the others must still be."""
        memory = self.memories[step.memory]
        oracle = memory.oracle
        for freed in expected.calls[: step.fail - 1] if ends and step.how != "other" else ():
            oracle = oracle.freed(freed.side)
        return self._having(step.memory, memory._replace(oracle=oracle))

    def _having(self, number: int, memory: Followed) -> World:
        return self._replace(memories={**self.memories, number: memory})

    def _content(self, buffer: Buffer) -> Any:
        """What is in a buffer that is handed in; of the own block nobody asks."""
        return buffer.content if buffer.content is not None else self.buffers.get(buffer.name, 0)

    def _means(self, buffer: Buffer | None, call: Call, step: Step) -> bool:
        """Whether an argument is one: the own block is one only if there is a block."""
        if buffer is None or buffer.name != OWN:
            return True
        oracle = self.memories[step.memory].oracle
        return self.safe and oracle.copy(call.side).owner == "memory" and buffer.offset < oracle.size

    def _unsuitable(self, step: Step, call: Call) -> str:
        """Why a buffer must not be adopted, in the profile safe; empty if it can be."""
        argument = step.argument
        if argument is None or call.does != "adopt" or not self.safe:
            return ""
        if argument.name == OWN:
            return "own"
        return UNSUITABLE.get(argument.form) or (
            "kind" if argument.side != call.side else "small" if argument.longer < 0 else ""
        )

    def _misplaced(self, step: Step, call: Call) -> str:
        """Why a call must be refused because of where it is made, or of its stream; empty if it need not."""
        if step.elsewhere and self.memories[step.memory].checks:
            return "device"
        return "stream" if call.queues and isinstance(step.stream, str) else ""


def _action(wanted: Wanted, step: Step, size: int | None = None) -> Action:
    """What the oracle wants, as an action."""
    pinned = wanted.pinned if wanted.does in ("allocate", "free") else None
    stream = step.stream if wanted.queued else None
    bytes_ = step.size if size is None else size
    return Action(wanted.operation, wanted.side, wanted.source, bytes_, pinned, stream)
