"""The requirements that a subject of blobs is judged by."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..requirements import lacking, requirements_of
from ..requirements.blob import BLOB_OF_OBJECTS
from .elements import USUAL

if TYPE_CHECKING:
    from ..engine.subject import Subject

__all__ = ["blob_requirements_for", "blobs_not_judged", "offers_messages"]


@lru_cache(maxsize=4)
def blob_requirements_for(subject: Subject) -> tuple[str, ...]:
    """The requirements that a subject of blobs can be checked for."""
    return tuple(name for name, why in _reasons(subject).items() if not why)


def blobs_not_judged(subject: Subject) -> dict[str, str]:
    """The requirements of its profile that a subject of blobs is not checked for, each with the reason."""
    return {name: why for name, why in _reasons(subject).items() if why}


def _reasons(subject: Subject) -> dict[str, str]:
    """Why each requirement of its profile is not judged of a subject; empty if it is."""
    offered = {"no device" if subject.device is None else "device", f"{subject.profile} profile"}
    if offers_messages(subject):
        offered.add("messages")
    program = subject.program is not None
    requirements = requirements_of("blob", "port") if program else requirements_of("blob")
    objects = {"P04": "about memories", **dict.fromkeys(BLOB_OF_OBJECTS if program else (), "no request names a view")}
    return {
        name: objects.get(name.partition("-")[0], "") or lacking(requirement, offered, subject.level)
        for name, requirement in requirements.items()
        if requirement.profile in ("caffe", subject.profile)
    }


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
