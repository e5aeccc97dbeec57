"""The suites of vectors: cases from the model's sequences of calls, and some beyond those."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import EDITIONS, Input, InvalidArgumentError, Mode, caffe, hsi_suite, space, tour
from syncedmem.model.opening import machine_of
from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences, counter_sequences, cycles, pair_tour

from ..record.steps import OWN, Buffer, Step
from .operations import LOOK, WRITE_BUFFER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from syncedmem.model import Call, Machine
    from syncedmem.model.opening import AnyMachine
    from syncedmem.model.suites import InputSequence

    from ..record.steps import Case
    from ..requirements import Profile

__all__ = ["SUITES", "Suite", "VectorProgram", "programs"]

_SIZE = 4
_SIZES = (1, 3, 5, 64, 4097)
_LARGE = (65_537, 1_048_579)
_SEVERAL = (5, 3, 64)
_MOST = 16
"""The longest counter that `counters` finds."""


class VectorProgram(NamedTuple):
    """Steps of new memories.

    Attributes
    ----------
    machine : Machine
    sizes : tuple of int
        The size of each memory in bytes.
    operations : tuple of Step
        What is done after they are made.
    profile : {"caffe", "safe"}
        ``"caffe"`` if Caffe passes it; ``"safe"`` if it needs a promise beyond Caffe's.
    """

    machine: Machine
    sizes: tuple[int, ...]
    operations: Case
    profile: Profile = "caffe"

    @property
    def made(self) -> Case:
        """The steps that make the memories."""
        return tuple(Step("new", number, size=size) for number, size in enumerate(self.sizes))


class Suite(NamedTuple):
    """A group of programs with one purpose.

    Attributes
    ----------
    text : str
        What the suite guarantees.
    programs : callable
        Makes the programs for a machine.
    """

    text: str
    programs: Callable[[Machine], Iterator[VectorProgram]]


@lru_cache(maxsize=2)  # a suite is wanted twice in a row, and the largest have millions of operations
def programs(suite: str, edition: AnyMachine) -> tuple[VectorProgram, ...]:
    """The programs of a suite, without duplicates.

    Raises
    ------
    KeyError
        If there is no such suite.
    InvalidArgumentError
        If a call of the machine has a name that is another operation in a vector.
    """
    machine = machine_of(edition)
    words = {WRITE_BUFFER, LOOK, *(f"set_{name}" for name in machine.settings)}
    if clash := sorted(words & machine.calls.keys()):
        wanted = f"another name, because {clash[0]} is another operation in a vector"
        raise InvalidArgumentError(f"a call of {machine}", clash[0], wanted)
    names, distinct = set[bytes](), list[VectorProgram]()
    for program in SUITES[suite].programs(machine):
        name = blake2b(repr(program[1:]).encode(), digest_size=16).digest()  # shorter than the text of a long one
        if program.operations and name not in names:
            names.add(name)
            distinct.append(program)
    return tuple(distinct)


def _program(
    machine: Machine, sequence: Iterable[Input | Step], size: int = _SIZE, profile: Profile = "caffe"
) -> VectorProgram:
    """A program of one memory from a sequence, with another content in every step, and its end."""
    done = [
        _step_of(step, n) if isinstance(step, Input) else step for n, step in enumerate(_sayable(machine, sequence), 1)
    ]
    return VectorProgram(machine, (size,), (*done, *_end_of(machine)), profile)


def _sayable(machine: Machine, sequence: Iterable[Input | Step]) -> Iterator[Input | Step]:
    """A sequence without the calls that a table does not define where they are, or only for facts that are given."""
    takes = stepper(machine)
    state = takes.start
    for entry in sequence:
        if isinstance(entry, Input):
            step = takes.step(state, entry)
            if step is None or entry.given:
                continue
            state = step.after
        yield entry


def _end_of(machine: Machine, memory: int = 0) -> Case:
    """The end of a memory, if the machine has one."""
    return tuple(Step("call", memory, call.name) for call in machine.calls.values() if call.ends)[:1]


@lru_cache(maxsize=1 << 12)
def _step_of(entry: Input, number: int) -> Step:
    """The step of an input, with the content of this number."""
    if entry.call is None:
        return Step("set", name=entry.setting, value=entry.value)
    lent = Buffer(str(number), entry.side, number) if entry.does == "adopt" and entry.data else None
    return Step("call", 0, entry.call.name, lent, number if entry.writes else None)


def _on(memory: int, *steps: Step) -> Case:
    """Steps on another memory than the first."""
    return tuple(step._replace(memory=memory) if step.does != "set" else step for step in steps)


def _from_sequences(
    sequences: Callable[[Machine], Iterable[InputSequence]], sizes: Iterable[int] = (_SIZE,), profile: Profile = "caffe"
) -> Callable[[Machine], Iterator[VectorProgram]]:
    return lambda machine: (
        _program(machine, sequence, size, profile) for size in sizes for sequence in sequences(machine)
    )


def _cells(machine: Machine) -> Iterator[VectorProgram]:
    """Every call in every state, with NULL data."""
    for sequence in access_sequences(machine).values():
        for entry in stepper(machine).inputs(settings=False):
            yield _program(machine, (*sequence, entry))


def _failures(machine: Machine) -> Iterator[VectorProgram]:
    """In every state each action of every call fails; then the call is repeated, or the memory is released."""
    for state, sequence in access_sequences(machine).items():
        if any(entry.given for entry in sequence):
            continue
        for entry, step in space(machine).steps[state].items():
            if entry.given:
                continue
            can_fail = ("allocate", "zero", "copy", "free")
            for k in range(1, 1 + sum(machine.actions[name].does in can_fail for name in step.actions)):
                failing = _step_of(entry, len(sequence) + 1)._replace(write=None, fail=k)
                yield _program(machine, (*sequence, failing), profile="safe")
                yield _program(machine, (*sequence, failing, entry, *_reads(machine)), profile="safe")


def _reads(machine: Machine) -> tuple[Input, ...]:
    return tuple(entry for entry in stepper(machine).inputs(null=False, settings=False) if entry.does == "read")


def _aliases(machine: Machine) -> Iterator[VectorProgram]:
    """Adopting a memory's own pointer, adopting a buffer twice, and writing to an adopted buffer."""
    calls = [call for call in machine.calls.values() if _can(machine, call)]
    if not any(call.does == "write" for call in calls):
        return
    for call in (call for call in calls if call.does == "adopt"):
        writes = (call for call in calls if call.does == "write")
        write, *others = sorted(writes, key=lambda other: other.side != call.side)
        reads = _reads(machine)
        yield from _own_pointers(machine, call, write)
        first, again, poked = _of_one_buffer(call)
        yield _program(machine, (first, again, *reads))
        yield _program(machine, (first, *reads, again, *reads))
        yield _program(machine, (first, poked, *reads))
        yield _program(machine, (first, Input(write), again, *reads))
        for other in others:  # bytes that are written on the other side are copied to the caller's buffer
            yield _program(machine, (first, Input(other), *reads, again, *reads))
        yield from _same_buffer(machine, call, write)


