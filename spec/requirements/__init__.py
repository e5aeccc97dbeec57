"""The requirements: numbered sentences, of memories (R) and of blobs (B), each with its source and its profile."""

from .registry import PROFILES, REQUIREMENTS, Kind, Profile, Requirement, applicable

__all__ = ["PROFILES", "REQUIREMENTS", "Kind", "Profile", "Requirement", "applicable"]
