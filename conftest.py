"""What holds for all tests: code blocks of README.md and docs/*.md run as tests, and Hypothesis has no clock."""

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"]).pytest()

# Tests that need the stand-in for CUDA: make test-hostcuda loads it.
collect_ignore = [] if "hostcuda_cupy" in sys.modules else ["tests/hostcuda"]

pytest_plugins = [
    "allowed_skips",
    "command_fixtures",
    "deep_tests",
    "explorer_fixtures",
    "frozen",
    "kill_table",
    "interop_fixtures",
    "leftovers",
    "memory_fixtures",
    "mutants_path",
    "order",
    "port_fixtures",
    "pytester",
]

# How long an example takes says something about the machine, and nothing about us.
settings.register_profile("searching", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples every time: whoever asks whether it works finds no new fault by luck.  `make new-seeds` searches.
settings.register_profile("repeatable", settings.get_profile("searching"), derandomize=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Give CuPy, PoCL and PyOpenCL a folder, which they need, where they cannot write to that of the user."""
    if not os.access(Path.home(), os.W_OK) and not hasattr(config, "workerinput"):
        for variable in ("CUPY_CACHE_DIR", "XDG_CACHE_HOME"):
            if variable not in os.environ:
                folder = TemporaryDirectory()
                config.add_cleanup(folder.cleanup)
                os.environ[variable] = folder.name


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection: the kits and many tests run the collector often."""
    gc.collect()
    gc.freeze()


def _scope(fixture_name: str, config: pytest.Config) -> Literal["function", "module"]:  # noqa: ARG001 -- given by name
    """With every suite each test of a seeded bug leaves as much as a module does otherwise."""
    return "function" if config.getoption("--every-suite") else "module"


@pytest.fixture(autouse=True, scope=_scope)
def _quick_collector() -> Generator[None]:
    """Exempt also what is left in caches: with all test vectors in memory, a collection takes seconds."""
    yield
    gc.collect()
    gc.freeze()
