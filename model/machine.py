"""The table as a `transitions` machine.  Everybody shares it, and it can be bound to any object that has the actions.

States are the heads.  Guards, actions and refusals are names, which `transitions` looks up as attributes of its
model.  The model is never a user's object but a `_Choice`, made for one call: it answers the guards and
records what must be done.  So the shared machine keeps no object alive, and a name of the table cannot collide
with an attribute of a user's object.  And an error of an action does not pass through `transitions`, which
would keep it, with all that its traceback holds, in a reference cycle with the event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from transitions import Machine

from . import caffe
from .display import shown
from .errors import DeclarationError
from .head import (
    EDITIONS,
    EFFECTS,
    TRANSITIONS,
    Action,
    Call,
    Edition,
    Fact,
    Guard,
    Refusal,
    SyncedHead,
    Transition,
)
from .mode import Mode, current_mode
from .refusals import error_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .display import Bundle

__all__ = [
    "DATA",
    "AnyEdition",
    "BoundHead",
    "Declaration",
    "Guards",
    "HeadMachine",
    "Row",
    "guard_bits",
    "refusal_error",
]

DATA = 1 << len(Fact)
"""The bit for "the call has data" among those that guards test."""

_BITS = {guard: DATA if guard.fact is None else int(guard.fact) for guard in Guard}
_BITS_BY_NAME = {guard.value: bit for guard, bit in _BITS.items()}
_STEPS: dict[str, Action | Refusal] = {step.value: step for step in (*Action, *Refusal)}
"""The steps that the names among a row's callbacks stand for."""


def guard_bits(facts: int, *, data: bool) -> int:
    """The bits that guards test: the facts, and one more bit for "the call has data"."""
    return int(facts) | DATA * data


class Guards(NamedTuple):
    """The guards of a row as bits: those that must hold, and those that must not."""

    required: int
    excluded: int

    @classmethod
    def of(cls, conditions: Iterable[Guard], unless: Iterable[Guard]) -> Guards:
        """The guards of a row."""
        return cls(sum({_BITS[guard] for guard in conditions}), sum({_BITS[guard] for guard in unless}))

    def unmet(self, found: int) -> int:
        """The guards that keep the row from firing with such bits; zero if the row fires."""
        return self.required & ~found | self.excluded & found


class Row(NamedTuple):
    """A transition in one of its heads, compiled: numbers instead of names, and everything about the row in one place.

    A fact is a bit.  A row fires if ``facts & required == required`` and ``facts & excluded == 0``, with one more
    bit, `DATA`, for "the call has data".  The facts afterwards are ``facts & kept | sets``, with a pair of masks for
    each mode.

    Attributes
    ----------
    declared : Transition
    head, dest : SyncedHead
        The same head if the call does not move it.
    required, excluded : int
    actions : tuple of Action
    refusal : Refusal or None
    kept, sets : tuple of (int, int)
        Masks for CPU mode and for GPU mode.
    """

    declared: Transition
    head: SyncedHead
    dest: SyncedHead
    required: int
    excluded: int
    actions: tuple[Action, ...]
    refusal: Refusal | None
    kept: tuple[int, int]
    sets: tuple[int, int]

    @property
    def identifier(self) -> str:
        """The stable name of the row in this head."""
        return self.declared.identifier(self.head)

    def fires(self, found: int) -> bool:
        """Whether the row fires with such bits."""
        return not (self.required & ~found | self.excluded & found)

    def facts_after(self, facts: int, mode: Mode) -> int:
        """The facts after the row has fired."""
        return facts & self.kept[mode.value] | self.sets[mode.value]


class Built(Protocol):
    """The part of a row of `transitions` that this module uses: names."""

    conditions: list[Any]
    before: list[str]
    dest: str | None


class Dispatchable(Protocol):
    """The part of an event of `transitions` that this module uses."""

    transitions: dict[str, list[Built]]

    def trigger(self, model: object, *args: object) -> bool: ...


