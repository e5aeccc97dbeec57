"""The requirements: numbered sentences, of memories (R), blobs (B) and allocators (A, D), with their sources."""

from .registry import PROFILES, REQUIREMENTS, Kind, Profile, Requirement, applicable, requirements_of

__all__ = ["PROFILES", "REQUIREMENTS", "Kind", "Profile", "Requirement", "applicable", "requirements_of"]
