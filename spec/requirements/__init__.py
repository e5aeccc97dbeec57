"""The requirements: numbered sentences, of memories (R), blobs (B) and allocators (A, D), with their sources."""

from .levels import LEVELS, Level
from .registry import (
    HARMLESS,
    PROFILES,
    REQUIREMENTS,
    Kind,
    Profile,
    Requirement,
    applicable,
    lacking,
    requirements_of,
    seen_as,
)

__all__ = [
    "HARMLESS",
    "LEVELS",
    "PROFILES",
    "REQUIREMENTS",
    "Kind",
    "Level",
    "Profile",
    "Requirement",
    "applicable",
    "lacking",
    "requirements_of",
    "seen_as",
]
