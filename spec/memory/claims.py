"""The requirements that a subject of memories is judged by, and why it is not judged by the others."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..requirements import lacking, requirements_of
from ..requirements.memory import MEMORY_OF_MACHINES, MEMORY_OF_OBJECTS
from .policy import absent_of, mute_calls

if TYPE_CHECKING:
    from syncedmem.model.interface import Allocator

    from ..engine.subject import Subject

__all__ = ["not_judged", "offers_of", "requirements_for"]


@lru_cache(maxsize=4)
def requirements_for(subject: Subject) -> tuple[str, ...]:
    """The requirements that a subject of memories can be checked for."""
    return tuple(name for name, why in _reasons(subject).items() if not why)


def not_judged(subject: Subject) -> dict[str, str]:
    """What a subject of memories is not checked for: requirements of its profile, and calls, each with the reason."""
    calls = dict.fromkeys(sorted(mute_calls(subject.machine, subject.policy)), "the policy does not say what it does")
    return {name: why for name, why in _reasons(subject).items() if why} | calls


def _reasons(subject: Subject) -> dict[str, str]:
    """Why each requirement of its profile is not judged of a subject; empty if it is."""
    offered, beyond = offers_of(subject), _beyond_its_machine(subject)
    if absent_of(subject):
        beyond.setdefault("R58", "there is no device")
    if subject.program is not None:
        beyond |= dict.fromkeys(MEMORY_OF_OBJECTS, "about objects of Python")
        if "own_buffer" not in offered:
            beyond["R35"] = "the program does not answer the request own_buffer"
    requirements = requirements_of("memory") if subject.program is None else requirements_of("memory", "port")
    return {
        name: beyond.get(name.partition("-")[0], "") or lacking(requirement, offered, subject.level)
        for name, requirement in requirements.items()
        if requirement.profile in ("caffe", subject.profile)
    }


def offers_of(subject: Subject) -> frozenset[str]:
    """What a subject offers to be tested with: devices, and what can be asked of it besides calls."""
    offered = {"no device" if absent_of(subject) else "device"}
    if subject.device is not None and subject.elsewhere is not None:
        offered.add("another device")
        if subject.check_device and _becomes_current(subject.elsewhere, subject.device):
            offered.add("device check")
    if getattr(subject.device, "current_stream", _nothing)() is not None:
        offered.add("current stream")
    if subject.program is not None:
        return frozenset(offered | {*subject.program.offers})
    hosts = [subject.place(side) for side in subject.sides if subject.is_host(side)]
    if all(hasattr(place.empty(1), "reshape") for place in hosts):  # only NumPy's arrays can be in column order
        offered.add("columns")
    return frozenset(offered | {"streams", "own_buffer", "drop", "objects"})


def _becomes_current(other: Allocator, device: Allocator) -> bool:
    """Whether another device is the current one while it is used; OpenCL has no current device."""
    with other.using():
        return device.current_ordinal() != device.ordinal


def _nothing() -> None:
    """The current stream of a device that has none."""


def _beyond_its_machine(subject: Subject) -> dict[str, str]:
    """The numbers of the requirements that are about what a machine does not have, and what that is."""
    machine, name = subject.machine, "edition" if subject.is_caffe else "machine"
    has = {f"call that {_DOES.get(call.does)}" for call in machine.calls.values()}
    for call in machine.calls.values():
        has.add(f"call that {_DOES.get(call.does)} on {'the host' if subject.is_host(call.side) else 'a device'}")
    meanings = {fact.means for fact in machine.facts.values()}
    if "owned" in meanings:
        has.add("flag of ownership")
    if "pinned" in meanings or (subject.is_caffe and subject.device is None):
        has.add("page-locked memory")
    if not subject.by_table:
        has.add("policy")
    if subject.is_caffe:
        has.add("meaning for zero bytes")
    missing = ((what, numbers.split()) for what, numbers in MEMORY_OF_MACHINES.items() if what not in has)
    return {number: f"the {name} {machine.name} has no {what}" for what, numbers in missing for number in numbers}


_DOES = {"adopt": "adopts", "push": "pushes", "pull": "pushes", "release": "releases"}
