"""Caffe's words as enumerations, and its rows in them, for the modules that do not know any machine yet.

What they mean, and the rows, stand in ``caffe``; nothing here says it again.  `SyncedHead` stays, for the runtime and
its users; the others go with the last module that asks for them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from . import caffe
from .spelling import Spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .declaration import Machine

__all__ = [
    "DEFAULT_EDITION",
    "EDITIONS",
    "EFFECTS",
    "TRANSITIONS",
    "Action",
    "Call",
    "Edition",
    "Effect",
    "Fact",
    "Guard",
    "Host",
    "Refusal",
    "Role",
    "SyncedHead",
    "Transition",
    "Verb",
]


class Host(Spelled, enum.Enum):
    """A side: one of the two places where memory can be."""

    CPU = "cpu"
    GPU = "gpu"

    @property
    def pointer(self) -> Fact:
        """The fact that this place has a pointer."""
        return Fact.CPU_POINTER if self is Host.CPU else Fact.GPU_POINTER

    @property
    def owned(self) -> Fact:
        """The fact that we own the memory of this place."""
        return Fact.OWN_CPU_DATA if self is Host.CPU else Fact.OWN_GPU_DATA

    @property
    def head(self) -> SyncedHead:
        """The head that says that only this place is fresh."""
        return next(head for head in SyncedHead if head.fresh == (self,))


class Role(Spelled, enum.Enum):
    """What a call is for."""

    READ = "read"
    WRITE = "write"
    ADOPT = "adopt"
    PUSH = "push"
    RELEASE = "release"


class Verb(Spelled, enum.Enum):
    """What an action does to the memory of its side."""

    ALLOCATE = "allocate"
    ZERO = "zero"
    COPY = "copy"
    ADOPT = "adopt"
    FREE = "free"


class SyncedHead(Spelled, enum.Enum):
    """Which copy of the buffer is fresh; Caffe's ``SyncedMemory::SyncedHead`` (syncedmem.hpp:68)."""

    UNINITIALIZED = 0
    HEAD_AT_CPU = 1
    HEAD_AT_GPU = 2
    SYNCED = 3

    @property
    def letter(self) -> str:
        """Its letter in names of configurations."""
        return _HEADS[self][0]

    @property
    def fresh(self) -> tuple[Host, ...]:
        """The sides that have the newest bytes."""
        return _HEADS[self][1]


_HEADS: Mapping[SyncedHead, tuple[str, tuple[Host, ...]]] = MappingProxyType(
    {SyncedHead[name]: (word.letter, tuple(map(Host, word.fresh))) for name, word in caffe.EVERYTHING.heads.items()}
)


class Call(Spelled, enum.Enum):
    """A call on a memory; ``RELEASE`` is Caffe's destructor."""

    CPU_DATA = "cpu_data"
    MUTABLE_CPU_DATA = "mutable_cpu_data"
    GPU_DATA = "gpu_data"
    MUTABLE_GPU_DATA = "mutable_gpu_data"
    SET_CPU_DATA = "set_cpu_data"
    SET_GPU_DATA = "set_gpu_data"
    ASYNC_GPU_PUSH = "async_gpu_push"
    RELEASE = "release"

    def __str__(self) -> str:
        return self.value

    @property
    def does(self) -> Role:
        """What it is for."""
        return _CALLS[self][0]

    @property
    def side(self) -> Host | None:
        """The side that it is about; None if it is about both."""
        return _CALLS[self][1]

    @property
    def takes_data(self) -> bool:
        """Whether the call with NULL is a separate input."""
        return self.does is Role.ADOPT

    @property
    def ends(self) -> bool:
        """Whether the memory is gone after the call."""
        return self.does is Role.RELEASE


_CALLS: Mapping[Call, tuple[Role, Host | None]] = MappingProxyType(
    {
        Call(name): (Role(word.does), Host(word.side) if word.side else None)
        for name, word in caffe.EVERYTHING.calls.items()
    }
)


class Fact(Spelled, enum.IntFlag):
    """What is true of a memory besides its head: two pointers and Caffe's three flags (syncedmem.hpp:81-87)."""

    CPU_POINTER = 1
    GPU_POINTER = 2
    OWN_CPU_DATA = 4
    OWN_GPU_DATA = 8
    CPU_MALLOC_USE_CUDA = 16