def _same_buffer(machine: Machine, call: Call, write: Call) -> Iterator[VectorProgram]:
    """Two memories adopt one buffer, and each sees what is written through the other."""
    first, again, poked = _of_one_buffer(call)
    reads = [_step_of(entry, 0) for entry in _reads(machine)]
    others = [Step("look"), *reads]
    written = _step_of(Input(write), 3)
    for change in ((poked,), (written,), (*reads, written), _on(1, written), (*_on(1, *reads), poked)):
        ends = (*_end_of(machine), *_end_of(machine, 1))
        yield VectorProgram(machine, (_SIZE, _SIZE), (first, *_on(1, again), *change, *others, *_on(1, *others), *ends))


def _of_one_buffer(call: Call) -> tuple[Step, Step, Step]:
    """A buffer is adopted; it is adopted again, as it is; its owner writes into it."""
    first = _step_of(Input(call), 1)
    again = first._replace(argument=Buffer("1", call.side))
    return first, again, Step("write", argument=Buffer("1", call.side), write=9)


def _several(machine: Machine) -> Iterator[VectorProgram]:
    """Sequences of the tour on three memories in turns; after each step the other memories are compared."""
    sequences = tour(machine)
    for n in range(len(sequences)):
        turns = [sequences[(n + k * len(sequences) // len(_SEVERAL)) % len(sequences)] for k in range(len(_SEVERAL))]
        steps: list[Step] = []
        for at in range(max(map(len, turns))):
            for memory, sequence in enumerate(turns):
                if at < len(sequence):
                    is_call = sequence[at].call is not None
                    steps += _on(memory, _step_of(sequence[at], 1 + at * len(turns) + memory))
                    steps += (Step("look", number) for number in range(len(turns)) if number != memory and is_call)
        ends = (step for memory in range(len(turns)) for step in _end_of(machine, memory))
        yield VectorProgram(machine, _SEVERAL, (*steps, *ends))


def _own_pointers(machine: Machine, call: Call, write: Call) -> Iterator[VectorProgram]:
    """Adopting the own pointer, or one into the own block: we promise for Caffe's editions alone that it is refused."""
    if machine not in EDITIONS.values():
        return
    owned = next(fact.name for fact in machine.facts.values() if (fact.means, fact.side) == ("owned", call.side))
    for state, sequence in access_sequences(machine).items():
        if owned in space(machine).steps[state][Input(write)].after.facts:
            for offset in (0, 1):
                own = Step("call", 0, call.name, Buffer(OWN, call.side, offset=offset))
                yield _program(machine, (*sequence, Input(write), own, *_reads(machine)), profile="safe")


def _can(machine: Machine, call: Call) -> bool:
    """Whether a machine has a call and does not refuse it on a new memory."""
    step = space(machine).steps[space(machine).start].get(Input(call))
    return step is not None and not step.refusal


def _modes(machine: Machine) -> Iterator[VectorProgram]:
    """Every mode for the allocation of host memory with every mode for its free, by adoption and by release."""
    if machine not in EDITIONS.values():
        return
    down = [Input(call) for call in (caffe.GPU_DATA, caffe.CPU_DATA) if _can(machine, call)]
    for first, second in product(Mode, Mode):
        for fresh in ([Input(caffe.CPU_DATA)], [Input(caffe.MUTABLE_CPU_DATA)], down):
            for freed in ([], [Input(caffe.SET_CPU_DATA)], [Input(caffe.SET_CPU_DATA), *down]):
                yield _program(
                    machine,
                    (
                        Input(setting=caffe.MODE.name, value=first.name),
                        *fresh,
                        Input(setting=caffe.MODE.name, value=second.name),
                        *freed,
                    ),
                )


def _zero(machine: Machine) -> Iterator[VectorProgram]:
    """The tour of a memory of zero bytes; what those do is said for Caffe's editions only."""
    if machine in EDITIONS.values():
        yield from _from_sequences(tour, (0,), "safe")(machine)


def _counters(machine: Machine) -> tuple[InputSequence, ...]:
    return counter_sequences(machine, range(2, _MOST + 1))


SUITES: dict[str, Suite] = {
    "cells": Suite("every call, also with NULL data, in every state", _cells),
    "tour": Suite("every transition, in few long sequences", _from_sequences(tour)),
    "sizes": Suite("the tour of memories of 1, 3, 5, 64 and 4,097 bytes", _from_sequences(tour, _SIZES)),
    "large": Suite("a few cycles of memories of 65,537 and 1,048,579 bytes", _from_sequences(cycles, _LARGE)),
    "several": Suite("three memories in turns: no call affects another memory", _several),
    "pairs": Suite("every transition right after every other that can come before it", _from_sequences(pair_tour)),
    "hsi": Suite(
        "complete for implementations with no more states than the minimal machine", _from_sequences(hsi_suite)
    ),
    "hsi-extra": Suite(
        "complete for implementations with one state more", _from_sequences(lambda machine: hsi_suite(machine, 1))
    ),
    "counters": Suite(f"cycles of copies, pushes and adoptions, 2 to {_MOST} times", _from_sequences(_counters)),
    "modes": Suite("the mode changes between allocation and free", _modes),
    "failures": Suite(
        "each action of each call except release fails in each state, and nothing has changed then", _failures
    ),
    "aliases": Suite(
        "adopting a buffer twice, also in two memories, writing to an adopted buffer, and adopting the own pointer",
        _aliases,
    ),
    "zero": Suite("the tour of a memory of zero bytes", _zero),
}
"""Every suite of memories by name."""
