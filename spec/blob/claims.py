"""The requirements that a subject of blobs is judged by."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..requirements import applicable
from ..requirements.blob import BLOB_OF_OBJECTS
from .elements import USUAL

if TYPE_CHECKING:
    from ..engine.subject import Subject

__all__ = ["blob_requirements_for", "offers_messages"]


@lru_cache(maxsize=4)
def blob_requirements_for(subject: Subject) -> tuple[str, ...]:
    """The requirements that a subject of blobs can be checked for."""
    offered = {"no device" if subject.device is None else "device", f"{subject.profile} profile"}
    if offers_messages(subject):
        offered.add("messages")
    names = applicable("blob", subject.profile, offered, subject.level)
    if subject.program is None:
        return tuple(names)
    programs = applicable("port", subject.profile, offered, subject.level)
    return (*(name for name in names if name.partition("-")[0] not in BLOB_OF_OBJECTS), *programs)


def offers_messages(subject: Subject) -> bool:
    """Whether blobs of a subject have messages, and the packages for them are installed; a program's have none."""
    if subject.program is not None:
        return False
    make: Any = subject.make
    try:
        blob = make((1,), dtype=USUAL, host=subject.host, device=subject.device)
        if not hasattr(blob, "to_proto"):
            return False
        blob.to_proto()
    except ImportError:
        return False
    except Exception:  # noqa: BLE001 -- any error of a blob; the rules will find what is wrong
        return True
    return True
