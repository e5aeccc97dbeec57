"""Lets the processes that are started from here import the package `mutants`: the seeded bugs are no part of ours."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["pytest_configure"]

FOLDER = str(Path(__file__).parents[1])


def pytest_configure() -> None:
    """Put the folder of `mutants` on the path of other processes, at its end, so that it hides nothing."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if FOLDER not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, known), FOLDER])
