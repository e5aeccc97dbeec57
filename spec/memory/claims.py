"""The requirements that a subject of memories is judged by."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..requirements import applicable

if TYPE_CHECKING:
    from ..engine.subject import Subject

__all__ = ["requirements_for"]


@lru_cache(maxsize=4)
def requirements_for(subject: Subject) -> tuple[str, ...]:
    """The requirements that a subject of memories can be checked for."""
    offered = {"no device" if subject.device is None else "device"}
    if subject.device is not None and subject.elsewhere is not None:
        offered.update(("another device", "device check") if subject.check_device else ("another device",))
    return tuple(applicable("memory", subject.profile, offered))