class Guard(Spelled, enum.Enum):
    """A condition of a row on a pointer, on a flag, or on the call's argument."""

    HAS_CPU_POINTER = "has_cpu_pointer"
    HAS_GPU_POINTER = "has_gpu_pointer"
    OWN_CPU_DATA = "own_cpu_data"
    OWN_GPU_DATA = "own_gpu_data"
    HAS_DATA = "has_data"

    @property
    def fact(self) -> Fact | None:
        """The fact this guard reads, or None for the guard over the argument."""
        return _GUARD_FACTS.get(self)


_GUARD_FACTS: Mapping[Guard, Fact] = MappingProxyType(
    {
        Guard.HAS_CPU_POINTER: Fact.CPU_POINTER,
        Guard.HAS_GPU_POINTER: Fact.GPU_POINTER,
        Guard.OWN_CPU_DATA: Fact.OWN_CPU_DATA,
        Guard.OWN_GPU_DATA: Fact.OWN_GPU_DATA,
    }
)


class Action(Spelled, enum.Enum):
    """A step of a call.  ``CPU`` actions concern the host side, ``GPU`` actions the device side."""

    ALLOCATE_CPU = "allocate_cpu"
    ZERO_CPU = "zero_cpu"
    COPY_TO_CPU = "copy_to_cpu"
    ADOPT_CPU = "adopt_cpu"
    FREE_CPU = "free_cpu"
    ALLOCATE_GPU = "allocate_gpu"
    ZERO_GPU = "zero_gpu"
    COPY_TO_GPU = "copy_to_gpu"
    COPY_TO_GPU_ASYNC = "copy_to_gpu_async"
    ADOPT_GPU = "adopt_gpu"
    FREE_GPU = "free_gpu"

    @property
    def does(self) -> Verb:
        """What it does to the memory of its side."""
        return _ACTIONS[self][0]

    @property
    def side(self) -> Host:
        """The side that it is about; a copy goes there, from the other side."""
        return _ACTIONS[self][1]

    @property
    def queued(self) -> bool:
        """Whether it may happen after the call has returned."""
        return caffe.EVERYTHING.actions[self.value].queued


_ACTIONS: Mapping[Action, tuple[Verb, Host]] = MappingProxyType(
    {Action(name): (Verb(word.does), Host(word.side)) for name, word in caffe.EVERYTHING.actions.items()}
)


