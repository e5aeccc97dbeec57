"""What is enumerated: sequences of calls, from the model's state space, for the oracle to judge.

The model only says where to go; what must happen there is the oracle's to say.  A *sequence* is a sequence of
moves for one fresh memory; a suite is a sequence of sequences with the sizes to run them at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Action, Call, Input, hsi_suite, inputs, space, tour
from syncedmem.model.suites import access_words, counter_words, cycles
from syncedmem.model.vocabulary import Verb, verb_of

from ..engine.calls import READS
from ..engine.shrinking import shortest
from .driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.finding import Violation
    from ..engine.subject import Subject

__all__ = [
    "SUITES",
    "Case",
    "Fail",
    "Move",
    "Stumble",
    "Synchronize",
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
    """An input of which each other step fails once, from the first on; see `MemoryDriver.perform_stumbling`."""

    entry: Input
    first: int = 1


class Synchronize(NamedTuple):
    """Wait for every push."""


_MANY_STEPS = 16
"""No call of a memory takes as many other steps."""

_LONG = 2
"""Words from this length on are not run at several megabytes."""

Move = Input | Fail | Stumble | Synchronize


@dataclass(frozen=True, slots=True)
class Case:
    """A sequence and the size to run it at.

    Attributes
    ----------
    moves : tuple of Move
    size : int
        In bytes.
    """

    moves: tuple[Move, ...]
    size: int = 5


def run_case(subject: Subject, case: Case) -> MemoryDriver:
    """Run a sequence on a fresh memory, release it, and look for what is left.

    Raises
    ------
    Violation
    """
    driver = MemoryDriver(subject, case.size)
    for move in case.moves:
        make_move(driver, move)
    driver.finish()
    return driver


def make_move(driver: MemoryDriver, move: Move) -> None:
    """Make one move of a sequence.

    Raises
    ------
    Violation
    """
    if isinstance(move, Synchronize):
        driver.synchronize()
    elif isinstance(move, Stumble):
        driver.perform_stumbling(*move)
    elif isinstance(move, Fail) and len(driver.predict(move.entry).calls) >= move.k:
        entry, k, *how = move
        driver.perform_failing(entry, k, **dict(zip(Fail._fields[2:], how, strict=True)))
    else:
        driver.perform(move.entry if isinstance(move, Fail) else move)


def shortened(subject: Subject, case: Case, violation: Violation) -> Violation:
    """The violation of the shortest case that breaks the same requirement."""

    def run(moves: tuple[Move, ...]) -> None:
        run_case(subject, Case(moves, case.size))

    return shortest(case.moves, violation, run, simpler=plainer)


def plainer(move: Move) -> list[Move]:
    """A move made plainly, or with only the later steps of it failing, the last ones first."""
    found: list[Move] = [] if isinstance(move, Input | Synchronize) else [move.entry]
    if isinstance(move, Stumble):
        found += [Stumble(move.entry, first) for first in range(_MANY_STEPS, move.first, -1)]
    return found


def _sequences(sequences: tuple[tuple[Input, ...], ...], size: int = 5) -> Iterator[Case]:
    for sequence in sequences:
        yield Case(sequence, size)


def _cells(subject: Subject) -> Iterator[Case]:
    """Every state and every call there, NULL data and release included."""
    alphabet = inputs(subject.edition, null=True, end=True)
    for sequence in access_words(subject.edition).values():
        for entry in alphabet:
            yield Case((*sequence, entry))


def _tour(subject: Subject) -> Iterator[Case]:
    """Every transition, in few long sequences."""
    return _sequences(tour(subject.edition))


def _hsi(subject: Subject) -> Iterator[Case]:
    """The complete suite: every state is told from every other after every transition."""
    return _sequences(hsi_suite(subject.edition))


def _failures(subject: Subject) -> Iterator[Case]:
    """For every state and call, the k-th allocator call fails, for every k, before and half-way, and is interrupted.

    The same call must work afterwards, and so must any other.
    """
    after = [Input(Call.RELEASE), *(entry for entry in inputs(subject.edition) if entry.call in READS)]
    for sequence, entry, k, action in _actions(subject):
        halfway = verb_of(action) in (Verb.COPY, Verb.ZERO)
        yield Case((*sequence, Fail(entry, k)))
        if halfway:
            yield Case((*sequence, Fail(entry, k, partial=True)))
        # A free that is interrupted may have happened, so the call may be completed instead.
        if verb_of(action) is not Verb.FREE:
            yield Case((*sequence, Fail(entry, k, interrupt=True)))
        for other in after:
            yield Case((*sequence, Fail(entry, k, partial=halfway, again=False), other))
    for sequence in access_words(subject.edition).values():
        for k in (1, 2):
            yield Case((*sequence, Fail(Input(Call.RELEASE), k)))


def _actions(subject: Subject) -> Iterator[tuple[tuple[Input, ...], Input, int, Action]]:
    """Every allocator call of every transition: how to get there, the input, which of its calls it is, and what."""
    steps = space(subject.edition).steps
    for state, sequence in access_words(subject.edition).items():
        for entry, step in steps[state].items():
            for k, action in enumerate((it for it in step.actions if verb_of(it) is not Verb.ADOPT), 1):
                yield sequence, entry, k, action


def _stumbles(subject: Subject) -> Iterator[Case]:
    """For every state and call, with a push in flight and without, each other step fails once."""
    push = Input(Call.ASYNC_GPU_PUSH)
    steps = space(subject.edition).steps
    for state, sequence in access_words(subject.edition).items():
        for entry in (*(entry for entry in steps[state] if entry.call), Input(Call.RELEASE)):
            yield Case((*sequence, Stumble(entry)))
            if push in steps[state] and steps[state][push].refusal is None:
                yield Case((*sequence, push, Stumble(entry)))


_MANY = 100


def _counters(subject: Subject) -> Iterator[Case]:
    """Cycles, repeated: for bugs that come with the n-th copy, push, adoption or mere look."""
    return _sequences(counter_words(subject.edition, (*range(2, 9), _MANY)))


def _sizes(subject: Subject) -> Iterator[Case]:
    """The tour at zero bytes, one, an odd number and a page; short sequences at several megabytes; a cycle at more."""
    # What Caffe does with zero bytes depends on what malloc(0) and cudaMalloc(0) return.
    for size in (0, 1, 4095, 4096) if subject.profile == "safe" else (1, 4095, 4096):
        yield from _sequences(tour(subject.edition), size)
    for sequence in access_words(subject.edition).values():
        if len(sequence) < _LONG:
            yield Case(sequence, (3 << 20) + 1)
    cycle = cycles(subject.edition)[0]
    for power in range(1, 19):
        for size in ((1 << power) - 1, 1 << power, (1 << power) + 1):
            yield Case(cycle, size)
    yield Case(cycle, (16 << 20) + 1)


def _flights(subject: Subject) -> Iterator[Case]:
    """Every call while a push is queued, and again after it was waited for."""
    push = Input(Call.ASYNC_GPU_PUSH)
    if subject.device is None:
        return
    steps = space("caffe").steps
    for state, sequence in access_words("caffe").items():
        if steps[state][push].refusal is None:
            for entry in (*steps[state], Input(Call.RELEASE)):
                yield Case((*sequence, push, entry, Synchronize()), 64)
                yield Case((*sequence, push, Synchronize(), entry), 64)


SUITES: dict[str, Callable[[Subject], Iterator[Case]]] = {
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
