"""The invariants: named sentences that hold for every state or every step.

Each is a function of a logic, so the same sentence is used with plain values and with symbols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, get_args

from syncedmem.model import Fact, SyncedHead
from syncedmem.model.head import Verb

from ..engine.calls import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from syncedmem.model import Transition

    from .states import State, StateChange

__all__ = ["COPIES", "INVARIANTS", "ON_STATES", "ON_STEPS", "Logic", "Plain", "enabled"]


class Logic(Protocol):
    """How truth values are combined."""

    def every(self, values: Iterable[Any]) -> Any: ...
    def negated(self, value: Any) -> Any: ...
    def implied(self, cause: Any, value: Any) -> Any: ...
    def same(self, one: Any, other: Any) -> Any: ...


class Plain:
    """Python's own logic."""

    def every(self, values: Iterable[bool]) -> bool:
        """Whether all values are true."""
        return all(values)

    def negated(self, value: bool) -> bool:
        """Whether a value is false."""
        return not value

    def implied(self, cause: bool, value: bool) -> bool:
        """Whether the value is true if the cause is."""
        return not cause or value

    def same(self, one: object, other: object) -> bool:
        """Whether two values or contents are the same."""
        return one == other


_SIDES: tuple[Side, ...] = get_args(Side)
_POINTERS: dict[Side, Fact] = {"cpu": Fact.CPU_POINTER, "gpu": Fact.GPU_POINTER}
_OWNED: dict[Side, Fact] = {"cpu": Fact.OWN_CPU_DATA, "gpu": Fact.OWN_GPU_DATA}


def enabled(logic: Logic, row: Transition, found: State) -> Any:
    """Whether the guards of a row hold, except the guard about the argument, which the caller decides."""
    wanted = (found.fact(guard.fact) for guard in row.conditions if guard.fact is not None)
    unwanted = (logic.negated(found.fact(guard.fact)) for guard in row.unless if guard.fact is not None)
    return logic.every([*wanted, *unwanted])


# --- about states


def uninitialized_has_no_pointers(logic: Logic, found: State) -> Any:
    """A memory is uninitialised exactly if both of its pointers are null."""
    null = logic.every(logic.negated(found.fact(pointer)) for pointer in _POINTERS.values())
    return logic.same(null, found.head is SyncedHead.UNINITIALIZED)


def uninitialized_counts_as_zero(logic: Logic, found: State) -> Any:
    """An uninitialised memory was never written, so its contents count as zeros."""
    return logic.every([logic.same(found.newest, found.zeros)] if not found.fresh() else [])


def owned_side_has_a_pointer(logic: Logic, found: State) -> Any:
    """A side that the memory owns has a pointer."""
    return logic.every(logic.implied(found.fact(_OWNED[it]), found.fact(_POINTERS[it])) for it in _SIDES)


def fresh_side_has_a_pointer(logic: Logic, found: State) -> Any:
    """A side that is fresh according to the head has a pointer."""
    return logic.every(found.fact(_POINTERS[it]) for it in found.fresh())


def synced_sides_are_equal(logic: Logic, found: State) -> Any:
    """If the head is SYNCED, both sides have the same contents."""
    return logic.every([logic.same(found.cpu, found.gpu)] if found.head is SyncedHead.SYNCED else [])


def fresh_side_holds_the_newest(logic: Logic, found: State) -> Any:
    """A side that is fresh according to the head has the contents that were written last."""
    return logic.every(logic.same(found.content(it), found.newest) for it in found.fresh())


def owned_is_what_is_allocated(logic: Logic, found: State) -> Any:
    """The ownership flags agree exactly with what is allocated."""
    return logic.every(logic.same(found.fact(_OWNED[it]), getattr(found.allocated, it)) for it in _SIDES)


def pinned_flag_says_the_kind(logic: Logic, found: State) -> Any:
    """For owned host memory cpu_malloc_use_cuda says of which kind it is, so it is freed as it was allocated."""
    flag = found.fact(Fact.CPU_MALLOC_USE_CUDA)
    return logic.implied(found.fact(Fact.OWN_CPU_DATA), logic.same(flag, found.allocated.locked))


# --- about steps


def freed_is_allocated(logic: Logic, step: StateChange) -> Any:
    """Only allocated memory is freed, so nothing is freed twice."""
    return logic.every(step.freed)


def nothing_leaks(logic: Logic, step: StateChange) -> Any:
    """No pointer to allocated memory is overwritten, and after release nothing is allocated."""
    left = [step.after.allocated.cpu, step.after.allocated.gpu] if step.row.call.ends else []
    return logic.every(logic.negated(held) for held in (*step.lost, *left))


def pointer_stays(logic: Logic, step: StateChange) -> Any:
    """A pointer that is set stays set until release."""
    if step.row.call.ends:
        return logic.every([])
    return logic.every(logic.implied(step.before.fact(it), step.after.fact(it)) for it in _POINTERS.values())


def filled_only_at_first(logic: Logic, step: StateChange) -> Any:
    """Memory is filled with zeros only by the call that leaves UNINITIALIZED."""
    fills = any(action.does is Verb.ZERO for action in step.row.actions)
    leaves = step.before.head is SyncedHead.UNINITIALIZED is not step.after.head
    return logic.every([leaves] if fills else [])


def handed_out_is_the_newest(logic: Logic, step: StateChange) -> Any:
    """The view that a call returns shows what was written last, or zeros if nothing was written."""
    return logic.every([] if step.shown is None else [logic.same(step.shown, step.before.newest)])


ON_STATES: dict[str, Callable[[Logic, State], Any]] = {
    it.__name__: it
    for it in (
        uninitialized_has_no_pointers,
        uninitialized_counts_as_zero,
        owned_side_has_a_pointer,
        fresh_side_has_a_pointer,
        synced_sides_are_equal,
        fresh_side_holds_the_newest,
        owned_is_what_is_allocated,
        pinned_flag_says_the_kind,
    )
}

ON_STEPS: dict[str, Callable[[Logic, StateChange], Any]] = {
    it.__name__: it
    for it in (freed_is_allocated, nothing_leaks, pointer_stays, filled_only_at_first, handed_out_is_the_newest)
}

COPIES = "copies_are_the_fewest"

INVARIANTS: dict[str, str] = {
    **{name: it.__doc__ or "" for name, it in (*ON_STATES.items(), *ON_STEPS.items())},
    COPIES: "No sequence of calls makes more copies than somebody who knows it in advance would need.",
}
"""Every invariant with its sentence."""
