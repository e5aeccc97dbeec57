"""The requirements: numbered sentences, of memories (R), blobs (B) and allocators (A, D), with their sources."""

from .levels import LEVELS, Level
from .registry import PROFILES, REQUIREMENTS, Kind, Profile, Requirement, applicable, lacking, requirements_of

__all__ = [
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
]
