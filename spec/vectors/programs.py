"""The programs of vectors: the model's sequences of calls with bytes to write, and some programs beyond those."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Call, Fact, Input, Mode, hsi_suite, inputs, space, tour
from syncedmem.model.suites import access_sequences, counter_sequences, pair_tour
from syncedmem.model.vocabulary import Verb, verb_of

from ..engine.calls import ADOPTIONS, READS, SIDES, WRITES
from ..engine.contents import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from syncedmem.model.suites import InputSequence

    from ..requirements import Profile

__all__ = ["OWN", "SET_MODE", "SUITES", "WRITE_BUFFER", "Operation", "Program", "Suite", "programs"]

SET_MODE, WRITE_BUFFER = "set_mode", "write_buffer"
"""The operations that are not calls of the memory."""
OWN = {"own": True}
"""The argument that stands for the memory's own pointer."""

Operation = dict[str, Any]
"""A call with its argument, the bytes that are written after it, and the action that fails; see docs/vectors.md."""

_SIZE = 4


class Program(NamedTuple):
    """A sequence of operations on a new memory.

    Attributes
    ----------
    edition : str
    size : int
        The size of the memory in bytes.
    operations : tuple of Operation
    """

    edition: str
    size: int
    operations: tuple[Operation, ...]


class Suite(NamedTuple):
    """A group of programs with one purpose.

    Attributes
    ----------
    text : str
        What the suite guarantees.
    profile : {"caffe", "safe"}
        ``"caffe"`` if Caffe passes it; ``"safe"`` if it needs the promise that a failed call has changed nothing.
    programs : callable
        Makes the programs for an edition.
    """

    text: str
    profile: Profile
    programs: Callable[[str], Iterator[Program]]


@cache
def programs(suite: str, edition: str) -> tuple[Program, ...]:
    """The programs of a suite, without duplicates.

    Raises
    ------
    KeyError
        If there is no such suite.
    """
    found = {repr(program): program for program in SUITES[suite].programs(edition)}
    return tuple(found.values())


def _program(edition: str, sequence: Iterable[Input | Operation], size: int = _SIZE) -> Program:
    """A program from a sequence, with different bytes in every step, and a release at the end."""
    done = [_operation(it, n, size) if isinstance(it, Input) else it for n, it in enumerate(sequence, 1)]
    return Program(edition, size, (*done, {"call": Call.RELEASE.value}))


def _operation(entry: Input, number: int, size: int) -> Operation:
    if entry.call is None:
        return _mode(entry.mode or Mode.GPU)
    done: Operation = {"call": entry.call.value}
    if entry.call in ADOPTIONS:
        done["argument"] = {"buffer": f"b{number}", "bytes": pattern(number, size).hex()} if entry.data else None
    elif entry.call in WRITES:
        done["write"] = pattern(number, size).hex()
    return done


def _mode(mode: Mode) -> Operation:
    return {"call": SET_MODE, "argument": mode.name}


def _from_sequences(sequences: Callable[[str], Iterable[InputSequence]]) -> Callable[[str], Iterator[Program]]:
    return lambda edition: (_program(edition, sequence) for sequence in sequences(edition))


def _cells(edition: str) -> Iterator[Program]:
    """Every call in every state, with NULL data."""
    for sequence in access_sequences(edition).values():
        for entry in inputs(edition, null=True, mode=False):
            yield _program(edition, (*sequence, entry))


def _failures(edition: str) -> Iterator[Program]:
    """In every state each action of every call fails; then the call is repeated, or the memory is released."""
    for state, sequence in access_sequences(edition).items():
        for entry, step in space(edition).steps[state].items():
            for k in range(1, 1 + sum(verb_of(action) is not Verb.ADOPT for action in step.actions)):
                number = len(sequence) + 1
                failing = {**_operation(entry, number, _SIZE), "fail": k}
                failing.pop("write", None)
                yield _program(edition, (*sequence, failing))
                yield _program(edition, (*sequence, failing, entry, *_reads(edition)))


