"""What a family of memories decides where the theory of fresh copies leaves a choice.

The theory is that of the ``oracle``: somebody reads or writes a side, so that side has to be fresh.  It does not say
what a side holds that nobody has written, whether adopting is possible, or over which sides bytes travel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from syncedmem.model import InvalidArgumentError, caffe
from syncedmem.model.exports.declared import object_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from syncedmem.model import Machine

    from ..engine.subject import Subject

__all__ = [
    "CAFFE",
    "CPU_ONLY",
    "EARLY",
    "POLICIES",
    "FirstTouch",
    "Policy",
    "Reason",
    "mute_calls",
    "policy_named",
    "without_mute",
]

FirstTouch = Literal["zero", "undefined", "refused"]
Reason = Literal["released", "absent", "null", "push", "untouched"]
"""Why a call must be refused: it comes after release; its side does not exist here; it was given no buffer; there is
nothing to push, or nowhere; the side holds nothing and nothing is promised of it."""


@dataclass(frozen=True)
class Policy:
    """The choices of a family of memories; without any, every side is there from the beginning and undefined.

    Attributes
    ----------
    sides : tuple of str
        If several are fresh, bytes are copied from the one with the shortest route, and of these from the first.
    lazy : frozenset of str
        The sides that the first call allocates that needs them; the others are there from the beginning.
    first_touch : {"zero", "undefined", "refused"}
        What is found before anything was written: zeros; bytes of which nothing is promised, and which need not be the
        same on two sides; or, where no side is fresh, a refusal.
    born_fresh : frozenset of str
        The sides that are fresh in a new memory; they hold what `first_touch` says.
    zeroed : frozenset of str
        The sides whose memory is filled with zeros whenever it is allocated, also if it is copied to right after.
    routes : mapping of (str, str) to tuple of str
        The sides by way of which bytes travel from one side to another; these become fresh too.
    push_needs_stale : bool
        Whether a push to a fresh side is refused.
    home : str
        Where the bytes of an evicted side go if it was the only fresh one.
    evict_frees : bool
        Whether what the memory owns on an evicted side is freed.
    absent : frozenset of str
        Sides that this build lacks: calls for them are refused.
    says : tuple of frozenset of str
        What the heads can say is fresh; what they cannot say is forgotten.  Empty if they can say everything.
    pinned : mapping of str to (str, str)
        The sides whose memory is of two kinds, with a setting and its value that decides for the second kind when it
        is allocated.
    refusals : mapping of str to str
        What the machine calls the reasons for a refusal, which are ``released``, ``absent``, ``null``, ``push`` and
        ``untouched``; of those that are left out, any refusal will do.

    Raises
    ------
    InvalidArgumentError
        If a field names a side that it does not have, or is no set of sides, or if there is no such first touch.
    """

    sides: tuple[str, ...]
    lazy: frozenset[str] = frozenset()
    first_touch: FirstTouch = "undefined"
    born_fresh: frozenset[str] = frozenset()
    zeroed: frozenset[str] = frozenset()
    routes: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict[tuple[str, str], tuple[str, ...]])
    push_needs_stale: bool = True
    home: str = ""
    evict_frees: bool = False
    absent: frozenset[str] = frozenset()
    says: tuple[frozenset[str], ...] = ()
    pinned: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.first_touch not in get_args(FirstTouch):
            raise InvalidArgumentError("first_touch", self.first_touch, f"one of {', '.join(get_args(FirstTouch))}")
        named: dict[str, Iterable[str]] = {
            "lazy": self.lazy,
            "born_fresh": self.born_fresh,
            "zeroed": self.zeroed,
            "routes": {side for ends, between in self.routes.items() for side in (*ends, *between)},
            "home": {self.home} if self.home else (),
            "absent": self.absent,
            "says": {side for fresh in self.says for side in fresh},
            "pinned": self.pinned,
        }
        for name, sides in named.items():
            if isinstance(sides, str) or not set(sides) <= set(self.sides):
                wrong = sides if isinstance(sides, str) else min(set(sides) - set(self.sides))
                raise InvalidArgumentError(name, wrong, f"a set of the sides {', '.join(self.sides)}")

    def route(self, source: str, side: str) -> tuple[str, ...]:
        """The sides to which bytes are copied one after the other, on their way to a side."""
        return (*self.routes.get((source, side), ()), side)


CAFFE = Policy(
    (caffe.CPU, caffe.GPU),
    lazy=frozenset((caffe.CPU, caffe.GPU)),
    first_touch="zero",
    pinned={caffe.CPU: (caffe.MODE.name, "GPU")},
    refusals={"null": caffe.NULL_DATA.name, "push": caffe.NOT_HEAD_AT_CPU.name, "absent": caffe.NO_GPU.name},
)
"""Caffe: syncedmem.cpp:1-185."""

EARLY = Policy(CAFFE.sides, lazy=CAFFE.lazy, first_touch="zero", refusals=CAFFE.refusals)
"""Caffe as it was at first, where host memory was of one kind."""

CPU_ONLY = Policy(
    CAFFE.sides, lazy=CAFFE.lazy, first_touch="zero", absent=frozenset((caffe.GPU,)), refusals=CAFFE.refusals
)
"""Caffe in a build without a device."""

POLICIES: Mapping[str, Policy] = MappingProxyType(
    dict.fromkeys(caffe.EDITIONS, CAFFE) | {"early": EARLY, "cpu_only": CPU_ONLY}
)
"""The policy of each edition, by its name: Caffe's, unless it has one of its own."""


def absent_of(subject: Subject) -> frozenset[str]:
    """The sides that the memories of a subject lack."""
    policy = POLICIES[subject.machine.name] if subject.is_caffe else subject.policy
    return frozenset() if policy is None else policy.absent


def mute_calls(machine: Machine, policy: Policy | None) -> frozenset[str]:
    """The calls of which nobody says what they do: those that mean nothing, if it is a policy that says it."""
    mute = (call.name for call in machine.calls.values() if call.does == "")
    return frozenset() if policy is None else frozenset(mute)


def without_mute(machine: Machine, policy: Policy | None) -> Machine:
    """A machine without its mute calls, and without what only they reach: memories are judged by the others."""
    mute = mute_calls(machine, policy)
    return machine.select(machine.name, title=machine.title, without=mute) if mute else machine


def policy_named(text: str) -> Policy:
    """The policy that ``FILE.py:NAME`` names; the file is run."""
    place, _, name = text.rpartition(":") if ".py:" in text else (text, "", "")
    return object_in(place, name, Policy)
