"""The table as a `transitions` machine, shared by everybody and bindable to any object that has the actions.

States are the heads, actions are ``before`` callbacks: when one raises, the head has not moved yet (an
``after`` callback would find it moved already).  The machine never gets a model of its own: a registered
model would be kept alive for as long as the machine, so whatever is driven is handed in with each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from transitions import Machine

from .errors import BufferMismatchError, DeclarationError, IllegalCallError, NoDeviceError
from .head import EDITIONS, EFFECTS, TRANSITIONS, Action, Call, Edition, Fact, Guard, Refusal, SyncedHead, Transition
from .mode import Mode, current_mode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BoundHead", "Declaration", "HeadMachine", "head_machine", "refusal_error"]


class Dispatchable(Protocol):
    """The part of a `transitions` event that is used here."""

    transitions: dict[str, list[Any]]

    def trigger(self, model: object, *args: object) -> bool: ...


@dataclass(frozen=True)
class Declaration:
    """What a machine is built from: an edition and the rows of a table that belong to it."""

    edition: Edition
    rows: tuple[Transition, ...]

    @classmethod
    def of(cls, name: str, table: tuple[Transition, ...] = TRANSITIONS) -> Declaration:
        """Select the rows of an edition from a table.

        Raises
        ------
        DeclarationError
            If there is no such edition.
        """
        if name not in EDITIONS:
            raise DeclarationError(f"unknown edition {name!r}; there are {', '.join(EDITIONS)}")
        edition = EDITIONS[name]
        rows = (row for row in table if name in row.editions and edition.never.isdisjoint(row.conditions))
        return cls(edition, tuple(_projected(row, edition) for row in rows))


def _projected(row: Transition, edition: Edition) -> Transition:
    """A row as an edition sees it: without exclusions that always hold and heads that do not exist."""
    return Transition(
        row.call,
        tuple(head for head in row.source if head in edition.heads),
        row.dest,
        row.actions,
        row.conditions,
        tuple(guard for guard in row.unless if guard not in edition.never),
        row.refusal,
        row.editions,
        row.cite,
    )


class HeadMachine:
    """One edition of the head machine, interpreted by `transitions`.

    Building one checks names only; `syncedmem.model.head_machine` returns machines that passed every check.

    Parameters
    ----------
    declaration : Declaration
        The edition and its rows.

    Raises
    ------
    DeclarationError
        If a row names a head, call, guard, action or refusal that was not declared.
    """

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.edition = declaration.edition
        for row in declaration.rows:
            _check_names(row)
        self._machine = Machine(
            model=None,
            states=SyncedHead,
            initial=SyncedHead.UNINITIALIZED,
            transitions=[_as_data(row, head) for row in declaration.rows for head in row.source],
            auto_transitions=False,
            send_event=False,
            model_attribute="head",
        )

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of this edition, in the order they are declared."""
        return tuple(call for call in Call if call.value in self._machine.events)

    def event(self, call: Call) -> Dispatchable:
        """The `transitions` event of a call."""
        return cast("Dispatchable", self._machine.events[call.value])

    def row(self, call: Call, head: SyncedHead, facts: Fact, data: bool = True) -> Transition:
        """The row that decides a call: the one whose guards hold.

        Raises
        ------
        KeyError
            If the edition has no such call or head.
        """
        for row in self.declaration.rows:
            if row.call is call and head in row.source and enabled(row, facts, data):
                return row
        raise KeyError(f"{self.edition.name} has no row for {call.value} in {head.name}")

    def bind(self, actions: object) -> BoundHead:
        """Drive an object that has a method for every action.

        Parameters
        ----------
        actions : object
            Has a callable attribute for each `Action`, named by its value; each takes the call's argument.

        Raises
        ------
        DeclarationError
            If an action has no implementation; all that are missing are named.
        """
        needed = dict.fromkeys(action.value for row in self.declaration.rows for action in row.actions)
        missing = [name for name in needed if not callable(getattr(actions, name, None))]
        if missing:
            raise DeclarationError(f"{type(actions).__name__} has no implementation for: {', '.join(missing)}")
        return BoundHead(self, actions)


