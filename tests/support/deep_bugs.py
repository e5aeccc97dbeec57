"""Seeded bugs of allocators that need more than the usual steps, or a process of their own."""

from __future__ import annotations

STEPS = 20_000
"""The steps within which each other bug is caught; that takes seconds."""

DEEP = {"FailsAtVeryManyBlocks": 500_000, "GrowsOld": 500_000}
"""The steps within which these are caught: half of them are those of one old process."""

OF_A_NEW_PROCESS = ("NotReadyYet",)
"""They show only in the first calls of a process."""