@dataclass(frozen=True)
class Declaration:
    """A machine as a value: an edition, and the rows that apply in it.

    `of` selects the rows of an edition from a table.  Anybody can make another machine with the same vocabulary: with
    other rows, with fewer heads or with fewer calls.  It can be given wherever the name of an edition can be given.  It
    is checked when it is used first.

    Attributes
    ----------
    edition : Edition
        Its name is a lower-case letter and then lower-case letters, digits and underscores.
    rows : tuple of Transition
        All rows apply, whatever their ``editions`` are.

    Examples
    --------
    Caffe's machine without asynchronous pushes:

    >>> from dataclasses import replace
    >>> from syncedmem.model import Call, Declaration, head_machine
    >>> caffe = Declaration.of("caffe")
    >>> edition = replace(caffe.edition, name="no_push", cycles=())
    >>> mine = Declaration(edition, tuple(row for row in caffe.rows if row.call is not Call.ASYNC_GPU_PUSH))
    >>> len(head_machine(mine).calls)
    7
    """

    edition: Edition
    rows: tuple[Transition, ...]

    @classmethod
    def of(cls, name: str, table: tuple[Transition, ...] = TRANSITIONS) -> Declaration:
        """Select the rows of an edition from a table.

        Raises
        ------
        DeclarationError
            If there is no such edition, or if a row of the table, of any edition, uses an undeclared name,
            has an action without an effect, leads to a head that its edition does not have, or has actions
            although it refuses.
        """
        if name not in EDITIONS:
            raise DeclarationError(f"unknown edition {name!r}; there are {', '.join(EDITIONS)}")
        for row in table:
            _check_names(row)
        edition = EDITIONS[name]
        rows = (row for row in table if name in row.editions and edition.never.isdisjoint(row.conditions))
        return cls(edition, tuple(_projected(row, edition) for row in rows))

    def check_names(self) -> None:
        """Refuse a declaration that names something unknown; what its rows do is checked when it is built.

        Raises
        ------
        DeclarationError
            If the name of the edition cannot be used, if there are no heads or no rows, or if a row uses an undeclared
            name or a head that the edition does not have.
        """
        name, heads = self.edition.name, self.edition.heads
        if not _NAME.fullmatch(name):
            raise DeclarationError(f"an edition cannot be named {name!r}: use lower-case letters, digits and _")
        for what, there in (("heads", heads), ("rows", self.rows)):
            if not there:
                raise DeclarationError(f"{name}: this machine has no {what}")
        for row in self.rows:
            _check_names(row)
            for head in (*row.source, row.dest):
                if head is not None and head not in heads:
                    raise DeclarationError(f"{name} has no head {head.name}, which the row {row} names")
        if not any(row.call.ends for row in self.rows):
            raise DeclarationError(f"{name} has no row for release, with which every memory ends")
        used = {call for sequence in self.edition.cycles for call in sequence} - {row.call for row in self.rows}
        if used:
            raise DeclarationError(f"{name} has no rows for {_listed(used)}, which its cycles call")

    def __str__(self) -> str:
        """The name of the edition, as in a title."""
        return self.edition.name

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:  # noqa: ARG002 -- of IPython
        """The diagram, in a notebook."""
        return shown(self)


AnyEdition = str | Declaration
"""What says which machine is meant: the name of an edition, or a declaration."""

_NAME = re.compile("[a-z][a-z0-9_]*")


def _listed(calls: Iterable[Call]) -> str:
    return ", ".join(sorted(call.value for call in calls))


def _check_names(row: Transition) -> None:
    # Type checkers check this too, but a table may be written without one.  `transitions` would
    # find an unknown name when it fires, or never.
    kinds: tuple[tuple[type, Iterable[object]], ...] = (
        (Call, (row.call,)),
        (SyncedHead, (*row.source, *_given(row.dest))),
        (Action, row.actions),
        (Guard, (*row.conditions, *row.unless)),
        (Refusal, _given(row.refusal)),
    )
    unknown = [f"{kind.__name__} {name!r}" for kind, names in kinds for name in names if not isinstance(name, kind)]
    unknown += [f"edition {name!r}" for name in row.editions if name not in EDITIONS]
    if unknown:
        raise DeclarationError(f"unknown {', '.join(unknown)} in the row {row}")
    without = [action.value for action in row.actions if action not in EFFECTS]
    if without:
        raise DeclarationError(f"no effect of {', '.join(without)}: add it to EFFECTS")
    if row.refusal is not None and (row.actions or row.dest is not None):
        raise DeclarationError(f"a refusal has no actions and leads to no head, but the row {row} does")


