"""What is enumerated: words of calls, from the model's state space, for the oracle to judge.

The model only says where to go; what must happen there is the oracle's to say.  A *word* is a sequence of
moves for one fresh memory; a suite is a sequence of words with the sizes to run them at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Action, Call, Input, hsi_suite, inputs, space, tour
from syncedmem.model.suites import access_words, counter_words, cycles

from ..engine.calls import READS
from .driver import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Bench

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
    "shorter_case",
]


class Fail(NamedTuple):
    """An input whose k-th allocator call fails; see `Trial.perform_failing`."""

    entry: Input
    k: int
    partial: bool = False
    interrupt: bool = False
    again: bool = True


class Stumble(NamedTuple):
    """An input of which each other step fails once, from the first on; see `Trial.perform_stumbling`."""

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
    """A word and the size to run it at.

    Attributes
    ----------
    moves : tuple of Move
    size : int
        In bytes.
    """

    moves: tuple[Move, ...]
    size: int = 5


def run_case(bench: Bench, case: Case) -> Trial:
    """Run a word on a fresh memory, release it, and look for what is left.

    Raises
    ------
    Violation
    """
    trial = Trial(bench, case.size)
    for move in case.moves:
        make_move(trial, move)
    trial.finish()
    return trial


def make_move(trial: Trial, move: Move) -> None:
    """Make one move of a word.

    Raises
    ------
    Violation
    """
    if isinstance(move, Synchronize):
        trial.synchronize()
    elif isinstance(move, Stumble):
        trial.perform_stumbling(*move)
    elif isinstance(move, Fail) and len(trial.predict(move.entry).calls) >= move.k:
        entry, k, *how = move
        trial.perform_failing(entry, k, **dict(zip(Fail._fields[2:], how, strict=True)))
    else:
        trial.perform(move.entry if isinstance(move, Fail) else move)


def shorter_case(case: Case, position: int) -> Iterator[Case] | None:
    """A case with one move left out or made plainer; see `syncedmem.spec.engine.shrinking.shrink`."""
    if position >= len(case.moves):
        return None
    before, move, after = case.moves[:position], case.moves[position], case.moves[position + 1 :]
    return (Case((*before, *other, *after), case.size) for other in ((), *((it,) for it in plainer(move))))


def plainer(move: Move) -> list[Move]:
    """A move made plainly, or with only the later steps of it failing, the last ones first."""
    found: list[Move] = [] if isinstance(move, Input | Synchronize) else [move.entry]
    if isinstance(move, Stumble):
        found += [Stumble(move.entry, first) for first in range(_MANY_STEPS, move.first, -1)]
    return found


def _words(words: tuple[tuple[Input, ...], ...], size: int = 5) -> Iterator[Case]:
    for word in words:
        yield Case(word, size)


def _cells(bench: Bench) -> Iterator[Case]:
    """Every state and every call there, NULL data and release included."""
    alphabet = (*inputs(bench.edition, null=True), Input(Call.RELEASE))
    for word in access_words(bench.edition).values():
        for entry in alphabet:
            yield Case((*word, entry))


def _tour(bench: Bench) -> Iterator[Case]:
    """Every transition, in few long words."""
    return _words(tour(bench.edition))


def _hsi(bench: Bench) -> Iterator[Case]:
    """The complete suite: every state is told from every other after every transition."""
    return _words(hsi_suite(bench.edition))


def _failures(bench: Bench) -> Iterator[Case]:
    """For every state and call, the k-th allocator call fails, for every k, before and half-way, and is interrupted.

    The same call must work afterwards, and so must any other.
    """
    after = [Input(Call.RELEASE), *(entry for entry in inputs(bench.edition) if entry.call in READS)]
    for word, entry, k, action in _actions(bench):
        halfway = action.value.startswith(("copy", "zero"))
        yield Case((*word, Fail(entry, k)))
        if halfway:
            yield Case((*word, Fail(entry, k, partial=True)))
        # A free that is interrupted may have happened, so the call may be completed instead.
        if not action.value.startswith("free"):
            yield Case((*word, Fail(entry, k, interrupt=True)))
        for other in after:
            yield Case((*word, Fail(entry, k, partial=halfway, again=False), other))
    for word in access_words(bench.edition).values():
        for k in (1, 2):
            yield Case((*word, Fail(Input(Call.RELEASE), k)))


def _actions(bench: Bench) -> Iterator[tuple[tuple[Input, ...], Input, int, Action]]:
    """Every allocator call of every transition: how to get there, the input, which of its calls it is, and what."""
    adoptions = (Action.ADOPT_CPU, Action.ADOPT_GPU)
    steps = space(bench.edition).steps
    for state, word in access_words(bench.edition).items():
        for entry, step in steps[state].items():
            for k, action in enumerate((it for it in step.actions if it not in adoptions), 1):
                yield word, entry, k, action


def _stumbles(bench: Bench) -> Iterator[Case]:
    """For every state and call, with a push in flight and without, each other step fails once."""
    push = Input(Call.ASYNC_GPU_PUSH)
    steps = space(bench.edition).steps
    for state, word in access_words(bench.edition).items():
        for entry in (*(entry for entry in steps[state] if entry.call), Input(Call.RELEASE)):
            yield Case((*word, Stumble(entry)))
            if push in steps[state] and steps[state][push].refusal is None:
                yield Case((*word, push, Stumble(entry)))


_MANY = 100


def _counters(bench: Bench) -> Iterator[Case]:
    """Cycles, repeated: for faults that come with the n-th copy, push, adoption or mere look."""
    return _words(counter_words(bench.edition, (*range(2, 9), _MANY)))


def _sizes(bench: Bench) -> Iterator[Case]:
    """The tour at zero bytes, one, an odd number and a page; short words at several megabytes; a cycle at more."""
    # What Caffe does with zero bytes depends on what malloc(0) and cudaMalloc(0) return.
    for size in (0, 1, 4095, 4096) if bench.profile == "safe" else (1, 4095, 4096):
        yield from _words(tour(bench.edition), size)
    for word in access_words(bench.edition).values():
        if len(word) < _LONG:
            yield Case(word, (3 << 20) + 1)
    cycle = cycles(bench.edition)[0]
    for power in range(1, 19):
        for size in ((1 << power) - 1, 1 << power, (1 << power) + 1):
            yield Case(cycle, size)
    yield Case(cycle, (16 << 20) + 1)


def _flights(bench: Bench) -> Iterator[Case]:
    """Every call while a push is queued, and again after it was waited for."""
    push = Input(Call.ASYNC_GPU_PUSH)
    if bench.device is None:
        return
    steps = space("caffe").steps
    for state, word in access_words("caffe").items():
        if steps[state][push].refusal is None:
            for entry in (*steps[state], Input(Call.RELEASE)):
                yield Case((*word, push, entry, Synchronize()), 64)
                yield Case((*word, push, Synchronize(), entry), 64)


SUITES: dict[str, Callable[[Bench], Iterator[Case]]] = {
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