class BoundHead:
    """A head that drives somebody's actions, with pointers and flags kept as the actions declare.

    Attributes
    ----------
    head : SyncedHead
    facts : Fact
        The pointers and flags.
    """

    def __init__(self, machine: HeadMachine, actions: object) -> None:
        self._machine = machine
        self._actions = actions
        self.head = SyncedHead.UNINITIALIZED
        self.facts = Fact(0)
        self._done: list[Action] = []

    def trigger(self, call: Call, argument: object = None) -> None:
        """Perform a call: its actions in order, then the flags, then the head.

        An action that raises, or a refusal, leaves head and flags as they were.  What earlier actions of
        the same call did is the owner's to undo.

        Parameters
        ----------
        call : Call
        argument : object
            The data of ``set_*_data`` or the stream of ``async_gpu_push``; handed to every action.
        """
        self._done.clear()
        self._machine.event(call).trigger(self, argument)
        self.facts = apply_effects(self.facts, tuple(self._done), self._machine.edition, current_mode())

    def __getattr__(self, name: str) -> object:
        # `transitions` looks every callback up on its model by name: a guard, a refusal, or an action.
        if name in _GUARDS:
            return self._guard(_GUARDS[name])
        if name in _REFUSALS:
            return lambda argument=None: self._refuse(_REFUSALS[name], argument)
        return self._action(Action(name))

    def _action(self, action: Action) -> Callable[[object], None]:
        perform = getattr(self._actions, action.value)

        def performed(argument: object) -> None:
            perform(argument)
            self._done.append(action)

        return performed

    def _guard(self, guard: Guard) -> object:
        fact = guard.fact
        return (lambda argument=None: argument is not None) if fact is None else bool(fact & self.facts)

    def _refuse(self, refusal: Refusal, argument: object) -> None:
        raise refusal_error(refusal, "this call", self.head, argument)


_GUARDS = {guard.value: guard for guard in Guard}
_REFUSALS = {refusal.value: refusal for refusal in Refusal}


def enabled(row: Transition, facts: Fact, data: bool) -> bool:
    """Whether a row's guards hold for these facts and this argument."""

    def holds(guard: Guard) -> bool:
        return data if guard.fact is None else bool(guard.fact & facts)

    return all(map(holds, row.conditions)) and not any(map(holds, row.unless))


def apply_effects(facts: Fact, actions: tuple[Action, ...], edition: Edition, mode: Mode) -> Fact:
    """The facts after some actions, as the actions declare it."""
    for action in actions:
        effect = EFFECTS[action]
        facts = (facts | effect.sets) & ~effect.clears
        facts = facts | effect.by_mode if mode is Mode.GPU else facts & ~effect.by_mode
    return facts & edition.facts


def refusal_error(refusal: Refusal, call: str, head: SyncedHead, argument: object) -> Exception:
    """The exception that a declared refusal is raised as."""
    if refusal is Refusal.NULL_DATA:
        return BufferMismatchError(call, argument, "a buffer is needed")
    if refusal is Refusal.NOT_HEAD_AT_CPU:
        return IllegalCallError(call, head)
    return NoDeviceError(f"{call}: cannot use a GPU in a CPU-only memory (it was made with device=None)")


def _check_names(row: Transition) -> None:
    kinds: tuple[tuple[type, tuple[object, ...]], ...] = (
        (Call, (row.call,)),
        (SyncedHead, row.source + ((row.dest,) if row.dest is not None else ())),
        (Action, row.actions),
        (Guard, row.conditions + row.unless),
        (Refusal, (row.refusal,) if row.refusal is not None else ()),
    )
    for kind, names in kinds:
        for name in names:
            if not isinstance(name, kind):
                raise DeclarationError(f"unknown {kind.__name__} {name!r} in the row {row}")


def _as_data(row: Transition, head: SyncedHead) -> dict[str, object]:
    """One row in one of its heads, as the data `transitions` takes: names only."""
    return {
        "trigger": row.call.value,
        "source": head,
        "dest": row.dest,
        "conditions": [guard.value for guard in row.conditions],
        "unless": [guard.value for guard in row.unless],
        "before": [row.refusal.value] if row.refusal else [action.value for action in row.actions],
    }


@cache
def head_machine(edition: str = "caffe") -> HeadMachine:
    """The shared machine of an edition, built and checked on first use."""
    from .soundness import check_soundness  # noqa: PLC0415 -- soundness explores machines, so it imports this module

    machine = HeadMachine(Declaration.of(edition))
    check_soundness(machine)
    return machine