def _given(value: object) -> tuple[object, ...]:
    return () if value is None else (value,)


def _projected(row: Transition, edition: Edition) -> Transition:
    """The row for an edition: without guards that cannot hold, and without heads that the edition does not have."""
    if row.dest is not None and row.dest not in edition.heads:
        raise DeclarationError(f"{edition.name} has no head {row.dest.name}, but the row {row} leads there")
    return replace(
        row,
        source=tuple(head for head in row.source if head in edition.heads),
        unless=tuple(guard for guard in row.unless if guard not in edition.never),
    )


class HeadMachine:
    """One edition of the head machine, interpreted by `transitions`.

    Get machines from `syncedmem.model.head_machine`; only these have passed every check.

    Parameters
    ----------
    declaration : Declaration
        The edition and its rows.
    """

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.edition: Edition = declaration.edition
        self._machine = Machine(
            model=None,
            states=list(self.edition.heads),
            initial=self.edition.initial,
            transitions=[_as_data(row, head) for row in declaration.rows for head in row.source],
            auto_transitions=False,
            send_event=False,
            model_attribute="head",
        )

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The calls of this edition, in the order of their declaration."""
        return tuple(call for call in Call if call.value in self._machine.events)

    def event(self, call: Call) -> Dispatchable:
        """The `transitions` event of a call; KeyError if the edition has no such call."""
        return cast("Dispatchable", self._machine.events[call.value])

    def row(self, call: Call, head: SyncedHead, facts: Fact, data: bool) -> Transition:
        """The row for a call: the one whose guards hold.

        Raises
        ------
        KeyError
            If the edition has no such call or head.
        """
        found = guard_bits(facts, data=data)
        for row in self.rows_at(call, head):
            if row.fires(found):
                return row.declared
        raise KeyError(f"{self.edition.name} has no row for {call.value} in {head.name}")

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every row in each of its heads, compiled from the built machine, in the order of declaration."""
        built = {
            (call, head): iter(self.event(call).transitions.get(head.name, ()))
            for call in self.calls
            for head in self.edition.heads
        }
        return tuple(
            self._compiled(row, head, next(built[row.call, head]))
            for row in self.declaration.rows
            for head in row.source
        )

    def _compiled(self, row: Transition, head: SyncedHead, built: Built) -> Row:
        """A row in one of its heads, compiled from the row that `transitions` built."""
        required, excluded = (
            [Guard(it.func) for it in built.conditions if it.target is wanted] for wanted in (True, False)
        )
        steps = [_STEPS[name] for name in built.before]
        actions = tuple(step for step in steps if isinstance(step, Action))
        refusal = next((step for step in steps if isinstance(step, Refusal)), None)
        # An action sets, clears or keeps each fact, so its effect on all facts and on none tells its effect on any.
        kept, sets = (
            (self.facts_after(facts, actions, Mode.CPU), self.facts_after(facts, actions, Mode.GPU))
            for facts in (DATA - 1, 0)
        )
        dest = SyncedHead[built.dest] if built.dest else head
        return Row(row, head, dest, *Guards.of(required, excluded), actions, refusal, kept, sets)

    @cached_property
    def _places(self) -> dict[tuple[Call, SyncedHead], tuple[Row, ...]]:
        found: dict[tuple[Call, SyncedHead], tuple[Row, ...]] = {}
        for row in self.rows:
            place = row.declared.call, row.head
            found[place] = (*found.get(place, ()), row)
        return found

    def rows_at(self, call: Call, head: SyncedHead) -> tuple[Row, ...]:
        """The compiled rows of a call in a head; none if the edition has no such call or head."""
        return self._places.get((call, head), ())

    def facts_after(self, facts: int, actions: Iterable[Action], mode: Mode) -> int:
        """The facts of this edition after these actions, by their declared effects."""
        return _apply_effects(facts, actions, mode) & int(self.edition.facts)

    def bind(self, actions: object) -> BoundHead:
        """Make a head that drives an object with a method for every action.

        Parameters
        ----------
        actions : object
            Has a callable attribute for each `Action`, named by its value, which takes the call's argument.

        Raises
        ------
        DeclarationError
            If actions have no implementation; the error names all of them.
        """
        needed = dict.fromkeys(action.value for row in self.declaration.rows for action in row.actions)
        missing = [name for name in needed if not callable(getattr(actions, name, None))]
        if missing:
            raise DeclarationError(f"{type(actions).__name__} has no implementation for: {', '.join(missing)}")
        return BoundHead(self, actions)


