"""The enumerated tests of a memory: sequences of calls from the model's state space, judged by the oracle.

The model only determines which calls are made; the oracle decides what they must do.  A *case* is a sequence of
moves for one new memory with its size; a suite consists of cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

from syncedmem.model import Action, Input, hsi_suite, space, tour
from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences, counter_sequences, cycles

from ..engine.shrinking import shortest
from .driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from syncedmem.model.stepper import Step

    from ..engine.subject import Subject
    from ..engine.violation import Violation

__all__ = [
    "SUITES",
    "Fail",
    "Kind",
    "Move",
    "Stumble",
    "SuiteCase",
    "Synchronize",
    "endings",
    "legal_pushes",
    "make_move",
    "plainer",
    "run_case",
    "shortened",
]


class Fail(NamedTuple):
    """An input whose k-th allocator call fails; see `MemoryDriver.perform_failing`."""

    entry: Input
    k: int
    partial: bool = False
    interrupt: bool = False
    again: bool = True


class Stumble(NamedTuple):
    """An input whose other allocator calls fail one after the other; see `MemoryDriver.perform_stumbling`."""

    entry: Input
    first: int = 1


class Synchronize(NamedTuple):
    """Wait for every push."""


_MANY_STEPS = 16
"""More than the number of other allocator calls of any call."""

_LONG = 2
"""Sequences of this length or longer are not run at several megabytes."""

Move = Input | Fail | Stumble | Synchronize
Kind = Literal["call", "mode", "wait", "failure", "stumble"]
"""The kind of a move that was made."""


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """A sequence of moves, and the size of the memory.

    Attributes
    ----------
    moves : tuple of Move
    size : int
        The size in bytes.
    """

    moves: tuple[Move, ...]
    size: int = 5


def run_case(subject: Subject, case: SuiteCase, made: list[MemoryDriver] | None = None) -> MemoryDriver:
    """Run a case on a new memory, release it, and check that nothing is left.

    Parameters
    ----------
    subject : Subject
    case : SuiteCase
    made : list, optional
        It gets the driver before the first call, for a caller who wants to know what was taken before a violation.

    Raises
    ------
    Violation
    """
    subject.mark()
    driver = MemoryDriver(subject, case.size)
    if made is not None:
        made.append(driver)
    for move in case.moves:
        make_move(driver, move)
    driver.finish()
    return driver


def make_move(driver: MemoryDriver, move: Move) -> Kind:
    """Make one move of a sequence; return its kind, which is ``"call"`` if there was nothing to fail.

    Raises
    ------
    Violation
    """
    if isinstance(move, Synchronize):
        driver.synchronize()
        return "wait"
    entry = move if isinstance(move, Input) else move.entry
    if isinstance(move, Stumble) and not driver.predict(entry).refused:
        driver.perform_stumbling(*move)
        return "stumble"
    if isinstance(move, Fail) and len(driver.predict(entry).calls) >= move.k:
        driver.perform_failing(entry, move.k, **dict(zip(Fail._fields[2:], move[2:], strict=True)))
        return "failure"
    driver.perform(entry)
    return "call" if entry.call else "mode"


def shortened(subject: Subject, case: SuiteCase, violation: Violation) -> Violation:
    """The violation of the shortest case that breaks the same requirement."""

    def run(moves: tuple[Move, ...]) -> None:
        run_case(subject, SuiteCase(moves, case.size))

    return shortest(case.moves, violation, run, simpler=plainer, program=subject.program)


def plainer(move: Move) -> list[Move]:
    """Simpler moves: the input without failures, or with failures of fewer calls, the fewest first."""
    found: list[Move] = [] if isinstance(move, Input | Synchronize) else [move.entry]
    if isinstance(move, Stumble):
        found += [Stumble(move.entry, first) for first in range(_MANY_STEPS, move.first, -1)]
    return found


def _sequences(sequences: tuple[tuple[Input, ...], ...], size: int = 5) -> Iterator[SuiteCase]:
    for sequence in sequences:
        yield SuiteCase(sequence, size)


def _cells(subject: Subject) -> Iterator[SuiteCase]:
    """Every call in every state, with NULL data and release; and all of them after a release, where that is defined."""
    alphabet = stepper(subject.machine).inputs(end=True)
    for sequence in access_sequences(subject.machine).values():
        for entry in alphabet:
            yield SuiteCase((*sequence, entry))
        for ending in endings(subject) if subject.profile == "safe" else ():
            yield SuiteCase((*sequence, ending, *alphabet))


def _tour(subject: Subject) -> Iterator[SuiteCase]:
    """Every transition, in few long sequences."""
    return _sequences(tour(subject.machine))


def _hsi(subject: Subject) -> Iterator[SuiteCase]:
    """The complete suite: after every transition every state is distinguished from every other."""
    return _sequences(hsi_suite(subject.machine))


def _failures(subject: Subject) -> Iterator[SuiteCase]:
    """For every call in every state, each allocator call fails: before its work, half-way, and with an interrupt.

    Afterwards the same call must work, and so must any other.
    """
    after = [*endings(subject), *(entry for entry in stepper(subject.machine).inputs() if entry.does == "read")]
    for sequence, entry, k, action in _actions(subject):
        halfway = action.does in ("copy", "zero")
        yield SuiteCase((*sequence, Fail(entry, k)))
        if halfway:
            yield SuiteCase((*sequence, Fail(entry, k, partial=True)))
        # An interrupted free may have happened, so the call may also be completed.
        if action.does != "free":
            yield SuiteCase((*sequence, Fail(entry, k, interrupt=True)))
        for other in after:
            yield SuiteCase((*sequence, Fail(entry, k, partial=halfway, again=False), other))
    for sequence in access_sequences(subject.machine).values():
        for ending, k in product(endings(subject), range(1, len(subject.machine.sides) + 1)):
            yield SuiteCase((*sequence, Fail(ending, k)))


def _actions(subject: Subject) -> Iterator[tuple[tuple[Input, ...], Input, int, Action]]:
    """Every allocator call of every transition: the sequence before, the input, the number of the call, the action."""
    steps = space(subject.machine).steps
    for state, sequence in access_sequences(subject.machine).items():
        for entry, step in steps[state].items():
            actions = map(subject.machine.actions.__getitem__, step.actions)
            for k, action in enumerate((it for it in actions if it.does != "adopt"), 1):
                yield sequence, entry, k, action


def _stumbles(subject: Subject) -> Iterator[SuiteCase]:
    """For every call in every state, with and without a push in flight, each other allocator call fails once."""
    steps = space(subject.machine).steps
    for state, sequence in access_sequences(subject.machine).items():
        for entry in (*(entry for entry in steps[state] if entry.call), *endings(subject)):
            yield SuiteCase((*sequence, Stumble(entry)))
            for push in legal_pushes(steps[state]):
                yield SuiteCase((*sequence, push, Stumble(entry)))


def endings(subject: Subject) -> tuple[Input, ...]:
    """The calls after which a memory is gone."""
    return tuple(Input(call) for call in subject.machine.calls.values() if call.ends)


def legal_pushes(steps: Mapping[Input, Step]) -> Iterator[Input]:
    """The pushes that are not refused in a state."""
    return (it for it, step in steps.items() if it.queues and not step.refusal)


_MANY = 100


def _counters(subject: Subject) -> Iterator[SuiteCase]:
    """Repeated cycles, for bugs at the n-th copy, push, adoption or read."""
    return _sequences(counter_sequences(subject.machine, (*range(2, 9), _MANY)))


def _sizes(subject: Subject) -> Iterator[SuiteCase]:
    """The tour with zero bytes, one, an odd number and a page; short sequences and a cycle with megabytes."""
    for size in (0, 1, 4095, 4096):
        if size >= subject.smallest:
            yield from _sequences(tour(subject.machine), size)
    for sequence in access_sequences(subject.machine).values():
        if len(sequence) < _LONG:
            yield SuiteCase(sequence, (3 << 20) + 1)
    cycle = next(iter(cycles(subject.machine)), max(access_sequences(subject.machine).values(), key=len))
    for power in range(1, 19):
        for size in ((1 << power) - 1, 1 << power, (1 << power) + 1):
            yield SuiteCase(cycle, size)
    yield SuiteCase(cycle, (1 << 20) + 3)
    yield SuiteCase(cycle, (16 << 20) + 1)


def _flights(subject: Subject) -> Iterator[SuiteCase]:
    """Every call while a push is queued, and after a wait for the push."""
    steps = space(subject.machine).steps
    for state, sequence in access_sequences(subject.machine).items():
        for push in legal_pushes(steps[state]):
            for entry in (*steps[state], *endings(subject)):
                yield SuiteCase((*sequence, push, entry, Synchronize()), 64)
                yield SuiteCase((*sequence, push, Synchronize(), entry), 64)


SUITES: dict[str, Callable[[Subject], Iterator[SuiteCase]]] = {
    "cells": _cells,
    "tour": _tour,
    "hsi": _hsi,
    "failures": _failures,
    "stumbles": _stumbles,
    "counters": _counters,
    "sizes": _sizes,
    "flights": _flights,
}
"""The enumerated suites by name."""