def _reads(edition: str) -> tuple[Input, ...]:
    return tuple(entry for entry in inputs(edition, mode=False) if entry.call in READS)


def _aliases(edition: str) -> Iterator[Program]:
    """Adopting a memory's own pointer, adopting a buffer twice, and writing to an adopted buffer."""
    for call in (it for it in ADOPTIONS if _can(edition, it)):
        write, *others = sorted((it for it in WRITES if _can(edition, it)), key=lambda it: SIDES[it] != SIDES[call])
        reads = _reads(edition)
        yield from _own_pointers(edition, call, write)
        first = _operation(Input(call), 1, _SIZE)
        again = {"call": call.value, "argument": {"buffer": "b1"}}
        poked = {"call": WRITE_BUFFER, "argument": {"buffer": "b1", "bytes": pattern(9, _SIZE).hex()}}
        yield _program(edition, (first, again, *reads))
        yield _program(edition, (first, *reads, again, *reads))
        yield _program(edition, (first, poked, *reads))
        yield _program(edition, (first, Input(write), again, *reads))
        for other in others:  # bytes that are written on the other side are copied to the caller's buffer
            yield _program(edition, (first, Input(other), *reads, again, *reads))


def _own_pointers(edition: str, call: Call, write: Call) -> Iterator[Program]:
    owned = Fact.OWN_CPU_DATA if SIDES[call] == "cpu" else Fact.OWN_GPU_DATA
    for state, sequence in access_sequences(edition).items():
        if owned in space(edition).steps[state][Input(write)].after.facts:
            own = {"call": call.value, "argument": OWN}
            yield _program(edition, (*sequence, Input(write), own, *_reads(edition)))


def _can(edition: str, call: Call) -> bool:
    """Whether an edition has a call and does not refuse it on a new memory."""
    step = space(edition).steps[space(edition).start].get(Input(call))
    return step is not None and step.refusal is None


def _modes(edition: str) -> Iterator[Program]:
    """Every mode for the allocation of host memory with every mode for its free, by adoption and by release."""
    down = [Input(it) for it in (Call.GPU_DATA, Call.CPU_DATA) if _can(edition, it)]
    for first, second in product(Mode, Mode):
        for made in ([Input(Call.CPU_DATA)], [Input(Call.MUTABLE_CPU_DATA)], down):
            for freed in ([], [Input(Call.SET_CPU_DATA)], [Input(Call.SET_CPU_DATA), *down]):
                yield _program(edition, (Input(None, mode=first), *made, Input(None, mode=second), *freed))


def _zero(edition: str) -> Iterator[Program]:
    """The tour of a memory of zero bytes."""
    return (_program(edition, sequence, size=0) for sequence in tour(edition))


SUITES: dict[str, Suite] = {
    "cells": Suite("every call, also with NULL data, in every state", "caffe", _cells),
    "tour": Suite("every transition, in few long sequences", "caffe", _from_sequences(tour)),
    "pairs": Suite(
        "every transition right after every other that can come before it", "caffe", _from_sequences(pair_tour)
    ),
    "hsi": Suite(
        "complete for implementations with no more states than the minimal machine", "caffe", _from_sequences(hsi_suite)
    ),
    "hsi-extra": Suite(
        "complete for implementations with one state more", "caffe", _from_sequences(lambda it: hsi_suite(it, 1))
    ),
    "counters": Suite(
        "cycles of copies, pushes and adoptions, 2 to 8 times", "caffe", _from_sequences(counter_sequences)
    ),
    "modes": Suite("the mode changes between allocation and free", "caffe", _modes),
    "failures": Suite(
        "each action of each call except release fails in each state, and nothing has changed then", "safe", _failures
    ),
    "aliases": Suite(
        "adopting the own pointer, adopting a buffer twice, and writing to an adopted buffer", "safe", _aliases
    ),
    "zero": Suite("the tour of a memory of zero bytes", "safe", _zero),
}
"""Every suite by name."""