def _as_data(row: Transition, head: SyncedHead) -> dict[str, object]:
    """One row in one of its heads, as the data that `transitions` accepts: names only."""
    return {
        "trigger": row.call.value,
        "source": head,
        "dest": row.dest,
        "conditions": [guard.value for guard in row.conditions],
        "unless": [guard.value for guard in row.unless],
        "before": [row.refusal.value] if row.refusal else [action.value for action in row.actions],
    }


class BoundHead:
    """A head that drives the actions of an object, and keeps pointers and flags by the declared effects.

    Here `transitions` itself decides which row fires.  The tests compare the compiled table with it.

    Attributes
    ----------
    head : SyncedHead
    facts : Fact
        The pointers and flags.
    """

    def __init__(self, machine: HeadMachine, actions: object) -> None:
        self._machine = machine
        self._actions = actions
        self.head: SyncedHead = machine.edition.initial
        self.facts: Fact = Fact(0)

    def trigger(self, call: Call, argument: object = None) -> None:
        """Make a call: its actions in order, then the flags and the head.

        After an error of an action, or a refusal, head and flags are as before.  The owner of the actions must undo
        what earlier actions of the same call did.  An action must not trigger the head that runs it.

        Parameters
        ----------
        call : Call
        argument : object
            The data of ``set_*_data`` or the stream of ``async_gpu_push``; every action gets it.

        Raises
        ------
        BufferMismatchError, IllegalCallError, NoDeviceError
            If the machine refuses the call.
        KeyError
            If the edition has no such call.
        """
        choice = _Choice(self.head, guard_bits(self.facts, data=argument is not None))
        self._machine.event(call).trigger(choice)
        if choice.refusal is not None:
            raise refusal_error(choice.refusal, call.value, self.head, argument)
        for action in choice.actions:
            getattr(self._actions, action.value)(argument)
        facts = self._machine.facts_after(self.facts, choice.actions, current_mode())
        self.head, self.facts = choice.head, Fact(facts)


class _Choice:
    """The model of `transitions` for one call: it has every guard, and records what must be done."""

    def __init__(self, head: SyncedHead, found: int) -> None:
        self.head = head
        self.actions: list[Action] = []
        self.refusal: Refusal | None = None
        self._bits = found

    def __getattr__(self, name: str) -> object:
        if name in _BITS_BY_NAME:
            return bool(_BITS_BY_NAME[name] & self._bits)
        if name in _STEPS:
            return partial(self._note, _STEPS[name])
        raise AttributeError(f"{name!r} is neither a guard nor an action nor a refusal")

    def _note(self, step: Action | Refusal) -> None:
        if isinstance(step, Refusal):
            self.refusal = step
        else:
            self.actions.append(step)


def _apply_effects(facts: int, actions: Iterable[Action], mode: Mode) -> int:
    """All facts after these actions, also facts that an edition does not have."""
    for action in actions:
        effect = EFFECTS[action]
        sets, clears = (effect.by_mode, 0) if mode is Mode.GPU else (0, effect.by_mode)
        # Plain integers: operations on flags are ten times slower, and this runs for every cell of the table.
        facts = (facts | int(effect.sets) | int(sets)) & ~(int(effect.clears) | int(clears))
    return facts


def refusal_error(refusal: Refusal, call: str, head: SyncedHead, argument: object) -> Exception:
    """The exception for a declared refusal."""
    word = next((it for it in caffe.REFUSALS if it.name == refusal.value), None)
    if word is None:
        return DeclarationError(f"{call} in {head.name}: no error is declared for the refusal {refusal.name}")
    return error_of(word, call, head, argument)
