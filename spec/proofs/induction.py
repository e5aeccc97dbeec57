"""Proofs of the invariants by induction with z3: for all contents, and without a bound on the number of calls.

A state becomes symbols: a truth value for each fact, and for each side a content of which only equalities are known.
There is a question for each row: *if every invariant holds and the row is enabled, do all invariants
hold afterwards?*  z3 searches for a state in which they do not.  Such a state need not be reachable.
With the true model z3 finds none.

z3-solver is optional: only this module imports it, and `available` says whether it is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Any

from syncedmem.model import Fact, MissingPackageError, SyncedHead

from .invariants import COPIES, ON_STATES, ON_STEPS, enabled
from .schedules import COPYING, demand
from .states import FRESH, Allocated, State, start, take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from syncedmem.model import Transition

    from .states import System

__all__ = ["Proof", "Refuted", "Symbols", "available", "prove"]


@dataclass(frozen=True)
class Refuted:
    """A step from a state in which all invariants hold to a state in which some do not.

    Attributes
    ----------
    invariant : str
    where : str
        The row and its head; or the beginning.
    state : str
        The values of the symbols.
    """

    invariant: str
    where: str
    state: str


@dataclass(frozen=True)
class Proof:
    """The answers of z3.

    Attributes
    ----------
    questions : int
    refuted : tuple of Refuted
        Empty if everything is proved.
    """

    questions: int
    refuted: tuple[Refuted, ...]


def available() -> bool:
    """Whether z3-solver is installed."""
    return find_spec("z3") is not None


@cache
def _z3() -> Any:
    return import_module("z3")


class _Symbolic:
    """The logic of z3's terms."""

    def every(self, values: Iterable[Any]) -> Any:
        return _z3().And(*values, _z3().BoolVal(True))

    def negated(self, value: Any) -> Any:
        return _z3().Not(value)

    def implied(self, cause: Any, value: Any) -> Any:
        return _z3().Implies(cause, value)

    def same(self, one: Any, other: Any) -> Any:
        return one == other


class Symbols:
    """Unknown contents: zeros are one of them, and a write may give any content, also the same as before."""

    def __init__(self) -> None:
        self._sort = _z3().DeclareSort("Content")
        self._zero = _z3().Const("zeros", self._sort)
        self._numbers = count()

    def zero(self) -> Any:
        """The contents after zeroing."""
        return self._zero

    def garbage(self) -> Any:
        """Any content."""
        return self.named(f"garbage{next(self._numbers)}")

    def written(self, newest: Any) -> Any:
        """Any content, independent of the content before."""
        del newest
        return self.named(f"written{next(self._numbers)}")

    def named(self, name: str) -> Any:
        """A content with this name."""
        return _z3().Const(name, self._sort)


def prove(system: System) -> Proof:
    """Ask z3 whether the invariants hold at the beginning, and after every row if they hold before it.

    Raises
    ------
    MissingPackageError
        If z3-solver is not installed.
    """
    if not available():
        raise MissingPackageError("a proof by induction", "z3-solver", "proofs")
    logic, contents = _Symbolic(), Symbols()
    mode = _z3().Bool("mode_is_gpu")
    beginning = start(contents, mode)
    refuted = [*_missed("the beginning", [], {n: holds(logic, beginning) for n, holds in ON_STATES.items()})]
    questions = 1
    for row in system.rows:
        for head in row.source if row.refusal is None else ():
            found = _any_state(system, head, contents, mode)
            given = [holds(logic, found) for holds in ON_STATES.values()]
            wanted = _wanted(system, row, found, contents)
            rivals, bound = _rivals(row, head)
            where = row.identifier(head)
            refuted += _missed(where, [*given, enabled(logic, row, found)], wanted)
            refuted += _missed(where, rivals, {COPIES: bound})
            questions += 2
    return Proof(questions, tuple(refuted))


def _missed(where: str, given: list[Any], wanted: dict[str, Any]) -> Iterator[Refuted]:
    """The goals that do not follow; first all goals are asked at once, and one by one only if some do not follow."""
    solver = _z3().Solver()
    solver.add(*given)
    if solver.check(_z3().Not(_z3().And(*wanted.values()))) == _z3().unsat:
        return
    for name, goal in wanted.items():
        if solver.check(_z3().Not(goal)) != _z3().unsat:
            yield Refuted(name, where, str(solver.model()))


def _any_state(system: System, head: SyncedHead, contents: Symbols, mode: Any) -> State:
    z3 = _z3()
    facts = (z3.Bool(fact.name) if fact in system.edition.facts else z3.BoolVal(False) for fact in Fact)
    allocated = Allocated(*(z3.Bool(f"allocated_{name}") for name in Allocated._fields))
    cpu, gpu, newest = map(contents.named, ("on_the_host", "on_the_device", "newest"))
    return State(head, tuple(facts), mode, allocated, cpu, gpu, newest, contents.zero())


def _wanted(system: System, row: Transition, found: State, contents: Symbols) -> dict[str, Any]:
    logic = _Symbolic()
    step = take(system, row, found, contents)
    wanted = {name: holds(logic, step) for name, holds in ON_STEPS.items()}
    if not row.call.ends:
        wanted.update((name, holds(logic, step.after)) for name, holds in ON_STATES.items())
    return wanted


def _rivals(row: Transition, head: SyncedHead) -> tuple[list[Any], Any]:
    """What is known of any rival before a row, and what must follow after the row; see ``schedules``.

    A rival that has more fresh sides than the machine has made at least as many copies more.  So no
    rival has made fewer copies.
    """
    z3 = _z3()
    cpu, gpu, copied, ahead = z3.Bool("rival_cpu"), z3.Bool("rival_gpu"), z3.Bool("rival_copies"), z3.Int("rival_ahead")
    known = [_bounded(head, cpu, gpu, ahead), z3.Implies(copied, cpu != gpu)]
    cpu, gpu, ahead = z3.Or(cpu, copied), z3.Or(gpu, copied), ahead + z3.If(copied, 1, 0)
    asked = demand(row.call)
    if asked.needed:
        here, there = (cpu, gpu) if asked.needed == "cpu" else (gpu, cpu)
        known.append(z3.Or(here, z3.Not(there)))  # otherwise this rival cannot serve the call
        cpu, gpu = (z3.BoolVal(True), gpu) if asked.needed == "cpu" else (cpu, z3.BoolVal(True))
    if asked.left:
        cpu, gpu = z3.BoolVal(asked.left == "cpu"), z3.BoolVal(asked.left == "gpu")
    ahead -= sum(action in COPYING for action in row.actions)
    return known, _bounded(row.dest or head, cpu, gpu, ahead)


def _bounded(head: SyncedHead, cpu: Any, gpu: Any, ahead: Any) -> Any:
    z3 = _z3()
    if head is SyncedHead.UNINITIALIZED:
        return z3.And(z3.Not(cpu), z3.Not(gpu), ahead >= 0)
    sides = dict(zip(("cpu", "gpu"), (cpu, gpu), strict=True))
    held = [sides.pop(side) for side in FRESH[head]]
    return z3.And(*held, ahead >= z3.Sum([z3.If(more, 1, 0) for more in sides.values()]))
