"""What holds for all tests: code blocks of README.md and docs/*.md run as tests, and Hypothesis has no clock."""

import gc
import sys
from collections.abc import Generator

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
    "kill_table",
    "interop_fixtures",
    "memory_fixtures",
    "mutants_path",
    "port_fixtures",
]

# How long an example takes says something about the machine, and nothing about us.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples every time, so that what was seen to pass passes again; `make test` looks for new ones.
settings.register_profile("repeatable", settings.get_profile("untimed"), derandomize=True)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection: the kits and many tests run the collector often."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _quick_collector() -> Generator[None]:
    """Exempt also what a module leaves in caches: with all test vectors in memory, a collection takes seconds."""
    yield
    gc.collect()
    gc.freeze()
