"""The head machine: heads, calls, guards, actions, and one table.

Rules of this file
------------------
Rule 1: everything that moves the head is in ``TRANSITIONS``, and everything that changes a pointer or an
ownership flag is in ``EFFECTS``.  No other module assigns either.

Rule 2: this module knows no memory, no NumPy and no CUDA.  An action is a name.  Its effect on pointers and flags is
declared here; its effect on bytes is bound elsewhere.

Rule 3: a row says what Caffe does, nothing safer.  This project adds some things around the machine (it waits for
copies in flight, refuses its own buffers, undoes a failed call), but they never change which row fires.

Theory of operation
-------------------
One buffer of ``size`` bytes may exist twice, on the host and on the device.  The *head* says which copy is
fresh: none yet (``UNINITIALIZED``), the host's (``HEAD_AT_CPU``), the device's (``HEAD_AT_GPU``) or both
(``SYNCED``).  A side is allocated, and copied to, only when somebody asks for it: reading a stale side
copies and synchronises, and writing a side makes the other side stale.  Two flags say which pointers we own and
must free; we never own an adopted pointer.

A call in a given head is one row, or several rows with different guards over the pointers, the flags and the
argument.  The rows of one (call, head) pair must be exclusive and complete: for all values of the guards,
exactly one row is enabled.  A call that fails a CHECK in Caffe is a row too, with a
``Refusal`` in place of actions, because a port must reproduce that nothing happens.

Two things are not in the table on purpose.  The *mode* (``Caffe::mode()``) selects no row.  One effect reads it
when host memory is allocated, and stores it in ``cpu_malloc_use_cuda``.  The *size* selects no row
either: a memory of zero bytes has the same transitions.

Sources: BVLC/caffe 9b8915401, ``src/caffe/syncedmem.cpp`` and ``include/caffe/syncedmem.hpp``, by line.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from .spelling import Spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    def other(self) -> Host:
        """The other place."""
        return Host.GPU if self is Host.CPU else Host.CPU

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

    def is_fresh(self, head: SyncedHead) -> bool:
        """Whether a head says that this place is fresh, alone or with the other."""
        return self in head.fresh


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
    {
        SyncedHead.UNINITIALIZED: ("U", ()),
        SyncedHead.HEAD_AT_CPU: ("C", (Host.CPU,)),
        SyncedHead.HEAD_AT_GPU: ("G", (Host.GPU,)),
        SyncedHead.SYNCED: ("S", (Host.CPU, Host.GPU)),
    }
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
        Call.CPU_DATA: (Role.READ, Host.CPU),
        Call.MUTABLE_CPU_DATA: (Role.WRITE, Host.CPU),
        Call.GPU_DATA: (Role.READ, Host.GPU),
        Call.MUTABLE_GPU_DATA: (Role.WRITE, Host.GPU),
        Call.SET_CPU_DATA: (Role.ADOPT, Host.CPU),
        Call.SET_GPU_DATA: (Role.ADOPT, Host.GPU),
        Call.ASYNC_GPU_PUSH: (Role.PUSH, Host.GPU),
        Call.RELEASE: (Role.RELEASE, None),
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
        return self is Action.COPY_TO_GPU_ASYNC


_ACTIONS: Mapping[Action, tuple[Verb, Host]] = MappingProxyType(
    {
        Action.ALLOCATE_CPU: (Verb.ALLOCATE, Host.CPU),
        Action.ZERO_CPU: (Verb.ZERO, Host.CPU),
        Action.COPY_TO_CPU: (Verb.COPY, Host.CPU),
        Action.ADOPT_CPU: (Verb.ADOPT, Host.CPU),
        Action.FREE_CPU: (Verb.FREE, Host.CPU),
        Action.ALLOCATE_GPU: (Verb.ALLOCATE, Host.GPU),
        Action.ZERO_GPU: (Verb.ZERO, Host.GPU),
        Action.COPY_TO_GPU: (Verb.COPY, Host.GPU),
        Action.COPY_TO_GPU_ASYNC: (Verb.COPY, Host.GPU),
        Action.ADOPT_GPU: (Verb.ADOPT, Host.GPU),
        Action.FREE_GPU: (Verb.FREE, Host.GPU),
    }
)


class Refusal(Spelled, enum.Enum):
    """Why a call is refused; in Caffe each is a failed CHECK that ends the process."""

    NULL_DATA = "null_data"
    NOT_HEAD_AT_CPU = "not_head_at_cpu"
    NO_GPU = "no_gpu"

    @property
    def needs(self) -> SyncedHead | None:
        """The only head in which the call is allowed, if that is the reason."""
        return SyncedHead.HEAD_AT_CPU if self is Refusal.NOT_HEAD_AT_CPU else None


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


_OWN_CPU = Fact.CPU_POINTER | Fact.OWN_CPU_DATA
_OWN_GPU = Fact.GPU_POINTER | Fact.OWN_GPU_DATA

EFFECTS: Mapping[Action, Effect] = MappingProxyType(
    {
        Action.ALLOCATE_CPU: Effect(sets=_OWN_CPU, by_mode=Fact.CPU_MALLOC_USE_CUDA),
        Action.ZERO_CPU: Effect(),
        Action.COPY_TO_CPU: Effect(),
        # cpu_malloc_use_cuda keeps its old value.  That does no harm while host memory is allocated only once.
        Action.ADOPT_CPU: Effect(sets=Fact.CPU_POINTER, clears=Fact.OWN_CPU_DATA),
        Action.FREE_CPU: Effect(clears=_OWN_CPU),
        Action.ALLOCATE_GPU: Effect(sets=_OWN_GPU),
        Action.ZERO_GPU: Effect(),
        Action.COPY_TO_GPU: Effect(),
        Action.COPY_TO_GPU_ASYNC: Effect(),
        Action.ADOPT_GPU: Effect(sets=Fact.GPU_POINTER, clears=Fact.OWN_GPU_DATA),
        Action.FREE_GPU: Effect(clears=_OWN_GPU),
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


_U, _C, _G, _S = SyncedHead
_ALL = tuple(SyncedHead)
_LIVE = (_C, _G, _S)
_FLAGS = Fact.OWN_CPU_DATA | Fact.OWN_GPU_DATA | Fact.CPU_MALLOC_USE_CUDA
_THERE_AND_BACK = (Call.MUTABLE_CPU_DATA, Call.GPU_DATA, Call.MUTABLE_GPU_DATA, Call.CPU_DATA)

EDITIONS: Mapping[str, Edition] = MappingProxyType(
    {
        edition.name: edition
        for edition in (
            Edition(
                "caffe",
                "Caffe as it is now",
                heads=_ALL,
                flags=_FLAGS,
                implied=Fact(0),
                never=frozenset(),
                cite="syncedmem.hpp:1-95; syncedmem.cpp:1-185",
                cycles=(
                    _THERE_AND_BACK,
                    (Call.MUTABLE_CPU_DATA, Call.ASYNC_GPU_PUSH),
                    (Call.SET_CPU_DATA, Call.GPU_DATA, Call.SET_GPU_DATA, Call.CPU_DATA),
                    (Call.MUTABLE_CPU_DATA, Call.GPU_DATA, Call.CPU_DATA, Call.GPU_DATA, Call.CPU_DATA),
                ),
            ),
            Edition(
                "early",
                "Caffe as it was at first",
                heads=_ALL,
                flags=Fact.OWN_CPU_DATA,
                # Device memory is always ours here, so the flag of later versions would equal the pointer.
                implied=Fact.OWN_GPU_DATA,
                never=frozenset(),
                cite="syncedmem.hpp and syncedmem.cpp as they were in 2014, at v0.9999",
                cycles=(_THERE_AND_BACK, (Call.SET_CPU_DATA, Call.GPU_DATA, Call.MUTABLE_GPU_DATA, Call.CPU_DATA)),
            ),
            Edition(
                "cpu_only",
                "Caffe in a build without a device",
                heads=(_U, _C),
                flags=Fact.OWN_CPU_DATA,
                implied=Fact(0),
                never=frozenset({Guard.HAS_GPU_POINTER, Guard.OWN_GPU_DATA}),
                cite="syncedmem.cpp:89, 116, 132, 150; the CPU_ONLY build",
                cycles=((Call.MUTABLE_CPU_DATA, Call.CPU_DATA, Call.SET_CPU_DATA),),
            ),
        )
    }
)

DEFAULT_EDITION = next(iter(EDITIONS))
"""The edition that is used if none is named."""

_ANY = tuple(EDITIONS)
_GPU = ("caffe", "early")
_CAFFE = ("caffe",)
_CPU_ONLY = ("cpu_only",)


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


_CPU_PTR, _GPU_PTR = (Guard.HAS_CPU_POINTER,), (Guard.HAS_GPU_POINTER,)
_OWN_C, _OWN_G, _DATA = (Guard.OWN_CPU_DATA,), (Guard.OWN_GPU_DATA,), (Guard.HAS_DATA,)

_NEW_CPU = (Action.ALLOCATE_CPU, Action.ZERO_CPU)
_NEW_GPU = (Action.ALLOCATE_GPU, Action.ZERO_GPU)
_FIRST_DOWN = (Action.ALLOCATE_CPU, Action.COPY_TO_CPU)
_FIRST_UP = (Action.ALLOCATE_GPU, Action.COPY_TO_GPU)
_FIRST_PUSH = (Action.ALLOCATE_GPU, Action.COPY_TO_GPU_ASYNC)
_DOWN, _UP, _PUSH = (Action.COPY_TO_CPU,), (Action.COPY_TO_GPU,), (Action.COPY_TO_GPU_ASYNC,)

# fmt: off
TRANSITIONS: tuple[Transition, ...] = (
    # --- reading on the host: to_cpu(), syncedmem.cpp:39-64; cpu_data(), syncedmem.cpp:93
    Transition(Call.CPU_DATA, (_U,), _C, _NEW_CPU, cite="syncedmem.cpp:42-47"),
    Transition(Call.CPU_DATA, (_C,), _C, cite="syncedmem.cpp:60"),
    Transition(Call.CPU_DATA, (_G,), _S, _FIRST_DOWN, unless=_CPU_PTR, editions=_GPU, cite="syncedmem.cpp:50-55"),
    Transition(Call.CPU_DATA, (_G,), _S, _DOWN, conditions=_CPU_PTR, editions=_GPU, cite="syncedmem.cpp:54"),
    Transition(Call.CPU_DATA, (_S,), _S, editions=_GPU, cite="syncedmem.cpp:61"),
    # --- writing on the host: as reading, then the device side is stale; syncedmem.cpp:136
    Transition(Call.MUTABLE_CPU_DATA, (_U,), _C, _NEW_CPU, cite="syncedmem.cpp:136-141"),
    Transition(Call.MUTABLE_CPU_DATA, (_C,), _C, cite="syncedmem.cpp:139"),
    Transition(Call.MUTABLE_CPU_DATA, (_G,), _C, _FIRST_DOWN, unless=_CPU_PTR, editions=_GPU, cite="syncedmem.cpp:138"),
    Transition(Call.MUTABLE_CPU_DATA, (_G,), _C, _DOWN, conditions=_CPU_PTR, editions=_GPU, cite="syncedmem.cpp:138"),
    Transition(Call.MUTABLE_CPU_DATA, (_S,), _C, editions=_GPU, cite="syncedmem.cpp:139"),
    # --- reading on the device: to_gpu(), syncedmem.cpp:66-91; gpu_data(), syncedmem.cpp:110
    Transition(Call.GPU_DATA, (_U,), _G, _NEW_GPU, editions=_GPU, cite="syncedmem.cpp:70-75"),
    Transition(Call.GPU_DATA, (_C,), _S, _FIRST_UP, unless=_GPU_PTR, editions=_GPU, cite="syncedmem.cpp:77-82"),
    Transition(Call.GPU_DATA, (_C,), _S, _UP, conditions=_GPU_PTR, editions=_GPU, cite="syncedmem.cpp:81"),
    Transition(Call.GPU_DATA, (_G,), _G, editions=_GPU, cite="syncedmem.cpp:84"),
    Transition(Call.GPU_DATA, (_S,), _S, editions=_GPU, cite="syncedmem.cpp:85"),
    # --- writing on the device: as reading, then the host side is stale; syncedmem.cpp:143
    Transition(Call.MUTABLE_GPU_DATA, (_U,), _G, _NEW_GPU, editions=_GPU, cite="syncedmem.cpp:143-148"),
    Transition(Call.MUTABLE_GPU_DATA, (_C,), _G, _FIRST_UP, unless=_GPU_PTR, editions=_GPU, cite="syncedmem.cpp:146"),
    Transition(Call.MUTABLE_GPU_DATA, (_C,), _G, _UP, conditions=_GPU_PTR, editions=_GPU, cite="syncedmem.cpp:146"),
    Transition(Call.MUTABLE_GPU_DATA, (_G,), _G, editions=_GPU, cite="syncedmem.cpp:147"),
    Transition(Call.MUTABLE_GPU_DATA, (_S,), _G, editions=_GPU, cite="syncedmem.cpp:147"),
    # --- adopting host memory: the other side is neither copied nor freed; syncedmem.cpp:99
    Transition(Call.SET_CPU_DATA, _ALL, None, unless=_DATA, refusal=Refusal.NULL_DATA, cite="syncedmem.cpp:101"),
    Transition(Call.SET_CPU_DATA, (_U,), _C, (Action.ADOPT_CPU,), conditions=_DATA, cite="syncedmem.cpp:105"),
    Transition(Call.SET_CPU_DATA, _LIVE, _C, (Action.FREE_CPU, Action.ADOPT_CPU), conditions=_DATA + _OWN_C,
               cite="syncedmem.cpp:102-107"),
    Transition(Call.SET_CPU_DATA, _LIVE, _C, (Action.ADOPT_CPU,), conditions=_DATA, unless=_OWN_C,
               cite="syncedmem.cpp:105"),
    # --- adopting device memory; syncedmem.cpp:121
    Transition(Call.SET_GPU_DATA, _ALL, None, unless=_DATA, refusal=Refusal.NULL_DATA, editions=_CAFFE,
               cite="syncedmem.cpp:124"),
    Transition(Call.SET_GPU_DATA, (_U,), _G, (Action.ADOPT_GPU,), conditions=_DATA, editions=_CAFFE,
               cite="syncedmem.cpp:128"),
    Transition(Call.SET_GPU_DATA, _LIVE, _G, (Action.FREE_GPU, Action.ADOPT_GPU), conditions=_DATA + _OWN_G,
               editions=_CAFFE, cite="syncedmem.cpp:125-130"),
    Transition(Call.SET_GPU_DATA, _LIVE, _G, (Action.ADOPT_GPU,), conditions=_DATA, unless=_OWN_G, editions=_CAFFE,
               cite="syncedmem.cpp:128"),
    # --- pushing before use: the head is SYNCED when the copy is queued, not when it is done; syncedmem.cpp:156
    Transition(Call.ASYNC_GPU_PUSH, (_C,), _S, _FIRST_PUSH, unless=_GPU_PTR, editions=_CAFFE,
               cite="syncedmem.cpp:156-167"),
    Transition(Call.ASYNC_GPU_PUSH, (_C,), _S, _PUSH, conditions=_GPU_PTR, editions=_CAFFE,
               cite="syncedmem.cpp:163-166"),
    Transition(Call.ASYNC_GPU_PUSH, (_U, _G, _S), None, refusal=Refusal.NOT_HEAD_AT_CPU, editions=_CAFFE,
               cite="syncedmem.cpp:158"),
    # --- the build without a GPU; NO_GPU comes before CHECK(data)
    Transition(Call.GPU_DATA, _ALL, None, refusal=Refusal.NO_GPU, editions=_CPU_ONLY, cite="syncedmem.cpp:116"),
    Transition(Call.MUTABLE_GPU_DATA, _ALL, None, refusal=Refusal.NO_GPU, editions=_CPU_ONLY, cite="syncedmem.cpp:150"),
    Transition(Call.SET_GPU_DATA, _ALL, None, refusal=Refusal.NO_GPU, editions=_CPU_ONLY, cite="syncedmem.cpp:132"),
    # --- the destructor: first the host side, then the device side, only if owned; syncedmem.cpp:26-37
    Transition(Call.RELEASE, (_U,), None, cite="syncedmem.cpp:26-37"),
    Transition(Call.RELEASE, _LIVE, None, (Action.FREE_CPU, Action.FREE_GPU), conditions=_OWN_C + _OWN_G,
               cite="syncedmem.cpp:28-36"),
    Transition(Call.RELEASE, _LIVE, None, (Action.FREE_CPU,), conditions=_OWN_C, unless=_OWN_G,
               cite="syncedmem.cpp:28"),
    Transition(Call.RELEASE, _LIVE, None, (Action.FREE_GPU,), conditions=_OWN_G, unless=_OWN_C,
               cite="syncedmem.cpp:33"),
    Transition(Call.RELEASE, _LIVE, None, unless=_OWN_C + _OWN_G, cite="syncedmem.cpp:26-37"),
)
# fmt: on