class Refusal(Spelled, enum.Enum):
    """Why a call is refused; in Caffe each is a failed CHECK that ends the process."""

    NULL_DATA = "null_data"
    NOT_HEAD_AT_CPU = "not_head_at_cpu"
    NO_GPU = "no_gpu"

    @property
    def needs(self) -> SyncedHead | None:
        """The only head in which the call is allowed, if that is the reason."""
        needed = caffe.EVERYTHING.refusals[self.value].needs
        return SyncedHead[needed] if needed else None


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an action on the facts.

    ``by_mode`` facts become true in GPU mode and false in CPU mode, because Caffe's ``CaffeMallocHost`` chooses
    between ``cudaMallocHost`` and ``malloc`` (syncedmem.hpp:19-34).
    """

    sets: Fact = Fact(0)
    clears: Fact = Fact(0)
    by_mode: Fact = Fact(0)

    @property
    def is_none(self) -> bool:
        """Whether the facts stay the same."""
        return not self.sets | self.clears | self.by_mode


def _facts(names: Iterable[str]) -> Fact:
    """The facts with the names that they have in ``caffe``."""
    found = Fact(0)
    for name in names:
        found |= next((fact for guard, fact in _GUARD_FACTS.items() if guard.value == name), None) or Fact[name.upper()]
    return found


EFFECTS: Mapping[Action, Effect] = MappingProxyType(
    {
        Action(name): Effect(_facts(it.sets), _facts(it.clears), _facts(by[0] for by in it.by_setting))
        for name, it in caffe.EVERYTHING.actions.items()
    }
)


@dataclass(frozen=True, slots=True)
class Edition:
    """A build or an older version of Caffe: a selection of rows from the one table, never a copy of it.

    Attributes
    ----------
    name : str
        The name by which rows refer to it in ``Transition.editions``.
    about : str
        A description that helps to choose.
    heads : tuple of SyncedHead
        The heads that it has, the head of a new memory first; each must be reachable.
    flags : Fact
        The flags that objects of this edition have; effects on other flags are dropped.
    implied : Fact
        A flag that objects do not have because it always equals another fact; guards may still ask for it.
    never : frozenset of Guard
        Guards that cannot hold in this edition.  A row that requires one is left out; a row that excludes one loses
        the exclusion.
    cite : str
        Where the edition is described.
    cycles : tuple of tuple of Call
        Sequences of calls that can be repeated from a new memory.  Together they do all that the edition can repeat:
        copy, push, adopt.  Test suites repeat them.
    """

    name: str
    about: str
    heads: tuple[SyncedHead, ...]
    flags: Fact
    implied: Fact
    never: frozenset[Guard]
    cite: str
    cycles: tuple[tuple[Call, ...], ...]

    @property
    def facts(self) -> Fact:
        """The facts of this edition: the pointers, its flags, and the implied flag."""
        return Fact.CPU_POINTER | Fact.GPU_POINTER | self.flags | self.implied

    @property
    def initial(self) -> SyncedHead:
        """The head of a new memory."""
        return self.heads[0]

    @property
    def has_device(self) -> bool:
        """Whether a memory has a device side."""
        return Guard.HAS_GPU_POINTER not in self.never


def _edition(machine: Machine) -> Edition:
    flags = {flag.name for flag in machine.flags}
    return Edition(
        machine.name,
        machine.about,
        heads=tuple(SyncedHead[head] for head in machine.heads),
        flags=_facts(flags),
        implied=_facts(it.name for it in caffe.EVERYTHING.flags if it.name in machine.facts and it.name not in flags),
        never=frozenset(guard for guard in _GUARD_FACTS if guard.value not in machine.facts),
        cite=machine.cite,
        cycles=tuple(tuple(map(Call, cycle)) for cycle in machine.cycles),
    )


EDITIONS: Mapping[str, Edition] = MappingProxyType({name: _edition(it) for name, it in caffe.EDITIONS.items()})

DEFAULT_EDITION = caffe.DEFAULT.name
"""The edition that is used if none is named."""

_ANY = tuple(EDITIONS)


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: a call, the heads in which it applies, the guards, and either actions and a head or a refusal.

    Attributes
    ----------
    call : Call
    source : tuple of SyncedHead
    dest : SyncedHead or None
        None if the head stays: the call was refused, or the memory is gone (``RELEASE``).
    actions : tuple of Action
        In the order in which they happen.
    conditions, unless : tuple of Guard
        Guards that must hold, and guards that must not.
    refusal : Refusal or None
    editions : tuple of str
        Names from ``EDITIONS``.
    cite : str
        Caffe's file and lines.
    """

    call: Call
    source: tuple[SyncedHead, ...]
    dest: SyncedHead | None
    actions: tuple[Action, ...] = ()
    conditions: tuple[Guard, ...] = ()
    unless: tuple[Guard, ...] = ()
    refusal: Refusal | None = None
    editions: tuple[str, ...] = _ANY
    cite: str = ""

    def identifier(self, source: SyncedHead) -> str:
        """A stable name for this row in one of its heads: call, head and guards, but no position."""
        guards = [guard.value for guard in self.conditions] + ["!" + guard.value for guard in self.unless]
        suffix = f"[{','.join(guards)}]" if guards else ""
        return f"{self.call.value}@{source.name}{suffix}"


TRANSITIONS: tuple[Transition, ...] = tuple(
    Transition(
        Call(row.call),
        tuple(SyncedHead[head] for head in row.source),
        SyncedHead[row.dest] if row.dest else None,
        tuple(map(Action, row.actions)),
        conditions=tuple(map(Guard, row.conditions)),
        unless=tuple(map(Guard, row.unless)),
        refusal=Refusal(row.refusal) if row.refusal else None,
        editions=row.only or _ANY,
        cite=row.cite,
    )
    for row in caffe.EVERYTHING.rows
)
