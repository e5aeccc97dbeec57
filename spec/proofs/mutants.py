"""Wrong models, at least one for each invariant: a proof that accepts them too would prove nothing.

In each, some rows or effects of the model are changed.  Most are mistakes of real systems.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syncedmem.model import Action, Call, Fact, Guard, SyncedHead
from syncedmem.model.head import Effect

from .states import System

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model import Transition

__all__ = ["MUTANTS", "Mutant"]

_U, _C, _G, _S = SyncedHead


@dataclass(frozen=True)
class Mutant:
    """A wrong model.

    Attributes
    ----------
    name : str
    breaks : str
        The invariant that it must break.
    system : System
    """

    name: str
    breaks: str
    system: System


def _changed(call: Call, head: SyncedHead, change: Callable[[Transition], Transition]) -> System:
    """The model with changed rows of a call in a head, except its refusals."""
    model = System.of("caffe")
    split: list[Transition] = []
    for row in model.rows:
        if row.call is not call or head not in row.source or row.refusal is not None:
            split.append(row)
            continue
        rest = tuple(other for other in row.source if other is not head)
        split += [replace(row, source=rest)] if rest else []
        split.append(change(replace(row, source=(head,))))
    return replace(model, rows=tuple(split))


def _acting(call: Call, head: SyncedHead, *actions: Action) -> System:
    """The model with other actions of a call in a head."""
    return _changed(call, head, lambda row: replace(row, actions=actions))


def _leading(call: Call, head: SyncedHead, dest: SyncedHead) -> System:
    """The model with another head after a call in a head."""
    return _changed(call, head, lambda row: replace(row, dest=dest))


def _without(call: Call, head: SyncedHead, action: Action) -> System:
    """The model without an action of a call in a head."""
    return _changed(call, head, lambda row: replace(row, actions=tuple(it for it in row.actions if it is not action)))


def _affecting(action: Action, effect: Effect) -> System:
    """The model with another effect of an action."""
    model = System.of("caffe")
    return replace(model, effects={**model.effects, action: effect})


_OWN_GPU = Fact.GPU_POINTER | Fact.OWN_GPU_DATA

MUTANTS = (
    Mutant(
        "adopting leaves a new memory UNINITIALIZED",
        "uninitialized_has_no_pointers",
        _leading(Call.SET_CPU_DATA, _U, _U),
    ),
    Mutant(
        "writing leaves a new memory UNINITIALIZED",
        "uninitialized_counts_as_zero",
        _leading(Call.MUTABLE_GPU_DATA, _U, _U),
    ),
    Mutant(
        "allocating sets the flag but not the pointer",
        "owned_side_has_a_pointer",
        _affecting(Action.ALLOCATE_GPU, Effect(sets=Fact.OWN_GPU_DATA)),
    ),
    Mutant(
        "the first read leads to SYNCED (Caffe 7149de51c)",
        "fresh_side_has_a_pointer",
        _leading(Call.CPU_DATA, _U, _S),
    ),
    Mutant(
        "reading on the host does not copy down",
        "synced_sides_are_equal",
        _changed(Call.CPU_DATA, _G, lambda row: replace(row, actions=row.actions[:-1])),
    ),
    Mutant(
        "a write on the host does not make the device stale",
        "fresh_side_holds_the_newest",
        _leading(Call.MUTABLE_CPU_DATA, _S, _S),
    ),
    Mutant(
        "allocating does not set the ownership flag",
        "owned_is_what_is_allocated",
        _affecting(Action.ALLOCATE_GPU, Effect(sets=Fact.GPU_POINTER)),
    ),
    Mutant(
        "each allocation on the device decides the kind of host memory again",
        "pinned_flag_says_the_kind",
        _affecting(Action.ALLOCATE_GPU, Effect(sets=_OWN_GPU, by_mode=Fact.CPU_MALLOC_USE_CUDA)),
    ),
    Mutant(
        "adopting frees memory of the caller",
        "freed_is_allocated",
        _acting(Call.SET_CPU_DATA, _C, Action.FREE_CPU, Action.ADOPT_CPU),
    ),
    Mutant(
        "adopting does not free",
        "nothing_leaks",
        _acting(Call.SET_GPU_DATA, _G, Action.ADOPT_GPU),
    ),
    Mutant(
        "the destructor does not free the device side",
        "nothing_leaks",
        _without(Call.RELEASE, _S, Action.FREE_GPU),
    ),
    Mutant(
        "writing on the host frees the stale side",
        "pointer_stays",
        _changed(
            Call.MUTABLE_CPU_DATA,
            _S,
            lambda row: replace(row, actions=(Action.FREE_GPU,), conditions=(Guard.OWN_GPU_DATA,)),
        ),
    ),
    Mutant(
        "host memory is zeroed before a copy overwrites it",
        "filled_only_at_first",
        _changed(
            Call.CPU_DATA, _G, lambda row: replace(row, actions=(*row.actions[:-1], Action.ZERO_CPU, row.actions[-1]))
        ),
    ),
    Mutant(
        "mutable_gpu_data does not bring the device up to date",
        "handed_out_is_the_newest",
        _without(Call.MUTABLE_GPU_DATA, _C, Action.COPY_TO_GPU),
    ),
    Mutant(
        "writing on the device copies up although both sides are fresh (HOOMD)",
        "copies_are_the_fewest",
        _acting(Call.MUTABLE_GPU_DATA, _S, Action.COPY_TO_GPU),
    ),
    Mutant(
        "writing on the device copies down at once",
        "copies_are_the_fewest",
        _acting(Call.MUTABLE_GPU_DATA, _G, Action.COPY_TO_CPU),
    ),
)
"""Each breaks the invariant in its ``breaks``."""
