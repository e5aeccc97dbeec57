"""The effect of a row of the table, over plain values or over symbols.

A row has a fixed head, fixed actions and a fixed next head.  So it is executed in the same way
whether a flag is ``True`` or a symbol, and whether contents are numbers or symbols for any bytes.
No code here tests the value of a flag or of contents.

The table does not have two parts of a state.  The allocations follow from the actions alone, not from the flags.  The
content that was written last follows from the calls alone, not from the actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from syncedmem.model import EDITIONS, EFFECTS, Action, Declaration, Fact, SyncedHead
from syncedmem.model.head import Host, Verb

from ..engine.calls import ADOPTIONS, READS, SIDES, WRITES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Edition, Transition
    from syncedmem.model.head import Effect

    from ..engine.calls import Side

__all__ = ["FRESH", "Allocated", "Contents", "State", "StateChange", "System", "side_of", "start", "take"]


@dataclass(frozen=True)
class System:
    """A table and the effects of its actions on the facts: the model itself, or a mutant of it.

    Attributes
    ----------
    edition : Edition
    rows : tuple of Transition
    effects : mapping of Action to Effect
    """

    edition: Edition
    rows: tuple[Transition, ...]
    effects: Mapping[Action, Effect]

    @classmethod
    def of(cls, edition: str) -> System:
        """The declared model.

        Raises
        ------
        DeclarationError
            If there is no such edition.
        """
        return cls(EDITIONS[edition], Declaration.of(edition).rows, EFFECTS)


class Contents(Protocol):
    """Possible contents of memory: zeros, undefined contents, and a caller's write after the newest contents."""

    def zero(self) -> Any: ...
    def garbage(self) -> Any: ...
    def written(self, newest: Any) -> Any: ...


class Allocated(NamedTuple):
    """What the actions of one memory have allocated and not freed; `locked` says whether host memory is page-locked."""

    cpu: Any = False
    gpu: Any = False
    locked: Any = False


class State(NamedTuple):
    """Everything about a memory between two calls.

    Attributes
    ----------
    head : SyncedHead
    facts : tuple
        A truth value for each `Fact`, in the order of the facts.
    mode : truth value
        Whether the mode is GPU.
    allocated : Allocated
    cpu, gpu : content
        The contents of the sides.
    newest : content
        The contents that were written last, on either side.
    zeros : content
        The newest contents as long as nothing was written.
    """

    head: SyncedHead
    facts: tuple[Any, ...]
    mode: Any
    allocated: Allocated
    cpu: Any
    gpu: Any
    newest: Any
    zeros: Any

    def fact(self, fact: Fact) -> Any:
        """Whether a fact holds."""
        return self.facts[_NUMBERS[fact]]

    def content(self, side: Side) -> Any:
        """The contents of a side."""
        return self.cpu if side == "cpu" else self.gpu

    def fresh(self) -> tuple[Side, ...]:
        """The sides that are fresh according to the head."""
        return FRESH[self.head]


_NUMBERS = {fact: number for number, fact in enumerate(Fact)}
FRESH: Mapping[SyncedHead, tuple[Side, ...]] = {
    SyncedHead.UNINITIALIZED: (),
    SyncedHead.HEAD_AT_CPU: ("cpu",),
    SyncedHead.HEAD_AT_GPU: ("gpu",),
    SyncedHead.SYNCED: ("cpu", "gpu"),
}
"""The fresh sides at each head."""


class StateChange(NamedTuple):
    """The execution of a row.

    Attributes
    ----------
    row : Transition
    before, after : State
    freed : tuple
        For each free, whether the memory was allocated.
    lost : tuple
        For each pointer that was set, whether the memory that it replaced was still owned.
    shown : content or None
        The contents of the view that the call returns, before the caller writes; None if it returns no view.
    """

    row: Transition
    before: State
    after: State
    freed: tuple[Any, ...]
    lost: tuple[Any, ...]
    shown: Any


def side_of(action: Action) -> Side:
    """The side of an action; for a copy, the side that is written."""
    return "cpu" if action.side is Host.CPU else "gpu"


def start(contents: Contents, mode: Any) -> State:
    """A new memory: its newest contents are zeros, although no side has any contents."""
    facts = (False,) * len(Fact)
    nothing, zeros = contents.garbage(), contents.zero()
    return State(SyncedHead.UNINITIALIZED, facts, mode, Allocated(), nothing, nothing, zeros, zeros)


def take(system: System, row: Transition, before: State, contents: Contents) -> StateChange:
    """Execute a row that is not a refusal and whose guards hold; after a call for writing the caller writes."""
    allocated, sides = before.allocated, {"cpu": before.cpu, "gpu": before.gpu}
    data = contents.written(before.newest)
    freed: list[Any] = []
    lost: list[Any] = []
    for action in row.actions:
        side, verb = side_of(action), action.does
        held = getattr(allocated, side)
        if verb is Verb.FREE:
            freed.append(held)
            allocated = _noted(allocated, side, False, False)
        elif verb in (Verb.ALLOCATE, Verb.ADOPT):
            lost.append(held)
            if verb is Verb.ALLOCATE:
                locks = before.mode if Fact.CPU_MALLOC_USE_CUDA in system.edition.flags else False
                allocated = _noted(allocated, side, True, locks)
        copied = sides["gpu" if side == "cpu" else "cpu"]
        results = {Verb.ADOPT: data, Verb.ZERO: before.zeros, Verb.COPY: copied}
        sides[side] = results.get(verb, contents.garbage())
    shown = sides[SIDES[row.call]] if row.call in READS + WRITES else None
    if row.call in WRITES:
        sides[SIDES[row.call]] = data
    newest = data if row.call in WRITES + ADOPTIONS else before.newest
    facts = _facts(system, row, before)
    after = State(
        row.dest or before.head, facts, before.mode, allocated, sides["cpu"], sides["gpu"], newest, before.zeros
    )
    return StateChange(row, before, after, tuple(freed), tuple(lost), shown)


def _noted(allocated: Allocated, side: Side, held: Any, locked: Any) -> Allocated:
    return allocated._replace(cpu=held, locked=locked) if side == "cpu" else allocated._replace(gpu=held)


def _facts(system: System, row: Transition, before: State) -> tuple[Any, ...]:
    """The facts afterwards, according to the effects."""
    facts = dict(zip(Fact, before.facts, strict=True))
    for action in row.actions:
        effect = system.effects[action]
        facts.update(dict.fromkeys(effect.sets, True))
        facts.update(dict.fromkeys(effect.clears, False))
        facts.update(dict.fromkeys(effect.by_mode, before.mode))
    return tuple(value if fact in system.edition.facts else False for fact, value in facts.items())
