"""The requirements that a subject of memories is judged by."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS, Fact, head_machine

from ..requirements import applicable
from ..requirements.memory import MEMORY_OF_CALLS, MEMORY_OF_OBJECTS, MEMORY_OF_PAGE_LOCKS

if TYPE_CHECKING:
    from ..engine.subject import Subject

__all__ = ["requirements_for"]


@lru_cache(maxsize=4)
def requirements_for(subject: Subject) -> tuple[str, ...]:
    """The requirements that a subject of memories can be checked for."""
    offered = {"no device" if subject.device is None else "device"}
    if subject.device is not None and subject.elsewhere is not None:
        offered.update(("another device", "device check") if subject.check_device else ("another device",))
    calls = {call.value for call in head_machine(subject.edition).calls}
    beyond = {number for call, numbers in MEMORY_OF_CALLS.items() if call not in calls for number in numbers}
    if subject.device is not None and not EDITIONS[subject.edition].flags & Fact.CPU_MALLOC_USE_CUDA:
        beyond |= MEMORY_OF_PAGE_LOCKS
    if subject.program is not None:
        beyond |= MEMORY_OF_OBJECTS
    names = [
        name
        for name in applicable("memory", subject.profile, offered, subject.level)
        if name.partition("-")[0] not in beyond
    ]
    programs = () if subject.program is None else applicable("port", subject.profile, offered, subject.level)
    return (*names, *programs)
